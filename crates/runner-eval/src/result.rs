//! The documents of a result, `meta.json`, `checks.json` and `inputs.json`, and the modules that store, sign and select
//! results.
//!
//! Decoding is strict: unknown keys, missing keys and wrong types are errors with their line. The types only ever grow, and
//! what is added later is optional, so that old results stay readable.

pub(crate) mod run_folder;
pub(crate) mod selection;
pub(crate) mod share;
pub(crate) mod signature;
pub mod stored_trial;

use std::collections::BTreeMap;
use std::fmt;

use runner_core::step::CostSource;
use serde::{Deserialize, Serialize};

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// `runner loop` exited with 0 and every check passed.
    Success,
    /// `runner loop` exited with 0 and a check failed.
    Fail,
    /// `runner loop` exited with 3.
    Stuck,
    /// `runner loop` exited with another code, was killed, or was not started.
    Error,
    /// A program that the case requires is missing on this machine.
    Skipped,
}

impl TrialOutcome {
    /// From best to worst.
    pub const ALL: [Self; 5] = [Self::Success, Self::Fail, Self::Stuck, Self::Error, Self::Skipped];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Fail => "fail",
            Self::Stuck => "stuck",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }
}

impl fmt::Display for TrialOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a trial is not a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The agent's work is wrong, or the agent gave up or crashed.
    Agent,
    /// The guard rejected the agent's work.
    Guard,
    /// A limit was reached: wall time, iterations, tokens, dollars.
    Limit,
    /// The model's provider failed.
    Provider,
    /// A required program is missing.
    MissingTool,
    /// The runner failed after a session had begun. It is part of what is measured.
    Runner,
    /// The evaluation itself failed before the first session: setup, disk, an error of the runner.
    Harness,
    /// A check is broken: it fails in the same way on the initial files, without any work of the agent.
    Grader,
    /// The user stopped the evaluation.
    Interrupted,
}

impl FailureCause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Guard => "guard",
            Self::Limit => "limit",
            Self::Provider => "provider",
            Self::MissingTool => "missing_tool",
            Self::Runner => "runner",
            Self::Harness => "harness",
            Self::Grader => "grader",
            Self::Interrupted => "interrupted",
        }
    }

    /// Whether such a trial counts against the agent. A limit that the agent reached does. A trial that is not scored is
    /// excluded from every score instead of counting as 0.
    pub fn is_scored(self) -> bool {
        match self {
            Self::Agent | Self::Guard | Self::Limit | Self::Runner => true,
            Self::Provider | Self::MissingTool | Self::Harness | Self::Grader | Self::Interrupted => false,
        }
    }

    /// Whether another attempt may succeed for reasons that have nothing to do with the agent.
    pub fn is_retried(self) -> bool {
        matches!(self, Self::Provider | Self::Harness)
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialCost {
    /// Null if no part of the cost is known.
    pub microdollars: Option<u64>,
    /// The least reliable source of any part of the sum.
    pub source: CostSource,
}

impl TrialCost {
    pub fn usd(self) -> Option<f64> {
        // Exact up to nine billion dollars.
        #[expect(clippy::cast_precision_loss, reason = "for people and statistics, not for sums of money")]
        self.microdollars.map(|micro| micro as f64 / 1e6)
    }
}

/// The runner under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnerVersion {
    /// The output of `runner --version`.
    pub version: String,
    /// The SHA-256 of the binary.
    pub sha256: String,
}

/// `meta.json`: one attempt at one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialMeta {
    /// Always [`META_SCHEMA`] in this version.
    pub schema: String,
    pub case_id: String,
    pub tags: Vec<String>,
    /// The value of `--agent`: `KIND`, `KIND:MODEL`, `case`, `oracle`, `nop` or `cheat`.
    pub agent: String,
    /// The number of the trial of this case and agent, from 1.
    pub trial: u32,
    /// The number of the attempt at this trial, from 1.
    pub attempt: u32,
    /// The evaluation run that the trial belongs to.
    pub run: String,
    /// The name of the result's folder: run, agent, trial and attempt.
    pub eval_run_id: String,
    pub outcome: TrialOutcome,
    /// Null exactly for a success.
    pub cause: Option<FailureCause>,
    /// The cause in a sentence; null for a success.
    pub why: Option<String>,
    /// The outcome that the case file requires, if it does.
    pub expected: Option<TrialOutcome>,
    /// The exit code of `runner loop`; null if it has none.
    pub runner_exit: Option<i32>,
    /// From the first process to the last check.
    pub wall_secs: f64,
    /// The part of `wall_secs` in `runner loop`.
    pub loop_secs: f64,
    /// The part before it: the repository, the case's setup, `runner init` and `runner start`.
    #[serde(default)]
    pub setup_secs: f64,
    /// The part after it, in the checks.
    #[serde(default)]
    pub check_secs: f64,
    pub iterations: u32,
    /// Input and output tokens; null if no part is known.
    pub tokens: Option<u64>,
    pub cost: TrialCost,
    /// Null if the loop did not start.
    pub metrics: Option<LoopMetrics>,
    /// Whether a trap of the case proves that the work cheated; null if the case has none, or if no check ran.
    #[serde(default)]
    pub cheated: Option<bool>,
    pub runner: RunnerVersion,
    /// If this is not an attempt of its own, but a new judgement of an earlier one: the number of that attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regrade_of: Option<u32>,
    /// In UTC, such as `2026-11-16T05:00:03Z`.
    pub started_at: String,
    pub ended_at: String,
}

/// The version of [`TrialMeta`].
pub const META_SCHEMA: &str = "runner.eval.meta/1";

impl TrialMeta {
    /// Whether the trial counts in scores.
    pub fn is_scored(&self) -> bool {
        self.outcome != TrialOutcome::Skipped && self.cause.is_none_or(FailureCause::is_scored)
    }
}

/// How the loop worked, from its own output and the run's documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopMetrics {
    /// Tasks without children, at the end.
    pub leaves: u32,
    pub leaves_passed: u32,
    /// Levels of the tree below the root.
    pub depth: u32,
    pub sessions: u32,
    /// Sessions that were charged as attempts.
    pub attempts_charged: u32,
    pub guard_runs: u32,
    pub guard_failures: u32,
    /// Sessions whose work failed a check of its task.
    #[serde(default)]
    pub check_failures: u32,
    /// Sessions whose answer or tree broke a rule.
    pub rule_violations: u32,
    pub agent_secs: f64,
    pub guard_secs: f64,
    /// Whether every check that the agent could know passed; null if there is none.
    pub visible_passed: Option<bool>,
    /// Whether every hidden check passed; null if there is none.
    pub hidden_passed: Option<bool>,
}

/// `checks.json`: the result of every check of the case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckResults {
    /// Always [`CHECKS_SCHEMA`] in this version.
    pub schema: String,
    /// In the order of the case file.
    pub checks: Vec<CheckResult>,
}

impl CheckResults {
    pub fn new(checks: Vec<CheckResult>) -> Self {
        Self { schema: CHECKS_SCHEMA.to_owned(), checks }
    }

    /// Whether a trap proves that the work cheated; none without a trap that ran.
    pub fn cheated(&self) -> Option<bool> {
        let mut traps = self.checks.iter().filter(|check| check.trap).peekable();
        traps.peek()?;
        Some(traps.any(|check| check.passed))
    }
}

/// The version of [`CheckResults`].
pub const CHECKS_SCHEMA: &str = "runner.eval.checks/1";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckResult {
    /// The name in the case file, or the type and the position of the check.
    pub name: String,
    /// The type in the case file.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether the check is hidden from the agent.
    pub hidden: bool,
    /// Whether it passes only if the work cheated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trap: bool,
    pub passed: bool,
    /// Whether the check itself is broken, so that it shows nothing about the work.
    pub grader_fault: bool,
    /// Null if the check passed.
    pub why: Option<String>,
    pub seconds: f64,
    /// The last output of the check's command; null if it ran none.
    pub output: Option<String>,
}

/// `inputs.json`: what the result depends on, and its signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialInputs {
    /// Always [`INPUTS_SCHEMA`] in this version.
    pub schema: String,
    /// The SHA-256 of everything that belongs to the case, except for its solution and its cheats.
    pub case_sha256: String,
    /// Null if the case has no fixture.
    pub fixture_sha256: Option<String>,
    /// Of the checks and the hidden files.
    pub checks_sha256: String,
    /// Of the configuration that the run started with. The path of a scenario is replaced by its digest.
    pub config_sha256: String,
    pub runner: RunnerVersion,
    /// The version of this program.
    pub evaluator: String,
    /// The version of the agent's program; null if it reported none.
    pub agent_version: Option<String>,
    /// The model, as the agent reported it.
    pub model: Option<String>,
    /// `bubblewrap` or `none`: what kept the trial away from the evaluation's own files.
    pub isolation: String,
    pub host: MachineInfo,
    /// The SHA-256 of each file of the result that scores are computed from, by its name.
    pub files: BTreeMap<String, String>,
    /// A digest of this document with the key of the evaluation run: without the key a result cannot be created.
    pub signature: String,
}

/// The version of [`TrialInputs`].
pub const INPUTS_SCHEMA: &str = "runner.eval.inputs/1";

/// The machine that a trial ran on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineInfo {
    pub os: String,
    pub arch: String,
    pub hostname: String,
    /// The version of the kernel.
    pub kernel: String,
    /// How many processors the evaluation could use.
    pub cpus: u32,
    /// Null if the system does not report it.
    pub memory_bytes: Option<u64>,
    /// How many trials ran at the same time.
    pub jobs: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_causes_on_the_agents_side_are_scored() {
        let scored = [FailureCause::Agent, FailureCause::Guard, FailureCause::Limit, FailureCause::Runner];
        let unscored = [
            FailureCause::Provider,
            FailureCause::MissingTool,
            FailureCause::Harness,
            FailureCause::Grader,
            FailureCause::Interrupted,
        ];
        assert!(scored.iter().all(|cause| cause.is_scored() && !cause.is_retried()));
        assert!(unscored.iter().all(|cause| !cause.is_scored()));
    }

    #[test]
    fn name_is_the_same_in_json_and_as_text() {
        for outcome in TrialOutcome::ALL {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
        }
        assert_eq!(
            serde_json::to_value(FailureCause::MissingTool).unwrap(),
            FailureCause::MissingTool.as_str()
        );
    }

    #[test]
    fn unknown_key_is_rejected_with_its_line() {
        let text = "{\n \"microdollars\": null,\n \"source\": \"unknown\",\n \"currency\": \"EUR\"\n}";
        let error = serde_json::from_str::<TrialCost>(text).unwrap_err().to_string();
        assert!(error.contains("currency") && error.contains("line 4"), "{error}");
    }
}
