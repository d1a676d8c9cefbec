//! Makes a repository usable again that git does not recognise because a crash came at a bad moment: HEAD is missing, the git
//! directory was moved inside the work tree, or a file that git reads first is damaged. The journal has what is needed.

use std::fs;
use std::path::{Path, PathBuf};

use super::journal::{self, JournalEntry, JournalState};
use crate::error::Error;
use crate::fs::atomic;

/// The longest content of HEAD, and of a file that names a git directory.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Repairs the repository that contains `dir`, if its journal is pending. Does nothing in all other cases.
pub(crate) fn repair(dir: &Path) -> Result<(), Error> {
    let dir = std::path::absolute(dir).map_err(Error::io("find", dir))?;
    let Some(root) = dir.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok()) else {
        return Ok(());
    };
    let Some(git_dir) = resolve(root) else { return Ok(()) };
    let Ok(JournalState::Pending(entry)) = journal::read(&git_dir.join("runner/journal.json")) else {
        return Ok(());
    };
    let git_dir = move_back(root, git_dir, &entry)?;
    if let JournalEntry::Iteration(iteration) = &entry {
        iteration.snapshot.repair(root, &git_dir)?;
    }
    let head = git_dir.join("HEAD");
    if is_valid_head(&head) {
        return Ok(());
    }
    let text = format!("ref: {}\n", entry.run().branch().reference());
    atomic::replace_durably(&git_dir, &head, text.as_bytes())
}

/// The git directory of a work tree: `.git`, or the folder that a file or a link of that name leads to.
fn resolve(root: &Path) -> Option<PathBuf> {
    let path = root.join(".git");
    if fs::metadata(&path).ok()?.is_dir() {
        return fs::canonicalize(path).ok();
    }
    let bytes = atomic::read(&path, FILE_BYTES_MAX).ok()??;
    let text = String::from_utf8(bytes).ok()?;
    fs::canonicalize(root.join(text.strip_prefix("gitdir: ")?.trim_end())).ok()
}

/// Moves a git directory back to the place inside the work tree that the journal names.
fn move_back(root: &Path, git_dir: PathBuf, entry: &JournalEntry) -> Result<PathBuf, Error> {
    let JournalEntry::Iteration(iteration) = entry else { return Ok(git_dir) };
    let Some(place) = &iteration.git_dir else { return Ok(git_dir) };
    let root = fs::canonicalize(root).map_err(Error::io("find", root))?;
    let place = root.join(place);
    if place == git_dir || !git_dir.starts_with(&root) {
        return Ok(git_dir);
    }
    atomic::move_in_place(&git_dir, &place, &git_dir.join("runner/aside/replaced-git"))?;
    Ok(place)
}

fn is_valid_head(head: &Path) -> bool {
    let Ok(Some(bytes)) = atomic::read(head, FILE_BYTES_MAX) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_end();
    let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id || text.strip_prefix("ref: ").is_some_and(|name| name.starts_with("refs/"))
}
