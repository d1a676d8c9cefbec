//! The guard, once more: on a commit that passed, in a repository of its own that is gone afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runner_core::step::GuardExit;

use crate::error::Error;
use crate::executor;
use crate::git::Git;
use crate::process::{self, Control, How, Input, Launch, Limits, Log, Output, Supervision};
use crate::signals::{Caught, Listener};
use crate::verify::Pass;

/// How a guard that was run again ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rerun {
    /// It ran to its end.
    Ended(GuardExit),
    /// Its time was over.
    TimedOut,
    /// It could not be started, and why.
    NotStarted(String),
    /// The user stopped it; this is the exit code that tells of it.
    Stopped(u8),
}

/// Runs guards again; signals stop them and clean up.
pub struct Reruns {
    git: Git,
    control: Control,
    supervision: Supervision,
    signals: Listener,
}

/// A folder that goes when it is no longer needed.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = crate::store::clear(&self.0);
    }
}

impl Reruns {
    /// Gets ready, in the repository that `dir` lies in.
    pub fn begin(dir: &Path) -> Result<Self, Error> {
        let git = Git::open(dir)?;
        let control = Control::new()?;
        let signals = Listener::begin(&control)?;
        Ok(Self { git, control, supervision: Supervision::default(), signals })
    }

    /// Checks a commit out into a temporary repository and runs the guard that was in force on it. Gives how it ended and
    /// the last lines it printed.
    pub fn run(&self, pass: &Pass) -> Result<(Rerun, Vec<String>), Error> {
        let folder = Temporary(fresh_folder()?);
        let work = folder.0.join("work");
        self.git.clone_at(&work, &pass.commit)?;
        let Some(config) = &pass.config else {
            let why = "the configuration of that commit cannot be read".to_owned();
            return Ok((Rerun::NotStarted(why), Vec::new()));
        };
        let program = match executor::program(config.guard.command.words(), &work) {
            Ok(program) => program,
            Err(why) => return Ok((Rerun::NotStarted(why), Vec::new())),
        };
        let log = folder.0.join("guard.log");
        let bytes = |limit: i64| u64::try_from(limit).unwrap_or_default();
        let launch = Launch {
            argv: program.argv,
            folder: work,
            environment: program.environment,
            input: Input::Nothing,
            output: Output::Together(Log {
                path: log.clone(),
                bytes_max: bytes(config.guard_output_limit_bytes.get()),
            }),
            stream: None,
            hear: &|_, _| (),
            limits: Limits {
                wall: Duration::from_secs(bytes(config.iteration_timeout_secs.get())),
                idle: Duration::ZERO,
            },
            stop: process::Stop::default(),
            has_changed_files: &|| false,
        };
        let ended = process::run(&launch, &self.control, &self.supervision)?;
        let how = match ended.how {
            How::Exited(code) => Rerun::Ended(GuardExit::Code(code)),
            How::Signalled(signal) => Rerun::Ended(GuardExit::Signal(signal)),
            How::CouldNotStart(error) => Rerun::NotStarted(error.to_string()),
            How::TimedOut | How::Idle => Rerun::TimedOut,
            How::Stopped => Rerun::Stopped(self.signals.caught().map_or(130, Caught::exit_code)),
            How::Lost => Rerun::NotStarted("its supervisor was killed".to_owned()),
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
