//! `runner init`: the files under `.runner/`, each where it is missing.

use std::path::Path;

use runner_core::layout::Doc;
use runner_core::model::run_state::RunState;

use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::fs::lock::Lock;
use crate::git::Git;
use crate::repo::documents::read_docs;
use crate::repo::paths::RUNNER_FOLDERS;

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitAction {
    /// It was missing and is there now.
    Created,
    /// It was there and stays.
    Kept,
    /// It was there, and its old bytes lie beside it as `.bak`.
    Replaced,
}

/// What to do with files that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingFiles {
    /// Leave them.
    Keep,
    /// Write them anew, and keep the old ones beside them.
    Replace,
}

/// Sets the repository up. Each document is listed with its fate.
pub fn init(dir: &Path, existing: ExistingFiles) -> Result<Vec<(Doc, InitAction)>, Error> {
    let git = Git::open(dir)?;
    atomic::ensure_folder(&git.paths().private())?;
    let _lock = Lock::take(&git.paths().lock())?;
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
    let mut fates = Vec::new();
    for doc in Doc::ALL {
        let (path, new) = (git.paths().doc(doc), doc.scaffold());
        let fate = match docs.get(&doc) {
            Some(old) if existing == ExistingFiles::Keep || *old == new => InitAction::Kept,
            Some(old) => {
                let mut backup = path.clone().into_os_string();
                backup.push(".bak");
                atomic::write(Path::new(&backup), old)?;
                InitAction::Replaced
            }
            None => InitAction::Created,
        };
        if fate != InitAction::Kept {
            atomic::write(&path, &new)?;
        }
        fates.push((doc, fate));
    }
    atomic::sync_file_system(git.root())?;
    Ok(fates)
}
