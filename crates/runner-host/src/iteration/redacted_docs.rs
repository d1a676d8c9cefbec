//! Keys in the documents that agents write to: the tree and the memory files. They are replaced in the work tree before anything
//! of them is staged, so that not even a git object has them.

use runner_core::layout::Doc;
use runner_core::model::repo_path::RepoPath;
use runner_core::model::tree::BYTES_MAX;

use super::open_iteration::IterationSetup;
use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;
use crate::redaction::redactor;

/// Replaces the keys that a session wrote into documents, and returns the paths of those. A key that the last commit has there
/// stays: that text is not the session's.
pub(super) fn redact_documents(git: &Git, setup: &IterationSetup) -> Result<Vec<RepoPath>, Error> {
    let mut redacted = Vec::new();
    for doc in Doc::ALL.into_iter().filter(|doc| doc.is_for_agents()) {
        let file = git.paths().doc(doc);
        // Whatever is not a file of an acceptable size is restored later.
        let Ok(Some(bytes)) = atomic::read(&file, BYTES_MAX as u64) else { continue };
        let is_unchanged = doc == Doc::Tree && bytes == setup.tree.bytes();
        if is_unchanged || redactor().redact(&bytes).as_ref() == bytes {
            continue;
        }
        let path = RepoPath::of_bytes(doc.path().as_bytes());
        let known = if doc == Doc::Tree {
            setup.tree.bytes().to_vec()
        } else {
            git.file_in_commit(&setup.base, &path)?.unwrap_or_default()
        };
        let without_keys = redactor().redact_new(&bytes, &known);
        if without_keys.as_ref() != bytes {
            atomic::overwrite_any(git.root(), &file, &without_keys)?;
            redacted.push(path);
        }
    }
    Ok(redacted)
}
