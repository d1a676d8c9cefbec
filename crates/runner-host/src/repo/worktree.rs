//! The work tree as a git tree: what a session left, stored before anything is judged.
//!
//! Works on a private index that was copied before the session, so that nothing the session did to the user's own
//! index can hide a change, and so that only what changed is read.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use runner_core::layout::{Doc, DocOwner, RUNNER_DIR, TOOLS_FILE};

use crate::error::Error;
use crate::fs::atomic::{self, FileStamp};
use crate::git::{Differing, Git, IndexEntry, PathChange, PathSet, ScanResult, path_of};
use crate::repo::paths::is_runner_path;

/// A file larger than this is set aside instead of committed.
const FILE_BYTES_MAX: u64 = 50 << 20;

/// Documents that only the runner writes. It knows what is in them, and git would read a large tree again at every look.
const OWN: [Doc; 2] = [Doc::Tree, Doc::RunState];

/// What a session left in the work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StagedChanges {
    /// The paths that were taken in: all that differs from what the index stood for.
    pub(crate) changed: Differing,
    /// What was not taken in, and why.
    pub(crate) set_aside: Vec<(String, &'static str)>,
}

/// Takes the private index from the user's own. The work tree is clean, so the two describe the same.
/// `known` is what it looked like when the runner wrote it: then nobody told it to overlook anything.
pub(crate) fn pin_index(git: &Git, known: Option<FileStamp>) -> Result<PathBuf, Error> {
    let index = git.paths().private_index("work");
    let is_known = known.is_some() && atomic::stamp(&git.paths().index()) == known;
    atomic::copy_with_mtime(&git.paths().index(), &index)?;
    if !is_known {
        git.forget_assumptions(&index)?;
    }
    Ok(index)
}

/// Stores the work tree as it is now.
pub(crate) fn take(git: &Git, index: &Path, iter: &str) -> Result<StagedChanges, Error> {
    let mut set_aside = Vec::new();
    let mut paths = changed_paths(git, index)?;
    let nested: Vec<Vec<u8>> = paths.keys().filter(|path| path.ends_with(b"/")).cloned().collect();
    if !nested.is_empty() {
        for path in nested {
            let name = String::from_utf8_lossy(&path).into_owned();
            move_aside(git, iter, &git.root().join(path_of(&path)).join(".git"), &format!("{name}.git"))?;
            set_aside.push((
                name,
                "was a repository of its own: its files are taken in, its history is set aside",
            ));
        }
        paths = changed_paths(git, index)?;
    }
    let (mut changed, mut refused) = (Differing::new(), Vec::new());
    for (path, how) in paths.into_iter().filter(|(path, _)| is_taken(path)) {
        let place = git.root().join(path_of(&path));
        if is_beyond_link(git, &path) || (is_runner_path(&path) && !is_plain_file(&place)) {
            continue;
        }
        if let Some(why) = obstacle(&place) {
            let name = String::from_utf8_lossy(&path).into_owned();
            move_aside(git, iter, &place, &name)?;
            set_aside.push((name, why));
            refused.push(path);
            continue;
        }
        changed.insert(path, how);
    }
    let took = git.add_paths(index, &changed.keys().cloned().collect::<Vec<_>>())?;
    let left = if took == ScanResult::Full { PathSet::new() } else { git.differing_paths(index)? };
    for path in left {
        if changed.get(&path) != Some(&PathChange::New) {
            continue;
        }
        let name = String::from_utf8_lossy(&path).into_owned();
        move_aside(git, iter, &git.root().join(path_of(&path)), &name)?;
        set_aside.push((name, "has a name that git does not take"));
        changed.remove(&path);
    }
    // Of a file that git knew, the version before the session comes back: what is committed is what the guard sees.
    if !refused.is_empty() {
        git.check_out(index, &refused)?;
    }
    Ok(StagedChanges { changed, set_aside })
}

/// Everything that differs from the index, without a second look at what does not. Folders that an agent closed to
/// its own user are opened again.
fn changed_paths(git: &Git, index: &Path) -> Result<Differing, Error> {
    let (paths, sight) = git.look_around(index, &OWN.map(Doc::path))?;
    if sight == ScanResult::Full {
        return Ok(paths);
    }
    open_folders(git.root());
    git.look_around(index, &OWN.map(Doc::path)).map(|(paths, _)| paths)
}

/// What the work tree holds beside what an index has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorktreeState {
    Nothing,
    Something,
}

/// Whether the work tree differs from an index by more than what only the runner writes.
pub(crate) fn beside(git: &Git, index: &Path) -> Result<WorktreeState, Error> {
    let (paths, _) = git.look_around(index, &OWN.map(Doc::path))?;
    Ok(if paths.is_empty() { WorktreeState::Nothing } else { WorktreeState::Something })
}

/// Opens every folder to its owner, as far as that is allowed.
fn open_folders(folder: &Path) {
    open_to_owner(folder, 0o700);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && entry.file_name() != ".git" {
            open_folders(&entry.path());
        }
    }
}

fn open_to_owner(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(found) = path.symlink_metadata() else { return };
    let (now, wanted) = (found.permissions().mode(), found.permissions().mode() | mode);
    if now != wanted && !found.is_symlink() {
        // Where it is not allowed, what follows finds out.
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(wanted));
    }
}

/// Why a file cannot go into a commit. One that its owner cannot read is opened to them first.
fn obstacle(place: &Path) -> Option<&'static str> {
    let size = place.symlink_metadata().ok().filter(fs::Metadata::is_file)?.len();
    let is_denied = || fs::File::open(place).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
    if is_denied() {
        open_to_owner(place, 0o600);
    }
    if is_denied() {
        return Some("cannot be read");
    }
    (size > FILE_BYTES_MAX).then_some("is too large for a commit")
}

/// Whether a change of an agent's is taken in at this path: all outside the runner's folder; inside it the memory
/// files and the notes and artefacts of nodes. What an agent may use is the user's to say, like the configuration.
fn is_taken(path: &[u8]) -> bool {
    let notes = [RUNNER_DIR.as_bytes(), b"/nodes/"].concat();
    let in_node = path.strip_prefix(notes.as_slice()).map(|rest| rest.splitn(2, |byte| *byte == b'/').nth(1));
    !is_runner_path(path)
        || in_node.is_some_and(|name| name != Some(TOOLS_FILE.as_bytes()))
        || Doc::at(path).is_some_and(|doc| doc.owner() == DocOwner::Memory)
}

/// Whether a folder on the way to a path is a link: then the path is not there, whatever the link leads to.
fn is_beyond_link(git: &Git, path: &[u8]) -> bool {
    let folders = path_of(path).ancestors().skip(1);
    folders
        .map(|folder| git.root().join(folder))
        .take_while(|folder| folder != git.root())
        .any(|folder| folder.symlink_metadata().is_ok_and(|found| found.is_symlink()))
}

/// In the runner's own folder nothing else is taken: a memory file that an agent removed or replaced comes back.
fn is_plain_file(place: &Path) -> bool {
    place.symlink_metadata().is_ok_and(|found| found.is_file())
}

fn move_aside(git: &Git, iter: &str, from: &Path, name: &str) -> Result<(), Error> {
    let folder = git.paths().set_aside(iter);
    atomic::create_folders(&git.git_dir(), &folder)?;
    let place = folder.join(name.replace('/', "-"));
    fs::rename(from, &place).map_err(Error::io("set aside", from))
}

/// Puts files into an index as a commit has them; one that the commit does not have goes.
pub(crate) fn restore_in_index(
    git: &Git,
    index: &Path,
    commit: &str,
    paths: &[Vec<u8>],
) -> Result<(), Error> {
    let mut edits = Vec::new();
    for path in paths {
        let name = path_of(path).to_string_lossy();
        let found =
            git.files_of(commit, &format!(":(literal){name}"))?.into_iter().find(|file| file.path == *path);
        edits.push(found.map_or_else(|| IndexEntry::Remove(path.clone()), IndexEntry::Put));
    }
    git.edit_index(index, &edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_runners_folder_only_memory_and_notes_are_taken() {
        for taken in
            ["src/a.rs", ".runner/state/questions.md", ".runner/nodes/x/artifacts/tools.json", ".runnerx/y"]
        {
            assert!(is_taken(taken.as_bytes()), "{taken}");
        }
        for left in [
            ".runner/GOAL.md",
            ".runner/state/tree.json",
            ".runner/state/config.toml",
            ".runner/prompts/x",
            ".runner/nodes/x/tools.json",
        ] {
            assert!(!is_taken(left.as_bytes()), "{left}");
        }
    }
}
