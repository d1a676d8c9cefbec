//! Runs a program under supervision so that no process of it survives: setup, the runner, checks, teardown.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use supervise::{
    CancelHandle, ExitReason, IoError, OutputLog, OutputTarget, ProcessSpec, StopPolicy, StopRequest,
    SupervisorSlot, TimeLimits, executables,
};

use crate::execution::sandbox::{SandboxAccess, SandboxPrograms};

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
    /// Variables in addition to those that `inherited` allows.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) inherited: InheritedVariables,
    /// None for a program of the evaluation itself, which runs no code of an agent.
    pub(crate) sandbox: Option<CommandSandbox<'a>>,
    pub(crate) timeout: Duration,
    /// A file for both output streams. Without it, they go to temporary files.
    pub(crate) log: Option<PathBuf>,
    pub(crate) output_max_bytes: u64,
    /// Receives output while the program runs.
    pub(crate) on_output: Option<OutputCallback<'a>>,
}

/// The sandbox that a program runs in.
#[derive(Clone)]
pub(crate) struct CommandSandbox<'a> {
    pub(crate) programs: &'a SandboxPrograms,
    pub(crate) access: SandboxAccess,
}

/// Which variables of this process a program gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InheritedVariables {
    /// All but those that would redirect git or the runner. Agents find their logins in some of them.
    All,
    /// Only those that programs need to run: no keys, no tokens.
    Basic,
}

const BASIC_VARIABLES: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TZ",
    "TERM",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
];

impl InheritedVariables {
    fn contains(self, name: &str) -> bool {
        match self {
            Self::All => !name.starts_with("GIT_") && !name.starts_with("RUNNER_"),
            Self::Basic => BASIC_VARIABLES.contains(&name) || name.starts_with("LC_"),
        }
    }
}

impl CommandSpec<'_> {
    /// With default limits, in the current folder.
    pub(crate) fn new(argv: Vec<OsString>) -> Self {
        Self {
            argv,
            folder: PathBuf::from("."),
            env: Vec::new(),
            inherited: InheritedVariables::All,
            sandbox: None,
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
        let mut env = environment(command.inherited, &command.env);
        let mut stop_policy = StopPolicy::default();
        let argv = match &command.sandbox {
            None => command.argv.clone(),
            Some(CommandSandbox { programs, access }) => {
                env.retain(|(name, _)| !TEMPORARY_VARIABLES.iter().any(|variable| name == variable));
                stop_policy.is_sandboxed = true;
                programs.wrap(&command.argv, &command.folder, access, &env)
            }
        };
        let spec = ProcessSpec::new(argv, &command.folder, output)
            .env(env)
            .stop_policy(stop_policy)
            .time_limits(TimeLimits::wall(command.timeout))
            .on_output(&on_output)
            .output_filter(&runner_host::redaction::output_filter);
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

/// Variables with the path of a temporary folder; inside of a sandbox it is always `/tmp`.
const TEMPORARY_VARIABLES: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// The inherited variables of this process, and `more`.
fn environment(inherited: InheritedVariables, more: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let mut environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    environment.retain(|(name, _)| {
        let is_replaced = more.iter().any(|(other, _)| other == name);
        inherited.contains(&name.to_string_lossy()) && !is_replaced
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
