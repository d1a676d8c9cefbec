//! Computes how the loop worked in a trial: sessions, attempts, guard runs and the time that each took.

use std::path::Path;

use runner_core::model::run_state::GuardResult;
use runner_core::model::tree::{Node, Tree};
use runner_core::step::{Event, Outcome as IterationOutcome, RecordedIteration};

use crate::result::{CheckResult, LoopMetrics};

/// From the output of `runner --json loop`, the captured documents in `result`, and the checks.
pub(crate) fn loop_metrics(log: &[u8], result: &Path, checks: &[CheckResult]) -> LoopMetrics {
    let mut metrics = LoopMetrics::default();
    for line in log.split(|byte| *byte == b'\n') {
        if let Ok(event) = serde_json::from_slice::<Event>(line) {
            count_event(&event, &mut metrics);
        }
    }
    for folder in crate::report::iteration_folders(result) {
        let iteration = std::fs::read(folder.join("meta.json")).ok();
        if let Some(iteration) = iteration.and_then(|bytes| RecordedIteration::from_json(&bytes)) {
            metrics.agent_secs += seconds(iteration.agent_ms);
            metrics.guard_secs += seconds(iteration.guard_ms);
        }
    }
    let tree = std::fs::read(result.join("tree.json")).ok().and_then(|bytes| Tree::decode(&bytes).ok());
    metrics.depth = tree.map_or(0, |tree| depth(tree.root()));
    metrics.visible_passed = all_passed(checks, false);
    metrics.hidden_passed = all_passed(checks, true);
    metrics
}

fn count_event(event: &Event, metrics: &mut LoopMetrics) {
    if let Event::GuardEnded { .. } = event {
        metrics.guard_runs += 1;
    }
    let Event::Decided { outcome, guard, charge, leaves, .. } = event else { return };
    metrics.sessions += 1;
    metrics.attempts_charged += u32::from(charge.as_str() == "charged");
    metrics.guard_failures += u32::from(*guard == GuardResult::Fail);
    metrics.check_failures += u32::from(*outcome == IterationOutcome::ChecksFailed);
    let broke_rule = matches!(outcome, IterationOutcome::RuleViolation | IterationOutcome::InvalidTree);
    metrics.rule_violations += u32::from(broke_rule);
    metrics.leaves = u32::try_from(leaves.total).unwrap_or(u32::MAX);
    metrics.leaves_passed = u32::try_from(leaves.passed).unwrap_or(u32::MAX);
}

fn seconds(milliseconds: Option<u64>) -> f64 {
    // Exact up to thousands of years.
    #[expect(clippy::cast_precision_loss, reason = "a time for people and statistics")]
    milliseconds.map_or(0.0, |ms| ms as f64 / 1000.0)
}

/// How many levels are below a node.
fn depth(node: &Node) -> u32 {
    node.children.iter().map(|child| 1 + depth(child)).max().unwrap_or(0)
}

fn all_passed(checks: &[CheckResult], hidden: bool) -> Option<bool> {
    let mut relevant = checks.iter().filter(|check| check.hidden == hidden && !check.trap).peekable();
    relevant.peek()?;
    Some(relevant.all(|check| check.passed))
}
