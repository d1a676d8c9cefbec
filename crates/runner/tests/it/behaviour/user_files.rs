//! Files of the user's that git does not show: ignored ones, and those with marks in the index. No session takes, moves or
//! loses them.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::Value;
use testkit::oracle::assert_sound;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

const RULES: &str = "ignored\n.env\n*.db\nbuild/\n";

/// A run whose agent runs a script in its first session, in a repository with ignored files of the user's.
fn with_ignored_files(script: &str) -> TestRepo {
    let script = format!("if test $RUNNER_ITER = 0001; then {script}; answer retry; else answer done; fi");
    let repo = RunBuilder::new(RUNNER)
        .agent(&script)
        .file(".gitignore", RULES)
        .file("sub/.gitignore", "local.toml\n")
        .file("src/lib.txt", "one\n")
        .start();
    repo.write(".env", "KEY=1\n");
    std::fs::set_permissions(repo.path(".env"), std::fs::Permissions::from_mode(0o600)).unwrap();
    repo.write("sub/local.toml", "l\n");
    repo.write("build/a/b", "b\n");
    repo.write("data.db", vec![b'd'; 3 << 20]);
    repo
}

fn notices(repo: &TestRepo, iter: u32) -> Vec<Value> {
    repo.meta(iter).get("file_notices").and_then(Value::as_array).unwrap().clone()
}

fn tracked(repo: &TestRepo) -> String {
    repo.git(&["ls-tree", "-r", "--name-only", BRANCH])
}

/// Every way to stop ignoring a file: remove the rule, the file, or overrule it.
#[test]
fn file_that_was_ignored_before_a_session_is_not_committed() {
    for script in [
        "printf 'ignored\\nnew\\n' > .gitignore; : > sub/.gitignore",
        "rm .gitignore sub/.gitignore",
        "printf '!.env\\n!*.db\\n!build/\\n' >> .gitignore; printf '!local.toml' >> sub/.gitignore",
        "printf '!.env\\n!*.db\\n!build\\n' >> .gitignore; mkdir -p sub build/a; printf '!*\\n' > sub/.gitignore; printf '!b\\n' > build/a/.gitignore",
        "rm .gitignore; ln -s README.md .gitignore; : > sub/.gitignore",
        "rm .gitignore; mkfifo .gitignore",
        "rm .gitignore .env",
        "sed -i s/1/2/ .env; touch data.db; : > .gitignore",
    ] {
        let repo = with_ignored_files(&format!("echo w > w; echo v > new.db; {script}"));
        let out = repo.runner(&["loop"]).ok().stdout;
        let files = tracked(&repo);
        for path in [".env", "sub/local.toml", "build/a/b", "data.db"] {
            assert!(!files.lines().any(|line| line == path), "{script}: {path} is committed\n{out}");
            assert!(repo.path(path).exists(), "{script}: {path}");
        }
        assert!(files.lines().any(|line| line == "w"), "{script}");
        assert_sound(&repo);
        repo.git(&["checkout", "-q", "main"]);
        assert!(repo.read(".env").starts_with("KEY="), "{script}");
        assert_eq!(repo.read("build/a/b"), "b\n", "{script}");
    }
}

#[test]
fn new_file_that_an_agent_stops_ignoring_is_committed() {
    let repo = with_ignored_files("rm -r build; echo .env > .gitignore; mkdir dist; echo d > dist/d.db");
    std::fs::remove_file(repo.path("data.db")).unwrap();
    repo.runner(&["loop"]).ok();
    assert!(tracked(&repo).contains("dist/d.db"));
    let kept: Vec<String> = notices(&repo, 1).iter().map(|notice| notice["action"].to_string()).collect();
    assert!(!kept.contains(&"\"kept_ignored\"".to_owned()), "{kept:?}");
}

#[test]
fn deleted_and_changed_ignored_files_can_be_restored() {
    let repo = with_ignored_files("rm -r .env sub data.db build/a/c; echo changed > build/a/b");
    repo.write("build/a/c", "c\n");
    let out = repo.runner(&["step"]).ok().stdout;
    let found = notices(&repo, 1);
    let actions: Vec<(&str, &str)> =
        found.iter().map(|one| (one["path"].as_str().unwrap(), one["action"].as_str().unwrap())).collect();
    let expected = [
        // Its ignore file was in the deleted folder.
        ("sub/local.toml", "kept_ignored"),
        (".env", "ignored_restored"),
        ("build/a/b", "ignored_changed"),
        ("build/a/c", "ignored_deleted"),
        ("sub/local.toml", "ignored_restored"),
    ];
    assert_eq!(actions, expected);
    assert_eq!((repo.read(".env"), repo.read("sub/local.toml")), ("KEY=1\n".to_owned(), "l\n".to_owned()));
    for command in found.iter().filter_map(|notice| notice["restore"].as_str()) {
        assert!(out.contains(command), "{command}: {out}");
        run(repo.command("sh").args(["-ec", command])).ok();
    }
    assert_eq!((repo.read("build/a/b"), repo.read("build/a/c")), ("b\n".to_owned(), "c\n".to_owned()));
    assert_eq!(repo.path(".env").metadata().unwrap().mode() & 0o777, 0o600);
    let shown = repo.runner(&["show", "1"]).ok().stdout;
    assert!(shown.contains("`.env` deleted by the session"), "{shown}");
    repo.runner(&["loop"]).ok();
    assert_eq!(notices(&repo, 2), Vec::<Value>::new(), "restored files are not reported again");
    assert_sound(&repo);
}

/// The contents of a list of copies.
fn kept_texts(repo: &TestRepo, list: &str) -> Vec<String> {
    let folder = ".git/runner/ignored/demo";
    let list: Value = serde_json::from_str(&repo.read(&format!("{folder}/{list}.json"))).unwrap();
    let name = |file: &Value| file["sha256"].as_str().unwrap().chars().take(20).collect::<String>();
    list.as_object().unwrap().values().map(|file| repo.read(&format!("{folder}/{}", name(file)))).collect()
}

/// Ignored files are where people keep their keys. A copy in git could be pushed, bundled and cloned.
#[test]
fn no_git_object_has_the_content_of_an_ignored_file() {
    let repo = with_ignored_files("rm .env; echo w > w");
    repo.write(".env", "TOKEN=only-in-the-ignored-file\n");
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.read(".env"), "TOKEN=only-in-the-ignored-file\n", "restored");
    let objects = repo.git(&["cat-file", "--batch-all-objects", "--batch", "--buffer"]);
    assert!(!objects.contains("only-in-the-ignored-file"));
    assert_eq!(repo.git(&["for-each-ref", "refs/runner/demo/ignored"]), "");
    for entry in std::fs::read_dir(repo.path(".git/runner/ignored/demo")).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().mode() & 0o077, 0, "only the owner may read copies");
    }
    let folder = repo.path(".git/runner/ignored").metadata().unwrap();
    assert_eq!(repo.path(".git/runner").metadata().unwrap().mode() & 0o077, 0, "{folder:?}");
    assert_sound(&repo);
}

#[test]
fn clean_removes_the_copies_of_a_run() {
    let repo = with_ignored_files("true");
    repo.runner(&["loop"]).ok();
    assert!(repo.path(".git/runner/ignored/demo").exists());
    repo.git(&["checkout", "-q", "main"]);
    repo.runner(&["clean", "demo", "--force", "--yes"]).ok();
    assert!(!repo.path(".git/runner/ignored/demo").exists());
}

/// A copy is as new as the last session's beginning, and older ones stay reachable.
#[test]
fn changes_of_the_user_between_sessions_are_kept() {
    let script = "case $RUNNER_ITER in 0002) rm .env;; 0003) rm .env; mkdir .env;; esac; answer retry";
    let repo = RunBuilder::new(RUNNER).agent(script).file(".gitignore", RULES).start();
    repo.write(".env", "KEY=1\n");
    repo.runner(&["step"]).ok();
    assert_eq!(notices(&repo, 1), Vec::<Value>::new());
    repo.write(".env", "KEY=22\n");
    repo.runner(&["step"]).ok();
    assert_eq!(kept_texts(&repo, "0002"), ["KEY=22\n"]);
    assert_eq!(kept_texts(&repo, "0001"), ["KEY=1\n"]);
    assert_eq!((notices(&repo, 2).len(), repo.read(".env")), (1, "KEY=22\n".to_owned()));
    assert_eq!(repo.runner(&["step"]).code, Some(3), "it was the last attempt");
    assert_eq!(notices(&repo, 3)[0]["action"], "ignored_deleted", "a folder is in its place");
}

#[test]
fn large_files_and_folders_with_many_files_are_not_kept() {
    let repo = with_ignored_files("true");
    for n in 0..100 {
        repo.write(&format!("build/many/{n}"), "x");
    }
    repo.runner(&["step"]).ok();
    let kept: Value = serde_json::from_str(&repo.read(".git/runner/ignored/demo/0001.json")).unwrap();
    assert_eq!(kept.as_object().unwrap().keys().collect::<Vec<_>>(), [".env", "sub/local.toml"]);
    assert_eq!(repo.git(&["fsck", "--strict", "--no-dangling", "--no-progress"]), "");
}

#[test]
fn change_behind_a_mark_in_the_index_is_refused() {
    for mark in ["assume-unchanged", "skip-worktree"] {
        let repo = with_ignored_files("true");
        repo.git(&["update-index", &format!("--{mark}"), "src/lib.txt"]);
        repo.write("src/lib.txt", "key\n");
        for command in ["step", "start"] {
            let refused = repo.runner(&[command]).refused(2);
            assert!(refused.contains(&format!("git update-index --no-{mark} src/lib.txt")), "{refused}");
        }
        repo.write("src/lib.txt", "one\n");
        repo.runner(&["step"]).ok();
        assert_sound(&repo);
    }
}

/// The mark hides no change of an agent either.
#[test]
fn agents_change_of_a_marked_file_is_committed() {
    for mark in ["assume-unchanged", "skip-worktree"] {
        let repo = with_ignored_files("echo two > src/lib.txt");
        repo.git(&["update-index", &format!("--{mark}"), "src/lib.txt"]);
        repo.runner(&["step"]).ok();
        assert_eq!(repo.git(&["show", &format!("{BRANCH}:src/lib.txt")]), "two", "{mark}");
    }
}
