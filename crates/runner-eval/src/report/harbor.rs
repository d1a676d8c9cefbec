//! Writes results as a job of Harbor: a folder that `harbor view` and other tools of Harbor open.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use runner_core::model::digest::Sha256;
use serde_json::{Value, json};

use super::atif::atif;
use crate::execution::trial::{LOOP_LOG, START_LOG};
use crate::result::stored_trial::StoredTrial;
use crate::result::{TrialMeta, TrialOutcome};

/// The agent that the job names: the runner drives the agent that was measured.
const AGENT: &str = "runner";
/// The name of tasks that are in no dataset.
const DATASET: &str = "adhoc";

/// A job to write.
pub(crate) struct HarborJob<'a> {
    /// The folder of jobs; the job is a folder in it.
    pub(crate) jobs: PathBuf,
    pub(crate) name: &'a str,
    /// The folder of cases.
    pub(crate) cases: PathBuf,
    /// The last attempt at each trial.
    pub(crate) trials: &'a [&'a StoredTrial],
}

impl HarborJob<'_> {
    /// Writes the job and returns its size in bytes.
    pub(crate) fn write(&self) -> io::Result<usize> {
        let folder = self.jobs.join(self.name);
        let mut bytes = 0;
        for trial in self.trials {
            bytes += self.write_trial(&folder, trial)?;
        }
        bytes += write_json(&folder.join("config.json"), &self.config())?;
        bytes += write_json(&folder.join("result.json"), &self.result())?;
        Ok(bytes)
    }

    fn task_path(&self, case: &str) -> String {
        self.cases.join(case).display().to_string()
    }

    fn config(&self) -> Value {
        let cases: BTreeSet<&str> = self.trials.iter().map(|trial| trial.meta.case_id.as_str()).collect();
        let agents: BTreeSet<&str> = self.trials.iter().map(|trial| trial.meta.agent.as_str()).collect();
        let attempts = self.trials.iter().map(|trial| trial.meta.trial).max().unwrap_or(1);
        json!({
            "job_name": self.name,
            "jobs_dir": self.jobs,
            "n_attempts": attempts,
            "agents": agents.iter().map(|agent| json!({ "name": AGENT, "model_name": agent })).collect::<Vec<_>>(),
            "tasks": cases.iter().map(|case| json!({ "path": self.task_path(case) })).collect::<Vec<_>>(),
        })
    }

    fn result(&self) -> Value {
        let started = self.trials.iter().map(|trial| &trial.meta.started_at).min();
        let ended = self.trials.iter().map(|trial| &trial.meta.ended_at).max();
        let errors = self.trials.iter().filter(|trial| exception(&trial.meta).is_some()).count();
        json!({
            "id": uuid(&format!("job {}", self.name)),
            "started_at": started,
            "updated_at": ended,
            "finished_at": ended,
            "n_total_trials": self.trials.len(),
            "stats": {
                "n_completed_trials": self.trials.len(),
                "n_errored_trials": errors,
                "n_pending_trials": 0,
                "evals": self.evals(),
            },
        })
    }

    /// The statistics of each agent, as Harbor groups them.
    fn evals(&self) -> Value {
        let mut agents: BTreeMap<&str, Vec<&StoredTrial>> = BTreeMap::new();
        for trial in self.trials {
            agents.entry(&trial.meta.agent).or_default().push(trial);
        }
        let mut evals = serde_json::Map::new();
        for (agent, trials) in agents {
            let mut rewards: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            let mut exceptions: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for trial in &trials {
                if trial.meta.is_scored() {
                    rewards.entry(reward_text(&trial.meta)).or_default().push(trial_name(&trial.meta));
                }
                if let Some(kind) = exception(&trial.meta) {
                    exceptions.entry(kind).or_default().push(trial_name(&trial.meta));
                }
            }
            let scored = rewards.values().map(Vec::len).sum::<usize>();
            let mean = f64::from(u32::try_from(rewards.get("1.0").map_or(0, Vec::len)).unwrap_or(u32::MAX))
                / f64::from(u32::try_from(scored.max(1)).unwrap_or(u32::MAX));
            let stats = json!({
                "n_trials": scored,
                "n_errors": exceptions.values().map(Vec::len).sum::<usize>(),
                "metrics": [{ "mean": mean }],
                "reward_stats": { "reward": rewards },
                "exception_stats": exceptions,
            });
            evals.insert(format!("{AGENT}__{agent}__{DATASET}"), stats);
        }
        Value::Object(evals)
    }

    fn write_trial(&self, job: &Path, trial: &StoredTrial) -> io::Result<usize> {
        let meta = &trial.meta;
        let folder = job.join(trial_name(meta));
        let [agent, verifier] = ["agent", "verifier"].map(|name| folder.join(name));
        fs::create_dir_all(&agent)?;
        fs::create_dir_all(&verifier)?;
        let trajectory = atif(trial);
        let mut bytes = write_json(&agent.join("trajectory.json"), &trajectory)?;
        let config = json!({
            "task": { "path": self.task_path(&meta.case_id) },
            "trial_name": trial_name(meta),
            "trials_dir": job,
            "agent": { "name": AGENT, "model_name": meta.agent },
            "job_id": uuid(&format!("job {}", self.name)),
        });
        bytes += write_json(&folder.join("config.json"), &config)?;
        bytes += write_json(
            &folder.join("result.json"),
            &self.trial_result(trial, &trajectory, &config, &folder),
        )?;
        for name in [START_LOG, LOOP_LOG] {
            copy_file(&trial.folder.join(name), &agent.join(name))?;
        }
        copy_file(&trial.folder.join(LOOP_LOG), &folder.join("trial.log"))?;
        copy_file(&trial.folder.join("checks.json"), &verifier.join("checks.json"))?;
        if meta.is_scored() {
            fs::write(verifier.join("reward.txt"), format!("{}\n", reward_text(meta)))?;
        }
        Ok(bytes)
    }

    fn trial_result(&self, trial: &StoredTrial, trajectory: &Value, config: &Value, folder: &Path) -> Value {
        let meta = &trial.meta;
        let metric = |name: &str| trajectory.pointer(&format!("/final_metrics/{name}")).cloned();
        let reward: f64 = if meta.outcome == TrialOutcome::Success { 1.0 } else { 0.0 };
        let verifier = meta.is_scored().then(|| json!({ "rewards": { "reward": reward } }));
        let exception = exception(meta).map(|kind| {
            json!({
                "exception_type": kind,
                "exception_message": meta.why,
                "exception_traceback": "",
                "occurred_at": meta.ended_at,
            })
        });
        json!({
            "id": uuid(&format!("trial {}/{}", meta.case_id, meta.eval_run_id)),
            "task_name": meta.case_id,
            "trial_name": trial_name(meta),
            "trial_uri": format!("file://{}", folder.display()),
            "task_id": { "path": self.task_path(&meta.case_id) },
            "task_checksum": trial.inputs.case_sha256,
            "config": config,
            "agent_info": {
                "name": AGENT,
                "version": meta.runner.version,
                "model_info": { "name": trial.inputs.model.as_deref().unwrap_or(&meta.agent) },
            },
            "agent_result": {
                "n_input_tokens": metric("total_prompt_tokens"),
                "n_cache_tokens": metric("total_cached_tokens"),
                "n_output_tokens": metric("total_completion_tokens"),
                "cost_usd": meta.cost.usd(),
                "metadata": { "outcome": meta.outcome, "cause": meta.cause, "iterations": meta.iterations },
            },
            "verifier_result": verifier,
            "exception_info": exception,
            "started_at": meta.started_at,
            "finished_at": meta.ended_at,
            "agent_execution": { "started_at": meta.started_at, "finished_at": meta.ended_at },
        })
    }
}

/// Harbor's names of folders: task and a suffix.
fn trial_name(meta: &TrialMeta) -> String {
    format!("{}__{}", meta.case_id, meta.eval_run_id)
}

fn reward_text(meta: &TrialMeta) -> &'static str {
    if meta.outcome == TrialOutcome::Success { "1.0" } else { "0.0" }
}

/// The kind of exception that a trial without a score is in Harbor; scored trials have none.
fn exception(meta: &TrialMeta) -> Option<String> {
    if meta.is_scored() {
        return None;
    }
    Some(format!("runner_eval.{}", meta.cause.map_or("skipped", |cause| cause.as_str())))
}

/// An id that is the same for every export of the same thing.
fn uuid(text: &str) -> String {
    let digest = Sha256::of(text.as_bytes()).to_string();
    let part = |from: usize, to: usize| digest.get(from..to).unwrap_or_default();
    format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

fn write_json(path: &Path, value: &Value) -> io::Result<usize> {
    let text = format!("{value:#}\n");
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    fs::write(path, &text)?;
    Ok(text.len())
}

/// Copies a regular file, if it exists. A link is not followed.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(from).is_ok_and(|metadata| metadata.is_file()) {
        fs::copy(from, to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_of_uuids_and_differ() {
        let id = uuid("a");
        assert_eq!(id.len(), 36);
        assert_eq!(id.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert_ne!(id, uuid("b"));
    }
}
