//! The final check: the guard's run in a clean checkout, after all tasks passed.

use std::process::Stdio;

use runner_core::verify::Rule;
use testkit::oracle::assert_sound;
use testkit::processes::wait_for;
use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use super::baseline::POINTS;
use crate::RUNNER;
use crate::security::forged_runs::Forgery::{Append, File, Mended, Message, Trailer};
use crate::security::forged_runs::{Forgery, assert_found};

const STATE: &str = ".runner/state/run_state.json";
const IN_ROOM: &str = "final_check = true\nroom = \"require\"";

fn with_final_check() -> RunBuilder {
    RunBuilder::new(RUNNER).guard_keys("final_check = true")
}

/// The guard fails once in every new room, because of a file that git ignores. What the baseline leaves is kept.
fn depends_on_an_ignored_file() -> RunBuilder {
    RunBuilder::new(RUNNER)
        .guard_keys(&format!("baseline = true\n{IN_ROOM}"))
        .file(".gitignore", "built\n")
        .guard("test -e built/ok && exit 0; mkdir -p built; touch built/ok; echo not built yet; exit 1")
        .unrepeatable("a fresh room has no ignored file")
}

fn last_subject(repo: &TestRepo) -> String {
    repo.git(&["log", "-1", "--format=%s"])
}

#[test]
fn run_is_complete_after_a_recorded_final_check() {
    let repo = with_final_check().start();
    let output = repo.runner(&["loop"]).ok().stdout;
    let ended = "event=final_check_ended guard=pass exit=0";
    assert!(output.contains("event=final_check_started command=\"sh guard.sh\""), "{output}");
    assert!(output.contains(ended), "{output}");
    assert_eq!(last_subject(&repo), "chore(loop): run demo final guard=pass");
    let verify = repo.runner(&["verify"]).ok().stdout;
    assert!(
        verify.contains("kind=final detail=\"guard pass\"") && verify.contains("complete=true"),
        "{verify}"
    );
    let status = repo.runner(&["status"]).ok().stdout;
    assert!(status.contains("state=complete"), "{status}");
    // A complete run is not checked again.
    assert!(!repo.runner(&["loop"]).ok().stdout.contains("final_check"));
    assert_sound(&repo);
}

#[test]
fn guard_that_succeeds_only_in_a_used_room_does_not_complete_the_run() {
    let repo = depends_on_an_ignored_file().start();
    let ran = repo.runner(&["loop", "--allow-red"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stdout);
    assert_eq!(repo.outcomes(), ["passed"]);
    assert!(ran.stdout.contains("event=final_check_ended guard=fail exit=1"), "{}", ran.stdout);
    assert_eq!(repo.read(&format!(".runner/iterations/{RUN}/final.log")), "not built yet\n");
    let status = repo.runner(&["status"]).ok().stdout;
    assert!(status.contains("state=stopped") && status.contains("stop=not_reproducible"), "{status}");
    assert!(repo.runner(&["verify"]).ok().stdout.contains("complete=false"));
    assert_sound(&repo);
    // The user repairs the guard; the next loop checks again.
    repo.write("guard.sh", "exit 0\n");
    repo.git(&["commit", "-q", "-am", "repair the guard"]);
    repo.runner(&["start"]).ok();
    repo.runner(&["loop"]).ok();
    assert_eq!(last_subject(&repo), "chore(loop): run demo final guard=pass");
    assert_sound(&repo);
}

#[test]
fn kept_files_and_the_setup_are_in_the_clean_checkout() {
    let keys =
        format!("{IN_ROOM}\nkeep = [\"kept\"]\nsetup = [\"sh\", \"-c\", \"mkdir -p made && touch made/ok\"]");
    let repo = RunBuilder::new(RUNNER)
        .guard_keys(&keys)
        .file(".gitignore", "kept\nmade\n")
        .guard("test -e kept/ok && test -e made/ok")
        .agent("rm -rf kept; answer done")
        .unrepeatable("the kept files are in no commit")
        .start();
    repo.write("kept/ok", "");
    repo.runner(&["loop"]).ok();
    assert_eq!(last_subject(&repo), "chore(loop): run demo final guard=pass");
    assert!(!repo.path(".git/runner/fresh-room").exists());
    assert_sound(&repo);
}

#[test]
fn commit_of_the_user_is_checked_before_the_run_is_complete_again() {
    let repo = with_final_check().guard("test ! -e broken").start();
    repo.runner(&["loop"]).ok();
    repo.write("broken", "");
    repo.git(&["add", "broken"]);
    repo.git(&["commit", "-q", "-m", "break it"]);
    assert_eq!(repo.runner(&["loop"]).code, Some(3));
    assert_eq!(last_subject(&repo), "chore(loop): run demo final guard=fail");
    assert_sound(&repo);
}

#[test]
fn final_check_runs_again_after_the_runner_was_killed() {
    for point in POINTS {
        let repo = with_final_check().guard("echo x > made").start();
        repo.runner(&["step"]).ok();
        let ran = run(repo.runner_command(&["loop"]).env("RUNNER_TEST_CRASH_AT", point));
        assert_eq!(ran.code, None, "{point} was not reached");
        repo.runner(&["loop"]).ok();
        let finals = repo.subjects("HEAD").iter().filter(|subject| subject.contains(" final ")).count();
        assert_eq!(finals, 1, "{point}");
        assert!(!repo.path("made").exists());
        assert_sound(&repo);
    }
}

#[test]
fn final_check_can_be_interrupted() {
    let guard = "test -e $(dirname $HOME)/again || { touch $(dirname $HOME)/again; exit 0; }\n\
                 touch $(dirname $HOME)/begun; sleep 60";
    let repo = with_final_check().guard(guard).start();
    let mut child = repo.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
    wait_for("the final check", || repo.outside().join("begun").exists());
    run(repo.command("kill").args(["-INT".to_owned(), child.id().to_string()])).ok();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!last_subject(&repo).contains("final"), "nothing is recorded");
    let status = repo.runner(&["status"]).ok();
    assert!(status.stdout.contains("state=stopped"), "{}", status.stdout);
    assert_sound(&repo);
}

/// Index 0 is the start, 1 the iteration, 2 the final check.
const FORGERIES: &[(Forgery, Rule, u32)] = &[
    (Message(2, "guard=fail", "guard=pass"), Rule::Guard, 0),
    (Message(2, "guard=fail", "guard=red"), Rule::Message, 0),
    (Message(2, "Guard-Exit: 1", "Guard-Exit: 0"), Rule::GuardExit, 0),
    (Message(2, "Runner-Candidate: ", "Runner-Candidate: 0"), Rule::Candidate, 0),
    (Message(2, "Runner-Room: in-place", "Runner-Room: bubblewrap ignored=none"), Rule::Room, 0),
    (Message(2, "Runner-State: ", "Runner-State: 0"), Rule::StateDigest, 0),
    (Message(2, "run demo", "run other"), Rule::Identity, 0),
    (Trailer(2, "Runner-Annotation: guard-file-restored guard.sh"), Rule::Annotations, 0),
    (Mended(2, STATE, "\"guard\": \"fail\"", "\"guard\": \"pass\""), Rule::FinalCheck, 0),
    (Mended(2, STATE, "\"exit\": \"1\"", "\"exit\": \"0\""), Rule::FinalCheck, 0),
    (Mended(2, STATE, "\"next_iter\": 2", "\"next_iter\": 3"), Rule::RunState, 0),
    (File(2, STATE, "looked", "overlooked"), Rule::StateDigest, 0),
    (Append(2, "README.md", "more\n"), Rule::EditScope, 0),
    (Append(2, ".runner/state/config.toml", "\n# other\n"), Rule::EditScope, 0),
];

#[test]
fn verify_names_the_rule_that_a_forged_final_check_violates() {
    let guard = "echo looked; test -e $(dirname $HOME)/again && exit 1; touch $(dirname $HOME)/again";
    let repo = with_final_check().guard(guard).start();
    assert_eq!(repo.runner(&["loop"]).code, Some(3));
    assert_found(&repo, FORGERIES);
}

#[test]
fn verify_does_not_call_a_run_complete_without_its_final_check() {
    let repo = with_final_check().start();
    repo.runner(&["loop"]).ok();
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let verify = repo.runner(&["verify"]).ok().stdout;
    assert!(verify.contains("complete=false"), "{verify}");
}

#[test]
fn commits_of_the_user_are_checked_also_after_a_start_or_a_note() {
    for counted_by in [&["start"][..], &["note", "mind the gap"]] {
        let repo = with_final_check().guard("test ! -e broken").start();
        repo.runner(&["loop"]).ok();
        repo.write("broken", "yes\n");
        repo.commit_all("break it");
        repo.runner(counted_by).ok();
        assert!(repo.runner(&["verify"]).ok().stdout.contains("complete=false"), "{counted_by:?}");
        let ran = repo.runner(&["loop"]);
        assert_eq!(ran.code, Some(3), "{counted_by:?}: {}", ran.stdout);
        assert!(ran.stdout.contains("event=final_check_ended guard=fail"), "{counted_by:?}: {}", ran.stdout);
        assert_sound(&repo);
    }
}

#[test]
fn another_guard_is_run_before_a_complete_run_is_complete_again() {
    let repo = with_final_check().start();
    repo.runner(&["loop"]).ok();
    repo.runner(&["config", "set", "guard.command", "false"]).ok();
    repo.runner(&["start"]).ok();
    let ran = repo.runner(&["loop", "--allow-red"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stdout);
    assert_sound(&repo);
}
