//! Read-only access to a repository for the web UI and `watch`: runs, their commits and files, and whether a runner is
//! running. Takes no lock and writes nothing.

mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use runner_core::commit_message::{CommitKind, MessageParts, Trailer};
use runner_core::layout::{Doc, NODES_DIR};
use runner_core::model::agent_output::AgentStatus;
use runner_core::model::checks::{CheckFilePath, TaskChecks};
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use runner_core::model::object_id::CommitId;
use runner_core::model::run_state::GuardResult;
use runner_core::model::tree::Tree;
use runner_core::verify::{all_checks, kept};

use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::{Git, TruncatedBytes, lossy};
use crate::repo::journal::{self, JournalEntry, JournalState};

pub use objects::CommittedFile;

/// How many commits of a run are read.
const COMMITS_MAX: usize = 20_000;
/// Output of one git command beyond this size is cut off.
const OUTPUT_BYTES_MAX: usize = 16 << 20;

/// A repository, or the exported record of a run without one.
#[derive(Debug)]
pub struct ReadonlyRepo {
    root: PathBuf,
    git: Option<Git>,
}

/// A run with a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunBranch {
    pub run: RunId,
    /// The branch's short name: `runner/x`, or `origin/runner/x` in a clone.
    pub name: String,
    pub commit: CommitId,
    /// When that commit was made, in seconds since 1970.
    pub unix_secs: u64,
}

/// What the files under `.runner/` say about a run, if none is checked out.
#[derive(Clone, Debug)]
pub struct WorkTreeRun {
    /// The run that run_state.json names.
    pub named: Option<RunId>,
    /// Whether there is a GOAL.md, perhaps for a run that is not started yet.
    pub has_goal: bool,
}

impl WorkTreeRun {
    /// The run to show: the one that the files name, or the newest one where there are no files of a run.
    pub fn elsewhere<'b>(&self, branches: &'b [RunBranch]) -> Option<&'b RunBranch> {
        match &self.named {
            Some(named) => branches.iter().find(|branch| branch.run == *named),
            None => branches.first().filter(|_| !self.has_goal),
        }
    }
}

/// The commit of an iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IterationCommit {
    pub commit: CommitId,
    pub before: Option<CommitId>,
    /// When it was made, in seconds since 1970.
    pub unix_secs: u64,
    pub iter: IterationNumber,
    /// The node; none in a repair.
    pub node: Option<NodeId>,
    /// The agent's status and the guard's result, from the subject.
    pub status: AgentStatus,
    pub guard: GuardResult,
    pub summary: String,
    pub trailers: Vec<(String, String)>,
}

impl IterationCommit {
    /// The value of a trailer; the first one, if there are several.
    pub fn trailer(&self, trailer: Trailer) -> Option<&str> {
        self.trailers(trailer).next()
    }

    pub fn trailers(&self, trailer: Trailer) -> impl Iterator<Item = &str> {
        self.trailers.iter().filter(move |(key, _)| key == trailer.key()).map(|(_, value)| value.as_str())
    }
}

/// The size of a file's change between two commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStat {
    pub path: Vec<u8>,
    /// The old path of a renamed file.
    pub old_path: Option<Vec<u8>>,
    /// Lines added and removed; none for a binary file.
    pub lines: Option<(u64, u64)>,
}

/// The branch that HEAD names as a file where git keeps references in tables.
const REFTABLE_HEAD: &str = ".invalid";

impl ReadonlyRepo {
    /// Finds the repository that contains `dir`.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Git::open(dir).map(|git| Self { root: git.root().to_owned(), git: Some(git) })
    }

    /// A folder with the files of a run but without its repository: no runner uses it, and it has no commits.
    pub fn record(folder: &Path) -> Self {
        Self { root: folder.to_owned(), git: None }
    }

    /// The root of the work tree, or the record's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn has_repository(&self) -> bool {
        self.git.is_some()
    }

    /// An error for an exported record, which has none.
    pub(crate) fn git(&self) -> Result<&Git, Error> {
        self.git.as_ref().ok_or_else(|| {
            let stderr = "this is the exported record of a run".to_owned();
            UserError::NoRepository { dir: self.root.clone(), stderr }.into()
        })
    }

    /// The folders that change when branches move or a runner works: git's and the runner's inside it.
    pub fn watch_paths(&self) -> Vec<PathBuf> {
        let Some(git) = &self.git else { return Vec::new() };
        let common = git.common_dir();
        let branches = common.join("refs/heads/runner");
        vec![git.git_dir(), common.to_owned(), branches, git.paths().private()]
    }

    /// The current branch, if HEAD is on one.
    pub fn branch(&self) -> Option<String> {
        let text = atomic::read(&self.git.as_ref()?.paths().in_git_dir("HEAD"), 4_096).ok().flatten()?;
        lossy(&text).strip_prefix("ref: refs/heads/").map(str::to_owned)
    }

    /// Whether a run's branch is checked out. A runner at work owns the work tree, whatever a session did to HEAD.
    pub fn is_checked_out(&self, run: &RunId) -> bool {
        let is_on = |branch: String| branch == run.branch().as_str() || branch == REFTABLE_HEAD;
        let Some(git) = &self.git else { return true };
        let head = atomic::read(&git.paths().in_git_dir("HEAD"), 4_096);
        let is_readable = matches!(head, Ok(Some(_)));
        !is_readable || self.branch().is_some_and(is_on) || self.lock_holder().is_some() || self.has_journal()
    }

    /// Whether a crash left an operation in the journal.
    fn has_journal(&self) -> bool {
        self.pending_iteration().is_some() || self.has_pending_publish()
    }

    /// The runs that have a local or fetched branch, newest first. A local branch wins.
    pub fn runs(&self) -> Result<Vec<RunBranch>, Error> {
        let Some(git) = &self.git else { return Ok(Vec::new()) };
        let format = "--format=%(objectname) %(committerdate:unix) %(refname)";
        let args = [
            "for-each-ref",
            format,
            "--sort=-committerdate",
            "refs/heads/runner/",
            "refs/remotes/*/runner/*",
        ];
        let output = lossy(&git.call(&args).run()?);
        let (local, fetched): (Vec<_>, Vec<_>) =
            output.lines().filter_map(run_branch).partition(|(is_local, _)| *is_local);
        let mut runs: Vec<RunBranch> = Vec::new();
        for (_, branch) in local.into_iter().chain(fetched) {
            if runs.iter().all(|known| known.run != branch.run) {
                runs.push(branch);
            }
        }
        runs.sort_by(|a, b| (b.unix_secs, &a.run).cmp(&(a.unix_secs, &b.run)));
        Ok(runs)
    }

    /// The iterations of a run up to `tip`, oldest first.
    pub fn iterations(&self, run: &RunId, tip: &CommitId) -> Result<Vec<IterationCommit>, Error> {
        let Some(git) = &self.git else { return Ok(Vec::new()) };
        let max = format!("-n{COMMITS_MAX}");
        let format = "--format=%H%x00%P%x00%ct%x00%B";
        let args = ["log", "-z", "--first-parent", &max, format, tip.as_str(), "--"];
        let output = git.call(&args).run_truncated(OUTPUT_BYTES_MAX)?.bytes;
        let fields: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
        let mut iterations: Vec<IterationCommit> =
            fields.chunks_exact(4).filter_map(|fields| iteration_commit(run, fields)).collect();
        iterations.reverse();
        Ok(iterations)
    }

    /// A document of a commit.
    pub fn doc(&self, commit: &CommitId, doc: Doc) -> Result<Option<Vec<u8>>, Error> {
        let Some(git) = &self.git else { return Ok(None) };
        let bytes = git.file_at(commit, doc.path())?;
        Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    /// The valid checks of a run's tasks at a commit.
    pub fn checks(&self, commit: &CommitId, tree: &Tree) -> Result<BTreeMap<NodeId, TaskChecks>, Error> {
        let Some(git) = &self.git else { return Ok(BTreeMap::new()) };
        let mut entries = git.files_of(commit, NODES_DIR)?;
        entries.retain(|entry| entry.mode.is_regular() && CheckFilePath::parse(&entry.path).is_some());
        let objects: Vec<&str> = entries.iter().map(|entry| entry.object.as_str()).collect();
        let blobs = git.blobs(&objects)?;
        let files =
            entries.iter().zip(blobs).map(|(entry, bytes)| (entry.path.clone(), kept(&entry.path, bytes)));
        Ok(all_checks(&files.collect(), tree))
    }

    /// The commit with this full id, if the repository has it.
    pub fn commit(&self, id: &str) -> Option<CommitId> {
        self.git.as_ref().and_then(|git| git.existing_commit(id).ok().flatten())
    }

    /// The files that changed between two commits.
    pub fn changes(&self, from: &CommitId, to: &CommitId) -> Result<Vec<FileStat>, Error> {
        let Some(git) = &self.git else { return Ok(Vec::new()) };
        let options = ["diff-tree", "-r", "-z", "--numstat", "-M", "--no-ext-diff", "--no-textconv"];
        let args = [options.as_slice(), &[from.as_str(), to.as_str()]].concat();
        let output = git.call(&args).run_truncated(OUTPUT_BYTES_MAX)?.bytes;
        let mut fields = output.split(|byte| *byte == 0);
        let mut changes = Vec::new();
        while let Some(field) = fields.next().filter(|field| !field.is_empty()) {
            let mut parts = field.splitn(3, |byte| *byte == b'\t');
            let mut count = || parts.next().and_then(|part| lossy(part).parse().ok());
            let lines = count().zip(count());
            let path = parts.next().unwrap_or_default();
            // A renamed file has an empty path here, followed by its two names.
            let (old_path, path) = if path.is_empty() {
                (fields.next().map(<[u8]>::to_vec), fields.next().unwrap_or_default())
            } else {
                (None, path)
            };
            changes.push(FileStat { path: path.to_vec(), old_path, lines });
        }
        Ok(changes)
    }

    /// The patch of some files between two commits, with `context` unchanged lines around each change, up to `bytes_max`
    /// bytes.
    pub fn patch(
        &self,
        from: &CommitId,
        to: &CommitId,
        paths: &[&str],
        context: u32,
        bytes_max: usize,
    ) -> Result<TruncatedBytes, Error> {
        let Some(git) = &self.git else {
            return Ok(TruncatedBytes { bytes: Vec::new(), is_truncated: false });
        };
        let options = ["diff-tree", "-r", "-p", "-M", "--no-color", "--no-ext-diff", "--no-textconv"];
        let mut args: Vec<String> = options.map(str::to_owned).into();
        args.extend([format!("-U{context}"), from.to_string(), to.to_string(), "--".to_owned()]);
        args.extend(paths.iter().map(|path| format!(":(top,literal){path}")));
        git.call(&args).run_truncated(bytes_max)
    }

    /// The process that holds the runner's lock.
    pub fn lock_holder(&self) -> Option<u32> {
        self.git.as_ref().and_then(lock_holder)
    }

    /// Whether the run is paused, or will be after the current iteration.
    pub fn is_paused(&self) -> bool {
        self.git.as_ref().is_some_and(|git| git.paths().is_paused())
    }

    /// Whether the user asked the loop to stop after the current iteration.
    pub fn is_stopping(&self) -> bool {
        self.git.as_ref().is_some_and(|git| git.paths().is_stop_requested())
    }

    /// Whether a publish, such as that of `runner start`, was begun and not finished.
    pub fn has_pending_publish(&self) -> bool {
        let journal = self.git.as_ref().map(|git| journal::read(&git.paths().journal()));
        matches!(journal, Some(Ok(JournalState::Pending(JournalEntry::Publish(_)))))
    }

    /// The iteration that was begun and not finished, as its folder is named.
    pub fn pending_iteration(&self) -> Option<String> {
        match journal::read(&self.git.as_ref()?.paths().journal()).ok()?.entry()? {
            JournalEntry::Iteration(entry) => Some(entry.iter.to_string()),
            JournalEntry::Publish(_) => None,
        }
    }
}

/// The inodes of files that a process on this machine has locked with `flock`, as runner and runner-eval do; empty where
/// the system has no list of locks.
pub fn locked_inodes() -> BTreeSet<u64> {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    locks.lines().filter_map(locked_inode).collect()
}

/// The inode in a line of `/proc/locks`, if the line is such a lock.
fn locked_inode(line: &str) -> Option<u64> {
    let mut words = line.split_whitespace().skip(1);
    let kind = [words.next(), words.next(), words.next()];
    if kind != [Some("FLOCK"), Some("ADVISORY"), Some("WRITE")] {
        return None;
    }
    words.nth(1)?.rsplit(':').next()?.parse().ok()
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// The process that holds the runner's lock, found without touching the lock: the file names the holder, and the kernel's list
/// of locks, where it exists, shows whether it still holds it. A runner in a sandbox writes the process id of its own
/// namespace, and is found by the file's inode; where the file system is an overlay, only the id is right.
pub(crate) fn lock_holder(git: &Git) -> Option<u32> {
    let path = git.paths().lock();
    let content = atomic::read(&path, 64).ok().flatten()?;
    let pid: u32 = lossy(&content).strip_prefix("pid ")?.parse().ok()?;
    let holds = match fs::read_to_string("/proc/locks") {
        Ok(locks) => {
            let inode = fs::symlink_metadata(&path).ok().map(|metadata| metadata.ino());
            locks
                .lines()
                .any(|line| is_lock_of(line, pid) || (inode.is_some() && locked_inode(line) == inode))
        }
        Err(_) => is_alive(pid),
    };
    holds.then_some(pid)
}

/// Whether a line of `/proc/locks` is an exclusive `flock` of this process.
fn is_lock_of(line: &str, pid: u32) -> bool {
    let mut words = line.split_whitespace().skip(1);
    let kind = [words.next(), words.next(), words.next()];
    kind == [Some("FLOCK"), Some("ADVISORY"), Some("WRITE")]
        && words.next().and_then(|word| word.parse().ok()) == Some(pid)
}

/// Parses a line of `git for-each-ref`; also returns whether the branch is local.
fn run_branch(line: &str) -> Option<(bool, RunBranch)> {
    let (commit, rest) = line.split_once(' ')?;
    let (time, reference) = rest.split_once(' ')?;
    let (is_local, name) = match reference.strip_prefix("refs/heads/") {
        Some(name) => (true, name),
        None => (false, reference.strip_prefix("refs/remotes/")?),
    };
    let branch = if is_local { name } else { name.split_once('/')?.1 };
    let branch = RunBranch {
        run: RunId::of_branch(branch)?,
        name: name.to_owned(),
        commit: CommitId::new(commit).ok()?,
        unix_secs: time.parse().unwrap_or_default(),
    };
    Some((is_local, branch))
}

/// Parses a commit of `git log`; none if it is not an iteration of the run.
fn iteration_commit(run: &RunId, fields: &[&[u8]]) -> Option<IterationCommit> {
    let [commit, parents, time, message] = fields else { return None };
    let kind = CommitKind::parse(message);
    let node = kind.node().cloned();
    let CommitKind::Iteration { run_id, iter, status, guard, .. } = kind else { return None };
    if run_id != *run {
        return None;
    }
    let text = lossy(message);
    let parts = MessageParts::parse(&text);
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Some(IterationCommit {
        commit: CommitId::new(lossy(commit)).ok()?,
        before: lossy(parents).split(' ').next().and_then(|id| CommitId::new(id).ok()),
        unix_secs: lossy(time).parse().unwrap_or_default(),
        iter,
        node,
        status,
        guard,
        summary: parts.text(),
        trailers: parts.trailers.iter().map(owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::lock::Lock;

    #[test]
    fn only_iterations_of_the_run_are_parsed() {
        let run = RunId::new("x").unwrap();
        let [id, first, second] = ["c", "a", "b"].map(|digit| digit.repeat(40));
        let parents = format!("{first} {second}");
        let parse = |message: &str| {
            iteration_commit(&run, &[id.as_bytes(), parents.as_bytes(), b"7", message.as_bytes()])
        };
        let commit = parse(
            "chore(loop): run x iter 0012 node a.b status=done guard=pass\n\n  Runner-Outcome: no\n  did it\n\n\
             Runner-Outcome: passed\nRunner-Attempt: free\n",
        )
        .unwrap();
        assert_eq!((commit.iter.get(), commit.node.as_ref().map(NodeId::as_str)), (12, Some("a.b")));
        assert_eq!((commit.status, commit.guard), (AgentStatus::Done, GuardResult::Pass));
        assert_eq!(commit.trailer(Trailer::Outcome), Some("passed"));
        assert_eq!(commit.summary, "Runner-Outcome: no\ndid it");
        assert_eq!(commit.before.as_ref().map(CommitId::as_str), Some(first.as_str()));
        assert_eq!(commit.unix_secs, 7);
        assert_eq!(
            parse("chore(loop): run x iter 0003 repair status=retry guard=skipped").unwrap().node,
            None
        );
        for other in ["chore(loop): run y iter 0001 node a", "chore(loop): start run x", "fix: x", ""] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_fetched_branch_names_its_run() {
        let id = "c".repeat(40);
        let parse = |reference: &str| run_branch(&format!("{id} 12 {reference}"));
        let (is_local, branch) = parse("refs/remotes/origin/runner/x").unwrap();
        assert_eq!((is_local, branch.run.as_str(), branch.name.as_str()), (false, "x", "origin/runner/x"));
        assert!(parse("refs/heads/runner/x").unwrap().0);
        assert_eq!(parse("refs/heads/main"), None);
    }

    #[test]
    fn a_lock_is_recognised_by_its_kind_and_holder() {
        let line = "3: FLOCK  ADVISORY  WRITE 4121 00:2d:123 0 EOF";
        assert!(is_lock_of(line, 4121));
        assert!(!is_lock_of(line, 412));
        assert!(!is_lock_of("4: POSIX  ADVISORY  WRITE 4121 00:2d:123 0 EOF", 4121));
        assert_eq!(locked_inode(line), Some(123));
        assert_eq!(locked_inode("4: -> FLOCK  ADVISORY  WRITE 4121 00:2d:123 0 EOF"), None);
        assert!(!is_lock_of("4: -> FLOCK  ADVISORY  WRITE 4121 00:2d:123 0 EOF", 4121));
    }

    /// In a sandbox, the runner writes the process id of its own namespace.
    #[cfg(target_os = "linux")]
    #[test]
    fn holder_in_another_namespace_is_found_by_the_locked_file() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        let path = git.paths().lock();
        atomic::ensure_folder(&git.paths().private()).unwrap();
        let lock = Lock::acquire(&path).unwrap();
        let other_pid = 4_194_303;
        fs::write(&path, format!("pid {other_pid}\n")).unwrap();
        let repo = ReadonlyRepo::open(folder.path()).unwrap();
        assert_eq!(repo.lock_holder(), Some(other_pid));
        drop(lock);
        assert_eq!(repo.lock_holder(), None);
    }
}
