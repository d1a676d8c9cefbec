//! Recovery works from git objects alone, and leaves alone what belongs to someone else.

use std::fs;
use std::process::Stdio;

use testkit::oracle::{assert_no_processes_of, assert_sound};
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

const BRANCH: &str = "runner/demo";
const JOURNAL: &str = ".git/runner/journal.json";

fn crash_at(repo: &TestRepo, point: &str) {
    let output = run(repo.runner_command(&["loop"]).env("RUNNER_TEST_CRASH_AT", point));
    assert_eq!(output.code, None, "{point} was not reached: {}{}", output.stdout, output.stderr);
}

fn worker() -> RunBuilder {
    RunBuilder::new(RUNNER).agent("echo work > work; answer done")
}

fn committed(repo: &TestRepo, path: &str) -> String {
    repo.git(&["show", &format!("{BRANCH}:{path}")])
}

#[test]
fn lock_file_that_names_another_process_does_not_stop_a_loop() {
    let repo = worker().start();
    crash_at(&repo, "iter.begun");
    // After a restart of the machine, this process has the number of the dead runner, and locks some file of its own.
    let other = fs::File::create(repo.outside().join("other")).unwrap();
    other.lock().unwrap();
    repo.write(".git/runner/lock", format!("pid {}\n", std::process::id()));
    repo.runner(&["loop"]).ok();
    assert_sound(&repo);
}

/// After a reboot, or in a copy, the git folder has another device and inode number.
#[test]
fn interrupted_run_continues_on_another_device() {
    for point in ["iter.begun", "iter.stored", "publish.journal"] {
        // The second one is on another file system, where there are two.
        for root in [testkit::test_repo::temporary_root(), std::env::temp_dir()] {
            let repo = worker().movable().start();
            crash_at(&repo, point);
            let folder = tempfile::tempdir_in(root).unwrap();
            let mut copy = repo.command("cp");
            run(copy.arg("-a").arg(repo.outside().join(".")).arg(folder.path())).ok();
            let repo = TestRepo::open(RUNNER, folder);
            repo.runner(&["loop"]).ok();
            assert_eq!(committed(&repo, "work"), "work", "{point}");
            assert_sound(&repo);
        }
    }
}

/// `runner loop > night.log` asks git about that file before it recovers.
#[test]
fn output_in_a_file_does_not_prevent_recovery() {
    let damages: [fn(&TestRepo); 2] =
        [|repo| fs::remove_file(repo.path(".git/HEAD")).unwrap(), |repo| repo.write(".git/index", "garbage")];
    for damage in damages {
        for args in [&["loop"][..], &["loop", "--detach"]] {
            let repo = worker().start();
            crash_at(&repo, "iter.begun");
            damage(&repo);
            let log = fs::File::create(repo.outside().join("night.log")).unwrap();
            let errors = repo.outside().join("errors");
            let mut command = repo.runner_command(args);
            let status = command.stdout(log).stderr(fs::File::create(&errors).unwrap()).status().unwrap();
            assert!(status.success(), "{args:?}: {}", fs::read_to_string(errors).unwrap());
            assert_no_processes_of(repo.outside());
            assert_eq!(repo.outcomes().last().map(String::as_str), Some("passed"), "{args:?}");
            assert_sound(&repo);
        }
    }
}

#[test]
fn stored_session_is_taken_from_git_and_not_from_the_work_tree() {
    let repo = worker().start();
    crash_at(&repo, "iter.stored");
    assert_eq!(repo.git(&["show", "refs/runner/demo/wip:work"]), "work");
    // What a power cut does to files that were not synced.
    repo.write("work", "");
    for index in [".git/runner/work.index", ".git/index"] {
        repo.write(index, "");
    }
    repo.write("README.md", "");
    repo.runner(&["loop"]).ok();
    assert_eq!(committed(&repo, "work"), "work");
    assert_eq!(repo.outcomes(), ["passed"]);
    assert_sound(&repo);
}

#[test]
fn objects_of_an_open_iteration_survive_garbage_collection() {
    let repo = worker().guard("git reflog expire --expire=now --all; git gc -q --prune=now").start();
    repo.runner(&["loop"]).ok();
    assert_eq!(committed(&repo, "work"), "work");
    assert_sound(&repo);
    let repo = worker().start();
    crash_at(&repo, "iter.guard");
    repo.git(&["gc", "-q", "--prune=now"]);
    fs::remove_file(repo.path("work")).unwrap();
    repo.runner(&["loop"]).ok();
    assert_eq!(committed(&repo, "work"), "work");
    assert_sound(&repo);
}

#[test]
fn damaged_journal_is_set_aside_and_the_run_goes_on() {
    for point in ["iter.begun", "iter.stored", "publish.journal", "publish.branch", "publish.head"] {
        for damage in ["", "{", "\0\0\0\0"] {
            let repo = worker().start();
            crash_at(&repo, point);
            repo.write(JOURNAL, damage);
            repo.runner(&["loop"]).ok();
            assert_eq!(committed(&repo, "work"), "work", "{point} {damage:?}");
            let aside = fs::read_dir(repo.path(".git/runner/aside")).unwrap().flatten();
            assert!(
                aside.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("journal-"))
            );
            assert_sound(&repo);
        }
    }
}

#[test]
fn journal_of_a_later_version_is_left_alone() {
    let repo = worker().start();
    crash_at(&repo, "iter.stored");
    repo.write(JOURNAL, "{\"format\": 2}");
    let output = repo.runner(&["loop"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("another version"), "{}", output.stderr);
    assert_eq!(repo.read(JOURNAL), "{\"format\": 2}");
}

#[test]
fn missing_head_is_written_again() {
    for head in [None, Some(""), Some("\0\0\0\0\0")] {
        let repo = worker().start();
        crash_at(&repo, "iter.begun");
        match head {
            None => fs::remove_file(repo.path(".git/HEAD")).unwrap(),
            Some(text) => repo.write(".git/HEAD", text),
        }
        repo.runner(&["loop"]).ok();
        assert_eq!(committed(&repo, "work"), "work", "{head:?}");
        assert_sound(&repo);
    }
}

#[test]
fn git_directory_that_moved_inside_the_work_tree_is_moved_back() {
    let hide = "mv .git .git-real; echo 'gitdir: .git-real' > .git";
    let repo =
        worker().agent(&format!("echo work > work; answer done; [ -e .git-real ] || {{ {hide}; }}")).start();
    repo.runner(&["loop"]).ok();
    assert!(repo.path(".git").is_dir() && !repo.path(".git-real").exists());
    assert_sound(&repo);
    let repo = worker().start();
    crash_at(&repo, "iter.begun");
    run(repo.command("sh").args(["-ec", hide])).ok();
    repo.runner(&["loop"]).ok();
    assert!(repo.path(".git").is_dir() && !repo.path(".git-real").exists());
    assert_eq!(committed(&repo, "work"), "work");
    assert_sound(&repo);
}

#[test]
fn commits_of_the_user_on_other_branches_stay_where_they_are() {
    // During a session.
    let commit = "git worktree add -q $AROUND/elsewhere dev; cd $AROUND/elsewhere; echo mine > mine; git add mine; \
        git -c user.name=u -c user.email=u commit -qm mine";
    let repo = RunBuilder::new(RUNNER).agent(&format!("echo work > work; answer done; ({commit})")).start();
    repo.git(&["branch", "dev", "main"]);
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.git(&["show", "dev:mine"]), "mine");
    assert_sound(&repo);
    // Between a crash and the recovery.
    let repo = worker().start();
    repo.git(&["branch", "dev", "main"]);
    crash_at(&repo, "iter.begun");
    repo.git(&["switch", "-q", "dev"]);
    repo.write("mine", "mine");
    repo.git(&["add", "mine"]);
    repo.git(&["commit", "-qm", "mine"]);
    repo.write("thought", "not committed");
    let output = repo.runner(&["loop"]).ok();
    assert_eq!(repo.git(&["show", "dev:mine"]), "mine");
    let saved = output.stdout.split_whitespace().find_map(|word| word.strip_prefix("saved=")).unwrap();
    assert_eq!(repo.git(&["show", &format!("{saved}:thought")]), "not committed");
    assert!(
        repo.try_git(&["show", &format!("{BRANCH}:thought")]).code != Some(0),
        "it is not the agent's work"
    );
    assert_sound(&repo);
}

#[test]
fn stashes_and_their_log_survive_an_agent_that_clears_them() {
    let repo = RunBuilder::new(RUNNER).agent("git stash clear; echo work > work; answer done").start();
    repo.git(&["switch", "-q", "main"]);
    for text in ["one", "two"] {
        repo.write("README.md", text);
        repo.git(&["stash", "push", "-q"]);
    }
    repo.git(&["switch", "-q", BRANCH]);
    let before = repo.git(&["stash", "list"]);
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.git(&["stash", "list"]), before);
    assert_eq!(repo.git(&["show", "stash@{1}:README.md"]), "one");
    assert_sound(&repo);
}

#[test]
fn planted_hook_is_set_aside_and_the_users_hook_restored() {
    let plant = "echo 'touch $AROUND/ran' > .git/hooks/pre-commit; echo x > .git/hooks/post-commit; \
        chmod +x .git/hooks/*; echo work > work; answer done";
    let repo = RunBuilder::new(RUNNER).agent(plant).start();
    repo.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n");
    let before = repo.read_bytes(".git/hooks/pre-commit");
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.read_bytes(".git/hooks/pre-commit"), before);
    assert!(!repo.path(".git/hooks/post-commit").exists());
    assert_sound(&repo);
}

/// An agent that writes the journal itself: the next command would publish whatever it names.
#[test]
fn forged_publication_is_rejected_and_kept() {
    let repo = worker().start();
    crash_at(&repo, "publish.journal");
    let journal = repo.read(JOURNAL);
    let base = repo.git(&["rev-parse", BRANCH]);
    let genuine = repo.git(&["rev-parse", "refs/runner/demo/wip"]);
    // A commit with a passed tree that no iteration made.
    let tree = repo.read(".runner/state/tree.json").replace("\"passes\": false", "\"passes\": true");
    let index = repo.outside().join("forged-index");
    let git = |args: &[&str]| {
        let mut command = repo.command("git");
        command.args(["-c", "user.name=u", "-c", "user.email=u"]).args(args);
        command.env("GIT_INDEX_FILE", &index).current_dir(repo.root());
        run(&mut command).ok().stdout.trim().to_owned()
    };
    fs::write(repo.outside().join("tree.json"), tree).unwrap();
    let blob = git(&["hash-object", "-w", repo.outside().join("tree.json").to_str().unwrap()]);
    git(&["read-tree", &genuine]);
    git(&["update-index", "--cacheinfo", &format!("100644,{blob},.runner/state/tree.json")]);
    let forged_tree = git(&["write-tree"]);
    let message = "chore(loop): run demo iter 0001 node root status=done guard=pass";
    let forged = git(&["commit-tree", "-p", &base, "-m", message, &forged_tree]);
    let mut record: serde_json::Value = serde_json::from_str(&journal).unwrap();
    record["content"]["publish"]["new_tip"] = forged.clone().into();
    let content = runner_core::strict::canonical_json(&record["content"]);
    record["sum"] = runner_core::model::digest::Sha256::of(&content).to_string().into();
    repo.write(JOURNAL, record.to_string());
    repo.runner(&["loop"]).ok();
    let history = repo.git(&["rev-list", BRANCH]);
    assert!(!history.contains(&forged), "the forged commit is not on the branch");
    assert_ne!(
        repo.git(&["for-each-ref", "--contains", &forged, "refs/runner/demo/agent"]),
        "",
        "but it is kept"
    );
    assert_sound(&repo);
}

#[test]
fn agent_that_always_kills_the_runner_is_not_started_for_ever() {
    // The runner is the process above the supervisor, which is above the agent.
    let kill = "echo work >> work; kill -9 $(ps -o ppid= -p $PPID) $PPID; sleep 30";
    let repo = RunBuilder::new(RUNNER).agent(kill).start();
    let codes: Vec<Option<i32>> = (0..4).map(|_| repo.runner(&["loop"]).code).collect();
    assert_eq!(codes, [None, None, None, Some(1)]);
    assert_eq!(repo.outcomes(), ["interrupted", "interrupted", "interrupted"]);
    assert_sound(&repo);
}

#[test]
fn split_index_is_understood_and_kept_out_of_the_runners_commits() {
    let repo = TestRepo::with_commit(RUNNER);
    repo.write("src/a", "a");
    repo.commit_all("files");
    repo.git(&["config", "core.splitIndex", "true"]);
    repo.git(&["update-index", "--split-index"]);
    let repo = worker().start_in(repo);
    assert_eq!(repo.read("src/a"), "a");
    assert_eq!(committed(&repo, "src/a"), "a");
    repo.runner(&["loop"]).ok();
    assert_eq!(committed(&repo, "work"), "work");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_sound(&repo);
}

#[test]
fn session_that_removes_the_runners_folder_and_kills_it_is_recovered() {
    let kill = "echo work > work; rm -rf .git/runner; kill -9 $(ps -o ppid= -p $PPID) $PPID; sleep 30";
    let repo = RunBuilder::new(RUNNER).agent(kill).start();
    assert_eq!(repo.runner(&["loop"]).code, None);
    repo.replace_agent("echo more > more; answer done");
    let output = repo.runner(&["loop"]).ok();
    let saved = output.stdout.split_whitespace().find_map(|word| word.strip_prefix("saved=")).unwrap();
    assert_eq!(repo.git(&["show", &format!("{saved}:work")]), "work");
    assert_eq!(committed(&repo, "more"), "more");
    assert_sound(&repo);
}

#[test]
fn changes_of_the_user_are_refused_and_not_recovered() {
    let repo = worker().start();
    fs::remove_dir_all(repo.path(".git/runner")).unwrap();
    repo.write("README.md", "mine");
    repo.runner(&["loop"]).refused(2);
    assert_eq!(repo.read("README.md"), "mine");
}

#[test]
fn stale_lock_of_the_runs_own_references_does_not_block_it() {
    let repo = worker().start();
    repo.write(".git/refs/runner/demo/wip.lock", "");
    repo.runner(&["loop"]).ok();
    assert_sound(&repo);
}

#[test]
fn what_a_killed_start_left_beside_the_journal_does_not_block_the_next_one() {
    let repo = worker().start();
    crash_at(&repo, "publish.journal");
    let left = [
        ".git/refs/heads/runner/demo.lock",
        ".git/refs/heads/runner/demo-1.lock",
        ".git/HEAD.lock",
        ".git/runner/.journal.json.tmp",
        ".runner/state/.schema.json.tmp",
        ".runner/.GOAL.md.tmp",
    ];
    for path in left {
        repo.write(path, "");
    }
    repo.runner(&["loop"]).ok();
    assert_sound(&repo);
}

#[test]
fn references_to_objects_that_a_power_cut_lost_are_taken_back() {
    let repo = worker().start();
    repo.git(&["branch", "dev", "main"]);
    crash_at(&repo, "iter.begun");
    let lost = "1234567890123456789012345678901234567890\n";
    let entry = format!("{} {} u <u> 0 +0000\t\n", "0".repeat(40), lost.trim_end());
    repo.write(".git/logs/HEAD", format!("{}{entry}", repo.read(".git/logs/HEAD")));
    repo.write(".git/refs/heads/new", lost);
    repo.write(".git/refs/heads/dev", lost);
    repo.write(".git/refs/heads/empty", "");
    repo.write(".git/refs/heads/main.lock", lost);
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.git(&["rev-parse", "dev"]), repo.git(&["rev-parse", "main"]));
    for name in ["new", "empty", "main.lock"] {
        assert!(!repo.path(&format!(".git/refs/heads/{name}")).exists(), "{name} is left");
    }
    assert_sound(&repo);
}

#[test]
fn edits_of_the_runs_files_during_a_session_are_kept_and_offered() {
    let edit = "echo '# Another goal' >> .runner/GOAL.md; mkdir -p .runner/prompts; echo mine > .runner/prompts/mine.md; \
        echo '# mine' >> .runner/state/config.toml; mkdir -p .runner/nodes/root; \
        echo '{\"network\": true}' > .runner/nodes/root/tools.json; echo work > work; answer done";
    let repo = RunBuilder::new(RUNNER).agent(edit).start();
    let output = repo.runner(&["loop"]).ok();
    assert_eq!(committed(&repo, "work"), "work");
    assert!(
        !committed(&repo, ".runner/GOAL.md").contains("Another goal"),
        "the session ran with the old goal"
    );
    let notices = repo.meta(1)["file_notices"].as_array().unwrap().clone();
    let edited = [
        ".runner/GOAL.md",
        ".runner/prompts/mine.md",
        ".runner/state/config.toml",
        ".runner/nodes/root/tools.json",
    ];
    for path in edited {
        let notice = notices.iter().find(|notice| notice["path"] == path).unwrap();
        assert_eq!(notice["action"], "edit_kept");
        let command = notice["restore"].as_str().unwrap();
        assert!(output.stdout.contains(command), "{command}: {}", output.stdout);
        let restore = command.strip_suffix(" && runner start").unwrap();
        run(repo.command("sh").args(["-ec", restore])).ok();
    }
    assert!(repo.read(".runner/GOAL.md").contains("Another goal"));
    assert_eq!(repo.read(".runner/prompts/mine.md"), "mine\n");
    assert!(repo.read(".runner/state/config.toml").ends_with("# mine\n"));
    assert_eq!(repo.read(".runner/nodes/root/tools.json"), "{\"network\": true}\n");
}

/// In a room: in the work tree, the commit could be the guard's.
#[cfg(target_os = "linux")]
#[test]
fn run_goes_on_from_a_commit_that_the_user_made_during_the_guard() {
    let guard = "git log --format=%s | grep -qx mine && exit 0\n\
                 touch /tmp/begun; until test -e /tmp/go; do sleep 0.1; done";
    let repo = worker().guard(guard).guard_keys("room = \"require\"").start();
    let mut command = repo.runner_command(&["loop"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let shared = repo.path(".git/runner/room/tmp");
    wait_for("the guard", || shared.join("begun").exists());
    let commit = repo.git(&["commit-tree", "-p", "HEAD", "-m", "mine", "HEAD^{tree}"]);
    repo.git(&["update-ref", "refs/heads/runner/demo", &commit]);
    fs::write(shared.join("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("branch `runner/demo` was moved while the runner worked on it"), "{stderr}");
    repo.runner(&["loop"]).ok();
    assert!(repo.subjects(BRANCH).contains(&"mine".to_owned()));
    let kept = repo.git(&["for-each-ref", "--format=%(refname)", "refs/runner/demo/unpublished"]);
    assert_eq!(repo.git(&["show", &format!("{kept}:work")]), "work");
    assert_eq!(committed(&repo, "work"), "work", "the next session did it again");
    assert_sound(&repo);
}

#[test]
fn version_that_only_the_index_has_is_kept() {
    // With the session's work in the way, and on another branch.
    for on_dev in [false, true] {
        let repo = RunBuilder::new(RUNNER)
            .agent("echo work > work; [ -e \"$AROUND/there\" ] || { touch \"$AROUND/there\"; sleep 60; }; answer done")
            .start();
        repo.git(&["branch", "dev", "main"]);
        repo.kill_when(&["loop"], "there");
        if on_dev {
            repo.git(&["stash", "-q", "-u"]);
            repo.git(&["checkout", "-q", "dev"]);
        }
        repo.write("notes", "staged\n");
        repo.git(&["add", "notes"]);
        let staged = repo.git(&["rev-parse", ":notes"]);
        repo.write("notes", "edited since\n");
        repo.runner(&["loop"]).ok();
        let reachable = repo.git(&["rev-list", "--objects", "--no-object-names", "--all"]);
        assert!(reachable.contains(&staged), "{on_dev}: the staged version is lost");
        assert!(repo.git(&["for-each-ref", "refs/runner/demo/found"]).contains("found/"), "{on_dev}");
        assert_sound(&repo);
    }
}
