//! Private index files: filled from a commit or the work tree, edited, written as trees, and checked out.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::PoisonError;

use runner_core::model::object_id::{CommitId, TreeId};

use super::objects::{TreeEntry, Treeish};
use super::status::ScanResult;
use super::{Git, lossy, nul_separated, nul_terminated, paths_in};
use crate::error::Error;
use crate::fs::atomic;

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

/// Whether git converts files on their way into an index, as attributes and configuration ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    Configured,
    /// Byte for byte.
    None,
}

/// Whether [`Git::switch_files`] changes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckoutMode {
    DryRun,
    Apply,
}

/// The paths of a commit that match some patterns.
#[derive(Debug)]
pub(super) struct KnownMatches {
    commit: CommitId,
    patterns: Vec<String>,
    paths: PathSet,
}

impl KnownMatches {
    fn answers(&self, commit: &CommitId, patterns: &[String]) -> bool {
        self.commit == *commit && self.patterns == patterns
    }
}

/// How many answers of [`Git::matching_in`] are remembered: those for the run's start, the base of an iteration and the base of the
/// one before.
const KNOWN_MATCHES_MAX: usize = 3;

const REFRESH: [&str; 3] = ["update-index", "-q", "--refresh"];

impl Git {
    /// Paths of a commit that match any of the patterns. The last answers are remembered: an iteration asks several times about
    /// its base, and every iteration about the run's start.
    pub(crate) fn matching_in(&self, commit: &CommitId, patterns: &[String]) -> Result<PathSet, Error> {
        if let Some(paths) = self.known_matching_in(commit, patterns) {
            return Ok(paths);
        }
        let index = self.paths().private_index("match");
        self.read_into_index(&index, commit)?;
        let paths = self.matching_in_index(&index, patterns)?;
        let mut known = self.known.matches.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() == KNOWN_MATCHES_MAX {
            known.remove(0);
        }
        known.push(KnownMatches {
            commit: commit.clone(),
            patterns: patterns.to_vec(),
            paths: paths.clone(),
        });
        Ok(paths)
    }

    /// What [`Self::matching_in`] returned for the same question, if that is remembered.
    pub(crate) fn known_matching_in(&self, commit: &CommitId, patterns: &[String]) -> Option<PathSet> {
        let mut known = self.known.matches.lock().unwrap_or_else(PoisonError::into_inner);
        let nth = known.iter().position(|known| known.answers(commit, patterns))?;
        // The one that was asked for longest ago is dropped first.
        let found = known.remove(nth);
        let paths = found.paths.clone();
        known.push(found);
        Some(paths)
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

    /// Files of the work tree, tracked or not, that match any of the patterns.
    pub(crate) fn matching_work_tree_files(&self, patterns: &[String]) -> Result<PathSet, Error> {
        if patterns.is_empty() {
            return Ok(PathSet::new());
        }
        let mut args: Vec<String> =
            ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"].map(str::to_owned).into();
        args.extend(patterns.iter().map(|pattern| format!(":(top,glob){pattern}")));
        Ok(paths_in(&self.call(&args).run()?))
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
        let request = nul_terminated(&paths);
        let call = self.call(&args).index(index).variable("GIT_WORK_TREE", self.root());
        if call.input(&request).run().is_ok() {
            return Ok(());
        }
        // A filter or an encoding fails.
        self.call_unconverted(&args)?.index(index).input(&request).run().map(drop)
    }

    /// Stages paths as the work tree has them; deleted ones are removed. Git skips names that it would never write:
    /// then the result is [`ScanResult::Partial`]. If git refuses one path, it stages none.
    pub(crate) fn add_paths(
        &self,
        index: &Path,
        paths: &[Vec<u8>],
        conversion: Conversion,
    ) -> Result<ScanResult, Error> {
        if paths.is_empty() {
            return Ok(ScanResult::Complete);
        }
        let args = ["-c", NO_CHECKSUM, "update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
        let call = match conversion {
            Conversion::Configured => self.call(&args),
            Conversion::None => self.call_unconverted(&args)?,
        };
        let output = call.index(index).input(&nul_terminated(paths)).output()?;
        if !output.status.success() {
            return Err(Error::Git { command: args.join(" "), stderr: lossy(&output.stderr) });
        }
        Ok(if output.stderr.is_empty() { ScanResult::Complete } else { ScanResult::Partial })
    }

    /// Which of these paths a filter or an encoding converts.
    pub(crate) fn converted_paths(&self, paths: &[Vec<u8>]) -> Result<PathSet, Error> {
        let args = ["check-attr", "-z", "--stdin", "filter", "working-tree-encoding"];
        let output = self.call(&args).input(&nul_terminated(paths)).run()?;
        let fields: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
        let converted = fields.chunks_exact(3).filter_map(|triple| match triple {
            [_, _, b"unspecified"] => None,
            [path, ..] => Some(path.to_vec()),
            [] => None,
        });
        Ok(converted.collect())
    }

    /// Fills an index from a tree, to write another tree. It knows nothing of the work tree: for that, see
    /// [`Self::read_for_worktree`].
    pub(crate) fn read_into_index(&self, index: &Path, tree: &impl Treeish) -> Result<(), Error> {
        atomic::remove_any(index)?;
        self.call(&["read-tree", tree.treeish()]).index(index).run().map(drop)
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
        let words = ["-c", checksum, "update-index", "-z", "--replace", "--index-info"];
        let written = self.call(&words).index(index).input(&request).run().or_else(|error| {
            // As in `write_tree_with`: a file that git cannot convert need not be read to write an index.
            self.call_unconverted(&words)?.index(index).input(&request).run().map_err(|_| error)
        });
        written.map(drop)
    }

    /// Updates the cached file times of an index; entries whose files differ stay as they are.
    pub(crate) fn refresh_index(&self, index: &Path) -> Result<(), Error> {
        let refreshed = self.call(&REFRESH).index(index).output()?;
        // Git ends with 1 where files differ. It stops at a file that it cannot convert, without the times of any file after it.
        if matches!(refreshed.status.code(), Some(0 | 1)) {
            return Ok(());
        }
        self.refresh_unconverted(index)?;
        self.call(&REFRESH).index(index).output().map(drop)
    }

    /// Updates the cached times of files whose bytes are those of the index, although a filter or an encoding should convert
    /// them. Afterwards git need not read them, and so does not fail on them.
    pub(super) fn refresh_unconverted(&self, index: &Path) -> Result<(), Error> {
        self.call_unconverted(&REFRESH)?.index(index).output().map(drop)
    }

    /// Stores an index as a tree.
    pub(crate) fn write_tree(&self, index: &Path) -> Result<TreeId, Error> {
        self.write_tree_with(CHECKSUM, index)
    }

    fn write_tree_with(&self, checksum: &str, index: &Path) -> Result<TreeId, Error> {
        // In a partial clone, files that the run does not touch may be on the remote only.
        let missing: &[&str] = if self.settings().has_promisor() { &["--missing-ok"] } else { &[] };
        let words = [["-c", checksum, "write-tree"].as_slice(), missing].concat();
        self.call(&words).index(index).run_for_tree().or_else(|error| {
            // Git reads a file again that changed just before the index was written, and fails if it cannot convert it.
            self.call_unconverted(&words)?.index(index).run_for_tree().map_err(|_| error)
        })
    }

    /// Paths whose version in an index is neither the work tree's nor that of any of these commits.
    pub(crate) fn staged_only(&self, index: &Path, commits: &[&CommitId]) -> Result<PathSet, Error> {
        self.refresh_index(index)?;
        let args = ["diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=dirty"];
        let mut paths: PathSet = paths_in(&self.call(&args).index(index).run()?);
        for commit in commits {
            if !paths.is_empty() {
                let staged = self.staged_paths(index, commit)?;
                paths.retain(|path| staged.contains(path));
            }
        }
        Ok(paths)
    }

    /// Stores an index as a tree, without the paths of an unfinished merge.
    pub(crate) fn write_merged_tree(&self, index: &Path) -> Result<TreeId, Error> {
        let unmerged: PathSet = paths_in(
            &self.call(&["diff", "--cached", "--name-only", "--diff-filter=U", "-z"]).index(index).run()?,
        );
        if !unmerged.is_empty() {
            self.edit_index(index, &unmerged.into_iter().map(IndexEntry::Remove).collect::<Vec<_>>())?;
        }
        self.write_tree(index)
    }

    /// The submodules of an index.
    pub(crate) fn submodules(&self, index: &Path) -> Result<Vec<Vec<u8>>, Error> {
        let listed = self.call(&["ls-files", "-z", "-s", "--cached"]).index(index).run()?;
        let entries = nul_separated(&listed).filter(|entry| entry.starts_with(b"160000 "));
        Ok(entries
            .filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1))
            .map(<[u8]>::to_vec)
            .collect())
    }

    /// Stores an index as a tree. The index is written again later.
    pub(crate) fn write_candidate(&self, index: &Path) -> Result<TreeId, Error> {
        self.write_tree_with(NO_CHECKSUM, index)
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
        self.include_runner_folder()?;
        self.call(&args).index(index).variable("GIT_WORK_TREE", self.root()).run().map(drop)
    }

    /// Resets the work tree to a commit, whatever the index that describes it contains.
    pub(crate) fn reset_worktree(&self, index: &Path, to: &CommitId) -> Result<(), Error> {
        let args = ["read-tree", "--reset", "-u", to.treeish()];
        self.include_runner_folder()?;
        if self.call(&args).index(index).variable("GIT_WORK_TREE", self.root()).run().is_ok() {
            return Ok(());
        }
        // A filter or an encoding fails.
        self.call_unconverted(&args)?.index(index).run().map(drop)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_those_of_the_commit_and_patterns_however_often_and_in_whatever_order_they_are_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        std::fs::create_dir(git.paths().private()).unwrap();
        let commits: Vec<CommitId> = (0..KNOWN_MATCHES_MAX + 1)
            .map(|nth| {
                std::fs::write(folder.path().join(format!("guard-{nth}.sh")), "true\n").unwrap();
                git.commit_everything("more").unwrap();
                git.resolve("HEAD").unwrap().unwrap()
            })
            .collect();
        let all = ["*.sh".to_owned()];
        let first = ["guard-0.sh".to_owned()];
        for _ in 0..2 {
            for (nth, commit) in commits.iter().enumerate() {
                assert_eq!(git.matching_in(commit, &all).unwrap().len(), nth + 1);
                assert_eq!(git.known_matching_in(commit, &all).map(|paths| paths.len()), Some(nth + 1));
                assert_eq!(git.matching_in(commit, &first).unwrap().len(), 1);
            }
        }
        assert_eq!(git.known_matching_in(&commits[0], &all), None, "only the last answers are remembered");
    }
}
