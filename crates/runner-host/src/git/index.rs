//! Private index files: filled from a commit or the work tree, edited, written as trees, and checked out.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use runner_core::model::object_id::{CommitId, TreeId};

use super::objects::{TreeEntry, Treeish};
use super::status::ScanResult;
use super::{Git, lossy, nul_separated, nul_terminated, paths_in};
use crate::error::Error;

/// For an index that is written again before git or the user reads it, so that it needs no checksum yet.
const NO_CHECKSUM: &str = "index.skipHash=true";
/// For an index that becomes the user's.
const CHECKSUM: &str = "index.skipHash=false";

/// Paths as git prints them.
pub(crate) type PathSet = BTreeSet<Vec<u8>>;

/// A change to one path of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexEntry {
    Put(TreeEntry),
    Remove(Vec<u8>),
}

/// Whether [`Git::switch_files`] changes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckoutMode {
    DryRun,
    Apply,
}

impl Git {
    /// Paths of a commit that match any of the patterns.
    pub(crate) fn matching_in(&self, commit: &CommitId, patterns: &[String]) -> Result<PathSet, Error> {
        let index = self.paths().private_index("match");
        self.read_into_index(&index, commit)?;
        self.matching_in_index(&index, patterns)
    }

    /// Paths of an index that match any of the patterns. The patterns are git's: `*` within a name, `**` across
    /// folders.
    pub(crate) fn matching_in_index(&self, index: &Path, patterns: &[String]) -> Result<PathSet, Error> {
        if patterns.is_empty() {
            return Ok(PathSet::new());
        }
        let mut args: Vec<String> = ["ls-files", "-z", "--cached", "--"].map(str::to_owned).into();
        args.extend(patterns.iter().map(|pattern| format!(":(top,glob){pattern}")));
        Ok(paths_in(&self.call(&args).index(index).run()?))
    }

    /// Files below a folder that an index holds.
    pub(crate) fn index_paths(&self, index: &Path, folder: &str) -> Result<Vec<Vec<u8>>, Error> {
        Ok(paths_in(&self.call(&["ls-files", "-z", "--cached", "--", folder]).index(index).run()?))
    }

    /// Paths in which an index differs from a commit.
    pub(crate) fn staged_paths(&self, index: &Path, commit: &CommitId) -> Result<PathSet, Error> {
        let args = ["diff-index", "--cached", "-z", "--name-only", "--no-renames", commit.as_str()];
        Ok(paths_in(&self.call(&args).index(index).run()?))
    }

    /// Writes files of an index into the work tree.
    pub(crate) fn check_out(&self, index: &Path, paths: &[Vec<u8>]) -> Result<(), Error> {
        let listed: PathSet = self.index_paths(index, ".")?.into_iter().collect();
        let paths: Vec<Vec<u8>> = paths.iter().filter(|path| listed.contains(*path)).cloned().collect();
        if paths.is_empty() {
            return Ok(());
        }
        let args = ["checkout-index", "-z", "-f", "-u", "--stdin"];
        let call = self.call(&args).index(index).variable("GIT_WORK_TREE", self.root());
        call.input(&nul_terminated(&paths)).run().map(drop)
    }

    /// Stages paths as the work tree has them; deleted ones are removed. Git skips names that it would never write:
    /// then the result is [`ScanResult::Partial`].
    pub(crate) fn add_paths(&self, index: &Path, paths: &[Vec<u8>]) -> Result<ScanResult, Error> {
        if paths.is_empty() {
            return Ok(ScanResult::Complete);
        }
        let args = ["-c", NO_CHECKSUM, "update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
        let output = self.call(&args).index(index).input(&nul_terminated(paths)).output()?;
        if !output.status.success() {
            return Err(Error::Git { command: args.join(" "), stderr: lossy(&output.stderr) });
        }
        Ok(if output.stderr.is_empty() { ScanResult::Complete } else { ScanResult::Partial })
    }

    /// Clears the assume-unchanged bit of every entry, so that git compares each file again.
    pub(crate) fn clear_assume_unchanged(&self, index: &Path) -> Result<(), Error> {
        let listed = self.call(&["ls-files", "-z", "-v", "--cached"]).index(index).run()?;
        // `ls-files -v` prints a lower-case tag in front of such a path.
        let assumed: Vec<Vec<u8>> = nul_separated(&listed)
            .filter(|line| line.first().is_some_and(u8::is_ascii_lowercase))
            .filter_map(|line| line.get(2..).map(<[u8]>::to_vec))
            .collect();
        if assumed.is_empty() {
            return Ok(());
        }
        let args = ["update-index", "-z", "--no-assume-unchanged", "--stdin"];
        self.call(&args).index(index).input(&nul_terminated(&assumed)).run().map(drop)
    }

    /// Fills an index from a commit's tree.
    pub(crate) fn read_into_index(&self, index: &Path, commit: &CommitId) -> Result<(), Error> {
        let _ = fs::remove_file(index);
        self.call(&["read-tree", commit.as_str()]).index(index).run().map(drop)
    }

    /// Changes entries of an index that is written again later.
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
                IndexEntry::Remove(path) => ("0", self.null_id(), path),
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

    /// Updates the cached file times of an index; entries whose files differ stay as they are.
    pub(crate) fn refresh_index(&self, index: &Path) -> Result<(), Error> {
        self.call(&["update-index", "-q", "--refresh"]).index(index).output().map(drop)
    }

    /// Stores an index as a tree.
    pub(crate) fn write_tree(&self, index: &Path) -> Result<TreeId, Error> {
        // In a partial clone, files that the run does not touch may be on the remote only.
        let missing: &[&str] = if self.settings.has_promisor() { &["--missing-ok"] } else { &[] };
        self.call(&[["-c", CHECKSUM, "write-tree"].as_slice(), missing].concat()).index(index).run_for_tree()
    }

    /// Takes the work tree, with an index that describes it, from one tree to another. Files that differ from
    /// `from` make it fail before anything is touched.
    pub(crate) fn switch_files(
        &self,
        index: &Path,
        from: &TreeId,
        to: &CommitId,
        mode: CheckoutMode,
    ) -> Result<(), Error> {
        let mut args = vec!["read-tree"];
        args.extend(match mode {
            CheckoutMode::DryRun => ["-n", "-m", "-u"].as_slice(),
            CheckoutMode::Apply => ["-m", "-u"].as_slice(),
        });
        args.extend([from.as_str(), to.as_str()]);
        self.call(&args).index(index).variable("GIT_WORK_TREE", self.root()).run().map(drop)
    }

    /// Resets the work tree to a commit, whatever the index that describes it contains.
    pub(crate) fn reset_worktree(&self, index: &Path, to: &CommitId) -> Result<(), Error> {
        let args = ["read-tree", "--reset", "-u", to.treeish()];
        self.call(&args).index(index).variable("GIT_WORK_TREE", self.root()).run().map(drop)
    }

    /// Untracked files below a folder that no rule ignores. `ignored` adds patterns, relative to the root, that hold even
    /// without an ignore file.
    pub(crate) fn untracked_files(&self, folder: &str, ignored: &[&str]) -> Result<Vec<Vec<u8>>, Error> {
        let mut args: Vec<String> =
            ["ls-files", "-z", "--others", "--exclude-standard"].map(str::to_owned).into();
        args.extend(ignored.iter().map(|pattern| format!("--exclude=/{pattern}")));
        args.extend(["--".to_owned(), folder.to_owned()]);
        Ok(paths_in(&self.call(&args).run()?))
    }
}
