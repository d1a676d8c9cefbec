//! Runs a command on a past commit, in a fresh room or in a temporary clone. Used by `runner verify --rerun` and `runner blame`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use runner_core::config::{Config, RoomMode};
use runner_core::model::object_id::CommitId;
use runner_core::step::GuardExit;
use supervise::signals::{ShutdownSignal, SignalListener};
use supervise::{CancelHandle, ExitReason, OutputTarget, ProcessSpec, SupervisorSlot, TimeLimits};

use crate::agent::command;
use crate::agent::sandbox::exit_inside_sandbox;
use crate::error::{Error, UserError};
use crate::fs::temp_dir::TempDir;
use crate::git::{Git, lossy};
use crate::redaction::output_filter;
use crate::repo::commit_files::protection_at;
use crate::room::{Candidate, Room, SetupNeed};

/// How a rerun ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardRerunOutcome {
    Ended(GuardExit),
    TimedOut,
    /// Why it could not start.
    NotStarted(String),
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
        let Some(mut place) = place else {
            let command = config.guard.command.words().to_vec();
            let check = CommitCheck { command, config: config.clone(), pinned: None };
            let (outcome, output) = self.check(commit, &check)?;
            return Ok(RerunStep { name: GUARD_STEP, place: RerunPlace::Clone, outcome, output });
        };
        let (outcome, output) = self.run_in_room(&mut place, config)?;
        Ok(RerunStep { name: GUARD_STEP, place: RerunPlace::Room, outcome, output })
    }

    /// A fresh room with the files of a commit; none if the machine has none to offer and the configuration does not insist.
    fn room_at(&self, commit: &CommitId, config: &Config) -> Option<Result<RerunRoom, Error>> {
        let open = || -> Result<RerunRoom, Error> {
            let dir = TempDir::create()?;
            let candidate = Candidate { tree: self.git.tree_of(commit)?, commit: commit.clone() };
            let mut room = Room::fresh(&self.git, &dir.path().join("room"), &config.guard, &candidate)?;
            let protection = protection_at(&self.git, commit, &config.guard)?;
            let protected = self.git.matching_paths(commit, &protection.files)?;
            room.enter(&self.git, &config.guard, &candidate, &protected)?;
            Ok(RerunRoom { room, dir })
        };
        match open() {
            Err(Error::Refused(UserError::NoRoom { .. })) if config.guard.room == RoomMode::Auto => None,
            result => Some(result),
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
                return Ok((outcome, output));
            }
        }
        let (outcome, mut output) = self.run_words(place, config, guard.command.words())?;
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
    ) -> Result<(GuardRerunOutcome, Vec<String>), Error> {
        let command = match command::resolve_past_command(words, self.git.root()) {
            Ok(command) => command,
            Err(why) => return Ok((GuardRerunOutcome::NotStarted(why), Vec::new())),
        };
        let wrapped = place.room.wrap(&self.git, &config.guard, command);
        let log = place.dir.path().join("guard.log");
        let spec = ProcessSpec::new(wrapped.argv, self.git.root(), log_of(&log, config))
            .env(wrapped.environment)
            .time_limits(wall_of(config))
            .output_filter(&output_filter);
        let result = supervise::run(&spec, &self.cancel, &self.supervisor)?;
        let outcome = self.outcome(exit_inside_sandbox(result.exit));
        let output = fs::read(&log).unwrap_or_default();
        Ok((outcome, last_lines(&String::from_utf8_lossy(&output))))
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
        let program = match command::resolve_command(&check.command, &clone) {
            Ok(program) => program,
            Err(why) => return Ok((GuardRerunOutcome::NotStarted(why), Vec::new())),
        };
        let log = dir.path().join("guard.log");
        let spec = ProcessSpec::new(program.argv, clone, log_of(&log, &check.config))
            .env(program.environment)
            .time_limits(wall_of(&check.config))
            .output_filter(&output_filter);
        let result = supervise::run(&spec, &self.cancel, &self.supervisor)?;
        let outcome = self.outcome(result.exit);
        let output = fs::read(&log).unwrap_or_default();
        Ok((outcome, last_lines(&String::from_utf8_lossy(&output))))
    }

    fn outcome(&self, exit: ExitReason) -> GuardRerunOutcome {
        match exit {
            ExitReason::Exited(code) => GuardRerunOutcome::Ended(GuardExit::Code(code)),
            ExitReason::Signalled(signal) => GuardRerunOutcome::Ended(GuardExit::Signal(signal)),
            ExitReason::CouldNotStart(error) => GuardRerunOutcome::NotStarted(error.to_string()),
            ExitReason::TimedOut | ExitReason::Idle => GuardRerunOutcome::TimedOut,
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

/// One command that is repeated for a pass, and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RerunStep {
    /// What was repeated: `guard`.
    pub name: &'static str,
    pub place: RerunPlace,
    pub outcome: GuardRerunOutcome,
    /// The last lines of its output.
    pub output: Vec<String>,
}

const GUARD_STEP: &str = "guard";

/// Where a command was repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RerunPlace {
    /// In a fresh room.
    Room,
    /// In a temporary clone, without a sandbox.
    Clone,
}

impl RerunPlace {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::Clone => "clone",
        }
    }
}

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

/// How many lines of a guard's output are shown.
const LINES_MAX: usize = 10;

fn last_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> =
        text.lines().map(runner_core::text::one_line).filter(|line| !line.is_empty()).collect();
    lines.split_off(lines.len().saturating_sub(LINES_MAX))
}
