//! A run as one document, for `runner export` and for the page that is opened from a file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    DiffPatch, DiffView, IterationDetail, IterationList, LogGroups, LogHits, NodeDetail, PageSnapshot,
    RunFiles, RunList, TreeColumns, VerifyResult,
};

#[derive(Debug, Serialize, JsonSchema)]
pub struct RunExport {
    /// `runner.export/1`.
    pub schema: String,
    /// What was omitted, as sentences.
    pub omitted: Vec<String>,
    pub snapshot: PageSnapshot,
    pub runs: RunList,
    pub iterations: IterationList,
    /// Null where the tree is missing or invalid.
    pub tree: Option<TreeColumns>,
    /// By node id.
    pub nodes: BTreeMap<String, NodeDetail>,
    pub files: RunFiles,
    pub verify: VerifyExport,
    /// By iteration number; empty in an exported page, which has each iteration in an element of its own.
    pub details: BTreeMap<u32, IterationExport>,
}

/// The result of the verification, with the git objects that it is about.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VerifyExport {
    pub result: VerifyResult,
    /// What the audit reads of the run's commits, folders and documents, compressed and in base 64: the page audits them
    /// again. Null in an exported page, which has them in an element of its own, and where there is no repository.
    pub objects: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct IterationExport {
    pub detail: IterationDetail,
    /// Null where the commits are missing.
    pub diff: Option<DiffView>,
    /// By the path of the file.
    pub patches: BTreeMap<String, DiffPatch>,
    /// By the name of the log in addresses.
    pub logs: BTreeMap<String, LogExport>,
}

/// A log without the lines that were omitted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogExport {
    /// The size of the whole file.
    pub bytes: u64,
    /// One line in place of the omitted ones has their number.
    pub lines: Vec<String>,
    /// The lines that report an error.
    pub errors: LogHits,
    pub groups: LogGroups,
}
