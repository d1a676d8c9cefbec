//! What a room needs besides the candidate's files: the user's ignored files that the configuration names, and the setup command.

use std::fs;
use std::path::{Path, PathBuf};

use runner_core::config::{CommandArgv, GuardConfig};
use runner_core::model::digest::Sha256;
use runner_core::model::environment::LOCK_FILES;
use runner_core::model::id::RunId;

use super::checkout::Checkout;
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::fs::copy::{CopySafety, copy_tree};
use crate::git::{Git, path_of};
use crate::repo::paths::is_runner_path;

const MARKER_BYTES_MAX: u64 = 4_096;
/// The run that the room belongs to.
const OWNER: &str = "run";
/// The digest of the inputs of the last setup that succeeded.
const SETUP: &str = "setup";
/// The user's files as they were before the first session.
const KEPT: &str = "kept";
/// A copy of such a file that may be incomplete.
const STAGED: &str = "staged";

/// Whether the setup must run before the guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SetupNeed {
    No,
    /// The command, and the file and text that record its success.
    Yes {
        command: CommandArgv,
        marker: PathBuf,
        inputs: String,
    },
}

/// Removes a room that belongs to another run.
pub(super) fn ensure_owner(folder: &Path, run: &RunId) -> Result<(), Error> {
    let owner = folder.join(OWNER);
    if atomic::read(&owner, MARKER_BYTES_MAX)?.as_deref() == Some(run.as_str().as_bytes()) {
        return Ok(());
    }
    atomic::remove_any(folder)?;
    atomic::ensure_folder(folder)?;
    atomic::write_no_sync(&owner, run.as_str().as_bytes())
}

/// Refuses paths that are not inside the repository.
pub(super) fn check_kept(keep: &[String]) -> Result<(), Error> {
    match keep.iter().find(|path| !is_inside(path.trim_end_matches('/'))) {
        Some(path) => Err(UserError::KeepOutside(path.clone()).into()),
        None => Ok(()),
    }
}

/// Copies the files that the configuration names from the work tree into the room. Each is copied once: a copy under
/// `kept` says that both copies are complete, so it gets its name last.
pub(super) fn copy_kept(git: &Git, folder: &Path, keep: &[String]) -> Result<(), Error> {
    let staged = folder.join(STAGED);
    for path in keep.iter().map(|path| path.trim_end_matches('/')) {
        let source = git.root().join(path);
        let kept = folder.join(KEPT).join(path);
        if kept.symlink_metadata().is_ok() || source.symlink_metadata().is_err() {
            continue;
        }
        let target = folder.join("tree").join(path);
        for incomplete in [&staged, &target] {
            atomic::remove_any(incomplete)?;
            copy(&source, incomplete)?;
        }
        let parent = kept.parent().unwrap_or(&kept);
        fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        fs::rename(&staged, &kept).map_err(Error::io("move", &staged))?;
    }
    Ok(())
}

/// Copies the kept files of one room to another, so that no file of the work tree is read after a session.
pub(super) fn copy_kept_copies(from: &Path, to: &Path) -> Result<(), Error> {
    let kept = from.join(KEPT);
    if kept.is_dir() { copy(&kept, &to.join(KEPT)) } else { Ok(()) }
}

/// Copies the kept files into the room again.
pub(super) fn restore_kept(folder: &Path, keep: &[String]) -> Result<(), Error> {
    for path in keep.iter().map(|path| path.trim_end_matches('/')) {
        let (kept, target) = (folder.join(KEPT).join(path), folder.join("tree").join(path));
        if kept.symlink_metadata().is_ok() {
            atomic::remove_any(&target)?;
            copy(&kept, &target)?;
        }
    }
    Ok(())
}

/// Copies the ignored files of the work tree into the room, instead of those that are there.
pub(super) fn copy_ignored(git: &Git, checkout: &Checkout) -> Result<(), Error> {
    for path in git.ignored_paths()?.into_iter().filter(|path| !is_runner_path(path)) {
        let path = path_of(&path);
        let target = checkout.tree.join(path);
        atomic::remove_any(&target)?;
        copy(&git.root().join(path), &target)?;
    }
    Ok(())
}

/// Whether the setup must run, for the files that are in the room now.
pub(super) fn need(
    git: &Git,
    folder: &Path,
    checkout: &Checkout,
    guard: &GuardConfig,
) -> Result<SetupNeed, Error> {
    let Some(command) = guard.setup.clone() else { return Ok(SetupNeed::No) };
    let detected = || LOCK_FILES.iter().map(|name| format!(":(top,glob)**/{name}"));
    let configured = || guard.setup_inputs.iter().map(|path| format!(":(top,glob){path}"));
    let paths: Vec<String> =
        if guard.setup_inputs.is_empty() { detected().collect() } else { configured().collect() };
    let mut inputs = checkout.entries(git, &paths)?;
    inputs.extend(command.words().join("\0").as_bytes());
    let (marker, inputs) = (folder.join(SETUP), Sha256::of(&inputs).to_string());
    let is_done = atomic::read(&marker, MARKER_BYTES_MAX)?.as_deref() == Some(inputs.as_bytes());
    Ok(if is_done { SetupNeed::No } else { SetupNeed::Yes { command, marker, inputs } })
}

/// Makes the setup run again.
pub(super) fn forget(folder: &Path) -> Result<(), Error> {
    atomic::remove_any(&folder.join(SETUP))
}

fn is_inside(path: &str) -> bool {
    let is_name = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
    !path.is_empty() && Path::new(path).components().all(is_name) && !path.starts_with(".git")
}

/// Copies a file or a folder to a path that does not exist.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let parent = to.parent().unwrap_or(to);
    fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    copy_tree(from, to, CopySafety::Cached).map_err(Error::io("copy", from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_a_crash_interrupted_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        fs::create_dir(&work).unwrap();
        let git = Git::create(&work).unwrap();
        let room = folder.path().join("room");
        let write = |path: &Path, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for name in ["a", "b"] {
            write(&git.root().join("data").join(name), name);
        }
        write(&room.join("staged/a"), "");
        write(&room.join("tree/data/a"), "");
        let keep = ["data/".to_owned()];
        copy_kept(&git, &room, &keep).unwrap();
        for path in ["tree/data/a", "tree/data/b", "kept/data/a", "kept/data/b"] {
            assert!(!fs::read(room.join(path)).unwrap().is_empty(), "{path}");
        }
        write(&git.root().join("data/a"), "changed by a session");
        copy_kept(&git, &room, &keep).unwrap();
        assert_eq!(fs::read_to_string(room.join("tree/data/a")).unwrap(), "a", "each is copied once");
    }
}
