//! One git invocation: its hardened environment, its input, and how its output is read.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use runner_core::model::object_id::TreeId;
use supervise::executables;

use super::lossy;
use crate::error::Error;

/// Variables that git inherits: how to find programs, and whose settings apply.
const INHERITED: [&str; 12] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
];

/// Variables that every call sets.
const FIXED: [(&str, &str); 9] = [
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
];

/// Settings that every call overrides, whatever the configuration contains.
pub(super) const PINNED: [(&str, &str); 12] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    // An agent can set any mtime on a file, but it cannot set the ctime.
    ("core.trustCtime", "true"),
    ("core.checkStat", "default"),
    ("core.ignoreStat", "false"),
    ("core.fsync", "committed,loose-object"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("commit.gpgSign", "false"),
];

/// A git command in `dir` that sees only the allowed part of the caller's environment.
pub(super) fn hardened(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).env_clear().env("PATH", executables::search_path_variable());
    command.envs(INHERITED.iter().filter_map(|name| std::env::var_os(name).map(|value| (*name, value))));
    command.envs(FIXED);
    command
}

/// Passes settings to a command through its environment, where no character needs quoting.
pub(super) fn configure<'a>(command: &mut Command, settings: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut count = 0;
    for (key, value) in settings {
        command.env(format!("GIT_CONFIG_KEY_{count}"), key).env(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    command.env("GIT_CONFIG_COUNT", count.to_string());
}

/// A git command that is about to run.
pub(crate) struct GitCommand<'i> {
    pub(super) command: Command,
    /// The arguments, for error messages.
    pub(super) arguments: String,
    input: Option<&'i [u8]>,
}

/// The output of a git command, which may be only its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruncatedBytes {
    pub bytes: Vec<u8>,
    pub is_truncated: bool,
}

impl<'i> GitCommand<'i> {
    pub(super) fn new<S: AsRef<OsStr>>(command: Command, args: &[S]) -> Self {
        let words: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect();
        let arguments = words.join(" ");
        let mut command = command;
        command.args(args);
        Self { command, arguments, input: None }
    }

    /// Works on one of the runner's private indexes instead of the user's.
    pub(super) fn index(mut self, path: &Path) -> Self {
        self.command.env("GIT_INDEX_FILE", path);
        self
    }

    pub(super) fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.command.env(name, value.into());
        self
    }

    pub(super) fn input<'n>(self, bytes: &'n [u8]) -> GitCommand<'n>
    where
        'i: 'n,
    {
        GitCommand { command: self.command, arguments: self.arguments, input: Some(bytes) }
    }

    /// Runs the command. Any exit code but 0 is an error with git's message.
    pub(crate) fn run(self) -> Result<Vec<u8>, Error> {
        let arguments = self.arguments.clone();
        let output = self.output()?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(Error::Git { command: arguments, stderr: lossy(&output.stderr) })
    }

    /// Runs a command that prints the id of a tree.
    pub(super) fn run_for_tree(self) -> Result<TreeId, Error> {
        let unexpected = Error::GitOutput { command: self.arguments.clone() };
        TreeId::new(lossy(&self.run()?)).map_err(|_| unexpected)
    }

    /// Runs the command and reads at most `bytes_max` bytes of its output; beyond that, kills git.
    pub(crate) fn run_truncated(mut self, bytes_max: usize) -> Result<TruncatedBytes, Error> {
        let program = PathBuf::from(self.command.get_program());
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = self.command.spawn().map_err(Error::io("run", &program))?;
        let mut bytes = Vec::new();
        let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
        let stdout = child.stdout.take();
        let read = stdout.map_or(Ok(0), |stdout| stdout.take(limit).read_to_end(&mut bytes));
        let is_truncated = bytes.len() > bytes_max;
        if is_truncated || read.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().map_err(Error::io("run", &program))?;
        read.map_err(Error::io("read the output of", &program))?;
        if !is_truncated && !status.success() {
            return Err(Error::Git { command: self.arguments, stderr: String::new() });
        }
        bytes.truncate(bytes_max);
        Ok(TruncatedBytes { bytes, is_truncated })
    }

    /// Runs the command and returns its output, whatever its exit code.
    pub(super) fn output(mut self) -> Result<Output, Error> {
        let program = PathBuf::from(self.command.get_program());
        let Some(input) = self.input else {
            return self.command.stdin(Stdio::null()).output().map_err(Error::io("run", program));
        };
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().map_err(Error::io("run", &program))?;
        let stdin = child.stdin.take();
        // A separate thread writes the input: git may print output before it has read all of it.
        std::thread::scope(|scope| {
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
            child.wait_with_output().map_err(Error::io("run", program))
        })
    }
}
