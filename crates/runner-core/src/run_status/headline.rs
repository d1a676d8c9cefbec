//! The headlines of a run's status: the state in a few words.

use super::RunFacts;
use super::events::{LatestEvents, RunActivity};
use crate::config::Config;
use crate::format::{counted, dollars, duration, tokens};
use crate::model::checks::CheckName;
use crate::model::cost::BudgetLimit;
use crate::model::id::NodeId;
use crate::step::{Interruption, Outcome, StopReason};
use crate::text::one_line;

/// The headline of a running iteration.
pub(super) fn running(activity: RunActivity<'_>, latest: &LatestEvents<'_>) -> String {
    let iteration =
        latest.planned.map(|planned| format!("iteration {}: ", planned.iteration)).unwrap_or_default();
    match activity {
        RunActivity::Agent => match latest.task() {
            Some(task) => format!("{iteration}the agent is working on {task}"),
            None => format!("{iteration}the agent is working"),
        },
        RunActivity::Baseline => "running the guard before the first session".to_owned(),
        RunActivity::Guard => format!("{iteration}running the guard"),
        RunActivity::FinalCheck => "all tasks passed: running the guard in a clean checkout".to_owned(),
        RunActivity::Rechecking => "running the checks of passed tasks again".to_owned(),
        RunActivity::Checking => format!("{iteration}checking the result"),
        RunActivity::Committing => format!("{iteration}committing the result"),
        RunActivity::NextIteration | RunActivity::Waiting { .. } | RunActivity::Paused => {
            "starting the next iteration".to_owned()
        }
    }
}

/// The headline of a run that stopped for this reason.
pub(super) fn stopped(facts: &RunFacts<'_>, reason: &StopReason) -> String {
    match reason {
        StopReason::Complete => complete(facts),
        StopReason::Stuck { node } => stuck(facts, node),
        StopReason::NotReproducible { exit } => {
            format!("all tasks passed, but the guard fails in a clean checkout (exit {})", one_line(exit))
        }
        StopReason::Regressed { node, check, broken_by } => {
            let by = broken_by.map(|iter| format!(": iteration {} broke it", iter.get()));
            format!("check `{check}` of passed task `{node}` fails again{}", by.unwrap_or_default())
        }
        StopReason::MaxIterations { max } => format!("reached max_iterations ({max})"),
        StopReason::LoopIterations { max } => format!("reached --max-iterations ({max})"),
        StopReason::LoopBudget { limit, spent, max } => loop_budget(*limit, *spent, *max),
        StopReason::LoopUntil { until } => format!("reached --until {}", one_line(until)),
        StopReason::Budget { limit, node, spent, max } => {
            let leaf = node.as_ref().map(|node| format!(" on `{node}`")).unwrap_or_default();
            let verb = if limit.is_money() { "spent" } else { "used" };
            let (spent, max) = (amount(*limit, *spent), amount(*limit, *max));
            format!("reached {}: {spent} of {max} {verb}{leaf}", limit.as_str())
        }
        StopReason::Stalled { iterations } => {
            format!(
                "no task passed and no check turned green in {} (stall_iterations)",
                counted(*iterations, "iteration", "iterations")
            )
        }
        StopReason::TimeLimit { outcome } => time_limit(*outcome, facts.documents.config),
        StopReason::Failures { outcome, in_row } => {
            let failures = counted(*in_row, "failure", "failures");
            format!("{failures} in a row ({})", outcome.label().text)
        }
        StopReason::NeedsUser { outcome } => outcome.label().text.to_owned(),
        StopReason::VacuousChecks { node, checks } => {
            let names: Vec<&str> = checks.iter().map(CheckName::as_str).collect();
            format!("checks of `{node}` do not fail before the work: {}", names.join(", "))
        }
        StopReason::NotApproved => "the plan is not approved ([plan] approval)".to_owned(),
        StopReason::Interrupted { by } => match by {
            Interruption::Int => "interrupted (Ctrl-C)",
            Interruption::Term => "interrupted (SIGTERM)",
            Interruption::Hup => "interrupted (the terminal closed)",
            Interruption::Crash => "interrupted by a crash",
        }
        .to_owned(),
        StopReason::UserStop => "requested by the user".to_owned(),
        StopReason::Unknown => "for a reason that this version does not know".to_owned(),
    }
}

/// The limit of a command, and what its loop used of it.
fn loop_budget(limit: BudgetLimit, spent: Option<u64>, max: u64) -> String {
    let option = if limit.is_money() { "--max-usd" } else { "--max-tokens" };
    let verb = if limit.is_money() { "spent" } else { "used" };
    match spent {
        Some(spent) => {
            format!(
                "reached {option}: {} of {} {verb} by this loop",
                amount(limit, spent),
                amount(limit, max)
            )
        }
        None => {
            let unit = if limit.is_money() { "dollars" } else { "tokens" };
            format!(
                "a limit in {unit} ([budget] or {option}) cannot be enforced: the last session did not report what it {verb}"
            )
        }
    }
}

fn complete(facts: &RunFacts<'_>) -> String {
    let leaves = facts.documents.tree.map(|tree| tree.root().leaves()).or(facts.totals.leaves);
    match leaves.map(|leaves| leaves.total) {
        Some(1) => "the task passed".to_owned(),
        Some(total) => format!("all {total} tasks passed"),
        None => "all tasks passed".to_owned(),
    }
}

fn stuck(facts: &RunFacts<'_>, node: &NodeId) -> String {
    let path = facts.documents.tree.and_then(|tree| tree.path_to(node)).unwrap_or_default();
    let in_tree = path.last().map(|leaf| (leaf.attempts, leaf.max_attempts));
    match in_tree.or(facts.totals.stuck_attempts.map(|all| (all, all))) {
        Some((attempts, max)) => format!("`{node}` failed {attempts} of {max} attempts"),
        None => format!("`{node}` has no attempts left"),
    }
}

fn time_limit(outcome: Outcome, config: Option<&Config>) -> String {
    let secs = |value: i64| duration(u64::try_from(value).unwrap_or_default());
    let iteration = config.map(|config| secs(config.iteration_timeout_secs.get()));
    let iteration = iteration.unwrap_or_else(|| "the time limit".to_owned());
    match (outcome, config) {
        (Outcome::IdleTimeout, Some(config)) => {
            format!("no output for {} (idle_timeout_secs)", secs(config.idle_timeout_secs.get()))
        }
        (Outcome::IdleTimeout, None) => "no output for too long (idle_timeout_secs)".to_owned(),
        (Outcome::GuardTimedOut, _) => {
            format!("the guard did not finish within {iteration} (iteration_timeout_secs)")
        }
        (_, _) => format!("the agent did not finish within {iteration} (iteration_timeout_secs)"),
    }
}

/// Tokens or dollars, whichever the limit is about.
fn amount(limit: BudgetLimit, amount: u64) -> String {
    if limit.is_money() { dollars(amount) } else { format!("{} tokens", tokens(amount)) }
}
