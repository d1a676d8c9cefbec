//! The git directory that programs in the room see. It is written before every run and thrown away, so that nothing a guard
//! writes there matters.

use std::fs;
use std::path::{Path, PathBuf};

use runner_core::model::object_id::CommitId;

use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;

const ALTERNATES: &str = "objects/info/alternates";
/// A larger file is not copied.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The mount point of a folder with objects, in the room's git directory.
pub(super) fn objects_name(nth: usize) -> String {
    format!("runner-objects-{nth}")
}

/// The repository's objects, and the folders that it borrows objects from.
pub(super) fn object_folders(git: &Git) -> Vec<PathBuf> {
    let objects = git.common_dir().join("objects");
    let text = fs::read_to_string(git.common_dir().join(ALTERNATES)).unwrap_or_default();
    let borrowed = text.lines().filter(|line| !line.starts_with('#')).map(|line| objects.join(line));
    let existing = borrowed.filter_map(|path| path.canonicalize().ok()).collect::<Vec<_>>();
    std::iter::once(objects).chain(existing).collect()
}

/// Writes a git directory with HEAD at a commit, the room's index, and the repository's tags and branches.
pub(super) fn write(git: &Git, folder: &Path, index: &Path, head: &CommitId) -> Result<(), Error> {
    atomic::remove_any(folder)?;
    for name in ["", "info", "objects", "objects/info", "refs", "refs/heads", "refs/tags"] {
        atomic::ensure_folder(&folder.join(name))?;
    }
    let mut alternates = String::new();
    for nth in 0..object_folders(git).len() {
        atomic::ensure_folder(&folder.join(objects_name(nth)))?;
        alternates.push_str(&format!("../{}\n", objects_name(nth)));
    }
    let is_sha256 = git.null_id().len() == 64;
    let extension = if is_sha256 { "[extensions]\n\tobjectFormat = sha256\n" } else { "" };
    let version = u8::from(is_sha256);
    let config = format!(
        "[core]\n\trepositoryFormatVersion = {version}\n\tbare = false\n\tlogAllRefUpdates = false\n{extension}"
    );
    let files = [("HEAD", format!("{head}\n")), ("config", config), (ALTERNATES, alternates)];
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(Error::io("write", &path))?;
    }
    atomic::copy_with_mtime(index, &folder.join("index"))?;
    for name in ["packed-refs", "shallow", "info/exclude"] {
        copy(&git.common_dir().join(name), &folder.join(name));
    }
    copy_tags(&git.common_dir().join("refs/tags"), &folder.join("refs/tags"));
    Ok(())
}

/// Copies a file that a guard may do without.
fn copy(from: &Path, to: &Path) {
    if let Ok(Some(bytes)) = atomic::read(from, FILE_BYTES_MAX) {
        let _ = fs::write(to, bytes);
    }
}

fn copy_tags(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => {
                let _ = fs::create_dir_all(&target);
                copy_tags(&source, &target);
            }
            Ok(kind) if kind.is_file() => copy(&source, &target),
            Ok(_) | Err(_) => {}
        }
    }
}
