//! Runs the user's guard.

use std::fs;
use std::path::Path;
use std::time::Duration;

use runner_core::step::{GuardExit, GuardRun, Interruption, Job};
use supervise::{ExitReason, OutputTarget, ProcessSpec, TimeLimits};

use super::open_iteration::OpenIteration;
use super::program_runner::ProgramRunner;
use crate::agent::command::{self, PreparedCommand};
use crate::error::Error;
use crate::git::Git;

/// The file with the guard's output.
pub(crate) const GUARD_LOG: &str = "guard.log";

/// A guard run, and how long it took if it started.
pub(super) struct TimedGuardRun {
    pub(super) run: GuardRun,
    pub(super) elapsed: Option<Duration>,
}

/// Runs the guard on the work tree with the rest of the iteration's time.
pub(super) fn run_for_iteration(
    git: &Git,
    programs: &ProgramRunner,
    iteration: &mut OpenIteration,
    job: &Job,
) -> Result<GuardRun, Error> {
    iteration.setup.dir.tidy()?;
    let log = iteration.setup.dir.file(GUARD_LOG);
    let wall = iteration.setup.time_left;
    let TimedGuardRun { run, elapsed } = run(git, programs, job, &log, wall)?;
    if let Some(elapsed) = elapsed {
        iteration.setup.dir.set_guard_time(elapsed);
    }
    Ok(run)
}

/// Runs the guard on the work tree, with its output in `log`.
pub(super) fn run(
    git: &Git,
    programs: &ProgramRunner,
    job: &Job,
    log: &Path,
    wall: Duration,
) -> Result<TimedGuardRun, Error> {
    let PreparedCommand { argv, mut environment, .. } = match command::guard_command(job, git.root()) {
        Ok(program) => program,
        Err(why) => return Ok(TimedGuardRun { run: GuardRun::NotStarted { why }, elapsed: None }),
    };
    environment.push((command::GUARD_MARKER.into(), log.into()));
    let output = OutputTarget::combined(log, job.limits.guard_output_bytes);
    let spec =
        ProcessSpec::new(argv, git.root(), output).env(environment).time_limits(TimeLimits::wall(wall));
    let result = programs.run(&spec)?;
    let ended = |exit| GuardRun::Ended { exit, output: fs::read(log).unwrap_or_default() };
    let run = match result.exit {
        ExitReason::Exited(code) => ended(GuardExit::Code(code)),
        ExitReason::Signalled(signal) => ended(GuardExit::Signal(signal)),
        ExitReason::CouldNotStart(error) => GuardRun::NotStarted { why: error.to_string() },
        ExitReason::TimedOut | ExitReason::Idle => GuardRun::TimedOut,
        ExitReason::Stopped => {
            GuardRun::Interrupted { by: programs.interruption().unwrap_or(Interruption::Int) }
        }
        ExitReason::Lost => GuardRun::NotStarted { why: "its supervisor died".to_owned() },
    };
    Ok(TimedGuardRun { run, elapsed: Some(result.active) })
}
