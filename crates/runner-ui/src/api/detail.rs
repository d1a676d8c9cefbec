//! What is said of logs, changes, searches, proofs and faults.

use schemars::JsonSchema;
use serde::Serialize;

use super::{IterationRow, NodeName};

/// A piece of a log.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogPage {
    /// How many lines there are now.
    pub total: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The first line given here, from 0.
    pub from: u64,
    pub lines: Vec<String>,
    /// The places in `lines` of those that were too long to be given whole.
    pub cut: Vec<u32>,
    /// Whether the last line may still grow.
    pub is_open: bool,
}

/// What a search found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogHits {
    /// How many lines match: all of them, however many are listed.
    pub total: u64,
    /// How many lines were searched.
    pub searched: u64,
    pub hits: Vec<LogHit>,
}

/// A line that was found.
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

/// One changed file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiffFile {
    pub path: String,
    pub old_path: Option<String>,
    /// None for what is not text.
    pub added: Option<u64>,
    pub removed: Option<u64>,
    /// Whether the runner keeps it: shown after the work itself.
    pub is_runners: bool,
}

/// The patch of one file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiffPatch {
    pub path: String,
    pub lines: Vec<DiffLine>,
    /// Whether there is more than is given.
    pub is_cut: bool,
}

/// A line of a patch.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiffLine {
    pub kind: DiffKind,
    /// Its number before and after.
    pub old: Option<u32>,
    pub new: Option<u32>,
    pub text: String,
}

/// What a line of a patch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffKind {
    /// What is said about the file.
    Head,
    /// Where a piece begins.
    Hunk,
    Same,
    Added,
    Removed,
    /// A remark of git's.
    Note,
}

/// A node that is not as it was.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TreeChange {
    pub id: String,
    pub title: String,
    /// In words: `added`, `passed`, `attempts 1 → 2`.
    pub what: String,
}

/// Nodes and iterations that hold some words.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchResults {
    pub nodes_total: usize,
    pub nodes: Vec<NodeName>,
    pub iterations_total: usize,
    pub iterations: Vec<IterationRow>,
}

/// Whether the history proves itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerifyResult {
    /// `held`, `broken`, or `unknown` where this build cannot say.
    pub verdict: String,
    pub says: String,
    pub details: Vec<String>,
    /// What to type to see it oneself.
    pub command: Option<String>,
}

/// What went wrong with a request.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorResponse {
    pub error: ErrorBody,
}

/// Its parts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorBody {
    /// A stable word.
    pub code: String,
    /// What could not be done, and why.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
    pub problems: Vec<String>,
}
