//! Runs the user's guard, in the room or in the work tree.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use runner_core::checks::redirects;
use runner_core::config::GuardConfig;
use runner_core::model::checks::{Check, CheckExit, CheckPath};
use runner_core::model::repo_path::RepoPath;
use runner_core::step::{
    CheckPhase, CheckRun, GuardExit, GuardPlace, GuardRun, Interruption, Job, MovedRef, RestoreReport,
};
use supervise::{ExitReason, OutputTarget, ProcessSpec, TimeLimits};

use super::check_report::{self, CheckReport};
use super::open_iteration::OpenIteration;
use super::pinned_repo::{PinnedRepo, RepoChanges};
use super::program_runner::ProgramRunner;
use crate::agent::command::{self, PreparedCommand};
use crate::agent::sandbox::exit_inside_sandbox;
use crate::agent::sandbox_argv::bubblewrap_problem;
use crate::agent::user_sockets;
use crate::error::{Error, UserError};
use crate::git::{Git, PathSet, lossy};
use crate::repo::heldout_folder::HeldoutFiles;
use crate::repo::repo_guard::SessionRef;
use crate::room::{Candidate, GuardRoom, Room, SetupNeed};

/// The file with the guard's output.
pub(crate) const GUARD_LOG: &str = "guard.log";
/// Sockets of container services that guards use. The room hides them.
const CONTAINER_SOCKETS: [&str; 2] = ["/run/docker.sock", "/run/podman/podman.sock"];
/// The file with the output of the setup command, beside the guard's.
const SETUP_LOG: &str = "setup.log";

/// A guard run, and how long it took if it started.
pub(super) struct TimedGuardRun {
    pub(super) run: GuardRun,
    pub(super) elapsed: Option<Duration>,
    /// The report that the program wrote, if it was asked for one.
    report: Option<Vec<u8>>,
    stage: RunStage,
}

/// How far a run in the room got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunStage {
    /// The files could not be checked out, or the setup failed.
    Setup,
    /// Bubblewrap could not set up the room.
    Room,
    Program,
}

impl TimedGuardRun {
    fn not_started(why: String) -> Self {
        Self { run: GuardRun::NotStarted { why }, elapsed: None, report: None, stage: RunStage::Program }
    }
}

/// What a run of the guard is about.
#[derive(Clone, Copy)]
pub(super) struct GuardInputs<'a> {
    pub(super) guard: &'a GuardConfig,
    pub(super) output_bytes: u64,
    pub(super) candidate: &'a Candidate,
    /// Where changes of the git directory belong that a guard in the work tree made.
    pub(super) session: SessionRef<'a>,
    /// The protected files of the candidate.
    pub(super) protected: &'a PathSet,
    pub(super) log: &'a Path,
    pub(super) wall: Duration,
    /// Files of a held-out check that are in the room while it runs.
    pub(super) laid: Option<&'a HeldoutFiles>,
}

/// A program to run on the candidate.
pub(super) struct GuardedProgram<'a> {
    pub(super) words: &'a [String],
    pub(super) log: &'a Path,
    pub(super) wall: Duration,
    pub(super) output_bytes: u64,
    /// A report that it writes, relative to the repository.
    pub(super) report: Option<&'a str>,
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
    // A script that runs could change one that runs after it, in the same file.
    let mut protected = iteration.protected_now.clone();
    protected.extend(job.permissions.protection.entry_files().iter().map(RepoPath::to_bytes));
    let inputs = GuardInputs {
        guard: &job.guard,
        output_bytes: job.limits.guard_output_bytes,
        candidate: &candidate,
        session: SessionRef::of_guard(&job.run_id, job.iteration, &iteration.setup.base),
        protected: &protected,
        log: &log,
        wall: iteration.setup.time_left,
        laid: None,
    };
    let TimedGuardRun { run, elapsed, .. } = run(git, programs, room, &inputs)?;
    if matches!(run, GuardRun::Ended { exit: GuardExit::Code(0), .. }) {
        room.accept()?;
    }
    if let Some(elapsed) = elapsed {
        iteration.setup.dir.set_guard_time(elapsed);
    }
    Ok(run)
}

/// Runs a check on the candidate of an iteration.
pub(super) fn run_check_for_iteration(
    git: &Git,
    programs: &ProgramRunner,
    room: &mut GuardRoom,
    iteration: &mut OpenIteration,
    job: &Job,
    check: &Check,
) -> Result<CheckRun, Error> {
    iteration.setup.dir.tidy()?;
    let log = iteration.setup.dir.file(&check_log(check, CheckPhase::Green));
    let candidate = iteration.candidate(git)?;
    let inputs = GuardInputs {
        guard: &job.guard,
        output_bytes: job.limits.guard_output_bytes,
        candidate: &candidate,
        session: SessionRef::of_guard(&job.run_id, job.iteration, &iteration.setup.base),
        protected: &iteration.protected_now,
        log: &log,
        wall: Duration::from_secs(u64::try_from(check.timeout_secs.get()).unwrap_or(u64::MAX)),
        laid: None,
    };
    run_check(git, programs, room, &inputs, check)
}

/// The log of a check in the iteration's directory.
pub(super) fn check_log(check: &Check, phase: CheckPhase) -> String {
    match phase {
        CheckPhase::Red => format!("check-{}.red.log", check.name),
        CheckPhase::Green => format!("check-{}.log", check.name),
    }
}

/// Runs a check, with its output in a log.
pub(super) fn run_check(
    git: &Git,
    programs: &ProgramRunner,
    room: &mut GuardRoom,
    inputs: &GuardInputs<'_>,
    check: &Check,
) -> Result<CheckRun, Error> {
    let place = GuardPlace { room: room.level(inputs.guard), candidate: inputs.candidate.tree.clone() };
    let program = GuardedProgram {
        words: check.command.words(),
        log: inputs.log,
        wall: inputs.wall,
        output_bytes: inputs.output_bytes,
        report: check.junit.as_ref().map(CheckPath::as_str),
    };
    let timed = match room {
        GuardRoom::InPlace { .. } => run_in_place(git, programs, inputs, &program, place.clone())?,
        GuardRoom::Room(room) => run_in_room(git, programs, room, inputs, &program, place.clone())?,
    };
    if let (RunStage::Room, GuardRun::NotStarted { why }) = (timed.stage, &timed.run) {
        // No result of the check: nothing of the task failed.
        return Err(UserError::RoomSetup { why: why.clone() }.into());
    }
    let log = || fs::read(inputs.log).unwrap_or_default();
    let (exit, output) = match timed.run {
        GuardRun::Ended { output, .. } if timed.stage == RunStage::Setup => (CheckExit::NotStarted, output),
        GuardRun::Ended { exit: GuardExit::Code(code), output, .. } => (CheckExit::Code(code), output),
        GuardRun::Ended { exit: GuardExit::Signal(signal), output, .. } => {
            (CheckExit::Signal(signal), output)
        }
        GuardRun::NotStarted { why } => (CheckExit::NotStarted, why.into_bytes()),
        GuardRun::TimedOut => (CheckExit::TimedOut, log()),
        GuardRun::Interrupted { by } => return Ok(CheckRun::Interrupted { by }),
        GuardRun::Skipped => (CheckExit::NotStarted, Vec::new()),
    };
    let files = match room {
        GuardRoom::InPlace { .. } => git.root(),
        GuardRoom::Room(room) => room.files(),
    };
    let redirects = redirects(check, |path| check_report::file_below(files, path));
    Ok(CheckRun::Ended { exit, output, junit: timed.report, redirects, place })
}

/// Runs the guard, with its output in a log.
pub(super) fn run(
    git: &Git,
    programs: &ProgramRunner,
    room: &mut GuardRoom,
    inputs: &GuardInputs<'_>,
) -> Result<TimedGuardRun, Error> {
    let place = GuardPlace { room: room.level(inputs.guard), candidate: inputs.candidate.tree.clone() };
    let program = GuardedProgram {
        words: inputs.guard.command.words(),
        log: inputs.log,
        wall: inputs.wall,
        output_bytes: inputs.output_bytes,
        report: None,
    };
    match room {
        GuardRoom::InPlace { .. } => run_in_place(git, programs, inputs, &program, place),
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
    let guard = inputs.guard;
    if let Err(error) = room.enter(git, guard, inputs.candidate, inputs.protected) {
        if error.is_disk_full() {
            return Err(error);
        }
        let why = format!("the runner cannot check out the files to commit: {error}\n");
        return Ok(TimedGuardRun { stage: RunStage::Setup, ..failed(inputs.log, &why, place)? });
    }
    if let SetupNeed::Yes { command, marker, inputs: digest } = room.setup_need(git, guard)? {
        let log = inputs.log.with_file_name(SETUP_LOG);
        let setup = GuardedProgram { words: command.words(), log: &log, report: None, ..*program };
        let result = run_program(git, programs, Some(room), inputs, &setup, place.clone())?;
        if !matches!(result.run, GuardRun::Ended { exit: GuardExit::Code(0), .. }) {
            room.leave(git)?;
            let stage = if result.stage == RunStage::Room { RunStage::Room } else { RunStage::Setup };
            return Ok(TimedGuardRun { stage, ..result });
        }
        room.set_up(&marker, &digest)?;
    }
    if let Some(laid) = inputs.laid {
        room.lay(laid)?;
    }
    let result = run_program(git, programs, Some(room), inputs, program, place.clone())?;
    let changed = room.leave(git)?;
    if changed.is_empty() || !matches!(result.run, GuardRun::Ended { .. }) {
        return with_socket_hint(result, guard, program.log);
    }
    failed(inputs.log, &changed_while_running(&changed), place)
}

/// Runs a program in the work tree. One that changes protected files has failed; what it changes in the git directory is
/// restored.
fn run_in_place(
    git: &Git,
    programs: &ProgramRunner,
    inputs: &GuardInputs<'_>,
    program: &GuardedProgram<'_>,
    place: GuardPlace,
) -> Result<TimedGuardRun, Error> {
    let pinned = PinnedRepo::capture(git, inputs.session, inputs.candidate, inputs.protected)?;
    let result = run_program(git, programs, None, inputs, program, place.clone());
    let RepoChanges { restored, protected } = pinned.restore()?;
    let mut result = result?;
    if let Some(note) = restored_note(&restored) {
        let output = with_line(inputs.log, &note)?;
        if let GuardRun::Ended { output: shown, .. } = &mut result.run {
            *shown = output;
        }
    }
    if protected.is_empty() || !matches!(result.run, GuardRun::Ended { .. }) {
        return Ok(result);
    }
    failed(inputs.log, &changed_while_running(&protected), place)
}

/// Why a run failed that changed protected files.
fn changed_while_running(paths: &[Vec<u8>]) -> String {
    let names: Vec<String> = paths.iter().map(|path| lossy(path)).collect();
    format!("the guard changed protected files while it ran: {}\n", names.join(", "))
}

/// What the log of a guard says about changes of the git directory that were undone, and references that moved.
fn restored_note(report: &RestoreReport) -> Option<String> {
    let mut note = String::new();
    let mut restored: Vec<&str> =
        [&report.files, &report.refs, &report.set_aside].into_iter().flatten().map(String::as_str).collect();
    restored.sort_unstable();
    restored.dedup();
    if !restored.is_empty() {
        let names = restored.join(", ");
        note.push_str(&format!("runner: the guard changed the git directory; restored: {names}\n"));
    }
    for MovedRef { name, saved, .. } in &report.moved_refs {
        let old = saved.as_ref().map(|saved| format!("; its old value is {saved}")).unwrap_or_default();
        note.push_str(&format!("runner: {name} moved while the guard ran{old}\n"));
    }
    (!note.is_empty()).then_some(note)
}

/// Adds the key that allows a socket to the log of a guard that failed and mentions it.
fn with_socket_hint(
    mut result: TimedGuardRun,
    guard: &GuardConfig,
    log: &Path,
) -> Result<TimedGuardRun, Error> {
    let GuardRun::Ended { exit, output, .. } = &mut result.run else { return Ok(result) };
    if *exit == GuardExit::Code(0) {
        return Ok(result);
    }
    let text = String::from_utf8_lossy(output);
    let of_user = user_sockets::hidden(&guard.sockets).into_iter().map(|path| path.display().to_string());
    let of_system = CONTAINER_SOCKETS.iter().map(|path| (*path).to_owned()).filter(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        text.contains(name) && !guard.sockets.iter().any(|allowed| allowed.ends_with(name))
    });
    let hidden = of_user.filter(|path| text.contains(path)).chain(of_system).next();
    if let Some(path) = hidden {
        let hint =
            format!("runner: the room hides {path}; to allow it, set sockets = [\"{path}\"] under [guard]\n");
        output.extend(hint.as_bytes());
        fs::write(log, &output).map_err(Error::io("write", log))?;
    }
    Ok(result)
}

/// A run that failed for a reason that the guard itself did not report. The reason is in its log.
fn failed(log: &Path, why: &str, place: GuardPlace) -> Result<TimedGuardRun, Error> {
    let output = with_line(log, why)?;
    let run = GuardRun::Ended { exit: GuardExit::Code(1), output, place };
    Ok(TimedGuardRun { run, elapsed: None, report: None, stage: RunStage::Program })
}

/// Adds a line of the runner's to a log, and returns all of it.
fn with_line(log: &Path, line: &str) -> Result<Vec<u8>, Error> {
    let mut output = fs::read(log).unwrap_or_default();
    output.extend(line.as_bytes());
    fs::write(log, &output).map_err(Error::io("write", log))?;
    Ok(output)
}

/// How often a program is started in a room that cannot be set up: a file of the home may go while it is.
const ROOM_TRIES: usize = 2;

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
    let Some(room) = room else {
        let PreparedCommand { argv, environment, .. } = command;
        let started = StartedProgram { argv, environment, exit_of: |exit| exit };
        return run_started(git, programs, git.root(), program, started, place);
    };
    let mut problem = String::new();
    for _ in 0..ROOM_TRIES {
        let inner = command.argv.len();
        let PreparedCommand { argv, environment, .. } = room.wrap(git, inputs.guard, command.clone());
        let started = StartedProgram { argv: argv.clone(), environment, exit_of: exit_inside_sandbox };
        let result = run_started(git, programs, room.files(), program, started, place.clone())?;
        let found = match &result.run {
            GuardRun::Ended { exit: GuardExit::Code(code), output, .. } => {
                bubblewrap_problem(*code, output, &argv, inner, git.root())
            }
            GuardRun::Ended { exit: GuardExit::Signal(_), .. }
            | GuardRun::NotStarted { .. }
            | GuardRun::TimedOut
            | GuardRun::Interrupted { .. }
            | GuardRun::Skipped => None,
        };
        match found {
            None => return Ok(result),
            Some(why) => problem = why,
        }
    }
    let why = format!("the room could not be set up: {problem}");
    Ok(TimedGuardRun { stage: RunStage::Room, ..TimedGuardRun::not_started(why) })
}

/// A command line that is ready to run, and what its exit means.
struct StartedProgram {
    argv: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    exit_of: fn(ExitReason) -> ExitReason,
}

/// Runs a command line to its end. The report is below `files`.
fn run_started(
    git: &Git,
    programs: &ProgramRunner,
    files: &Path,
    program: &GuardedProgram<'_>,
    started: StartedProgram,
    place: GuardPlace,
) -> Result<TimedGuardRun, Error> {
    let report = program.report.map(|path| CheckReport::new(files, path));
    report.iter().try_for_each(CheckReport::remove_old)?;
    let output = OutputTarget::combined(program.log, program.output_bytes);
    let spec = ProcessSpec::new(started.argv, git.root(), output)
        .env(started.environment)
        .time_limits(TimeLimits::wall(program.wall));
    let result = programs.run(spec)?;
    let ended = |exit| GuardRun::Ended { exit, output: fs::read(program.log).unwrap_or_default(), place };
    let run = match (started.exit_of)(result.exit) {
        ExitReason::Exited(code) => ended(GuardExit::Code(code)),
        ExitReason::Signalled(signal) => ended(GuardExit::Signal(signal)),
        ExitReason::CouldNotStart(error) => GuardRun::NotStarted { why: error.to_string() },
        ExitReason::TimedOut | ExitReason::Idle | ExitReason::OverLimit => GuardRun::TimedOut,
        ExitReason::Stopped => {
            GuardRun::Interrupted { by: programs.interruption().unwrap_or(Interruption::Int) }
        }
        ExitReason::Lost => GuardRun::NotStarted { why: "its supervisor died".to_owned() },
    };
    let report = report.and_then(|report| report.read());
    Ok(TimedGuardRun { run, elapsed: Some(result.active), report, stage: RunStage::Program })
}
