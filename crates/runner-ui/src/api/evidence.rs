//! Documents about why a run stopped, and about what agents asked.

use schemars::JsonSchema;
use serde::Serialize;

/// What shows best why a run stopped.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StopEvidence {
    /// The iterations on the last task, newest first.
    pub iterations: Vec<u32>,
    pub line: Option<LogLine>,
    pub failure: Option<FailureExcerpt>,
    /// The newest attempts at the last task, newest first.
    pub attempts: Vec<AttemptEvidence>,
}

/// A line of a log.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LogLine {
    pub iter: u32,
    /// `guard`, `stderr` or `agent`.
    pub log: String,
    /// From 0.
    pub line: u64,
    pub text: String,
}

/// The lines of a log that show what failed: an assertion, a panic, an error of a compiler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailureExcerpt {
    /// The number of the first line, from 0.
    pub line: u64,
    pub lines: Vec<String>,
    /// `src/limit.rs:88:9`, if the lines name a place in a file.
    pub location: Option<String>,
}

/// One attempt at a task.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AttemptEvidence {
    pub iter: u32,
    /// The line with the failure.
    pub failure: Option<String>,
    /// Whether the newest attempt failed with the same line.
    pub is_same: bool,
    /// How many files outside `.runner/` it changed; null if git does not have its commits.
    pub files: Option<usize>,
    pub added: Option<u64>,
    pub removed: Option<u64>,
}

/// A question of an agent, as `runner questions` lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuestionView {
    /// The number that `runner answer` takes.
    pub number: usize,
    pub text: String,
    /// The answers, oldest first.
    pub answers: Vec<String>,
}
