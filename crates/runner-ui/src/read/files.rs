//! The files that each iteration changed, and by that the history of each file.

use std::collections::BTreeMap;
use std::sync::Arc;

use runner_core::layout::RUNNER_DIR;
use runner_core::model::id::IterationNumber;
use runner_core::model::object_id::CommitId;

use crate::api::{FileHistory, FileTouch, IterationRow, NetChange, RunFiles};
use crate::error::RequestError;
use crate::read::iterations;
use crate::read::repo_reader::{RepoReader, RunSource};

/// The largest diff.patch that is read instead of asking git.
const PATCH_BYTES_MAX: u64 = 4 << 20;
/// How many iterations git is asked about in one request; the rest follows with the next one.
const GIT_CALLS_MAX: usize = 200;

/// The change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileChange {
    pub(crate) path: String,
    /// Lines added and removed; none for a binary file.
    pub(crate) added: Option<u64>,
    pub(crate) removed: Option<u64>,
}

/// The files outside `.runner/` that an iteration changed.
pub(crate) fn changes_of(
    project: &RepoReader,
    run: &RunSource,
    row: &IterationRow,
) -> Result<Arc<Vec<FileChange>>, RequestError> {
    let commits = commit_id(row.commit_before.as_deref()).zip(commit_id(row.commit.as_deref()));
    let (before, after) = commits.ok_or_else(RequestError::not_found)?;
    project.cached_changes(&after, || match recorded_changes(project, run, row) {
        Some(changes) => Ok(changes),
        None => committed_changes(project, &before, &after),
    })
}

fn commit_id(id: Option<&str>) -> Option<CommitId> {
    id.and_then(|id| CommitId::new(id).ok())
}

/// The files outside `.runner/` that differ between two commits.
fn committed_changes(
    project: &RepoReader,
    before: &CommitId,
    after: &CommitId,
) -> Result<Vec<FileChange>, RequestError> {
    let files = project.repo.changes(before, after)?.into_iter();
    Ok(files
        .filter(|file| !file.path.starts_with(RUNNER_DIR.as_bytes()))
        .map(|file| FileChange {
            path: String::from_utf8_lossy(&file.path).into_owned(),
            added: file.lines.map(|(added, _)| added),
            removed: file.lines.map(|(_, removed)| removed),
        })
        .collect())
}

/// The changes in an iteration's diff.patch, which is faster to read than to ask git; `None` if it has none.
fn recorded_changes(project: &RepoReader, run: &RunSource, row: &IterationRow) -> Option<Vec<FileChange>> {
    let folder = iterations::folder(project, run, IterationNumber::new(row.iter)?).ok()?;
    let patch = folder.read("diff.patch", PATCH_BYTES_MAX).ok()?;
    patch_changes(&String::from_utf8_lossy(&patch))
}

/// The changes in a patch; `None` if a path in it is quoted.
fn patch_changes(patch: &str) -> Option<Vec<FileChange>> {
    let mut changes: Vec<FileChange> = Vec::new();
    let mut in_hunk = false;
    for line in patch.lines() {
        if let Some(paths) = line.strip_prefix("diff --git ") {
            if paths.contains('"') {
                return None;
            }
            in_hunk = false;
            let path = paths.rsplit_once(" b/").map_or(paths, |(_, path)| path);
            changes.push(FileChange { path: path.to_owned(), added: Some(0), removed: Some(0) });
            continue;
        }
        let Some(change) = changes.last_mut() else { continue };
        let count = |number: &mut Option<u64>| *number = number.map(|number| number + 1);
        match line.as_bytes().first() {
            _ if line.starts_with("@@ ") => in_hunk = true,
            Some(b'+') if in_hunk => count(&mut change.added),
            Some(b'-') if in_hunk => count(&mut change.removed),
            _ if !in_hunk && (line.starts_with("Binary files ") || line == "GIT binary patch") => {
                (change.added, change.removed) = (None, None);
            }
            Some(_) | None => {}
        }
    }
    changes.retain(|change| !change.path.starts_with(RUNNER_DIR));
    Some(changes)
}

/// What the run as a whole changed, from its first to its last commit. A line that one iteration adds and a later one removes
/// does not count. `None` without these commits.
fn net_change(project: &RepoReader, run: &RunSource) -> Option<NetChange> {
    let rows = iterations::rows(project, run).ok()?;
    let first = rows.iter().find_map(|row| commit_id(row.commit_before.as_deref()))?;
    let last = rows.iter().rev().find_map(|row| commit_id(row.commit.as_deref()))?;
    let changes = committed_changes(project, &first, &last).ok()?;
    let sum = |lines: fn(&FileChange) -> Option<u64>| changes.iter().filter_map(lines).sum();
    Some(NetChange {
        files: changes.len(),
        added: sum(|change| change.added),
        removed: sum(|change| change.removed),
    })
}

/// The history of every file of a run, and what the run changed in the end.
pub(crate) fn run_files(project: &RepoReader, run: &RunSource) -> Result<RunFiles, RequestError> {
    let read = || Ok(RunFiles { net: net_change(project, run), ..file_histories(project, run)? });
    project.cached_run_files(run, read)
}

/// The history of every file of a run, without what it changed in the end.
pub(crate) fn file_histories(project: &RepoReader, run: &RunSource) -> Result<RunFiles, RequestError> {
    let mut files: BTreeMap<String, Vec<FileTouch>> = BTreeMap::new();
    let mut unknown = 0;
    let mut without_patch = 0;
    for row in iterations::rows(project, run)?.iter() {
        let is_recorded = row.has_logs;
        without_patch += usize::from(!is_recorded);
        let changes = if is_recorded || without_patch <= GIT_CALLS_MAX {
            changes_of(project, run, row).ok()
        } else {
            None
        };
        let Some(changes) = changes else {
            unknown += usize::from(row.outcome.is_some());
            continue;
        };
        for FileChange { path, added, removed } in changes.iter() {
            let touch = FileTouch { iter: row.iter, added: *added, removed: *removed };
            files.entry(path.clone()).or_default().push(touch);
        }
    }
    let files = files.into_iter().map(|(path, touches)| FileHistory { path, touches }).collect();
    Ok(RunFiles { run: Some(run.id.to_string()), files, net: None, unknown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_lists_its_files() {
        let patch = "diff --git a/src/a.rs b/src/a.rs\nindex 1..2\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1,2 @@\n-a\n+b\n+++c\n\
            diff --git a/x.png b/x.png\nBinary files a/x.png and b/x.png differ\n\
            diff --git a/.runner/state/tree.json b/.runner/state/tree.json\n@@ -1 +1 @@\n-a\n+b\n";
        let change = |path: &str, added, removed| FileChange { path: path.to_owned(), added, removed };
        let expected = [change("src/a.rs", Some(2), Some(1)), change("x.png", None, None)];
        assert_eq!(patch_changes(patch).unwrap(), expected);
        assert_eq!(patch_changes("diff --git \"a/\\303\" \"b/\\303\"\n"), None);
        assert_eq!(patch_changes(""), Some(Vec::new()));
    }
}
