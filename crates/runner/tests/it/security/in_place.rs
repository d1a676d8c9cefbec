//! A guard in the work tree runs code of the agent with the user's rights. What that changes in the repository is restored, and a
//! guard that changes protected files has failed.
#![cfg(target_os = "linux")]

use std::fs;

use testkit::oracle::assert_sound;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

/// A run whose guard runs `tests.sh`, which the agent may change.
fn in_place(guard: &str) -> RunBuilder {
    RunBuilder::new(RUNNER)
        .guard(guard)
        .guard_keys("room = \"in-place\"")
        .file("tests.sh", "true\n")
        .keys("max_attempts_default = 1")
}

/// An agent that makes `tests.sh` this script.
fn writes_tests(script: &str) -> String {
    format!("cat > tests.sh <<'EOS'\n{script}\nEOS\necho work > work.txt; answer done")
}

fn git_directory(repo: &TestRepo) -> Vec<Option<Vec<u8>>> {
    ["config", "info/attributes", "hooks/pre-commit", "HEAD", "index.lock"]
        .map(|name| fs::read(repo.path(".git").join(name)).ok())
        .to_vec()
}

/// Settings and attributes make the runner's own git start a program, a hook makes the user's git do it.
const PLANTS: &str = r#"printf '#!/bin/sh\ntouch "$HOME/pwned"\ncat\n' > "$HOME/evil.sh"; chmod +x "$HOME/evil.sh"
git config filter.e.clean "$HOME/evil.sh"; git config alias.st '!touch $HOME/pwned'
mkdir -p .git/info .git/hooks; echo '*.txt filter=e' > .git/info/attributes
cp "$HOME/evil.sh" .git/hooks/pre-commit; touch .git/index.lock"#;

#[test]
fn what_a_guard_plants_in_the_git_directory_is_removed_before_git_runs() {
    let repo = in_place("sh tests.sh").agent(&writes_tests(PLANTS)).start();
    let before = git_directory(&repo);
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["passed"]);
    assert_eq!(git_directory(&repo), before);
    let log = repo.iteration_file(1, "guard.log");
    for name in ["config", "info/attributes", "hooks/pre-commit", "index.lock"] {
        assert!(log.contains(name), "{name}: {log}");
    }
    assert_sound(&repo);
    repo.git(&["commit", "-q", "--allow-empty", "-m", "of the user"]);
    assert!(!repo.outside().join("home/pwned").exists());
}

/// The same by a check, before the work and after it.
#[test]
fn what_a_check_plants_in_the_git_directory_is_removed() {
    let checks = "[[check]]\nname = \"c\"\ncommand = [\"sh\", \"tests.sh\"]\n";
    let repo = in_place("true")
        .file("tests.sh", format!("{PLANTS}\ntest -e work.txt\n"))
        .file(".runner/nodes/root/checks.toml", checks)
        .agent("echo work > work.txt; answer done")
        .start();
    let before = git_directory(&repo);
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["passed"]);
    assert_eq!(git_directory(&repo), before);
    assert!(!repo.outside().join("home/pwned").exists());
    assert_sound(&repo);
}

#[test]
fn commit_of_a_guard_does_not_count_as_the_users() {
    let commits = "echo true > guard.sh; git -c user.name=U -c user.email=u@h commit -qam 'ci: simplify'";
    let repo = in_place("sh tests.sh\nexit 1").agent(&writes_tests(commits)).start();
    for _ in 0..2 {
        assert_eq!(repo.runner(&["loop"]).code, Some(3));
    }
    assert_eq!(repo.outcomes(), ["guard_failed"]);
    assert!(!repo.subjects(BRANCH).iter().any(|subject| subject.contains("simplify")));
    assert_eq!(repo.read("guard.sh"), "sh tests.sh\nexit 1\n");
    let kept = repo.git(&["for-each-ref", "--format=%(subject)", "refs/runner/demo/agent"]);
    assert_eq!(kept, "ci: simplify", "nothing is lost");
    assert_sound(&repo);
}

/// Also if the file has its old content in the end: what ran in between was another.
#[test]
fn guard_that_rewrites_a_protected_file_while_it_runs_has_failed() {
    let rewrites = [
        "echo exit 0 > part.sh",
        "rm part.sh; echo exit 0 > part.sh",
        "cp -p part.sh old.sh; echo 'mv old.sh part.sh; exit 0' > part.sh",
        "mv part.sh old.sh; ln -s tests.sh part.sh; printf 'exit 0' > tests.sh",
    ];
    for script in rewrites {
        let repo = in_place("sh tests.sh; sh part.sh")
            .file("part.sh", "exit 1\n")
            .protected("part.sh")
            .agent(&writes_tests(script))
            .start();
        assert_eq!(repo.runner(&["loop"]).code, Some(3), "{script}");
        assert_eq!(repo.outcomes(), ["guard_failed"], "{script}");
        let log = repo.iteration_file(1, "guard.log");
        assert!(log.ends_with("the guard changed protected files while it ran: part.sh\n"), "{log}");
        assert_eq!(repo.read("part.sh"), "exit 1\n", "{script}");
        assert_sound(&repo);
    }
}

/// What guards of real projects do to their repository is no change.
#[test]
fn guard_that_asks_git_and_sets_permissions_succeeds() {
    let guard = "chmod 644 guard.sh; git status > /dev/null; git stash list; ls work.txt";
    let repo = in_place(guard).agent("echo work > work.txt; answer done").start();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["passed"]);
    assert_eq!(repo.iteration_file(1, "guard.log"), "work.txt\n");
}

#[test]
fn journal_that_a_guard_removes_is_written_again() {
    let repo = in_place("sh tests.sh")
        .agent(&writes_tests("rm .git/runner/journal.json; touch \"$HOME/ran\""))
        .start();
    let ran = run(repo.runner_command(&["step"]).env("RUNNER_TEST_CRASH_AT", "iter.guard"));
    assert_eq!(ran.code, None, "{}{}", ran.stdout, ran.stderr);
    assert!(repo.outside().join("home/ran").exists());
    assert!(repo.path(".git/runner/journal.json").exists());
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["passed"]);
    assert_sound(&repo);
}
