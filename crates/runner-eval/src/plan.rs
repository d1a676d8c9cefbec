//! What a run of the evaluation is made of: units, each one case, one agent and the number of a trial; and shares of them.

pub(crate) mod agent;

use std::fmt;
use std::str::FromStr;

use runner_core::model::digest::Sha256;
use serde::{Deserialize, Serialize};

use crate::case::suite::LoadedCase;
use crate::plan::agent::EvalAgent;
use crate::result::RunnerVersion;

/// The version of [`Plan`].
pub(crate) const PLAN_SCHEMA: &str = "runner.eval.plan/1";

/// The plan of a run, as its folder holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EvalPlan {
    pub(crate) schema: String,
    /// The run's name.
    pub(crate) run: String,
    /// When it was made.
    pub(crate) created_at: String,
    #[serde(flatten)]
    pub(crate) scope: PlanScope,
}

/// What is measured with what. Two commands that ask for the same have the same scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanScope {
    /// The runner under test.
    pub(crate) runner: RunnerVersion,
    /// The cases.
    pub(crate) cases: Vec<PlannedCase>,
    /// In the order in which they are worked through.
    pub(crate) units: Vec<TrialUnit>,
}

/// A case as it was when the plan was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlannedCase {
    pub(crate) id: String,
    /// Of everything that belongs to it.
    pub(crate) sha256: String,
}

/// One trial to be made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrialUnit {
    pub(crate) case: String,
    pub(crate) agent: String,
    pub(crate) trial: u32,
}

impl TrialUnit {
    /// The part of its results' names that is the same in every run and attempt.
    pub(crate) fn slug(&self) -> String {
        let agent = self.agent.parse::<EvalAgent>().map_or_else(|_| self.agent.clone(), |agent| agent.slug());
        format!("{agent}.t{:02}", self.trial)
    }

    /// The name of the folder of an attempt's result.
    pub(crate) fn eval_run_id(&self, run: &str, attempt: u32) -> String {
        format!("{run}.{}.a{attempt}", self.slug())
    }
}

impl fmt::Display for TrialUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}.t{:02}", self.case, self.agent, self.trial)
    }
}

impl PlanScope {
    /// Every case with every agent that it can be given to, so many times. All first trials come before all second
    /// ones, so that a run that ends early has tried everything.
    pub(crate) fn new(kits: &[LoadedCase], agents: &[EvalAgent], trials: u32, runner: RunnerVersion) -> Self {
        let mut units = Vec::new();
        for trial in 1..=trials {
            for kit in kits {
                for agent in agents.iter().filter(|agent| agent.fits(&kit.case)) {
                    units.push(TrialUnit { case: kit.case.id.clone(), agent: agent.to_string(), trial });
                }
            }
        }
        let is_used = |kit: &&LoadedCase| units.iter().any(|unit| unit.case == kit.case.id);
        let planned =
            |kit: &LoadedCase| PlannedCase { id: kit.case.id.clone(), sha256: kit.digests.whole.to_string() };
        let cases = kits.iter().filter(is_used).map(planned).collect();
        Self { runner, cases, units }
    }
}

/// A share of the units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    how: PartitionMethod,
    /// From 1.
    part: u64,
    of: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartitionMethod {
    /// In turn: shares of equal size.
    Slice,
    /// By name: a unit stays in its share when others come and go.
    Hash,
}

impl FromStr for Partition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected slice:M/N or hash:M/N, with M from 1 to N".to_owned();
        let (how, share) = text.split_once(':').ok_or_else(wrong)?;
        let how = match how {
            "slice" => PartitionMethod::Slice,
            "hash" => PartitionMethod::Hash,
            _ => return Err(wrong()),
        };
        let (part, of) = share.split_once('/').ok_or_else(wrong)?;
        let (part, of) = (part.parse().map_err(|_| wrong())?, of.parse().map_err(|_| wrong())?);
        if part < 1 || part > of { Err(wrong()) } else { Ok(Self { how, part, of }) }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.how == PartitionMethod::Slice { "slice" } else { "hash" };
        write!(f, "{how}:{}/{}", self.part, self.of)
    }
}

/// The variable that says how many shares there are, where the system that starts them does not.
pub(crate) const SHARDS: &str = "RUNNER_EVAL_SHARDS";

impl Partition {
    /// The share that the system which started this process has in mind: Slurm's arrays, Kubernetes' indexed jobs,
    /// GitLab's parallel jobs. Nothing if none of them did.
    pub(crate) fn of_environment(get: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let number = |name: &str| match get(name) {
            None => Ok(None),
            Some(text) => match text.parse::<u64>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(format!("`{name}` is `{text}`, which is no number")),
            },
        };
        let shards = number(SHARDS)?;
        let (part, of) = if let Some(task) = number("SLURM_ARRAY_TASK_ID")? {
            let first = if shards.is_some() { 0 } else { number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0) };
            (task.saturating_sub(first) + 1, shards.or(number("SLURM_ARRAY_TASK_COUNT")?))
        } else if let Some(index) = number("JOB_COMPLETION_INDEX")? {
            (index + 1, shards)
        } else if let Some(index) = number("CI_NODE_INDEX")? {
            (index, shards.or(number("CI_NODE_TOTAL")?))
        } else {
            return Ok(None);
        };
        let Some(of) = of else {
            return Err(format!("share {part} is asked for, but `{SHARDS}` does not say of how many"));
        };
        if part < 1 || part > of {
            return Err(format!("share {part} of {of} is asked for"));
        }
        Ok(Some(Self { how: PartitionMethod::Slice, part, of }))
    }

    /// The units of this share.
    pub(crate) fn share(&self, units: &[TrialUnit]) -> Vec<TrialUnit> {
        let is_ours = |at: usize, unit: &TrialUnit| match self.how {
            PartitionMethod::Slice => at as u64 % self.of == self.part - 1,
            PartitionMethod::Hash => bucket(unit, self.of) == self.part - 1,
        };
        units
            .iter()
            .enumerate()
            .filter(|(at, unit)| is_ours(*at, unit))
            .map(|(_, unit)| unit.clone())
            .collect()
    }
}

/// The share that a unit's name leads to.
fn bucket(unit: &TrialUnit, of: u64) -> u64 {
    let digest = Sha256::of(unit.to_string().as_bytes()).to_string();
    let head = digest.get(..15).and_then(|head| u64::from_str_radix(head, 16).ok()).unwrap_or_default();
    head % of
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn units(count: u32) -> Vec<TrialUnit> {
        (1..=count).map(|trial| TrialUnit { case: "c".into(), agent: "nop".into(), trial }).collect()
    }

    #[test]
    fn shares_are_disjoint_and_whole() {
        let units = units(80);
        for how in ["slice", "hash"] {
            let mut seen = BTreeSet::new();
            for part in 1..=8 {
                let partition: Partition = format!("{how}:{part}/8").parse().unwrap();
                for unit in partition.share(&units) {
                    assert!(seen.insert(unit), "{how}: twice");
                }
            }
            assert_eq!(seen.len(), 80, "{how}");
        }
        assert_eq!("slice:3/8".parse::<Partition>().unwrap().share(&units).len(), 10);
    }

    #[test]
    fn a_share_by_name_does_not_change_when_units_come_and_go() {
        let partition: Partition = "hash:2/3".parse().unwrap();
        let all = partition.share(&units(50));
        let fewer = partition.share(&units(30));
        assert!(fewer.iter().all(|unit| all.contains(unit)));
    }

    #[test]
    fn a_share_that_cannot_be_is_refused() {
        for wrong in ["slice:0/3", "slice:4/3", "count:1/2", "slice:1", "hash:a/b"] {
            assert!(wrong.parse::<Partition>().is_err(), "{wrong}");
        }
        assert_eq!("hash:2/3".parse::<Partition>().unwrap().to_string(), "hash:2/3");
    }

    #[test]
    fn the_system_that_starts_many_says_which_share_is_meant() {
        let told = |variables: &[(&str, &str)]| {
            Partition::of_environment(|name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
            .map(|partition| partition.map(|partition| partition.to_string()))
        };
        assert_eq!(told(&[]), Ok(None));
        let slurm =
            [("SLURM_ARRAY_TASK_ID", "5"), ("SLURM_ARRAY_TASK_MIN", "1"), ("SLURM_ARRAY_TASK_COUNT", "8")];
        assert_eq!(told(&slurm), Ok(Some("slice:5/8".to_owned())));
        // Of an array that was submitted again for what is missing, the number of shares is still the first one.
        let again = [("SLURM_ARRAY_TASK_ID", "5"), ("SLURM_ARRAY_TASK_COUNT", "2"), (SHARDS, "8")];
        assert_eq!(told(&again), Ok(Some("slice:6/8".to_owned())));
        let pod = [("JOB_COMPLETION_INDEX", "0"), (SHARDS, "4")];
        assert_eq!(told(&pod), Ok(Some("slice:1/4".to_owned())));
        assert_eq!(told(&[("CI_NODE_INDEX", "2"), ("CI_NODE_TOTAL", "2")]), Ok(Some("slice:2/2".to_owned())));
        assert!(told(&[("JOB_COMPLETION_INDEX", "0")]).unwrap_err().contains(SHARDS));
        assert!(told(&[("SLURM_ARRAY_TASK_ID", "x")]).is_err());
    }
}
