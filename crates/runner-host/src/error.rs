//! The errors of the host crate, as values. `runner-term` adds the exit code and the hints that people read.

use std::io;
use std::path::PathBuf;

use runner_core::config::SetKeyError;
use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::id::{NodeId, RunId};
use runner_core::prompt::PromptError;
use runner_core::runs::edit::EditError;
use runner_core::runs::identity::IdentityError;
use runner_core::runs::start::StartError;
use thiserror::Error;

use crate::git::GitOperation;
use crate::ops::land::LandError;
use crate::ops::preflight::PreflightProblem;
use crate::ops::pull_request::PullRequestError;

/// Why a command failed. A command that fails has changed nothing.
#[derive(Debug, Error)]
pub enum Error {
    /// A precondition that the user can fix.
    #[error(transparent)]
    Refused(#[from] UserError),
    #[error("another runner is running in this repository")]
    Locked {
        /// The content of the lock file: the process and command that hold the lock.
        holder: String,
    },
    /// A system call failed.
    #[error("could not {action} `{}`", .path.display())]
    Io {
        /// A verb phrase: "open", "write".
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("`git {command}` failed")]
    Git {
        /// The arguments of `git`.
        command: String,
        stderr: String,
    },
    /// git succeeded, but its output could not be parsed.
    #[error("unexpected output from `git {command}`")]
    GitOutput {
        /// The arguments of `git`.
        command: String,
    },
    /// Another version of the runner wrote the journal, so this one cannot recover from it.
    #[error("another version of runner was interrupted here, and this version cannot read its journal")]
    Journal { path: PathBuf },
    /// Too little space for an iteration. Found out before it begins.
    #[error("the file system of `{}` has only {free}", .path.display())]
    LowDisk {
        path: PathBuf,
        /// What is left: "3 MiB".
        free: String,
        /// What an iteration needs.
        needed: String,
    },
    /// A state that correct code never reaches. The text names the broken assumption.
    #[error("internal error: {0} (this is a bug, please report it)")]
    Internal(&'static str),
}

/// A precondition that the user can fix. Nothing was changed.
#[derive(Debug, Error)]
pub enum UserError {
    #[error("git is not installed or not on PATH")]
    NoGit,
    #[error("git {found} is too old")]
    OldGit { found: String },
    #[error("`{}` is not in a git repository", .dir.display())]
    NoRepository {
        /// Where the search started.
        dir: PathBuf,
        stderr: String,
    },
    #[error("`{}` is a bare repository, which has no work tree", .0.display())]
    Bare(PathBuf),
    /// Some of git's output is line-based and cannot carry such a path.
    #[error("the repository's path contains a line break")]
    LineBreak,
    #[error("`{}` is inside the repository's git folder", .dir.display())]
    InsideGitFolder {
        dir: PathBuf,
        /// The work tree around it.
        root: Option<PathBuf>,
    },
    #[error("the repository has no commit yet")]
    NoCommit,
    /// Nothing but HEAD would lead to the commits that a run starts from.
    #[error("HEAD is detached at {0}, which is on no branch")]
    DetachedHead(String),
    /// A new run without a test command.
    #[error("no test command found in this repository")]
    NoGuard,
    #[error("you may not write to `{}`", .0.display())]
    ReadOnly(PathBuf),
    #[error("a {0} is in progress")]
    Busy(GitOperation),
    /// Another git process holds the lock, or died holding it.
    #[error("git's index is locked")]
    IndexLocked(PathBuf),
    /// Changes outside of `.runner/`, which the runner must not commit as an agent's work.
    #[error("the work tree has uncommitted changes")]
    Dirty {
        /// The first few paths.
        paths: Vec<String>,
        /// How many paths are not listed.
        more: usize,
    },
    /// Changes that git does not show, and that a session's commit would contain.
    #[error("the work tree has changes hidden by assume-unchanged or skip-worktree")]
    HiddenChanges {
        /// The first few files, each with the command that removes its mark.
        paths: Vec<String>,
        /// How many paths are not listed.
        more: usize,
    },
    #[error("branch `{branch}` is checked out in another work tree")]
    HeldElsewhere { branch: String, worktree: String },
    /// git cannot store a branch beside one whose name is a folder of its name, or the other way round.
    #[error("branch `{existing}` prevents a branch named `{wanted}`")]
    BranchInTheWay { existing: String, wanted: String },
    #[error("git cannot create or move branch `{branch}`")]
    BranchBlocked { branch: String, stderr: String },
    /// Someone else committed to the run's branch meanwhile.
    #[error("branch `{0}` was moved while the runner worked on it")]
    BranchMoved(String),
    /// Only `core.worktree` connects the work tree with its repository, so a command there would not find it.
    #[error("the work tree `{}` does not lead to its git folder `{}`", .root.display(), .git_dir.display())]
    WorktreeDetached { root: PathBuf, git_dir: PathBuf },
    #[error("switching to branch `{branch}` would overwrite files in the work tree")]
    SwitchBlocked { branch: String, stderr: String },
    /// A filter runs a program, and the repository's own configuration is not trusted.
    #[error("files here use the git filter `{0}`, which this repository's own configuration defines")]
    Filter(String),
    #[error("`{}` is {what}, not a regular file", .path.display())]
    NotAFile {
        path: PathBuf,
        /// What the path is instead: "a symbolic link".
        what: &'static str,
    },
    #[error("`{}` is {what}, not a folder", .path.display())]
    NotAFolder {
        path: PathBuf,
        /// What the path is instead: "a symbolic link".
        what: &'static str,
    },
    #[error("`{}` has {bytes} bytes; the limit is {max}", .path.display())]
    TooLarge { path: PathBuf, bytes: u64, max: u64 },
    #[error("the session replaced or removed the git folder `{}`", .0.display())]
    GitFolderGone(PathBuf),
    #[error("{error}")]
    Identity {
        error: IdentityError,
        /// The newest run with a branch here, which the user may have meant.
        newest: Option<RunId>,
        /// The other work tree that has the branch of that run.
        worktree: Option<PathBuf>,
    },
    /// Changes under `.runner/` take effect only when `runner start` commits them.
    #[error("files under `{RUNNER_DIR}/` changed since the last start")]
    RunnerChanged {
        /// The first few paths.
        paths: Vec<String>,
        /// How many paths are not listed.
        more: usize,
    },
    /// Commits of the user's that change what only `runner start` may put into effect.
    #[error(
        "your commits since the runner's last one change files that take effect with a start (run 'runner start')"
    )]
    UnstartedChange {
        /// The first few paths.
        paths: Vec<String>,
        /// How many paths are not listed.
        more: usize,
    },
    /// A signature that the user asked for.
    #[error("could not sign: {why}")]
    CannotSign { why: String },
    #[error(transparent)]
    Prompt(PromptError),
    #[error("there is no `{RUNNER_DIR}/` in `{}`", .0.display())]
    NotSetUp(PathBuf),
    #[error("`{}` is missing", .0.path())]
    MissingDoc(Doc),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Edit(EditError),
    #[error("no such run or commit: `{wanted}`")]
    NoSuchRun {
        wanted: String,
        /// The runs of this repository.
        runs: Vec<String>,
    },
    #[error("run `{0}` already exists")]
    RunExists(RunId),
    /// Every generated name is taken, or would be too long.
    #[error("no free name for a fork of run `{0}`")]
    NoForkName(RunId),
    #[error("no such commit: `{0}`")]
    NoSuchRevision(String),
    #[error("`{0}` is not a run")]
    NotARun(String),
    #[error("this repository has no runs")]
    NoRuns,
    #[error("this repository has {} runs, and none of them is checked out", .runs.len())]
    WhichRun { runs: Vec<String> },
    /// The clone is partial or damaged.
    #[error("git object `{0}` is missing from this clone")]
    MissingObject(String),
    /// The limits in these files cannot be enforced.
    #[error("invalid tools.json")]
    Tools {
        /// One line per fault, with its node and file.
        faults: Vec<String>,
    },
    /// The checks of tasks are invalid.
    #[error("invalid checks")]
    Checks {
        /// One line per fault, with its task and file.
        faults: Vec<String>,
    },
    #[error("the guard must run in a room here, but no room can be built")]
    NoRoom {
        /// Why there is no room.
        why: String,
        /// What the user can do about it.
        fix: &'static str,
    },
    #[error("a check could not run: {why}")]
    RoomSetup { why: String },
    #[error("`guard.keep` names `{0}`, which is not a path inside the repository")]
    KeepOutside(String),
    #[error("`guard.keep` names `{0}`, and there is no copy of it from before the sessions")]
    KeptUnknown(String),
    #[error("the held-out checks in `{path}` cannot be used: {why}")]
    Heldout {
        path: String,
        why: String,
        /// What the user can do about it.
        fix: &'static str,
    },
    #[error("the held-out checks of task `{node}` in `{}` are not those that the last start found", .folder.display())]
    HeldoutChanged { node: NodeId, folder: PathBuf },
    #[error("agents must run in a sandbox here, but none can be used")]
    NoSandbox {
        /// Why there is no sandbox.
        why: String,
        /// What the user can do about it.
        fix: &'static str,
    },
    /// Something kills the runner, perhaps the agent.
    #[error("the runner was killed during {crashes} sessions in a row, last in iteration {iter}")]
    CrashLoop { crashes: u32, iter: String },
    #[error("run `{0}` is not finished, and `init --force` would reset it")]
    RunInProgress(String),
    /// A loop would fail, or could not be trusted.
    #[error("{}", preflight_text(.0))]
    Preflight(Vec<PreflightProblem>),
    #[error(transparent)]
    SetKey(SetKeyError),
    #[error(transparent)]
    Land(LandError),
    #[error(transparent)]
    PullRequest(PullRequestError),
    /// Another goal was given, but the run here is complete; it stays with its own.
    #[error("the run here is complete and keeps its goal")]
    RunComplete {
        goal: String,
        /// The branch to switch to for a new run; none if it is checked out.
        base: Option<String>,
    },
    /// A new run would contain the commits of this one.
    #[error("the branch of run `{run}` is checked out")]
    OnRunBranch {
        run: RunId,
        /// The branch that the run started from.
        base: Option<String>,
    },
    #[error("the branch of run `{run}` is checked out in `{worktree}`")]
    RunCheckedOut { run: RunId, worktree: String, is_linked: bool },
    /// Removing the run would remove its work.
    #[error("the work of run `{0}` is on no other branch")]
    RunNotLanded(RunId),
    #[error("a loop is already running here (pid {0})")]
    LoopRunning(u32),
    #[error("no loop is running in this work tree")]
    NothingRuns,
    #[error("`{id}` cannot be a run id: {why}")]
    BadRunId { id: String, why: String },
    #[error("`{}` already exists", .0.display())]
    PathTaken(PathBuf),
    /// The guard fails before any agent has worked.
    #[error("`{command}` already fails (exit {exit}), before any agent ran")]
    RedBaseline {
        command: String,
        exit: String,
        /// The last lines of its output.
        output: Vec<String>,
    },
}

fn preflight_text(problems: &[PreflightProblem]) -> String {
    match problems {
        [problem] => problem.found.clone(),
        problems => format!("{} problems", problems.len()),
    }
}

impl Error {
    /// Whether the cause is a full disk, in the runner's own calls or in git's.
    pub(crate) fn is_disk_full(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Self::Git { stderr, .. } => stderr.contains("No space left on device"),
            Self::Refused(_)
            | Self::Locked { .. }
            | Self::GitOutput { .. }
            | Self::Journal { .. }
            | Self::LowDisk { .. }
            | Self::Internal(_) => false,
        }
    }

    /// The failure of a git command. A partial clone lacks objects by design, and git reports that in many ways.
    pub(crate) fn git(command: String, stderr: &[u8]) -> Self {
        let stderr = String::from_utf8_lossy(stderr).trim().to_owned();
        match missing_object(&stderr) {
            Some(object) => UserError::MissingObject(object).into(),
            None => Self::Git { command, stderr },
        }
    }

    /// Wraps an I/O error, for `map_err`.
    pub(crate) fn io<E: Into<io::Error>>(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source: source.into() }
    }
}

/// The object that a git command lacked, if its message is about one.
fn missing_object(stderr: &str) -> Option<String> {
    if let Some((_, tree)) = stderr.split_once("bad tree object ") {
        return tree.split_whitespace().next().map(str::to_owned);
    }
    if !stderr.contains("lazy fetching disabled") && !stderr.contains("promisor remote") {
        return None;
    }
    let is_id =
        |word: &&str| matches!(word.len(), 40 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut words = stderr.split(|byte: char| !byte.is_ascii_alphanumeric());
    words.find(is_id).map(str::to_owned)
}

impl From<supervise::IoError> for Error {
    fn from(error: supervise::IoError) -> Self {
        Self::Io { action: error.action, path: error.path, source: error.source }
    }
}

impl From<PromptError> for Error {
    fn from(error: PromptError) -> Self {
        Self::Refused(UserError::Prompt(error))
    }
}

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        Self::Refused(UserError::Start(error))
    }
}
