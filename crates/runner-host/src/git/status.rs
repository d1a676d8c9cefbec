//! Where HEAD is, and what in the work tree differs from it: one call, read as bytes.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Git, PathSet, lossy};
use crate::error::Error;
use crate::repo::paths::{is_runner_local, is_runner_path};

/// What HEAD points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// A branch with a commit.
    Branch {
        /// Its short name.
        name: String,
        /// The commit.
        commit: String,
    },
    /// A commit without a branch.
    Detached {
        /// The commit.
        commit: String,
    },
    /// A branch that has no commit yet.
    Unborn,
}

impl Head {
    /// HEAD with its branch and commit, as far as they are there.
    pub(super) fn of(branch: Option<String>, commit: Option<String>) -> Self {
        match (branch, commit) {
            (Some(name), Some(commit)) => Self::Branch { name, commit },
            (None, Some(commit)) => Self::Detached { commit },
            (_, None) => Self::Unborn,
        }
    }

    /// The current branch.
    pub fn branch(&self) -> Option<&str> {
        match self {
            Self::Branch { name, .. } => Some(name),
            Self::Detached { .. } | Self::Unborn => None,
        }
    }

    /// The current commit.
    pub fn commit(&self) -> Option<&str> {
        match self {
            Self::Branch { commit, .. } | Self::Detached { commit } => Some(commit),
            Self::Unborn => None,
        }
    }
}

/// HEAD, and the paths that are not as it has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoStatus {
    /// Where HEAD is.
    pub head: Head,
    /// Changed, added, removed and unknown paths outside `.runner/`, as git writes them.
    pub outside: Vec<Vec<u8>>,
    /// The same inside `.runner/`.
    pub inside: Vec<Vec<u8>>,
}

impl RepoStatus {
    /// HEAD, and everything as it has it.
    pub(crate) fn clean(head: Head) -> Self {
        Self { head, outside: Vec::new(), inside: Vec::new() }
    }

    /// Whether everything is as HEAD has it.
    pub(crate) fn is_clean(&self) -> bool {
        self.outside.is_empty() && self.inside.is_empty()
    }
}

/// Of a submodule only the commit counts that it is at. To look into it, git would start itself there, without the
/// settings that make a call harmless.
const STATUS: [&str; 7] = [
    "status",
    "--porcelain=v2",
    "--branch",
    "-z",
    "--untracked-files=normal",
    "--ignore-submodules=dirty",
    "--no-renames",
];

/// What in the work tree differs from an index, file by file.
const LOOK: [&str; 6] =
    ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=dirty", "--no-renames"];

/// Paths, and how they differ from an index.
pub(crate) type Differing = BTreeMap<Vec<u8>, PathChange>;

/// How a path differs from an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathChange {
    Changed,
    Gone,
    New,
}

/// Whether all of a work tree could be seen, or taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanResult {
    Full,
    Blocked,
}

impl Git {
    /// Looks at HEAD and the work tree.
    pub fn status(&self) -> Result<RepoStatus, Error> {
        understood(&self.call(&STATUS).run()?)
    }

    /// Paths of the work tree that differ from an index: changed, removed, or unknown and not ignored. A folder that
    /// is a repository of its own ends in `/`.
    pub(crate) fn differing_paths(&self, index: &Path) -> Result<PathSet, Error> {
        self.look_around(index, &[]).map(|(paths, _)| paths.into_keys().collect())
    }

    /// The same but for some files, with how each differs, and whether git could look into every folder.
    pub(crate) fn look_around(
        &self,
        index: &Path,
        without: &[&str],
    ) -> Result<(Differing, ScanResult), Error> {
        let without = without.iter().map(|path| format!(":(exclude,top,literal){path}"));
        let args: Vec<String> =
            LOOK.into_iter().map(str::to_owned).chain(["--".to_owned()]).chain(without).collect();
        let output = self.call(&args).index(index).output()?;
        if !output.status.success() {
            return Err(Error::Git { command: LOOK.join(" "), stderr: lossy(&output.stderr) });
        }
        let lines = output.stdout.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        let paths = lines.filter_map(difference).map(|(path, how)| (path.to_vec(), how)).collect();
        Ok((paths, if output.stderr.is_empty() { ScanResult::Full } else { ScanResult::Blocked }))
    }
}

/// The path of an entry and how it differs from the index, if it does.
fn difference(line: &[u8]) -> Option<(&[u8], PathChange)> {
    let path = changed_path(line)?;
    let how = match line {
        [b'?', ..] if is_runner_local(path) => return None,
        [b'?', ..] => PathChange::New,
        [b'1', b' ', _, b'.', ..] => return None,
        [b'1', b' ', _, b'D', ..] => PathChange::Gone,
        _ => PathChange::Changed,
    };
    Some((path, how))
}

fn understood(answer: &[u8]) -> Result<RepoStatus, Error> {
    parse(answer).ok_or_else(|| Error::GitOutput { command: STATUS.join(" ") })
}

fn parse(answer: &[u8]) -> Option<RepoStatus> {
    let (mut commit, mut branch) = (None, None);
    let (mut outside, mut inside) = (Vec::new(), Vec::new());
    for line in answer.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        if let Some(header) = line.strip_prefix(b"# ") {
            let header = String::from_utf8_lossy(header).into_owned();
            match header.split_once(' ') {
                Some(("branch.oid", "(initial)")) => commit = Some(None),
                Some(("branch.oid", name)) => commit = Some(Some(name.to_owned())),
                Some(("branch.head", "(detached)")) => branch = Some(None),
                Some(("branch.head", name)) => branch = Some(Some(name.to_owned())),
                _ => {}
            }
            continue;
        }
        let path = changed_path(line)?.to_vec();
        if is_runner_path(&path) { inside.push(path) } else { outside.push(path) }
    }
    let head = match (branch?, commit?) {
        (Some(name), Some(commit)) => Head::Branch { name, commit },
        (None, Some(commit)) => Head::Detached { commit },
        (_, None) => Head::Unborn,
    };
    Some(RepoStatus { head, outside, inside })
}

/// The path in an entry: behind eight fields of a changed one, ten of an unmerged one, one of an unknown one.
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

    #[test]
    fn head_and_paths_are_read_as_they_are() {
        let answer = b"# branch.oid abc\0# branch.head runner/x\0# branch.upstream o/x\0\
            1 .M N... 100644 100644 100644 aa bb a b\xff c\0? .runner/\0? new\nline\0\
            u UU N... 1 2 3 4 aa bb cc both\0";
        let status = parse(answer).unwrap();
        assert_eq!(status.head, Head::Branch { name: "runner/x".to_owned(), commit: "abc".to_owned() });
        assert_eq!(status.outside, [&b"a b\xff c"[..], b"new\nline", b"both"]);
        assert_eq!(status.inside, [b".runner/"]);
    }

    #[test]
    fn only_what_differs_from_the_index_is_listed() {
        let entry = |text: &'static str| difference(text.as_bytes());
        let tracked = |marks: &str| format!("1 {marks} N... 100644 100644 100644 aa bb a b");
        for (marks, how) in
            [(".M", PathChange::Changed), ("AM", PathChange::Changed), (".D", PathChange::Gone)]
        {
            assert_eq!(difference(tracked(marks).as_bytes()), Some((&b"a b"[..], how)), "{marks}");
        }
        assert_eq!(difference(tracked(".T").as_bytes()), Some((&b"a b"[..], PathChange::Changed)));
        assert_eq!(difference(tracked("M.").as_bytes()), None);
        assert_eq!(entry("? new"), Some((&b"new"[..], PathChange::New)));
        assert_eq!(entry("? .runner/notes"), Some((&b".runner/notes"[..], PathChange::New)));
        for own in
            [".runner/lock", ".runner/context/goal.md", ".runner/iterations/x/0001/log", ".runner/a/.b.tmp"]
        {
            assert_eq!(difference(format!("? {own}").as_bytes()), None, "{own}");
        }
    }

    #[test]
    fn head_may_be_detached_or_unborn() {
        let detached = parse(b"# branch.oid abc\0# branch.head (detached)\0").unwrap().head;
        assert_eq!((detached.branch(), detached.commit()), (None, Some("abc")));
        let unborn = parse(b"# branch.oid (initial)\0# branch.head main\0").unwrap().head;
        assert_eq!(unborn, Head::Unborn);
        assert_eq!((unborn.branch(), unborn.commit()), (None, None));
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"# branch.oid a\0# branch.head m\x002 R. x\0"), None);
    }
}
