//! Files with keys among those that a session changed.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use runner_core::model::repo_path::RepoPath;
use runner_core::redact::FileKey;

use super::aside::shell_word;
use crate::fs::atomic;
use crate::git::{Git, path_of};
use crate::redaction::redactor;

/// How much of a file is searched at once.
const PART_BYTES: usize = 8 << 20;
/// How much of a part is searched again with the next one: a key may be cut.
const OVERLAP_BYTES: usize = 64 << 10;

/// The key in a file that its version in the index does not have: in its content, in the target of a link, or in a path that is new.
pub(super) fn key_in(git: &Git, index: &Path, path: &[u8]) -> Option<FileKey> {
    let before = || git.file_in_index(index, &RepoPath::of_bytes(path)).ok().flatten();
    let content = key_in_content(&git.root().join(path_of(path)), || before().unwrap_or_default());
    if matches!(content, Some(FileKey::OfEnvironment { .. })) {
        return content;
    }
    let in_name = redactor().key_in_file(path, Vec::new).filter(|_| before().is_none());
    in_name.or(content)
}

fn key_in_content(file: &Path, before: impl Fn() -> Vec<u8>) -> Option<FileKey> {
    if let Ok(target) = file.read_link() {
        return redactor().key_in_file(target.as_os_str().as_bytes(), before);
    }
    let mut reader = atomic::open_regular(file).ok().flatten()?;
    let mut part = Vec::new();
    let mut surest = None;
    loop {
        let room = (PART_BYTES - part.len()) as u64;
        let read = (&mut reader).take(room).read_to_end(&mut part).ok()?;
        match redactor().key_in_file(&part, &before) {
            key @ Some(FileKey::OfEnvironment { .. }) => return key,
            key @ Some(FileKey::Likely) => surest = key,
            None => {}
        }
        if (read as u64) < room {
            return surest;
        }
        part.drain(..part.len().saturating_sub(OVERLAP_BYTES));
    }
}

/// The command that shows what the last commits changed in a file; none for a path that is not text.
pub(crate) fn show_command(path: &[u8]) -> Option<String> {
    let path = std::str::from_utf8(path).ok().filter(|path| !path.contains(char::is_control))?;
    Some(format!("git log -p -- {}", shell_word(path)))
}
