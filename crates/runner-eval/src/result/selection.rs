//! Resolves a `RESULTS` argument (`RUN`, `FOLDER`, `RUN@AGENT`, `FOLDER@AGENT`) to results, for reports and comparisons.

use std::collections::BTreeSet;
use std::path::Path;

use runner_term::CommandError;

use crate::args::EvalGlobalArgs;
use crate::plan::PlannedTrial;
use crate::result::FailureCause;
use crate::result::run_folder::{RunFolder, no_runs};
use crate::result::stored_trial::{
    StoredResults, StoredTrial, TrialKey, UnreadableResult, last_attempts, load_results,
};

pub(crate) struct ResultSelection {
    /// As typed, or the newest run.
    pub(crate) name: String,
    /// Every attempt at every selected trial.
    pub(crate) trials: Vec<StoredTrial>,
    pub(crate) unreadable: Vec<UnreadableResult>,
    /// Planned trials without a result.
    pub(crate) missing: Vec<PlannedTrial>,
}

impl ResultSelection {
    /// Loads the selected results; without an argument those of the newest run.
    pub(crate) fn load(global: &EvalGlobalArgs, argument: Option<&str>) -> Result<Self, CommandError> {
        let results = global.results();
        let name = match argument {
            Some(argument) => argument.to_owned(),
            None => RunFolder::names(&results).first().ok_or_else(|| no_runs(&results))?.to_string(),
        };
        let (source, agent) = match name.split_once('@') {
            Some((source, agent)) if !Path::new(&name).is_dir() => (source, Some(agent)),
            _ => (name.as_str(), None),
        };
        let is_run = results.join("_runs").join(source).is_dir() && !source.contains('/');
        let folder = if is_run { results } else { global.shared.project_dir.join(source) };
        if !is_run && !folder.is_dir() {
            return Err(CommandError::refused("no_results", format!("no results `{source}`"))
                .cause(format!("there is neither a run of this name nor a folder `{}`", folder.display()))
                .hint("list the results: runner eval results"));
        }
        let run = is_run.then_some(source);
        let StoredResults { mut trials, mut unreadable } = load_results(&folder)
            .map_err(|error| CommandError::io("could not read the results", &folder, &error))?;
        trials.retain(|trial| {
            run.is_none_or(|run| run == trial.meta.run) && agent.is_none_or(|agent| agent == trial.meta.agent)
        });
        unreadable.retain(|result| run.is_none_or(|run| is_of_run(&result.path, run)));
        let missing = missing_trials(&folder, run, agent, &trials);
        // A run that has just started has no results yet, only missing trials.
        if trials.is_empty() && missing.is_empty() {
            return Err(CommandError::refused("no_results", format!("no results in `{name}`"))
                .hint("list the results: runner eval results"));
        }
        Ok(Self { name, trials, unreadable, missing })
    }

    /// The attempts that count in scores.
    pub(crate) fn last_attempts(&self) -> Vec<&StoredTrial> {
        last_attempts(&self.trials)
    }

    /// The agents with results or planned trials.
    pub(crate) fn agents(&self) -> Vec<String> {
        let mut agents: BTreeSet<&str> = self.trials.iter().map(|trial| trial.meta.agent.as_str()).collect();
        agents.extend(self.missing.iter().map(|trial| trial.agent.as_str()));
        agents.into_iter().map(str::to_owned).collect()
    }

    /// The part of one agent.
    pub(crate) fn only(&self, agent: &str) -> Self {
        Self {
            name: format!("{}@{agent}", self.name),
            trials: self.trials.iter().filter(|trial| trial.meta.agent == agent).cloned().collect(),
            unreadable: Vec::new(),
            missing: self.missing.iter().filter(|trial| trial.agent == agent).cloned().collect(),
        }
    }

    /// Fails unless the results are of one agent.
    pub(crate) fn require_one_agent(&self) -> Result<(), CommandError> {
        let list = self.agents();
        let Some(first) = list.first().filter(|_| list.len() > 1) else { return Ok(()) };
        Err(CommandError::refused("many_agents", format!("`{}` has results of several agents", self.name))
            .cause(format!("the agents are {}", list.join(", ")))
            .hint(format!("choose one: {}@{first}", self.name)))
    }
}

/// Whether a path contains the folder of a result of this run.
fn is_of_run(path: &Path, run: &str) -> bool {
    path.iter().any(|part| part.to_string_lossy().strip_prefix(run).is_some_and(|rest| rest.starts_with('.')))
}

/// The planned trials that have no result, or only an interrupted one.
fn missing_trials(
    results: &Path,
    run: Option<&str>,
    agent: Option<&str>,
    trials: &[StoredTrial],
) -> Vec<PlannedTrial> {
    let mut complete: BTreeSet<TrialKey<'_>> = BTreeSet::new();
    for stored in last_attempts(trials) {
        if stored.meta.cause != Some(FailureCause::Interrupted) {
            complete.insert(stored.key());
        }
    }
    let mut missing = Vec::new();
    for plan in RunFolder::plans(results).iter().filter(|plan| run.is_none_or(|run| run == plan.run.as_str()))
    {
        for planned in &plan.scope.trials {
            let PlannedTrial { case, agent: planned_agent, trial } = planned;
            let key = TrialKey { case, agent: planned_agent, run: plan.run.as_str(), trial: *trial };
            if agent.is_none_or(|agent| agent == planned_agent) && !complete.contains(&key) {
                missing.push(planned.clone());
            }
        }
    }
    missing
}
