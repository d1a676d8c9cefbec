//! `runner start` in repositories that differ from what it expects: branches in the way, touched files, partial clones, and
//! attributes that convert files.

use std::fs::{File, FileTimes};
use std::time::{Duration, SystemTime};

use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::GOAL;
use crate::RUNNER;
use crate::ready;

const JOURNAL: &str = ".git/runner/journal.json";

fn with_id(id: &str) -> TestRepo {
    let sandbox = ready();
    sandbox.write(".runner/GOAL.md", format!("---\nid: {id}\n---\n{GOAL}"));
    sandbox
}

#[test]
fn a_branch_below_the_runs_name_is_refused_before_anything_changes() {
    let sandbox = with_id("r1");
    sandbox.git(&["branch", "runner/r1/sub"]);
    let before = sandbox.branches();
    let message = sandbox.runner(&["start"]).refused(2);
    assert!(message.contains("`runner/r1/sub` prevents a branch named `runner/r1`"), "{message}");
    assert!(message.contains("git branch -m runner/r1/sub another-name"), "{message}");
    assert!(!sandbox.path(JOURNAL).exists());
    assert_eq!((sandbox.branches(), sandbox.git(&["branch", "--show-current"])), (before, "main".to_owned()));

    // The hint works, and so does another id.
    sandbox.git(&["branch", "-m", "runner/r1/sub", "other"]);
    sandbox.runner(&["start"]).ok();
}

#[test]
fn a_lock_on_the_runs_branch_is_refused_before_the_journal() {
    let sandbox = with_id("r1");
    std::fs::create_dir_all(sandbox.path(".git/refs/heads/runner")).unwrap();
    sandbox.write(".git/refs/heads/runner/r1.lock", "");
    let message = sandbox.runner(&["start"]).refused(2);
    assert!(message.contains("git cannot create or move branch `runner/r1`"), "{message}");
    assert!(!sandbox.path(JOURNAL).exists());
}

#[test]
fn a_touched_file_does_not_block_a_switch_of_branches() {
    let sandbox = with_id("r1");
    sandbox.runner(&["start"]).ok();
    sandbox.write("README.md", "of the run\n");
    sandbox.commit_all("work on the run");
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.write(".runner/GOAL.md", format!("---\nid: r1\n---\n{GOAL}"));
    let times = FileTimes::new().set_modified(SystemTime::now() - Duration::from_hours(1));
    File::options().write(true).open(sandbox.path("README.md")).unwrap().set_times(times).unwrap();
    sandbox.runner(&["start"]).ok();
    assert_eq!(sandbox.read("README.md"), "of the run\n");
}

#[test]
fn a_partial_and_sparse_clone_works() {
    let origin = TestRepo::with_commit(RUNNER);
    for name in ["a/one.txt", "b/two.txt", "b/deep/three.txt"] {
        origin.write(name, format!("content of {name}\n"));
    }
    origin.commit_all("files");
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let outside = TestRepo::empty(RUNNER);
    let clone = outside.outside().join("clone");
    let url = format!("file://{}", origin.root().display());
    outside.git(&["clone", "-q", "--filter=blob:none", "--sparse", &url, clone.to_str().unwrap()]);
    let sandbox = outside.at(clone);
    sandbox.git(&["config", "user.name", "U"]);
    sandbox.git(&["config", "user.email", "u@localhost"]);
    let missing = sandbox.git(&["rev-list", "--objects", "--all", "--missing=print"]);
    assert!(missing.lines().any(|line| line.starts_with('?')), "the clone lacks no object: {missing}");
    sandbox.runner(&["init"]).ok();
    sandbox.write(".runner/GOAL.md", GOAL);
    sandbox.runner(&["start"]).ok();
    assert_eq!(sandbox.git(&["diff", "--name-only", "HEAD~1", "HEAD", "--", ".", ":!.runner"]), "");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_clone_that_lacks_objects_of_a_run_is_told_to_fetch_them() {
    let origin = RunBuilder::new(RUNNER).agent("echo work > work; answer done").start();
    origin.runner(&["loop"]).ok();
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", origin.root().display());
    for filter in ["blob:none", "tree:0"] {
        let outside = TestRepo::empty(RUNNER);
        let clone = outside.outside().join("clone");
        let option = format!("--filter={filter}");
        outside.git(&["clone", "-q", "--no-checkout", &option, &url, clone.to_str().unwrap()]);
        let sandbox = outside.at(clone);
        let commands = [&["verify", "demo"][..], &["replay", "demo"], &["show", "1"], &["diff", "1"]];
        for command in commands {
            let message = sandbox.runner(command).refused(2);
            assert!(message.contains("is missing from this clone"), "{filter} {command:?}: {message}");
            assert!(!message.contains("promisor") && !message.contains("lazy"), "{message}");
        }
        let message = sandbox.runner(&["verify", "demo"]).refused(2);
        let hint = message.lines().find_map(|line| line.split_once("hint: fetch all objects: ")).unwrap().1;
        run(sandbox.command("sh").args(["-c", hint])).ok();
        for command in commands.iter().filter(|command| command.first() != Some(&"replay")) {
            sandbox.runner(command).ok();
        }
    }
}

#[test]
fn a_work_tree_that_only_core_worktree_connects_is_refused() {
    let sandbox = TestRepo::with_commit(RUNNER);
    let elsewhere = sandbox.outside().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    sandbox.git(&["config", "core.worktree", elsewhere.to_str().unwrap()]);
    for command in ["init", "start", "status"] {
        let message = sandbox.runner(&[command]).refused(2);
        assert!(message.contains("does not lead to its git folder"), "{message}");
        assert!(message.contains("unset core.worktree"), "{message}");
    }
    // Another repository there is not touched in its place.
    let other = TestRepo::with_commit(RUNNER);
    sandbox.git(&["config", "core.worktree", other.root().to_str().unwrap()]);
    sandbox.runner(&["init"]).refused(2);
    assert!(!other.path(".runner").exists());
}

#[test]
fn the_logs_of_a_run_are_ignored_on_every_branch() {
    let sandbox = RunBuilder::new(RUNNER).agent("echo x > work.txt; answer done").start();
    let exclude = sandbox.read(".git/info/exclude");
    sandbox.runner(&["loop"]).ok();
    assert!(sandbox.path(".runner/iterations/demo/0001/meta.json").exists());
    sandbox.git(&["checkout", "-q", "main"]);
    assert_eq!(sandbox.git(&["status", "--porcelain", "-uall"]), "");
    assert_eq!(sandbox.read(".git/info/exclude"), exclude, "the block is there once");

    // In a clone `loop` adds the block, and keeps the user's lines.
    let clone = sandbox.outside().join("clone");
    sandbox.git(&["clone", "-q", sandbox.root().to_str().unwrap(), clone.to_str().unwrap()]);
    let sandbox = sandbox.at(clone);
    sandbox.git(&["checkout", "-q", "runner/demo"]);
    sandbox.write(".git/info/exclude", "*.mine");
    sandbox.runner(&["loop"]).ok();
    let text = sandbox.read(".git/info/exclude");
    assert!(text.starts_with("*.mine\n# BEGIN runner") && text.contains("/.runner/iterations\n"), "{text}");
}

#[test]
fn attributes_of_the_repository_do_not_convert_the_runners_files() {
    let attributes = ".runner/** text eol=crlf ident\n.runner/state/*.json working-tree-encoding=UTF-16\n";
    let script = format!("printf '{}' > .gitattributes; answer done", attributes.replace('\n', "\\n"));
    let sandbox = RunBuilder::new(RUNNER).agent(&script).start();
    assert!(sandbox.git(&["ls-files", ".runner"]).contains(".runner/.gitattributes"));
    sandbox.runner(&["loop"]).ok();
    let clone = sandbox.outside().join("clone");
    sandbox.git(&["clone", "-q", sandbox.root().to_str().unwrap(), clone.to_str().unwrap()]);
    let tree = sandbox.read_bytes(".runner/state/tree.json");
    let clone = sandbox.at(clone);
    assert_eq!(clone.read_bytes(".runner/state/tree.json"), tree);
    assert_eq!(clone.runner(&["validate"]).ok().value("valid"), Some("true problems=0"));
    assert_eq!(clone.git(&["status", "--porcelain"]), "");
}
