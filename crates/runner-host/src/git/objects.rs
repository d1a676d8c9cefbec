//! Reading commits, trees and blobs.

use std::path::Path;

use runner_core::layout::RUNNER_DIR;
use runner_core::model::object_id::{CommitId, TreeId};
use runner_core::model::repo_path::RepoPath;

use super::{Git, lossy, nul_separated, paths_in};
use crate::error::Error;

/// A file, link or submodule in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    pub(crate) mode: EntryMode,
    pub(crate) object: String,
    /// Relative to the repository's root, as git prints it.
    pub(crate) path: Vec<u8>,
}

/// A file of a tree and its size in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SizedFile {
    pub(crate) mode: EntryMode,
    pub(crate) object: String,
    pub(crate) path: Vec<u8>,
    pub(crate) bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryMode {
    File,
    Executable,
    Link,
    Submodule,
}

impl EntryMode {
    pub(crate) fn is_regular(self) -> bool {
        matches!(self, Self::File | Self::Executable)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
            Self::Submodule => "160000",
        }
    }
}

/// Something that names a tree: a tree itself, or a commit.
pub(crate) trait Treeish {
    fn treeish(&self) -> &str;
}

impl Treeish for CommitId {
    fn treeish(&self) -> &str {
        self.as_str()
    }
}

impl Treeish for TreeId {
    fn treeish(&self) -> &str {
        self.as_str()
    }
}

/// Which differences between two trees are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffFilter {
    Any,
    /// Only in the second tree.
    Added,
    /// Only in the first tree.
    Removed,
}

impl Git {
    pub(crate) fn has_object(&self, name: &str) -> Result<bool, Error> {
        let request = format!("{name}\n");
        let output =
            self.call(&["cat-file", "--batch-check=%(objecttype)"]).input(request.as_bytes()).run()?;
        Ok(!output.ends_with(b" missing\n"))
    }

    /// The commit with this full id, if the repository has it. Git accepts upper-case digits in a reference.
    pub(crate) fn existing_commit(&self, name: &str) -> Result<Option<CommitId>, Error> {
        let id = CommitId::new(name.to_ascii_lowercase()).ok();
        let Some(commit) = id.filter(|id| id.as_str().len() == self.id_digits) else { return Ok(None) };
        Ok(self.has_object(&format!("{commit}^{{commit}}"))?.then_some(commit))
    }

    /// The tree of a commit.
    pub(crate) fn tree_of(&self, commit: &CommitId) -> Result<TreeId, Error> {
        let bytes = self.processes.cat_file.read(self, commit.as_str())?;
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let tree = line.strip_prefix(b"tree ").and_then(|id| TreeId::new(lossy(id)).ok());
        tree.ok_or_else(|| Error::GitOutput { command: "cat-file --batch".to_owned() })
    }

    /// A regular file or link of a tree, named by a path without line feeds; none if there is none.
    pub(crate) fn file_of_tree(&self, tree: &TreeId, path: &str) -> Result<Option<Vec<u8>>, Error> {
        self.processes.cat_file.read_file(self, &format!("{tree}:{path}"))
    }

    /// The files of a commit below a folder.
    pub(crate) fn files_of(&self, commit: &CommitId, folder: &str) -> Result<Vec<TreeEntry>, Error> {
        let args = ["ls-tree", "-r", "-z", "--full-tree", commit.as_str(), "--", folder];
        Ok(nul_separated(&self.call(&args).run()?).filter_map(tree_entry).collect())
    }

    /// The files of a commit below a folder, with their sizes.
    pub(crate) fn sizes_of(&self, commit: &CommitId, folder: &str) -> Result<Vec<SizedFile>, Error> {
        let args = ["ls-tree", "-r", "-z", "-l", "--full-tree", commit.as_str(), "--", folder];
        Ok(nul_separated(&self.call(&args).run()?).filter_map(sized_file).collect())
    }

    /// The contents of blobs, in the order of their ids.
    pub(crate) fn blobs(&self, objects: &[&str]) -> Result<Vec<Vec<u8>>, Error> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let request = objects.join("\n") + "\n";
        let output = self.call(&["cat-file", "--batch"]).input(request.as_bytes()).run()?;
        let mut rest = output.as_slice();
        let mut blobs = Vec::new();
        for _ in objects {
            let unexpected = || Error::GitOutput { command: "cat-file --batch".to_owned() };
            let (blob, after) = next_blob(rest).ok_or_else(unexpected)?;
            blobs.push(blob.to_vec());
            rest = after;
        }
        Ok(blobs)
    }

    /// A file of a commit; empty if the commit has no file at that path.
    pub(crate) fn file_at(&self, commit: &CommitId, path: &str) -> Result<Vec<u8>, Error> {
        let file = self.files_of(commit, path)?.into_iter().find(|file| file.path == path.as_bytes());
        let Some(file) = file else { return Ok(Vec::new()) };
        Ok(self.blobs(&[&file.object])?.into_iter().next().unwrap_or_default())
    }

    /// A file of a commit; none if the commit has no file at that path.
    pub(crate) fn file_in_commit(
        &self,
        commit: &CommitId,
        path: &RepoPath,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.call(&["cat-file", "blob", &format!("{commit}:{path}")]).query()
    }

    /// A file of an index; none if it has no file at that path.
    pub(crate) fn file_in_index(&self, index: &Path, path: &RepoPath) -> Result<Option<Vec<u8>>, Error> {
        self.call(&["cat-file", "blob", &format!(":{path}")]).index(index).query()
    }

    /// The changes between two commits as a patch, without these paths.
    pub(crate) fn patch(&self, from: &CommitId, to: &CommitId, without: &[&str]) -> Result<Vec<u8>, Error> {
        let args = ["diff-tree", "-p", "-M", "--binary", "--no-ext-diff", "--no-textconv"];
        let mut args: Vec<String> = args.map(str::to_owned).into();
        args.extend([from.to_string(), to.to_string(), "--".to_owned(), ".".to_owned()]);
        args.extend(without.iter().map(|path| format!(":(exclude,top,literal){path}")));
        // An invalid attribute makes even this call fail.
        self.call(&args).run().or_else(|_| self.call_unconverted(&args)?.run())
    }

    /// Paths in which two trees differ.
    pub(crate) fn changed_paths(
        &self,
        one: &impl Treeish,
        other: &impl Treeish,
        filter: DiffFilter,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let filter = match filter {
            DiffFilter::Any => "--diff-filter=ACDMRTUXB",
            DiffFilter::Added => "--diff-filter=A",
            DiffFilter::Removed => "--diff-filter=D",
        };
        let trees = [one.treeish(), other.treeish()];
        let args =
            [&["diff-tree", "-r", "-z", "--name-only", "--no-renames", filter], trees.as_slice()].concat();
        Ok(paths_in(&self.call(&args).run()?))
    }

    /// Commits every file as the first commit of a new repository.
    pub(crate) fn commit_everything(&self, message: &str) -> Result<(), Error> {
        self.call(&["add", "-A"]).run()?;
        self.call(&["commit", "-q", "--allow-empty", "-m", message]).run().map(drop)
    }

    /// The files under `.runner/` of a commit.
    pub(crate) fn runner_files(&self, commit: &CommitId) -> Result<Vec<TreeEntry>, Error> {
        self.files_of(commit, RUNNER_DIR)
    }
}

/// A line of `ls-tree`: mode, kind, object id, with `-l` the size, a tab, and the path.
fn tree_entry(line: &[u8]) -> Option<TreeEntry> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let (head, path) = line.split_at_checked(tab)?;
    let head = std::str::from_utf8(head).ok()?;
    let mut fields = head.split(' ');
    let mode = match fields.next()? {
        "100644" | "100664" => EntryMode::File,
        "100755" => EntryMode::Executable,
        "120000" => EntryMode::Link,
        "160000" => EntryMode::Submodule,
        _ => return None,
    };
    let object = fields.nth(1)?.to_owned();
    Some(TreeEntry { mode, object, path: path.get(1..)?.to_vec() })
}

fn sized_file(line: &[u8]) -> Option<SizedFile> {
    let head = std::str::from_utf8(line.split(|byte| *byte == b'\t').next()?).ok()?;
    let bytes = head.split(' ').next_back()?.parse().ok()?;
    let TreeEntry { mode, object, path } = tree_entry(line)?;
    Some(SizedFile { mode, object, path, bytes })
}

/// Parses `<id> blob <size>\n<bytes>\n`; returns the bytes and the rest of the output.
fn next_blob(output: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = output.iter().position(|byte| *byte == b'\n')?;
    let (header, rest) = output.split_at_checked(end)?;
    let header = std::str::from_utf8(header).ok()?;
    let size: usize = header.rsplit_once(' ')?.1.parse().ok()?;
    let (blob, rest) = rest.get(1..)?.split_at_checked(size)?;
    Some((blob, rest.get(1..)?))
}
