//! Small ignored files of the user's, such as `.env` or a local database: often the only copy, and an agent can delete them.
//!
//! Before a session their contents are kept under `refs/runner/<run>/ignored`. The commit's message records size, time and
//! mode of each, so that a later session only stores what changed since. Nothing pushes that reference unless asked to.
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
use runner_core::model::object_id::CommitId;
use runner_core::model::repo_path::RepoPath;
use runner_core::step::{FileAction, FileNotice};
use runner_core::strict::canonical_json;
use serde::{Deserialize, Serialize};

use super::aside::shell_word;
use crate::error::Error;
use crate::fs::atomic;
use crate::git::{Git, KeptFile, PathSet, path_of};
use crate::repo::own_output::is_own_output;
use crate::repo::paths::is_runner_path;

/// A larger file is not kept.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Further files are not kept.
const TOTAL_BYTES_MAX: u64 = 64 << 20;
const FILES_MAX: usize = 5_000;
/// A folder in which everything is ignored is kept if it has at most so many files. Others are build output and packages.
const FOLDER_FILES_MAX: usize = 64;

/// What a file looked like when it was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileState {
    bytes: u64,
    mtime_ns: i64,
    mode: u32,
    /// Whether everything in its folder is ignored.
    is_in_folder: bool,
}

/// The kept files that exist, and the commit that has them.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserFiles {
    commit: Option<CommitId>,
    files: BTreeMap<Vec<u8>, FileState>,
}

impl UserFiles {
    /// Keeps the ignored files of the work tree before a session. It looks for them at the first session of a run, and again
    /// by each process while it found none; afterwards it stores those that changed since.
    pub(crate) fn keep(git: &Git, run: &RunId, known: Option<Self>) -> Result<Self, Error> {
        let is_first = known.is_none();
        let kept = match known {
            Some(known) => known,
            None => Self::read(git, run)?,
        };
        let now = if is_first && kept.commit.is_none() { find(git)? } else { kept.states_now(git) };
        let is_changed = |path: &Vec<u8>, state: &FileState| kept.files.get(path) != Some(state);
        let changed: Vec<&Vec<u8>> =
            now.iter().filter(|(path, state)| is_changed(path, state)).map(|(path, _)| path).collect();
        if changed.is_empty() {
            return Ok(Self { commit: kept.commit, files: now });
        }
        let files: Vec<KeptFile> = changed.into_iter().filter_map(|path| content(git, path)).collect();
        let reference = reference(run);
        let commit = git.keep_files(&reference, kept.commit.as_ref(), &message(&now), &files)?;
        Ok(Self { commit: Some(commit), files: now })
    }

    /// The files that were kept before the last session of a run.
    pub(crate) fn read(git: &Git, run: &RunId) -> Result<Self, Error> {
        let Some(commit) = git.resolve(&reference(run))? else { return Ok(Self::default()) };
        let text = git.commit_body(&commit)?;
        let listed: BTreeMap<RepoPath, FileState> = serde_json::from_slice(&text).unwrap_or_default();
        let files = listed.into_iter().map(|(path, state)| (path.to_bytes(), state)).collect();
        Ok(Self { commit: Some(commit), files })
    }

    /// Restores deleted files after a session, and returns a notice for every file that was deleted or changed.
    pub(crate) fn restore(&self, git: &Git) -> Vec<FileNotice> {
        let mut notices = self.changes(git);
        let deleted = notices.iter_mut().filter(|notice| notice.action == FileAction::IgnoredDeleted);
        for notice in deleted {
            let path = notice.path.to_bytes();
            let state = self.files.get(&path).filter(|state| !state.is_in_folder);
            if state.is_some_and(|state| self.write(git, &path, *state).is_ok()) {
                notice.action = FileAction::IgnoredRestored;
                notice.restore = None;
            }
        }
        notices
    }

    /// Writes a kept file with its permissions and time. Anything in its place stays.
    fn write(&self, git: &Git, path: &[u8], state: FileState) -> Result<(), Error> {
        let commit = self.commit.as_ref().ok_or(Error::Internal("a kept file without a commit"))?;
        let name = path_of(path).to_string_lossy();
        let kept = git.files_of(commit, &format!(":(literal){name}"))?;
        let object = kept.iter().find(|file| file.path == path).map(|file| file.object.as_str());
        let bytes = git.blobs(&object.into_iter().collect::<Vec<_>>())?.pop();
        let bytes = bytes.ok_or(Error::Internal("a kept file without content"))?;
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
            Some(state) if state == before => None,
            Some(_) => Some(self.notice(path, *before, FileAction::IgnoredChanged)),
            None => Some(self.notice(path, *before, FileAction::IgnoredDeleted)),
        });
        changed.collect()
    }

    fn notice(&self, path: &[u8], before: FileState, action: FileAction) -> FileNotice {
        FileNotice {
            path: RepoPath::of_bytes(path),
            action,
            reason: "git ignores it".to_owned(),
            restore: self.restore_command(path, before),
        }
    }

    /// The command that restores a file; none for a path that is not text.
    fn restore_command(&self, path: &[u8], before: FileState) -> Option<String> {
        let path = std::str::from_utf8(path).ok().filter(|path| !path.contains(char::is_control))?;
        let path = shell_word(path);
        let commit = self.commit.as_ref()?.prefix(12);
        let restore = format!("git restore --source={commit} -- {path}");
        let mode = before.mode & 0o777;
        // Git stores no other permissions.
        let is_usual = matches!(mode, 0o644 | 0o755);
        Some(if is_usual { restore } else { format!("{restore} && chmod {mode:o} {path}") })
    }

    /// The kept files that exist now.
    fn states_now(&self, git: &Git) -> BTreeMap<Vec<u8>, FileState> {
        let state = |path: &Vec<u8>, before: &FileState| {
            Some((path.clone(), small_file(&git.root().join(path_of(path)), before.is_in_folder)?))
        };
        self.files.iter().filter_map(|(path, before)| state(path, before)).collect()
    }
}

/// Every path that is kept for any run of the repository.
pub(super) fn kept_paths(git: &Git) -> Result<PathSet, Error> {
    let mut paths = PathSet::new();
    for (name, commit) in git.all_refs()? {
        let is_kept = name.starts_with("refs/runner/") && name.ends_with("/ignored");
        if let Some(commit) = is_kept.then(|| CommitId::new(commit).ok()).flatten() {
            paths.extend(git.files_of(&commit, ".")?.into_iter().map(|file| file.path));
        }
    }
    Ok(paths)
}

fn reference(run: &RunId) -> String {
    format!("refs/runner/{run}/ignored")
}

fn message(files: &BTreeMap<Vec<u8>, FileState>) -> String {
    let files: BTreeMap<RepoPath, FileState> =
        files.iter().map(|(path, state)| (RepoPath::of_bytes(path), *state)).collect();
    String::from_utf8_lossy(&canonical_json(&files)).into_owned()
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

fn content(git: &Git, path: &[u8]) -> Option<KeptFile> {
    let file = git.root().join(path_of(path));
    let bytes = atomic::read(&file, FILE_BYTES_MAX).ok().flatten()?;
    let is_executable = file.metadata().is_ok_and(|metadata| metadata.mode() & 0o100 != 0);
    Some(KeptFile { path: path.to_vec(), is_executable, bytes })
}
