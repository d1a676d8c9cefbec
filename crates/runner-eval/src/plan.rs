//! The plan of an evaluation run: its trials, each a case, an agent and a number. Made from [`crate::case`], executed by
//! [`crate::execution`].

pub(crate) mod agent;
pub(crate) mod arm;
pub(crate) mod partition;
pub(crate) mod run_name;

use std::fmt;

use runner_core::model::digest::Sha256;
use serde::{Deserialize, Serialize};

use crate::case::suite::LoadedCase;
use crate::result::RunnerVersion;
use agent::EvalAgent;
use arm::{BASE_ARM, ExperimentArm};
use run_name::EvalRunName;
use runner_term::CommandError;

/// The version of [`EvalPlan`].
pub(crate) const PLAN_SCHEMA: &str = "runner.eval.plan/2";

/// `plan.json` in the folder of an evaluation run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EvalPlan {
    pub(crate) schema: String,
    pub(crate) run: EvalRunName,
    pub(crate) created_at: String,
    #[serde(flatten)]
    pub(crate) scope: PlanScope,
}

/// What an evaluation run measures. It identifies a run: the same command gives the same scope and continues it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanScope {
    pub(crate) runner: RunnerVersion,
    pub(crate) cases: Vec<PlannedCase>,
    pub(crate) arms: Vec<ExperimentArm>,
    /// In the order in which they run.
    pub(crate) trials: Vec<PlannedTrial>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlannedCase {
    pub(crate) id: String,
    /// The digest of everything that belongs to the case when the plan is made.
    pub(crate) sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlannedTrial {
    pub(crate) case: String,
    /// The agent, followed by `+` and the name of the arm if it is not the base.
    pub(crate) agent: String,
    /// Counts from 1 for each case and agent.
    pub(crate) trial: u32,
}

/// The agent and the arm of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrialSubject {
    pub(crate) agent: EvalAgent,
    pub(crate) arm: String,
}

impl TrialSubject {
    pub(crate) fn label(agent: &EvalAgent, arm: &str) -> String {
        if arm == BASE_ARM { agent.to_string() } else { format!("{agent}+{arm}") }
    }

    pub(crate) fn parse(label: &str) -> Result<Self, CommandError> {
        let (agent, arm) = label.split_once('+').unwrap_or((label, BASE_ARM));
        let agent = agent.parse().map_err(|error: String| {
            CommandError::refused("agent", format!("no such agent: `{agent}`")).cause(error)
        })?;
        Ok(Self { agent, arm: arm.to_owned() })
    }
}

/// A label of an agent and arm in file names, where some of its characters are not allowed.
fn label_slug(label: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '=');
    let slug: String = label.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    if slug == label && slug.len() <= SLUG_BYTES_MAX {
        return slug;
    }
    // Two labels must not share a name.
    let digest = Sha256::of(label.as_bytes()).to_string();
    let head: String = slug.chars().take(SLUG_BYTES_MAX).collect();
    let tail: String = digest.chars().take(6).collect();
    if label.contains('+') { format!("{head}~{tail}") } else { head }
}

/// Longer labels are cut, because a file name has at most 255 bytes.
const SLUG_BYTES_MAX: usize = 80;

impl PlannedTrial {
    /// The part of its results' names that is the same in every run and attempt.
    pub(crate) fn slug(&self) -> String {
        format!("{}.t{:02}", label_slug(&self.agent), self.trial)
    }

    /// The name of the folder of an attempt's result.
    pub(crate) fn eval_run_id(&self, run: &EvalRunName, attempt: u32) -> String {
        format!("{run}.{}.a{attempt}", self.slug())
    }
}

impl fmt::Display for PlannedTrial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}.t{:02}", self.case, self.agent, self.trial)
    }
}

impl PlanScope {
    /// Plans `trials` trials of every case with every agent that can run it. All first trials come before all second
    /// ones, so that a run that ends early has tried every case.
    pub(crate) fn new(
        cases: &[LoadedCase],
        agents: &[EvalAgent],
        arms: &[ExperimentArm],
        trials: u32,
        runner: RunnerVersion,
    ) -> Result<Self, CommandError> {
        let mut planned = Vec::new();
        for trial in 1..=trials {
            for loaded in cases {
                for agent in agents.iter().filter(|agent| agent.can_run(&loaded.case)) {
                    for arm in arms {
                        let case = loaded.case.id.clone();
                        let agent = TrialSubject::label(agent, &arm.name);
                        planned.push(PlannedTrial { case, agent, trial });
                    }
                }
            }
        }
        let mut planned_cases = Vec::new();
        for loaded in cases {
            if planned.iter().any(|trial| trial.case == loaded.case.id) {
                let sha256 = loaded.digests()?.whole.to_string();
                planned_cases.push(PlannedCase { id: loaded.case.id.clone(), sha256 });
            }
        }
        Ok(Self { runner, cases: planned_cases, arms: arms.to_vec(), trials: planned })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_names_agent_and_arm() {
        let agent: EvalAgent = "codex:gpt-6.1-sol".parse().unwrap();
        assert_eq!(TrialSubject::label(&agent, BASE_ARM), "codex:gpt-6.1-sol");
        let label = TrialSubject::label(&agent, "max_attempts_default=1");
        assert_eq!(label, "codex:gpt-6.1-sol+max_attempts_default=1");
        let subject = TrialSubject::parse(&label).unwrap();
        assert_eq!((subject.agent, subject.arm.as_str()), (agent, "max_attempts_default=1"));
        assert!(TrialSubject::parse("nothing+x").is_err());
    }

    #[test]
    fn slugs_of_arms_are_file_names_and_differ() {
        let slug = |agent: &str| PlannedTrial { case: "c".into(), agent: agent.into(), trial: 1 }.slug();
        assert_eq!(slug("opencode:x/y"), "opencode_x_y.t01");
        assert_eq!(slug("case+a=1"), "case+a=1.t01");
        assert_ne!(slug("case+prompts=a/b"), slug("case+prompts=a_b"));
        assert!(!slug("case+prompts=a/b").contains('/'));
        assert!(slug(&format!("case+{}", "x".repeat(300))).len() < 120);
    }
}
