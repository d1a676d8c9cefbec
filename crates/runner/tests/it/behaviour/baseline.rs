//! The baseline: the guard's run before the first session.

use std::process::Stdio;

use runner_core::verify::Rule;
use testkit::oracle::assert_sound;
use testkit::processes::wait_for;
use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::security::forged_runs::Forgery::{Append, Drop, File, Mended, Message, Trailer, Twice};
use crate::security::forged_runs::{Forgery, assert_found};

const STATE: &str = ".runner/state/run_state.json";

/// The failpoints of a baseline.
pub(crate) const POINTS: [&str; 6] = [
    "recorded_guard.run",
    "recorded_guard.commit",
    "publish.journal",
    "publish.branch",
    "publish.documents",
    "publish.index",
];

/// A run with a baseline.
fn with_baseline() -> RunBuilder {
    RunBuilder::new(RUNNER).guard_keys("baseline = true")
}

fn subject(sandbox: &TestRepo, back: u32) -> String {
    sandbox.git(&["log", "-1", "--format=%s", &format!("HEAD~{back}")])
}

#[test]
fn failing_baseline_is_reported_at_once_and_in_later_prompts() {
    let agent = r#"[ "$RUNNER_ITER" = 0002 ] && echo 1 > ok; answer done"#;
    let sandbox = with_baseline().agent(agent).guard("echo the door is open; test -e ok").start();
    let output = sandbox.runner(&["loop", "--allow-red"]).ok().stdout;
    let lines = output.lines().filter(|line| !line.starts_with("event=guard_in_place"));
    let first: Vec<&str> = lines.take(3).collect();
    assert_eq!(
        first[..2],
        ["event=baseline_started command=\"sh guard.sh\"", "event=baseline_ended guard=fail exit=1"]
    );
    assert!(first[2].starts_with("event=planned iter=0001"), "{output}");
    assert_eq!(subject(&sandbox, 2), "chore(loop): run demo baseline guard=fail");
    let status = sandbox.runner(&["status"]).ok().stdout;
    assert!(
        status.contains("baseline=\"the guard already failed before the first session (exit 1)\""),
        "{status}"
    );
    let first = sandbox.iteration_file(1, "prompt.md");
    assert!(first.contains("`sh guard.sh` failed before the first session of this run"), "{first}");
    assert!(first.contains("the door is open"), "{first}");
    let prompt = sandbox.iteration_file(2, "prompt.md");
    assert!(
        prompt.contains(
            "The guard already failed before the first session of this run, with exactly this output."
        ),
        "{prompt}"
    );
    assert_eq!(sandbox.read(&format!(".runner/iterations/{RUN}/baseline.log")), "the door is open\n");
    assert!(sandbox.runner(&["verify"]).ok().stdout.contains("kind=baseline detail=\"guard fail\""));
    assert_sound(&sandbox);
}

#[test]
fn prompt_shows_a_baseline_failure_that_differs_from_the_current_one() {
    let agent = r#"echo "$RUNNER_ITER" > step; [ "$RUNNER_ITER" = 0002 ] && echo 1 > ok; answer done"#;
    let sandbox = with_baseline().agent(agent).guard("echo at $(cat step 2>&1); test -e ok").start();
    sandbox.runner(&["loop", "--allow-red"]).ok();
    let prompt = sandbox.iteration_file(2, "prompt.md");
    let output = prompt.split_once("at 0001").unwrap().1;
    assert!(
        output.contains(
            "already failed before the first session of this run, with this output:\n\nat cat: step"
        ),
        "{output}"
    );
    assert_sound(&sandbox);
}

#[test]
fn passing_baseline_is_recorded_once_and_only_if_enabled() {
    let sandbox = with_baseline().guard("echo x >> $(dirname $HOME)/asked").start();
    sandbox.runner(&["step"]).ok();
    assert_eq!(subject(&sandbox, 1), "chore(loop): run demo baseline guard=pass");
    assert_eq!(std::fs::read_to_string(sandbox.outside().join("asked")).unwrap(), "x\nx\n");
    assert!(!sandbox.runner(&["status"]).ok().stdout.contains("baseline"));
    assert_sound(&sandbox);
    let without = RunBuilder::new(RUNNER).guard_keys("baseline = false").start();
    without.runner(&["step"]).ok();
    assert_eq!(without.subjects("HEAD").len(), 3);
}

/// The guard is known again after the user changed its file or its configuration, and nothing else.
#[test]
fn baseline_is_taken_again_after_the_guard_changed() {
    let agent = r#"echo "$RUNNER_ITER" > step; answer retry"#;
    let sandbox = with_baseline().agent(agent).keys("max_attempts_default = 9").start();
    sandbox.runner(&["step"]).ok();
    sandbox.write("unrelated", "text\n");
    sandbox.commit_all("docs: add a file");
    sandbox.runner(&["start"]).ok();
    sandbox.runner(&["step"]).ok();
    assert!(!subject(&sandbox, 1).contains("baseline"));

    sandbox.write("guard.sh", "echo stricter; exit 1\n");
    sandbox.commit_all("test: add a stricter guard");
    sandbox.runner(&["start"]).ok();
    let output = sandbox.runner(&["step"]).ok().stdout;
    assert!(output.contains("event=baseline_ended guard=fail exit=1"), "{output}");
    assert_eq!(subject(&sandbox, 1), "chore(loop): run demo baseline guard=fail");
    let prompt = sandbox.iteration_file(3, "prompt.md");
    let told = "The guard `sh guard.sh` failed before iteration 3, the first one with this guard. No task";
    assert!(prompt.contains(told) && prompt.contains("stricter"), "{prompt}");
    let status = sandbox.runner(&["status"]).ok().stdout;
    assert!(status.contains("the guard already failed before iteration 3 (exit 1)"), "{status}");
    sandbox.runner(&["verify"]).ok();
    assert_sound(&sandbox);
}

#[test]
fn baseline_guard_that_cannot_start_does_not_stop_the_run() {
    let sandbox = with_baseline().start();
    let config =
        sandbox.read(".runner/state/config.toml").replace("\"sh\", \"guard.sh\"", "\"no-such-guard\"");
    sandbox.write(".runner/state/config.toml", config);
    sandbox.runner(&["start"]).ok();
    let output = sandbox.runner(&["step"]).stdout;
    assert!(output.contains("event=baseline_ended guard=skipped exit=none"), "{output}");
    assert_eq!(sandbox.outcomes(), ["guard_not_started"]);
    assert_sound(&sandbox);
}

#[test]
fn files_that_the_baseline_guard_changes_are_restored_and_saved() {
    let sandbox = with_baseline()
        .agent("test ! -e made && answer done")
        .guard("echo x > made; echo more >> README.md")
        .start();
    sandbox.runner(&["loop"]).ok();
    assert!(!sandbox.path("made").exists());
    assert_eq!(sandbox.read("README.md"), "hello\n");
    assert!(sandbox.git(&["for-each-ref", "refs/runner"]).contains("/found/"));
    assert_sound(&sandbox);
}

#[test]
fn baseline_runs_again_after_the_runner_was_killed() {
    for point in POINTS {
        let sandbox = with_baseline().guard("echo x > made").start();
        let ran = run(sandbox.runner_command(&["loop"]).env("RUNNER_TEST_CRASH_AT", point));
        assert_eq!(ran.code, None, "{point} was not reached");
        sandbox.runner(&["loop"]).ok();
        assert_eq!(sandbox.outcomes(), ["passed"], "{point}");
        let baselines =
            sandbox.subjects("HEAD").iter().filter(|subject| subject.contains(" baseline ")).count();
        assert_eq!(baselines, 1, "{point}");
        assert_sound(&sandbox);
    }
}

#[test]
fn baseline_is_in_the_status_and_can_be_interrupted() {
    let sandbox = with_baseline().guard("echo x > made; touch $(dirname $HOME)/begun; sleep 60").start();
    let mut child = sandbox.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
    wait_for("the guard", || sandbox.outside().join("begun").exists());
    let status = sandbox.runner(&["status"]).ok();
    assert_eq!(status.value("state"), Some("running"));
    assert_eq!(status.value("phase"), Some("guard"));
    assert_eq!(status.value("headline"), Some("\"running the guard before the first session\""));
    run(sandbox.command("kill").args(["-INT".to_owned(), child.id().to_string()])).ok();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(sandbox.subjects("HEAD").len(), 2, "nothing is recorded");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert_sound(&sandbox);
}

/// Index 0 is the start, 1 the baseline, 2 and 3 are iterations.
const FORGERIES: &[(Forgery, Rule, u32)] = &[
    (Message(1, "guard=fail", "guard=pass"), Rule::Guard, 0),
    (Message(1, "guard=fail", "guard=red"), Rule::Message, 0),
    (Message(1, "Guard-Exit: 1", "Guard-Exit: 0"), Rule::GuardExit, 0),
    (Message(1, "Runner-State: ", "Runner-State: 0"), Rule::StateDigest, 0),
    (Message(1, "run demo", "run other"), Rule::Identity, 0),
    (Trailer(1, "Runner-Annotation: guard-file-restored guard.sh"), Rule::Annotations, 0),
    (Mended(1, STATE, "\"guard\": \"fail\"", "\"guard\": \"pass\""), Rule::Baseline, 0),
    (Mended(1, STATE, "\"exit\": \"1\"", "\"exit\": \"0\""), Rule::Baseline, 0),
    (Mended(1, STATE, "\"next_iter\": 1", "\"next_iter\": 2"), Rule::RunState, 0),
    (File(1, STATE, "looked", "overlooked"), Rule::StateDigest, 0),
    (Mended(2, STATE, "\"guard\": \"fail\"", "\"guard\": \"pass\""), Rule::RunState, 1),
    (Append(1, "README.md", "more\n"), Rule::EditScope, 0),
    (Append(1, ".runner/state/config.toml", "\n# other\n"), Rule::EditScope, 0),
    (Drop(1), Rule::RunState, 1),
    (Twice(1), Rule::Baseline, 0),
];

#[test]
fn verify_names_the_rule_that_a_forged_baseline_violates() {
    let agent = r#"[ "$RUNNER_ITER" = 0002 ] && echo 1 > ok; answer done"#;
    let sandbox = with_baseline().agent(agent).guard("echo looked; test -e ok").start();
    sandbox.runner(&["loop", "--allow-red"]).ok();
    assert_found(&sandbox, FORGERIES);
}
