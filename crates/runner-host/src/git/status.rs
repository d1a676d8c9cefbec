//! Where HEAD is, and what in the work tree differs from it: one call of `git status`, read as bytes.

use std::collections::BTreeMap;
use std::path::Path;

use runner_core::model::object_id::{BranchName, CommitId};

use super::{Git, PathSet, nul_separated};
use crate::error::Error;
use crate::paths::{is_runner_local, is_runner_path};

/// What HEAD points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// A branch with a commit.
    Branch { name: BranchName, commit: CommitId },
    /// A commit without a branch.
    Detached { commit: CommitId },
    /// A branch that has no commit yet.
    Unborn,
}

impl Head {
    pub(super) fn new(branch: Option<BranchName>, commit: Option<CommitId>) -> Self {
        match (branch, commit) {
            (Some(name), Some(commit)) => Self::Branch { name, commit },
            (None, Some(commit)) => Self::Detached { commit },
            (_, None) => Self::Unborn,
        }
    }

    pub fn branch(&self) -> Option<&BranchName> {
        match self {
            Self::Branch { name, .. } => Some(name),
            Self::Detached { .. } | Self::Unborn => None,
        }
    }

    pub fn commit(&self) -> Option<&CommitId> {
        match self {
            Self::Branch { commit, .. } | Self::Detached { commit } => Some(commit),
            Self::Unborn => None,
        }
    }
}

/// HEAD, and the paths that differ from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoStatus {
    pub head: Head,
    /// Modified, added, deleted and untracked paths outside `.runner/`, as git prints them.
    pub outside: Vec<Vec<u8>>,
    /// The same inside `.runner/`.
    pub inside: Vec<Vec<u8>>,
}

impl RepoStatus {
    /// A clean work tree at HEAD.
    pub(crate) fn clean(head: Head) -> Self {
        Self { head, outside: Vec::new(), inside: Vec::new() }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.outside.is_empty() && self.inside.is_empty()
    }
}

/// Of a submodule only its commit counts. To look inside, git would start itself there, without the settings that make
/// a call harmless.
const STATUS: [&str; 7] = [
    "status",
    "--porcelain=v2",
    "--branch",
    "-z",
    "--untracked-files=normal",
    "--ignore-submodules=dirty",
    "--no-renames",
];

/// Differences between the work tree and an index, file by file.
const INDEX_STATUS: [&str; 6] =
    ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=dirty", "--no-renames"];

/// Paths, and how they differ from an index.
pub(crate) type ChangedPaths = BTreeMap<Vec<u8>, PathChange>;

/// How a path differs from an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathChange {
    Modified,
    Deleted,
    Untracked,
}

/// Whether git could read, or stage, every path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanResult {
    Complete,
    Partial,
}

impl Git {
    /// HEAD, and the state of the work tree.
    pub fn status(&self) -> Result<RepoStatus, Error> {
        let output = self.call(&STATUS).run().or_else(|error| {
            // A file that was committed without conversion has new times, and git cannot convert it.
            let index = self.paths().index();
            self.refresh_unconverted(&index).map_err(|_| error)?;
            self.call(&STATUS).run().or_else(|_| {
                self.settle_index(&index)?;
                self.call(&STATUS).run()
            })
        })?;
        parse_status(&output).ok_or_else(|| Error::GitOutput { command: STATUS.join(" ") })
    }

    /// Paths of the work tree that differ from an index: modified, deleted, or untracked and not ignored. A nested
    /// repository ends in `/`.
    pub(crate) fn differing_paths(&self, index: &Path) -> Result<PathSet, Error> {
        self.status_against_index(index, &[]).map(|(paths, _)| paths.into_keys().collect())
    }

    /// The same without some files, with the kind of each difference, and whether git could read every folder. Where
    /// git stops because it cannot convert a file, it compares the bytes instead.
    pub(crate) fn status_against_index(
        &self,
        index: &Path,
        without: &[&str],
    ) -> Result<(ChangedPaths, ScanResult), Error> {
        let mut args: Vec<String> = INDEX_STATUS.map(str::to_owned).into();
        args.push("--".to_owned());
        args.extend(without.iter().map(|path| format!(":(exclude,top,literal){path}")));
        let mut output = self.call(&args).index(index).output()?;
        if !output.status.success() {
            output = self.call_unconverted(&args)?.index(index).output()?;
        }
        if !output.status.success() {
            return Err(Error::git(INDEX_STATUS.join(" "), &output.stderr));
        }
        let differences = nul_separated(&output.stdout).filter_map(difference);
        let paths = differences.map(|(path, change)| (path.to_vec(), change)).collect();
        Ok((paths, if output.stderr.is_empty() { ScanResult::Complete } else { ScanResult::Partial }))
    }
}

/// The path of an entry and how it differs from the index, if it does.
fn difference(line: &[u8]) -> Option<(&[u8], PathChange)> {
    let path = changed_path(line)?;
    let change = match line {
        [b'?', ..] if is_runner_local(path) => return None,
        [b'?', ..] => PathChange::Untracked,
        [b'1', b' ', _, b'.', ..] => return None,
        [b'1', b' ', _, b'D', ..] => PathChange::Deleted,
        _ => PathChange::Modified,
    };
    Some((path, change))
}

fn parse_status(output: &[u8]) -> Option<RepoStatus> {
    let mut commit = None;
    let mut branch = None;
    let mut outside = Vec::new();
    let mut inside = Vec::new();
    for line in nul_separated(output) {
        if let Some(header) = line.strip_prefix(b"# ") {
            let header = String::from_utf8_lossy(header).into_owned();
            match header.split_once(' ') {
                Some(("branch.oid", "(initial)")) => commit = Some(None),
                Some(("branch.oid", id)) => commit = Some(Some(CommitId::new(id).ok()?)),
                Some(("branch.head", "(detached)")) => branch = Some(None),
                Some(("branch.head", name)) => branch = Some(Some(BranchName::new(name))),
                _ => {}
            }
            continue;
        }
        let path = changed_path(line)?.to_vec();
        if is_runner_path(&path) { inside.push(path) } else { outside.push(path) }
    }
    Some(RepoStatus { head: Head::new(branch?, commit?), outside, inside })
}

/// The path in an entry: after eight fields of a changed one, ten of an unmerged one, one of an untracked one.
fn changed_path(line: &[u8]) -> Option<&[u8]> {
    let fields = match line.first()? {
        b'1' => 8,
        b'u' => 10,
        b'?' | b'!' => 1,
        _ => return None,
    };
    line.splitn(fields + 1, |byte| *byte == b' ').nth(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit_id() -> CommitId {
        CommitId::new("0123456789abcdef0123456789abcdef01234567").unwrap()
    }

    #[test]
    fn head_and_paths_are_parsed_as_bytes() {
        let output = b"# branch.oid 0123456789abcdef0123456789abcdef01234567\0# branch.head runner/x\0# branch.upstream o/x\0\
            1 .M N... 100644 100644 100644 aa bb a b\xff c\0? .runner/\0? new\nline\0\
            u UU N... 1 2 3 4 aa bb cc both\0";
        let status = parse_status(output).unwrap();
        assert_eq!(status.head, Head::Branch { name: BranchName::new("runner/x"), commit: commit_id() });
        assert_eq!(status.outside, [&b"a b\xff c"[..], b"new\nline", b"both"]);
        assert_eq!(status.inside, [b".runner/"]);
    }

    #[test]
    fn only_differences_from_the_index_are_listed() {
        let entry = |text: &'static str| difference(text.as_bytes());
        let tracked = |marks: &str| format!("1 {marks} N... 100644 100644 100644 aa bb a b");
        for (marks, change) in
            [(".M", PathChange::Modified), ("AM", PathChange::Modified), (".D", PathChange::Deleted)]
        {
            assert_eq!(difference(tracked(marks).as_bytes()), Some((&b"a b"[..], change)), "{marks}");
        }
        assert_eq!(difference(tracked(".T").as_bytes()), Some((&b"a b"[..], PathChange::Modified)));
        assert_eq!(difference(tracked("M.").as_bytes()), None);
        assert_eq!(entry("? new"), Some((&b"new"[..], PathChange::Untracked)));
        assert_eq!(entry("? .runner/notes"), Some((&b".runner/notes"[..], PathChange::Untracked)));
        for own in
            [".runner/lock", ".runner/context/goal.md", ".runner/iterations/x/0001/log", ".runner/a/.b.tmp"]
        {
            assert_eq!(difference(format!("? {own}").as_bytes()), None, "{own}");
        }
    }

    #[test]
    fn head_may_be_detached_or_unborn() {
        let detached =
            parse_status(format!("# branch.oid {}\0# branch.head (detached)\0", commit_id()).as_bytes())
                .unwrap()
                .head;
        assert_eq!((detached.branch(), detached.commit()), (None, Some(&commit_id())));
        let unborn = parse_status(b"# branch.oid (initial)\0# branch.head main\0").unwrap().head;
        assert_eq!(unborn, Head::Unborn);
        assert_eq!((unborn.branch(), unborn.commit()), (None, None));
        assert_eq!(parse_status(b""), None);
        assert_eq!(parse_status(b"# branch.oid abc\0# branch.head m\0"), None);
        assert_eq!(parse_status(b"# branch.oid (initial)\0# branch.head m\x002 R. x\0"), None);
    }
}
