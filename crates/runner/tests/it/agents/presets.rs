//! Sessions of the real presets, at their pinned versions, against a scripted model on this machine: one that works, and one
//! that shows what enters a session. They are large and not part of the normal tests: `just agents-test` installs and runs
//! them.
#![expect(clippy::indexing_slicing, reason = "here a fault is a failed test")]

use std::collections::BTreeSet;

use testkit::agents;
use testkit::oracle::{assert_sound, processes_of};
use testkit::run_builder::RunBuilder;
use testkit::test_repo::run;

use crate::RUNNER;
use crate::agents::marked::{marked_repo, sent_marks};
use crate::agents::real::{command, model_of, started};

const SCRIPT: &str = r#"
[[part]]
[[part.step]]
do.shell = '''echo hello > hello.txt; printf '{"status": "done", "summary": "wrote it"}' > "$RUNNER_OUTPUT"'''
[[part.step]]
do.final = "I wrote it."
"#;

/// Whether the program reports its usage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PresetUsage {
    Tokens,
    Nothing,
}

/// A run of a preset whose provider is this model.
fn setup(preset: &str, model: &str, url: &str) -> RunBuilder {
    let keys = format!(
        "kind = \"command\"\npreset = \"{preset}\"\nprogram = \"{}\"\nmodel = \"{model}\"\nbase_url = \"{url}\"\n\
         key_env = \"OWN_KEY\"\nsandbox = \"require\"",
        agents::program(preset).display()
    );
    RunBuilder::new(RUNNER).executor(&keys).keys("iteration_timeout_secs = 110")
}

/// Runs a session that works inside the sandbox, whose output is parsed, and that leaves no processes behind.
fn works(preset: &str, model: &str, path: &str, reported: PresetUsage) {
    let server = model_of(SCRIPT);
    let setup = setup(preset, model, &format!("{}{path}", server.url()));
    let sandbox = started(&setup.executor_keys("").guard("grep -qx hello hello.txt"));
    let step = run(&mut command(&sandbox, &["step"]));
    let log = format!(
        "{}\n{}",
        sandbox.iteration_file(1, "executor.log"),
        sandbox.iteration_file(1, "executor.err.log")
    );
    assert_eq!(sandbox.outcomes(), ["passed"], "{}{}{log}", step.stdout, step.stderr);
    let meta = sandbox.meta(1);
    assert_eq!(meta["sandbox"], "bubblewrap");
    assert_eq!(
        meta["usage"]["input_tokens"].as_u64() >= Some(1000),
        reported == PresetUsage::Tokens,
        "{}",
        meta["usage"]
    );
    let events = sandbox.iteration_file(1, "events.jsonl");
    for kind in ["session", "command", "message", "finished"] {
        assert!(events.contains(&format!("\"kind\":\"{kind}\"")), "{kind}: {events}");
    }
    assert!(!events.contains("\"kind\":\"unknown\""), "{events}");
    assert_eq!(processes_of(sandbox.outside()), [""; 0]);
    assert_sound(&sandbox);
}

#[test]
fn opencode_works() {
    works("opencode", "scripted", "/v1", PresetUsage::Tokens);
}

#[test]
fn gemini_works() {
    works("gemini", "gemini-2.5-flash", "", PresetUsage::Tokens);
}

#[test]
fn qwen_works() {
    works("qwen", "scripted", "/v1", PresetUsage::Tokens);
}

#[test]
fn copilot_works() {
    works("copilot", "scripted", "/v1", PresetUsage::Nothing);
}

#[test]
fn pi_works() {
    works("pi", "scripted", "/v1", PresetUsage::Tokens);
}

#[test]
fn kilo_works() {
    works("kilo", "scripted", "/v1", PresetUsage::Tokens);
}

#[test]
fn grok_works() {
    works("grok", "scripted", "/v1", PresetUsage::Tokens);
}

/// The recorder is outside of the sandbox that the program is in.
#[test]
fn qwen_can_be_recorded() {
    let server = model_of(SCRIPT);
    let setup = setup("qwen", "scripted", &format!("{}/v1", server.url())).executor_keys("record = true");
    let sandbox = started(&setup.guard("grep -qx hello hello.txt"));
    let step = run(&mut command(&sandbox, &["step"]));
    assert_eq!(sandbox.outcomes(), ["passed"], "{}{}", step.stdout, step.stderr);
    let meta = sandbox.meta(1);
    assert_eq!(meta["sandbox"], "bubblewrap");
    assert!(meta["requests"]["count"].as_u64() >= Some(2), "{}", meta["requests"]);
    let log = sandbox.iteration_file(1, "requests.jsonl");
    assert!(log.contains("/v1/chat/completions") && !log.contains("sk-dummy"), "{log}");
}

/// Shows the environment of its commands to the model, after the time that an MCP server needs to start.
const LOOKS_AROUND: &str = r#"
[[part]]
[[part.step]]
do.shell = '''env; sleep 3; printf '{"status": "retry", "summary": "looked around"}' > "$RUNNER_OUTPUT"'''
[[part.step]]
do.final = "I looked around."
"#;

/// A folder of programs, at the end of the user's PATH. `/etc/profile` does not know it.
const OWN_PROGRAMS: &str = "/opt/own-programs";

/// Runs a session with marked files in home and repository. No mark may enter it, and its commands have the user's PATH.
fn takes_in_nothing(preset: &str, model: &str, path: &str) {
    let server = model_of(LOOKS_AROUND);
    let setup = setup(preset, model, &format!("{}{path}", server.url()));
    let repo = setup.executor_keys("instructions = []").guard("true").start_in(marked_repo());
    let path = format!("{}:{OWN_PROGRAMS}", std::env::var("PATH").unwrap());
    let step = run(command(&repo, &["step"]).env("PATH", path));
    let log = repo.iteration_file(1, "executor.log");
    assert_eq!(repo.outcomes(), ["retry"], "{}{log}", step.stderr);
    assert!(log.contains("RUNNER_PROMPT"), "{preset}: the environment was not looked at: {log}");
    assert!(log.contains(OWN_PROGRAMS), "{preset}: its commands have another PATH: {log}");
    assert_eq!(sent_marks(&server), BTreeSet::new(), "{preset}");
    assert_sound(&repo);
}

#[test]
fn opencode_takes_in_nothing_but_the_prompt() {
    takes_in_nothing("opencode", "scripted", "/v1");
}

#[test]
fn gemini_takes_in_nothing_but_the_prompt() {
    takes_in_nothing("gemini", "gemini-2.5-flash", "");
}

#[test]
fn qwen_takes_in_nothing_but_the_prompt() {
    takes_in_nothing("qwen", "scripted", "/v1");
}

#[test]
fn copilot_takes_in_nothing_but_the_prompt() {
    takes_in_nothing("copilot", "scripted", "/v1");
}

#[test]
fn pi_takes_in_nothing_but_the_prompt() {
    takes_in_nothing("pi", "scripted", "/v1");
}

#[test]
fn kilo_takes_in_nothing_but_the_prompt() {
    takes_in_nothing("kilo", "scripted", "/v1");
}

#[test]
fn grok_takes_in_nothing_but_the_prompt() {
    takes_in_nothing("grok", "scripted", "/v1");
}

/// Runs a session of a real agent over the Agent Client Protocol.
///
/// `state` are the folders of its state, below the home.
fn speaks_acp(preset: &str, arguments: &[&str], variables: &[(&str, String)], state: &[&str]) {
    let words: Vec<String> = std::iter::once(agents::program(preset).display().to_string())
        .chain(arguments.iter().map(|word| (*word).to_owned()))
        .collect();
    let writable: Vec<String> = state.iter().map(|folder| format!("~/{folder}")).collect();
    let keys = format!("kind = \"acp\"\ncommand = {words:?}\nwritable = {writable:?}\nsandbox = \"require\"");
    let setup = RunBuilder::new(RUNNER).executor(&keys).executor_keys("").guard("grep -qx hello hello.txt");
    let sandbox = started(&setup.keys("iteration_timeout_secs = 110"));
    let settings = r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}}"#;
    for folder in state {
        std::fs::create_dir_all(sandbox.outside().join("home").join(folder)).unwrap();
    }
    let home = sandbox.outside().join("home/.gemini");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("settings.json"), settings).unwrap();
    let mut step = command(&sandbox, &["step"]);
    step.envs(variables.iter().map(|(name, value)| (*name, value)));
    let step = run(&mut step);
    let log = sandbox.iteration_file(1, "executor.log");
    assert_eq!(sandbox.outcomes(), ["passed"], "{}{}{log}", step.stdout, step.stderr);
    let events = sandbox.iteration_file(1, "events.jsonl");
    for kind in ["session", "command", "message", "finished"] {
        assert!(events.contains(&format!("\"kind\":\"{kind}\"")), "{kind}: {events}");
    }
    assert_eq!(processes_of(sandbox.outside()), [""; 0]);
    assert_sound(&sandbox);
}

#[test]
fn gemini_speaks_acp() {
    let server = model_of(SCRIPT);
    let variables = [
        ("GEMINI_API_KEY", "sk-dummy".to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", server.url()),
        ("GEMINI_MODEL", "gemini-2.5-flash".to_owned()),
    ];
    speaks_acp("gemini", &["--acp"], &variables, &[".gemini"]);
}

#[test]
fn opencode_speaks_acp() {
    let server = model_of(SCRIPT);
    let provider = serde_json::json!({
        "npm": "@ai-sdk/openai-compatible",
        "options": { "baseURL": format!("{}/v1", server.url()), "apiKey": "sk-dummy" },
        "models": { "scripted": { "tool_call": true } },
    });
    let settings = serde_json::json!({
        "autoupdate": false, "model": "runner/scripted", "permission": { "bash": "ask" }, "provider": { "runner": provider },
    });
    let variables = [
        ("OPENCODE_CONFIG_CONTENT", settings.to_string()),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
    ];
    let state = [".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"];
    speaks_acp("opencode", &["acp"], &variables, &state);
}
