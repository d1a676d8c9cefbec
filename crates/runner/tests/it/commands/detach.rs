//! `runner loop --detach`: the loop goes on without its terminal.

use testkit::oracle::assert_sound;
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{RunOutput, TestRepo};

use crate::RUNNER;
use crate::fixtures::on_terminal;

const PATIENT: &str = r#"
touch "$AROUND/begun-$RUNNER_ITER"
while [ ! -e "$AROUND/go" ]; do sleep 0.01; done
echo work > work
answer done
"#;

fn state(sandbox: &TestRepo) -> String {
    sandbox.runner(&["status"]).ok().value("state").unwrap_or_default().to_owned()
}

fn go(sandbox: &TestRepo) {
    std::fs::write(sandbox.outside().join("go"), "").unwrap();
}

fn log(sandbox: &TestRepo) -> String {
    sandbox.read(".git/runner/loop.log")
}

#[test]
fn detached_loop_survives_its_terminal() {
    let sandbox = RunBuilder::new(RUNNER).agent(PATIENT).start();
    // The terminal closes with the command.
    let output = on_terminal(&sandbox, 80, "loop --detach");
    assert_eq!(output.code, Some(0), "{}", output.stdout);
    for text in ["the loop runs in the background (process ", "runner watch", "runner stop", "loop.log"] {
        assert!(output.stdout.contains(text), "{text}: {}", output.stdout);
    }
    wait_for("a session", || sandbox.outside().join("begun-0001").exists());
    assert_eq!(state(&sandbox), "running");
    let second = sandbox.runner(&["loop", "--detach"]).refused(1);
    assert!(second.contains("another runner is running") && second.contains("runner stop"), "{second}");
    go(&sandbox);
    wait_for("the end of the loop", || state(&sandbox) == "complete");
    wait_for("the end of the log", || log(&sandbox).contains("event=end stop=complete"));
    assert!(log(&sandbox).contains("event=planned iter=0001"), "{}", log(&sandbox));
    assert_sound(&sandbox);
}

#[test]
fn detached_loop_can_be_stopped_and_leaves_its_process_group() {
    let sandbox = RunBuilder::new(RUNNER).agent(PATIENT).start();
    sandbox.runner(&["node", "split", "root", "--into", "One", "--into", "Two"]).ok();
    let started = sandbox.runner(&["loop", "--detach"]).ok().stdout;
    let pid = started.split("pid=").nth(1).unwrap().split(' ').next().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    assert_eq!((fields[3], fields[4]), (pid, "0"), "a session of its own, without a terminal: {stat}");
    sandbox.runner(&["stop"]).ok();
    go(&sandbox);
    wait_for("the end of the loop", || log(&sandbox).contains("event=end stop=user_stop"));
    assert_eq!(sandbox.outcomes(), ["passed"]);
}

#[test]
fn what_is_known_at_the_start_is_reported_where_it_was_typed() {
    let sandbox = RunBuilder::new(RUNNER).missing_agent().start();
    let before = sandbox.branches();
    let refused = sandbox.runner(&["loop", "--detach"]).refused(2);
    assert!(refused.contains("`no-such-agent` is not on PATH"), "{refused}");
    assert_eq!(sandbox.branches(), before);

    let red = RunBuilder::new(RUNNER).guard("exit 1").guard_keys("baseline = true").start();
    let refused = red.runner(&["loop", "--detach"]).refused(2);
    assert!(refused.contains("--allow-red"), "{refused}");
}

#[test]
fn loop_with_nothing_to_do_ends_where_it_was_typed() {
    let sandbox = RunBuilder::new(RUNNER).start();
    sandbox.runner(&["loop"]).ok();
    let done: RunOutput = sandbox.runner(&["loop", "--detach"]).ok();
    assert_eq!(done.value("state"), Some("complete"));
    let stuck = RunBuilder::new(RUNNER).agent("answer retry").keys("max_attempts_default = 1").start();
    assert_eq!(stuck.runner(&["loop"]).code, Some(3));
    let again = stuck.runner(&["loop", "--detach"]);
    assert_eq!((again.code, again.value("stop")), (Some(3), Some("stuck")));
}
