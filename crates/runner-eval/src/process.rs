//! Running a program to its end so that nothing of it lives on: setup, the runner, checks, teardown.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use supervise::IoError;
use supervise::executables;
use supervise::{
    self, CancelHandle, ExitReason, OutputLog, OutputTarget, ProcessSpec, SupervisorSlot, TimeLimits,
};

/// How much of what a program wrote is kept at most, where nobody says.
const LOG_MAX_BYTES: u64 = 64 << 20;
/// How much of its end is shown.
const TAIL_BYTES: usize = 2_000;

/// Who hears what a program writes.
pub(crate) type Hear<'a> = &'a dyn Fn(&[u8]);

/// A program to be run.
pub(crate) struct CommandSpec<'a> {
    /// The program, by its absolute path, and its arguments.
    pub(crate) argv: Vec<OsString>,
    pub(crate) folder: PathBuf,
    /// Variables beside this process's own.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) limits: TimeLimits,
    /// Where its output goes; none if only its end is wanted.
    pub(crate) log: Option<PathBuf>,
    pub(crate) output_max_bytes: u64,
    /// Who hears its output meanwhile.
    pub(crate) hear: Option<Hear<'a>>,
}

impl Default for CommandSpec<'_> {
    fn default() -> Self {
        Self {
            argv: Vec::new(),
            folder: PathBuf::from("."),
            env: Vec::new(),
            limits: TimeLimits::default(),
            log: None,
            output_max_bytes: LOG_MAX_BYTES,
            hear: None,
        }
    }
}

/// How it went.
pub(crate) struct CommandResult {
    pub(crate) exit: ExitReason,
    pub(crate) seconds: f64,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandResult {
    /// The end of what it wrote.
    pub(crate) fn tail(&self) -> String {
        let both = format!("{}{}", self.stdout, self.stderr);
        let skipped = both.chars().count().saturating_sub(TAIL_BYTES);
        both.chars().skip(skipped).collect::<String>().trim_end().to_owned()
    }

    /// Whether it ended by itself, with 0.
    pub(crate) fn is_success(&self) -> bool {
        self.exit.is_success()
    }
}

/// Starts programs one after the other, in a folder for their output.
pub(crate) struct CommandRunner {
    pub(crate) control: CancelHandle,
    supervision: SupervisorSlot,
    scratch: PathBuf,
}

impl CommandRunner {
    pub(crate) fn new(scratch: PathBuf) -> Result<Self, IoError> {
        Ok(Self { control: CancelHandle::new()?, supervision: SupervisorSlot::default(), scratch })
    }

    /// Runs a program to its end.
    pub(crate) fn run(&self, errand: &CommandSpec<'_>) -> Result<CommandResult, IoError> {
        let fail = |error| IoError { action: "make", path: self.scratch.clone(), source: error };
        fs::create_dir_all(&self.scratch).map_err(fail)?;
        let log =
            |name: &str| OutputLog { path: self.scratch.join(name), bytes_max: errand.output_max_bytes };
        let (out, err) = (log("stdout"), log("stderr"));
        let output = match &errand.log {
            Some(path) => {
                OutputTarget::Combined(OutputLog { path: path.clone(), bytes_max: errand.output_max_bytes })
            }
            None => OutputTarget::Separate { stdout: out.clone(), stderr: err.clone() },
        };
        let hear = |_, bytes: &[u8]| errand.hear.iter().for_each(|hear| hear(bytes));
        let spec = ProcessSpec::new(errand.argv.clone(), &errand.folder, output)
            .env(environment(&errand.env))
            .time_limits(errand.limits)
            .on_output(&hear);
        let ended = supervise::run(&spec, &self.control, &self.supervision)?;
        let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let (stdout, stderr) = match &errand.log {
            Some(path) => (text(path), String::new()),
            None => (text(&out.path), text(&err.path)),
        };
        Ok(CommandResult { exit: ended.exit, seconds: ended.elapsed.as_secs_f64(), stdout, stderr })
    }
}

/// This process's own variables without those that would lead git, cargo or the runner astray, and these.
fn environment(more: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let is_foreign = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("GIT_")
            || name.starts_with("RUNNER_")
            || more.iter().any(|(known, _)| *known == *name)
    };
    let own = std::env::vars_os().filter(|(name, _)| !is_foreign(name));
    own.chain(more.iter().cloned()).collect()
}

/// The program and its arguments, with the program looked for in a folder and then on the PATH.
pub(crate) fn resolved(words: &[String], folder: &Path) -> Option<Vec<OsString>> {
    let (program, rest) = words.split_first()?;
    let path = if program.contains('/') { folder.join(program) } else { executables::find(program, None)? };
    Some(std::iter::once(path.into()).chain(rest.iter().map(Into::into)).collect())
}
