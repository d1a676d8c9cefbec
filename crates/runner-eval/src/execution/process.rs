//! Runs a program under supervision so that no process of it survives: setup, the runner, checks, teardown.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use supervise::{
    CancelHandle, ExitReason, IoError, OutputLog, OutputTarget, ProcessSpec, StopRequest, SupervisorSlot,
    TimeLimits, executables,
};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
const DEFAULT_OUTPUT_MAX_BYTES: u64 = 64 << 20;
/// How much of the end of the output messages quote.
const TAIL_CHARS: usize = 2_000;

pub(crate) type OutputCallback<'a> = &'a dyn Fn(&[u8]);

/// A program to run.
pub(crate) struct CommandSpec<'a> {
    /// The program, by its absolute path, and its arguments.
    pub(crate) argv: Vec<OsString>,
    pub(crate) folder: PathBuf,
    /// Variables in addition to those of this process.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) timeout: Duration,
    /// A file for both output streams. Without it, they go to temporary files.
    pub(crate) log: Option<PathBuf>,
    pub(crate) output_max_bytes: u64,
    /// Receives output while the program runs.
    pub(crate) on_output: Option<OutputCallback<'a>>,
}

impl CommandSpec<'_> {
    /// With default limits, in the current folder.
    pub(crate) fn new(argv: Vec<OsString>) -> Self {
        Self {
            argv,
            folder: PathBuf::from("."),
            env: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            log: None,
            output_max_bytes: DEFAULT_OUTPUT_MAX_BYTES,
            on_output: None,
        }
    }
}

pub(crate) struct CommandResult {
    pub(crate) exit: ExitReason,
    pub(crate) seconds: f64,
    /// Both streams, if they went to a log.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandResult {
    /// The end of the output.
    pub(crate) fn tail(&self) -> String {
        let output = format!("{}{}", self.stdout, self.stderr);
        let skipped = output.chars().count().saturating_sub(TAIL_CHARS);
        output.chars().skip(skipped).collect::<String>().trim_end().to_owned()
    }

    pub(crate) fn is_success(&self) -> bool {
        self.exit.is_success()
    }
}

/// Runs programs one after the other. Their output goes to a scratch folder.
pub(crate) struct CommandRunner {
    pub(crate) cancel: CancelHandle,
    supervisor: SupervisorSlot,
    scratch: PathBuf,
}

impl CommandRunner {
    pub(crate) fn new(scratch: PathBuf) -> Result<Self, IoError> {
        Ok(Self { cancel: CancelHandle::new()?, supervisor: SupervisorSlot::default(), scratch })
    }

    /// Whether the user stopped the evaluation.
    pub(crate) fn is_stopping(&self) -> bool {
        self.cancel.request() != StopRequest::None
    }

    /// Runs a program until it and all its descendants have ended.
    pub(crate) fn run(&self, command: &CommandSpec<'_>) -> Result<CommandResult, IoError> {
        fs::create_dir_all(&self.scratch).map_err(|source| IoError {
            action: "create",
            path: self.scratch.clone(),
            source,
        })?;
        let log = |path: PathBuf| OutputLog { path, bytes_max: command.output_max_bytes };
        let stdout_file = self.scratch.join("stdout");
        let stderr_file = self.scratch.join("stderr");
        let output = match &command.log {
            Some(path) => OutputTarget::Combined(log(path.clone())),
            None => {
                OutputTarget::Separate { stdout: log(stdout_file.clone()), stderr: log(stderr_file.clone()) }
            }
        };
        let on_output = |_, bytes: &[u8]| {
            if let Some(on_output) = command.on_output {
                on_output(bytes);
            }
        };
        let spec = ProcessSpec::new(command.argv.clone(), &command.folder, output)
            .env(environment(&command.env))
            .time_limits(TimeLimits::wall(command.timeout))
            .on_output(&on_output);
        let result = supervise::run(&spec, &self.cancel, &self.supervisor)?;
        let (stdout, stderr) = match &command.log {
            Some(path) => (read_text(path), String::new()),
            None => (read_text(&stdout_file), read_text(&stderr_file)),
        };
        Ok(CommandResult { exit: result.exit, seconds: result.elapsed.as_secs_f64(), stdout, stderr })
    }
}

fn read_text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// The variables of this process and `more`, without variables that would redirect git or the runner.
fn environment(more: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let mut environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    environment.retain(|(name, _)| {
        let text = name.to_string_lossy();
        let is_replaced = more.iter().any(|(other, _)| other == name);
        !text.starts_with("GIT_") && !text.starts_with("RUNNER_") && !is_replaced
    });
    environment.extend(more.iter().cloned());
    environment
}

/// The program and its arguments, with the program's absolute path: relative to `folder`, or from the PATH. None if it
/// does not exist.
pub(crate) fn resolve_argv(argv: &[String], folder: &Path) -> Option<Vec<OsString>> {
    let (program, arguments) = argv.split_first()?;
    let path = if program.contains('/') { folder.join(program) } else { executables::find(program, None)? };
    let mut resolved = vec![path.into_os_string()];
    resolved.extend(arguments.iter().map(OsString::from));
    Some(resolved)
}
