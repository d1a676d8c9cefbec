//! A start that dies at any point is finished by the next one: nothing lost, nothing half-done.

use testkit::test_repo::{TestRepo, run};

use crate::GOAL;
use crate::ready;

/// The points, in the order in which a start reaches them.
const POINTS: [&str; 8] = [
    "start.commit",
    "move.journal",
    "move.branch",
    "move.files",
    "move.documents",
    "move.head",
    "move.index-lock",
    "move.index",
];

fn crash_at(sandbox: &TestRepo, point: &str) {
    let ran = run(sandbox.runner_command(&["start"]).env("RUNNER_TEST_CRASH_AT", point));
    assert_eq!((ran.code, ran.stdout.as_str()), (None, ""), "{point} was not reached");
}

/// After whatever happened: the run stands, everything is clean, and no trace of the crash is left.
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
        // A change that has to come along.
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
        assert_eq!(sandbox.git(&["for-each-ref", "refs/runner"]), "", "{point}: nothing foreign was found");
    }
}

#[test]
fn work_done_after_the_crash_is_kept() {
    let sandbox = ready();
    crash_at(&sandbox, "move.branch");
    sandbox.write("README.md", "edited before anyone ran the runner again\n");
    sandbox.write("new.txt", "new\n");
    let told = sandbox.runner(&["start"]).ok();
    let line = told.value("recovered").unwrap();
    let reference = line.split_once("saved=").unwrap().1;
    assert_eq!(sandbox.git(&["show", &format!("{reference}:new.txt")]), "new");
    assert!(sandbox.git(&["show", &format!("{reference}:README.md")]).starts_with("edited before"));
    assert_sound(&sandbox, "move.branch");
}

#[test]
fn a_crash_during_recovery_is_recovered_too() {
    for first in POINTS.into_iter().skip(1) {
        for second in ["move.documents", "move.head", "move.index-lock", "move.index"] {
            let sandbox = ready();
            crash_at(&sandbox, first);
            crash_at(&sandbox, second);
            sandbox.runner(&["start"]).ok();
            assert_sound(&sandbox, &format!("{first}, {second}"));
        }
    }
}

#[test]
fn every_command_tells_of_an_unfinished_start() {
    let sandbox = ready();
    crash_at(&sandbox, "move.head");
    assert_eq!(sandbox.runner(&["status"]).ok().value("state"), Some("interrupted"));
    assert!(sandbox.runner(&["validate"]).stdout.contains("interrupted"));
}

#[test]
fn a_journal_of_a_newer_runner_stops_everything() {
    let sandbox = ready();
    sandbox.write(".git/runner/journal.json", "{\"format\": 99}\n");
    let refused = sandbox.runner(&["start"]).refused(1);
    assert!(refused.contains("another version of runner") && refused.contains("journal.json"), "{refused}");
    assert_eq!(sandbox.branches().len(), 1);
}

#[test]
fn a_branch_that_moved_in_the_meantime_is_left_alone() {
    let sandbox = ready();
    crash_at(&sandbox, "move.branch");
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
