//! A crash at any point of `runner start`: the next start finishes it and loses nothing.

use testkit::test_repo::{TestRepo, run};

use crate::GOAL;
use crate::ready;

/// The failpoints of a start, in order.
const POINTS: [&str; 8] = [
    "start.commit",
    "publish.journal",
    "publish.branch",
    "publish.files",
    "publish.documents",
    "publish.head",
    "publish.index-lock",
    "publish.index",
];

fn crash_at(sandbox: &TestRepo, point: &str) {
    let output = run(sandbox.runner_command(&["start"]).env("RUNNER_TEST_CRASH_AT", point));
    assert_eq!((output.code, output.stdout.as_str()), (None, ""), "{point} was not reached");
}

/// After a crash the run can be resumed, the work tree is clean, and no file of the crash is left.
fn assert_sound(sandbox: &TestRepo, point: &str) {
    assert_eq!(sandbox.runner(&["start"]).ok().value("kind"), Some("resumed"), "{point}");
    assert_eq!(sandbox.runner(&["validate"]).ok().value("valid"), Some("true problems=0"), "{point}");
    assert_eq!(sandbox.git(&["status", "--porcelain", "-uall"]), "", "{point}");
    assert_eq!(sandbox.git(&["fsck", "--strict", "--no-dangling"]), "", "{point}");
    let left: Vec<_> = std::fs::read_dir(sandbox.path(".git/runner"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "lock" && name != "recovered.json")
        .collect();
    assert!(left.is_empty(), "{point}: {left:?} left behind");
    assert!(!sandbox.path(".git/index.lock").exists(), "{point}");
}

#[test]
fn a_new_run_survives_a_crash_at_every_point() {
    for point in POINTS {
        let sandbox = ready();
        let main = sandbox.git(&["rev-parse", "main"]);
        crash_at(&sandbox, point);
        let next = sandbox.runner(&["start"]).ok();
        assert_eq!(next.value("recovered").is_some(), point != "start.commit", "{point}");
        assert_sound(&sandbox, point);
        let run = next.value("run_id").unwrap();
        assert_eq!(
            sandbox.subjects("HEAD"),
            [format!("chore(loop): start run {run}"), "root".to_owned()],
            "{point}"
        );
        assert_eq!(sandbox.read(".runner/GOAL.md"), format!("---\nid: {run}\n---\n\n{GOAL}"), "{point}");
        assert_eq!(sandbox.git(&["rev-parse", "main"]), main, "{point}");
    }
}

#[test]
fn a_switch_to_a_run_survives_a_crash_at_every_point() {
    for point in POINTS {
        let sandbox = ready();
        sandbox.write(".runner/GOAL.md", format!("---\nid: mine\n---\n{GOAL}"));
        sandbox.commit_all("set up on main");
        sandbox.runner(&["start"]).ok();
        sandbox.write("work.txt", "by the run\n");
        sandbox.commit_all("run's work");
        sandbox.git(&["checkout", "-q", "main"]);
        sandbox.write("README.md", "by a person\n");
        sandbox.write("other.txt", "by a person\n");
        sandbox.commit_all("main's work");
        // A change that the start must commit.
        let config = sandbox.read(".runner/state/config.toml").replace("= 200", "= 77");
        sandbox.write(".runner/state/config.toml", &config);

        crash_at(&sandbox, point);
        sandbox.runner(&["start"]).ok();
        assert_sound(&sandbox, point);
        assert_eq!(sandbox.git(&["branch", "--show-current"]), "runner/mine", "{point}");
        assert_eq!(sandbox.read(".runner/state/config.toml"), config, "{point}");
        assert_eq!(
            (sandbox.read("README.md").as_str(), sandbox.path("other.txt").exists()),
            ("hello\n", false),
            "{point}"
        );
        assert_eq!(sandbox.subjects("runner/mine").len(), 5, "{point}");
        assert_eq!(sandbox.git(&["for-each-ref", "refs/runner"]), "", "{point}: no stray files were stored");
    }
}

#[test]
fn work_done_after_the_crash_is_stored() {
    let sandbox = ready();
    crash_at(&sandbox, "publish.branch");
    sandbox.write("README.md", "edited before anyone ran the runner again\n");
    sandbox.write("new.txt", "new\n");
    let output = sandbox.runner(&["start"]).ok();
    let line = output.value("recovered").unwrap();
    let reference = line.split_once("saved=").unwrap().1;
    assert_eq!(sandbox.git(&["show", &format!("{reference}:new.txt")]), "new");
    assert!(sandbox.git(&["show", &format!("{reference}:README.md")]).starts_with("edited before"));
    assert_sound(&sandbox, "publish.branch");
}

#[test]
fn a_crash_during_recovery_is_recovered_too() {
    for first in POINTS.into_iter().skip(1) {
        for second in ["publish.documents", "publish.head", "publish.index-lock", "publish.index"] {
            let sandbox = ready();
            crash_at(&sandbox, first);
            crash_at(&sandbox, second);
            sandbox.runner(&["start"]).ok();
            assert_sound(&sandbox, &format!("{first}, {second}"));
        }
    }
}

#[test]
fn status_and_validate_report_an_unfinished_start() {
    let sandbox = ready();
    crash_at(&sandbox, "publish.head");
    assert_eq!(sandbox.runner(&["status"]).ok().value("state"), Some("crashed"));
    assert!(sandbox.runner(&["validate"]).stdout.contains("interrupted"));
}

#[test]
fn a_start_refuses_the_journal_of_a_newer_runner() {
    let sandbox = ready();
    sandbox.write(".git/runner/journal.json", "{\"format\": 99}\n");
    let refused = sandbox.runner(&["start"]).refused(1);
    assert!(refused.contains("another version of runner") && refused.contains("journal.json"), "{refused}");
    assert_eq!(sandbox.branches().len(), 1);
}

#[test]
fn recovery_leaves_a_branch_alone_that_moved_since() {
    let sandbox = ready();
    crash_at(&sandbox, "publish.branch");
    let branch = sandbox
        .branches()
        .into_iter()
        .find_map(|line| line.strip_prefix("runner/").map(str::to_owned))
        .unwrap();
    let name = format!("runner/{}", branch.split(' ').next().unwrap());
    sandbox.git(&["update-ref", &format!("refs/heads/{name}"), "main"]);
    sandbox.runner(&["start"]).ok();
    assert_sound(&sandbox, "moved");
}
