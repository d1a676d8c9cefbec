//! Runs the user's guard, in the room or in the work tree.

use std::fs;
use std::path::Path;
use std::time::Duration;

use runner_core::step::{GuardExit, GuardPlace, GuardRun, Interruption, Job};
use supervise::{ExitReason, OutputTarget, ProcessSpec, TimeLimits};

use super::open_iteration::OpenIteration;
use super::program_runner::ProgramRunner;
use crate::agent::command::{self, PreparedCommand};
use crate::agent::sandbox::exit_inside_sandbox;
use crate::error::Error;
use crate::fs::atomic;
use crate::git::{Git, PathSet, lossy};
use crate::room::{Candidate, GuardRoom, Room, SetupNeed};

/// The file with the guard's output.
pub(crate) const GUARD_LOG: &str = "guard.log";
/// The file with the output of the setup command, beside the guard's.
const SETUP_LOG: &str = "setup.log";

/// A guard run, and how long it took if it started.
pub(super) struct TimedGuardRun {
    pub(super) run: GuardRun,
    pub(super) elapsed: Option<Duration>,
}

impl TimedGuardRun {
    fn not_started(why: String) -> Self {
        Self { run: GuardRun::NotStarted { why }, elapsed: None }
    }
}

/// What a run of the guard is about.
pub(super) struct GuardInputs<'a> {
    pub(super) job: &'a Job,
    pub(super) candidate: &'a Candidate,
    /// The protected files of the candidate.
    pub(super) protected: &'a PathSet,
    pub(super) log: &'a Path,
    pub(super) wall: Duration,
}

/// A program to run on the candidate.
pub(super) struct GuardedProgram<'a> {
    pub(super) words: &'a [String],
    pub(super) log: &'a Path,
    pub(super) wall: Duration,
    pub(super) output_bytes: u64,
}

/// Runs the guard on the candidate of an iteration, with the rest of the iteration's time.
pub(super) fn run_for_iteration(
    git: &Git,
    programs: &ProgramRunner,
    room: &mut GuardRoom,
    iteration: &mut OpenIteration,
    job: &Job,
) -> Result<GuardRun, Error> {
    iteration.setup.dir.tidy()?;
    let log = iteration.setup.dir.file(GUARD_LOG);
    let candidate = iteration.candidate(git)?;
    let inputs = GuardInputs {
        job,
        candidate: &candidate,
        protected: &iteration.protected_now,
        log: &log,
        wall: iteration.setup.time_left,
    };
    let TimedGuardRun { run, elapsed } = run(git, programs, room, &inputs)?;
    if let Some(elapsed) = elapsed {
        iteration.setup.dir.set_guard_time(elapsed);
    }
    Ok(run)
}

/// Runs the guard, with its output in a log.
pub(super) fn run(
    git: &Git,
    programs: &ProgramRunner,
    room: &mut GuardRoom,
    inputs: &GuardInputs<'_>,
) -> Result<TimedGuardRun, Error> {
    let place = GuardPlace { room: room.level(&inputs.job.guard), candidate: inputs.candidate.tree.clone() };
    let program = GuardedProgram {
        words: inputs.job.guard.command.words(),
        log: inputs.log,
        wall: inputs.wall,
        output_bytes: inputs.job.limits.guard_output_bytes,
    };
    match room {
        GuardRoom::InPlace { .. } => run_program(git, programs, None, inputs, &program, place),
        GuardRoom::Room(room) => run_in_room(git, programs, room, inputs, &program, place),
    }
}

/// Runs a program in the room. A candidate that git cannot check out, and a program that changes protected files, have failed.
fn run_in_room(
    git: &Git,
    programs: &ProgramRunner,
    room: &mut Room,
    inputs: &GuardInputs<'_>,
    program: &GuardedProgram<'_>,
    place: GuardPlace,
) -> Result<TimedGuardRun, Error> {
    let guard = &inputs.job.guard;
    if let Err(error) = room.enter(git, guard, inputs.candidate, inputs.protected) {
        if error.is_disk_full() {
            return Err(error);
        }
        let why = format!("the runner cannot check out the files to commit: {error}\n");
        return failed(inputs.log, &why, place);
    }
    if let SetupNeed::Yes { command, marker, inputs: digest } = room.setup_need(git, guard)? {
        let log = inputs.log.with_file_name(SETUP_LOG);
        let setup = GuardedProgram { words: command.words(), log: &log, ..*program };
        let result = run_program(git, programs, Some(room), inputs, &setup, place.clone())?;
        if !matches!(result.run, GuardRun::Ended { exit: GuardExit::Code(0), .. }) {
            room.leave(git)?;
            return Ok(result);
        }
        atomic::write_no_sync(&marker, digest.as_bytes())?;
    }
    let result = run_program(git, programs, Some(room), inputs, program, place.clone())?;
    let changed = room.leave(git)?;
    if changed.is_empty() || !matches!(result.run, GuardRun::Ended { .. }) {
        return Ok(result);
    }
    let names: Vec<String> = changed.iter().map(|path| lossy(path)).collect();
    let why = format!("the guard changed protected files while it ran: {}\n", names.join(", "));
    failed(inputs.log, &why, place)
}

/// A run that failed for a reason that the guard itself did not report. The reason is in its log.
fn failed(log: &Path, why: &str, place: GuardPlace) -> Result<TimedGuardRun, Error> {
    let mut output = fs::read(log).unwrap_or_default();
    output.extend(why.as_bytes());
    fs::write(log, &output).map_err(Error::io("write", log))?;
    Ok(TimedGuardRun { run: GuardRun::Ended { exit: GuardExit::Code(1), output, place }, elapsed: None })
}

/// Runs one program to its end, in the room if there is one.
fn run_program(
    git: &Git,
    programs: &ProgramRunner,
    room: Option<&Room>,
    inputs: &GuardInputs<'_>,
    program: &GuardedProgram<'_>,
    place: GuardPlace,
) -> Result<TimedGuardRun, Error> {
    let mut command = match command::resolve_command(program.words, git.root()) {
        Ok(command) => command,
        Err(why) => return Ok(TimedGuardRun::not_started(why)),
    };
    command.environment.push((command::GUARD_MARKER.into(), program.log.into()));
    let PreparedCommand { argv, environment, .. } = match room {
        Some(room) => room.wrap(git, &inputs.job.guard, command),
        None => command,
    };
    let output = OutputTarget::combined(program.log, program.output_bytes);
    let spec = ProcessSpec::new(argv, git.root(), output)
        .env(environment)
        .time_limits(TimeLimits::wall(program.wall));
    let result = programs.run(&spec)?;
    let ended = |exit| GuardRun::Ended { exit, output: fs::read(program.log).unwrap_or_default(), place };
    let exit = if room.is_some() { exit_inside_sandbox(result.exit) } else { result.exit };
    let run = match exit {
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
