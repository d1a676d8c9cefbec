//! Ignored files of the user's that the guard needs: a room has them as they were before the first session, or not at all.
#![cfg(target_os = "linux")]

use std::fs;

use testkit::oracle::assert_sound;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

const KEEP: &str = "room = \"require\"\nkeep = [\"env\"]";

/// A run whose guard needs `env/ok`, which git ignores.
fn needs_env(keys: &str) -> RunBuilder {
    RunBuilder::new(RUNNER)
        .file(".gitignore", "ignored\nenv\n")
        .guard("test \"$(cat env/ok)\" = mine")
        .guard_keys(&format!("{KEEP}\n{keys}"))
        .keys("max_attempts_default = 3")
}

const PLANT: &str = "mkdir -p env; echo mine > env/ok";

/// A clone of the repository in which nothing but git's files is.
fn verify_in_clone(repo: &TestRepo, prepare: &str) -> (Option<i32>, String) {
    let clone = repo.outside().join("clone");
    let _ = fs::remove_dir_all(&clone);
    repo.git(&["clone", "-q", "-b", BRANCH, ".", &clone.display().to_string()]);
    run(repo.command("sh").args(["-c", prepare]).current_dir(&clone)).ok();
    let output = run(repo.command(RUNNER).args(["verify", "--rerun", "all"]).current_dir(&clone));
    (output.code, output.stdout + &output.stderr)
}

#[test]
fn folder_that_a_session_made_is_in_no_room() {
    for command in ["loop", "step"] {
        let repo = needs_env("final_check = true").agent(&format!("{PLANT}; answer done")).start();
        for _ in 0..3 {
            repo.runner(&[command]);
        }
        assert_eq!(repo.outcomes(), ["guard_failed"; 3], "{command}");
        repo.runner(&["start"]).ok();
        repo.runner(&["node", "allow", "root", "1"]).ok();
        assert_ne!(repo.runner(&["loop"]).code, Some(0), "{command}: not by another start either");
        assert_sound(&repo);
    }
}

#[test]
fn final_check_and_later_processes_have_the_folder_from_before_the_first_session() {
    let agent = "echo theirs > env/ok; case $RUNNER_ITER in 0001) split ;; *) answer done ;; esac";
    let repo =
        needs_env("final_check = true").agent(agent).unrepeatable("a clone has no kept folder").start();
    repo.write("env/ok", "mine\n");
    repo.runner(&["step"]).ok();
    repo.runner(&["step"]).ok();
    // A power cut: the room is built again.
    fs::remove_dir_all(repo.path(".git/runner/room")).unwrap();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["decomposed", "passed", "passed"]);
    assert_eq!(repo.read("env/ok"), "theirs\n");
    let rerun = repo.runner(&["verify", "--rerun", "all"]).ok().stdout;
    assert!(rerun.contains("verdict=verified"), "{rerun}");
    assert_sound(&repo);
}

#[test]
fn clone_without_the_folder_repeats_nothing_and_finds_no_violation() {
    let repo = needs_env("").agent("echo x > work; answer done").start();
    repo.write("env/ok", "mine\n");
    repo.runner(&["loop"]).ok();
    let (code, shown) = verify_in_clone(&repo, "true");
    assert_eq!(code, Some(5), "{shown}");
    assert!(shown.contains("verdict=partial") && shown.contains("`env` (keep)"), "{shown}");
    let (code, shown) = verify_in_clone(&repo, PLANT);
    assert_eq!(code, Some(0), "who has the folder can repeat it: {shown}");
}

#[test]
fn new_clone_takes_the_folder_by_a_start_only() {
    let agent = "case $RUNNER_ITER in 0001) split ;; *) echo $RUNNER_ITER > work; answer done ;; esac";
    let repo = needs_env("").agent(agent).start();
    repo.write("env/ok", "mine\n");
    repo.runner(&["step"]).ok();
    fs::remove_dir_all(repo.path(".git/runner/kept")).unwrap();
    let refused = repo.runner(&["loop"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(
        refused.stderr.contains("runner start") && refused.stderr.contains("`env`"),
        "{}",
        refused.stderr
    );
    repo.runner(&["start"]).ok();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["decomposed", "passed", "passed"]);
}

/// Nothing that a run of this guard finds is in git, so the final check has it too, and every pass is annotated.
#[test]
fn guard_that_needs_ignored_files_of_the_work_tree_completes_with_an_annotation() {
    let repo = RunBuilder::new(RUNNER)
        .file(".gitignore", "ignored\nenv\n")
        .guard("test -e env/ok")
        .guard_keys("room = \"require\"\nignored = \"worktree\"\nfinal_check = true")
        .agent(&format!("{PLANT}; echo x > work; answer done"))
        .unrepeatable("a clone has no ignored files")
        .start();
    repo.runner(&["loop"]).ok();
    let annotations = "--format=%(trailers:key=Runner-Annotation,valueonly,separator=%x2C)";
    assert_eq!(repo.git(&["log", "-1", annotations, "HEAD~"]).trim(), "ignored-worktree");
    let room = "--format=%s: %(trailers:key=Runner-Room,valueonly,separator=)";
    let last = repo.git(&["log", "-1", room]);
    assert_eq!(last, "chore(loop): run demo final guard=pass: bubblewrap ignored=worktree");
    repo.runner(&["verify"]).ok();
    let rerun = repo.runner(&["verify", "--rerun"]);
    assert_eq!(rerun.code, Some(5), "{}", rerun.stdout);
    assert!(rerun.stdout.contains("ignored = "), "{}", rerun.stdout);
    assert_sound(&repo);
}
