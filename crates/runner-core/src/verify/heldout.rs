//! The rules for held-out checks: red first, green at the pass, with the digest that the last start recorded.

use super::Rule;
use super::compare::{Difference, shown};
use crate::config::{Config, VacuousPolicy};
use crate::model::heldout::{HeldoutCheck, HeldoutRecord, HeldoutResult, HeldoutTask};
use crate::model::run_state::RunState;
use crate::step::{CheckEvidence, GreenRun, Job, Outcome};

/// Held-out checks that a commit leaves out, that have another digest, or that contradict its outcome. `evidence` is what the commit
/// must follow from.
pub(super) fn differences(
    job: &Job,
    records: &[HeldoutRecord],
    evidence: &CheckEvidence,
    outcome: Outcome,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    for task in &job.task.heldout {
        differences.extend(red_difference(task, records));
        differences.extend(digest_differences(task, records));
    }
    differences.extend(vacuous_differences(job, evidence));
    if evidence.green.is_green() && !matches!(evidence.green, GreenRun::Interrupted { .. }) {
        differences.extend(green_differences(job, records, outcome));
    }
    differences
}

/// A start that records held-out checks although its configuration names no folder of them.
pub(super) fn unconfigured_difference(config: Option<&Config>, state: &RunState) -> Option<Difference> {
    let is_configured = config.is_none_or(|config| config.checks.heldout.is_some());
    let first = state.heldout.first().filter(|_| !is_configured)?;
    let found = format!("held-out checks of `{}`", first.node);
    Some(Difference::new(Rule::HeldoutFrozen, "no held-out checks without a folder", found))
}

fn record_of<'r>(
    task: &HeldoutTask,
    check: &HeldoutCheck,
    records: &'r [HeldoutRecord],
) -> Option<&'r HeldoutRecord> {
    records.iter().find(|record| record.node == task.node && record.name == check.name)
}

fn red_difference(task: &HeldoutTask, records: &[HeldoutRecord]) -> Option<Difference> {
    let is_missing = |check: &HeldoutCheck| record_of(task, check, records).is_none();
    (task.is_red_due() && task.checks.iter().any(is_missing)).then(|| {
        let expected = format!("how the held-out checks of `{}` ended before the work", task.node);
        Difference::new(Rule::HeldoutRed, expected, "no record of it")
    })
}

fn digest_differences(task: &HeldoutTask, records: &[HeldoutRecord]) -> Vec<Difference> {
    let wrong = records.iter().filter(|record| record.node == task.node && record.digest != task.digest);
    wrong
        .map(|record| {
            let expected = format!("held-out checks with the digest {}", task.digest);
            Difference::new(Rule::Heldout, expected, shown(&record.to_string()))
        })
        .collect()
}

fn vacuous_differences(job: &Job, evidence: &CheckEvidence) -> Vec<Difference> {
    let is_stopped = job.task.vacuous == VacuousPolicy::Stop;
    let unproven = evidence.heldout_red.iter().filter(|_| is_stopped).flat_map(HeldoutTask::unproven);
    unproven
        .map(|red| {
            let expected = "no session on a task with a held-out check that does not fail first";
            let found = format!("held-out check `{}` was {}", red.name, red.red);
            Difference::new(Rule::HeldoutRed, expected, found)
        })
        .collect()
}

/// The held-out checks of the task that did not run or did not succeed although the outcome requires it.
fn green_differences(job: &Job, records: &[HeldoutRecord], outcome: Outcome) -> Vec<Difference> {
    let (Some(task), Outcome::Passed | Outcome::Unconfirmed | Outcome::GuardFailed) =
        (job.own_heldout(), outcome)
    else {
        return Vec::new();
    };
    let mut differences = Vec::new();
    for check in &task.checks {
        let found = match record_of(task, check, records).and_then(|record| record.result) {
            Some(HeldoutResult::Pass) => continue,
            Some(HeldoutResult::Fail) => format!("held-out check `{}` failed", check.name),
            None => format!("held-out check `{}` did not run", check.name),
        };
        differences.push(Difference::new(Rule::HeldoutGreen, "all held-out checks green", found));
    }
    differences
}
