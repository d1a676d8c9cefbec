//! The one door to git: few, exact, hardened calls of its command line.
//!
//! No call runs a hook, a pager, an editor, a file-system monitor or a prompt; none sees another repository's
//! variables; none runs a filter that the repository's own configuration defines and nobody allowed. Answers are
//! read as bytes, separated by NUL where git offers it.

mod batch_process;
mod commit;
mod config;
mod history;
mod loose;
mod objects;
mod refs;
mod repository;
mod status;
mod write_tree;

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use batch_process::GitProcess;
use config::GitSettings;
pub(crate) use history::{CatFileBatch, LogEntry};
pub(crate) use objects::{CheckoutMode, DiffFilter, EntryMode, IndexEntry, PathSet, TreeEntry};
pub use repository::GitOperation;
pub(crate) use status::{Differing, PathChange, ScanResult};
pub use status::{Head, RepoStatus};

use crate::error::{Error, UserError};
use crate::repo::paths::RepoPaths;
use crate::repo::readonly_repo::TruncatedBytes;
use supervise::executables;

/// The oldest git that can be told what to write through to the disk (`core.fsync`).
pub const OLDEST: (u32, u32) = (2, 36);

/// Variables that a child sees: how to find programs, and whose settings these are.
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

/// Variables that hold for every call.
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

/// Settings that hold for every call, whatever any configuration says.
const PINNED: [(&str, &str); 12] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    // An agent can give a file any time of change, but not the time at which it did so.
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

/// A repository, and how to ask git about it.
#[derive(Debug)]
pub struct Git {
    program: PathBuf,
    paths: RepoPaths,
    common_dir: PathBuf,
    /// How many hexadecimal digits an object's name has here.
    name_digits: usize,
    settings: GitSettings,
    /// Stores files as commits.
    committing: GitProcess,
    /// Moves references.
    moving: GitProcess,
    /// Reads objects.
    reading: GitProcess,
    /// Stores lists of entries as trees.
    planting: GitProcess,
}

/// What the log of a reference says of a move.
const REASON: &str = "runner";

impl Git {
    /// Finds the repository that `dir` lies in.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let program = executables::find("git", None).ok_or(UserError::NoGit)?;
        let found = repository::discover(&program, dir)?;
        // Only now is it known which git could be the repository's own.
        let program = executables::find("git", Some(&found.root)).ok_or(UserError::NoGit)?;
        let settings = GitSettings::read(&program, &found.root)?;
        Ok(Self {
            paths: RepoPaths::new(&found.root, &found.git_dir),
            program,
            common_dir: found.common_dir,
            name_digits: found.name_digits,
            settings,
            committing: GitProcess::new(&[
                "hash-object",
                "-w",
                "-t",
                "commit",
                "--no-filters",
                "--stdin-paths",
            ]),
            moving: GitProcess::new(&["update-ref", "-m", REASON, "--stdin"]),
            reading: GitProcess::new(&["cat-file", "--batch"]),
            planting: GitProcess::new(&["mktree", "-z", "--batch"]),
        })
    }

    /// Makes a repository in a folder that has none.
    pub(crate) fn create(folder: &Path) -> Result<Self, Error> {
        let program = executables::find("git", None).ok_or(UserError::NoGit)?;
        let mut command = hardened(&program, folder);
        configure(&mut command, PINNED.into_iter());
        let output =
            command.args(["init", "-q", "-b", "main"]).output().map_err(Error::io("run", &program))?;
        if !output.status.success() {
            return Err(Error::Git { command: "init".to_owned(), stderr: lossy(&output.stderr) });
        }
        Self::open(folder)
    }

    /// The work tree's root.
    pub fn root(&self) -> &Path {
        self.paths.root()
    }

    /// Where the repository keeps what all its work trees share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The git program in use.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The configured author of commits as `Name <email>`, if both are set.
    pub fn author(&self) -> Option<String> {
        self.settings.author()
    }

    /// Where this work tree keeps what is its own.
    pub(crate) fn git_dir(&self) -> PathBuf {
        self.paths.git_dir().to_owned()
    }

    pub(crate) fn paths(&self) -> &RepoPaths {
        &self.paths
    }

    /// The name that stands for no object.
    pub(crate) fn no_object(&self) -> String {
        "0".repeat(self.name_digits)
    }

    /// Lets the filters of these names run, and refuses if files here need one that is not among them.
    pub(crate) fn allow_filters(&mut self, names: &[String]) -> Result<(), Error> {
        self.settings.allow_filters(names);
        for name in self.settings.forbidden_filters() {
            let spec = format!(":(attr:filter={name})");
            let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", &spec];
            if !self.call(&args).run()?.is_empty() {
                return Err(UserError::Filter(name.to_owned()).into());
            }
        }
        Ok(())
    }

    /// Begins a call.
    pub(crate) fn call<S: AsRef<OsStr>>(&self, args: &[S]) -> GitCommand<'_> {
        let mut command = hardened(&self.program, self.root());
        self.settings.apply(&mut command);
        command.args(args);
        let words = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect::<Vec<_>>().join(" ");
        GitCommand { command, words, input: None }
    }
}

/// A git command in `dir` that sees nothing of the caller's environment but what it must.
fn hardened(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).env_clear().env("PATH", executables::search_path_variable());
    command.envs(INHERITED.iter().filter_map(|name| std::env::var_os(name).map(|value| (*name, value))));
    command.envs(FIXED);
    command
}

/// Gives settings to a command through its environment, where no character needs quoting.
fn configure<'a>(command: &mut Command, settings: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut count = 0;
    for (key, value) in settings {
        command.env(format!("GIT_CONFIG_KEY_{count}"), key).env(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    command.env("GIT_CONFIG_COUNT", count.to_string());
}

/// A call about to be made.
pub(crate) struct GitCommand<'i> {
    command: Command,
    words: String,
    input: Option<&'i [u8]>,
}

impl<'i> GitCommand<'i> {
    /// Works on an index of the runner's own.
    fn index(mut self, path: &Path) -> Self {
        self.command.env("GIT_INDEX_FILE", path);
        self
    }

    fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.command.env(name, value.into());
        self
    }

    fn input<'n>(self, bytes: &'n [u8]) -> GitCommand<'n>
    where
        'i: 'n,
    {
        GitCommand { command: self.command, words: self.words, input: Some(bytes) }
    }

    /// Runs it; anything but success is an error with git's own words.
    pub(crate) fn run(self) -> Result<Vec<u8>, Error> {
        let words = self.words.clone();
        let output = self.output()?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(Error::Git { command: words, stderr: lossy(&output.stderr) })
    }

    /// Runs it and takes no more than so many bytes of its answer; a longer one is cut, and git ended.
    pub(crate) fn run_cut(mut self, bytes_max: usize) -> Result<TruncatedBytes, Error> {
        let program = PathBuf::from(self.command.get_program());
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = self.command.spawn().map_err(Error::io("run", &program))?;
        let mut bytes = Vec::new();
        let most = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
        let stdout = child.stdout.take();
        let read = stdout.map_or(Ok(0), |stdout| stdout.take(most).read_to_end(&mut bytes));
        let is_cut = bytes.len() > bytes_max;
        if is_cut || read.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().map_err(Error::io("run", &program))?;
        read.map_err(Error::io("read the answer of", &program))?;
        if !is_cut && !status.success() {
            return Err(Error::Git { command: self.words, stderr: String::new() });
        }
        bytes.truncate(bytes_max);
        Ok(TruncatedBytes { bytes, is_truncated: is_cut })
    }

    /// Runs it and gives everything back.
    fn output(mut self) -> Result<Output, Error> {
        let fail = |program: &OsStr| Error::io::<std::io::Error>("run", PathBuf::from(program));
        let program = self.command.get_program().to_owned();
        let Some(input) = self.input else {
            return self.command.stdin(Stdio::null()).output().map_err(fail(&program));
        };
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().map_err(fail(&program))?;
        let stdin = child.stdin.take();
        // The input goes in from a thread of its own: git may answer before it has read all of it.
        std::thread::scope(|scope| {
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
            child.wait_with_output().map_err(fail(&program))
        })
    }
}

/// Bytes for people: whatever they are, something readable.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// A path as git writes it, as the operating system takes it.
pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
