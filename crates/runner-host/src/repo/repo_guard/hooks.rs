//! The hooks of a repository: the user's next git command runs them, so what a session did to them is undone.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use runner_core::step::RestoreReport;
use serde::{Deserialize, Serialize};

use super::guarded_files::FileContent;
use super::{AsideFolder, name_in};
use crate::error::Error;
use crate::fs::atomic;
use crate::fs::lookup;
use crate::git::Git;

/// The name of their folder.
pub(super) const HOOKS_FOLDER: &str = "hooks";
/// A longer hook is compared by its stamp, and cannot be restored.
const HOOK_BYTES_MAX: u64 = 1 << 20;

/// The hooks by name, without git's samples and without folders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Hooks(BTreeMap<String, HookFile>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct HookFile {
    mode: u32,
    content: FileContent,
    /// What it points to, if it is a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    /// Identifies a hook that is too large or cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stamp: Option<String>,
}

impl HookFile {
    /// None if there is none, or a folder. A failed call must not look like a missing hook: the user's would be taken for one
    /// that the session added.
    fn read(path: &Path) -> Result<Option<Self>, Error> {
        let Some(metadata) = lookup::metadata(path)?.filter(|found| !found.is_dir()) else {
            return Ok(None);
        };
        let mode = metadata.permissions().mode() & 0o7777;
        let hook = Self { mode, content: FileContent(Vec::new()), link: None, stamp: None };
        if metadata.is_symlink() {
            // Every link has the same permissions.
            let target = lookup::link_target(path)?.unwrap_or_default();
            return Ok(Some(Self { mode: 0, link: Some(target.to_string_lossy().into_owned()), ..hook }));
        }
        match atomic::read(path, HOOK_BYTES_MAX) {
            Ok(bytes) => Ok(bytes.map(|bytes| Self { content: FileContent(bytes), ..hook })),
            Err(error) if !is_unreadable(&error) => Err(error),
            Err(_) => {
                let changed =
                    (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec());
                let stamp = format!("{} {} {changed:?}", metadata.ino(), metadata.len());
                Ok(Some(Self { stamp: Some(stamp), ..hook }))
            }
        }
    }

    fn write(&self, folder: &Path, path: &Path) -> Result<(), Error> {
        if let Some(target) = &self.link {
            return std::os::unix::fs::symlink(target, path).map_err(Error::io("create", path));
        }
        atomic::replace_durably(folder, path, &self.content.0)?;
        let mode = fs::Permissions::from_mode(self.mode);
        fs::set_permissions(path, mode).map_err(Error::io("write", path))
    }
}

impl Hooks {
    pub(super) fn read(git: &Git) -> Result<Self, Error> {
        let mut hooks = BTreeMap::new();
        for entry in lookup::entries(&folder(git)?)? {
            let Ok(name) = entry.file_name().into_string() else { continue };
            if !name.ends_with(".sample")
                && let Some(hook) = HookFile::read(&entry.path())?
            {
                hooks.insert(name, hook);
            }
        }
        Ok(Self(hooks))
    }

    /// Sets new and changed hooks aside, and writes the old ones back.
    pub(super) fn restore(&self, aside: &AsideFolder<'_>, report: &mut RestoreReport) -> Result<(), Error> {
        let now = Self::read(aside.git)?.0;
        let folder = folder(aside.git)?;
        for (name, hook) in &now {
            if self.0.get(name) != Some(hook) {
                aside.take(&folder.join(name), report)?;
            }
        }
        let is_changed = |name: &str, hook: &HookFile| now.get(name) != Some(hook);
        for (name, hook) in self.0.iter().filter(|(name, hook)| is_changed(name, hook)) {
            if !folder.is_dir() {
                atomic::create_folders(aside.git.common_dir(), &folder)?;
            }
            let path = folder.join(name);
            if hook.stamp.is_none() {
                hook.write(&folder, &path)?;
            }
            report.files.push(name_in(aside.git, &path));
        }
        Ok(())
    }
}

/// Where the hooks are: behind a link, if the user made one. One that the session made is set aside already.
fn folder(git: &Git) -> Result<PathBuf, Error> {
    let folder = git.common_dir().join(HOOKS_FOLDER);
    if lookup::link_target(&folder)?.is_none() {
        return Ok(folder);
    }
    Ok(lookup::resolved(&folder)?.filter(|resolved| resolved.is_dir()).unwrap_or(folder))
}

/// Whether a file cannot be read, now or later: it is too large, no regular file, or closed to this user.
fn is_unreadable(error: &Error) -> bool {
    let is_closed = |source: &io::Error| source.kind() == io::ErrorKind::PermissionDenied;
    matches!(error, Error::Refused(_)) || matches!(error, Error::Io { source, .. } if is_closed(source))
}
