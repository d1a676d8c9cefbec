//! What is said of an evaluation: its runs, the grid of their trials, two of them side by side. The numbers are those of
//! `runner-eval`; nothing is computed here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The results of an evaluation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EvalView {
    /// The folder of results.
    pub results: String,
    /// The runs, the newest first.
    pub runs: Vec<EvalRun>,
    /// The one that is looked at; none where there is none.
    pub grid: Option<EvalGrid>,
}

/// A run of the evaluation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalRun {
    pub run: String,
    pub created_at: String,
    /// The version of the runner under test.
    pub runner: String,
    pub agents: Vec<String>,
    pub cases: u32,
    /// How many trials were planned.
    #[serde(rename(deserialize = "trials"))]
    pub units: u32,
    /// How many of them have a result.
    pub done: u32,
}

/// The cases and trials of a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalGrid {
    #[serde(rename(deserialize = "results"))]
    pub run: String,
    /// For the chances with k trials.
    pub k: u32,
    /// By agent, over all cases.
    pub agents: Vec<EvalScore>,
    /// By agent and case.
    pub cases: Vec<EvalScore>,
    /// Every attempt.
    pub trials: Vec<EvalTrial>,
    /// Planned trials that have no result.
    pub missing: Vec<EvalMissing>,
    /// Results that cannot be read, in words.
    pub unreadable: Vec<String>,
}

/// What trials say about an agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalScore {
    pub agent: String,
    /// None for the agent as a whole.
    pub case: Option<String>,
    /// How many cases have a score.
    pub cases: u32,
    /// How many trials say something about the agent.
    pub n: u32,
    pub successes: u32,
    /// How many say nothing about it.
    #[serde(rename(deserialize = "unscored"))]
    pub left_out: u32,
    #[serde(rename(deserialize = "pass_rate"))]
    pub rate: Option<f64>,
    /// Where the rate probably is, with 95 %.
    #[serde(rename(deserialize = "confidence_interval"))]
    pub interval: Option<EvalInterval>,
    pub pass_at_k: Option<f64>,
    pub pass_all_k: Option<f64>,
    pub secs_per_success: Option<f64>,
    pub usd_per_success: Option<f64>,
}

/// From where to where.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalInterval {
    pub low: f64,
    pub high: f64,
}

/// An attempt at a trial.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalTrial {
    #[serde(rename(deserialize = "case_id"))]
    pub case: String,
    pub agent: String,
    pub trial: u32,
    pub attempt: u32,
    /// The name of its folder.
    #[serde(rename(deserialize = "eval_run_id"))]
    pub id: String,
    /// Whether it is the last attempt, which counts.
    #[serde(rename(deserialize = "last"))]
    pub is_last: bool,
    /// Whether it says something about the agent.
    #[serde(rename(deserialize = "scored"))]
    pub is_scored: bool,
    /// `success`, `fail`, `stuck`, `error`, `skipped`.
    pub outcome: String,
    pub cause: Option<String>,
    pub why: Option<String>,
    /// How a case about the runner itself must end.
    pub expected: Option<String>,
    pub wall_secs: f64,
    pub iterations: u32,
    pub tokens: Option<u64>,
    #[serde(rename(deserialize = "microdollars"))]
    pub cost_microdollars: Option<u64>,
    pub started_at: String,
    pub checks: Vec<EvalCheck>,
}

/// A check of a case.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalCheck {
    pub name: String,
    /// Whether it was kept from the agent.
    pub hidden: bool,
    pub passed: bool,
    pub why: Option<String>,
    /// The last lines of its command, where it does not pass.
    pub output: Option<String>,
}

/// A trial that has no result.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalMissing {
    pub case: String,
    pub agent: String,
    pub trial: u32,
    /// The part of its results' names that is its own.
    pub slug: String,
    /// The newest attempt at it that has a workspace.
    #[serde(default)]
    pub id: Option<String>,
    /// Whether a process of this machine is at work on it.
    #[serde(default)]
    pub is_under_way: bool,
}

/// Two results side by side, paired by case.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalComparison {
    pub base: String,
    pub new: String,
    /// How many cases have a score on both sides.
    pub n: u32,
    pub difference: EvalDifference,
    /// What the difference means, in a sentence.
    #[serde(rename(deserialize = "summary"))]
    pub words: String,
    pub paired: EvalPairs,
    /// What cannot be compared, in words.
    pub notes: Vec<String>,
}

/// How much higher the new rate is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalDifference {
    pub mean: f64,
    pub interval: EvalInterval,
    /// In how many cases the new results are better, alike, worse.
    pub wins: u32,
    pub ties: u32,
    pub losses: u32,
    /// How likely chance alone would do that.
    pub p_value: f64,
    pub exact: bool,
}

/// The cases that both sides have a score of.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalPairs {
    pub cases: Vec<EvalPair>,
}

/// A case on both sides.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalPair {
    pub case: String,
    pub base: EvalCounts,
    pub new: EvalCounts,
    pub difference: f64,
}

/// Scored trials, counted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalCounts {
    pub successes: u32,
    pub n: u32,
}
