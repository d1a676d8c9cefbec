//! Files with keys among those that a session changed.

use std::path::Path;

use runner_core::model::repo_path::RepoPath;
use runner_core::redact::FileKey;

use super::aside::shell_word;
use crate::fs::atomic;
use crate::git::{Git, path_of};
use crate::redaction::redactor;

/// A larger file is not searched.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// The key in a file that its version in the index does not have.
pub(super) fn key_in(git: &Git, index: &Path, path: &[u8]) -> Option<FileKey> {
    let bytes = atomic::read(&git.root().join(path_of(path)), FILE_BYTES_MAX).ok().flatten()?;
    let before = || git.file_in_index(index, &RepoPath::of_bytes(path)).ok().flatten().unwrap_or_default();
    redactor().key_in_file(&bytes, before)
}

/// The command that shows what the last commits changed in a file; none for a path that is not text.
pub(crate) fn show_command(path: &[u8]) -> Option<String> {
    let path = std::str::from_utf8(path).ok().filter(|path| !path.contains(char::is_control))?;
    Some(format!("git log -p -- {}", shell_word(path)))
}
