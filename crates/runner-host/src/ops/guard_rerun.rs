//! The guard, once more: on a commit that passed, in a repository of its own that is gone afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runner_core::config::Config;
use runner_core::step::GuardExit;

use crate::agent::command;
use crate::error::Error;
use crate::git::Git;
use crate::ops::verify::PassingCommit;
use supervise::signals::{ShutdownSignal, SignalListener};
use supervise::{
    self, CancelHandle, ExitReason, OutputLog, OutputTarget, ProcessInput, ProcessSpec, SupervisorSlot,
    TimeLimits,
};

/// How a guard that was run again ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardRerunOutcome {
    /// It ran to its end.
    Ended(GuardExit),
    /// Its time was over.
    TimedOut,
    /// It could not be started, and why.
    NotStarted(String),
    /// The user stopped it; this is the exit code that tells of it.
    Stopped(u8),
}

/// What is run on a commit.
#[derive(Clone, Debug)]
pub struct CommitCheck {
    /// The command.
    pub command: Vec<String>,
    /// Where the limits come from.
    pub config: Config,
    /// Files that are put in place first.
    pub pinned: Option<PinnedFiles>,
}

/// Files as a commit has them.
#[derive(Clone, Debug)]
pub struct PinnedFiles {
    /// The commit.
    pub commit: String,
    /// Patterns that they match.
    pub patterns: Vec<String>,
}

/// Runs guards again; signals stop them and clean up.
pub struct GuardRerunner {
    git: Git,
    control: CancelHandle,
    supervision: SupervisorSlot,
    signals: SignalListener,
}

/// A folder that goes when it is no longer needed.
struct TempDir(PathBuf);

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = crate::fs::atomic::clear(&self.0);
    }
}

impl GuardRerunner {
    /// Gets ready, in the repository that `dir` lies in.
    pub fn begin(dir: &Path) -> Result<Self, Error> {
        let git = Git::open(dir)?;
        let control = CancelHandle::new()?;
        let signals = SignalListener::install(&control)?;
        Ok(Self { git, control, supervision: SupervisorSlot::default(), signals })
    }

    /// Runs the guard that was in force again on a commit that passed. Gives how it ended and the last lines it printed.
    pub fn run(&self, pass: &PassingCommit) -> Result<(GuardRerunOutcome, Vec<String>), Error> {
        let Some(config) = pass.config.clone() else {
            let why = "the configuration of that commit cannot be read".to_owned();
            return Ok((GuardRerunOutcome::NotStarted(why), Vec::new()));
        };
        let command = config.guard.command.words().to_vec();
        self.check(&pass.commit, &CommitCheck { command, config, pinned: None })
    }

    /// Checks a commit out into a temporary repository and runs a command there.
    pub(crate) fn check(
        &self,
        commit: &str,
        check: &CommitCheck,
    ) -> Result<(GuardRerunOutcome, Vec<String>), Error> {
        let folder = TempDir(fresh_folder()?);
        let work = folder.0.join("work");
        self.git.clone_at(&work, commit)?;
        if let Some(pinned) = &check.pinned {
            let paths = self.git.matching_paths(&pinned.commit, &pinned.patterns)?;
            self.git.lay_over(&work, &pinned.commit, &paths)?;
        }
        let config = &check.config;
        let program = match command::program(&check.command, &work) {
            Ok(program) => program,
            Err(why) => return Ok((GuardRerunOutcome::NotStarted(why), Vec::new())),
        };
        let log = folder.0.join("guard.log");
        let bytes = |limit: i64| u64::try_from(limit).unwrap_or_default();
        let launch = ProcessSpec {
            argv: program.argv,
            working_dir: work,
            environment: program.environment,
            input: ProcessInput::Empty,
            output: OutputTarget::Combined(OutputLog {
                path: log.clone(),
                bytes_max: bytes(config.guard_output_limit_bytes.get()),
            }),
            stream: None,
            on_output: &|_, _| (),
            limits: TimeLimits {
                wall: Duration::from_secs(bytes(config.iteration_timeout_secs.get())),
                idle: Duration::ZERO,
            },
            stop_policy: supervise::StopPolicy::default(),
            has_changed_files: &|| false,
        };
        let ended = supervise::run(&launch, &self.control, &self.supervision)?;
        let how = match ended.exit {
            ExitReason::Exited(code) => GuardRerunOutcome::Ended(GuardExit::Code(code)),
            ExitReason::Signalled(signal) => GuardRerunOutcome::Ended(GuardExit::Signal(signal)),
            ExitReason::CouldNotStart(error) => GuardRerunOutcome::NotStarted(error.to_string()),
            ExitReason::TimedOut | ExitReason::Idle => GuardRerunOutcome::TimedOut,
            ExitReason::Stopped => {
                GuardRerunOutcome::Stopped(self.signals.received().map_or(130, ShutdownSignal::exit_code))
            }
            ExitReason::Lost => GuardRerunOutcome::NotStarted("its supervisor was killed".to_owned()),
        };
        let text = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
        Ok((how, last_lines(&text)))
    }
}

/// How many lines of a guard are shown.
const LINES_MAX: usize = 10;

fn last_lines(text: &str) -> Vec<String> {
    let all: Vec<String> =
        text.lines().map(runner_core::text::one_line).filter(|line| !line.is_empty()).collect();
    all.iter().skip(all.len().saturating_sub(LINES_MAX)).cloned().collect()
}

/// A new folder that nobody else can look into.
fn fresh_folder() -> Result<PathBuf, Error> {
    use std::os::unix::fs::DirBuilderExt;
    let base = std::env::temp_dir();
    for nth in 0..1000 {
        let path = base.join(format!("runner-guard-{}-{nth}", std::process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::Io { action: "create the folder", path, source: error }),
        }
    }
    Err(Error::Io {
        action: "create a folder in",
        path: base,
        source: std::io::ErrorKind::AlreadyExists.into(),
    })
}
