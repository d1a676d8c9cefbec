//! What shows why a run stopped: the failure of the last task, the log line, and its attempts.

use runner_core::model::id::IterationNumber;
use runner_core::run_status::{LifecycleState, RunStatus};

use crate::api::{AttemptEvidence, FailureExcerpt, IterationRow, LogLine, StopEvidence};
use crate::read::confined_fs::ConfinedDir;
use crate::read::failure::failure_excerpt;
use crate::read::files;
use crate::read::iterations;
use crate::read::logs::best_error_line;
use crate::read::repo_reader::{RepoReader, RunSource};
use crate::read::row_cache::IterationRows;

/// How many iterations are evidence for a stop.
const ITERATIONS_MAX: usize = 8;
/// How many attempts are shown side by side.
const ATTEMPTS_MAX: usize = 3;

/// The evidence for a run that stopped before its end; `None` for any other.
pub(crate) fn stop_evidence(
    project: &RepoReader,
    run: &RunSource,
    rows: &IterationRows,
    status: &RunStatus,
) -> Option<StopEvidence> {
    if !matches!(status.state, LifecycleState::Stopped | LifecycleState::Crashed | LifecycleState::Invalid) {
        return None;
    }
    let relevant = relevant_iterations(rows);
    let newest = relevant.first().filter(|row| row.outcome.as_deref() != Some("passed"));
    let (line, failure) = newest.map(|row| failure_of(project, run, row)).unwrap_or_default();
    Some(StopEvidence {
        iterations: relevant.iter().map(|row| row.iter).collect(),
        line,
        failure,
        attempts: attempts(project, run, &relevant),
    })
}

/// The iterations on the last task, newest first.
fn relevant_iterations(rows: &IterationRows) -> Vec<&IterationRow> {
    let node = rows.last().and_then(|row| row.node.as_deref());
    let rows = rows.iter().rev().map(AsRef::as_ref);
    rows.filter(|row| row.node.as_deref() == node).take(ITERATIONS_MAX).collect()
}

fn folder_of(project: &RepoReader, run: &RunSource, row: &IterationRow) -> Option<ConfinedDir> {
    iterations::folder(project, run, IterationNumber::new(row.iter)?).ok()
}

/// The line and the lines that show why an iteration failed: of the guard's log if the guard failed, else of what the agent
/// printed as errors. Agents without a protocol print those into their only log.
fn failure_of(
    project: &RepoReader,
    run: &RunSource,
    row: &IterationRow,
) -> (Option<LogLine>, Option<FailureExcerpt>) {
    let Some(folder) = folder_of(project, run, row) else { return (None, None) };
    let logs: &[(&str, &str)] = if row.guard.as_deref() == Some("fail") {
        &[("guard", "guard.log")]
    } else {
        &[("stderr", "executor.err.log"), ("agent", "executor.log")]
    };
    for (log, name) in logs {
        let Ok(file) = folder.file(name) else { continue };
        if let Some(line) = best_error_line(&file, row.iter, log).ok().flatten() {
            return (Some(line), failure_excerpt(&file).ok().flatten());
        }
    }
    (None, None)
}

/// The newest attempts, with what failed in each and how much it changed.
fn attempts(project: &RepoReader, run: &RunSource, relevant: &[&IterationRow]) -> Vec<AttemptEvidence> {
    let failed = relevant.iter().filter(|row| row.is_charged).take(ATTEMPTS_MAX);
    let mut attempts: Vec<AttemptEvidence> = Vec::new();
    for row in failed {
        let failure = failure_of(project, run, row).0.map(|line| line.text);
        let failure = failure.or_else(|| row.findings.first().cloned());
        let newest = attempts.first().map_or(&failure, |newest| &newest.failure);
        let is_same = failure.is_some() && *newest == failure;
        let stat = files::changes_of(project, run, row).ok();
        let sum = |of: fn(&files::FileChange) -> Option<u64>| {
            stat.as_ref().map(|changes| changes.iter().filter_map(of).sum())
        };
        attempts.push(AttemptEvidence {
            iter: row.iter,
            is_same,
            failure,
            files: stat.as_ref().map(|changes| changes.len()),
            added: sum(|change| change.added),
            removed: sum(|change| change.removed),
        });
    }
    attempts
}
