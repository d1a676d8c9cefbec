//! Staging what a session, a guard or a crash left in the work tree. It always succeeds: every byte of a regular file is
//! staged or set aside, whatever the work tree contains.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use runner_core::layout::{Doc, DocOwner, RUNNER_DIR, TOOLS_FILE};
use runner_core::model::id::IterationNumber;
use runner_core::redact::FileKey;
use runner_core::step::{FileAction, FileNotice};

use super::aside::{AsideFolder, AsideItem};
use super::ignore_rules::keep_ignored;
use super::key_files::key_in;
use super::obstacles::{WatchedCall, is_special, watched};
use super::permissions::{FolderAccess, open_file, open_folder};
use super::scan::{changed_files, is_refusal, note_removed};
use super::submodules::release_submodules;
use crate::error::Error;
use crate::fs::atomic;
use crate::git::{ChangedPaths, Conversion, Git, PathChange, ScanResult, path_of};
use crate::paths::is_runner_path;

/// A file larger than this is set aside instead of committed.
const FILE_BYTES_MAX: u64 = 50 << 20;

/// How many calls, and how much time, the search for paths that git refuses may take. After that, the rest is stored without
/// conversion.
const SEARCH_CALLS_MAX: u32 = 1_000;
const SEARCH_TIME_MAX: Duration = Duration::from_secs(60);

/// A session that copies a key of the user's environment into a file must not put it into the history of the branch.
const ENVIRONMENT_KEY: &str = "it contains a key of your environment";
const REFUSED_NAME: &str = "git refuses its name";
const REFUSED_CONTENT: &str = "git could not store it";
const CONVERSION_FAILED: &str = "git could not apply its attributes";

/// The changes that a session left in the work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StagedChanges {
    /// The staged paths: all that differ from what the index described.
    pub(crate) changed: ChangedPaths,
    /// Files that are not committed as the session left them.
    pub(crate) notices: Vec<FileNotice>,
    /// Files of the run that changed and that an agent may not change: perhaps the user edited them meanwhile.
    pub(crate) withheld: Vec<Vec<u8>>,
    /// Staged files that contain what looks like a key.
    pub(crate) with_keys: Vec<Vec<u8>>,
}

/// Which changes are staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StageScope {
    /// Those that an agent may make.
    Agent,
    All,
}

/// Stages what a session left, as far as an agent may change it. The index describes the commit that the session began from.
pub(crate) fn stage(git: &Git, index: &Path, iter: IterationNumber) -> Result<StagedChanges, Error> {
    stage_scope(git, index, &iter.to_string(), StageScope::Agent)
}

/// Stages everything in the work tree. What cannot be staged is set aside in the folder `name`. Afterwards git can reset the
/// work tree: no folder with a staged file is read-only.
pub(crate) fn stage_all(git: &Git, index: &Path, name: &str) -> Result<StagedChanges, Error> {
    let staged = stage_scope(git, index, name, StageScope::All)?;
    for path in staged.changed.keys() {
        let mut folders = path_of(path).ancestors().skip(1).map(|folder| git.root().join(folder));
        folders.find(|folder| folder.is_dir()).iter().for_each(|folder| open_folder(folder));
    }
    Ok(staged)
}

fn stage_scope(git: &Git, index: &Path, name: &str, scope: StageScope) -> Result<StagedChanges, Error> {
    let mut aside = AsideFolder::new(git, name);
    release_submodules(git, index, &mut aside)?;
    let paths = changed_files(git, index, &mut aside)?;
    let paths = keep_ignored(git, index, &mut aside, paths)?;
    let mut changed = ChangedPaths::new();
    let mut rejected = Vec::new();
    let mut withheld = Vec::new();
    let mut with_keys = Vec::new();
    for (path, change) in paths {
        if !is_staged(git, &path, scope) {
            if is_runner_path(&path)
                && !may_agent_change(&path)
                && is_regular_file(&git.root().join(path_of(&path)))
            {
                withheld.push(path);
            }
            continue;
        }
        let mut reason = reason_to_set_aside(&git.root().join(path_of(&path)));
        if reason.is_none() && scope == StageScope::Agent {
            match key_in(git, index, &path) {
                Some(FileKey::OfEnvironment { .. }) => reason = Some(ENVIRONMENT_KEY),
                Some(FileKey::Likely) => with_keys.push(path.clone()),
                None => {}
            }
        }
        match reason {
            Some(reason) => rejected.push(AsideItem { path, reason }),
            None => drop(changed.insert(path, change)),
        }
    }
    rejected.extend(add(git, index, &changed, &mut aside)?);
    let restored: Vec<Vec<u8>> = rejected.iter().map(|item| item.path.clone()).collect();
    changed.retain(|path, _| !restored.contains(path));
    aside.put(&rejected)?;
    restore_committed(git, index, &restored, &mut changed)?;
    Ok(StagedChanges { changed, notices: aside.notices(), withheld, with_keys })
}

fn is_staged(git: &Git, path: &[u8], scope: StageScope) -> bool {
    let is_in_place = || !is_runner_path(path) || is_regular_file(&git.root().join(path_of(path)));
    match scope {
        StageScope::Agent => may_agent_change(path) && !is_beyond_link(git, path) && is_in_place(),
        StageScope::All => !is_beyond_link(git, path),
    }
}

/// Stages paths: those that git refuses without conversion, and returns those that it refuses even then.
fn add(
    git: &Git,
    index: &Path,
    changed: &ChangedPaths,
    aside: &mut AsideFolder<'_>,
) -> Result<Vec<AsideItem>, Error> {
    let paths: Vec<Vec<u8>> = changed.keys().cloned().collect();
    let WatchedCall { result, removed } =
        watched(git.root(), || PathSearch::new(git, index, Conversion::Configured).add(&paths));
    note_removed(git, index, aside, &removed)?;
    let first = result?;
    let raw: Vec<Vec<u8>> = first.refused;
    // Git compares the content of a file that is as new as the index, and the converted content would differ.
    for file in raw.iter().map(|path| git.root().join(path_of(path))).filter(|file| is_regular_file(file)) {
        open_file(&file);
        atomic::backdate_mtime(&file)?;
    }
    let second = PathSearch::new(git, index, Conversion::None).add(&raw)?;
    for path in raw.iter().filter(|path| !second.refused.contains(path)) {
        aside.note(path, FileAction::StoredRaw, CONVERSION_FAILED);
    }
    let content = second.refused.into_iter().map(|path| AsideItem { path, reason: REFUSED_CONTENT });
    let mut rejected: Vec<AsideItem> = content.collect();
    if first.scan == ScanResult::Partial || second.scan == ScanResult::Partial {
        let skipped = git.differing_paths(index)?;
        let is_skipped = |path: &&Vec<u8>| changed.get(*path) == Some(&PathChange::Untracked);
        let names = skipped.iter().filter(is_skipped).cloned();
        rejected.extend(names.map(|path| AsideItem { path, reason: REFUSED_NAME }));
    }
    Ok(rejected)
}

/// Restores the committed version of tracked files that were set aside, so that the guard sees what is committed.
fn restore_committed(
    git: &Git,
    index: &Path,
    paths: &[Vec<u8>],
    changed: &mut ChangedPaths,
) -> Result<(), Error> {
    if paths.is_empty() {
        return Ok(());
    }
    let folders = paths.iter().map(|path| git.root().join(path_of(path)));
    let _access: Vec<FolderAccess> = folders.map(|file| FolderAccess::open(file.parent())).collect();
    if git.check_out(index, paths).is_ok() {
        return Ok(());
    }
    // Where nothing can be written, the commit has what the guard sees: the file is deleted.
    git.add_paths(index, paths, Conversion::None)?;
    changed.extend(paths.iter().map(|path| (path.clone(), PathChange::Deleted)));
    Ok(())
}

/// The paths that git refused, and whether it skipped others without an error.
struct AddedPaths {
    refused: Vec<Vec<u8>>,
    scan: ScanResult,
}

/// Adds paths to an index and finds those that git refuses: it adds none of a list with one bad path.
struct PathSearch<'g> {
    git: &'g Git,
    index: &'g Path,
    conversion: Conversion,
    calls: u32,
    began: Instant,
    scan: ScanResult,
}

impl<'g> PathSearch<'g> {
    fn new(git: &'g Git, index: &'g Path, conversion: Conversion) -> Self {
        Self { git, index, conversion, calls: 0, began: Instant::now(), scan: ScanResult::Complete }
    }

    fn add(mut self, paths: &[Vec<u8>]) -> Result<AddedPaths, Error> {
        let mut refused = Vec::new();
        if !self.try_add(paths)? {
            // Only these run a program or convert text, so the others are likely to be fine.
            let converted = self.git.converted_paths(paths).unwrap_or_default();
            let (suspects, others): (Vec<_>, Vec<_>) =
                paths.iter().cloned().partition(|path| converted.contains(path));
            self.bisect(&others, &mut refused)?;
            self.bisect(&suspects, &mut refused)?;
        }
        Ok(AddedPaths { refused, scan: self.scan })
    }

    fn bisect(&mut self, paths: &[Vec<u8>], refused: &mut Vec<Vec<u8>>) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        let is_over = self.calls >= SEARCH_CALLS_MAX || self.began.elapsed() > SEARCH_TIME_MAX;
        if !is_over && self.try_add(paths)? {
            return Ok(());
        }
        if is_over || paths.len() == 1 {
            refused.extend_from_slice(paths);
            return Ok(());
        }
        let (first, second) = paths.split_at(paths.len() / 2);
        self.bisect(first, refused)?;
        self.bisect(second, refused)
    }

    /// Whether git accepts all of these paths.
    fn try_add(&mut self, paths: &[Vec<u8>]) -> Result<bool, Error> {
        self.calls += 1;
        match self.git.add_paths(self.index, paths, self.conversion) {
            Ok(scan) => {
                if scan == ScanResult::Partial {
                    self.scan = scan;
                }
                Ok(true)
            }
            Err(error) if is_refusal(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Why a file cannot be committed. Makes it readable to its owner first.
fn reason_to_set_aside(file: &Path) -> Option<&'static str> {
    if is_special(file) {
        return Some("not a regular file");
    }
    let size = file.symlink_metadata().ok().filter(fs::Metadata::is_file)?.len();
    if is_unreadable(file) {
        open_file(file);
        if is_unreadable(file) {
            return Some("it cannot be read");
        }
    }
    (size > FILE_BYTES_MAX).then_some("larger than 50 MiB")
}

fn is_unreadable(file: &Path) -> bool {
    fs::File::open(file).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// Whether an agent's change to this path is committed: anything outside the runner's folder; inside it the memory files
/// and the notes and artifacts of nodes. tools.json belongs to the user, like the configuration.
fn may_agent_change(path: &[u8]) -> bool {
    let nodes = [RUNNER_DIR.as_bytes(), b"/nodes/"].concat();
    let in_node = path.strip_prefix(nodes.as_slice()).map(|rest| rest.splitn(2, |byte| *byte == b'/').nth(1));
    !is_runner_path(path)
        || in_node.is_some_and(|name| name != Some(TOOLS_FILE.as_bytes()))
        || Doc::at(path).is_some_and(|doc| doc.owner() == DocOwner::Memory)
}

/// Whether a folder on the way to a path is a link: then git does not see the path, whatever the link points to.
fn is_beyond_link(git: &Git, path: &[u8]) -> bool {
    path_of(path)
        .ancestors()
        .skip(1)
        .map(|folder| git.root().join(folder))
        .take_while(|folder| folder != git.root())
        .any(|folder| folder.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()))
}

/// In the runner's folder only regular files are staged: a memory file that an agent removed or replaced is restored.
fn is_regular_file(file: &Path) -> bool {
    file.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_runners_folder_agents_may_only_change_memory_and_node_files() {
        for path in
            ["src/a.rs", ".runner/state/questions.md", ".runner/nodes/x/artifacts/tools.json", ".runnerx/y"]
        {
            assert!(may_agent_change(path.as_bytes()), "{path}");
        }
        for path in [
            ".runner/GOAL.md",
            ".runner/state/tree.json",
            ".runner/state/config.toml",
            ".runner/prompts/x",
            ".runner/nodes/x/tools.json",
        ] {
            assert!(!may_agent_change(path.as_bytes()), "{path}");
        }
    }
}
