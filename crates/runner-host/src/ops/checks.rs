//! `runner node check`: changes the checks of a task, and commits them as `runner start` commits every change of the user's.

use std::path::{Path, PathBuf};

use runner_core::layout::{checks_path, node_folder};
use runner_core::model::checks::{Check, CheckFileName, CheckName, decode, with_check, without_check};
use runner_core::model::id::NodeId;
use runner_core::model::tree::{Tree, path_text};
use runner_core::runs::edit::EditError;
use runner_core::runs::start::StartOptions;

use super::start::{StartResult, start};
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::Git;

/// The most bytes of a file of checks.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A file for a check, to be kept beside checks.toml.
#[derive(Clone, Debug)]
pub struct NewCheckFile {
    pub name: CheckFileName,
    pub bytes: Vec<u8>,
}

/// Adds a check to an open task, or refuses it and changes nothing.
pub fn add_check(
    dir: &Path,
    tree: &Tree,
    node: &NodeId,
    check: &Check,
    files: &[NewCheckFile],
) -> Result<StartResult, Error> {
    let change = CheckChange::open(dir, tree, node)?;
    let toml = String::from_utf8_lossy(&change.toml).into_owned();
    let mut writes = vec![(change.path(CHECKS), Some(with_check(&toml, check).into_bytes()))];
    writes.extend(files.iter().map(|file| (change.path(file.name.as_str()), Some(file.bytes.clone()))));
    change.commit(&writes)
}

/// Removes a check of an open task with its files, or refuses it and changes nothing.
pub fn remove_check(dir: &Path, tree: &Tree, node: &NodeId, name: &CheckName) -> Result<StartResult, Error> {
    let change = CheckChange::open(dir, tree, node)?;
    let no_such = || UserError::Checks { faults: vec![format!("task `{node}` has no check `{name}`")] };
    let toml = without_check(&change.toml, name).ok_or_else(no_such)?;
    let kept = decode(toml.as_bytes()).unwrap_or_default();
    let is_kept =
        |file: &CheckFileName| kept.iter().any(|check| check.files.values().any(|name| name == file));
    let removed = decode(&change.toml).unwrap_or_default().into_iter().filter(|check| check.name == *name);
    let files = removed.flat_map(|check| check.files.into_values()).filter(|file| !is_kept(file));
    let mut writes: Vec<FileWrite> = files.map(|file| (change.path(file.as_str()), None)).collect();
    writes.push((change.path(CHECKS), Some(toml.into_bytes()).filter(|toml| !toml.is_empty())));
    change.commit(&writes)
}

const CHECKS: &str = runner_core::layout::CHECKS_FILE;

/// A path, and its new content; none removes the file.
type FileWrite = (PathBuf, Option<Vec<u8>>);

/// A change of one task's checks.
struct CheckChange {
    git: Git,
    dir: PathBuf,
    node: NodeId,
    /// checks.toml before the change; empty if there is none.
    toml: Vec<u8>,
}

impl CheckChange {
    fn open(dir: &Path, tree: &Tree, node: &NodeId) -> Result<Self, Error> {
        let git = Git::open(dir)?;
        let path = tree.path_to(node).ok_or_else(|| UserError::Edit(EditError::NoSuchNode(node.clone())))?;
        if path.last().is_some_and(|node| node.passes) {
            return Err(UserError::Edit(EditError::Passed(path_text(&path))).into());
        }
        let toml = atomic::read(&git.root().join(checks_path(node)), FILE_BYTES_MAX)?.unwrap_or_default();
        Ok(Self { git, dir: dir.to_owned(), node: node.clone(), toml })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.git.root().join(node_folder(&self.node)).join(name)
    }

    /// Writes the files and commits them. If that is refused, they are as before.
    fn commit(&self, writes: &[FileWrite]) -> Result<StartResult, Error> {
        let mut before: Vec<FileWrite> = Vec::new();
        for (path, _) in writes {
            before.push((path.clone(), atomic::read(path, FILE_BYTES_MAX)?));
        }
        let result = self.write(writes).and_then(|()| start(&self.dir, &StartOptions::default()));
        if result.is_err() {
            self.write(&before)?;
        }
        result
    }

    fn write(&self, writes: &[FileWrite]) -> Result<(), Error> {
        for (path, bytes) in writes {
            match bytes {
                Some(bytes) => {
                    path.parent().map_or(Ok(()), |folder| atomic::create_folders(self.git.root(), folder))?;
                    atomic::write(path, bytes)?;
                }
                None => atomic::remove_any(path)?,
            }
        }
        Ok(())
    }
}
