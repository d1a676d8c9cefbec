//! Small ignored files of the user's, such as `.env` or a local database: often the only copy, and an agent can delete them.
//!
//! Before a session their contents are kept in `.git/runner/ignored/`, outside of git: nothing pushes, clones or exports them. A
//! list records size, time and mode of each, so that a later session only stores what changed since.
//!
//! A file that a session deleted is restored, unless its whole folder is ignored: such folders hold build output, and an agent
//! may clean up. Everything else is reported with the command that restores it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use runner_core::model::id::RunId;
use runner_core::model::repo_path::RepoPath;
use runner_core::step::{FileAction, FileNotice};
use serde::{Deserialize, Serialize};

use super::aside::shell_word;
use super::ignored_copies::{CopyFolder, KeptCopies, KeptCopy, from_root, paths_with_copies};
use crate::error::Error;
use crate::fs::atomic;
use crate::git::{Git, PathSet, path_of};
use crate::paths::is_runner_path;
use crate::repo::own_output::is_own_output;

/// A larger file is not kept.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Further files are not kept.
const TOTAL_BYTES_MAX: u64 = 64 << 20;
const FILES_MAX: usize = 5_000;
/// A folder in which everything is ignored is kept if it has at most so many files. Others are build output and packages.
const FOLDER_FILES_MAX: usize = 64;

/// What a file looked like when it was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileState {
    pub(super) bytes: u64,
    pub(super) mtime_ns: i64,
    pub(super) mode: u32,
    /// Whether everything in its folder is ignored.
    pub(super) is_in_folder: bool,
}

/// The kept files that exist, and the folder that has their copies.
#[derive(Clone, Debug)]
pub(crate) struct UserFiles {
    folder: CopyFolder,
    files: KeptCopies,
}

impl UserFiles {
    /// Keeps the ignored files of the work tree before a session. It looks for them at the first session of a run, and again
    /// by each process while it found none; afterwards it stores those that changed since.
    pub(crate) fn keep(git: &Git, run: &RunId, known: Option<Self>) -> Result<Self, Error> {
        let folder = CopyFolder::of(git, run);
        let (kept, now) = match known {
            Some(known) => {
                let now = known.states_now(git);
                (known.files, now)
            }
            None => match folder.newest()? {
                Some(files) => {
                    let known = Self { folder: folder.clone(), files };
                    let now = known.states_now(git);
                    (known.files, now)
                }
                None => (KeptCopies::new(), find(git)?),
            },
        };
        let mut files = KeptCopies::new();
        let mut has_changed = false;
        for (path, state) in now {
            let is_kept = |copy: &&KeptCopy| copy.state == state && folder.path_of(copy.sha256).exists();
            let known = kept.get(&path).filter(is_kept).copied();
            let copy = match known {
                Some(copy) => Some(copy),
                None => {
                    has_changed = true;
                    store(git, &folder, &path, state)?
                }
            };
            files.extend(copy.map(|copy| (path, copy)));
        }
        if has_changed {
            folder.add_list(git, &files)?;
        }
        Ok(Self { folder, files })
    }

    /// The files that were kept before the last session of a run.
    pub(crate) fn read(git: &Git, run: &RunId) -> Result<Self, Error> {
        let folder = CopyFolder::of(git, run);
        let files = folder.newest()?.unwrap_or_default();
        Ok(Self { folder, files })
    }

    /// Restores deleted files after a session, and returns a notice for every file that was deleted or changed.
    pub(crate) fn restore(&self, git: &Git) -> Vec<FileNotice> {
        let mut notices = self.changes(git);
        let deleted = notices.iter_mut().filter(|notice| notice.action == FileAction::IgnoredDeleted);
        for notice in deleted {
            let path = notice.path.to_bytes();
            let copy = self.files.get(&path).filter(|copy| !copy.state.is_in_folder);
            if copy.is_some_and(|copy| self.write(git, &path, *copy).is_ok()) {
                notice.action = FileAction::IgnoredRestored;
                notice.restore = None;
            }
        }
        notices
    }

    /// Writes a kept file with its permissions and time. Anything in its place stays.
    fn write(&self, git: &Git, path: &[u8], copy: KeptCopy) -> Result<(), Error> {
        let KeptCopy { state, sha256 } = copy;
        let bytes = self.folder.content(sha256).ok_or(Error::Internal("a kept file without content"))?;
        let file = git.root().join(path_of(path));
        file.parent().map_or(Ok(()), |folder| atomic::create_folders(git.root(), folder))?;
        let modified =
            SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(state.mtime_ns).unwrap_or(0));
        let written = fs::File::options().write(true).create_new(true).open(&file).and_then(|mut target| {
            target.write_all(&bytes)?;
            target.set_permissions(fs::Permissions::from_mode(state.mode & 0o7777))?;
            target.set_times(fs::FileTimes::new().set_modified(modified))
        });
        written.map_err(Error::io("write", &file))
    }

    /// A notice for every file that was deleted or changed since it was kept.
    pub(crate) fn changes(&self, git: &Git) -> Vec<FileNotice> {
        let now = self.states_now(git);
        let changed = self.files.iter().filter_map(|(path, before)| match now.get(path) {
            Some(state) if *state == before.state => None,
            Some(_) => Some(self.notice(git, path, *before, FileAction::IgnoredChanged)),
            None => Some(self.notice(git, path, *before, FileAction::IgnoredDeleted)),
        });
        changed.collect()
    }

    fn notice(&self, git: &Git, path: &[u8], before: KeptCopy, action: FileAction) -> FileNotice {
        FileNotice {
            path: RepoPath::of_bytes(path),
            action,
            reason: "git ignores it".to_owned(),
            restore: self.restore_command(git, path, before),
        }
    }

    /// The command that restores a file; none for a path that is not text.
    fn restore_command(&self, git: &Git, path: &[u8], before: KeptCopy) -> Option<String> {
        let path = std::str::from_utf8(path).ok().filter(|path| !path.contains(char::is_control))?;
        let copy = from_root(git, &self.folder.path_of(before.sha256));
        let copy = shell_word(copy.to_str()?);
        let folder = path.rsplit_once('/').map(|(folder, _)| format!("mkdir -p {} && ", shell_word(folder)));
        let mode = before.state.mode & 0o777;
        let path = shell_word(path);
        Some(format!("{}cp {copy} {path} && chmod {mode:o} {path}", folder.unwrap_or_default()))
    }

    /// The kept files that exist now.
    fn states_now(&self, git: &Git) -> BTreeMap<Vec<u8>, FileState> {
        let state = |path: &Vec<u8>, before: &KeptCopy| {
            Some((path.clone(), small_file(&git.root().join(path_of(path)), before.state.is_in_folder)?))
        };
        self.files.iter().filter_map(|(path, before)| state(path, before)).collect()
    }
}

/// Every path of which a run of this work tree has a copy.
pub(super) fn kept_paths(git: &Git) -> Result<PathSet, Error> {
    Ok(paths_with_copies(git)?.into_iter().collect())
}

/// The ignored files that are small enough, up to the limits.
fn find(git: &Git) -> Result<BTreeMap<Vec<u8>, FileState>, Error> {
    let mut found = BTreeMap::new();
    let mut bytes = 0;
    for path in git.ignored_paths()?.into_iter().filter(|path| !is_runner_path(path)) {
        let is_folder = path.ends_with(b"/");
        let files = if is_folder { small_folder(git, &path) } else { vec![path] };
        for path in files.into_iter().filter(|path| !has_git_name(path)) {
            let file = git.root().join(path_of(&path));
            let Some(state) = small_file(&file, is_folder).filter(|_| !is_own_output(&file)) else {
                continue;
            };
            bytes += state.bytes;
            if bytes > TOTAL_BYTES_MAX || found.len() >= FILES_MAX {
                return Ok(found);
            }
            found.insert(path, state);
        }
    }
    Ok(found)
}

/// The files of an ignored folder; none if there are too many, or if it is a repository.
fn small_folder(git: &Git, folder: &[u8]) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    let mut folders = vec![git.root().join(path_of(folder))];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if let Ok(path) = entry.path().strip_prefix(git.root()) {
                files.push(path.as_os_str().as_bytes().to_vec());
            }
            if entry.file_name() == ".git" || files.len() + folders.len() > FOLDER_FILES_MAX {
                return Vec::new();
            }
        }
    }
    files
}

/// Whether a part of the path has a name that git stores in no commit.
fn has_git_name(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|name| name.eq_ignore_ascii_case(b".git"))
}

/// The state of a regular file that is small enough.
fn small_file(file: &Path, is_in_folder: bool) -> Option<FileState> {
    let metadata = file.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    let mtime_ns = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
    let state = FileState { bytes: metadata.len(), mtime_ns, mode: metadata.mode(), is_in_folder };
    (state.bytes <= FILE_BYTES_MAX).then_some(state)
}

/// Stores a copy of a file; none if it cannot be read.
fn store(git: &Git, folder: &CopyFolder, path: &[u8], state: FileState) -> Result<Option<KeptCopy>, Error> {
    let file = git.root().join(path_of(path));
    let Some(bytes) = atomic::read(&file, FILE_BYTES_MAX).ok().flatten() else { return Ok(None) };
    Ok(Some(KeptCopy { state, sha256: folder.store(&bytes)? }))
}
