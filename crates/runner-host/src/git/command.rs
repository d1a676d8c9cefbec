//! One git invocation: its hardened environment, its input, and how its output is read.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use runner_core::model::object_id::TreeId;
use supervise::executables;

use super::child_io::{self, ChildOutput};
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
pub(super) const PINNED: [(&str, &str); 15] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    // An agent can set any mtime on a file, but it cannot set the ctime.
    ("core.trustCtime", "true"),
    ("core.checkStat", "default"),
    ("core.ignoreStat", "false"),
    // A split index is a second file that a private copy would share with the user's index.
    ("core.splitIndex", "false"),
    // Line ends that git would not restore are not a reason to refuse a file.
    ("core.safecrlf", "false"),
    // A cache that can disagree with the commits.
    ("core.commitGraph", "false"),
    // Objects are not synced one by one: one sync of the file system covers them all, before anything names them.
    ("core.fsync", "reference,pack,pack-metadata"),
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
    pub(crate) fn index(mut self, path: &Path) -> Self {
        self.command.env("GIT_INDEX_FILE", path);
        self
    }

    /// The command without its input, for a thread of its own.
    pub(crate) fn detached(self) -> GitCommand<'static> {
        GitCommand { command: self.command, arguments: self.arguments, input: None }
    }

    pub(crate) fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.command.env(name, value.into());
        self
    }

    pub(crate) fn input<'n>(self, bytes: &'n [u8]) -> GitCommand<'n>
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
        Err(Error::git(arguments, &output.stderr))
    }

    /// Runs a command that prints the id of a tree.
    pub(super) fn run_for_tree(self) -> Result<TreeId, Error> {
        let unexpected = Error::GitOutput { command: self.arguments.clone() };
        TreeId::new(lossy(&self.run()?)).map_err(|_| unexpected)
    }

    /// Runs the command and reads at most `bytes_max` bytes of its output; beyond that, kills git.
    pub(crate) fn run_truncated(self, bytes_max: usize) -> Result<TruncatedBytes, Error> {
        let command = self.arguments.clone();
        let ChildOutput { status, stdout, stderr, is_truncated } = self.run_child(bytes_max)?;
        if !is_truncated && !status.success() {
            return Err(Error::git(command, &stderr));
        }
        Ok(TruncatedBytes { bytes: stdout, is_truncated })
    }

    /// Runs the command and returns its output, whatever its exit code.
    pub(super) fn output(self) -> Result<ChildOutput, Error> {
        self.run_child(usize::MAX)
    }

    /// Runs a query that git answers with a result, or with exit code 1 and no output for "there is none". Anything else
    /// is an error: a git that failed has not answered.
    pub(super) fn query(self) -> Result<Option<Vec<u8>>, Error> {
        let command = self.arguments.clone();
        let output = self.output()?;
        if output.status.success() {
            return Ok(Some(output.stdout));
        }
        if output.status.code() == Some(1) && output.stderr.is_empty() && output.stdout.is_empty() {
            return Ok(None);
        }
        Err(Error::git(command, &output.stderr))
    }

    fn run_child(mut self, stdout_max: usize) -> Result<ChildOutput, Error> {
        let program = PathBuf::from(self.command.get_program());
        child_io::run(&mut self.command, self.input, stdout_max).map_err(Error::io("run", program))
    }
}

#[cfg(test)]
mod tests {
    use crate::git::Git;

    #[test]
    fn a_query_that_fails_after_its_answer_is_an_error_and_not_a_no() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        assert_eq!(git.call(&["config", "--get", "no.such"]).query().unwrap(), None);
        let found = git.call(&["-c", "alias.x=!echo found; exit 1", "x"]).query();
        assert!(found.is_err(), "{found:?}");
    }
}
