//! Files and commits as git stores them. None of these calls converts a file of the work tree, so no filter that an agent
//! configured can run.

use std::borrow::Cow;

use audit_bundle::{ObjectError, ObjectStore, RecordedBundle};
use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;
use runner_core::redact::Redactor;

use super::ReadonlyRepo;
use crate::error::Error;
use crate::git::{CatFileBatch, PatchBatch};
use crate::redaction::redactor;

/// A regular file of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedFile {
    pub path: Vec<u8>,
    pub object: String,
    pub bytes: u64,
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

    /// A process for the patches of many pairs of commits; none without a repository.
    pub fn patch_batch(&self, context: u32) -> Result<Option<PatchBatch>, Error> {
        self.git.as_ref().map(|git| git.patch_batch(context)).transpose()
    }

    /// The objects that prove a run up to `tip`, in one file, and what their audit came to. None without a repository.
    pub fn bundle(&self, run: &RunId, tip: &CommitId) -> Result<Option<RecordedBundle>, Error> {
        let Some(git) = &self.git else { return Ok(None) };
        let store = BatchStore { batch: git.batch()?, redactor: redactor() };
        let failed = |error: ObjectError| Error::GitOutput { command: format!("cat-file --batch: {error}") };
        audit_bundle::record(store, run, tip).map(Some).map_err(failed)
    }
}

/// The objects of a repository, read by one git process.
struct BatchStore {
    batch: CatFileBatch,
    redactor: Redactor,
}

impl ObjectStore for BatchStore {
    fn fetch(&mut self, id: &str) -> Result<Option<Vec<u8>>, ObjectError> {
        self.batch.object(id).map_err(|error| ObjectError::Read(error.to_string()))
    }

    fn has_key(&self, bytes: &[u8]) -> bool {
        matches!(self.redactor.redact(bytes), Cow::Owned(_))
    }
}
