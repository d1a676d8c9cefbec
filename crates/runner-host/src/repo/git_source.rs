//! A repository as an audit reads it: with git, and with one process for all objects.

use std::collections::BTreeSet;

use runner_core::config::{Executor, GuardConfig};
use runner_core::guard_files::{DerivedProtection, RunChecks};
use runner_core::model::instructions::PinnedInstructions;
use runner_core::model::object_id::CommitId;
use runner_core::model::protection::Protection;
use runner_core::verify::{AuditSource, ChangedPaths, StoredBlob, StoredFile};

use super::commit_files::{followed_at, instructions_at, protection_at};
use crate::error::{Error, UserError};
use crate::git::{CatFileBatch, Git};

pub(crate) struct GitSource<'g> {
    pub(crate) git: &'g Git,
    pub(crate) batch: &'g mut CatFileBatch,
}

impl AuditSource for GitSource<'_> {
    type Error = Error;

    fn object_id(&self, kind: &str, bytes: &[u8]) -> String {
        self.git.object_id(kind, bytes)
    }

    fn folder(&mut self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, Error> {
        self.batch.folder(&format!("{commit}:{path}"))
    }

    fn file(&mut self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, Error> {
        self.batch.file(&format!("{commit}:{path}"))
    }

    fn blob(&mut self, object: &str, _path: &[u8]) -> Result<StoredBlob, Error> {
        let bytes = self.batch.object(object)?.ok_or_else(|| UserError::MissingObject(object.to_owned()))?;
        let is_intact = self.git.is_object("blob", object, &bytes);
        Ok(StoredBlob { bytes, is_intact })
    }

    fn is_intact(&mut self, object: &str) -> Result<bool, Error> {
        let bytes = self.batch.object(object)?;
        Ok(bytes.is_none_or(|bytes| self.git.is_object("blob", object, &bytes)))
    }

    fn runner_files(&mut self, commit: &CommitId) -> Result<Vec<StoredFile>, Error> {
        let regular = self.git.runner_files(commit)?.into_iter().filter(|entry| entry.mode.is_regular());
        Ok(regular.map(|entry| StoredFile { path: entry.path, object: entry.object }).collect())
    }

    fn matching_paths(&mut self, commit: &CommitId, patterns: &[String]) -> Result<BTreeSet<Vec<u8>>, Error> {
        self.git.matching_paths(commit, patterns)
    }

    fn matching_changes(
        &mut self,
        after: &CommitId,
        tip: &CommitId,
        patterns: &[String],
    ) -> Result<ChangedPaths, Error> {
        let mut changed = ChangedPaths::new();
        for entry in self.git.log(tip, Some(after), patterns)? {
            let entry = entry?;
            changed.insert(entry.id, entry.changes.into_iter().map(|change| change.path).collect());
        }
        Ok(changed)
    }

    fn protection(&mut self, commit: &CommitId, guard: &GuardConfig) -> Result<Protection, Error> {
        protection_at(self.git, commit, guard)
    }

    fn followed(
        &mut self,
        commit: &CommitId,
        checks: RunChecks<'_>,
    ) -> Result<Option<DerivedProtection>, Error> {
        followed_at(self.git, commit, checks)
    }

    fn instructions(
        &mut self,
        commit: &CommitId,
        executor: &Executor,
    ) -> Result<Option<PinnedInstructions>, Error> {
        instructions_at(self.git, commit, executor)
    }
}
