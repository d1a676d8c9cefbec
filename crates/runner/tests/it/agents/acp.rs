//! Agents that speak the Agent Client Protocol: a script that behaves in every way, well and badly.

use serde_json::Value;
use testkit::oracle::{assert_sound, processes_of};
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::agents::real::started;

const AGENT: &str = include_str!("acp-agent.sh");

fn setup(mode: &str) -> RunBuilder {
    let keys = format!("kind = \"acp\"\ncommand = [\"sh\", \"agent.sh\", \"{mode}\"]\nsandbox = \"require\"");
    RunBuilder::new(RUNNER)
        .executor(&keys)
        .executor_keys("")
        .file("agent.sh", AGENT)
        .guard("grep -qx hello hello.txt")
}

/// Runs one session of the agent.
fn session(setup: &RunBuilder) -> TestRepo {
    let sandbox = started(setup);
    sandbox.runner(&["step"]);
    assert_eq!(processes_of(sandbox.outside()), [""; 0]);
    assert_sound(&sandbox);
    sandbox
}

fn outcome(mode: &str) -> (String, TestRepo) {
    let sandbox = session(&setup(mode));
    (sandbox.outcomes().concat(), sandbox)
}

/// The events of the agent of this kind.
fn events(sandbox: &TestRepo, kind: &str) -> Vec<Value> {
    let events = sandbox.iteration_file(1, "events.jsonl");
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == "agent" && event["kind"] == kind).collect()
}

#[test]
fn a_session_has_events_usage_and_an_answer() {
    for mode in ["file", "message"] {
        let (outcome, sandbox) = outcome(mode);
        assert_eq!(outcome, "passed", "{mode}: {}", sandbox.iteration_file(1, "executor.log"));
        let meta = sandbox.meta(1);
        assert_eq!(meta["sandbox"], "bubblewrap");
        assert_eq!(meta["usage"]["input_tokens"], 1000, "{meta}");
        assert_eq!(meta["usage"]["cost_microdollars"], 250_000, "{meta}");
        let message = &events(&sandbox, "message")[0];
        assert_eq!(message["text"], "I will write it.");
        let command = events(&sandbox, "command");
        assert_eq!(command.last().unwrap()["state"], "done", "{command:?}");
        assert_eq!(command[0]["command"], "echo hello > hello.txt");
        for kind in ["session", "plan", "finished"] {
            assert_eq!(events(&sandbox, kind).len(), 1, "{mode} {kind}");
        }
        assert!(events(&sandbox, "unknown").is_empty());
    }
}

#[test]
fn permissions_are_granted_inside_the_repository_and_refused_outside() {
    let (_, sandbox) = outcome("file");
    assert!(sandbox.read("permission.txt").contains("\"yes\""), "{}", sandbox.read("permission.txt"));
    let (outcome, sandbox) = outcome("outside");
    assert_eq!(outcome, "retry");
    assert!(sandbox.read("permission.txt").contains("\"no\""), "{}", sandbox.read("permission.txt"));
    let warning = &events(&sandbox, "warning")[0]["text"];
    assert!(warning.as_str().unwrap().contains("refused permission for `Edit it`"), "{warning}");
}

#[test]
fn a_key_in_two_pieces_of_a_message_is_nowhere() {
    let key = "1wJalrXUtnFEMIK7MDENGbPxRfiCYzzzzz";
    let sandbox = started(&setup("leaks"));
    run(sandbox.runner_command(&["step"]).env("DEPLOY_SECRET", key)).ok();
    assert_eq!(sandbox.outcomes(), ["passed"]);
    let log = sandbox.iteration_file(1, "executor.log");
    let message = &events(&sandbox, "message")[0];
    assert_eq!(message["text"], "The key is [redacted] hereI will write it.", "{log}");
    assert!(sandbox.git(&["log", "-1", "--format=%B"]).contains("used [redacted]"));
    // The pieces are in the script of the agent; its output has neither.
    let (one, two) = key.split_at(key.len() - 10);
    for text in [&log, &sandbox.iteration_file(1, "events.jsonl")] {
        assert!(!text.contains(one) && !text.contains(two), "{text}");
    }
    assert_sound(&sandbox);
}

#[test]
fn no_files_are_offered() {
    let (outcome, sandbox) = outcome("reads");
    assert_eq!(outcome, "retry");
    assert!(sandbox.read("reply.txt").contains("\"error\""), "{}", sandbox.read("reply.txt"));
}

#[test]
fn agents_that_break_the_protocol_have_failed() {
    for (mode, expected, why) in [
        ("garbage", "agent_crashed", "does not speak the protocol"),
        ("version", "agent_crashed", "protocol version 7"),
        ("dies", "agent_crashed", "the agent ended"),
        ("refuses", "agent_crashed", "the model is gone"),
        ("login", "not_logged_in", "Authentication required"),
    ] {
        let (outcome, sandbox) = outcome(mode);
        let log = sandbox.iteration_file(1, "executor.log");
        assert_eq!(outcome, expected, "{mode}: {log}");
        assert!(log.contains(why), "{mode}: {log}");
    }
}

#[test]
fn an_agent_that_never_answers_is_stopped() {
    let sandbox = session(&setup("silent").keys("idle_timeout_secs = 1"));
    assert_eq!(sandbox.outcomes(), ["idle_timeout"]);
}

#[test]
fn the_time_limit_cancels_the_turn() {
    let sandbox = session(&setup("cancel").keys("iteration_timeout_secs = 5"));
    assert_eq!(sandbox.outcomes(), ["timed_out"]);
    assert_eq!(sandbox.read("cancelled.txt"), "yes\n", "{}", sandbox.iteration_file(1, "executor.log"));
}
