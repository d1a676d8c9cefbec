//! Partitions: a fixed division of the trials of a plan, so that several machines can work on one evaluation run.

use std::fmt;
use std::str::FromStr;

use runner_core::model::digest::Sha256;

use super::PlannedTrial;

/// One of `count` parts of the trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    method: PartitionMethod,
    /// From 1 to `count`.
    number: u64,
    count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartitionMethod {
    /// Distributes trials in turn: partitions of equal size.
    Slice,
    /// Distributes trials by name: a trial keeps its partition when others are added or removed.
    Hash,
}

impl FromStr for Partition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).ok_or_else(|| "expected slice:M/N or hash:M/N, with M from 1 to N".to_owned())
    }
}

fn parse(text: &str) -> Option<Partition> {
    let (method, numbers) = text.split_once(':')?;
    let method = match method {
        "slice" => PartitionMethod::Slice,
        "hash" => PartitionMethod::Hash,
        _ => return None,
    };
    let (number, count) = numbers.split_once('/')?;
    let partition = Partition { method, number: number.parse().ok()?, count: count.parse().ok()? };
    (1..=partition.count).contains(&partition.number).then_some(partition)
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match self.method {
            PartitionMethod::Slice => "slice",
            PartitionMethod::Hash => "hash",
        };
        write!(f, "{method}:{}/{}", self.number, self.count)
    }
}

/// The variable that holds the number of partitions, where the engine that starts them does not give it.
pub(crate) const PARTITIONS_VARIABLE: &str = "RUNNER_EVAL_PARTITIONS";

impl Partition {
    /// The partition that the engine which started this process assigns to it: a Slurm array, a Kubernetes Indexed Job or
    /// a GitLab parallel job. None if this process was not started by one of them.
    pub(crate) fn from_environment(get: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let variable = |name: &str| match get(name) {
            None => Ok(None),
            Some(text) => match text.parse::<u64>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(format!("`{name}` is `{text}`, which is not a number")),
            },
        };
        let total = variable(PARTITIONS_VARIABLE)?;
        let number;
        let count;
        if let Some(task) = variable("SLURM_ARRAY_TASK_ID")? {
            // With an explicit total, tasks count from 0, even if only some of the array is submitted again.
            let first = if total.is_some() { 0 } else { variable("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0) };
            number = task.saturating_sub(first) + 1;
            count = total.or(variable("SLURM_ARRAY_TASK_COUNT")?);
        } else if let Some(index) = variable("JOB_COMPLETION_INDEX")? {
            number = index + 1;
            count = total;
        } else if let Some(index) = variable("CI_NODE_INDEX")? {
            number = index;
            count = total.or(variable("CI_NODE_TOTAL")?);
        } else {
            return Ok(None);
        }
        let Some(count) = count else {
            return Err(format!(
                "partition {number}: set `{PARTITIONS_VARIABLE}` to the number of partitions"
            ));
        };
        if !(1..=count).contains(&number) {
            return Err(format!("there is no partition {number} of {count}"));
        }
        Ok(Some(Self { method: PartitionMethod::Slice, number, count }))
    }

    /// The trials of this partition.
    pub(crate) fn select(&self, trials: &[PlannedTrial]) -> Vec<PlannedTrial> {
        let mut selected = Vec::new();
        for (trial, position) in trials.iter().zip(0..) {
            let bucket = match self.method {
                PartitionMethod::Slice => position % self.count,
                PartitionMethod::Hash => name_hash(trial) % self.count,
            };
            if bucket == self.number - 1 {
                selected.push(trial.clone());
            }
        }
        selected
    }
}

fn name_hash(trial: &PlannedTrial) -> u64 {
    let digest = Sha256::of(trial.to_string().as_bytes()).to_string();
    digest.get(..15).and_then(|head| u64::from_str_radix(head, 16).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn trials(count: u32) -> Vec<PlannedTrial> {
        (1..=count).map(|trial| PlannedTrial { case: "c".into(), agent: "nop".into(), trial }).collect()
    }

    #[test]
    fn partitions_are_disjoint_and_complete() {
        let trials = trials(80);
        for method in ["slice", "hash"] {
            let mut seen = BTreeSet::new();
            for number in 1..=8 {
                let partition: Partition = format!("{method}:{number}/8").parse().unwrap();
                for trial in partition.select(&trials) {
                    assert!(seen.insert(trial), "{method}: selected twice");
                }
            }
            assert_eq!(seen.len(), 80, "{method}");
        }
        assert_eq!("slice:3/8".parse::<Partition>().unwrap().select(&trials).len(), 10);
    }

    #[test]
    fn hash_partition_is_stable_when_trials_are_added() {
        let partition: Partition = "hash:2/3".parse().unwrap();
        let all = partition.select(&trials(50));
        let fewer = partition.select(&trials(30));
        assert!(fewer.iter().all(|trial| all.contains(trial)));
    }

    #[test]
    fn invalid_partition_is_rejected() {
        for invalid in ["slice:0/3", "slice:4/3", "count:1/2", "slice:1", "hash:a/b"] {
            assert!(invalid.parse::<Partition>().is_err(), "{invalid}");
        }
        assert_eq!("hash:2/3".parse::<Partition>().unwrap().to_string(), "hash:2/3");
    }

    #[test]
    fn partition_is_read_from_the_engines_environment() {
        let partition = |variables: &[(&str, &str)]| {
            let get = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            Partition::from_environment(get).map(|partition| partition.map(|found| found.to_string()))
        };
        assert_eq!(partition(&[]), Ok(None));
        let slurm =
            [("SLURM_ARRAY_TASK_ID", "5"), ("SLURM_ARRAY_TASK_MIN", "1"), ("SLURM_ARRAY_TASK_COUNT", "8")];
        assert_eq!(partition(&slurm), Ok(Some("slice:5/8".to_owned())));
        // Two tasks of an array of 8 are submitted again: the number of partitions is still 8.
        let resubmitted =
            [("SLURM_ARRAY_TASK_ID", "5"), ("SLURM_ARRAY_TASK_COUNT", "2"), (PARTITIONS_VARIABLE, "8")];
        assert_eq!(partition(&resubmitted), Ok(Some("slice:6/8".to_owned())));
        let pod = [("JOB_COMPLETION_INDEX", "0"), (PARTITIONS_VARIABLE, "4")];
        assert_eq!(partition(&pod), Ok(Some("slice:1/4".to_owned())));
        let gitlab = [("CI_NODE_INDEX", "2"), ("CI_NODE_TOTAL", "2")];
        assert_eq!(partition(&gitlab), Ok(Some("slice:2/2".to_owned())));
        assert!(partition(&[("JOB_COMPLETION_INDEX", "0")]).unwrap_err().contains(PARTITIONS_VARIABLE));
        assert!(partition(&[("SLURM_ARRAY_TASK_ID", "x")]).is_err());
    }
}
