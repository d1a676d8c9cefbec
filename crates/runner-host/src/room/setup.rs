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
use crate::paths::is_runner_path;

const MARKER_BYTES_MAX: u64 = 4_096;
/// The run that the room belongs to.
const OWNER: &str = "run";
/// The digest of the inputs of the last setup that succeeded.
const SETUP: &str = "setup";

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
    !path.is_empty() && Path::new(path).components().all(is_name) && !Path::new(path).starts_with(".git")
}

/// Copies a file or a folder to a path that does not exist.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let parent = to.parent().unwrap_or(to);
    fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    copy_tree(from, to, CopySafety::Cached).map_err(Error::io("copy", from))
}
