//! `runner note` and `runner answer` while a runner works: queued, and recorded before the next session.

use std::process::{Child, Stdio};

use serde_json::Value;
use testkit::oracle::assert_sound;
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::fixtures::json;

/// The failpoint between the commit of a queued edit and its removal from the queue.
pub(crate) const POINT: &str = "queue.committed";

const PATIENT: &str = r#"
touch "$AROUND/begun-$RUNNER_ITER"
cp "$RUNNER_PROMPT" "$AROUND/prompt-$RUNNER_ITER"
[ "$RUNNER_ITER" = 0001 ] && echo "- Which port?" >> .runner/state/questions.md
while [ ! -e "$AROUND/go-$RUNNER_ITER" ]; do sleep 0.01; done
echo "$RUNNER_ITER" > work
answer done
"#;

/// A loop in the middle of its first session.
fn working() -> (TestRepo, Child) {
    let sandbox = RunBuilder::new(RUNNER).agent(PATIENT).start();
    sandbox.runner(&["node", "split", "root", "--into", "One", "--into", "Two"]).ok();
    let child = sandbox.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
    wait_for("a session", || sandbox.outside().join("begun-0001").exists());
    wait_for("a question", || sandbox.read(".runner/state/questions.md").contains("Which port?"));
    (sandbox, child)
}

fn go(sandbox: &TestRepo, iter: u32) {
    std::fs::write(sandbox.outside().join(format!("go-{iter:04}")), "").unwrap();
}

fn notes(sandbox: &TestRepo) -> Vec<String> {
    let notes: Value = serde_json::from_str(&sandbox.read(".runner/state/notes.json")).unwrap();
    let texts = notes.pointer("/notes").and_then(Value::as_array).unwrap().iter();
    texts.map(|note| note.get("text").and_then(Value::as_str).unwrap().to_owned()).collect()
}

#[test]
fn notes_during_a_session_reach_the_next_one() {
    let (sandbox, mut child) = working();
    let output = sandbox.runner(&["note", "use tabs"]).ok();
    assert_eq!(output.value("file"), Some(".runner/state/notes.json queued=true"));
    sandbox.runner(&["answer", "1", "port 80"]).ok();
    let refused = sandbox.runner(&["answer", "7", "x"]).refused(2);
    assert!(refused.contains('7'), "{refused}");
    assert_eq!(json(&sandbox.runner(&["status", "--json"]).ok())["queued_edits"], 2);
    let questions = sandbox.runner(&["questions"]).ok().stdout;
    assert!(questions.contains("queued_answer=\"port 80\""), "{questions}");
    go(&sandbox, 1);
    wait_for("the next session", || sandbox.outside().join("prompt-0002").exists());
    let prompt = std::fs::read_to_string(sandbox.outside().join("prompt-0002")).unwrap();
    assert!(prompt.contains("use tabs") && prompt.contains("port 80"), "{prompt}");
    // The last session: nothing comes after it, and the note is recorded all the same.
    sandbox.runner(&["note", "for later"]).ok();
    go(&sandbox, 2);
    assert!(child.wait().unwrap().success());
    assert_eq!(notes(&sandbox), ["use tabs", "port 80", "for later"]);
    assert_eq!(json(&sandbox.runner(&["status", "--json"]).ok())["queued_edits"], 0);
    assert_sound(&sandbox);
}

#[test]
fn crash_between_commit_and_removal_records_a_note_once() {
    let (sandbox, mut child) = working();
    sandbox.runner(&["note", "once"]).ok();
    sandbox.runner(&["note", "twice"]).ok();
    child.kill().unwrap();
    child.wait().unwrap();
    go(&sandbox, 1);
    let crashed = run(sandbox.runner_command(&["step"]).env("RUNNER_TEST_CRASH_AT", POINT));
    assert_ne!(crashed.code, Some(0), "{}", crashed.stdout);
    assert_eq!(notes(&sandbox), ["once"]);
    sandbox.runner(&["note", "last"]).ok();
    assert_eq!(notes(&sandbox), ["once", "twice", "last"], "in the order in which they were written");
    assert_sound(&sandbox);
}

#[test]
fn wait_records_a_note_at_once_and_goes_on() {
    let agent = r#"printf '{"fault": {"fault": "rate_limited", "retry_after_secs": 3600}}' > "$RUNNER_REPORT"; exit 1"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let mut child = sandbox.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
    wait_for("the wait", || sandbox.runner(&["status"]).ok().value("state") == Some("waiting"));
    sandbox.runner(&["note", "patience"]).ok();
    wait_for("the note", || notes(&sandbox) == ["patience"]);
    assert_eq!(sandbox.runner(&["status"]).ok().value("state"), Some("waiting"));
    // Changes of the user's are in the way of a commit, but not of the wait.
    sandbox.write("mine", "x");
    sandbox.runner(&["note", "again"]).ok();
    assert!(child.try_wait().unwrap().is_none(), "the loop lives");
    run(sandbox.command("rm").arg(sandbox.path("mine"))).ok();
    run(sandbox.command("kill").args(["-TERM".to_owned(), child.id().to_string()])).ok();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(notes(&sandbox), ["patience", "again"]);
    assert_sound(&sandbox);
}

#[test]
fn session_cannot_leave_a_note_in_the_users_name() {
    let agent = format!(
        "{RUNNER} note 'from the agent' > \"$AROUND/said\" 2>&1; echo $? > \"$AROUND/code\"; answer done"
    );
    let sandbox = RunBuilder::new(RUNNER).agent(&agent).start();
    sandbox.runner(&["loop"]).ok();
    assert_eq!(std::fs::read_to_string(sandbox.outside().join("code")).unwrap(), "1\n");
    assert_eq!(notes(&sandbox), [""; 0]);
}
