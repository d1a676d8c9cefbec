//! Access to files and folders of the work tree that a session made unreadable or read-only.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Gives the owner access to a folder until it is dropped. A folder that the owner can write to stays as it is.
pub(super) struct FolderAccess {
    /// The folder and its permissions before.
    changed: Option<(PathBuf, fs::Permissions)>,
}

impl FolderAccess {
    pub(super) fn open(folder: Option<&Path>) -> Self {
        let before =
            folder.and_then(|folder| Some((folder.to_owned(), folder.metadata().ok()?.permissions())));
        let changed = before.filter(|(folder, before)| {
            before.mode() & 0o700 != 0o700 && set_mode(folder, before.mode() | 0o700).is_ok()
        });
        Self { changed }
    }
}

impl Drop for FolderAccess {
    fn drop(&mut self) {
        if let Some((folder, before)) = self.changed.take() {
            let _ = fs::set_permissions(folder, before);
        }
    }
}

/// Gives the owner access to every folder from here on, and to the files in them that tell git what to ignore and to convert,
/// as far as the system permits. Returns the folders that still cannot be read.
pub(super) fn open_folders(folder: &Path) -> Vec<PathBuf> {
    let mut unreadable = Vec::new();
    visit(folder, &mut |path| {
        open_folder(path);
        if fs::read_dir(path).is_err() {
            unreadable.push(path.to_owned());
        }
        super::obstacles::GIT_FILES.iter().for_each(|name| open_file(&path.join(name)));
    });
    unreadable
}

/// Calls `enter` for every folder, before its entries are read. Git directories and links are not entered.
pub(super) fn visit(folder: &Path, enter: &mut impl FnMut(&Path)) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        enter(&folder);
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && entry.file_name() != ".git" {
                folders.push(entry.path());
            }
        }
    }
}

/// Gives the owner access to one folder, for good.
pub(super) fn open_folder(folder: &Path) {
    add_mode(folder, 0o700);
}

/// Gives the owner read access to a regular file.
pub(super) fn open_file(file: &Path) {
    if file.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
        add_mode(file, 0o400);
    }
}

/// Makes a file, or every file below a folder, readable.
pub(super) fn open_files(path: &Path) {
    open_file(path);
    visit(path, &mut |folder| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.for_each(|entry| open_file(&entry.path()));
    });
}

fn add_mode(path: &Path, mode: u32) {
    let Ok(metadata) = path.symlink_metadata() else { return };
    let current = metadata.permissions().mode();
    if current | mode != current {
        // A failure shows up when the file or folder is read.
        let _ = set_mode(path, current | mode);
    }
}

fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
