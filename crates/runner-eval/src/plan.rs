//! The plan of an evaluation run: its trials, each a case, an agent and a number. Made from [`crate::case`], executed by
//! [`crate::execution`].

pub(crate) mod agent;
pub(crate) mod partition;
pub(crate) mod run_name;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::case::suite::LoadedCase;
use crate::result::RunnerVersion;
use agent::EvalAgent;
use run_name::EvalRunName;

/// The version of [`EvalPlan`].
pub(crate) const PLAN_SCHEMA: &str = "runner.eval.plan/1";

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
    pub(crate) agent: String,
    /// Counts from 1 for each case and agent.
    pub(crate) trial: u32,
}

impl PlannedTrial {
    /// The part of its results' names that is the same in every run and attempt.
    pub(crate) fn slug(&self) -> String {
        let agent = self.agent.parse::<EvalAgent>().map_or_else(|_| self.agent.clone(), |agent| agent.slug());
        format!("{agent}.t{:02}", self.trial)
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
        trials: u32,
        runner: RunnerVersion,
    ) -> Self {
        let mut planned = Vec::new();
        for trial in 1..=trials {
            for loaded in cases {
                for agent in agents.iter().filter(|agent| agent.can_run(&loaded.case)) {
                    let case = loaded.case.id.clone();
                    planned.push(PlannedTrial { case, agent: agent.to_string(), trial });
                }
            }
        }
        let mut planned_cases = Vec::new();
        for loaded in cases {
            if planned.iter().any(|trial| trial.case == loaded.case.id) {
                let sha256 = loaded.digests.whole.to_string();
                planned_cases.push(PlannedCase { id: loaded.case.id.clone(), sha256 });
            }
        }
        Self { runner, cases: planned_cases, trials: planned }
    }
}
