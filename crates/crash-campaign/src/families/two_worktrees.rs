//! Two runs in two linked work trees of one repository, side by side, each also killed at a random moment.

use std::process::{Child, Stdio};
use std::time::Duration;

use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use crate::families::Family;
use crate::oracle::{check_ledger, resume};
use crate::point::{PointSpec, PointVerdict};
use crate::pool::kill_processes_of;
use crate::scenarios::{WORK, Workspace};
use testkit::oracle::RunOracle;

/// How many pairs of loops run, each killed after another delay.
const ROUNDS: usize = 24;
const TASKS: usize = 4;
/// One more step of a round delays the kill by this much.
const DELAY_STEP: Duration = Duration::from_millis(40);

pub(super) fn families() -> Vec<Family> {
    vec![Family {
        name: "worktrees",
        summary: "two runs in two linked work trees, killed at different moments",
        points: |_, _| {
            (0..ROUNDS).map(|round| PointSpec::new("worktrees", "two-runs", &[round]).into()).collect()
        },
        run,
    }]
}

fn run(workspace: &Workspace, point: &PointSpec) -> PointVerdict {
    let first = prepare(&workspace.runner);
    let mut loops = [start_loop(&first, "work"), start_loop(&first, "second")];
    let round = point.number(0);
    // The first round runs to its end.
    if round > 0 {
        std::thread::sleep(DELAY_STEP * u32::try_from(round).unwrap_or(1));
        kill_processes_of(first.outside());
    }
    for child in &mut loops {
        let _ = child.wait();
    }
    let mut violations = Vec::new();
    // Both continue before either is judged: a lock in one work tree's own folder is not removed by a run in the other one.
    violations.extend(resume(&first, &[&["loop"]]));
    let mut loop_in_second = first.runner_command(&["loop"]);
    let output = testkit::test_repo::run(loop_in_second.current_dir(first.outside().join("second")));
    if output.code != Some(0) {
        violations.push(format!(
            "`runner loop` in the second: {:?}: {}",
            output.code,
            output.stderr.trim_end()
        ));
    }
    violations.extend(RunOracle::new(&first, "demo").violations());
    check_ledger(&first, &mut violations);
    let root = first.outside().join("second");
    let second = first.at(root);
    violations.extend(RunOracle::new(&second, "other").violations());
    for run in ["demo", "other"] {
        let log = second.try_git(&["log", "--format=%s", &format!("refs/heads/runner/{run}")]).stdout;
        let passes = log.lines().filter(|subject| subject.ends_with("guard=pass")).count();
        if passes != TASKS {
            violations.push(format!("run {run} has {passes} of {TASKS} passes"));
        }
    }
    PointVerdict::of(violations)
}

fn start_loop(repo: &TestRepo, folder: &str) -> Child {
    let mut command = repo.runner_command(&["loop"]);
    command.current_dir(repo.outside().join(folder));
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the loop")
}

/// A run in the main work tree and another one in a linked work tree, with a few tasks each.
fn prepare(runner: &str) -> TestRepo {
    let agent = format!("{}\nanswer done", WORK.replace("$HOME/ledger", "$HOME/ledger/$RUNNER_RUN_ID"));
    let repo = RunBuilder::new(runner).agent(&agent).file("old", "old\n").movable().start();
    repo.git(&["worktree", "add", "-q", "-b", "side", "../second", "main"]);
    let config = repo.read(".runner/state/config.toml");
    let root = repo.outside().join("second");
    let in_second = |args: &[&str]| {
        let mut command = repo.runner_command(args);
        testkit::test_repo::run(command.current_dir(&root)).ok()
    };
    in_second(&["init"]);
    std::fs::write(root.join(".runner/state/config.toml"), config).expect("a configuration");
    std::fs::write(root.join(".runner/GOAL.md"), "---\nid: other\n---\n\n# Other\n").expect("a goal");
    in_second(&["start"]);
    for task in 1..=TASKS {
        let title = format!("Task {task}");
        repo.runner(&["node", "add", "root", "--title", &title]).ok();
        in_second(&["node", "add", "root", "--title", &title]);
    }
    repo
}
