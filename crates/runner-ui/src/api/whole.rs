//! A whole run as one document, for `runner export` and for the page that is opened from a file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    DiffPatch, DiffView, IterationDetail, Iterations, LogHits, NodeDetail, Runs, SlimTree, Snapshot, Verdict,
};

/// A whole run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WholeRun {
    /// The format: `runner.export/1`.
    pub schema: String,
    /// What is not in here, in sentences.
    pub left_out: Vec<String>,
    pub snapshot: Snapshot,
    pub runs: Runs,
    pub iterations: Iterations,
    /// None where there is none that can be read.
    pub tree: Option<SlimTree>,
    /// By the node's id.
    pub nodes: BTreeMap<String, NodeDetail>,
    pub verdict: Verdict,
    /// By the iteration's number.
    pub details: BTreeMap<u32, WholeIteration>,
}

/// A whole iteration.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WholeIteration {
    pub detail: IterationDetail,
    /// None where git does not tell.
    pub diff: Option<DiffView>,
    /// By the file's path.
    pub patches: BTreeMap<String, DiffPatch>,
    /// By the log's name in addresses.
    pub logs: BTreeMap<String, WholeLog>,
}

/// A whole log, or the lines of it that were kept.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WholeLog {
    /// How many bytes the file has.
    pub bytes: u64,
    /// Where lines are left out, one says so.
    pub lines: Vec<String>,
    /// The lines that tell of a fault.
    pub errors: LogHits,
}
