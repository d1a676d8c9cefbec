//! What an audit reads of a repository. `runner verify` implements it with git, an exported run with the objects in its file.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::{Executor, GuardConfig};
use crate::guard_files::{DerivedProtection, RunChecks};
use crate::model::instructions::PinnedInstructions;
use crate::model::object_id::CommitId;
use crate::model::protection::Protection;

/// A commit of a run, with its changes against its first parent.
#[derive(Clone, Copy, Debug)]
pub struct CommitRecord<'c> {
    pub id: &'c CommitId,
    pub parents: &'c [CommitId],
    /// The message, byte for byte.
    pub message: &'c [u8],
    pub changes: &'c [RawChange],
}

/// A path that a commit changed, in git's raw format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawChange {
    /// The new mode as git prints it: `100644`, `120000`; zeros for a deleted file.
    pub mode: String,
    pub object: String,
    pub path: Vec<u8>,
}

/// A regular file of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    pub path: Vec<u8>,
    pub object: String,
}

/// The bytes of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlob {
    pub bytes: Vec<u8>,
    /// Whether the bytes are those of the blob's id.
    pub is_intact: bool,
}

/// The changed paths of each commit.
pub type ChangedPaths = BTreeMap<CommitId, BTreeSet<Vec<u8>>>;

/// A repository, or the part of one that an audit needs.
pub trait AuditSource {
    type Error;

    /// The id of an object of this kind with these bytes.
    fn object_id(&self, kind: &str, bytes: &[u8]) -> String;

    /// The folder at a path of a commit, as git stores it; the root for an empty path. None if there is none.
    fn folder(&mut self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, Self::Error>;

    /// The file at a path of a commit; for a link, its target. None if there is none.
    fn file(&mut self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, Self::Error>;

    /// A blob that the audit cannot do without, and the path under which a commit has it.
    fn blob(&mut self, object: &str, path: &[u8]) -> Result<StoredBlob, Self::Error>;

    /// Whether the bytes of a blob, as far as it is there, are those of its id.
    fn is_intact(&mut self, object: &str) -> Result<bool, Self::Error>;

    /// The regular files of the runner's folder in a commit.
    fn runner_files(&mut self, commit: &CommitId) -> Result<Vec<StoredFile>, Self::Error>;

    /// The paths of a commit that match any of the patterns.
    fn matching_paths(
        &mut self,
        commit: &CommitId,
        patterns: &[String],
    ) -> Result<BTreeSet<Vec<u8>>, Self::Error>;

    /// The matching paths that each commit changed, along first parents from `tip` back to `after`, which is excluded.
    fn matching_changes(
        &mut self,
        after: &CommitId,
        tip: &CommitId,
        patterns: &[String],
    ) -> Result<ChangedPaths, Self::Error>;

    /// What a configuration protects, with the files of a commit.
    fn protection(&mut self, commit: &CommitId, guard: &GuardConfig) -> Result<Protection, Self::Error>;

    /// What checks add to the protection, with the files of a commit; none if it follows all of them already.
    fn followed(
        &mut self,
        commit: &CommitId,
        checks: RunChecks<'_>,
    ) -> Result<Option<DerivedProtection>, Self::Error>;

    /// The instructions that a configuration names, with the files of a commit.
    fn instructions(
        &mut self,
        commit: &CommitId,
        executor: &Executor,
    ) -> Result<Option<PinnedInstructions>, Self::Error>;
}
