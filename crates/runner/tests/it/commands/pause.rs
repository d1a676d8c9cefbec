//! `runner pause` and `runner resume`.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use testkit::oracle::assert_sound;
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

/// A background loop whose events the test reads one by one.
struct Loop {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Loop {
    fn start(sandbox: &TestRepo) -> Self {
        let mut child = sandbox.runner_command(&["loop", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Reads events until one of this name.
    fn until(&mut self, name: &str) {
        let mut line = String::new();
        while !line.contains(&format!("\"event\":\"{name}\"")) {
            line.clear();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "the loop ended before an event `{name}`");
        }
    }

    fn end(mut self) -> Option<i32> {
        let mut rest = String::new();
        while self.lines.read_line(&mut rest).unwrap() > 0 {}
        self.child.wait().unwrap().code()
    }
}

/// Each session waits for a file named after its iteration.
const PATIENT: &str = r#"
touch "$AROUND/begun-$RUNNER_ITER"
while [ ! -e "$AROUND/go-$RUNNER_ITER" ]; do sleep 0.01; done
echo "$RUNNER_ITER" > work
answer done
"#;

fn patient() -> TestRepo {
    let sandbox = RunBuilder::new(RUNNER).agent(PATIENT).start();
    sandbox.runner(&["node", "split", "root", "--into", "One", "--into", "Two"]).ok();
    sandbox
}

fn go(sandbox: &TestRepo, iter: u32) {
    std::fs::write(sandbox.outside().join(format!("go-{iter:04}")), "").unwrap();
}

fn begun(sandbox: &TestRepo, iter: u32) {
    let file = sandbox.outside().join(format!("begun-{iter:04}"));
    wait_for("a session", || file.exists());
}

#[test]
fn paused_loop_keeps_running_while_the_plan_is_edited() {
    let sandbox = patient();
    let mut running = Loop::start(&sandbox);
    begun(&sandbox, 1);
    let output = sandbox.runner(&["pause"]).ok().stdout;
    assert!(output.contains("paused=true was_paused=false running_pid="), "{output}");
    sandbox.runner(&["node", "remove", "two"]).refused(1);
    go(&sandbox, 1);
    running.until("paused");
    let output = sandbox.runner(&["pause", "--wait"]).ok().stdout;
    assert_eq!(output, "paused=true was_paused=true\n");
    assert_eq!(sandbox.outcomes(), ["passed"], "the iteration that was being made is whole");
    let status = sandbox.runner(&["status"]).ok();
    assert_eq!((status.value("state"), status.value("next")), (Some("paused"), Some("\"runner resume\"")));

    sandbox.runner(&["node", "split", "two", "--into", "Three", "--into", "Four"]).ok();
    sandbox.runner(&["answer", "1", "x"]).refused(2);
    assert!(running.child.try_wait().unwrap().is_none(), "the loop lives");
    assert_eq!(sandbox.runner(&["resume"]).ok().stdout, "paused=false was_paused=true\n");
    running.until("resumed");
    begun(&sandbox, 2);
    go(&sandbox, 2);
    go(&sandbox, 3);
    assert_eq!(running.end(), Some(0));
    let subjects = sandbox.subjects("HEAD");
    assert!(subjects.iter().any(|subject| subject.contains("iter 0002 node three ")), "{subjects:?}");
    assert_sound(&sandbox);
}

#[test]
fn loop_started_while_paused_waits() {
    let sandbox = RunBuilder::new(RUNNER).start();
    let output = sandbox.runner(&["pause", "--wait"]).ok().stdout;
    assert_eq!(output, "paused=true was_paused=false\n");
    let mut waiting = Loop::start(&sandbox);
    waiting.until("paused");
    assert_eq!(sandbox.outcomes(), [""; 0]);
    sandbox.runner(&["resume"]).ok();
    assert_eq!(waiting.end(), Some(0));
    assert_eq!(sandbox.runner(&["resume"]).ok().stdout, "paused=false was_paused=false\n");
    assert_sound(&sandbox);
}

#[test]
fn paused_loop_can_be_interrupted() {
    let sandbox = RunBuilder::new(RUNNER).start();
    sandbox.runner(&["pause"]).ok();
    let mut waiting = Loop::start(&sandbox);
    waiting.until("paused");
    run(sandbox.command("kill").args(["-INT".to_owned(), waiting.child.id().to_string()])).ok();
    assert_eq!(waiting.end(), Some(130));
    sandbox.runner(&["step"]).ok();
    assert_eq!(sandbox.outcomes(), ["passed"], "a single step is made all the same");
    assert_sound(&sandbox);
}

#[test]
fn crash_of_another_command_during_a_pause_is_recovered_before_the_loop_continues() {
    let sandbox = patient();
    sandbox.runner(&["pause"]).ok();
    let mut waiting = Loop::start(&sandbox);
    waiting.until("paused");
    run(sandbox.runner_command(&["node", "remove", "two"]).env("RUNNER_TEST_CRASH_AT", "publish.branch"));
    go(&sandbox, 1);
    sandbox.runner(&["resume"]).ok();
    assert_eq!(waiting.end(), Some(0));
    assert_eq!(sandbox.outcomes(), ["passed"]);
    assert_sound(&sandbox);
}

#[test]
fn wait_can_be_paused_and_an_edit_does_not_extend_it() {
    let agent = r#"printf '{"fault": {"fault": "rate_limited", "retry_after_secs": 3600}}' > "$RUNNER_REPORT"; exit 1"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let mut waiting = Loop::start(&sandbox);
    waiting.until("waiting");
    sandbox.runner(&["pause", "--wait"]).ok();
    waiting.until("paused");
    let ends = |sandbox: &TestRepo| {
        let output: serde_json::Value =
            serde_json::from_str(&sandbox.runner(&["status", "--json"]).ok().stdout).unwrap();
        output["wait"]["ends_unix_ms"].as_u64().unwrap()
    };
    let before = ends(&sandbox);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    sandbox.runner(&["note", "patience"]).ok();
    assert_eq!(ends(&sandbox), before, "the wait counts from the failure");
    run(sandbox.command("kill").args(["-TERM".to_owned(), waiting.child.id().to_string()])).ok();
    assert_eq!(waiting.end(), Some(143));
    assert_sound(&sandbox);
}
