//! What a page shows of a repository that others work in: runs, their commits, what these hold and changed, and
//! whether a runner is at work. Takes no lock and writes nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use runner_core::layout::Doc;
use runner_core::model::id::{IterationNumber, NodeId, RunId};

use crate::error::Error;
use crate::fs::atomic;
use crate::git::{Git, lossy};
use crate::ops::pause;
use crate::repo::journal::{self, JournalEntry};

/// How far back the history of a run is looked for.
const COMMITS_MAX: usize = 20_000;
/// More bytes than this in one answer of git's are cut.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A repository, to be read; or the record of a run that is none.
#[derive(Debug)]
pub struct ReadonlyRepo {
    root: PathBuf,
    git: Option<Git>,
}

/// A run that a branch stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunBranch {
    /// The run.
    pub run: RunId,
    /// The branch's short name: `runner/x`, or `origin/runner/x` in a clone.
    pub name: String,
    /// The commit it points to.
    pub commit: String,
    /// When that was made, in seconds since 1970.
    pub unix_secs: u64,
}

/// A commit that the runner made for an iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IterationCommit {
    /// Its name.
    pub commit: String,
    /// The name of the one before it.
    pub before: Option<String>,
    /// When it was made, in seconds since 1970.
    pub unix_secs: u64,
    /// The iteration.
    pub iter: IterationNumber,
    /// The node; none in a repair.
    pub node: Option<NodeId>,
    /// The words of the subject behind the node: `status=done guard=pass`.
    pub subject_values: Vec<(String, String)>,
    /// What the agent said.
    pub summary: String,
    /// The trailers, as they stand there.
    pub trailers: Vec<(String, String)>,
}

impl IterationCommit {
    /// The value of a word in the subject.
    pub fn subject_value(&self, key: &str) -> Option<&str> {
        self.subject_values.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The value of a trailer.
    pub fn trailer(&self, key: &str) -> Option<&str> {
        self.trailers.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// How much of one file changed between two commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// The file, as it is called now.
    pub path: Vec<u8>,
    /// As it was called before, if that differs.
    pub old_path: Option<Vec<u8>>,
    /// Lines added and removed; none for what is not text.
    pub lines: Option<(u64, u64)>,
}

/// Bytes that may be the beginning of more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruncatedBytes {
    /// The beginning.
    pub bytes: Vec<u8>,
    /// Whether that is not all.
    pub is_truncated: bool,
}

impl ReadonlyRepo {
    /// Finds the repository that `dir` lies in.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Git::open(dir).map(|git| Self { root: git.root().to_owned(), git: Some(git) })
    }

    /// A folder that holds what a run left, without its repository: nobody works there, and it has no commits.
    pub fn record(folder: &Path) -> Self {
        Self { root: folder.to_owned(), git: None }
    }

    /// The work tree's root, or the record's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether there is a repository.
    pub fn has_repository(&self) -> bool {
        self.git.is_some()
    }

    /// Where things change when branches or the runner move: git's own folders and the runner's in them.
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

    /// The runs that have a branch here, or in what was fetched, the newest first. A branch of one's own wins.
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
        let answer = lossy(&git.call(&args).run()?);
        let (own, fetched): (Vec<_>, Vec<_>) =
            answer.lines().filter_map(run_branch).partition(|(is_own, _)| *is_own);
        let mut runs: Vec<RunBranch> = Vec::new();
        for (_, branch) in own.into_iter().chain(fetched) {
            if runs.iter().all(|known| known.run != branch.run) {
                runs.push(branch);
            }
        }
        runs.sort_by(|a, b| (b.unix_secs, &a.run).cmp(&(a.unix_secs, &b.run)));
        Ok(runs)
    }

    /// The iterations of a run, oldest first, from the commits at and before `tip`.
    pub fn iterations(&self, run: &RunId, tip: &str) -> Result<Vec<IterationCommit>, Error> {
        let Some(git) = &self.git else { return Ok(Vec::new()) };
        let most = format!("-n{COMMITS_MAX}");
        let args = ["log", "-z", "--first-parent", &most, "--format=%H%x00%P%x00%ct%x00%B", tip, "--"];
        let answer = git.call(&args).run_cut(ANSWER_BYTES_MAX)?.bytes;
        let fields: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
        let mut found: Vec<IterationCommit> =
            fields.chunks_exact(4).filter_map(|fields| iteration_commit(run, fields)).collect();
        found.reverse();
        Ok(found)
    }

    /// A document as a commit has it.
    pub fn doc(&self, commit: &str, doc: Doc) -> Result<Option<Vec<u8>>, Error> {
        let Some(git) = &self.git else { return Ok(None) };
        let bytes = git.file_at(commit, doc.path())?;
        Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    /// Whether a name stands for a commit that is here.
    pub fn has_commit(&self, name: &str) -> bool {
        self.git.as_ref().is_some_and(|git| git.is_commit(name))
    }

    /// What changed between two commits, file by file.
    pub fn changes(&self, from: &str, to: &str) -> Result<Vec<FileStat>, Error> {
        let Some(git) = &self.git else { return Ok(Vec::new()) };
        let args = ["diff-tree", "-r", "-z", "--numstat", "-M", "--no-ext-diff", "--no-textconv", from, to];
        let answer = git.call(&args).run_cut(ANSWER_BYTES_MAX)?.bytes;
        let mut fields = answer.split(|byte| *byte == 0);
        let mut found = Vec::new();
        while let Some(field) = fields.next().filter(|field| !field.is_empty()) {
            let mut parts = field.splitn(3, |byte| *byte == b'\t');
            let mut count = || parts.next().and_then(|part| lossy(part).parse().ok());
            let lines = count().zip(count());
            let path = parts.next().unwrap_or_default();
            // A renamed file has an empty path here, and its two names behind it.
            let (old_path, path) = if path.is_empty() {
                (fields.next().map(<[u8]>::to_vec), fields.next().unwrap_or_default())
            } else {
                (None, path)
            };
            found.push(FileStat { path: path.to_vec(), old_path, lines });
        }
        Ok(found)
    }

    /// The patch of some files between two commits, up to a number of bytes.
    pub fn patch(
        &self,
        from: &str,
        to: &str,
        paths: &[&str],
        bytes_max: usize,
    ) -> Result<TruncatedBytes, Error> {
        let Some(git) = &self.git else {
            return Ok(TruncatedBytes { bytes: Vec::new(), is_truncated: false });
        };
        let args = ["diff-tree", "-r", "-p", "-M", "--no-color", "--no-ext-diff", "--no-textconv", from, to];
        let mut args: Vec<String> = args.map(str::to_owned).into();
        args.push("--".to_owned());
        args.extend(paths.iter().map(|path| format!(":(top,literal){path}")));
        git.call(&args).run_cut(bytes_max)
    }

    /// The process that holds the runner's lock. Found without touching the lock: its file names the holder, and the
    /// kernel's list of locks, where there is one, says whether that still holds it.
    pub fn lock_holder(&self) -> Option<u32> {
        let path = self.git.as_ref()?.paths().lock();
        let note = atomic::read(&path, 64).ok().flatten()?;
        let pid: u32 = lossy(&note).strip_prefix("pid ")?.parse().ok()?;
        let holds = match fs::read_to_string("/proc/locks") {
            Ok(locks) => locks.lines().any(|line| is_lock_of(line, pid)),
            Err(_) => is_alive(pid),
        };
        holds.then_some(pid)
    }

    /// Whether the run is paused, or will be after the iteration that is being made.
    pub fn is_paused(&self) -> bool {
        self.git.as_ref().is_some_and(|git| pause::is_paused(git.paths()))
    }

    /// Whether a publish, such as that of `runner start`, was begun and not finished.
    pub fn has_pending_publish(&self) -> bool {
        let pending = self.git.as_ref().map(|git| journal::pending(&git.paths().journal()));
        matches!(pending, Some(Ok(Some(JournalEntry::Move(_)))))
    }

    /// The iteration that was begun and not finished, as folders call it.
    pub fn pending_iteration(&self) -> Option<String> {
        match journal::pending(&self.git.as_ref()?.paths().journal()).ok().flatten()? {
            JournalEntry::Iteration(iteration) => Some(iteration.iter),
            JournalEntry::Move(_) => None,
        }
    }
}

/// The inodes of the files that some process on this machine has locked as the runner and the evaluation lock theirs; empty
/// where the system does not say.
pub fn locked_inodes() -> BTreeSet<u64> {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    locks.lines().filter_map(locked_inode).collect()
}

/// The inode in a line of `/proc/locks`, if it tells of such a lock.
fn locked_inode(line: &str) -> Option<u64> {
    let mut words = line.split_whitespace().skip(1);
    let kind = [words.next(), words.next(), words.next()];
    if kind != [Some("FLOCK"), Some("ADVISORY"), Some("WRITE")] {
        return None;
    }
    words.nth(1)?.rsplit(':').next()?.parse().ok()
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// Whether a line of `/proc/locks` is a lock of the kind the runner takes, held by a process.
fn is_lock_of(line: &str, pid: u32) -> bool {
    let mut words = line.split_whitespace().skip(1);
    let kind = [words.next(), words.next(), words.next()];
    kind == [Some("FLOCK"), Some("ADVISORY"), Some("WRITE")]
        && words.next().and_then(|word| word.parse().ok()) == Some(pid)
}

/// A line of `git for-each-ref`, and whether the branch is one's own.
fn run_branch(line: &str) -> Option<(bool, RunBranch)> {
    let (commit, rest) = line.split_once(' ')?;
    let (time, reference) = rest.split_once(' ')?;
    let (is_own, name) = match reference.strip_prefix("refs/heads/") {
        Some(name) => (true, name),
        None => (false, reference.strip_prefix("refs/remotes/")?),
    };
    let branch = if is_own { name } else { name.split_once('/')?.1 };
    let (commit, name) = (commit.to_owned(), name.to_owned());
    let unix_secs = time.parse().unwrap_or_default();
    Some((is_own, RunBranch { run: RunId::of_branch(branch)?, name, commit, unix_secs }))
}

/// A commit of `git log`, if it is an iteration of the run.
fn iteration_commit(run: &RunId, fields: &[&[u8]]) -> Option<IterationCommit> {
    let [commit, parents, time, message] = fields else { return None };
    let message = lossy(message);
    let (subject, body) = message.split_once('\n').unwrap_or((&message, ""));
    let mut words = subject.strip_prefix("chore(loop): run ")?.split(' ');
    if words.next() != Some(run.as_str()) || words.next() != Some("iter") {
        return None;
    }
    let iter = words.next()?.parse().ok()?;
    let node = match words.next()? {
        "node" => Some(NodeId::new(words.next()?).ok()?),
        _ => None,
    };
    let pair = |text: &str, by: &str| text.split_once(by).map(|(a, b)| (a.to_owned(), b.to_owned()));
    let is_trailer = |line: &&str| line.starts_with("Runner-");
    Some(IterationCommit {
        commit: lossy(commit),
        before: lossy(parents).split(' ').next().filter(|name| !name.is_empty()).map(str::to_owned),
        unix_secs: lossy(time).parse().unwrap_or_default(),
        iter,
        node,
        subject_values: words.filter_map(|word| pair(word, "=")).collect(),
        // The summary is indented, so that nothing in it can pass for a trailer.
        summary: body
            .lines()
            .filter(|line| !is_trailer(line))
            .map(str::trim)
            .collect::<Vec<_>>()
            .join("\n")
            .trim()
            .to_owned(),
        trailers: body.lines().filter(is_trailer).filter_map(|line| pair(line, ": ")).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_iteration_of_the_run_is_one() {
        let run = RunId::new("x").unwrap();
        let read = |message: &str| iteration_commit(&run, &[b"c", b"p q", b"7", message.as_bytes()]);
        let found = read(
            "chore(loop): run x iter 0012 node a.b status=done guard=pass\n\n  Runner-Outcome: no\n  said\n\n\
             Runner-Outcome: passed\nRunner-Attempt: free\n",
        )
        .unwrap();
        assert_eq!((found.iter.get(), found.node.as_ref().map(NodeId::as_str)), (12, Some("a.b")));
        assert_eq!(
            (found.subject_value("status"), found.subject_value("guard")),
            (Some("done"), Some("pass"))
        );
        assert_eq!(found.trailer("Runner-Outcome"), Some("passed"));
        assert_eq!(found.summary, "Runner-Outcome: no\nsaid");
        assert_eq!((found.before.as_deref(), found.unix_secs), (Some("p"), 7));
        assert_eq!(read("chore(loop): run x iter 3 repair status=retry guard=skipped").unwrap().node, None);
        for other in ["chore(loop): run y iter 0001 node a", "chore(loop): start run x", "fix: x", ""] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn a_fetched_branch_stands_for_its_run_too() {
        let (is_own, branch) = run_branch("abc 12 refs/remotes/origin/runner/x").unwrap();
        assert_eq!((is_own, branch.run.as_str(), branch.name.as_str()), (false, "x", "origin/runner/x"));
        assert!(run_branch("abc 12 refs/heads/runner/x").unwrap().0);
        assert_eq!(run_branch("abc 12 refs/heads/main"), None);
    }

    #[test]
    fn a_lock_is_known_by_its_kind_and_its_holder() {
        let line = "3: FLOCK  ADVISORY  WRITE 4121 00:2d:123 0 EOF";
        assert!(is_lock_of(line, 4121));
        assert!(!is_lock_of(line, 412));
        assert!(!is_lock_of("4: POSIX  ADVISORY  WRITE 4121 00:2d:123 0 EOF", 4121));
        assert_eq!(locked_inode(line), Some(123));
        assert_eq!(locked_inode("4: -> FLOCK  ADVISORY  WRITE 4121 00:2d:123 0 EOF"), None);
        assert!(!is_lock_of("4: -> FLOCK  ADVISORY  WRITE 4121 00:2d:123 0 EOF", 4121));
    }
}
