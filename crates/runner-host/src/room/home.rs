//! The home folder in the room: the user's files are readable, and nothing that a guard writes beside them survives.

use std::path::{Path, PathBuf};

use crate::agent::sandbox_argv::ArgvBuilder;

/// One mount of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mount {
    Writable {
        from: PathBuf,
        to: PathBuf,
    },
    ReadOnly(PathBuf),
    /// An empty folder in the place of this one.
    EmptyFolder(PathBuf),
    /// An empty file in the place of this one.
    EmptyFile(PathBuf),
    Link {
        target: PathBuf,
        path: PathBuf,
    },
}

impl Mount {
    pub(super) fn add_to(&self, argv: &mut ArgvBuilder) {
        match self {
            Self::Writable { from, to } => argv.mount("--bind", from, to),
            Self::ReadOnly(path) => argv.mount("--ro-bind", path, path),
            Self::EmptyFolder(path) => argv.empty_folder(path),
            Self::EmptyFile(path) => argv.empty_file(path),
            Self::Link { target, path } => argv.mount("--symlink", target, path),
        }
    }
}

/// A folder with more entries is mounted as a whole, read-only.
pub(super) const ENTRIES_MAX: usize = 400;

/// The user's home; none if it is the whole file system, or if the room covers it.
pub(super) fn home(root: &Path) -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from)?.canonicalize().ok()?;
    (home != Path::new("/") && !home.starts_with(root)).then_some(home)
}

/// The home folder of a room for the repository at `root`: a new folder with the user's files in it, read-only.
pub(super) fn mounts(root: &Path) -> Vec<Mount> {
    let Some(home) = home(root) else { return Vec::new() };
    renewed(&home).unwrap_or_else(|| vec![Mount::ReadOnly(home)])
}

/// A new folder in the place of another, with its entries in it, read-only; none if there are too many.
pub(super) fn renewed(folder: &Path) -> Option<Vec<Mount>> {
    let entries: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    if entries.len() > ENTRIES_MAX {
        return None;
    }
    let mut mounts = vec![Mount::EmptyFolder(folder.to_owned())];
    for entry in &entries {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => {
                let target = std::fs::read_link(&path);
                mounts.extend(target.ok().map(|target| Mount::Link { target, path }));
            }
            Ok(kind) if kind.is_dir() || kind.is_file() => mounts.push(Mount::ReadOnly(path)),
            Ok(_) | Err(_) => {}
        }
    }
    Some(mounts)
}
