//! Runs a guard again on a past commit, in a temporary clone. Used by `runner verify --rerun-guard` and `runner blame`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runner_core::config::Config;
use runner_core::model::object_id::CommitId;
use runner_core::step::GuardExit;
use supervise::signals::{ShutdownSignal, SignalListener};
use supervise::{CancelHandle, ExitReason, OutputTarget, ProcessSpec, SupervisorSlot, TimeLimits};

use crate::agent::command;
use crate::error::Error;
use crate::git::Git;
use crate::ops::verify::PassingCommit;

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
    signals: SignalListener,
}

/// A temporary folder, removed on drop.
struct TempDir(PathBuf);

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = crate::fs::atomic::remove_any(&self.0);
    }
}

impl GuardRerunner {
    /// Opens the repository that contains `dir`, and handles signals from now on.
    pub fn begin(dir: &Path) -> Result<Self, Error> {
        let git = Git::open(dir)?;
        let cancel = CancelHandle::new()?;
        let signals = SignalListener::install(&cancel)?;
        Ok(Self { git, cancel, supervisor: SupervisorSlot::default(), signals })
    }

    /// Runs the guard that was configured at a commit that passed. Returns its outcome and the last lines of its output.
    pub fn run(&self, pass: &PassingCommit) -> Result<(GuardRerunOutcome, Vec<String>), Error> {
        let Some(config) = pass.config.clone() else {
            let why = "the configuration of that commit cannot be read".to_owned();
            return Ok((GuardRerunOutcome::NotStarted(why), Vec::new()));
        };
        let command = config.guard.command.words().to_vec();
        self.check(&pass.commit, &CommitCheck { command, config, pinned: None })
    }

    /// Checks out a commit into a temporary clone and runs a command there.
    pub(crate) fn check(
        &self,
        commit: &CommitId,
        check: &CommitCheck,
    ) -> Result<(GuardRerunOutcome, Vec<String>), Error> {
        let dir = TempDir(create_temp_dir()?);
        let clone = dir.0.join("work");
        self.git.clone_at(&clone, commit)?;
        if let Some(pinned) = &check.pinned {
            let paths = self.git.matching_paths(&pinned.commit, &pinned.patterns)?;
            self.git.checkout_over(&clone, &pinned.commit, &paths)?;
        }
        let program = match command::resolve_command(&check.command, &clone) {
            Ok(program) => program,
            Err(why) => return Ok((GuardRerunOutcome::NotStarted(why), Vec::new())),
        };
        let log = dir.0.join("guard.log");
        let bytes_max = check.config.guard_output_limit_bytes.as_u64();
        let wall_secs = check.config.iteration_timeout_secs.as_u64();
        let spec = ProcessSpec::new(program.argv, clone, OutputTarget::combined(&log, bytes_max))
            .env(program.environment)
            .time_limits(TimeLimits::wall(Duration::from_secs(wall_secs)));
        let result = supervise::run(&spec, &self.cancel, &self.supervisor)?;
        let outcome = match result.exit {
            ExitReason::Exited(code) => GuardRerunOutcome::Ended(GuardExit::Code(code)),
            ExitReason::Signalled(signal) => GuardRerunOutcome::Ended(GuardExit::Signal(signal)),
            ExitReason::CouldNotStart(error) => GuardRerunOutcome::NotStarted(error.to_string()),
            ExitReason::TimedOut | ExitReason::Idle => GuardRerunOutcome::TimedOut,
            ExitReason::Stopped => {
                GuardRerunOutcome::Stopped(self.signals.received().map_or(130, ShutdownSignal::exit_code))
            }
            ExitReason::Lost => GuardRerunOutcome::NotStarted("its supervisor died".to_owned()),
        };
        let output = fs::read(&log).unwrap_or_default();
        Ok((outcome, last_lines(&String::from_utf8_lossy(&output))))
    }
}

/// How many lines of a guard's output are shown.
const LINES_MAX: usize = 10;

fn last_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> =
        text.lines().map(runner_core::text::one_line).filter(|line| !line.is_empty()).collect();
    lines.split_off(lines.len().saturating_sub(LINES_MAX))
}

/// Creates a folder that other users cannot read.
fn create_temp_dir() -> Result<PathBuf, Error> {
    use std::os::unix::fs::DirBuilderExt;
    let base = std::env::temp_dir();
    for number in 0..1000 {
        let path = base.join(format!("runner-guard-{}-{number}", std::process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(source) => return Err(Error::Io { action: "create the folder", path, source }),
        }
    }
    Err(Error::Io { action: "create a folder in", path: base, source: ErrorKind::AlreadyExists.into() })
}
