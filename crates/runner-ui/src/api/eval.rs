//! Documents about an evaluation: its runs, the grid of their trials, and comparisons. `runner-eval` computes all numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, JsonSchema)]
pub struct EvalView {
    /// The folder of results.
    pub results: String,
    /// Newest first.
    pub runs: Vec<EvalRun>,
    /// The run that is shown; null where there is none.
    pub grid: Option<EvalGrid>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalRun {
    pub run: String,
    pub created_at: String,
    /// The version of the runner under test.
    pub runner: String,
    pub agents: Vec<String>,
    pub cases: u32,
    /// How many trials are planned.
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
    /// The k of pass@k.
    pub k: u32,
    /// Per agent, over all cases.
    pub agents: Vec<EvalScore>,
    /// Per agent and case.
    pub cases: Vec<EvalScore>,
    /// Every attempt at every trial.
    pub trials: Vec<EvalTrial>,
    /// Planned trials without a result.
    pub missing: Vec<EvalMissing>,
    /// Why results could not be read.
    pub unreadable: Vec<String>,
}

/// The score of an agent, on one case or over all.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalScore {
    pub agent: String,
    /// Null for the score over all cases.
    pub case: Option<String>,
    /// How many cases have a score.
    pub cases: u32,
    /// How many trials are scored.
    pub n: u32,
    pub successes: u32,
    /// How many trials are not scored.
    #[serde(rename(deserialize = "unscored"))]
    pub left_out: u32,
    #[serde(rename(deserialize = "pass_rate"))]
    pub rate: Option<f64>,
    /// The 95 % confidence interval of the rate.
    #[serde(rename(deserialize = "confidence_interval"))]
    pub interval: Option<EvalInterval>,
    pub pass_at_k: Option<f64>,
    pub pass_all_k: Option<f64>,
    pub secs_per_success: Option<f64>,
    pub usd_per_success: Option<f64>,
}

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
    /// The name of its folder, and its id.
    #[serde(rename(deserialize = "eval_run_id"))]
    pub id: String,
    /// Whether it is the last attempt, which counts.
    #[serde(rename(deserialize = "last"))]
    pub is_last: bool,
    /// Whether it counts for the agent's score.
    #[serde(rename(deserialize = "scored"))]
    pub is_scored: bool,
    /// `success`, `fail`, `stuck`, `error`, `skipped`.
    pub outcome: String,
    pub cause: Option<String>,
    pub why: Option<String>,
    /// The expected end of a case about the runner itself.
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
    /// Whether the agent could not see it.
    pub hidden: bool,
    pub passed: bool,
    pub why: Option<String>,
    /// The last lines that a failed check printed.
    pub output: Option<String>,
}

/// A planned trial without a result.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalMissing {
    pub case: String,
    pub agent: String,
    pub trial: u32,
    /// Its part of the names of its results.
    pub slug: String,
    /// Its newest attempt with a workspace.
    #[serde(default)]
    pub id: Option<String>,
    /// Whether a process of this machine works on it.
    #[serde(default)]
    pub is_under_way: bool,
}

/// A comparison of two results, paired by case.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalComparison {
    pub base: String,
    pub new: String,
    /// How many cases are scored on both sides.
    pub n: u32,
    pub difference: EvalDifference,
    pub direction: EvalDirection,
    /// What the difference means, as a sentence.
    #[serde(rename(deserialize = "summary"))]
    pub words: String,
    pub paired: EvalPairs,
    /// Why some of it cannot be compared.
    pub notes: Vec<String>,
}

/// What a difference shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvalDirection {
    Better,
    Worse,
    /// There is no conclusion.
    None,
}

/// The new rate minus the base rate.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalDifference {
    pub mean: f64,
    pub interval: EvalInterval,
    /// Whether the interval is about these cases, or about the population that they come from.
    pub scope: String,
    /// In how many cases the new results are better.
    pub wins: u32,
    pub ties: u32,
    pub losses: u32,
    /// The probability of such a difference by chance.
    pub p_value: f64,
    /// The probability of such a drop by chance.
    pub p_drop: f64,
    pub exact: bool,
}

/// The cases that are scored on both sides.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalPairs {
    pub cases: Vec<EvalPair>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalPair {
    pub case: String,
    pub base: EvalCounts,
    pub new: EvalCounts,
    pub difference: f64,
}

/// The scored trials of one case.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvalCounts {
    pub successes: u32,
    pub n: u32,
}
