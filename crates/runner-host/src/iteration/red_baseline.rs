//! A guard that already fails before the first session: whether the run begins all the same.

use std::time::Duration;

use runner_core::detect::command_line;
use runner_core::model::run_state::RecordedGuardRun;
use runner_core::step::{GuardJob, LoadedRun, RedBaselineAnswer, StopReason};
use runner_core::text::one_line;

use super::repo_world::RepoWorld;
use crate::error::{Error, UserError};
use crate::repo::journal::PublishEntry;
use crate::repo::publish;

/// How often a question to the user is asked for its answer.
const QUESTION_TICK: Duration = Duration::from_millis(50);
/// How many lines of a failing guard's output an error shows.
const LINES_MAX: usize = 10;

/// What the user decided about a guard that already fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedBaselineChoice {
    Allow,
    Refuse,
    /// The question is still open.
    Undecided,
}

/// Waits for the user's choice. Unless the run begins, everything is as it was before.
pub(super) fn accept(
    world: &RepoWorld<'_>,
    run: &LoadedRun,
    job: &GuardJob,
    baseline: &RecordedGuardRun,
) -> Result<RedBaselineAnswer, Error> {
    let answer = loop {
        if let Some(by) = world.programs.interruption() {
            break Ok(RedBaselineAnswer::Stop(StopReason::Interrupted { by }));
        }
        match (world.choices.red_baseline)(baseline) {
            RedBaselineChoice::Allow => return Ok(RedBaselineAnswer::Begin),
            RedBaselineChoice::Refuse => break Err(refusal(job, baseline)),
            RedBaselineChoice::Undecided => std::thread::sleep(QUESTION_TICK),
        }
    };
    let current = PublishEntry::next_commit(&job.run_id, &run.commit, &run.commit);
    publish::recover(world.repo.git(), current)?;
    Ok(answer?)
}

fn refusal(job: &GuardJob, baseline: &RecordedGuardRun) -> UserError {
    let output = baseline.output.as_deref().unwrap_or_default();
    let mut lines: Vec<String> = output.lines().map(one_line).filter(|line| !line.is_empty()).collect();
    UserError::RedBaseline {
        command: command_line(job.guard.command.words()),
        exit: baseline.exit.clone(),
        output: lines.split_off(lines.len().saturating_sub(LINES_MAX)),
    }
}
