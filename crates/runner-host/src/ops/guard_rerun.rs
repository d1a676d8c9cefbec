//! Runs a command on a past commit, in a fresh room or in a temporary clone. Used by `runner verify --rerun` and `runner blame`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use runner_core::checks::redirects;
use runner_core::config::{Config, RoomMode};
use runner_core::layout::Doc;
use runner_core::model::checks::Check;
use runner_core::model::object_id::CommitId;
use runner_core::model::run_state::RunState;
use runner_core::step::GuardExit;
use supervise::signals::{ShutdownSignal, SignalListener};
use supervise::{CancelHandle, ExitReason, OutputTarget, ProcessSpec, SupervisorSlot, TimeLimits};

use super::rerun_step::{CheckRerun, RerunExpectation, RerunPlace, RerunStep, last_lines};
use crate::agent::command;
use crate::agent::sandbox::exit_inside_sandbox;
use crate::agent::sandbox_argv::bubblewrap_problem;
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::fs::temp_dir::TempDir;
use crate::git::{Git, lossy};
use crate::iteration::check_report::{CheckReport, file_below};
use crate::redaction::output_filter;
use crate::repo::commit_files::protection_at;
use crate::room::{Candidate, CheckFiles, KeptFiles, Room, SetupNeed};

/// How a rerun ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardRerunOutcome {
    Ended(GuardExit),
    TimedOut,
    /// Why it could not start.
    NotStarted(String),
    /// It exited with 0; why that is no success.
    Rejected(String),
    /// The user stopped it; the runner exits with this code.
    Stopped(u8),
}

/// A command to run on a commit.
#[derive(Clone, Debug)]
pub struct CommitCheck {
    pub command: Vec<String>,
    /// The source of the limits.
    pub config: Config,
    /// Files to check out over the commit first.
    pub pinned: Option<PinnedFiles>,
}

/// Files at a commit.
#[derive(Clone, Debug)]
pub struct PinnedFiles {
    pub commit: CommitId,
    pub patterns: Vec<String>,
}

/// Runs guards on past commits. A signal stops the guard and removes the clone.
pub struct GuardRerunner {
    git: Git,
    cancel: CancelHandle,
    supervisor: SupervisorSlot,
    signals: Arc<SignalListener>,
}

impl GuardRerunner {
    /// Opens the repository that contains `dir`, and handles signals from now on.
    pub fn begin(dir: &Path) -> Result<Self, Error> {
        let git = Git::open(dir)?;
        let cancel = CancelHandle::new()?;
        let signals = Arc::new(SignalListener::install(&cancel)?);
        Ok(Self { git, cancel, supervisor: SupervisorSlot::default(), signals })
    }

    pub(super) fn git(&self) -> &Git {
        &self.git
    }

    /// What another thread needs to run guards too, with the same signals.
    pub(super) fn handle(&self) -> RerunHandle {
        RerunHandle {
            root: self.git.root().to_owned(),
            cancel: self.cancel.clone(),
            signals: Arc::clone(&self.signals),
        }
    }

    /// Runs the guard of a configuration on a commit, in a fresh room that has nothing but the commit's files; in a temporary
    /// clone where the configuration or the machine allows no room.
    pub(super) fn run_guard(&self, commit: &CommitId, config: &Config) -> Result<RerunStep, Error> {
        let place = if config.guard.room == RoomMode::InPlace {
            None
        } else {
            self.room_at(commit, config).transpose()?
        };
        let step = |place, outcome, output| RerunStep {
            name: GUARD_STEP.to_owned(),
            expected: RerunExpectation::Success,
            place,
            outcome,
            output,
        };
        let Some(mut place) = place else {
            let command = config.guard.command.words().to_vec();
            let check = CommitCheck { command, config: config.clone(), pinned: None };
            let (outcome, output) = self.check(commit, &check)?;
            return Ok(step(RerunPlace::Clone, outcome, output));
        };
        let (outcome, output) = self.run_in_room(&mut place, config)?;
        Ok(step(RerunPlace::Room, outcome, output))
    }

    /// Runs a check of a task on a commit with its files, in a fresh room or in a temporary clone. A check that changes its own
    /// files or protected ones has failed.
    pub(super) fn run_check(
        &self,
        commit: &CommitId,
        config: &Config,
        files: &dyn CheckFiles,
        check: &Check,
    ) -> Result<CheckRerun, Error> {
        // A check has a time limit of its own.
        let timed = Config { iteration_timeout_secs: check.timeout_secs, ..config.clone() };
        let room = if config.guard.room == RoomMode::InPlace {
            None
        } else {
            self.room_at(commit, config).transpose()?
        };
        let Some(mut place) = room else { return self.run_check_in_clone(commit, &timed, files, check) };
        if let SetupNeed::Yes { command, .. } = place.room.setup_need(&self.git, &config.guard)? {
            let (outcome, output) = self.run_words(&place, config, command.words())?;
            if outcome != GuardRerunOutcome::Ended(GuardExit::Code(0)) {
                let outcome = GuardRerunOutcome::NotStarted("the setup failed".to_owned());
                return Ok(CheckRerun::without_files(outcome, output));
            }
        }
        place.room.lay(files)?;
        let report = report_of(place.room.files(), check)?;
        let (outcome, output) = self.run_words(&place, &timed, check.command.words())?;
        let report = report.and_then(|report| report.read());
        let changed: Vec<String> = place.room.leave(&self.git)?.iter().map(|path| lossy(path)).collect();
        let redirects = redirects(check, |path| file_below(place.room.files(), path));
        let rerun = CheckRerun { place: RerunPlace::Room, outcome, output, report, redirects };
        Ok(rerun.without_changes(&changed))
    }

    /// Nothing keeps a program in a clone from writing to the files of the check: they are compared afterwards.
    fn run_check_in_clone(
        &self,
        commit: &CommitId,
        config: &Config,
        files: &dyn CheckFiles,
        check: &Check,
    ) -> Result<CheckRerun, Error> {
        let dir = TempDir::create()?;
        let clone = dir.path().join("work");
        self.git.clone_at(&clone, commit)?;
        files.lay_in(&clone)?;
        let paths = files.destinations();
        let content = |path: &PathBuf| atomic::read(&clone.join(path), FILE_BYTES_MAX).ok().flatten();
        let before: Vec<Option<Vec<u8>>> = paths.iter().map(content).collect();
        let report = report_of(&clone, check)?;
        let (outcome, output) = self.run_in_clone(dir.path(), &clone, check.command.words(), config)?;
        let report = report.and_then(|report| report.read());
        let changed = paths.iter().zip(&before).filter(|(path, before)| content(path) != **before);
        let changed: Vec<String> = changed.map(|(path, _)| path.display().to_string()).collect();
        let redirects = redirects(check, |path| file_below(&clone, path));
        let rerun = CheckRerun { place: RerunPlace::Clone, outcome, output, report, redirects };
        Ok(rerun.without_changes(&changed))
    }

    /// What guards of this run's commits get of the files that the configuration keeps.
    pub(super) fn kept_files(&self, commit: &CommitId) -> Result<KeptFiles, Error> {
        let state = RunState::decode(&self.git.file_at(commit, Doc::RunState.path())?);
        match state.ok().and_then(|state| state.run_id) {
            Some(run) => KeptFiles::for_rerun(&self.git, &run),
            None => Ok(KeptFiles::of_work_tree(&self.git)),
        }
    }

    /// A fresh room with the files of a commit; none if the machine has none to offer and the configuration does not insist.
    fn room_at(&self, commit: &CommitId, config: &Config) -> Option<Result<RerunRoom, Error>> {
        let open = || -> Result<RerunRoom, Error> {
            let dir = TempDir::create()?;
            let candidate = Candidate { tree: self.git.tree_of(commit)?, commit: commit.clone() };
            let kept = self.kept_files(commit)?;
            let folder = dir.path().join("room");
            let mut room = Room::fresh(&self.git, &folder, &config.guard, &candidate, kept)?;
            let patterns = self.protected_patterns(commit, config)?;
            let protected = self.git.matching_paths(commit, &patterns)?;
            room.enter(&self.git, &config.guard, &candidate, &protected)?;
            Ok(RerunRoom { room, dir })
        };
        match open() {
            Err(Error::Refused(UserError::NoRoom { .. })) if config.guard.room == RoomMode::Auto => None,
            result => Some(result),
        }
    }

    /// What the run protected at a commit; for a commit without a state, what its configuration protects.
    fn protected_patterns(&self, commit: &CommitId, config: &Config) -> Result<Vec<String>, Error> {
        let state = RunState::decode(&self.git.file_at(commit, Doc::RunState.path())?);
        match state.ok().and_then(|state| state.protection) {
            Some(protection) => Ok(protection.whole().files),
            None => Ok(protection_at(&self.git, commit, &config.guard)?.files),
        }
    }

    /// Runs setup and guard in a room. A guard that changes protected files has failed.
    fn run_in_room(
        &self,
        place: &mut RerunRoom,
        config: &Config,
    ) -> Result<(GuardRerunOutcome, Vec<String>), Error> {
        let guard = &config.guard;
        if let SetupNeed::Yes { command, .. } = place.room.setup_need(&self.git, guard)? {
            let (outcome, output) = self.run_words(place, config, command.words())?;
            if outcome != GuardRerunOutcome::Ended(GuardExit::Code(0)) {
                return Ok((outcome, last_lines(&output)));
            }
        }
        let (outcome, output) = self.run_words(place, config, guard.command.words())?;
        let mut output = last_lines(&output);
        let changed = place.room.leave(&self.git)?;
        if changed.is_empty() {
            return Ok((outcome, output));
        }
        let names: Vec<String> = changed.iter().map(|path| lossy(path)).collect();
        output.push(format!("the guard changed protected files while it ran: {}", names.join(", ")));
        Ok((GuardRerunOutcome::Ended(GuardExit::Code(1)), output))
    }

    fn run_words(
        &self,
        place: &RerunRoom,
        config: &Config,
        words: &[String],
    ) -> Result<(GuardRerunOutcome, Vec<u8>), Error> {
        let command = match command::resolve_past_command(words, self.git.root()) {
            Ok(command) => command,
            Err(why) => return Ok((GuardRerunOutcome::NotStarted(why), Vec::new())),
        };
        let inner = command.argv.len();
        let wrapped = place.room.wrap(&self.git, &config.guard, command);
        let log = place.dir.path().join("guard.log");
        let spec = ProcessSpec::new(wrapped.argv.clone(), self.git.root(), log_of(&log, config))
            .env(wrapped.environment)
            .time_limits(wall_of(config))
            .output_filter(&output_filter);
        let result = supervise::run(&spec, &self.cancel, &self.supervisor)?;
        let output = fs::read(&log).unwrap_or_default();
        let outcome = match self.outcome(exit_inside_sandbox(result.exit)) {
            GuardRerunOutcome::Ended(GuardExit::Code(code)) => {
                match bubblewrap_problem(code, &output, &wrapped.argv, inner, self.git.root()) {
                    Some(why) => {
                        GuardRerunOutcome::NotStarted(format!("the room could not be set up: {why}"))
                    }
                    None => GuardRerunOutcome::Ended(GuardExit::Code(code)),
                }
            }
            outcome @ (GuardRerunOutcome::Ended(GuardExit::Signal(_))
            | GuardRerunOutcome::TimedOut
            | GuardRerunOutcome::NotStarted(_)
            | GuardRerunOutcome::Rejected(_)
            | GuardRerunOutcome::Stopped(_)) => outcome,
        };
        Ok((outcome, output))
    }

    /// Checks out a commit into a temporary clone and runs a command there.
    pub(crate) fn check(
        &self,
        commit: &CommitId,
        check: &CommitCheck,
    ) -> Result<(GuardRerunOutcome, Vec<String>), Error> {
        let dir = TempDir::create()?;
        let clone = dir.path().join("work");
        self.git.clone_at(&clone, commit)?;
        if let Some(pinned) = &check.pinned {
            let paths = self.git.matching_paths(&pinned.commit, &pinned.patterns)?;
            self.git.checkout_over(&clone, &pinned.commit, &paths)?;
        }
        let (outcome, output) = self.run_in_clone(dir.path(), &clone, &check.command, &check.config)?;
        Ok((outcome, last_lines(&output)))
    }

    fn run_in_clone(
        &self,
        dir: &Path,
        clone: &Path,
        words: &[String],
        config: &Config,
    ) -> Result<(GuardRerunOutcome, Vec<u8>), Error> {
        let program = match command::resolve_command(words, clone) {
            Ok(program) => program,
            Err(why) => return Ok((GuardRerunOutcome::NotStarted(why), Vec::new())),
        };
        let log = dir.join("guard.log");
        let spec = ProcessSpec::new(program.argv, clone, log_of(&log, config))
            .env(program.environment)
            .time_limits(wall_of(config))
            .output_filter(&output_filter);
        let result = supervise::run(&spec, &self.cancel, &self.supervisor)?;
        let outcome = self.outcome(result.exit);
        Ok((outcome, fs::read(&log).unwrap_or_default()))
    }

    fn outcome(&self, exit: ExitReason) -> GuardRerunOutcome {
        match exit {
            ExitReason::Exited(code) => GuardRerunOutcome::Ended(GuardExit::Code(code)),
            ExitReason::Signalled(signal) => GuardRerunOutcome::Ended(GuardExit::Signal(signal)),
            ExitReason::CouldNotStart(error) => GuardRerunOutcome::NotStarted(error.to_string()),
            ExitReason::TimedOut | ExitReason::Idle | ExitReason::OverLimit => GuardRerunOutcome::TimedOut,
            ExitReason::Stopped => {
                GuardRerunOutcome::Stopped(self.signals.received().map_or(130, ShutdownSignal::exit_code))
            }
            ExitReason::Lost => GuardRerunOutcome::NotStarted("its supervisor died".to_owned()),
        }
    }
}

fn log_of(log: &Path, config: &Config) -> OutputTarget {
    OutputTarget::combined(log, config.guard_output_limit_bytes.as_u64())
}

fn wall_of(config: &Config) -> TimeLimits {
    TimeLimits::wall(Duration::from_secs(config.iteration_timeout_secs.as_u64()))
}

/// The JUnit report that a check is about to write below a folder. The commit may have one at its path.
fn report_of(folder: &Path, check: &Check) -> Result<Option<CheckReport>, Error> {
    let report = check.junit.as_ref().map(|path| CheckReport::new(folder, path.as_str()));
    report.iter().try_for_each(CheckReport::remove_old)?;
    Ok(report)
}

/// A larger check file counts as changed.
const FILE_BYTES_MAX: u64 = 64 << 20;

const GUARD_STEP: &str = "guard";

/// A room in a temporary folder, which goes with it.
struct RerunRoom {
    room: Room,
    dir: TempDir,
}

/// What another thread needs to run guards.
pub(super) struct RerunHandle {
    root: PathBuf,
    cancel: CancelHandle,
    signals: Arc<SignalListener>,
}

impl RerunHandle {
    pub(super) fn open(self) -> Result<GuardRerunner, Error> {
        let Self { root, cancel, signals } = self;
        Ok(GuardRerunner { git: Git::open(&root)?, cancel, supervisor: SupervisorSlot::default(), signals })
    }
}
