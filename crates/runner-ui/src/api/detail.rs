//! Documents about logs, diffs, searches, verification and errors.

use schemars::JsonSchema;
use serde::Serialize;

use super::{IterationRow, NodeName};

/// Some lines of a log.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogPage {
    /// The lines of the whole log.
    pub total: u64,
    /// The bytes of the whole log.
    pub bytes: u64,
    /// The number of the first line in `lines`, from 0.
    pub from: u64,
    pub lines: Vec<String>,
    /// The indexes in `lines` of truncated lines.
    pub cut: Vec<u32>,
    /// Whether the last line has no line end yet.
    pub is_open: bool,
}

/// The lines of a log that match.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogHits {
    /// How many lines match, listed in `hits` or not.
    pub total: u64,
    /// How many lines were searched.
    pub searched: u64,
    pub hits: Vec<LogHit>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct LogHit {
    /// From 0.
    pub line: u64,
    pub text: String,
}

/// What changed in an iteration.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiffView {
    pub from: String,
    pub to: String,
    pub files: Vec<DiffFile>,
    pub tree: Vec<TreeChange>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct DiffFile {
    pub path: String,
    pub old_path: Option<String>,
    /// Null for a binary file.
    pub added: Option<u64>,
    pub removed: Option<u64>,
    /// Whether it is below `.runner/`; such files are shown last.
    pub is_runner_file: bool,
}

/// The patch of one file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiffPatch {
    pub path: String,
    pub lines: Vec<DiffLine>,
    /// Whether `lines` is not the whole patch.
    pub is_cut: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiffLine {
    pub kind: DiffKind,
    /// Its number before the change.
    pub old: Option<u32>,
    /// Its number after the change.
    pub new: Option<u32>,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffKind {
    /// The header of a file.
    Head,
    /// The header of a hunk.
    Hunk,
    Same,
    Added,
    Removed,
    /// A note by git, such as a missing newline.
    Note,
}

/// A node that an iteration changed.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TreeChange {
    pub id: String,
    pub title: String,
    /// `added`, `passed`, `attempts 1 → 2`.
    pub what: String,
}

/// Nodes and iterations that contain the text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchResults {
    pub nodes_total: usize,
    pub nodes: Vec<NodeName>,
    pub iterations_total: usize,
    pub iterations: Vec<IterationRow>,
}

/// Whether git alone proves that every rule held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifyVerdict {
    Verified,
    Violated,
    /// The run could not be verified here.
    Unknown,
}

/// The result of verifying a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerifyResult {
    pub verdict: VerifyVerdict,
    /// The verdict as a sentence.
    pub summary: String,
    pub details: Vec<String>,
    /// What to type to verify the run yourself.
    pub command: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorResponse {
    pub error: ErrorBody,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorBody {
    pub code: String,
    /// What failed, and why.
    pub message: String,
    pub hint: Option<String>,
    pub problems: Vec<String>,
}
