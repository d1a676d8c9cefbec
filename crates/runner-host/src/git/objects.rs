//! Reading and writing what git stores: refs, trees, blobs, commits, and indexes of the runner's own.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use super::status::ScanResult;
use super::{Git, REASON, lossy};
use runner_core::commit_message::grep_pattern;

use crate::error::Error;

/// For an index that is written once more before anyone else sees it, and needs no checksum yet.
const NO_CHECKSUM: &str = "index.skipHash=true";
/// For one that goes to the user as it is.
const CHECKSUM: &str = "index.skipHash=false";

/// An entry of a tree, as far as the runner cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    pub(crate) mode: EntryMode,
    pub(crate) object: String,
    /// From the repository's root, as git writes it.
    pub(crate) path: Vec<u8>,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryMode {
    File,
    Executable,
    Link,
    Repository,
}

impl EntryMode {
    fn as_str(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
            Self::Repository => "160000",
        }
    }
}

/// What an index should hold at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexEntry {
    Put(TreeEntry),
    Remove(Vec<u8>),
}

impl Git {
    /// Local branches below `runner`, with that one itself, and the commits they point to.
    pub(crate) fn runner_branches(&self) -> Result<Vec<(String, String)>, Error> {
        let format = "--format=%(objectname) %(refname:lstrip=2)";
        let answer = lossy(&self.call(&["for-each-ref", format, "refs/heads/runner"]).run()?);
        Ok(answer
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(commit, branch)| (branch.to_owned(), commit.to_owned()))
            .collect())
    }

    /// Where else a branch is checked out, as git writes the path.
    pub(crate) fn worktree_holding(&self, branch: &str) -> Result<Option<String>, Error> {
        let answer = self.call(&["worktree", "list", "--porcelain", "-z"]).run()?;
        let wanted = format!("branch refs/heads/{branch}");
        let mut worktree = None;
        for line in answer.split(|byte| *byte == 0) {
            if let Some(path) = line.strip_prefix(b"worktree ") {
                worktree = Some(path);
            } else if line == wanted.as_bytes() {
                return Ok(worktree.map(lossy));
            }
        }
        Ok(None)
    }

    /// The commit that a branch points to.
    pub(crate) fn branch_tip(&self, branch: &str) -> Result<Option<String>, Error> {
        let reference = format!("refs/heads/{branch}");
        let output =
            self.call(&["rev-parse", "--verify", "--quiet", "--end-of-options", &reference]).output()?;
        Ok(output.status.success().then(|| lossy(&output.stdout)))
    }

    /// Points a reference to an object, wherever it points now.
    pub(crate) fn set_ref(&self, name: &str, object: &str) -> Result<(), Error> {
        self.call(&["update-ref", "--no-deref", name, object]).run().map(drop)
    }

    /// Removes a reference, wherever it points.
    pub(crate) fn remove_ref(&self, name: &str) -> Result<(), Error> {
        self.call(&["update-ref", "--no-deref", "-d", name]).run().map(drop)
    }

    /// Whether an object is here.
    pub(crate) fn has_object(&self, name: &str) -> bool {
        self.call(&["cat-file", "-e", name]).output().is_ok_and(|output| output.status.success())
    }

    /// Whether a name stands for a commit that is here.
    pub(crate) fn is_commit(&self, name: &str) -> bool {
        let looks_like_one =
            name.len() == self.name_digits && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        looks_like_one
            && self
                .call(&["cat-file", "-e", &format!("{name}^{{commit}}")])
                .output()
                .is_ok_and(|output| output.status.success())
    }

    /// The tree of a commit.
    pub(crate) fn tree_of(&self, commit: &str) -> Result<String, Error> {
        let tree = format!("{commit}^{{tree}}");
        Ok(lossy(&self.call(&["rev-parse", "--verify", "--end-of-options", &tree]).run()?))
    }

    /// The files of a commit below a folder.
    pub(crate) fn files_of(&self, commit: &str, folder: &str) -> Result<Vec<TreeEntry>, Error> {
        let answer = self.call(&["ls-tree", "-r", "-z", "--full-tree", commit, "--", folder]).run()?;
        Ok(answer.split(|byte| *byte == 0).filter_map(tree_entry).collect())
    }

    /// The files of a commit in a folder, with their sizes.
    pub(crate) fn sizes_of(&self, commit: &str, folder: &str) -> Result<Vec<(Vec<u8>, u64)>, Error> {
        let answer = self.call(&["ls-tree", "-r", "-z", "-l", "--full-tree", commit, "--", folder]).run()?;
        let sized = |line: &[u8]| {
            let bytes = std::str::from_utf8(line.split(|byte| *byte == b'\t').next()?).ok()?;
            Some((tree_entry(line)?.path, bytes.split(' ').next_back()?.parse().ok()?))
        };
        Ok(answer.split(|byte| *byte == 0).filter_map(sized).collect())
    }

    /// The contents of blobs, in the order asked for.
    pub(crate) fn blobs(&self, objects: &[&str]) -> Result<Vec<Vec<u8>>, Error> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let request = objects.join("\n") + "\n";
        let answer = self.call(&["cat-file", "--batch"]).input(request.as_bytes()).run()?;
        let mut rest = answer.as_slice();
        let no_sense = || Error::GitOutput { command: "cat-file --batch".to_owned() };
        objects
            .iter()
            .map(|_| {
                let (blob, after) = next_blob(rest).ok_or_else(no_sense)?;
                rest = after;
                Ok(blob.to_vec())
            })
            .collect()
    }

    /// A file of a commit; empty where the commit has none at that path.
    pub(crate) fn file_at(&self, commit: &str, path: &str) -> Result<Vec<u8>, Error> {
        let file = self.files_of(commit, path)?.into_iter().find(|file| file.path == path.as_bytes());
        let Some(file) = file else { return Ok(Vec::new()) };
        Ok(self.blobs(&[&file.object])?.into_iter().next().unwrap_or_default())
    }

    /// Paths of a commit that match any of the patterns.
    pub(crate) fn matching_in(&self, commit: &str, patterns: &[String]) -> Result<PathSet, Error> {
        let index = self.paths().private_index("look");
        self.read_into_index(&index, commit)?;
        self.matching_in_index(&index, patterns)
    }

    /// Paths of an index that match any of the patterns, which are git's: `*` within a name, `**` across folders.
    pub(crate) fn matching_in_index(&self, index: &Path, patterns: &[String]) -> Result<PathSet, Error> {
        if patterns.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut args: Vec<String> = ["ls-files", "-z", "--cached", "--"].map(str::to_owned).into();
        args.extend(patterns.iter().map(|pattern| format!(":(top,glob){pattern}")));
        let answer = self.call(&args).index(index).run()?;
        Ok(answer.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// The newest commit of a run that `runner start` made, at or before a commit.
    pub(crate) fn start_commit(&self, run: &str, from: &str) -> Result<String, Error> {
        let subject = format!("--grep={}", grep_pattern::start_of(run));
        let args = ["rev-list", "-1", "--extended-regexp", &subject, from];
        let found = lossy(&self.call(&args).run()?);
        Ok(if found.is_empty() { from.to_owned() } else { found })
    }

    /// Writes files of an index into the work tree.
    pub(crate) fn check_out(&self, index: &Path, paths: &[Vec<u8>]) -> Result<(), Error> {
        let listed: PathSet = self.index_paths(index, ".")?.into_iter().collect();
        let paths: Vec<Vec<u8>> = paths.iter().filter(|path| listed.contains(*path)).cloned().collect();
        if paths.is_empty() {
            return Ok(());
        }
        let mut request = paths.join(&0);
        request.push(0);
        let args = ["checkout-index", "-z", "-f", "-u", "--stdin"];
        self.call(&args).index(index).variable("GIT_WORK_TREE", self.root()).input(&request).run().map(drop)
    }

    /// What changed between two commits, as a patch, but for these paths.
    pub(crate) fn patch(&self, from: &str, to: &str, without: &[&str]) -> Result<Vec<u8>, Error> {
        let args =
            ["diff-tree", "-p", "-M", "--binary", "--no-ext-diff", "--no-textconv", from, to, "--", "."];
        let without = without.iter().map(|path| format!(":(exclude,top,literal){path}"));
        self.call(&args.into_iter().map(str::to_owned).chain(without).collect::<Vec<_>>()).run()
    }

    /// Files below a folder that git does not know and does not ignore. `ignored` are patterns from the root
    /// that hold even where no ignore file does.
    pub(crate) fn unknown_files(&self, folder: &str, ignored: &[&str]) -> Result<Vec<Vec<u8>>, Error> {
        let mut args = vec!["ls-files".to_owned(), "-z".to_owned(), "--others".to_owned()];
        args.push("--exclude-standard".to_owned());
        args.extend(ignored.iter().map(|pattern| format!("--exclude=/{pattern}")));
        args.extend(["--".to_owned(), folder.to_owned()]);
        let answer = self.call(&args).run()?;
        Ok(answer.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Paths in which an index differs from a commit.
    pub(crate) fn staged_paths(&self, index: &Path, commit: &str) -> Result<PathSet, Error> {
        let args = ["diff-index", "--cached", "-z", "--name-only", "--no-renames", commit];
        let answer = self.call(&args).index(index).run()?;
        Ok(answer.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Takes paths into an index as the work tree has them; those that are gone go. Says whether git took them all:
    /// it passes over names that it would never write.
    pub(crate) fn add_paths(&self, index: &Path, paths: &[Vec<u8>]) -> Result<ScanResult, Error> {
        if paths.is_empty() {
            return Ok(ScanResult::Full);
        }
        let mut request = paths.join(&0);
        request.push(0);
        let args = ["-c", NO_CHECKSUM, "update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
        let output = self.call(&args).index(index).input(&request).output()?;
        if !output.status.success() {
            return Err(Error::Git { command: args.join(" "), stderr: lossy(&output.stderr) });
        }
        Ok(if output.stderr.is_empty() { ScanResult::Full } else { ScanResult::Blocked })
    }

    /// Makes an index look at every file again that someone told it to take for unchanged.
    pub(crate) fn forget_assumptions(&self, index: &Path) -> Result<(), Error> {
        let listed = self.call(&["ls-files", "-z", "-v", "--cached"]).index(index).run()?;
        // A lower-case letter in front of a path is the mark.
        let assumed: Vec<Vec<u8>> = listed
            .split(|byte| *byte == 0)
            .filter(|line| line.first().is_some_and(u8::is_ascii_lowercase))
            .filter_map(|line| line.get(2..).map(<[u8]>::to_vec))
            .collect();
        if assumed.is_empty() {
            return Ok(());
        }
        let mut request = assumed.join(&0);
        request.push(0);
        let args = ["update-index", "-z", "--no-assume-unchanged", "--stdin"];
        self.call(&args).index(index).input(&request).run().map(drop)
    }

    /// Files below a folder that an index holds.
    pub(crate) fn index_paths(&self, index: &Path, folder: &str) -> Result<Vec<Vec<u8>>, Error> {
        let answer = self.call(&["ls-files", "-z", "--cached", "--", folder]).index(index).run()?;
        Ok(answer.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Makes an index of a commit's tree.
    pub(crate) fn read_into_index(&self, index: &Path, commit: &str) -> Result<(), Error> {
        let _ = fs::remove_file(index);
        self.call(&["read-tree", commit]).index(index).run().map(drop)
    }

    /// Changes entries of an index that is written once more afterwards.
    pub(crate) fn edit_index(&self, index: &Path, entries: &[IndexEntry]) -> Result<(), Error> {
        self.rewrite_index(NO_CHECKSUM, index, entries)
    }

    /// Changes entries of an index for the last time.
    pub(crate) fn finish_index(&self, index: &Path, entries: &[IndexEntry]) -> Result<(), Error> {
        self.rewrite_index(CHECKSUM, index, entries)
    }

    fn rewrite_index(&self, checksum: &str, index: &Path, entries: &[IndexEntry]) -> Result<(), Error> {
        let mut request = Vec::new();
        for entry in entries {
            let (mode, object, path) = match entry {
                IndexEntry::Put(entry) => (entry.mode.as_str(), entry.object.clone(), &entry.path),
                IndexEntry::Remove(path) => ("0", self.no_object(), path),
            };
            request.extend(format!("{mode} {object}\t").bytes());
            request.extend(path);
            request.push(0);
        }
        self.call(&["-c", checksum, "update-index", "-z", "--replace", "--index-info"])
            .index(index)
            .input(&request)
            .run()
            .map(drop)
    }

    /// Lets an index know how each of its files looks on the disk; those that differ stay as they are in it.
    pub(crate) fn refresh_index(&self, index: &Path) -> Result<(), Error> {
        self.call(&["update-index", "-q", "--refresh"]).index(index).output().map(drop)
    }

    /// Stores an index as a tree.
    pub(crate) fn write_tree(&self, index: &Path) -> Result<String, Error> {
        Ok(lossy(&self.call(&["-c", CHECKSUM, "write-tree"]).index(index).run()?))
    }

    /// When the last iteration was committed, in seconds since 1970: edits and starts since then do not count. Where there
    /// is none, when HEAD was.
    pub(crate) fn last_iteration_time(&self) -> Result<u64, Error> {
        let of = |more: &[&str]| {
            let args = ["log", "-1", "--first-parent", "--no-show-signature", "--format=%ct"];
            self.call(&[&args, more, &["HEAD"]].concat()).run().map(|answer| lossy(&answer).trim().to_owned())
        };
        let subject = format!("--grep={}", grep_pattern::any_iteration());
        let iteration = of(&["--extended-regexp", &subject])?;
        let answer = if iteration.is_empty() { of(&[])? } else { iteration };
        answer.parse().map_err(|_| Error::GitOutput { command: "log -1 --format=%ct".to_owned() })
    }

    /// Commits everything there is as the first commit of a new repository.
    pub(crate) fn commit_everything(&self, message: &str) -> Result<(), Error> {
        self.call(&["add", "-A"]).run()?;
        self.call(&["commit", "-q", "--allow-empty", "-m", message]).run().map(drop)
    }

    /// The newest commits, one line each.
    pub(crate) fn one_line_log(&self, most: usize) -> Result<Vec<String>, Error> {
        let answer = lossy(&self.call(&["log", "--format=%h %s", &format!("-{most}")]).run()?);
        Ok(answer.lines().map(runner_core::text::one_line).collect())
    }

    /// Points a reference to a commit, if it points where it is thought to, or there already.
    pub(crate) fn move_ref(&self, reference: &str, to: &str, from: Option<&str>) -> Result<(), Error> {
        let from = from.map_or_else(|| self.no_object(), str::to_owned);
        let request = format!("start\nupdate {reference} {to} {from}\ncommit\n");
        let moved = self.moving.ask(self, request.as_bytes(), 2);
        moved.map(drop).or_else(|error| if self.points_to(reference, to) { Ok(()) } else { Err(error) })
    }

    fn points_to(&self, reference: &str, object: &str) -> bool {
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", reference];
        self.call(&args).run().is_ok_and(|found| lossy(&found) == object)
    }

    /// Puts HEAD on a branch, without touching anything else.
    pub(crate) fn attach_head(&self, branch: &str) -> Result<(), Error> {
        if self.is_attached(branch) {
            return Ok(());
        }
        self.call(&["symbolic-ref", "-m", REASON, "HEAD", &format!("refs/heads/{branch}")]).run().map(drop)
    }

    /// Takes the work tree, with an index that describes it, from one tree to another. Files that differ from
    /// `from` stop it before anything is touched.
    pub(crate) fn switch_files(
        &self,
        index: &Path,
        from: &str,
        to: &str,
        how: CheckoutMode,
    ) -> Result<(), Error> {
        let mut args = vec!["read-tree"];
        args.extend(match how {
            CheckoutMode::Rehearse => ["-n", "-m", "-u"].as_slice(),
            CheckoutMode::Carefully => ["-m", "-u"].as_slice(),
        });
        args.extend([from, to]);
        self.call(&args).index(index).variable("GIT_WORK_TREE", self.root()).run().map(drop)
    }

    /// Makes the work tree what `to` has, whatever an index that describes it says was there.
    pub(crate) fn force_files(&self, index: &Path, to: &str) -> Result<(), Error> {
        let args: [&OsStr; 4] = ["read-tree", "--reset", "-u", to].map(OsStr::new);
        self.call(&args).index(index).variable("GIT_WORK_TREE", self.root()).run().map(drop)
    }

    /// Paths in which two trees differ: all, or only those that one of them does not have.
    pub(crate) fn changed_paths(
        &self,
        one: &str,
        other: &str,
        which: DiffFilter,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let filter = match which {
            DiffFilter::Any => "--diff-filter=ACDMRTUXB",
            DiffFilter::Added => "--diff-filter=A",
            DiffFilter::Removed => "--diff-filter=D",
        };
        let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", filter, one, other];
        let answer = self.call(&args).run()?;
        Ok(answer.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }
}

/// Paths as git writes them.
pub(crate) type PathSet = BTreeSet<Vec<u8>>;

/// Which differences are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffFilter {
    Any,
    /// Only in the second tree.
    Added,
    /// Only in the first tree.
    Removed,
}

/// How to take the work tree from one tree to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckoutMode {
    /// Only find out whether it would work.
    Rehearse,
    /// Do it.
    Carefully,
}

fn tree_entry(line: &[u8]) -> Option<TreeEntry> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let (head, path) = line.split_at_checked(tab)?;
    let head = std::str::from_utf8(head).ok()?;
    let mut fields = head.split(' ');
    let mode = match fields.next()? {
        "100644" | "100664" => EntryMode::File,
        "100755" => EntryMode::Executable,
        "120000" => EntryMode::Link,
        "160000" => EntryMode::Repository,
        _ => return None,
    };
    let object = fields.nth(1)?.to_owned();
    Some(TreeEntry { mode, object, path: path.get(1..)?.to_vec() })
}

/// `<name> blob <size>\n<bytes>\n`, and what follows.
fn next_blob(answer: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = answer.iter().position(|byte| *byte == b'\n')?;
    let (header, rest) = answer.split_at_checked(end)?;
    let header = std::str::from_utf8(header).ok()?;
    let size: usize = header.rsplit_once(' ')?.1.parse().ok()?;
    let (blob, rest) = rest.get(1..)?.split_at_checked(size)?;
    Some((blob, rest.get(1..)?))
}
