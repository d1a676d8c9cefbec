//! The folder of held-out checks: outside of the repository, and hidden from everything that runs for an agent.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use runner_core::layout::CHECKS_FILE;
use runner_core::model::checks::{Check, CheckFileName, TaskChecks};
use runner_core::model::digest::Sha256;
use runner_core::model::heldout::HeldoutTask;
use runner_core::model::id::NodeId;
use runner_core::step::HeldoutId;

use crate::agent::sandbox::expand_home;
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::Git;
use crate::room::CheckFiles;

/// The most bytes of a checks.toml, and of a check file.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Where the output of held-out checks is kept, for the user alone.
const LOGS: &str = ".logs";

/// A folder with held-out checks.
#[derive(Clone, Debug)]
pub(crate) struct HeldoutFolder {
    path: PathBuf,
}

/// A held-out check with its files, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct LoadedHeldout {
    pub(crate) check: Check,
    pub(crate) files: HeldoutFiles,
}

/// Files to put into a room, by their path in the repository. They are never stored in git.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldoutFiles(Vec<HeldoutFile>);

#[derive(Clone, Debug)]
struct HeldoutFile {
    path: String,
    bytes: Vec<u8>,
    mode: u32,
}

/// The path that a configuration names, if it can be one: everything that must be hidden.
pub(crate) fn configured(path: &str) -> Option<PathBuf> {
    expand_home(path)?.canonicalize().ok()
}

impl HeldoutFolder {
    /// Opens the folder that the configuration names. `Err` has why it cannot be used.
    pub(crate) fn open(git: &Git, name: &str) -> Result<Self, UserError> {
        let refused = |why: String, fix: &'static str| UserError::Heldout { path: name.to_owned(), why, fix };
        let path = expand_home(name).unwrap_or_default();
        if !path.is_absolute() {
            let fix = "name it by an absolute path: runner config set checks.heldout /PATH";
            return Err(refused("it is not an absolute path".to_owned(), fix));
        }
        let create = "create it, or name another one: runner config set checks.heldout /PATH";
        let path = path.canonicalize().map_err(|error| refused(error.to_string(), create))?;
        if !path.is_dir() {
            return Err(refused("it is not a folder".to_owned(), create));
        }
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        for own in [git.root().to_owned(), git.git_dir().to_owned(), git.common_dir().to_owned()] {
            let own = canonical(&own);
            if path.starts_with(&own) || own.starts_with(&path) {
                let fix = "move it outside of the repository: agents can read everything in there";
                return Err(refused("it is inside of the repository, or contains it".to_owned(), fix));
            }
        }
        Ok(Self { path })
    }

    /// The checks of every task that the folder has.
    pub(crate) fn tasks(&self) -> Result<Vec<HeldoutTask>, Error> {
        let entries = fs::read_dir(&self.path).map_err(Error::io("read", &self.path))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut tasks = Vec::new();
        let mut faults = Vec::new();
        for node in names.filter_map(|name| NodeId::new(name.as_str()).ok()) {
            match self.read(&node)? {
                Some(Ok(task)) => tasks.push(HeldoutTask::new(node, &task)),
                Some(Err(problems)) => faults.extend(problems),
                None => {}
            }
        }
        faults.sort();
        if faults.is_empty() { Ok(tasks) } else { Err(UserError::Checks { faults }.into()) }
    }

    /// Reads a check with its files. Refuses one that is not as the last start found it.
    pub(crate) fn load(&self, id: HeldoutId<'_>) -> Result<LoadedHeldout, Error> {
        let changed = || UserError::HeldoutChanged { node: id.node.clone(), folder: self.path.clone() };
        let Some(Ok(task)) = self.read(id.node)? else { return Err(changed().into()) };
        let check = task.checks.iter().find(|check| check.name == *id.name);
        let Some(check) = check.filter(|_| task.digest == id.digest) else { return Err(changed().into()) };
        let mut files = Vec::new();
        for (destination, name) in task.files() {
            let path = self.path.join(id.node.as_str()).join(name.as_str());
            let bytes = atomic::read(&path, FILE_BYTES_MAX)?.ok_or_else(|| Error::from(changed()))?;
            let mode = path.metadata().map_or(0o644, |metadata| metadata.permissions().mode() & 0o755);
            files.push(HeldoutFile { path: destination.as_str().to_owned(), bytes, mode });
        }
        Ok(LoadedHeldout { check: check.clone(), files: HeldoutFiles(files) })
    }

    /// The checks of a task, or what is wrong with them.
    fn read(&self, node: &NodeId) -> Result<Option<Result<TaskChecks, Vec<String>>>, Error> {
        let folder = self.path.join(node.as_str());
        let path = folder.join(CHECKS_FILE);
        let Some(toml) = atomic::read(&path, FILE_BYTES_MAX)? else { return Ok(None) };
        let digest_of = |file: &CheckFileName| {
            let bytes = atomic::read(&folder.join(file.as_str()), FILE_BYTES_MAX).ok().flatten()?;
            Some(Sha256::of(&bytes))
        };
        let read = TaskChecks::read(&toml, digest_of);
        Ok(Some(
            read.map_err(|faults| {
                faults.iter().map(|fault| format!("`{}`: {fault}", path.display())).collect()
            }),
        ))
    }

    /// Keeps the output of a check where only the user can read it. Without it, nothing else fails.
    pub(crate) fn keep_log(&self, run: &str, name: &str, log: &Path) {
        let folder = self.path.join(LOGS).join(run);
        if fs::create_dir_all(&folder).is_ok() {
            atomic::make_private(&self.path.join(LOGS));
            let _ = fs::copy(log, folder.join(name));
        }
    }
}

impl CheckFiles for HeldoutFiles {
    fn destinations(&self) -> Vec<PathBuf> {
        self.0.iter().map(|file| PathBuf::from(&file.path)).collect()
    }

    fn lay_in(&self, root: &Path) -> Result<(), Error> {
        for HeldoutFile { path, bytes, mode } in &self.0 {
            let path = root.join(path);
            path.parent().map_or(Ok(()), |folder| atomic::create_folders(root, folder))?;
            atomic::remove_any(&path)?;
            fs::write(&path, bytes).map_err(Error::io("write", &path))?;
            let mode = fs::Permissions::from_mode(*mode | 0o600);
            fs::set_permissions(&path, mode).map_err(Error::io("write", &path))?;
        }
        Ok(())
    }
}
