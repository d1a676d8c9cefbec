//! The rows of a run's iterations, kept between requests. A finished iteration does not change, so a request reads only the
//! newest ones again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::object_id::CommitId;
use runner_host::clock::now_ms;
use runner_host::repo::readonly_repo::IterationCommit;

use crate::api::IterationRow;
use crate::error::RequestError;
use crate::read::confined_fs::FolderVersion;
use crate::read::iterations::{self, IterationRecord};
use crate::read::repo_reader::{RepoReader, RunSource};

/// How many of the newest iterations may still change.
const LIVE_ITERATIONS: usize = 2;
/// How many runs are kept.
const RUNS_MAX: usize = 16;

pub(crate) type IterationRows = Vec<Arc<IterationRow>>;

/// The version of the list of a run's iterations: its folder and its branch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListVersion {
    folder: Option<FolderVersion>,
    tip: Option<CommitId>,
}

#[derive(Clone, Debug)]
struct CachedRows {
    /// `None` if a change might not have another version.
    version: Option<ListVersion>,
    rows: IterationRows,
}

/// The rows of some runs.
#[derive(Debug, Default)]
pub(crate) struct RowCache {
    runs: Mutex<BTreeMap<RunId, CachedRows>>,
}

impl RowCache {
    fn known(&self, run: &RunId) -> Option<CachedRows> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned()
    }

    fn keep(&self, run: &RunId, rows: CachedRows) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.len() >= RUNS_MAX && !runs.contains_key(run) {
            runs.clear();
        }
        runs.insert(run.clone(), rows);
    }

    /// All iterations of a run, oldest first.
    pub(crate) fn rows(&self, project: &RepoReader, run: &RunSource) -> Result<IterationRows, RequestError> {
        let folder = project.run_folder(&run.id).ok();
        let folder_version = folder.as_ref().and_then(|folder| folder.version().ok());
        let tip = run.branch.as_ref().map(|branch| branch.commit.clone());
        let version = ListVersion { folder: folder_version, tip };
        let is_settled = folder_version.is_none_or(|version| version.is_settled(now_ms() / 1000));
        let known = self.known(&run.id);
        let commits = project.commits(run)?;
        let rows = match known {
            Some(known) if known.version.as_ref() == Some(&version) => {
                with_newest_read(project, run, known.rows, &commits)
            }
            Some(known) => read_rows(project, run, &known.rows, &commits)?,
            None => read_rows(project, run, &[], &commits)?,
        };
        self.keep(&run.id, CachedRows { version: is_settled.then_some(version), rows: rows.clone() });
        Ok(rows)
    }
}

fn read_row(
    project: &RepoReader,
    run: &RunSource,
    iter: IterationNumber,
    commit: Option<&IterationCommit>,
) -> Arc<IterationRow> {
    Arc::new(IterationRecord::read(project, run, iter).into_row(iter, commit))
}

/// The rows, of which only the newest may have changed.
fn with_newest_read(
    project: &RepoReader,
    run: &RunSource,
    mut rows: IterationRows,
    commits: &[IterationCommit],
) -> IterationRows {
    for row in rows.iter_mut().rev().take(LIVE_ITERATIONS) {
        let Some(iter) = IterationNumber::new(row.iter) else { continue };
        let commit = commits.iter().rev().find(|commit| commit.iter == iter);
        let newest = read_row(project, run, iter, commit);
        if *newest != **row {
            *row = newest;
        }
    }
    rows
}

/// The rows of every iteration that has a folder or a commit; finished ones are taken from the known rows.
fn read_rows(
    project: &RepoReader,
    run: &RunSource,
    known: &[Arc<IterationRow>],
    commits: &[IterationCommit],
) -> Result<IterationRows, RequestError> {
    let by_number: BTreeMap<IterationNumber, &IterationCommit> =
        commits.iter().map(|commit| (commit.iter, commit)).collect();
    let settled = known.len().saturating_sub(LIVE_ITERATIONS);
    let known: BTreeMap<u32, &Arc<IterationRow>> =
        known.iter().take(settled).map(|row| (row.iter, row)).collect();
    let mut rows = Vec::new();
    for iter in iterations::numbers(project, run)? {
        let commit = by_number.get(&iter).copied();
        let same = known.get(&iter.get()).filter(|row| is_finished(row, commit));
        rows.push(match same {
            Some(row) => Arc::clone(row),
            None => read_row(project, run, iter, commit),
        });
    }
    Ok(rows)
}

/// Whether a known row is complete, and of this commit.
fn is_finished(row: &IterationRow, commit: Option<&IterationCommit>) -> bool {
    let is_same = commit.is_none_or(|commit| row.commit.as_deref() == Some(commit.commit.as_str()));
    row.outcome.is_some() && is_same
}
