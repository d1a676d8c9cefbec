//! Creates repositories from scratch, for `runner demo`, `runner conformance` and evaluations.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::Error;
use crate::git::Git;

const FIRST_SUBJECT: &str = "the starting point";

/// A file of the first commit.
#[derive(Clone, Copy, Debug)]
pub struct ScratchFile<'a> {
    /// Relative to the root.
    pub path: &'a str,
    pub text: &'a str,
    pub executable: bool,
}

/// Creates a folder with a repository, and commits these files.
pub fn create(folder: &Path, files: &[ScratchFile<'_>]) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
    for file in files {
        let path = folder.join(file.path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(Error::io("create the folder", parent))?;
        fs::write(&path, file.text).map_err(Error::io("write", &path))?;
        let mode = fs::Permissions::from_mode(if file.executable { 0o755 } else { 0o644 });
        fs::set_permissions(&path, mode).map_err(Error::io("write", &path))?;
    }
    init_from_folder(folder)
}

/// Turns an existing folder into a repository with one commit of everything in it.
pub fn init_from_folder(folder: &Path) -> Result<(), Error> {
    Git::create(folder)?.commit_everything(FIRST_SUBJECT)
}

/// Commits the changes in a repository, if there are any.
pub fn commit_changes(folder: &Path) -> Result<(), Error> {
    let git = Git::open(folder)?;
    if is_clean(folder)? { Ok(()) } else { git.commit_everything(FIRST_SUBJECT) }
}

/// Whether the work tree has no changes and no untracked files.
pub fn is_clean(folder: &Path) -> Result<bool, Error> {
    Ok(Git::open(folder)?.status()?.is_clean())
}
