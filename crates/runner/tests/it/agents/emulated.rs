//! Agents of the kinds "codex" and "claude", emulated by scripts that print what the real programs print.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use runner_core::agents::{AGENTS, AgentSpec};
use serde_json::{Value, json};
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::agents::real::agent_folder;

/// A helper of both scripts: `path FLAG` prints the argument after a flag.
const PRELUDE: &str = r#"
[ "$1" = --version ] && { echo 'codex-cli 0.169.0'; exit; }
path() { flag=$1; shift; while [ $# -gt 0 ]; do [ "$1" = "$flag" ] && { printf '%s\n' "$2"; return; }; shift; done; }
"#;

/// A Codex session that works and writes its answer to the file named by its arguments.
const CODEX: &str = r#"
echo '{"type":"thread.started","thread_id":"t-1"}'
echo '{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"make","aggregated_output":"ok","exit_code":0,"status":"completed"}}'
cat > prompt.txt
env > seen.txt
echo '{"status":"done","summary":"did it"}' > "$(path --output-last-message "$@")"
echo '{"type":"turn.completed","usage":{"input_tokens":20,"cached_input_tokens":5,"output_tokens":3,"reasoning_output_tokens":1}}'
"#;

/// A Claude Code session that works and prints its answer in its last event.
const CLAUDE: &str = r#"
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m-1","claude_code_version":"2.1.326","tools":[]}'
path --json-schema "$@" > schema.txt
env > seen.txt
"$CLAUDE_CODE_SHELL_PREFIX" 'env > commands.txt'
echo '{"type":"result","subtype":"success","is_error":false,"total_cost_usd":0.0107,"usage":{"input_tokens":15,"cache_read_input_tokens":5,"output_tokens":3},"structured_output":{"status":"done","summary":"did it"}}'
"#;

/// Writes a program beside the work tree and returns its path.
pub(crate) fn program(sandbox: &TestRepo, script: &str) -> String {
    let path = sandbox.outside().join("own-agent");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// A started run with such an agent.
fn started(kind: &str, script: &str) -> TestRepo {
    let sandbox = TestRepo::empty(RUNNER);
    let path = program(&sandbox, &format!("{PRELUDE}{script}"));
    RunBuilder::new(RUNNER).executor(&format!("kind = \"{kind}\"\nprogram = \"{path}\"")).start_in(sandbox)
}

fn step(sandbox: &TestRepo) -> testkit::test_repo::RunOutput {
    let mut command = sandbox.runner_command(&["step"]);
    command.env("CODEX_API_KEY", "sk-1").env("ANTHROPIC_API_KEY", "sk-2").env("AWS_SECRET", "sk-3");
    run(&mut command)
}

fn agent_events(sandbox: &TestRepo) -> Vec<Value> {
    let events = sandbox.iteration_file(1, "events.jsonl");
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == "agent").collect()
}

#[test]
fn codex_session_is_parsed_recorded_and_passed() {
    let sandbox = started("codex", CODEX);
    let output = step(&sandbox).ok();
    assert!(
        output.stdout.contains("event=agent iter=0001 kind=command text=\"$ make (exit 0)\""),
        "{}",
        output.stdout
    );
    let meta = sandbox.meta(1);
    assert_eq!(meta["outcome"], "passed");
    assert_eq!(meta["identity"], json!({ "session_id": "t-1", "model": null, "version": "0.169.0" }));
    let usage = &meta["usage"];
    assert_eq!((&usage["input_tokens"], &usage["cached_input_tokens"]), (&json!(20), &json!(5)));
    assert_eq!((&usage["cost_microdollars"], &usage["cost_source"]), (&Value::Null, &json!("unknown")));
    let kinds: Vec<Value> = agent_events(&sandbox).iter().map(|event| event["kind"].clone()).collect();
    assert_eq!(kinds, ["session", "command", "usage", "finished"]);
    let raw = sandbox.iteration_file(1, "stream.jsonl");
    let first: Value = serde_json::from_str(raw.lines().next().unwrap()).unwrap();
    assert_eq!(first["raw"]["thread_id"], "t-1");
    assert_eq!(sandbox.read("prompt.txt"), sandbox.iteration_file(1, "prompt.md"));
}

#[test]
fn claude_session_is_parsed_recorded_and_passed() {
    let sandbox = started("claude", CLAUDE);
    step(&sandbox).ok();
    let meta = sandbox.meta(1);
    assert_eq!(meta["outcome"], "passed");
    assert_eq!(meta["identity"], json!({ "session_id": "s-1", "model": "m-1", "version": "2.1.326" }));
    let usage = &meta["usage"];
    assert_eq!((&usage["input_tokens"], &usage["cached_input_tokens"]), (&json!(20), &json!(5)));
    assert_eq!((&usage["cost_microdollars"], &usage["cost_source"]), (&json!(10_700), &json!("reported")));
    assert_eq!(sandbox.iteration_file(1, "output.json"), r#"{"status":"done","summary":"did it"}"#);
    let schema: Value = serde_json::from_str(&sandbox.read("schema.txt")).unwrap();
    assert_eq!((&schema["$schema"], &schema["required"]), (&Value::Null, &json!(["status", "summary"])));
}

#[test]
fn agent_gets_only_its_own_key_and_its_commands_get_none() {
    for (kind, script, own) in
        [("codex", CODEX, "CODEX_API_KEY=sk-1"), ("claude", CLAUDE, "ANTHROPIC_API_KEY=sk-2")]
    {
        let sandbox = started(kind, script);
        step(&sandbox).ok();
        let seen = sandbox.read("seen.txt");
        let secrets: Vec<&str> = seen.lines().filter(|line| line.contains("=sk-")).collect();
        assert_eq!(secrets, [own], "{kind}");
        assert!(seen.contains("RUNNER_NODE_ID=root") && !seen.contains("RUNNER_OUTPUT"), "{seen}");
        if kind == "claude" {
            let seen = sandbox.read("commands.txt");
            assert!(seen.contains("RUNNER_NODE_ID=root") && !seen.contains("sk-"), "{seen}");
        }
    }
}

#[test]
fn usage_limit_uses_no_attempt_and_waits_for_the_reset() {
    let failed = r#"echo '{"type":"turn.failed","error":{"message":"You have none. You'"'"'ve hit your usage limit."}}'; exit 1"#;
    let limit = failed
        .replace("You have none. ", "")
        .replace("limit.\"", "limit. Try again at Mar 17th, 2030 5:46 PM.\"");
    let sandbox = started("codex", &limit);
    step(&sandbox).ok();
    let meta = sandbox.meta(1);
    assert_eq!((&meta["outcome"], &meta["charge"]), (&json!("usage_limit"), &json!("free")));
    assert_eq!(meta["next"]["until_unix_secs"], 1_900_000_020_u64);
    // The same words elsewhere in the output are not a limit.
    let sandbox = started("codex", failed);
    step(&sandbox).ok();
    assert_eq!(sandbox.meta(1)["outcome"], "provider_refused");
}

#[test]
fn agent_that_cannot_start_is_reported_with_a_fix() {
    let sandbox = started("codex", "echo 'error: unexpected argument' >&2; exit 2");
    let output = step(&sandbox).ok();
    assert!(output.stdout.contains("error: unexpected argument"), "{}", output.stdout);
    assert_eq!(sandbox.meta(1)["outcome"], "agent_crashed");
    assert_eq!(sandbox.iteration_file(1, "executor.err.log"), "error: unexpected argument\n");
    let missing =
        RunBuilder::new(RUNNER).executor("kind = \"claude\"\nprogram = \"/no/such/claude\"").start();
    let output = missing.runner(&["step"]).ok();
    assert!(
        output
            .stdout
            .contains("`/no/such/claude` does not exist or is not executable: check [executor] program"),
        "{}",
        output.stdout
    );
    assert_eq!(missing.meta(1)["outcome"], "agent_not_started");
}

#[test]
fn full_context_ends_the_session_with_its_own_outcome() {
    let full = "echo '{\"type\":\"thread.started\",\"thread_id\":\"t\"}'; echo {} > \"$RUNNER_CONTEXT_FULL\"; exit 1";
    let sandbox = started("codex", full);
    step(&sandbox).ok();
    assert_eq!(sandbox.meta(1)["exit"]["fault"]["fault"], "context_full");
    assert!(!sandbox.path(".git/runner/session").exists());
}

#[test]
fn preset_runs_its_command_line() {
    let sandbox = TestRepo::empty(RUNNER);
    let path = program(
        &sandbox,
        "echo \"$@\" > line.txt\necho '{\"status\":\"done\",\"summary\":\"x\"}' > \"$RUNNER_OUTPUT\"",
    );
    let executor = format!("kind = \"command\"\npreset = \"qwen\"\nprogram = \"{path}\"\nmodel = \"m\"");
    let sandbox = RunBuilder::new(RUNNER).executor(&executor).start_in(sandbox);
    sandbox.runner(&["step"]).ok();
    assert_eq!(sandbox.meta(1)["outcome"], "passed");
    let line = sandbox.read("line.txt");
    let beginning = "-o stream-json --chat-recording false --safe-mode --allowed-tools agent,edit,";
    assert!(line.starts_with(beginning) && line.ends_with(",web_fetch,web_search -m m\n"), "{line}");
}

/// A started run of a preset that a script emulates, in a sandbox.
fn preset(name: &str, script: &str, keys: &str) -> TestRepo {
    let sandbox = TestRepo::empty_in(RUNNER, tempfile::tempdir_in(agent_folder()).unwrap());
    let path = program(
        &sandbox,
        &format!(
            "echo x > work.txt\n{script}\necho '{{\"status\":\"done\",\"summary\":\"x\"}}' > \"$RUNNER_OUTPUT\""
        ),
    );
    let executor = format!(
        "kind = \"command\"\npreset = \"{name}\"\nprogram = \"{path}\"\nsandbox = \"require\"\n{keys}"
    );
    RunBuilder::new(RUNNER).executor(&executor).executor_keys("").guard("true").start_in(sandbox)
}

fn presets() -> impl Iterator<Item = &'static AgentSpec> {
    AGENTS.into_iter().filter(|agent| agent.is_preset())
}

#[test]
fn presets_see_their_keys_and_no_other_variable() {
    for agent in presets() {
        let key = agent.surroundings.login.key_variables[0];
        let sandbox = preset(agent.name, "env > seen.txt", "env_inherit = [\"MINE_*\"]");
        let mut step = sandbox.runner_command(&["step"]);
        step.env("OTHER_SERVICE_TOKEN", "sk-1").env("MARKED", "sk-2").env("MINE_1", "sk-3").env(key, "sk-4");
        run(&mut step).ok();
        assert_eq!(sandbox.outcomes(), ["passed"], "{}", sandbox.iteration_file(1, "executor.err.log"));
        let seen = sandbox.read("seen.txt");
        let mut secrets: Vec<&str> = seen.lines().filter(|line| line.contains("=sk-")).collect();
        secrets.sort_unstable();
        let mut expected = vec![format!("{key}=sk-4"), "MINE_1=sk-3".to_owned()];
        expected.sort_unstable();
        assert_eq!(secrets, expected, "{}", agent.name);
        assert!(seen.contains("RUNNER_OUTPUT=") && seen.contains("GIT_EDITOR=false"), "{seen}");
    }
}

/// What a command leaves in a folder of the program would be loaded by the user's next session: a hook, an MCP server, a plugin.
#[test]
fn commands_of_presets_cannot_write_to_the_folders_of_the_program() {
    const FOLDERS: [&str; 15] = [
        ".gemini",
        ".qwen",
        ".copilot",
        ".cache/copilot",
        ".grok",
        ".pi/agent",
        ".config/opencode",
        ".local/share/opencode",
        ".local/state/opencode",
        ".cache/opencode",
        ".config/kilo",
        ".local/share/kilo",
        ".local/state/kilo",
        ".cache/kilo",
        ".kilocode",
    ];
    for agent in presets() {
        let plant =
            "for folder in $FOLDERS; do echo planted > \"$HOME/$folder/settings.json\"; done 2> /dev/null";
        let renew = "echo '{\"renewed\": true}' > \"$LOGIN\" && cat \"$LOGIN\" > login.txt";
        let sandbox =
            preset(agent.name, &format!("{plant}\n{renew}"), "env_inherit = [\"FOLDERS\", \"LOGIN\"]");
        let home = sandbox.outside().join("home");
        for folder in FOLDERS {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        let login = agent.surroundings.login.renewed_files.first().map(|file| home.join(file));
        let login = login.unwrap_or_else(|| home.join("none.json"));
        fs::write(&login, "{}").unwrap();
        let mut step = sandbox.runner_command(&["step"]);
        step.env("FOLDERS", FOLDERS.join(" ")).env("LOGIN", &login);
        run(&mut step).ok();
        let log = sandbox.iteration_file(1, "executor.err.log");
        assert_eq!(sandbox.outcomes(), ["passed"], "{}: {log}", agent.name);
        for folder in FOLDERS {
            let file = home.join(folder).join("settings.json");
            assert!(!file.exists(), "{} let a command write {}", agent.name, file.display());
        }
        let is_renewed = !agent.surroundings.login.renewed_files.is_empty();
        let left = fs::read_to_string(&login).unwrap();
        assert_eq!(left.contains("renewed"), is_renewed, "{}: {left}", agent.name);
    }
}

/// grok and qwen replace the file of their login, and with it the link to the user's.
#[test]
fn login_that_a_program_replaces_is_written_back() {
    for (name, variable, file) in
        [("grok", "GROK_HOME", ".grok/auth.json"), ("qwen", "QWEN_HOME", ".qwen/oauth_creds.json")]
    {
        let base = file.rsplit('/').next().unwrap();
        let replace = format!(
            "cp \"${variable}/{base}\" before.txt; echo '{{\"token\": \"new\"}}' > \"${variable}/x\"; mv \"${variable}/x\" \"${variable}/{base}\""
        );
        let sandbox = preset(name, &replace, "");
        let login = sandbox.outside().join("home").join(file);
        fs::create_dir_all(login.parent().unwrap()).unwrap();
        fs::write(&login, "{\"token\": \"old\"}\n").unwrap();
        run(&mut sandbox.runner_command(&["step"])).ok();
        assert_eq!(sandbox.outcomes(), ["passed"], "{}", sandbox.iteration_file(1, "executor.err.log"));
        assert_eq!(sandbox.read("before.txt"), "{\"token\": \"old\"}\n", "{name}");
        assert_eq!(fs::read_to_string(&login).unwrap(), "{\"token\": \"new\"}\n", "{name}");
        assert_eq!(fs::metadata(&login).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
}
