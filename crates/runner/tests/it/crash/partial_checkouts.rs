//! Work trees with a part of the files only: sparse checkouts, and files that the user marked in the index.

use std::fs;

use testkit::oracle::assert_sound;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

/// Ways to leave `out/b` out of the work tree.
const WAYS: [(&str, &[&str]); 4] = [
    ("cone", &["sparse-checkout", "set", "--cone", "in"]),
    ("patterns", &["sparse-checkout", "set", "--no-cone", "/*.*", "/guard.sh", "/in/"]),
    ("sparse index", &["sparse-checkout", "set", "--cone", "--sparse-index", "in"]),
    ("mark", &["update-index", "--skip-worktree", "out/b"]),
];

/// The points of an iteration at which a crash leaves different things behind.
const POINTS: [&str; 6] =
    ["iter.begun", "iter.ended", "iter.stored", "iter.guard", "publish.journal", "publish.branch"];

fn worker() -> RunBuilder {
    RunBuilder::new(RUNNER).agent("echo work > in/work; answer done").file("in/a", "a\n").file("out/b", "b\n")
}

/// Starts a run in a work tree without `out/b`.
fn start_without(builder: &RunBuilder, way: &[&str]) -> TestRepo {
    let repo = builder.start();
    repo.git(&["checkout", "-q", "main"]);
    repo.git(way);
    let _ = fs::remove_dir_all(repo.path("out"));
    repo.git(&["checkout", "-q", "runner/demo"]);
    repo.runner(&["start"]).ok();
    assert!(!repo.path("out").exists() && repo.path(".runner/GOAL.md").exists(), "{way:?}");
    repo
}

/// What holds after a loop: the commit has every file, and the work tree has those that it had.
fn assert_kept(repo: &TestRepo, what: &str) {
    assert_eq!(repo.git(&["show", "HEAD:out/b"]), "b", "{what}");
    assert_eq!(repo.git(&["show", "HEAD:in/work"]), "work", "{what}");
    assert!(!repo.path("out").exists(), "{what}: it was not checked out");
    assert!(repo.path(".runner/GOAL.md").exists(), "{what}");
    let tags = repo.git(&["ls-files", "-t"]);
    assert!(tags.contains("S out/b") && !tags.contains("S .runner"), "{what}: {tags}");
    assert_sound(repo);
}

#[test]
fn files_that_are_not_checked_out_stay_in_the_branch_after_a_crash() {
    for (name, way) in WAYS {
        for point in POINTS {
            let repo = start_without(&worker(), way);
            let output = run(repo.runner_command(&["loop"]).env("RUNNER_TEST_CRASH_AT", point));
            assert_eq!(output.code, None, "{point} was not reached: {}", output.stderr);
            repo.runner(&["loop"]).ok();
            assert_kept(&repo, &format!("{name}, {point}"));
        }
    }
}

#[test]
fn damaged_index_of_a_sparse_checkout_deletes_no_files() {
    for point in ["iter.begun", "iter.stored"] {
        let repo = start_without(&worker(), WAYS[0].1);
        run(repo.runner_command(&["loop"]).env("RUNNER_TEST_CRASH_AT", point));
        for index in [".git/index", ".git/runner/work.index"] {
            repo.write(index, "garbage");
        }
        repo.runner(&["loop"]).ok();
        assert_kept(&repo, point);
    }
}

#[test]
fn guard_that_edits_a_file_and_a_review_work_in_a_sparse_checkout() {
    for (name, way) in WAYS {
        let repo = start_without(&worker().guard("echo guard > in/a"), way);
        repo.runner(&["loop"]).ok();
        assert_kept(&repo, name);
        let review = "[review]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"echo more > in/a; \
            printf '{\\\"verdict\\\":\\\"accept\\\",\\\"reasons\\\":[\\\"ok\\\"]}' > \\\"$RUNNER_OUTPUT\\\"\"]\n";
        let repo = start_without(&worker().config_tables(review), way);
        repo.runner(&["loop"]).ok();
        assert_kept(&repo, name);
    }
}

#[test]
fn final_check_in_a_partial_checkout_finds_no_stray_files() {
    for (name, way) in WAYS {
        let repo = start_without(&worker().guard_keys("final_check = true"), way);
        repo.runner(&["loop"]).ok();
        assert_kept(&repo, name);
        assert_eq!(repo.git(&["for-each-ref", "refs/runner/demo/found"]), "", "{name}");
    }
}

#[test]
fn sparse_checkout_that_begins_during_a_run_keeps_the_runners_folder() {
    for point in ["", "iter.begun", "iter.stored", "publish.branch"] {
        let repo = worker().start();
        if !point.is_empty() {
            run(repo.runner_command(&["loop"]).env("RUNNER_TEST_CRASH_AT", point));
        }
        repo.git(WAYS[0].1);
        repo.runner(&["loop"]).ok();
        assert_kept(&repo, point);
        repo.git(&["checkout", "-q", "main"]);
        repo.git(&["checkout", "-q", "runner/demo"]);
        assert!(repo.path(".runner/GOAL.md").exists(), "{point}: the user's git checks it out, too");
    }
}

#[test]
fn file_written_in_the_place_of_one_that_is_not_checked_out_is_committed() {
    for (name, way) in [WAYS[0], WAYS[3]] {
        let builder = worker().agent("mkdir out; echo new > out/b; echo work > in/work; answer done");
        for point in ["", "iter.begun"] {
            let repo = start_without(&builder, way);
            if !point.is_empty() {
                run(repo.runner_command(&["loop"]).env("RUNNER_TEST_CRASH_AT", point));
            }
            repo.runner(&["loop"]).ok();
            assert_eq!(repo.git(&["show", "HEAD:out/b"]), "new", "{name}, {point}");
            assert_sound(&repo);
        }
    }
}

#[test]
fn marks_in_the_users_index_stay() {
    for point in ["", "iter.begun", "iter.stored", "publish.branch"] {
        let repo = worker()
            .agent("echo \"$RUNNER_ITER\" > in/work; answer retry")
            .keys("max_iterations = 3")
            .start();
        repo.git(&["update-index", "--assume-unchanged", "README.md"]);
        repo.git(&["update-index", "--skip-worktree", "in/a"]);
        if !point.is_empty() {
            run(repo.runner_command(&["loop"]).env("RUNNER_TEST_CRASH_AT", point));
        }
        repo.runner(&["loop"]);
        assert!(repo.outcomes().len() >= 3, "{point}: {:?}", repo.outcomes());
        let marks = repo.git(&["ls-files", "-v"]);
        assert!(marks.contains("h README.md") && marks.contains("S in/a"), "{point}: {marks}");
        assert_eq!(marks.lines().filter(|line| !line.starts_with("H ")).count(), 2, "{point}: {marks}");
        assert_sound(&repo);
    }
}
