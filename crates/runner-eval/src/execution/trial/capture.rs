//! What a run left: captured into the result, and removed if it fills the disk. Nothing that an agent left may keep its trial from
//! having a result, so failures here are part of the verdict.

use std::fs;
use std::io;

use runner_core::layout::Doc;

use super::{ITERATIONS, TrialAttempt};
use crate::execution::disk_share;
use crate::execution::worker::WorkerMessage;
use crate::files;

/// A longer document is not one of the runner's.
const DOCUMENT_BYTES_MAX: u64 = 64 << 20;

impl TrialAttempt<'_> {
    /// Copies what the run left into the result: its documents and the folders of its iterations. Links, which an agent
    /// may have created, are not followed.
    pub(super) fn capture(&self) -> io::Result<()> {
        for (doc, name) in [(Doc::Tree, "tree.json"), (Doc::RunState, "run_state.json")] {
            let path = self.workspace.document(doc);
            let is_document =
                |metadata: fs::Metadata| metadata.is_file() && metadata.len() <= DOCUMENT_BYTES_MAX;
            if fs::symlink_metadata(&path).is_ok_and(is_document) {
                fs::copy(path, self.staging.join(name))?;
            }
        }
        let folder = self.workspace.document(Doc::Goal).with_file_name(ITERATIONS);
        if fs::symlink_metadata(&folder).is_ok_and(|metadata| metadata.is_dir()) {
            self.note_skipped(files::copy_tree(&folder, &self.staging.join(ITERATIONS))?);
        }
        self.capture_patch();
        Ok(())
    }

    pub(super) fn note_skipped(&self, folders: u64) {
        if folders > 0 {
            let note =
                format!("{}: left out {folders} folders that are too deep or unreadable", self.eval_run_id);
            (self.send)(WorkerMessage::Note(note));
        }
    }
    /// Removes what the run left if the disk is full: the result needs room, and so do other trials.
    pub(super) fn make_room(&self) {
        if !disk_share::is_full(&self.job.workspaces) {
            return;
        }
        let iterations = self.staging.join(ITERATIONS);
        for folder in [&self.workspace.repository, &self.workspace.private, &iterations] {
            let _ = files::remove_any(folder);
        }
        let note = format!("{}: removed its workspace, because the disk is full", self.eval_run_id);
        (self.send)(WorkerMessage::Note(note));
    }
}
