//! Files and commits as git stores them. None of these calls converts a file of the work tree, so no filter that an agent
//! configured can run.

use runner_core::model::object_id::CommitId;

use super::{COMMITS_MAX, ReadonlyRepo};
use crate::error::Error;
use crate::git::lossy;

/// A regular file of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedFile {
    pub path: Vec<u8>,
    pub object: String,
    pub bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCommit {
    pub id: CommitId,
    pub bytes: Vec<u8>,
}

impl ReadonlyRepo {
    /// The regular files of a commit.
    pub fn files_at(&self, commit: &CommitId) -> Result<Vec<CommittedFile>, Error> {
        let Some(git) = &self.git else { return Ok(Vec::new()) };
        let regular = git.sizes_of(commit, ".")?.into_iter().filter(|file| file.mode.is_regular());
        Ok(regular
            .map(|file| CommittedFile { path: file.path, object: file.object, bytes: file.bytes })
            .collect())
    }

    /// The files of the work tree that are neither tracked nor ignored.
    pub fn untracked(&self) -> Result<Vec<Vec<u8>>, Error> {
        self.git.as_ref().map_or(Ok(Vec::new()), |git| git.untracked_files(".", &[]))
    }

    /// The content of a blob.
    pub fn blob(&self, object: &str) -> Result<Vec<u8>, Error> {
        let Some(git) = &self.git else { return Ok(Vec::new()) };
        Ok(git.blobs(&[object])?.into_iter().next().unwrap_or_default())
    }

    /// Whether bytes are those of this blob.
    pub fn is_blob(&self, object: &str, bytes: &[u8]) -> bool {
        self.git.as_ref().is_some_and(|git| git.is_object("blob", object, bytes))
    }

    /// A file of a commit; empty if the commit has no file at that path.
    pub fn file_at(&self, commit: &CommitId, path: &str) -> Result<Vec<u8>, Error> {
        self.git.as_ref().map_or(Ok(Vec::new()), |git| git.file_at(commit, path))
    }

    /// The commit objects from `tip` back along first parents, newest first: at most `max`.
    pub fn commit_objects(&self, tip: &CommitId, max: usize) -> Result<Vec<StoredCommit>, Error> {
        let Some(git) = &self.git else { return Ok(Vec::new()) };
        let max = format!("-n{}", max.min(COMMITS_MAX));
        let output = lossy(&git.call(&["rev-list", "--first-parent", &max, tip.as_str(), "--"]).run()?);
        let ids: Vec<&str> = output.lines().collect();
        let objects = git.blobs(&ids)?;
        let commits = ids.iter().zip(objects);
        Ok(commits
            .filter_map(|(id, bytes)| Some(StoredCommit { id: CommitId::new(*id).ok()?, bytes }))
            .collect())
    }
}
