//! The rows of a run's iterations, kept between requests. A finished iteration does not change, so a request reads only the
//! newest ones again.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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

/// All iterations of a run, oldest first. Requests share them until one changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct IterationRows(Arc<RowList>);

#[derive(Debug, Default)]
struct RowList {
    rows: Vec<Arc<IterationRow>>,
    totals: OnceLock<RowTotals>,
}

impl Deref for IterationRows {
    type Target = [Arc<IterationRow>];

    fn deref(&self) -> &Self::Target {
        &self.0.rows
    }
}

impl From<Vec<Arc<IterationRow>>> for IterationRows {
    fn from(rows: Vec<Arc<IterationRow>>) -> Self {
        Self(Arc::new(RowList { rows, totals: OnceLock::new() }))
    }
}

impl IterationRows {
    /// What all rows come to, computed once.
    pub(crate) fn totals(&self) -> &RowTotals {
        self.0.totals.get_or_init(|| RowTotals::of(self))
    }
}

/// What the iterations of a run come to.
#[derive(Debug)]
pub(crate) struct RowTotals {
    /// The annotations of all iterations, each with its iteration.
    pub(crate) annotations: Vec<String>,
    pub(crate) failed_attempts: usize,
    pub(crate) started_ms: Option<u64>,
    /// The time in iterations whose times are known.
    pub(crate) busy_ms: Option<u64>,
}

impl RowTotals {
    fn of(rows: &[Arc<IterationRow>]) -> Self {
        let durations = rows.iter().filter_map(|row| Some(row.ended_ms?.saturating_sub(row.started_ms?)));
        Self {
            annotations: rows.iter().flat_map(|row| annotations(row)).collect(),
            failed_attempts: rows.iter().filter(|row| row.is_charged).count(),
            started_ms: rows.iter().find_map(|row| row.started_ms),
            busy_ms: durations.reduce(u64::saturating_add),
        }
    }
}

fn annotations(row: &IterationRow) -> impl Iterator<Item = String> {
    row.annotations.iter().map(move |annotation| format!("#{}: {annotation}", row.iter))
}

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
    rows: IterationRows,
    commits: &[IterationCommit],
) -> IterationRows {
    let mut newest = Vec::new();
    for row in rows.iter().skip(rows.len().saturating_sub(LIVE_ITERATIONS)) {
        let Some(iter) = IterationNumber::new(row.iter) else { return rows };
        let commit = commits.iter().rev().find(|commit| commit.iter == iter);
        newest.push(read_row(project, run, iter, commit));
    }
    if rows.ends_with(&newest) {
        return rows;
    }
    let settled = rows.iter().take(rows.len() - newest.len()).cloned();
    settled.chain(newest).collect::<Vec<_>>().into()
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
    Ok(rows.into())
}

/// Whether a known row is complete, and of this commit.
fn is_finished(row: &IterationRow, commit: Option<&IterationCommit>) -> bool {
    let is_same = commit.is_none_or(|commit| row.commit.as_deref() == Some(commit.commit.as_str()));
    row.outcome.is_some() && is_same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_those_of_all_rows() {
        let row = |iter: u32, started_ms: Option<u64>, ended_ms: Option<u64>| {
            let annotations = vec![format!("note {iter}")];
            let is_charged = iter == 2;
            Arc::new(IterationRow {
                iter,
                started_ms,
                ended_ms,
                is_charged,
                annotations,
                ..IterationRow::default()
            })
        };
        let rows = vec![row(1, None, Some(50)), row(2, Some(100), Some(130)), row(3, Some(200), Some(205))];
        let rows = IterationRows::from(rows);
        let totals = rows.totals();
        assert_eq!(totals.annotations, ["#1: note 1", "#2: note 2", "#3: note 3"]);
        assert_eq!(
            (totals.failed_attempts, totals.started_ms, totals.busy_ms),
            (1, Some(100), Some(35)),
            "a time without a beginning does not count"
        );
        let unfinished = IterationRows::from(vec![row(1, Some(7), None)]);
        assert_eq!((unfinished.totals().started_ms, unfinished.totals().busy_ms), (Some(7), None));
    }
}
