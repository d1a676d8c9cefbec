//! Agents of the kinds "codex" and "claude", emulated by scripts that print what the real programs print.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

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
    assert!(line.starts_with(beginning) && line.ends_with(",write_file -m m\n"), "{line}");
}
