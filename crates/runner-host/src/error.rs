//! What can go wrong in the world, as values. The words for people are the command line's.

use std::io;
use std::path::PathBuf;

use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::id::RunId;
use runner_core::prompt::PromptError;
use runner_core::runs::edit::EditError;
use runner_core::runs::identity::IdentityError;
use runner_core::runs::start::StartError;
use thiserror::Error;

use crate::git::GitOperation;

/// Something that keeps a command from being carried out. Nothing was changed.
#[derive(Debug, Error)]
pub enum Error {
    /// The user can mend it, and is told how.
    #[error(transparent)]
    Refused(#[from] UserError),
    /// Another runner works here.
    #[error("another runner is at work in this repository")]
    Locked {
        /// What the lock's file says of it.
        holder: String,
    },
    /// The operating system refused.
    #[error("could not {action} `{}`", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
    /// A git command failed.
    #[error("`git {command}` failed")]
    Git {
        /// The command's words.
        command: String,
        /// What git wrote about it.
        stderr: String,
    },
    /// git answered something that cannot be understood.
    #[error("`git {command}` gave an answer that makes no sense here")]
    GitOutput {
        /// The command's words.
        command: String,
    },
    /// The journal was written by a newer runner.
    #[error("an unfinished step was left behind by another version of runner")]
    Journal {
        /// The journal's file.
        path: PathBuf,
    },
}

/// Why a command is refused.
#[derive(Debug, Error)]
pub enum UserError {
    /// No git.
    #[error("git is not installed, or not on the PATH")]
    NoGit,
    /// A git without what the runner needs.
    #[error("git {found} is too old")]
    OldGit {
        /// Its version.
        found: String,
    },
    /// Not inside a repository.
    #[error("`{}` is not in a git repository", .dir.display())]
    NoRepository {
        /// Where it was looked for.
        dir: PathBuf,
        /// What git wrote about it.
        stderr: String,
    },
    /// A repository without a work tree.
    #[error("`{}` is a bare repository, which has no work tree", .0.display())]
    Bare(PathBuf),
    /// A path that git's line-based answers cannot carry.
    #[error("the repository's path contains a line break")]
    LineBreak,
    /// A repository without a commit.
    #[error("the repository has no commit yet")]
    NoCommit,
    /// A merge, rebase or the like under way.
    #[error("a {0} is under way")]
    Busy(GitOperation),
    /// Another git process, or one that died.
    #[error("git's index is locked")]
    IndexLocked(PathBuf),
    /// Changes that are nobody's but the user's.
    #[error("the work tree has changes that are not committed")]
    Dirty {
        /// The first of them.
        paths: Vec<String>,
        /// How many more there are.
        more: usize,
    },
    /// The run's branch is checked out elsewhere.
    #[error("branch `{branch}` is checked out in another work tree")]
    HeldElsewhere {
        /// The branch.
        branch: String,
        /// Where.
        worktree: String,
    },
    /// A branch whose name is a folder for the runner.
    #[error("a branch called `runner` is in the way of branches `runner/<id>`")]
    BranchInTheWay,
    /// The switch would overwrite files that git does not know.
    #[error("going to branch `{branch}` would overwrite files here")]
    SwitchBlocked {
        /// The branch.
        branch: String,
        /// What git wrote about it.
        stderr: String,
    },
    /// A filter that the repository's own configuration defines, and that nobody allowed.
    #[error("files here go through the git filter `{0}`, which this repository's own configuration defines")]
    Filter(String),
    /// A file that is none.
    #[error("`{}` is {what}, not a plain file", .path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A folder that is none.
    #[error("`{}` is {what}, not a folder", .path.display())]
    NotAFolder {
        /// The folder.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A file beyond all sense.
    #[error("`{}` has {bytes} bytes, more than {max}", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// What is allowed.
        max: u64,
    },
    /// The git folder was replaced or removed.
    #[error("the git folder `{}` is not the one that the session began with", .0.display())]
    GitFolderGone(PathBuf),
    /// The run's identity is broken.
    #[error(transparent)]
    Identity(IdentityError),
    /// Changes under `.runner/` that no start has taken in.
    #[error("files under `{RUNNER_DIR}/` were changed since the last start")]
    RunnerChanged {
        /// The first of them.
        paths: Vec<String>,
        /// How many more there are.
        more: usize,
    },
    /// A prompt cannot be made.
    #[error(transparent)]
    Prompt(PromptError),
    /// Nothing was set up here.
    #[error("there is no `{RUNNER_DIR}/` in `{}`", .0.display())]
    NotSetUp(PathBuf),
    /// A document is missing.
    #[error("`{}` is missing", .0.path())]
    MissingDoc(Doc),
    /// The run's documents do not allow it.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The edit cannot be made.
    #[error(transparent)]
    Edit(EditError),
    /// No run of that name, and no commit either.
    #[error("there is no run and no commit `{wanted}` here")]
    NoSuchRun {
        /// What was asked for.
        wanted: String,
        /// The runs that there are.
        runs: Vec<String>,
    },
    /// A new run cannot have the name of one that is there.
    #[error("there is a run `{0}` already")]
    RunExists(RunId),
    /// A commit that is none.
    #[error("`{0}` names no commit here")]
    NoSuchRevision(String),
    /// Commits that belong to no run.
    #[error("`{0}` is no run")]
    NotARun(String),
    /// No run at all.
    #[error("this repository has no run")]
    NoRuns,
    /// More than one run, and none of them is checked out.
    #[error("there are {} runs here, and none of them is checked out", .runs.len())]
    WhichRun {
        /// Their names.
        runs: Vec<String>,
    },
    /// An object that a partial or damaged clone does not have.
    #[error("git object `{0}` is not in this clone")]
    MissingObject(String),
    /// Files that say what agents may use, and cannot be kept to.
    #[error("what agents may use on some nodes cannot be taken in")]
    Tools {
        /// What is wrong, with node and file.
        faults: Vec<String>,
    },
    /// A sandbox is required, and there is none.
    #[error("agents have to run in a sandbox here, and bubblewrap cannot be used")]
    NoSandbox {
        /// Why not.
        why: String,
        /// What mends it.
        fix: &'static str,
    },
    /// `init --force` would reset a run.
    #[error("run `{0}` is under way here, and `init --force` would reset it")]
    RunInProgress(String),
}

impl Error {
    /// For `map_err` on calls of the operating system.
    pub(crate) fn io<E: Into<io::Error>>(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source: source.into() }
    }
}

impl From<supervise::IoError> for Error {
    fn from(error: supervise::IoError) -> Self {
        Self::Io { action: error.action, path: error.path, source: error.source }
    }
}

impl From<PromptError> for Error {
    fn from(fault: PromptError) -> Self {
        Self::Refused(UserError::Prompt(fault))
    }
}

impl From<StartError> for Error {
    fn from(fault: StartError) -> Self {
        Self::Refused(UserError::Start(fault))
    }
}
