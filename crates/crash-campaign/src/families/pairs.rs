//! A crash, and a second crash while the next command recovers from the first.

use crate::families::{Family, calls_of, counted_folder};
use crate::injector::{CallClass, Fault, Injection, TraceOutcome, trace};
use crate::oracle::{Belongings, judge};
use crate::point::{PlannedPoint, PointSpec, PointVerdict};
use crate::random::Random;
use crate::scenarios::{FaultScenario, Workspace, find};
use testkit::test_repo::TestRepo;

/// How many second crashes follow each first one.
const SECONDS_PER_FIRST: usize = 2;

pub(super) fn families() -> Vec<Family> {
    vec![Family { name: "pairs", summary: "kill every process, then again during the recovery", points, run }]
}

/// For each first call, two second ones from a fixed sequence. A recovery does fewer calls than the command itself, so half of
/// the second calls are among the first few. A first call with the files of an earlier one starts the same recovery; that one
/// has two second calls already.
fn points(workspace: &Workspace, scenarios: &[FaultScenario]) -> Vec<PlannedPoint> {
    let mut points = Vec::new();
    let mut random = Random::new(14);
    for scenario in scenarios {
        let calls = calls_of(workspace, scenario, "mutating");
        let count = calls.len();
        for (first, call) in (1..).zip(calls) {
            for nth in 1..=SECONDS_PER_FIRST {
                let range = (count * nth).div_ceil(SECONDS_PER_FIRST);
                let second = 1 + random.below(range);
                let point = |first: usize| PointSpec::new("pairs", scenario.name, &[first, second]);
                let same_as = (call.first_with_state < first).then(|| point(call.first_with_state));
                points.push(PlannedPoint { spec: point(first), same_as });
            }
        }
    }
    points
}

fn run(workspace: &Workspace, point: &PointSpec) -> PointVerdict {
    let Some(scenario) = find(&point.subject) else {
        return PointVerdict::Skipped(format!("no scenario `{}`", point.subject));
    };
    let repo = workspace.copy(&scenario);
    let before = Belongings::read(&repo, scenario.runs);
    if !kill_at(&repo, scenario.command, point.number(0)).was_injected {
        return PointVerdict::NotReached;
    }
    let next = scenario.resume.first().copied().unwrap_or_default();
    // The second command may end before its call: then this is a single crash, which must be survived as well.
    kill_at(&repo, next, point.number(1));
    PointVerdict::of(judge(&repo, &scenario, &before))
}

/// Kills every process of a command at this mutating call.
pub(super) fn kill_at(repo: &TestRepo, args: &[&str], at: usize) -> TraceOutcome {
    let injection = Injection {
        class: CallClass::Mutating,
        root: counted_folder(repo),
        at,
        fault: Some(Fault::KillAll),
        observer: None,
    };
    trace(&repo.runner_command(args), injection)
}
