//! What a trial leaves behind, as types: `meta.json`, `checks.json` and `lock.json` of its folder.
//!
//! Reading is strict: an unknown key, a missing one and a value of another kind are faults with their line. The types
//! only ever grow: what is added later is optional, so that old results stay readable.

pub(crate) mod run_folder;
pub(crate) mod selection;
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
    /// The runner ended with 0 and every check passes.
    Success,
    /// The runner ended with 0 and a check does not pass.
    Fail,
    /// The runner ended with 3.
    Stuck,
    /// The runner ended in any other way, or not by itself, or was never started.
    Error,
    /// Something that the case needs is not on this machine.
    Skipped,
}

impl TrialOutcome {
    /// All of them, best first.
    pub const ALL: [Self; 5] = [Self::Success, Self::Fail, Self::Stuck, Self::Error, Self::Skipped];

    /// The one word for it.
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

/// What kept a trial from being a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The agent's work is not what was asked for, or the agent gave up or crashed.
    Agent,
    /// The guard did not let the agent's work pass.
    Guard,
    /// A limit was reached: wall time, iterations, tokens, dollars.
    Limit,
    /// The model's provider failed.
    Provider,
    /// A program that is needed is not there.
    MissingTool,
    /// The evaluation itself failed: setup, teardown, disk, the runner's own faults.
    Harness,
    /// Somebody stopped it.
    Interrupted,
}

impl FailureCause {
    /// The one word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Guard => "guard",
            Self::Limit => "limit",
            Self::Provider => "provider",
            Self::MissingTool => "missing_tool",
            Self::Harness => "harness",
            Self::Interrupted => "interrupted",
        }
    }

    /// Whether a trial that ended for this cause says something about the agent. One that does not is no 0: it is left
    /// out of every score. A limit that an agent ran into is its own doing.
    pub fn is_scored(self) -> bool {
        match self {
            Self::Agent | Self::Guard | Self::Limit => true,
            Self::Provider | Self::MissingTool | Self::Harness | Self::Interrupted => false,
        }
    }

    /// Whether another attempt may end differently for no merit of the agent's.
    pub fn is_retried(self) -> bool {
        matches!(self, Self::Provider | Self::Harness)
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a trial cost, and where that is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialCost {
    /// Millionths of a dollar, as far as known; null when nothing is.
    pub microdollars: Option<u64>,
    /// No better than the worst part of the sum.
    pub basis: CostSource,
}

impl TrialCost {
    /// The same in dollars.
    pub fn usd(self) -> Option<f64> {
        // Exact up to nine thousand million dollars.
        #[expect(clippy::cast_precision_loss, reason = "for people and statistics, not for sums of money")]
        self.microdollars.map(|micro| micro as f64 / 1e6)
    }
}

/// The runner under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnerVersion {
    /// What it says of its version.
    pub version: String,
    /// The SHA-256 of the program.
    pub sha256: String,
}

/// `meta.json`: one attempt at one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialMeta {
    /// [`META_SCHEMA`].
    pub schema: String,
    /// The case.
    pub case_id: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// The agent as it was asked for: `KIND` or `KIND:MODEL`, or `oracle`, `nop`, `cheat`.
    pub agent: String,
    /// Which trial of this case and agent, from 1.
    pub trial: u32,
    /// Which attempt at this trial, from 1.
    pub attempt: u32,
    /// The evaluation run that the trial is part of, the same for all of its units.
    pub run: String,
    /// The name of the result's folder: run, agent, trial and attempt.
    pub eval_run_id: String,
    /// How it ended.
    pub outcome: TrialOutcome,
    /// Why; null exactly for a success.
    pub cause: Option<FailureCause>,
    /// The same in words; null for a success.
    pub why: Option<String>,
    /// What the case's file says that the outcome must be, if it says so.
    pub expected: Option<TrialOutcome>,
    /// The exit code of `runner loop`; null if it had none.
    pub runner_exit: Option<i32>,
    /// From the first process to the last check.
    pub wall_secs: f64,
    /// Of these, in `runner loop`.
    pub loop_secs: f64,
    /// How many iterations the run made.
    pub iterations: u32,
    /// Tokens read and written, as far as known; null when nothing is.
    pub tokens: Option<u64>,
    /// What it cost.
    pub cost: TrialCost,
    /// The runner under test.
    pub runner: RunnerVersion,
    /// When it began: `2026-11-16T05:00:03Z`.
    pub started_at: String,
    /// When it ended.
    pub ended_at: String,
}

/// The version of [`Meta`].
pub const META_SCHEMA: &str = "runner.eval.meta/1";

impl TrialMeta {
    /// Whether it counts in scores, as a success or as none.
    pub fn is_scored(&self) -> bool {
        self.outcome != TrialOutcome::Skipped && self.cause.is_none_or(FailureCause::is_scored)
    }
}

/// `checks.json`: what each check of the case said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckResults {
    /// [`CHECKS_SCHEMA`].
    pub schema: String,
    /// In the order of the case's file.
    pub checks: Vec<CheckResult>,
}

/// The version of [`Checks`].
pub const CHECKS_SCHEMA: &str = "runner.eval.checks/1";

/// What one check said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckResult {
    /// Its name: what the case's file calls it, or its type and its place.
    pub name: String,
    /// Its type, as in the case's file.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it was kept from the agent.
    pub hidden: bool,
    /// Whether it passes.
    pub passed: bool,
    /// Why it does not; null if it does.
    pub why: Option<String>,
    /// How long it took.
    pub seconds: f64,
    /// The last lines of what its command wrote; null if it ran none.
    pub output: Option<String>,
}

/// `lock.json`: what the result depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialInputs {
    /// [`LOCK_SCHEMA`].
    pub schema: String,
    /// The SHA-256 of the case's file.
    pub case_sha256: String,
    /// Of its fixture; null if it has none.
    pub fixture_sha256: Option<String>,
    /// Of its checks and hidden files.
    pub checks_sha256: String,
    /// Of the configuration that the run was started with.
    pub config_sha256: String,
    /// The runner under test.
    pub runner: RunnerVersion,
    /// The machine.
    pub host: MachineInfo,
    /// The SHA-256 of each file of the result that scores are made from, by its name.
    pub files: BTreeMap<String, String>,
    /// A fingerprint of all this with the run's own key: who does not have that cannot make a result.
    pub seal: String,
}

/// The version of [`Lock`].
pub const LOCK_SCHEMA: &str = "runner.eval.lock/1";

/// What the machine allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineInfo {
    /// The operating system.
    pub os: String,
    /// The processor's kind.
    pub arch: String,
    /// How many processors this process may use.
    pub cpus: u32,
    /// How much memory the machine has; null if it does not say.
    pub memory_bytes: Option<u64>,
    /// How many trials ran at the same time.
    pub jobs: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_agent_answers_for_is_scored() {
        let scored = [FailureCause::Agent, FailureCause::Guard, FailureCause::Limit];
        let left_out = [
            FailureCause::Provider,
            FailureCause::MissingTool,
            FailureCause::Harness,
            FailureCause::Interrupted,
        ];
        assert!(scored.iter().all(|cause| cause.is_scored() && !cause.is_retried()));
        assert!(left_out.iter().all(|cause| !cause.is_scored()));
    }

    #[test]
    fn a_word_is_the_same_in_files_and_in_lines() {
        for outcome in TrialOutcome::ALL {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
        }
        assert_eq!(
            serde_json::to_value(FailureCause::MissingTool).unwrap(),
            FailureCause::MissingTool.as_str()
        );
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let text = "{\n \"microdollars\": null,\n \"basis\": \"unknown\",\n \"currency\": \"EUR\"\n}";
        let fault = serde_json::from_str::<TrialCost>(text).unwrap_err().to_string();
        assert!(fault.contains("currency") && fault.contains("line 4"), "{fault}");
    }
}
