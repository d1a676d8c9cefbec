//! The only module that runs git: few, exact, hardened calls of its command line.
//!
//! No call runs a hook, a pager, an editor, a file-system monitor or a prompt; none sees another repository's
//! variables; none runs a filter that the repository's own configuration defines and the user did not allow. Output
//! is read as bytes, separated by NUL where git offers it.

mod batch_process;
mod command;
mod commit;
mod config;
mod history;
mod index;
mod loose;
mod loose_pack;
mod objects;
mod ref_check;
mod refs;
mod repository;
mod status;
mod write_tree;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use batch_process::GitProcess;
pub use command::TruncatedBytes;
use command::{GitCommand, PINNED, configure, hardened};
use config::GitSettings;
pub use history::DiffFormat;
use history::KnownStart;
pub(crate) use history::{CatFileBatch, LogEntry};
pub(crate) use index::{CheckoutMode, IndexEntry, PathSet};
pub(crate) use loose_pack::LoosePack;
pub(crate) use objects::{DiffFilter, EntryMode, TreeEntry};
pub(crate) use refs::LocalBranch;
pub use repository::GitOperation;
pub(crate) use status::{ChangedPaths, PathChange, ScanResult};
pub use status::{Head, RepoStatus};
pub(crate) use write_tree::ReplacedFile;

use crate::error::{Error, UserError};
use crate::repo::paths::RepoPaths;
use supervise::executables;

/// The oldest supported git: the first with `core.fsync`, which selects what is flushed to the disk.
pub const OLDEST: (u32, u32) = (2, 36);

/// A repository, and the git processes that work on it.
#[derive(Debug)]
pub struct Git {
    program: PathBuf,
    paths: RepoPaths,
    common_dir: PathBuf,
    /// Hexadecimal digits of an object id: 40 with SHA-1, 64 with SHA-256.
    id_digits: usize,
    settings: GitSettings,
    hash_object: GitProcess,
    update_ref: GitProcess,
    cat_file: GitProcess,
    mktree: GitProcess,
    /// The result of the last search for a run's start.
    known_start: Mutex<Option<KnownStart>>,
}

/// The reflog message of every reference update.
const REFLOG_MESSAGE: &str = "runner";

impl Git {
    /// Finds the repository that contains `dir`.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let program = executables::find("git", None).ok_or(UserError::NoGit)?;
        let location = repository::discover(&program, dir)?;
        // Only now is it known which programs on the PATH are inside the repository and must not be used.
        let program = executables::find("git", Some(&location.root)).ok_or(UserError::NoGit)?;
        let settings = GitSettings::read(&program, &location.root)?;
        Ok(Self {
            paths: RepoPaths::new(&location.root, &location.git_dir),
            program,
            common_dir: location.common_dir,
            id_digits: location.id_digits,
            settings,
            hash_object: GitProcess::new(&[
                "hash-object",
                "-w",
                "-t",
                "commit",
                "--no-filters",
                "--stdin-paths",
            ]),
            update_ref: GitProcess::new(&["update-ref", "-m", REFLOG_MESSAGE, "--stdin"]),
            cat_file: GitProcess::new(&["cat-file", "--batch"]),
            mktree: GitProcess::new(&["mktree", "-z", "--batch"]),
            known_start: Mutex::new(None),
        })
    }

    /// Creates a repository in a folder that has none.
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

    /// The root of the work tree.
    pub fn root(&self) -> &Path {
        self.paths.root()
    }

    /// The git directory that all work trees share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The git executable in use.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The configured author of commits as `Name <email>`, if both are set.
    pub fn author(&self) -> Option<String> {
        self.settings.author()
    }

    /// The git directory of this work tree.
    pub(crate) fn git_dir(&self) -> PathBuf {
        self.paths.git_dir().to_owned()
    }

    pub(crate) fn paths(&self) -> &RepoPaths {
        &self.paths
    }

    /// The id that means "no object".
    pub(crate) fn null_id(&self) -> String {
        "0".repeat(self.id_digits)
    }

    /// Whether the repository's own configuration defines filters, which only run if they are allowed.
    pub(crate) fn defines_filters(&self) -> bool {
        self.settings.defines_filters()
    }

    /// Allows the filters with these names, and refuses if files in this repository need any other.
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

    /// A git command in this repository.
    pub(crate) fn call<S: AsRef<OsStr>>(&self, args: &[S]) -> GitCommand<'_> {
        let mut command = hardened(&self.program, self.root());
        self.settings.apply(&mut command);
        GitCommand::new(command, args)
    }
}

/// Bytes as trimmed text for people; invalid UTF-8 is replaced.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// A path as git prints it, as a path of the operating system.
pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// The parts of a `-z` output.
fn nul_separated(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|part| !part.is_empty())
}

/// The paths of a `-z` output.
fn paths_in<C: FromIterator<Vec<u8>>>(output: &[u8]) -> C {
    nul_separated(output).map(<[u8]>::to_vec).collect()
}

/// Paths as git reads them with `-z --stdin`.
fn nul_terminated(paths: &[Vec<u8>]) -> Vec<u8> {
    let mut request = paths.join(&0);
    request.push(0);
    request
}
