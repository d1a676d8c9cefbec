//! `runner status`, `runner watch`, the page and the end of `runner loop` agree about a run, in every state.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::pty::Pty;
use crate::server::{Server, runner};

fn watch(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner-ui"));
    command.arg("--project-dir").arg(root).arg("watch");
    command.env("HOME", root).env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
    command
}

const KEYS: [&str; 5] = ["state", "phase", "stop", "headline", "next"];

fn status(sandbox: &TestRepo) -> Value {
    serde_json::from_str(&sandbox.runner(&["status", "--json"]).ok().stdout).unwrap()
}

/// Asserts that status, page and watch agree on this state, and returns the status.
fn assert_agreed(sandbox: &TestRepo, state: &str) -> Value {
    wait_for(state, || status(sandbox)["state"] == state);
    let status = status(sandbox);
    let page = Server::on(sandbox.root()).get("/api/snapshot").ok();
    for key in KEYS {
        assert_eq!(page[key], status[key], "{state}: `{key}` on the page");
    }
    let headline = status["headline"].as_str().unwrap();
    let mut screen = Pty::start(&watch(sandbox.root()), 160, 40);
    screen.wait_for(&format!("{}  demo  {headline}", state.to_uppercase()));
    screen.press("q");
    assert_eq!(screen.exit_code(), 0);
    status
}

/// The same after a loop, whose last event must show it too.
fn assert_ended(sandbox: &TestRepo, output: &RunOutput, state: &str, stop: &str) {
    let end: Value = serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap();
    let status = assert_agreed(sandbox, state);
    for key in KEYS {
        assert_eq!(end[key], status[key], "{stop}: `{key}` at the end of the loop");
    }
    assert_eq!(status["stop"]["reason"], stop);
    assert_eq!(end["exit"], output.code.unwrap());
}

fn ended(builder: &RunBuilder, args: &[&str], state: &str, stop: &str) -> TestRepo {
    let sandbox = builder.start();
    let output = sandbox.runner(&[&["loop", "--json"], args].concat());
    assert_ended(&sandbox, &output, state, stop);
    sandbox
}

fn builder(agent: &str) -> RunBuilder {
    RunBuilder::new(&runner()).agent(agent).keys("max_attempts_default = 1")
}

const WORKS: &str = "echo $RUNNER_ITER >> work; answer done";
const SPENDS: &str = r#"printf '{"usage": {"input_tokens": 9, "cost_microdollars": 9000000}}' > "$RUNNER_REPORT"
echo $RUNNER_ITER >> work; case $RUNNER_ITER in 0001) split ;; *) answer done ;; esac"#;
const SPLITS: &str = "case $RUNNER_ITER in 0001) split ;; *) echo $RUNNER_ITER >> work; answer done ;; esac";

fn reports(fault: &str) -> String {
    format!("printf '{{\"fault\": {{\"fault\": \"{fault}\", \"why\": \"w\"}}}}' > \"$RUNNER_REPORT\"; exit 1")
}

#[test]
fn every_stop_is_the_same_everywhere() {
    ended(&builder(WORKS), &[], "complete", "complete");
    ended(&builder("answer retry"), &[], "stopped", "stuck");
    ended(&builder(SPLITS), &["--max-iterations", "1"], "stopped", "loop_iterations");
    ended(&builder(SPENDS), &["--max-usd", "5"], "stopped", "loop_budget");
    ended(&builder(SPENDS).config_tables("[budget]\nrun_usd = 5"), &[], "stopped", "budget");
    ended(&builder(SPLITS).keys("max_iterations = 1"), &[], "stopped", "max_iterations");
    ended(&builder("sleep 60").keys("iteration_timeout_secs = 1"), &[], "stopped", "time_limit");
    ended(&builder(&reports("not_logged_in")), &[], "stopped", "needs_user");
    ended(&builder("exit 1"), &[], "stopped", "failures");
}

/// A loop in the middle of a session.
fn working(sandbox: &TestRepo) -> std::process::Child {
    let child = sandbox.runner_command(&["loop", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    wait_for("a session", || sandbox.outside().join("begun").exists());
    child
}

const WAITS: &str =
    "touch $AROUND/begun; while ! [ -e $AROUND/go ]; do sleep 0.01; done; echo 1 > work; answer done";

fn end(child: std::process::Child) -> RunOutput {
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    RunOutput { code: output.status.code(), stdout, stderr: String::new() }
}

#[test]
fn live_states_are_the_same_everywhere() {
    let sandbox = builder(WAITS).start();
    assert_agreed(&sandbox, "stopped");
    let child = working(&sandbox);
    assert_agreed(&sandbox, "running");
    run(sandbox.command("kill").args(["-INT".to_owned(), child.id().to_string()])).ok();
    assert_ended(&sandbox, &end(child), "stopped", "interrupted");

    let sandbox = builder(WAITS).start();
    sandbox.runner(&["node", "split", "root", "--into", "A", "--into", "B"]).ok();
    let child = working(&sandbox);
    sandbox.runner(&["stop"]).ok();
    std::fs::write(sandbox.outside().join("go"), "").unwrap();
    assert_ended(&sandbox, &end(child), "stopped", "user_stop");

    sandbox.runner(&["pause"]).ok();
    let mut child = sandbox.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
    assert_agreed(&sandbox, "paused");
    sandbox.runner(&["resume"]).ok();
    child.wait().unwrap();
    assert_agreed(&sandbox, "complete");
}

#[test]
fn waits_and_crashes_are_the_same_everywhere() {
    let limited = r#"printf '{"fault": {"fault": "rate_limited", "retry_after_secs": 3600}}' > "$RUNNER_REPORT"; exit 1"#;
    let sandbox = builder(limited).start();
    let mut child = sandbox.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
    let waiting = assert_agreed(&sandbox, "waiting");
    assert!(waiting["until_ms"].as_u64() > Some(0));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_agreed(&sandbox, "waiting");

    let sandbox = builder(WAITS).start();
    let mut child = working(&sandbox);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_agreed(&sandbox, "crashed");
}
