//! Reading history: the commits of a branch, what each changed, and objects in bulk. Writes nothing.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::PoisonError;

use runner_core::commit_message::{CommitKind, grep_pattern};
use runner_core::layout::RUNNER_DIR;
use runner_core::model::id::RunId;
use runner_core::model::object_id::{BranchName, CommitId};
use runner_core::verify::RawChange;

use super::{Git, Head, lossy, path_of, paths_in};
use crate::error::{Error, UserError};

/// A commit of a log, with its changes against its first parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub(crate) id: CommitId,
    pub(crate) changes: Vec<RawChange>,
}

/// A parsed commit object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommitObject {
    pub(crate) parents: Vec<CommitId>,
    /// When it was committed, in seconds since 1970.
    pub(crate) time: i64,
    pub(crate) message: Vec<u8>,
}

/// The branch of a run, local or as a remote last had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunRef {
    /// The part of the name after `runner/`.
    pub(crate) run: String,
    /// The full name of the reference.
    pub(crate) name: String,
    pub(crate) tip: CommitId,
}

/// How a difference is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffFormat {
    Patch,
    Coloured,
    /// Added and removed lines by file.
    Stat,
}

/// The start commit of a run, as seen from a commit.
#[derive(Clone, Debug)]
pub(super) struct KnownStart {
    run: RunId,
    from: CommitId,
    start: CommitId,
}

/// Marks the start of a commit in the log's output. No path contains this byte at its start.
const COMMIT: u8 = 1;

impl Git {
    /// How many commits, along first parents, are on top of the last one that the runner made for a run.
    pub(crate) fn user_commits_since(&self, run: &RunId, tip: &CommitId) -> Result<u32, Error> {
        let Some(last) = self.last_runner_commit(run, tip)?.filter(|last| last != tip) else { return Ok(0) };
        let range = format!("{last}..{tip}");
        let count = lossy(&self.call(&["rev-list", "--count", "--first-parent", &range]).run()?);
        Ok(count.parse().unwrap_or(u32::MAX))
    }

    /// The newest commit, along first parents, that the runner made for a run.
    pub(crate) fn last_runner_commit(&self, run: &RunId, tip: &CommitId) -> Result<Option<CommitId>, Error> {
        let is_runners = |kind: &CommitKind| kind.run_id() == Some(run);
        self.newest_of_kind(&grep_pattern::any_of(run.as_str()), tip, None, is_runners)
    }

    /// The newest commit, along first parents, whose subject is of a kind. Git searches whole messages, so that each one that
    /// it finds is checked: a user may quote a subject in a message of their own.
    fn newest_of_kind(
        &self,
        pattern: &str,
        from: &CommitId,
        after: Option<&CommitId>,
        is_wanted: impl Fn(&CommitKind) -> bool,
    ) -> Result<Option<CommitId>, Error> {
        let pattern = format!("--grep={pattern}");
        for max in ["-1", "-100", "-10000000"] {
            let mut args =
                vec!["rev-list", max, "--first-parent", "--extended-regexp", &pattern, from.as_str()];
            args.extend(after.into_iter().flat_map(|after| ["--not", after.as_str()]));
            let found = lossy(&self.call(&args).run()?);
            if found.is_empty() {
                return Ok(None);
            }
            let mut batch = self.batch()?;
            for id in found.lines() {
                let id = CommitId::new(id).map_err(|_| Error::GitOutput { command: args.join(" ") })?;
                let message = batch.commit(&id)?.unwrap_or_default().message;
                if is_wanted(&CommitKind::parse(&message)) {
                    return Ok(Some(id));
                }
            }
        }
        Ok(None)
    }

    /// The newest commit of a run that `runner start` made, at or before a commit. Only the commits since the last call are
    /// searched, so that the time does not grow with the run.
    pub(crate) fn start_commit(&self, run: &RunId, from: &CommitId) -> Result<CommitId, Error> {
        let mut known = self.known.start.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = known.take().filter(|known| known.run == *run);
        let earlier = match earlier {
            Some(earlier) if earlier.from == *from => return Ok(known.insert(earlier).start.clone()),
            Some(earlier) if self.is_ancestor(earlier.from.as_str(), from.as_str())? => Some(earlier),
            Some(_) | None => None,
        };
        let found = self.search_start(run, from, earlier.as_ref().map(|earlier| &earlier.from))?;
        let start = found.or(earlier.map(|earlier| earlier.start));
        *known = start.clone().map(|start| KnownStart { run: run.clone(), from: from.clone(), start });
        Ok(start.unwrap_or_else(|| from.clone()))
    }

    /// Records that a commit made by an iteration follows another: it is no start of a run.
    pub(crate) fn note_iteration_commit(&self, base: &CommitId, commit: &CommitId) {
        let mut known = self.known.start.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_mut().filter(|known| known.from == *base) {
            known.from = commit.clone();
        }
    }

    fn search_start(
        &self,
        run: &RunId,
        from: &CommitId,
        after: Option<&CommitId>,
    ) -> Result<Option<CommitId>, Error> {
        let is_start = |kind: &CommitKind| *kind == CommitKind::Start { run_id: run.clone() };
        self.newest_of_kind(&grep_pattern::start_of(run.as_str()), from, after, is_start)
    }

    /// When the last iteration was committed, in seconds since 1970; later edits and starts do not count. Without an
    /// iteration, when HEAD was committed.
    pub(crate) fn last_iteration_time(&self) -> Result<u64, Error> {
        let iteration =
            self.commit_time(&["--extended-regexp", &format!("--grep={}", grep_pattern::any_iteration())])?;
        let time = if iteration.is_empty() { self.commit_time(&[])? } else { iteration };
        time.parse().map_err(|_| Error::GitOutput { command: "log -1 --format=%ct".to_owned() })
    }

    /// The time of the newest commit that a log with these options shows.
    fn commit_time(&self, options: &[&str]) -> Result<String, Error> {
        let args = ["log", "-1", "--first-parent", "--no-show-signature", "--format=%ct"];
        let output = self.call(&[&args, options, &["HEAD"]].concat()).run()?;
        Ok(lossy(&output))
    }

    /// Commits along first parents, newest first, from a commit back to another one (excluded) or to the root. With
    /// patterns, only paths that match, and only commits that change one.
    pub(crate) fn log(
        &self,
        tip: &CommitId,
        after: Option<&CommitId>,
        patterns: &[String],
    ) -> Result<GitLog, Error> {
        let mut args: Vec<String> =
            ["log", "-z", "--raw", "--no-abbrev", "--no-renames", "-m", "--first-parent", "--root"]
                .map(str::to_owned)
                .into();
        args.extend(["--format=%x01%H".to_owned(), tip.to_string()]);
        args.extend(after.map(|after| format!("^{after}")));
        args.push("--".to_owned());
        args.extend(patterns.iter().map(|pattern| format!(":(top,glob){pattern}")));
        let mut call = self.call(&args);
        call.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = call.command.spawn().map_err(Error::io("run", self.program()))?;
        let stdout =
            child.stdout.take().ok_or_else(|| Error::GitOutput { command: call.arguments.clone() })?;
        Ok(GitLog {
            child,
            parts: BufReader::with_capacity(1 << 16, stdout).split(0),
            current: None,
            failure: Some(if self.settings().has_promisor() {
                UserError::MissingObject(format!("{tip}^{{tree}}")).into()
            } else {
                let stderr = format!("the history of `{tip}` could not be read");
                Error::Git { command: call.arguments, stderr }
            }),
        })
    }

    /// Paths of a commit that match any of the patterns, found without an index.
    pub(crate) fn matching_paths(
        &self,
        commit: &CommitId,
        patterns: &[String],
    ) -> Result<BTreeSet<Vec<u8>>, Error> {
        if patterns.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut args: Vec<String> =
            ["diff-tree", "-r", "-z", "--name-only", "--no-renames"].map(str::to_owned).into();
        args.extend([self.empty_tree().to_owned(), commit.to_string(), "--".to_owned()]);
        args.extend(patterns.iter().map(|pattern| format!(":(top,glob){pattern}")));
        Ok(paths_in(&self.call(&args).run()?))
    }

    /// The id of the empty tree, which git knows without storing it.
    fn empty_tree(&self) -> &'static str {
        if self.id_digits == 40 {
            "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
        } else {
            "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
        }
    }

    /// A value of git's configuration, the user's own included; none if it is not set.
    pub(crate) fn user_setting(&self, key: &str) -> Result<Option<String>, Error> {
        Ok(self.call(&["config", "--get", key]).query()?.map(|value| lossy(&value)))
    }

    /// The commit that a revision typed by the user names.
    pub(crate) fn resolve(&self, revision: &str) -> Result<Option<CommitId>, Error> {
        let commit = format!("{revision}^{{commit}}");
        let output =
            self.call(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).output()?;
        match output.status.code() {
            Some(0) => Ok(CommitId::new(lossy(&output.stdout)).ok()),
            // Git explains why a revision is not a commit; a process that was killed has no exit code.
            Some(1 | 128) => Ok(None),
            _ => Err(Error::Git { command: "rev-parse".to_owned(), stderr: lossy(&output.stderr) }),
        }
    }

    /// The branches of runs; local ones come first.
    pub(crate) fn run_branches(&self) -> Result<Vec<RunRef>, Error> {
        let args = [
            "for-each-ref",
            "--format=%(objectname) %(refname)",
            "refs/heads/runner/",
            "refs/remotes/*/runner/*",
        ];
        let output = lossy(&self.call(&args).run()?);
        let run_ref = |line: &str| {
            let (commit, name) = line.split_once(' ')?;
            let run = name.rsplit_once("/runner/")?.1.to_owned();
            Some(RunRef { run, name: name.to_owned(), tip: CommitId::new(commit).ok()? })
        };
        Ok(output.lines().filter_map(run_ref).collect())
    }

    /// Whether this is a shallow clone, which lacks older commits.
    pub(crate) fn is_shallow(&self) -> bool {
        self.common_dir().join("shallow").exists()
    }

    /// Creates a repository at a path that borrows this one's objects, with a commit checked out.
    pub(crate) fn clone_at(&self, path: &Path, commit: &CommitId) -> Result<(), Error> {
        let source = self.common_dir().display().to_string();
        let target = path.display().to_string();
        self.call(&["clone", "-q", "--shared", "--no-checkout", "--no-tags", "--", &source, &target])
            .run()?;
        self.call(&["-C", &target, "checkout", "-q", "--detach", commit.as_str()]).run().map(drop)
    }

    /// Checks files of a commit out over those of a repository that [`Git::clone_at`] created.
    pub(crate) fn checkout_over(
        &self,
        path: &Path,
        commit: &CommitId,
        files: &BTreeSet<Vec<u8>>,
    ) -> Result<(), Error> {
        if files.is_empty() {
            return Ok(());
        }
        let words = ["--literal-pathspecs", "checkout", "-q", commit.as_str(), "--"];
        let mut args: Vec<OsString> = vec!["-C".into(), path.into()];
        args.extend(words.map(OsString::from));
        args.extend(files.iter().map(|file| path_of(file).into()));
        self.call(&args).run().map(drop)
    }

    /// The difference between two commits, for people. Without paths, everything but the runner's files.
    pub(crate) fn show_diff(
        &self,
        from: &CommitId,
        to: &CommitId,
        format: DiffFormat,
        paths: &[String],
    ) -> Result<Vec<u8>, Error> {
        let options = match format {
            DiffFormat::Patch => ["--no-color"].as_slice(),
            DiffFormat::Coloured => ["--color=always"].as_slice(),
            DiffFormat::Stat => ["--numstat", "-z", "--no-renames"].as_slice(),
        };
        let mut args = vec!["diff", "--no-ext-diff", "--no-textconv", "-M"];
        args.extend(options);
        args.extend([from.as_str(), to.as_str(), "--"]);
        args.extend(paths.iter().map(String::as_str));
        let without_runner = format!(":(top,exclude){RUNNER_DIR}");
        if paths.is_empty() {
            args.extend([".", &without_runner]);
        }
        self.call(&args).run().or_else(|_| {
            // An attribute file that git refuses to read: newer versions of git can do without.
            self.call(&args).variable("GIT_ATTR_SOURCE", self.empty_tree()).run()
        })
    }

    pub(crate) fn head(&self) -> Result<Head, Error> {
        let output = self.call(&["symbolic-ref", "--quiet", "--short", "HEAD"]).query()?;
        let branch = output.map(|name| BranchName::new(lossy(&name)));
        Ok(Head::new(branch, self.resolve("HEAD")?))
    }
}

/// The commits of a `git log` as they are printed. Dropping it early ends git.
pub(crate) struct GitLog {
    child: Child,
    parts: io::Split<BufReader<ChildStdout>>,
    /// The commit whose changes are being read.
    current: Option<LogEntry>,
    /// The error if git fails; taken when the log has ended.
    failure: Option<Error>,
}

impl Iterator for GitLog {
    type Item = Result<LogEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.failure.as_ref()?;
        match self.read_entry() {
            Ok(Some(entry)) => Some(Ok(entry)),
            Ok(None) => self.finish(),
            Err(error) => {
                self.failure = None;
                Some(Err(error))
            }
        }
    }
}

impl GitLog {
    /// Reads up to the next commit and returns the one before it; none at the end.
    fn read_entry(&mut self) -> Result<Option<LogEntry>, Error> {
        while let Some(part) = self.part()? {
            let part = part.strip_prefix(b"\n").unwrap_or(&part);
            match part.split_first() {
                Some((&COMMIT, id)) => {
                    let id = CommitId::new(lossy(id)).map_err(|_| log_failed())?;
                    if let Some(entry) = self.current.replace(LogEntry { id, changes: Vec::new() }) {
                        return Ok(Some(entry));
                    }
                }
                Some((b':', head)) => {
                    let path = self.part()?.unwrap_or_default();
                    let change = raw_change(&lossy(head), path);
                    if let Some(current) = &mut self.current {
                        current.changes.extend(change);
                    }
                }
                Some(_) | None => {}
            }
        }
        Ok(self.current.take())
    }

    fn part(&mut self) -> Result<Option<Vec<u8>>, Error> {
        self.parts.next().transpose().map_err(|_| log_failed())
    }

    /// Reports at the end whether git failed.
    fn finish(&mut self) -> Option<Result<LogEntry, Error>> {
        let failure = self.failure.take()?;
        match self.child.wait() {
            Ok(status) if status.success() => None,
            Ok(_) => Some(Err(failure)),
            Err(error) => Some(Err(Error::io("run", "git")(error))),
        }
    }
}

impl Drop for GitLog {
    fn drop(&mut self) {
        // Enough was read: the rest of the output is not waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn log_failed() -> Error {
    Error::GitOutput { command: "log -z --raw".to_owned() }
}

/// A change in the raw format: old and new mode, old and new object, status.
fn raw_change(head: &str, path: Vec<u8>) -> Option<RawChange> {
    let mut fields = head.split(' ').skip(1);
    let mode = fields.next()?.to_owned();
    let object = fields.nth(1)?.to_owned();
    Some(RawChange { mode, object, path })
}

pub(super) fn commit_object(bytes: &[u8]) -> CommitObject {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
    let (head, rest) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
    let mut commit =
        CommitObject { message: rest.get(2..).unwrap_or_default().to_vec(), ..CommitObject::default() };
    for line in String::from_utf8_lossy(head).lines() {
        if let Some(parent) = line.strip_prefix("parent ") {
            commit.parents.extend(CommitId::new(parent).ok());
        } else if let Some(committer) = line.strip_prefix("committer ") {
            let seconds = committer.rsplit(' ').nth(1);
            commit.time = seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or_default();
        }
    }
    commit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_run_is_found_whatever_was_searched_before() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        std::fs::create_dir(git.paths().private()).unwrap();
        git.commit_everything("root").unwrap();
        let root = git.resolve("HEAD").unwrap().unwrap();
        let tree = git.tree_of(&root).unwrap();
        let commit = |parent: &CommitId, message: &str| git.store_commit(&tree, parent, message).unwrap();
        let run = RunId::new("r1").unwrap();
        let first = commit(&root, "chore(loop): start run r1\n");
        let work = commit(&first, "fix: it\n");
        let second = commit(&work, "chore(loop): start run r1\n");
        let more = commit(&second, "docs: it\n");
        let other = commit(&root, "chore(loop): start run r2\n");
        let unrelated = commit(&first, "fix: something else\n");
        // Forwards, the same again, back, and to a branch that left the run earlier.
        for (from, expected) in [
            (&first, &first),
            (&work, &first),
            (&more, &second),
            (&more, &second),
            (&work, &first),
            (&more, &second),
            (&unrelated, &first),
        ] {
            assert_eq!(git.start_commit(&run, from).unwrap(), *expected);
        }
        assert_eq!(git.start_commit(&RunId::new("r2").unwrap(), &other).unwrap(), other);
        assert_eq!(git.start_commit(&run, &other).unwrap(), other, "without a start, the commit itself");

        let iteration = commit(&more, "chore(loop): run r1 iter 0001 node root: done\n");
        let third = commit(&iteration, "chore(loop): start run r1\n");
        assert_eq!(git.start_commit(&run, &more).unwrap(), second);
        git.note_iteration_commit(&more, &iteration);
        assert_eq!(git.start_commit(&run, &iteration).unwrap(), second);
        git.note_iteration_commit(&work, &third);
        assert_eq!(git.start_commit(&run, &third).unwrap(), third, "another base was noted");
    }

    #[test]
    fn a_commit_object_is_parsed() {
        let [first, second] = ["2", "3"].map(|digit| CommitId::new(digit.repeat(40)).unwrap());
        let text = format!(
            "tree 1\nparent {first}\nparent {second}\nauthor A <a> 1 +0000\ncommitter C <c> 17 +0100\n\
             encoding x\n\ns\n\nb\n"
        );
        let commit = commit_object(text.as_bytes());
        assert_eq!((commit.parents, commit.time), (vec![first, second], 17));
        assert_eq!(commit.message, b"s\n\nb\n");
    }
}
