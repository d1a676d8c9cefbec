//! The kinds of faults. Each family lists its points and runs one of them.

mod enumeration;
mod errors;
mod failing_git;
mod hostile_agents;
mod pairs;
mod power_cuts;
mod repository_shapes;
mod two_worktrees;
mod user_work;

pub(crate) use power_cuts::{CutArgs, judge_cut};

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use testkit::test_repo::TestRepo;

use crate::point::{PlannedPoint, PointSpec, PointVerdict};
use crate::scenarios::{FaultScenario, Workspace};

/// One kind of fault.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// What the family does, for the list of families.
    pub(crate) summary: &'static str,
    /// The points for these scenarios.
    pub(crate) points: fn(&Workspace, &[FaultScenario]) -> Vec<PlannedPoint>,
    pub(crate) run: fn(&Workspace, &PointSpec) -> PointVerdict,
}

/// Judges the points of a scenario in one traced run, and prints them as [`crate::sweep::parse`] reads them. Of the different
/// ones, it judges every K-th.
pub(crate) type Sweep = fn(&Workspace, &FaultScenario, usize);

/// The sweep of a family that has one.
pub(crate) fn sweep_of(family: &str) -> Option<Sweep> {
    match family {
        "kill-all" => {
            Some(|workspace, scenario, every| crate::sweep::run(workspace, "kill-all", scenario, every))
        }
        _ => power_cuts::sweep_of(family),
    }
}

pub(crate) fn all() -> Vec<Family> {
    let mut all = enumeration::families();
    all.extend(errors::families());
    all.extend(pairs::families());
    all.extend(power_cuts::families());
    all.extend(failing_git::families());
    all.extend(repository_shapes::families());
    all.extend(hostile_agents::families());
    all.extend(user_work::families());
    all.extend(two_worktrees::families());
    all
}

/// The folder below which calls count: the work tree, or for a linked one also the repository beside it.
pub(crate) fn counted_folder(repo: &TestRepo) -> &Path {
    if repo.path(".git").is_file() { repo.outside() } else { repo.root() }
}

/// A counted call of a scenario's command, as `crash-campaign calls` prints it.
#[derive(Clone, Debug)]
pub(crate) struct ListedCall {
    pub(crate) program: String,
    /// The number of the first call before which the files were the same. Only for mutating calls.
    pub(crate) first_with_state: usize,
    /// Whether the runner was the only process that can change files.
    pub(crate) is_alone: bool,
}

/// The counted calls of a scenario's command without a fault; none if it fails, which the family `no-fault` reports. Another
/// process counts them once per campaign, because a tracer waits for all its children.
pub(crate) fn calls_of(workspace: &Workspace, scenario: &FaultScenario, class: &str) -> Vec<ListedCall> {
    let cache = workspace.templates().join(format!("{}.{class}", scenario.name));
    if !cache.exists() {
        let exe = std::env::current_exe().expect("the path of this program");
        let mut command = Command::new(exe);
        command.args(["calls", scenario.name, class, "--runner", &workspace.runner]);
        command.arg("--templates").arg(workspace.templates());
        let output = testkit::test_repo::run(&mut command);
        let is_complete = output.code == Some(0);
        let calls = if is_complete { output.stdout } else { String::new() };
        fs::write(&cache, calls).expect("the list of calls");
    }
    parse_calls(&fs::read_to_string(cache).expect("the list of calls"))
}

fn parse_calls(text: &str) -> Vec<ListedCall> {
    let mut first_with = BTreeMap::new();
    let mut calls = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.split(' ');
        let program = words.next().unwrap_or_default().to_owned();
        let state = words.nth(1).unwrap_or_default();
        let first_with_state = *first_with.entry(state).or_insert(number);
        calls.push(ListedCall { program, first_with_state, is_alone: words.next() == Some("alone") });
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::{all, parse_calls, sweep_of};

    /// A sweep judges by other code than a point, so a mutant must be tried against each.
    #[test]
    fn every_sweep_has_a_mutant_that_it_must_find() {
        let script = include_str!("../../../scripts/crash-mutants");
        let (_, rows) = script.split_once("sweeps_of() {").unwrap();
        let (rows, _) = rows.split_once("esac").unwrap();
        let swept: Vec<_> =
            all().iter().map(|family| family.name).filter(|name| sweep_of(name).is_some()).collect();
        assert!(swept.len() >= 3, "{swept:?}");
        for family in swept {
            assert!(rows.contains(&format!("--family {family}\"")), "no sweep of {family} in: {rows}");
        }
        for option in ["--until-bad", "--every", "--sample"] {
            assert!(!rows.contains(option), "{option} turns sweeps off");
        }
    }

    #[test]
    fn a_call_after_one_that_changed_nothing_has_the_state_of_that_one() {
        let calls = parse_calls(
            "runner write aa alone /f\ngit fsync bb beside /f\nrunner rename bb alone /f -> /g\nrunner unlink aa alone /h\n",
        );
        let read: Vec<_> =
            calls.iter().map(|call| (call.program.as_str(), call.first_with_state, call.is_alone)).collect();
        assert_eq!(read, [("runner", 1, true), ("git", 2, false), ("runner", 2, true), ("runner", 1, true)]);
    }
}
