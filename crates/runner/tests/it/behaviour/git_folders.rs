//! Unusual git folders, and what sessions do to them: links, locks, hooks, permissions, linked work trees.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use testkit::oracle::assert_sound;
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use crate::RUNNER;
use crate::{as_nobody, owned_by_nobody};

fn worker(sandbox: &str, agent: &str) -> RunBuilder {
    RunBuilder::new(RUNNER)
        .executor_keys(&format!("sandbox = \"{sandbox}\""))
        .agent(&format!("{agent}\necho work > work; answer done"))
}

#[test]
fn linked_folders_of_references_and_logs_stay_linked() {
    for sandbox in ["auto", "off"] {
        for folder in ["refs", "logs"] {
            // The stash log is rewritten, and references vanish.
            let agent =
                if sandbox == "off" { "git stash clear; git branch -D topic; git tag -d v1" } else { "" };
            let repo = worker(sandbox, agent).start();
            repo.git(&["branch", "topic", "main"]);
            repo.git(&["tag", "v1", "main"]);
            repo.write("README.md", "stashed\n");
            repo.git(&["stash", "-q"]);
            let before =
                repo.git(&["for-each-ref", "refs/heads/main", "refs/heads/topic", "refs/tags", "refs/stash"]);
            let elsewhere = repo.outside().join("elsewhere");
            fs::rename(repo.path(".git").join(folder), &elsewhere).unwrap();
            symlink(&elsewhere, repo.path(".git").join(folder)).unwrap();
            repo.runner(&["loop"]).ok();
            let after =
                repo.git(&["for-each-ref", "refs/heads/main", "refs/heads/topic", "refs/tags", "refs/stash"]);
            assert_eq!(after, before, "{sandbox}, {folder}");
            assert!(repo.path(".git").join(folder).is_symlink(), "{sandbox}, {folder}");
            assert_eq!(repo.git(&["stash", "list"]).lines().count(), 1, "{sandbox}, {folder}");
            assert_sound(&repo);
        }
    }
}

#[test]
fn lock_of_a_users_command_stays() {
    for sandbox in ["auto", "off"] {
        let wait = "touch there; while [ ! -e go ]; do sleep 0.05; done; rm there go";
        let repo = worker(sandbox, wait).start();
        repo.git(&["branch", "dev"]);
        let locks = [".git/refs/heads/dev.lock", ".git/objects/maintenance.lock"];
        // Without a sandbox, only locks from before the session are known to be the user's.
        if sandbox == "off" {
            locks.iter().for_each(|lock| repo.write(lock, ""));
        }
        let mut command = repo.runner_command(&["loop"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("the session", || repo.path("there").exists());
        locks.iter().for_each(|lock| repo.write(lock, ""));
        repo.write("go", "");
        assert!(child.wait().unwrap().success(), "{sandbox}");
        for lock in locks {
            assert!(repo.path(lock).exists(), "{sandbox}: {lock}");
            fs::remove_file(repo.path(lock)).unwrap();
        }
        assert_sound(&repo);
    }
}

#[test]
fn git_folder_that_a_session_made_read_only_blocks_nothing() {
    for command in
        ["chmod -R a-w .git", "chmod a-w .git/runner", "chmod a-w .git", "chmod 000 .git/refs/heads"]
    {
        let agent = format!("echo work > work; answer done; {command}");
        let repo = RunBuilder::new(RUNNER).agent(&agent).start();
        owned_by_nobody(&repo, |repo| {
            let output = as_nobody(repo, &["loop"]);
            assert_eq!(output.code, Some(0), "{command}: {}{}", output.stdout, output.stderr);
            assert_eq!(as_nobody(repo, &["loop"]).code, Some(0), "{command}");
        });
        assert_eq!(repo.git(&["show", "runner/demo:work"]), "work", "{command}");
        assert_sound(&repo);
    }
}

const HOOK: &str = "#!/bin/sh\necho of the user\n";

/// A run with a hook that is a link to a file of the repository.
fn with_linked_hook(agent: &str) -> TestRepo {
    let repo = worker("off", agent).file("scripts/hook", HOOK).start();
    symlink("../../scripts/hook", repo.path(".git/hooks/pre-commit")).unwrap();
    repo
}

#[test]
fn linked_hook_of_the_user_is_restored() {
    let evil = "printf '#!/bin/sh\\necho evil\\n' > .git/evil; chmod +x .git/evil;";
    for change in [
        "rm .git/hooks/pre-commit",
        "rm .git/hooks/pre-commit; cp .git/evil .git/hooks/pre-commit",
        "ln -sf ../evil .git/hooks/pre-commit",
        "rm -rf .git/hooks",
        "mv .git/hooks .git/away; ln -s away .git/hooks",
    ] {
        let repo = with_linked_hook(&format!("{evil} {change}"));
        repo.runner(&["loop"]).ok();
        let hook = repo.path(".git/hooks/pre-commit");
        assert_eq!(fs::read_link(&hook).unwrap().to_str(), Some("../../scripts/hook"), "{change}");
        assert!(!repo.path(".git/hooks").is_symlink(), "{change}");
    }
}

#[test]
fn planted_hook_is_set_aside_whatever_it_is() {
    for plant in [
        "ln -s ../../README.md .git/hooks/pre-commit",
        "{ printf '#!/bin/sh\\n'; head -c 2000000 /dev/zero; } > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "mkfifo .git/hooks/pre-commit",
        "echo 'echo evil' > .git/hooks/pre-commit",
    ] {
        let repo = worker("off", plant).start();
        let large = repo.path(".git/hooks/post-merge");
        fs::write(&large, vec![b'#'; 2_000_000]).unwrap();
        fs::set_permissions(&large, fs::Permissions::from_mode(0o755)).unwrap();
        repo.runner(&["loop"]).ok();
        assert!(repo.path(".git/hooks/pre-commit").symlink_metadata().is_err(), "{plant}");
        assert!(repo.path(".git/runner/aside/0001/hooks-pre-commit").symlink_metadata().is_ok(), "{plant}");
        assert!(large.exists(), "a large hook of the user's stays");
    }
}

#[test]
fn overwritten_files_that_name_the_git_folder_are_restored() {
    let agent = "git status > /dev/null; echo /nonexistent > \"$(git rev-parse --git-dir)/commondir\"";
    let repo = worker("off", agent).start();
    repo.runner(&["loop"]).ok();
    assert_sound(&repo);
    let killed = "[ -e \"$AROUND/there\" ] || { echo /nonexistent > .git/commondir; touch \"$AROUND/there\"; sleep 60; }";
    let repo = worker("off", killed).start();
    repo.kill_when(&["loop"], "there");
    repo.runner(&["loop"]).ok();
    assert_sound(&repo);

    for change in [
        "echo 'gitdir: /nonexistent' > .git",
        "rm .git",
        "rm .git; git init -q",
        "echo /tmp > \"$(git rev-parse --git-dir)/commondir\"",
    ] {
        let main = worker("off", change).start();
        let linked = main.outside().join("linked");
        main.git(&["checkout", "-q", "main"]);
        main.git(&["worktree", "add", "-q", linked.to_str().unwrap(), "runner/demo"]);
        let gitfile = fs::read_to_string(linked.join(".git")).unwrap();
        let repo = main.at(linked);
        repo.runner(&["loop"]).ok();
        assert_eq!(repo.read(".git"), gitfile, "{change}");
        assert_eq!(repo.git(&["show", "runner/demo:work"]), "work", "{change}");
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{change}");
    }
}

/// A run in a repository with the submodule `lib`.
fn with_submodule(agent: &str) -> TestRepo {
    let library = TestRepo::with_commit(RUNNER);
    let repo = worker("off", agent).start();
    let from = library.root().to_str().unwrap();
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "lib"]);
    repo.commit_all("with a library");
    repo.runner(&["start"]).ok();
    repo
}

#[test]
fn files_in_the_place_of_a_submodule_are_committed() {
    for change in ["rm -rf lib; mkdir lib; echo own > lib/f", "rm lib/.git; echo own > lib/f"] {
        let repo = with_submodule(change);
        repo.runner(&["loop"]).ok();
        assert_eq!(repo.git(&["show", "HEAD:lib/f"]), "own", "{change}");
        assert_eq!(repo.git(&["ls-tree", "HEAD", "lib"]).split(' ').next(), Some("040000"), "{change}");
        assert_sound(&repo);
    }
}

#[test]
fn edits_inside_a_submodule_are_reported() {
    let repo = with_submodule("echo edited > lib/new");
    let output = repo.runner(&["loop"]).ok();
    let text = format!("{}{}", output.stdout, output.stderr);
    assert!(text.contains("files inside this submodule changed"), "{text}");
    assert_eq!(repo.read("lib/new"), "edited\n");
    let repo = with_submodule("");
    let output = repo.runner(&["loop"]).ok();
    assert!(!output.stdout.contains("submodule"), "{}", output.stdout);
}

#[test]
fn branch_that_vanished_during_a_session_without_a_sandbox_is_reported() {
    let repo = worker("off", "git branch -D topic").start();
    repo.git(&["branch", "topic", "main"]);
    let output = repo.runner(&["loop"]).ok();
    assert!(output.stdout.contains("refs/heads/topic"), "{}", output.stdout);
    assert!(output.stdout.contains("if you deleted it yourself, delete it again"), "{}", output.stdout);
    assert_eq!(repo.git(&["rev-parse", "topic"]), repo.git(&["rev-parse", "main"]));
}

#[test]
fn read_only_objects_of_the_user_are_refused_with_a_hint() {
    let repo = worker("auto", "").start();
    owned_by_nobody(&repo, |repo| {
        let objects = repo.path(".git/objects");
        let folders = fs::read_dir(&objects).unwrap().flatten().map(|entry| entry.path());
        for folder in folders.chain([objects.clone()]) {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o555)).unwrap();
        }
        let output = as_nobody(repo, &["loop"]);
        assert_ne!(output.code, Some(0), "{}", output.stdout);
        assert!(output.stderr.contains("chmod -R u+w .git/objects"), "{}", output.stderr);
    });
}
