//! Which logs of iterations stay: the policy of `[logs]`, applied while a session runs.
//!
//! Copies of the plan go first, because every commit contains it. Of an iteration whose logs are removed, meta.json,
//! output.json and session.json stay, so that lists, `runner show` and `runner replay` still have what they need.

use std::collections::VecDeque;
use std::path::Path;

use runner_core::config::LogsConfig;
use runner_core::layout::RUNNER_DIR;
use runner_core::model::id::{IterationNumber, RunId};
use runner_core::step::{Outcome, RecordedIteration};
use serde::{Deserialize, Serialize};

use super::iteration_dir::{TREE_AFTER, TREE_BEFORE};
use crate::fs::atomic;
use crate::fs::log_folder::LogFolder;

/// The file that records which logs were removed.
pub const REMOVED_LOGS: &str = "logs-removed.json";
/// The files that stay when the logs of an iteration are removed.
const KEPT: [&str; 4] = [RECORDS[0], RECORDS[1], RECORDS[2], REMOVED_LOGS];

/// What every finished iteration keeps, and nothing changes any more.
pub(super) const RECORDS: [&str; 3] = ["meta.json", "output.json", "session.json"];
/// How many iterations pass before the progress is stored again.
const STORE_INTERVAL: u32 = 20;
const FILE_BYTES_MAX: u64 = 16 << 20;
const META_BYTES_MAX: u64 = 4 << 20;
/// How many iterations keep their copies of the plan, and how large these may be together.
const TREES_MAX: u64 = 10;
const TREE_BYTES_MAX: u64 = 64 << 20;

/// What was removed from the folder of an iteration.
#[derive(Debug, Serialize)]
struct RemovedLogs {
    schema: &'static str,
    /// The setting that removed them.
    keep_iterations: u64,
    keep_failed_iterations: u64,
    files: Vec<RemovedFile>,
}

#[derive(Debug, Serialize)]
struct RemovedFile {
    name: String,
    bytes: u64,
}

/// The run whose logs are pruned, and how far it is.
pub(super) struct RetentionScope<'a> {
    pub(super) root: &'a Path,
    pub(super) run: &'a RunId,
    pub(super) newest: IterationNumber,
    pub(super) tree_bytes: u64,
    pub(super) config: &'a LogsConfig,
}

/// How far the policy has been applied to a run. A file keeps it for the next process, which would otherwise look at every
/// iteration again.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogRetention {
    run: RunId,
    /// The first iteration that may have copies of the plan.
    next_tree: u32,
    /// The first iteration whose logs have not been considered.
    next: u32,
    /// Older iterations that failed and have all their logs, oldest first.
    failed: VecDeque<u32>,
    /// `next_tree` in the file.
    #[serde(skip)]
    stored: u32,
}

impl LogRetention {
    fn new(run: RunId) -> Self {
        Self { run, next_tree: 1, next: 1, failed: VecDeque::new(), stored: 1 }
    }

    /// Reads the file of an earlier process. One that is not about this run, or that this run cannot have, is ignored.
    pub(super) fn read(path: &Path, scope: &RetentionScope<'_>) -> Self {
        let bytes = atomic::read(path, FILE_BYTES_MAX).ok().flatten();
        let read = bytes.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let newest = scope.newest.get();
        let is_possible = |read: &Self| {
            let is_past = [read.next_tree, read.next].iter().all(|next| (1..=newest).contains(next));
            read.run == *scope.run && is_past && read.failed.iter().all(|failed| *failed < read.next)
        };
        match read.filter(is_possible) {
            Some(read) => Self { stored: read.next_tree, ..read },
            None => Self::new(scope.run.clone()),
        }
    }

    /// Writes the file, now and then. After a crash, a few iterations are looked at again.
    pub(super) fn store(&mut self, path: &Path) {
        if self.next_tree < self.stored.saturating_add(STORE_INTERVAL) {
            return;
        }
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        if atomic::overwrite(path, &bytes).is_ok() {
            self.stored = self.next_tree;
        }
    }

    /// Removes what the policy does not keep. A failure is ignored: the files are removed another time.
    pub(super) fn apply(&mut self, scope: &RetentionScope<'_>) {
        if self.run != *scope.run {
            *self = Self::new(scope.run.clone());
        }
        let newest = u64::from(scope.newest.get());
        let [keep, keep_failed] = scope.limits();
        let last = |kept: u64| u32::try_from(newest.saturating_sub(kept)).unwrap_or(u32::MAX);
        let trees = (TREE_BYTES_MAX / scope.tree_bytes.max(1)).clamp(1, TREES_MAX);
        for iter in self.next_tree..=last(trees) {
            let Some(folder) = scope.folder(iter) else { continue };
            let _ = folder.remove(TREE_BEFORE).and(folder.remove(TREE_AFTER));
        }
        self.next_tree = self.next_tree.max(last(trees) + 1);
        for iter in self.next..=last(keep) {
            let Some(folder) = scope.folder(iter) else { continue };
            if has_failed(&folder) {
                self.failed.push_back(iter);
            } else {
                scope.remove_logs(&folder);
            }
        }
        self.next = self.next.max(last(keep) + 1);
        while self.failed.len() as u64 > keep_failed {
            let Some(folder) = self.failed.pop_front().and_then(|iter| scope.folder(iter)) else { continue };
            scope.remove_logs(&folder);
        }
    }
}

impl RetentionScope<'_> {
    /// How many iterations, and how many failed ones before them, keep their logs.
    fn limits(&self) -> [u64; 2] {
        [self.config.keep_iterations.get(), self.config.keep_failed_iterations.get()].map(i64::unsigned_abs)
    }

    fn folder(&self, iter: u32) -> Option<LogFolder> {
        let iter = IterationNumber::new(iter)?.to_string();
        LogFolder::open(self.root, &[RUNNER_DIR, "iterations", self.run.as_str(), &iter])
    }

    /// Removes the logs of an iteration. The record of it comes first, so that no log disappears without one.
    fn remove_logs(&self, folder: &LogFolder) {
        let mut files = folder.files();
        let is_recorded = files.iter().any(|(name, _)| name == REMOVED_LOGS);
        files.retain(|(name, _)| !KEPT.contains(&name.as_str()));
        if files.is_empty() {
            return;
        }
        if !is_recorded && folder.write(REMOVED_LOGS, &self.record(&files)).is_err() {
            return;
        }
        files.iter().for_each(|(name, _)| drop(folder.remove(name)));
    }

    fn record(&self, files: &[(String, u64)]) -> Vec<u8> {
        let file = |(name, bytes): &(String, u64)| RemovedFile { name: name.clone(), bytes: *bytes };
        let [keep_iterations, keep_failed_iterations] = self.limits();
        let record = RemovedLogs {
            schema: "runner.logs_removed/1",
            keep_iterations,
            keep_failed_iterations,
            files: files.iter().map(file).collect(),
        };
        let mut bytes = serde_json::to_vec_pretty(&record).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

/// Whether an iteration failed, or did not end.
fn has_failed(folder: &LogFolder) -> bool {
    let meta =
        folder.read("meta.json", META_BYTES_MAX).and_then(|bytes| RecordedIteration::from_json(&bytes));
    let succeeded = [Outcome::Passed, Outcome::Decomposed, Outcome::Repaired, Outcome::Replanned];
    !meta.is_some_and(|record| succeeded.contains(&record.meta.outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope<'a>(root: &'a Path, run: &'a RunId, config: &'a LogsConfig, newest: u32) -> RetentionScope<'a> {
        RetentionScope { root, run, newest: IterationNumber::new(newest).unwrap(), tree_bytes: 1, config }
    }

    #[test]
    fn the_next_process_continues_where_the_last_one_was() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log-retention.json");
        let config = LogsConfig::default();
        let run: RunId = "demo".parse().unwrap();
        let read = |run: &RunId, newest: u32| {
            let scope = scope(folder.path(), run, &config, newest);
            let mut retention = LogRetention::read(&file, &scope);
            let begun_at = retention.next;
            retention.apply(&scope);
            retention.store(&file);
            begun_at
        };
        assert_eq!(read(&run, 1_000), 1);
        assert_eq!(read(&run, 1_001), 801);
        // Nothing is written before enough iterations have passed.
        assert_eq!(read(&run, 1_040), 801);
        assert_eq!(read(&run, 1_041), 841);
        // A fork has fewer iterations, another run has none of these, and a damaged file has nothing.
        assert_eq!(read(&run, 500), 1);
        assert_eq!(read(&"other".parse().unwrap(), 1_042), 1);
        std::fs::write(&file, "{").unwrap();
        assert_eq!(read(&run, 1_043), 1);
    }
}
