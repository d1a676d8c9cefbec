//! `runner config`: reads config.toml in the work tree, and changes single keys of it.

use std::path::Path;

use runner_core::config::{Config, KeyEdit, SetKeyError, edit_keys};
use runner_core::layout::Doc;

use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::fs::lock::Lock;
use crate::git::Git;
use crate::repo::documents::read_doc;

/// The configuration in the work tree.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    pub config: Config,
    /// None if there is no file, so that every value is a default.
    pub text: Option<String>,
}

/// Reads the configuration. Without a file, it has the defaults.
pub fn read_config(dir: &Path) -> Result<ConfigFile, Error> {
    let git = Git::open(dir)?;
    let Some(bytes) = read_doc(&git, Doc::Config)? else {
        return Ok(ConfigFile { config: Config::default(), text: None });
    };
    let config =
        Config::decode(&bytes).map_err(|problems| UserError::SetKey(SetKeyError::Invalid(problems)))?;
    Ok(ConfigFile { config, text: Some(String::from_utf8_lossy(&bytes).into_owned()) })
}

/// Sets keys. Refuses values that are not valid, and files of a session that is running.
pub fn set_config(dir: &Path, edits: &[KeyEdit]) -> Result<ConfigFile, Error> {
    let git = Git::open(dir)?;
    atomic::ensure_folder(&git.paths().private())?;
    let _lock = Lock::acquire(&git.paths().lock())?;
    let bytes = read_doc(&git, Doc::Config)?.ok_or_else(|| UserError::NotSetUp(git.root().to_owned()))?;
    let text = edit_keys(&String::from_utf8_lossy(&bytes), edits).map_err(UserError::SetKey)?;
    let config = Config::decode(text.as_bytes())
        .map_err(|problems| UserError::SetKey(SetKeyError::Invalid(problems)))?;
    atomic::write(&git.paths().doc(Doc::Config), text.as_bytes())?;
    Ok(ConfigFile { config, text: Some(text) })
}
