//! Reading history: which commits there are, what each changed, and what they hold. Nothing is written.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use runner_core::layout::RUNNER_DIR;

use super::{Git, Head, lossy, path_of};
use crate::error::Error;
use crate::view::run_view::DiffFormat;

/// A commit of a log, with what it changed against its first parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub(crate) id: String,
    pub(crate) changes: Vec<RawChange>,
}

/// A changed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawChange {
    /// As git writes modes: `100644`, `120000`; zeros where nothing is left.
    pub(crate) mode: String,
    pub(crate) object: String,
    pub(crate) path: Vec<u8>,
}

/// A commit's own bytes, understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommitObject {
    pub(crate) parents: Vec<String>,
    /// Seconds since 1970 at which it was committed.
    pub(crate) time: i64,
    pub(crate) message: Vec<u8>,
}

/// A commit begins with this byte in the output that is asked for: no path does.
const COMMIT: u8 = 1;

impl Git {
    /// How many commits, along first parents, lie on top of the last one that a run's own commands made.
    pub(crate) fn own_commits(&self, run: &str, tip: &str) -> Result<u32, Error> {
        let run = run.replace('.', "\\.");
        let subject = format!("--grep=^chore\\(loop\\): (start run {run}$|run {run} )");
        let args = ["rev-list", "-1", "--first-parent", "--extended-regexp", &subject, tip];
        let last = lossy(&self.call(&args).run()?);
        if last.is_empty() || last == tip {
            return Ok(0);
        }
        let range = format!("{last}..{tip}");
        let counted = lossy(&self.call(&["rev-list", "--count", "--first-parent", &range]).run()?);
        Ok(counted.parse().unwrap_or(u32::MAX))
    }

    /// Commits along first parents, newest first, from a commit back to another one (not included) or to the beginning.
    /// Ends early when `more` says so. With patterns, only paths that match, and only commits that change one.
    pub(crate) fn walk(
        &self,
        tip: &str,
        after: Option<&str>,
        patterns: &[String],
        more: &mut dyn FnMut(LogEntry) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut args: Vec<String> =
            ["log", "-z", "--raw", "--no-abbrev", "--no-renames", "-m", "--first-parent", "--root"]
                .map(str::to_owned)
                .into();
        args.extend(["--format=%x01%H".to_owned(), tip.to_owned()]);
        args.extend(after.map(|after| format!("^{after}")));
        args.push("--".to_owned());
        args.extend(patterns.iter().map(|pattern| format!(":(top,glob){pattern}")));
        let mut call = self.call(&args);
        call.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = call.command.spawn().map_err(Error::io("run", self.program()))?;
        let result = child.stdout.take().map_or(Ok(true), |stdout| each_logged(stdout, more));
        if !matches!(result, Ok(true)) {
            // Enough was read; what git would still say is not waited for.
            let _ = child.kill();
        }
        let status = child.wait().map_err(Error::io("run", self.program()))?;
        match result {
            Err(error) => Err(error),
            Ok(true) if !status.success() => Err(Error::Git {
                command: args.join(" "),
                stderr: format!("no history of `{tip}` could be read"),
            }),
            Ok(_) => Ok(()),
        }
    }

    /// Paths of a commit that match any of the patterns, found without an index.
    pub(crate) fn matching_paths(
        &self,
        commit: &str,
        patterns: &[String],
    ) -> Result<BTreeSet<Vec<u8>>, Error> {
        if patterns.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut args: Vec<String> =
            ["diff-tree", "-r", "-z", "--name-only", "--no-renames"].map(str::to_owned).into();
        args.extend([self.empty_tree().to_owned(), commit.to_owned(), "--".to_owned()]);
        args.extend(patterns.iter().map(|pattern| format!(":(top,glob){pattern}")));
        let answer = self.call(&args).run()?;
        Ok(answer.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// The tree with nothing in it, which git knows without storing it.
    fn empty_tree(&self) -> &'static str {
        if self.name_digits == 40 {
            "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
        } else {
            "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
        }
    }

    /// The commit that a name given by a person stands for.
    pub(crate) fn resolve(&self, name: &str) -> Result<Option<String>, Error> {
        let commit = format!("{name}^{{commit}}");
        let output =
            self.call(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).output()?;
        Ok(output.status.success().then(|| lossy(&output.stdout)))
    }

    /// The branches of runs, here and as remotes last had them: run, full name, commit. Those here come first.
    pub(crate) fn run_branches(&self) -> Result<Vec<(String, String, String)>, Error> {
        let format = "--format=%(objectname) %(refname)";
        let places = ["refs/heads/runner/", "refs/remotes/*/runner/*"];
        let answer = lossy(&self.call(&[&["for-each-ref", format], places.as_slice()].concat()).run()?);
        let named = |line: &str| {
            let (commit, name) = line.split_once(' ')?;
            let run = name.rsplit_once("/runner/")?.1;
            Some((run.to_owned(), name.to_owned(), commit.to_owned()))
        };
        Ok(answer.lines().filter_map(named).collect())
    }

    /// Whether commits are missing here that the repository it came from has.
    pub(crate) fn is_shallow(&self) -> bool {
        self.common_dir().join("shallow").exists()
    }

    /// Makes a repository of its own at a path, which borrows this one's objects, with a commit checked out.
    pub(crate) fn clone_at(&self, path: &Path, commit: &str) -> Result<(), Error> {
        let origin = self.common_dir().display().to_string();
        let place = path.display().to_string();
        self.call(&["clone", "-q", "--shared", "--no-checkout", "--no-tags", "--", &origin, &place]).run()?;
        self.call(&["-C", &place, "checkout", "-q", "--detach", commit]).run().map(drop)
    }

    /// Puts files of a commit over those of a repository that [`Git::clone_at`] made.
    pub(crate) fn lay_over(&self, path: &Path, commit: &str, files: &BTreeSet<Vec<u8>>) -> Result<(), Error> {
        if files.is_empty() {
            return Ok(());
        }
        let words = ["--literal-pathspecs", "checkout", "-q", commit, "--"];
        let mut args: Vec<OsString> = vec!["-C".into(), path.into()];
        args.extend(words.map(OsString::from));
        args.extend(files.iter().map(|file| path_of(file).into()));
        self.call(&args).run().map(drop)
    }

    /// The difference between two commits, for people.
    pub(crate) fn show_diff(
        &self,
        from: &str,
        to: &str,
        form: DiffFormat,
        paths: &[String],
    ) -> Result<Vec<u8>, Error> {
        let mut args: Vec<String> =
            ["diff", "--no-ext-diff", "--no-textconv", "-M"].map(str::to_owned).into();
        args.extend(
            match form {
                DiffFormat::Patch => ["--no-color"].as_slice(),
                DiffFormat::Coloured => ["--color=always"].as_slice(),
                DiffFormat::Stat => ["--numstat", "-z", "--no-renames"].as_slice(),
            }
            .iter()
            .map(|arg| (*arg).to_owned()),
        );
        args.extend([from.to_owned(), to.to_owned(), "--".to_owned()]);
        args.extend(paths.iter().cloned());
        if paths.is_empty() {
            args.extend([".".to_owned(), format!(":(top,exclude){RUNNER_DIR}")]);
        }
        self.call(&args).run()
    }

    /// Where HEAD is.
    pub(crate) fn head(&self) -> Result<Head, Error> {
        let branch = self.call(&["symbolic-ref", "--quiet", "--short", "HEAD"]).output()?;
        let commit = self.resolve("HEAD")?;
        Ok(Head::of(branch.status.success().then(|| lossy(&branch.stdout)), commit))
    }

    /// Opens a way to read many objects.
    pub(crate) fn batch(&self) -> Result<CatFileBatch, Error> {
        let mut call = self.call(&["cat-file", "--batch"]);
        call.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = call.command.spawn().map_err(Error::io("run", self.program()))?;
        let broken = || Error::GitOutput { command: "cat-file --batch".to_owned() };
        let stdin = child.stdin.take().ok_or_else(broken)?;
        let stdout = child.stdout.take().ok_or_else(broken)?;
        Ok(CatFileBatch { child, stdin: Some(stdin), stdout: BufReader::new(stdout) })
    }
}

/// Reads a log as it comes, commit by commit; false where it was told to stop.
fn each_logged(
    stdout: ChildStdout,
    more: &mut dyn FnMut(LogEntry) -> Result<bool, Error>,
) -> Result<bool, Error> {
    let broken = |_| Error::GitOutput { command: "log -z --raw".to_owned() };
    let mut pieces = BufReader::with_capacity(1 << 16, stdout).split(0);
    let mut current: Option<LogEntry> = None;
    while let Some(piece) = pieces.next().transpose().map_err(broken)? {
        let piece = piece.strip_prefix(b"\n").unwrap_or(&piece);
        match piece.split_first() {
            Some((&COMMIT, id)) => {
                let next = LogEntry { id: lossy(id), changes: Vec::new() };
                if let Some(done) = current.replace(next)
                    && !more(done)?
                {
                    return Ok(false);
                }
            }
            Some((b':', head)) => {
                let path = pieces.next().transpose().map_err(broken)?.unwrap_or_default();
                let head = lossy(head);
                let mut fields = head.split(' ').skip(1);
                let (mode, _, object) = (fields.next(), fields.next(), fields.next());
                if let (Some(current), Some(mode), Some(object)) = (&mut current, mode, object) {
                    let (mode, object) = (mode.to_owned(), object.to_owned());
                    current.changes.push(RawChange { mode, object, path });
                }
            }
            Some(_) | None => {}
        }
    }
    current.map_or(Ok(true), more)
}

/// One git process that answers for many objects.
pub(crate) struct CatFileBatch {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl CatFileBatch {
    /// The bytes of an object; none if it is not here.
    pub(crate) fn object(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let broken = || Error::GitOutput { command: "cat-file --batch".to_owned() };
        let stdin = self.stdin.as_mut().ok_or_else(broken)?;
        stdin.write_all(format!("{name}\n").as_bytes()).and_then(|()| stdin.flush()).map_err(|_| broken())?;
        let mut header = String::new();
        self.stdout.read_line(&mut header).map_err(|_| broken())?;
        let Some(size) = header.trim_end().rsplit_once(' ').map(|(_, last)| last) else {
            return Err(broken());
        };
        if size == "missing" {
            return Ok(None);
        }
        let size: usize = size.parse().map_err(|_| broken())?;
        let mut bytes = vec![0; size];
        let mut end = [0];
        self.stdout
            .read_exact(&mut bytes)
            .and_then(|()| self.stdout.read_exact(&mut end))
            .map_err(|_| broken())?;
        Ok(Some(bytes))
    }

    /// A commit; none if it is not here.
    pub(crate) fn commit(&mut self, name: &str) -> Result<Option<CommitObject>, Error> {
        Ok(self.object(name)?.as_deref().map(commit_object))
    }
}

impl Drop for CatFileBatch {
    fn drop(&mut self) {
        // Without its input the process ends by itself.
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

fn commit_object(bytes: &[u8]) -> CommitObject {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
    let (head, rest) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
    let head = String::from_utf8_lossy(head);
    let after = |line: &str, key: &str| line.strip_prefix(key).map(str::to_owned);
    let time = head.lines().find_map(|line| after(line, "committer "));
    let time = time.and_then(|line| line.rsplit(' ').nth(1).and_then(|seconds| seconds.parse().ok()));
    CommitObject {
        parents: head.lines().filter_map(|line| after(line, "parent ")).collect(),
        time: time.unwrap_or_default(),
        message: rest.get(2..).unwrap_or_default().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_read_from_its_own_bytes() {
        let bytes = b"tree 1\nparent 2\nparent 3\nauthor A <a> 1 +0000\ncommitter C <c> 17 +0100\nencoding x\n\ns\n\nb\n";
        let read = commit_object(bytes);
        assert_eq!((read.parents.as_slice(), read.time), (["2".to_owned(), "3".to_owned()].as_slice(), 17));
        assert_eq!(read.message, b"s\n\nb\n");
    }
}
