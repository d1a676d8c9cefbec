//! Documents about logs, diffs, searches, verification and errors.

use schemars::JsonSchema;
use serde::Serialize;

use super::{IterationRow, LogLine, NodeName};

/// Some lines of a log.
#[derive(Debug, Default, Serialize, JsonSchema)]
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

/// The parts of a log that can be folded.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogGroups {
    /// By their first lines; a group inside another one comes after it.
    pub groups: Vec<LogGroup>,
    /// Whether lines begin with the time of the day.
    pub has_times: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct LogGroup {
    /// The line with its heading, from 0.
    pub first: u64,
    pub last: u64,
    pub title: String,
    /// How long it took, if the log has that.
    pub seconds: Option<f64>,
}

/// What changed in an iteration.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiffView {
    pub from: String,
    /// Null while the changes are in the work tree only.
    pub to: Option<String>,
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

/// Nodes, iterations, files and lines of logs that contain the text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchResults {
    pub nodes_total: usize,
    pub nodes: Vec<NodeName>,
    pub iterations_total: usize,
    pub iterations: Vec<IterationRow>,
    pub files_total: usize,
    pub files: Vec<FileHistory>,
    /// Lines of logs, of the newest iterations first; only with `logs=1`.
    pub logs: Vec<LogLine>,
    /// How many iterations' logs were searched: a search ends after some time.
    pub logs_searched: usize,
}

/// Whether git alone proves that every rule held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifyVerdict {
    Verified,
    Violated,
    /// What could be checked holds, but not everything could be checked.
    Partial,
    /// The run could not be verified here.
    Unknown,
}

/// The result of verifying a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerifyResult {
    pub verdict: VerifyVerdict,
    /// The verdict as a sentence.
    pub summary: String,
    /// The violated rules, in the order of the commits.
    pub findings: Vec<VerifyFinding>,
    /// How many rules were violated, listed in `findings` or not.
    pub violations: usize,
    pub commits: usize,
    pub iterations: u64,
    /// What could not be checked here.
    pub unchecked: Vec<String>,
    /// What to type to verify the run yourself.
    pub command: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerifyFinding {
    pub rule: String,
    /// What the rule requires.
    pub requirement: String,
    pub commit: String,
    pub iter: Option<u32>,
    pub expected: String,
    pub found: String,
}

/// The files that the iterations of a run changed, without those below `.runner/`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunFiles {
    pub run: Option<String>,
    /// By path.
    pub files: Vec<FileHistory>,
    /// What the run changed from its first to its last commit; none where git does not have them.
    pub net: Option<NetChange>,
    /// How many iterations are not included, because neither their patch nor their commits exist here.
    pub unknown: usize,
}

/// The difference between two commits, without files below `.runner/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NetChange {
    pub files: usize,
    pub added: u64,
    pub removed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileHistory {
    pub path: String,
    /// Oldest first.
    pub touches: Vec<FileTouch>,
}

/// The change of one file in one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileTouch {
    pub iter: u32,
    /// Null for a binary file.
    pub added: Option<u64>,
    pub removed: Option<u64>,
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
