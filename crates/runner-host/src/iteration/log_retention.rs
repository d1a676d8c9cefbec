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
use serde::Serialize;

use super::iteration_dir::{TREE_AFTER, TREE_BEFORE};
use crate::fs::log_folder::LogFolder;

/// The file that records which logs were removed.
pub const REMOVED_LOGS: &str = "logs-removed.json";
/// The files that stay when the logs of an iteration are removed.
const KEPT: [&str; 4] = ["meta.json", "output.json", "session.json", REMOVED_LOGS];
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

/// How far the policy has been applied to a run.
#[derive(Debug)]
pub(super) struct LogRetention {
    run: RunId,
    /// The first iteration that may have copies of the plan.
    next_tree: u32,
    /// The first iteration whose logs have not been considered.
    next: u32,
    /// Older iterations that failed and have all their logs, oldest first.
    failed: VecDeque<u32>,
}

impl LogRetention {
    pub(super) fn new(run: RunId) -> Self {
        Self { run, next_tree: 1, next: 1, failed: VecDeque::new() }
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
