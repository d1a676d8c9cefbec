//! `runner init`: creates the files under `.runner/`.

use std::path::Path;

use runner_core::layout::Doc;
use runner_core::model::run_state::RunState;

use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::fs::lock::Lock;
use crate::git::Git;
use crate::paths::RUNNER_FOLDERS;
use crate::repo::documents::read_docs;

/// What [`init`] did with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitAction {
    Created,
    Kept,
    /// The old content is in a `.bak` file beside it.
    Replaced,
}

/// What [`init`] does with files that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingFiles {
    Keep,
    /// Replace them and keep `.bak` copies.
    Replace,
}

/// Creates `.runner/`, and returns what it did with each document.
pub fn init(dir: &Path, existing: ExistingFiles) -> Result<Vec<(Doc, InitAction)>, Error> {
    init_with_config(dir, existing, None)
}

/// The same with this text as config.toml instead of the defaults.
pub fn init_with_config(
    dir: &Path,
    existing: ExistingFiles,
    config: Option<&str>,
) -> Result<Vec<(Doc, InitAction)>, Error> {
    let git = Git::open(dir)?;
    atomic::ensure_folder(&git.paths().private())?;
    let _lock = Lock::acquire(&git.paths().lock())?;
    let docs = read_docs(&git)?;
    if existing == ExistingFiles::Replace {
        let state = docs.get(&Doc::RunState).and_then(|bytes| RunState::decode(bytes).ok());
        if let Some(run) = state.and_then(|state| state.run_id) {
            return Err(UserError::RunInProgress(run.to_string()).into());
        }
    }
    for folder in RUNNER_FOLDERS {
        atomic::ensure_folder(&git.root().join(folder))?;
    }
    let mut actions = Vec::new();
    for doc in Doc::ALL {
        let path = git.paths().doc(doc);
        let template = match config {
            Some(config) if doc == Doc::Config => config.as_bytes().to_vec(),
            Some(_) | None => doc.scaffold(),
        };
        let action = match docs.get(&doc) {
            Some(old) if existing == ExistingFiles::Keep || *old == template => InitAction::Kept,
            Some(old) => {
                let mut backup = path.clone().into_os_string();
                backup.push(".bak");
                atomic::write(Path::new(&backup), old)?;
                InitAction::Replaced
            }
            None => InitAction::Created,
        };
        if action != InitAction::Kept {
            atomic::write(&path, &template)?;
        }
        actions.push((doc, action));
    }
    atomic::sync_file_system(git.root())?;
    Ok(actions)
}
