//! Repositories made from nothing, for the demo and the evaluation.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::Error;
use crate::git::Git;

/// A file of the first commit.
#[derive(Clone, Copy, Debug)]
pub struct ScratchFile<'a> {
    /// From the root.
    pub path: &'a str,
    /// What it holds.
    pub text: &'a str,
    /// Whether it is a program.
    pub executable: bool,
}

/// Makes a repository in a folder that does not exist yet, with one commit that holds these files.
pub fn create(folder: &Path, files: &[ScratchFile<'_>]) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
    for file in files {
        let path = folder.join(file.path);
        fs::write(&path, file.text).map_err(Error::io("write", &path))?;
        let mode = fs::Permissions::from_mode(if file.executable { 0o755 } else { 0o644 });
        fs::set_permissions(&path, mode).map_err(Error::io("write", &path))?;
    }
    init_from_folder(folder)
}

/// Makes a repository of a folder as it is: one commit that holds everything in it.
pub fn init_from_folder(folder: &Path) -> Result<(), Error> {
    Git::create(folder)?.commit_everything("the starting point")
}

/// Commits what changed in a repository since, if anything did.
pub fn commit_changes(folder: &Path) -> Result<(), Error> {
    let git = Git::open(folder)?;
    if is_clean(folder)? { Ok(()) } else { git.commit_everything("the starting point") }
}

/// Whether the work tree of a repository is what its last commit holds, with no file besides.
pub fn is_clean(folder: &Path) -> Result<bool, Error> {
    Ok(Git::open(folder)?.status()?.is_clean())
}

/// The newest commits of a branch, one line each.
pub fn recent_commits(dir: &Path, most: usize) -> Result<Vec<String>, Error> {
    Git::open(dir)?.one_line_log(most)
}
