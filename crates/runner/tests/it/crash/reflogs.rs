//! Reflogs survive a session that could write to `.git`, whatever becomes of the runner.

use std::collections::BTreeSet;
use std::fs;

use testkit::oracle::assert_sound;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::TestRepo;

use crate::RUNNER;

const KILL_RUNNER: &str = "kill -9 $(ps -o ppid= -p $PPID) $PPID; sleep 30";
const DAMAGES: [&str; 3] = [
    "rm -rf $LOGS",
    "find $LOGS -type f -exec truncate -s 0 {} +",
    "git reflog expire --expire=now --all; git gc -q --prune=now",
];

/// A run with a branch `dev` of the user's, whose log has this many lines.
fn with_dev_log(agent: &str, lines: usize) -> TestRepo {
    let repo = RunBuilder::new(RUNNER).agent(agent).start();
    repo.git(&["branch", "dev", "main"]);
    let commit = repo.git(&["rev-parse", "main"]);
    let line = |number: usize| format!("{commit} {commit} u <u@localhost> {number} +0000\tline {number}\n");
    let log: String = (1..=lines).map(line).collect();
    repo.write(".git/logs/refs/heads/dev", log);
    repo
}

/// The lines of the logs of HEAD, of the run's branch and of those of the user.
fn reflog_lines(repo: &TestRepo) -> BTreeSet<String> {
    let logs = ["HEAD", "refs/heads/main", "refs/heads/dev", "refs/heads/runner/demo"];
    let read = |name: &str| fs::read_to_string(repo.path(&format!(".git/logs/{name}"))).unwrap_or_default();
    let lines = |name: &str| read(name).lines().map(|line| format!("{name}: {line}")).collect::<Vec<_>>();
    logs.iter().flat_map(|name| lines(name)).collect()
}

fn assert_kept(before: &BTreeSet<String>, repo: &TestRepo) {
    let now = reflog_lines(repo);
    let lost: Vec<_> = before.difference(&now).take(5).collect();
    assert!(
        lost.is_empty(),
        "{} of {} lines are lost: {lost:?}",
        before.difference(&now).count(),
        before.len()
    );
    assert!(before.len() >= 5, "{before:?}");
}

#[test]
fn reflogs_survive_an_agent_that_destroys_them() {
    // The journal holds a short log, a copy in the runner's folder a long one.
    for lines in [3, 300] {
        for damage in DAMAGES {
            let damage = damage.replace("$LOGS", ".git/logs");
            let repo = with_dev_log(&format!("{damage}; echo work > work; answer done"), lines);
            let before = reflog_lines(&repo);
            repo.runner(&["loop"]).ok();
            assert_kept(&before, &repo);
            assert_eq!(
                repo.git(&["reflog", "show", "dev", "--format=%gs"]).lines().count(),
                lines,
                "{damage}"
            );
            assert_sound(&repo);
        }
    }
}

#[test]
fn reflogs_survive_an_agent_that_destroys_them_and_kills_the_runner() {
    for lines in [3, 300] {
        for damage in DAMAGES {
            let damage = damage.replace("$LOGS", ".git/logs");
            let repo = with_dev_log(&format!("{damage}; echo work > work; {KILL_RUNNER}"), lines);
            let before = reflog_lines(&repo);
            assert_eq!(repo.runner(&["loop"]).code, None);
            repo.replace_agent("echo more > more; answer done");
            repo.runner(&["loop"]).ok();
            assert_kept(&before, &repo);
            assert_sound(&repo);
        }
    }
}

#[test]
fn reflogs_survive_in_linked_work_trees() {
    let damage = "rm -rf $(git rev-parse --git-dir)/logs $(git rev-parse --git-common-dir)/logs";
    let repo = with_dev_log(&format!("{damage}; echo work > work; answer done"), 300);
    repo.git(&["switch", "-q", "main"]);
    repo.git(&["worktree", "add", "-q", "../second", BRANCH]);
    let own = ".git/worktrees/second/logs/HEAD";
    let (before, before_own) = (reflog_lines(&repo), repo.read(own));
    let (first, second) = (repo.root().to_owned(), repo.outside().join("second"));
    let repo = repo.at(second);
    repo.runner(&["loop"]).ok();
    assert_sound(&repo);
    let repo = repo.at(first);
    assert_kept(&before, &repo);
    let now = repo.read(own);
    assert!(!before_own.is_empty() && before_own.lines().all(|line| now.contains(line)), "{now}");
}

#[test]
fn reflog_of_a_sandboxed_session_is_left_as_it_is() {
    let repo = RunBuilder::new(RUNNER)
        .agent("touch ~/gate/session; while ! test -e ~/gate/go; do sleep 0.01; done; echo work > work; answer done")
        .executor_keys("sandbox = \"require\"\nwritable = [\"~/gate\"]")
        .guard_keys("room = \"require\"")
        .start();
    repo.git(&["branch", "dev", "main"]);
    let gate = repo.outside().join("home/gate");
    fs::create_dir_all(&gate).unwrap();
    let mut child = repo.runner_command(&["loop"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    testkit::processes::wait_for("the session", || gate.join("session").exists());
    // Only the user can have done this.
    repo.git(&["reflog", "expire", "--expire=now", "dev"]);
    fs::write(gate.join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(repo.read(".git/logs/refs/heads/dev"), "");
    assert!(!repo.path(".git/runner/reflogs").exists());
    assert_sound(&repo);
}

/// Git refuses a branch `topic` beside `topic/part`.
#[test]
fn branch_whose_name_is_taken_keeps_its_commit_and_does_not_stop_the_run() {
    for rename in ["git branch -m topic topic/part", "git branch -m topic topic/part; git pack-refs --all"] {
        let commit = "git checkout -q topic/part; echo x > x; git add x; git -c user.name=u -c user.email=u commit -qm mine; \
            git rev-parse HEAD > $AROUND/tip; git checkout -q runner/demo";
        let agent =
            format!("test -e $AROUND/tip || {{ {rename}; {commit}; }}; echo work > work; answer done");
        let repo = RunBuilder::new(RUNNER).agent(&agent).start();
        repo.git(&["branch", "topic", "main"]);
        repo.runner(&["loop"]).ok();
        let tip = fs::read_to_string(repo.outside().join("tip")).unwrap();
        assert_eq!(repo.git(&["rev-parse", "topic/part"]), tip.trim_end(), "{rename}");
        let kept = repo.git(&["rev-parse", "refs/runner/demo/moved/0001/heads/topic"]);
        assert_eq!(kept, repo.git(&["rev-parse", "main"]), "{rename}");
        assert_sound(&repo);
    }
}
