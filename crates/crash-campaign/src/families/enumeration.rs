//! A kill at every call that changes a file: of all processes, or of the runner alone. And processes that outlive the runner.

use testkit::oracle::assert_no_processes_of;

use crate::families::{Family, calls_of, counted_folder};
use crate::injector::{CallClass, Fault, Injection, trace};
use crate::oracle::{Belongings, judge, resume};
use crate::point::{PlannedPoint, PointSpec, PointVerdict};
use crate::scenarios::{FaultScenario, Workspace, find};

pub(super) fn families() -> Vec<Family> {
    vec![
        Family {
            name: "no-fault",
            summary: "run each scenario without a fault, in a copy of its folder",
            points: |_, scenarios| {
                let none: &[usize] = &[];
                scenarios
                    .iter()
                    .map(|scenario| PointSpec::new("no-fault", scenario.name, none).into())
                    .collect()
            },
            run: run_without_fault,
        },
        Family {
            name: "kill-all",
            summary: "kill every process at each mutating call",
            points: kill_all_points,
            run: |workspace, point| run(workspace, point, Fault::KillAll),
        },
        Family {
            name: "kill-runner",
            summary: "kill the runner alone at each mutating call",
            points: kill_runner_points,
            run: |workspace, point| run(workspace, point, Fault::KillRunner),
        },
        Family {
            name: "orphans",
            summary: "kill the runner, stop its git child, run the next command, let the child continue",
            points: orphan_points,
            run: |workspace, point| {
                let hook = find(&point.subject).and_then(|scenario| scenario.resume.first().copied());
                let hook = hook.unwrap_or_default().iter().map(|word| (*word).to_owned()).collect();
                run(workspace, point, Fault::HoldCaller(hook))
            },
        },
    ]
}

/// Runs the scenario's command, which must succeed, and judges the result.
fn run_without_fault(workspace: &Workspace, point: &PointSpec) -> PointVerdict {
    let Some(scenario) = find(&point.subject) else {
        return PointVerdict::Skipped(format!("no scenario `{}`", point.subject));
    };
    let repo = workspace.copy(&scenario);
    let before = Belongings::read(&repo, scenario.runs);
    let mut violations = resume(&repo, &[scenario.command]);
    // A loop in the background.
    assert_no_processes_of(repo.outside());
    violations.extend(judge(&repo, &scenario, &before));
    PointVerdict::of(violations)
}

/// One point per mutating call of each scenario. A kill leaves nothing but the disk, so two with the same files are the same.
fn kill_all_points(workspace: &Workspace, scenarios: &[FaultScenario]) -> Vec<PlannedPoint> {
    let mut points = Vec::new();
    for scenario in scenarios {
        for (number, call) in (1..).zip(calls_of(workspace, scenario, "mutating")) {
            let point = |at: usize| PointSpec::new("kill-all", scenario.name, &[at]);
            let same_as = (call.first_with_state < number).then(|| point(call.first_with_state));
            points.push(PlannedPoint { spec: point(number), same_as });
        }
    }
    points
}

/// One point per mutating call. While the runner is the only process, its death is the death of all.
fn kill_runner_points(workspace: &Workspace, scenarios: &[FaultScenario]) -> Vec<PlannedPoint> {
    let mut points = Vec::new();
    for scenario in scenarios {
        for (number, call) in (1..).zip(calls_of(workspace, scenario, "mutating")) {
            let same = PointSpec::new("kill-all", scenario.name, &[call.first_with_state]);
            let spec = PointSpec::new("kill-runner", scenario.name, &[number]);
            points.push(PlannedPoint { spec, same_as: call.is_alone.then_some(same) });
        }
    }
    points
}

fn orphan_points(workspace: &Workspace, scenarios: &[FaultScenario]) -> Vec<PlannedPoint> {
    let mut points = Vec::new();
    for scenario in scenarios {
        for (index, call) in calls_of(workspace, scenario, "mutating").iter().enumerate() {
            if call.program == "git" {
                points.push(PointSpec::new("orphans", scenario.name, &[index + 1]).into());
            }
        }
    }
    points
}

/// Injects the fault into the scenario's command and judges the result.
fn run(workspace: &Workspace, point: &PointSpec, fault: Fault) -> PointVerdict {
    let Some(scenario) = find(&point.subject) else {
        return PointVerdict::Skipped(format!("no scenario `{}`", point.subject));
    };
    let repo = workspace.copy(&scenario);
    let before = Belongings::read(&repo, scenario.runs);
    let injection = Injection {
        class: CallClass::Mutating,
        root: counted_folder(&repo),
        at: point.number(0),
        fault: Some(fault),
        observer: None,
    };
    let outcome = trace(&repo.runner_command(scenario.command), injection);
    if !outcome.was_injected {
        return PointVerdict::NotReached;
    }
    PointVerdict::of(judge(&repo, &scenario, &before))
}
