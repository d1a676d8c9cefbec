//! The agent of a row, as files: a shell script with its behaviour, the program that the tool starts, and the script of the
//! model that drives a real agent.

use std::path::Path;

use crate::adapter::{Adapter, AgentKind};
use crate::row::{AgentAnswer, ProviderFault, Row};

const PROSE: &str = "Sure! I have done it.";

/// The name of the agent program for tools that start any command.
pub(crate) const AGENT_PROGRAM: &str = "conformance-agent";

/// How much an agent that floods prints, in characters of two bytes.
const FLOOD_CHARS: usize = 4_000_000;

/// The behaviour of one session, as a shell script.
pub(crate) fn behaviour(row: &Row, adapter: &Adapter, folder: &Path) -> String {
    // Some tools start their agent with an environment of their own.
    let mut script = format!(
        "CONFORMANCE_DIR='{}'\nCONFORMANCE_ADAPTER_DIR='{}'\nanswer={}\n",
        folder.display(),
        adapter.folder().display(),
        row.answer.as_str()
    );
    for (name, body) in &adapter.actions {
        script.push_str(&format!("{name}() {{\n{body}\n}}\n"));
    }
    script.push_str(&match adapter.agent.kind {
        AgentKind::Command => "crash() { kill -9 $$; }\n".to_owned(),
        AgentKind::Claude => {
            format!("crash() {{ kill -9 \"$(cat '{}')\"; exit 1; }}\n", folder.join("agent.pid").display())
        }
    });
    script.push_str(&row.agent);
    script.push_str(&format!(
        "\ncase $answer in done) words={} ;; prose) words={} ;; *) words={} ;; esac\n",
        shell_quoted(&adapter.agent.done),
        shell_quoted(PROSE),
        shell_quoted(&adapter.agent.open)
    ));
    if !adapter.agent.give_answer.is_empty() {
        script.push_str(&format!("if [ $answer != nothing ]; then\n{}\nfi\n", adapter.agent.give_answer));
    }
    if adapter.agent.commits {
        script.push_str("git add -A && git commit -qm 'work of the agent' || true\n");
    }
    script
}

/// The program that the tool starts as its agent: it counts sessions, and is or starts the agent.
pub(crate) fn program(folder: &Path, claude: Option<&Path>) -> String {
    let folder = folder.display();
    let count = format!("(echo started >> '{folder}/sessions') 2> /dev/null || true\n");
    match claude {
        Some(claude) => format!(
            "#!/bin/sh\ncase \" $* \" in *' --version '* | *' -v '*) ;; *) {count}echo $$ > '{folder}/agent.pid' ;; esac\n\
             exec '{}' \"$@\"\n",
            claude.display()
        ),
        None => format!("#!/bin/sh\n{count}. '{folder}/agent.sh'\n"),
    }
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The script of the model: run the behaviour with the agent's shell tool, then answer.
pub(crate) fn model_script(row: &Row, adapter: &Adapter, folder: &Path) -> String {
    if let Some(fault) = row.fault {
        return format!("[[part]]\n[[part.step]]\nfault = [{{ what.http = {} }}]\n", http_fault(fault));
    }
    let words = match row.answer {
        AgentAnswer::Done => adapter.agent.done.as_str(),
        AgentAnswer::Open => adapter.agent.open.as_str(),
        AgentAnswer::Prose => PROSE,
        AgentAnswer::Nothing => "",
    };
    let command = format!("sh '{}'", folder.join("agent.sh").display());
    let flood = if row.floods { "ü".repeat(FLOOD_CHARS) } else { "Working on it.".to_owned() };
    format!(
        "[[part]]\n[[part.step]]\ntext = {}\ndo.shell = {}\n[[part.step]]\ndo.final = {}\n",
        toml_string(&flood),
        toml_string(&command),
        toml_string(words)
    )
}

/// A string in TOML. Every string of JSON is one.
fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The response of the provider: that of Anthropic's API in this case, with a reset in the year 2030.
fn http_fault(fault: ProviderFault) -> &'static str {
    match fault {
        ProviderFault::UsageLimit => {
            "{ status = 429, headers = { 'anthropic-ratelimit-unified-status' = 'rejected', \
             'anthropic-ratelimit-unified-reset' = '1900000000', \
             'anthropic-ratelimit-unified-representative-claim' = 'five_hour', 'x-should-retry' = 'false' } }"
        }
        ProviderFault::NotLoggedIn => "{ status = 401 }",
    }
}
