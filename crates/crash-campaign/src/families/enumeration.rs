//! A kill at every call that changes a file: of all processes, or of the runner alone. And processes that outlive the runner.

use crate::families::{Family, calls_of};
use crate::injector::{CallClass, Fault, Injection, trace};
use crate::oracle::{Belongings, judge, resume};
use crate::point::{PointSpec, PointVerdict};
use crate::scenarios::{FaultScenario, Workspace, find};

pub(super) fn families() -> Vec<Family> {
    vec![
        Family {
            name: "no-fault",
            summary: "run each scenario without a fault, in a copy of its folder",
            points: |_, scenarios| {
                let none: &[usize] = &[];
                scenarios.iter().map(|scenario| PointSpec::new("no-fault", scenario.name, none)).collect()
            },
            run: run_without_fault,
        },
        Family {
            name: "kill-all",
            summary: "kill every process at each mutating call",
            points: |workspace, scenarios| every_call("kill-all", workspace, scenarios),
            run: |workspace, point| run(workspace, point, Fault::KillAll),
        },
        Family {
            name: "kill-runner",
            summary: "kill the runner alone at each mutating call",
            points: |workspace, scenarios| every_call("kill-runner", workspace, scenarios),
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
    violations.extend(judge(&repo, &scenario, &before));
    PointVerdict::of(violations)
}

/// One point per mutating call of each scenario.
pub(super) fn every_call(family: &str, workspace: &Workspace, scenarios: &[FaultScenario]) -> Vec<PointSpec> {
    let mut points = Vec::new();
    for scenario in scenarios {
        let count = calls_of(workspace, scenario, "mutating").len();
        points.extend((1..=count).map(|at| PointSpec::new(family, scenario.name, &[at])));
    }
    points
}

fn orphan_points(workspace: &Workspace, scenarios: &[FaultScenario]) -> Vec<PointSpec> {
    let mut points = Vec::new();
    for scenario in scenarios {
        for (index, call) in calls_of(workspace, scenario, "mutating").iter().enumerate() {
            if call.program == "git" {
                points.push(PointSpec::new("orphans", scenario.name, &[index + 1]));
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
        root: repo.root(),
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
