//! The only module that runs git: few, exact, hardened calls of its command line.
//!
//! No call runs a hook, a pager, an editor, a file-system monitor or a prompt; none sees another repository's
//! variables; none runs a filter that the repository's own configuration defines and the user did not allow. Output
//! is read as bytes, separated by NUL where git offers it.

mod batch_process;
mod cat_file_batch;
mod child_io;
mod command;
mod commit;
mod config;
mod history;
mod ignored;
mod index;
mod kept_files;
mod landing;
mod loose;
mod loose_pack;
mod marks;
mod objects;
mod patch_batch;
mod project;
mod ref_check;
mod reflog;
mod refs;
mod repository;
mod sparse;
mod status;
mod tree_diff;
mod unconverted;
mod write_tree;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use batch_process::GitProcess;
pub(crate) use cat_file_batch::CatFileBatch;
pub(crate) use command::GitCommand;
pub use command::TruncatedBytes;
use command::{PINNED, configure, hardened};
use config::{ConfigPlaces, GitSettings};
pub use history::DiffFormat;
use history::KnownStart;
pub(crate) use history::LogEntry;
pub(crate) use ignored::IgnoredPath;
use index::KnownMatches;
pub(crate) use index::{CheckoutMode, Conversion, IndexEntry, PathSet};
pub(crate) use kept_files::KeptFile;
pub(crate) use landing::RebaseResult;
pub(crate) use loose_pack::LoosePack;
use marks::MarkState;
pub(crate) use objects::{DiffFilter, EntryMode, TreeEntry};
pub use patch_batch::PatchBatch;
pub(crate) use refs::LocalBranch;
pub use repository::GitOperation;
pub(crate) use status::{ChangedPaths, PathChange, ScanResult};
pub use status::{Head, RepoStatus};
pub(crate) use write_tree::ReplacedFile;

use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::paths::RepoPaths;
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
    settings: RwLock<GitSettings>,
    /// The value of [`WRITER_MARKER`] in the environment of every git process, if this process holds the runner's lock.
    writer: Option<PathBuf>,
    processes: GitProcesses,
    known: KnownCommits,
    /// Whether a file was found since the last [`Self::settle_index`] that git cannot convert.
    has_unconverted: AtomicBool,
    marks: MarkState,
}

/// What was found out about commits. Commits never change, so none of it becomes stale.
#[derive(Debug, Default)]
struct KnownCommits {
    /// The result of the last search for a run's start.
    start: Mutex<Option<KnownStart>>,
    /// The last answers of [`Git::matching_in`], the newest last.
    matches: Mutex<Vec<KnownMatches>>,
}

/// The git processes that answer many requests.
#[derive(Debug)]
struct GitProcesses {
    hash_object: GitProcess,
    update_ref: GitProcess,
    cat_file: GitProcess,
    mktree: GitProcess,
}

impl GitProcesses {
    const fn new() -> Self {
        Self {
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
        }
    }
}

/// Names the git directory in the environment of git processes that may change the repository.
const WRITER_MARKER: &str = "RUNNER_GIT_WRITER";

/// The reflog message of every reference update.
const REFLOG_MESSAGE: &str = "runner";

impl Git {
    /// Finds the repository that contains `dir`.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let program = executables::find("git", None).ok_or(UserError::NoGit)?;
        let location = repository::discover(&program, dir)?;
        // Only now is it known which programs on the PATH are inside the repository and must not be used.
        let program = executables::find("git", Some(&location.root)).ok_or(UserError::NoGit)?;
        let places = ConfigPlaces {
            root: &location.root,
            git_dir: &location.git_dir,
            common_dir: &location.common_dir,
        };
        let settings = RwLock::new(GitSettings::read(&program, places)?);
        Ok(Self {
            paths: RepoPaths::new(&location.root, &location.git_dir),
            program,
            common_dir: location.common_dir,
            id_digits: location.id_digits,
            settings,
            writer: None,
            processes: GitProcesses::new(),
            known: KnownCommits::default(),
            has_unconverted: AtomicBool::new(false),
            marks: MarkState::default(),
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
        self.settings().author()
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
        self.settings().defines_filters()
    }

    /// Allows the filters with these names, and refuses if files in this repository need any other.
    pub(crate) fn allow_filters(&self, names: &[String]) -> Result<(), Error> {
        self.settings.write().unwrap_or_else(PoisonError::into_inner).allow_filters(names);
        let forbidden: Vec<String> = self.settings().forbidden_filters().map(str::to_owned).collect();
        for name in forbidden {
            let spec = format!(":(attr:filter={name})");
            let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", &spec];
            if !self.call(&args).run()?.is_empty() {
                return Err(UserError::Filter(name).into());
            }
        }
        Ok(())
    }

    /// Reads the configuration again if its files changed, so that a program defined meanwhile does not run.
    pub(crate) fn reload_settings(&self) -> Result<(), Error> {
        if self.settings().is_current(self.config_places()) {
            return Ok(());
        }
        let settings = GitSettings::read(&self.program, self.config_places())?;
        let mut current = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        *current = settings.with_allowed_of(&current);
        Ok(())
    }

    fn config_places(&self) -> ConfigPlaces<'_> {
        ConfigPlaces { root: self.root(), git_dir: self.paths.git_dir(), common_dir: &self.common_dir }
    }

    /// Files of the work tree that git's configuration includes. An agent can write to them, and git obeys them.
    pub(crate) fn config_files_in_work_tree(&self) -> Vec<String> {
        self.settings().included_in_work_tree(self.config_places())
    }

    fn settings(&self) -> RwLockReadGuard<'_, GitSettings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks every later git process as one of the runner that holds the lock, so that the next runner can find those that
    /// outlive it.
    pub(crate) fn mark_as_writer(&mut self) {
        self.writer = Some(self.git_dir());
    }

    /// Kills the git processes of a runner that died: they would go on changing the repository. The caller holds the lock.
    pub(crate) fn kill_orphans(&self) {
        supervise::kill_by_env_marker(WRITER_MARKER.as_ref(), self.paths.git_dir().as_os_str());
    }

    /// Waits until everything that was written to the repository is on disk: its objects, its work tree and its index. Called
    /// before the journal or a reference names any of it.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        atomic::sync_file_system(&self.common_dir)?;
        for folder in [self.root(), self.paths.git_dir()] {
            if !atomic::is_same_file_system(folder, &self.common_dir) {
                atomic::sync_file_system(folder)?;
            }
        }
        Ok(())
    }

    /// A git command in this repository.
    pub(crate) fn call<S: AsRef<OsStr>>(&self, args: &[S]) -> GitCommand<'_> {
        let mut command = hardened(&self.program, self.root());
        self.settings().apply(&mut command);
        if let Some(git_dir) = &self.writer {
            command.env(WRITER_MARKER, git_dir);
        }
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
pub(crate) fn nul_separated(output: &[u8]) -> impl Iterator<Item = &[u8]> {
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
