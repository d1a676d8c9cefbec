//! A whole run as one document, for `runner export` and for the page that is opened from a file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    DiffPatch, DiffView, IterationDetail, IterationList, LogHits, NodeDetail, PageSnapshot, RunList,
    TreeColumns, VerifyResult,
};

/// A whole run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunExport {
    /// The format: `runner.export/1`.
    pub schema: String,
    /// What is not in here, in sentences.
    pub left_out: Vec<String>,
    pub snapshot: PageSnapshot,
    pub runs: RunList,
    pub iterations: IterationList,
    /// None where there is none that can be read.
    pub tree: Option<TreeColumns>,
    /// By the node's id.
    pub nodes: BTreeMap<String, NodeDetail>,
    pub verdict: VerifyResult,
    /// By the iteration's number.
    pub details: BTreeMap<u32, IterationExport>,
}

/// A whole iteration.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IterationExport {
    pub detail: IterationDetail,
    /// None where git does not tell.
    pub diff: Option<DiffView>,
    /// By the file's path.
    pub patches: BTreeMap<String, DiffPatch>,
    /// By the log's name in addresses.
    pub logs: BTreeMap<String, LogExport>,
}

/// A whole log, or the lines of it that were kept.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogExport {
    /// How many bytes the file has.
    pub bytes: u64,
    /// Where lines are left out, one says so.
    pub lines: Vec<String>,
    /// The lines that tell of a fault.
    pub errors: LogHits,
}
