//! What in the work tree differs from an index, after everything that git cannot scan was opened or set aside.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use runner_core::layout::Doc;
use runner_core::step::FileAction;

use super::aside::{AsideFolder, AsideItem};
use super::obstacles::{WatchedCall, remove_at_root, remove_blocking_files, watched};
use super::permissions::open_folders;
use crate::error::Error;
use crate::git::{ChangedPaths, Git, PathSet, ScanResult, path_of};

/// Documents that only the runner writes. It knows their content, and git would hash a large tree at every scan.
const RUNNER_DOCS: [Doc; 2] = [Doc::Tree, Doc::RunState];

const BLOCKED_GIT: &str = "not a regular file, and git waits for its content";
const NESTED: &str = "nested repository; its files are committed";

/// After so many rounds, every git directory below a nested repository is set aside at once.
const NESTED_ROUNDS: u32 = 8;

/// Whether the work tree differs from an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorktreeState {
    Clean,
    Dirty,
}

/// Compares the work tree with an index, without the documents that only the runner writes.
pub(crate) fn scan(git: &Git, index: &Path) -> Result<WorktreeState, Error> {
    let (paths, _) = watched(git.root(), || status(git, index)).result?;
    Ok(if paths.is_empty() { WorktreeState::Clean } else { WorktreeState::Dirty })
}

/// Paths that differ from an index, while a session may still be running.
pub(crate) fn differing_paths(git: &Git, index: &Path) -> Result<PathSet, Error> {
    watched(git.root(), || git.differing_paths(index)).result
}

fn status(git: &Git, index: &Path) -> Result<(ChangedPaths, ScanResult), Error> {
    git.reveal_new_files(index)?;
    git.status_against_index(index, &RUNNER_DOCS.map(Doc::path))
}

/// All files that differ from an index. Removes what blocks git, opens unreadable folders, and sets the git directories of
/// nested repositories aside, so that their files are among the paths.
pub(super) fn changed_files(
    git: &Git,
    index: &Path,
    aside: &mut AsideFolder<'_>,
) -> Result<ChangedPaths, Error> {
    let mut paths = readable_changes(git, index, aside)?;
    for round in 0.. {
        let nested: Vec<Vec<u8>> = paths.keys().filter(|path| path.ends_with(b"/")).cloned().collect();
        let items: Vec<AsideItem> =
            nested.iter().flat_map(|path| git_directories(git, path, round)).collect();
        if items.is_empty() {
            // A folder that cannot be read.
            paths.retain(|path, _| !path.ends_with(b"/"));
            break;
        }
        aside.put(&items)?;
        paths = readable_changes(git, index, aside)?;
    }
    Ok(paths)
}

/// The git directory of a nested repository. Those of its submodules too: they refer to it and are nothing without it.
fn git_directories(git: &Git, path: &[u8], round: u32) -> Vec<AsideItem> {
    let item = |folder: &Path| {
        let path = folder.join(".git");
        path.symlink_metadata().ok()?;
        Some(AsideItem { path: relative(git, &path).to_vec(), reason: NESTED })
    };
    let folder = git.root().join(path_of(path));
    if round < NESTED_ROUNDS && !folder.join(".git/modules").is_dir() {
        return item(&folder).into_iter().collect();
    }
    let mut items = Vec::new();
    super::permissions::visit(&folder, &mut |folder| items.extend(item(folder)));
    items
}

/// All paths that differ from an index. A scan that is incomplete or fails is repeated once, after everything was made
/// readable that can be.
fn readable_changes(git: &Git, index: &Path, aside: &mut AsideFolder<'_>) -> Result<ChangedPaths, Error> {
    note_removed(git, index, aside, &remove_at_root(git.root()))?;
    let WatchedCall { result, removed } = watched(git.root(), || status(git, index));
    note_removed(git, index, aside, &removed)?;
    match result {
        Ok((paths, ScanResult::Complete)) if removed.is_empty() => return Ok(paths),
        Err(error) if !is_refusal(&error) => return Err(error),
        Ok(_) | Err(_) => {}
    }
    note_removed(git, index, aside, &remove_blocking_files(git.root()))?;
    for folder in open_folders(git.root()) {
        aside.note(relative(git, &folder), FileAction::LeftInPlace, "the folder cannot be read");
    }
    let WatchedCall { result, removed } = watched(git.root(), || status(git, index));
    note_removed(git, index, aside, &removed)?;
    result.map(|(paths, _)| paths)
}

/// Whether git ran and did not do it: another attempt may differ from this one.
pub(super) fn is_refusal(error: &Error) -> bool {
    match error {
        Error::Git { .. } => true,
        Error::Io { source, .. } => source.kind() == std::io::ErrorKind::TimedOut,
        Error::Refused(_)
        | Error::Locked { .. }
        | Error::GitOutput { .. }
        | Error::Journal { .. }
        | Error::LowDisk { .. }
        | Error::Internal(_) => false,
    }
}

/// Reports files that blocked git, and restores the tracked ones among them.
pub(super) fn note_removed(
    git: &Git,
    index: &Path,
    aside: &mut AsideFolder<'_>,
    removed: &[PathBuf],
) -> Result<(), Error> {
    let paths: Vec<Vec<u8>> = removed.iter().map(|path| relative(git, path).to_vec()).collect();
    paths.iter().for_each(|path| aside.note(path, FileAction::Removed, BLOCKED_GIT));
    if paths.is_empty() { Ok(()) } else { git.check_out(index, &paths) }
}

fn relative<'p>(git: &Git, path: &'p Path) -> &'p [u8] {
    path.strip_prefix(git.root()).unwrap_or(path).as_os_str().as_bytes()
}
