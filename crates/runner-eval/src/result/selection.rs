//! Which results are meant: a run, a folder of results, and perhaps one agent of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use runner_term::CommandError;

use crate::args::EvalGlobalArgs;
use crate::plan::TrialUnit;
use crate::result::FailureCause;
use crate::result::run_folder::RunFolder;
use crate::result::stored_trial::{StoredTrial, UnreadableResult, last_attempts, load};

/// Results that were chosen.
pub(crate) struct ResultSelection {
    /// As it was typed, or the newest run.
    pub(crate) name: String,
    /// Every attempt.
    pub(crate) trials: Vec<StoredTrial>,
    /// What is there and cannot be used.
    pub(crate) faults: Vec<UnreadableResult>,
    /// Units that were planned and have no result.
    pub(crate) missing: Vec<TrialUnit>,
}

impl ResultSelection {
    /// Reads `RUN`, `FOLDER`, `RUN@AGENT` or `FOLDER@AGENT`; without anything the newest run.
    pub(crate) fn read(global: &EvalGlobalArgs, text: Option<&str>) -> Result<Self, CommandError> {
        let results = global.results();
        let newest = || RunFolder::all(&results).into_iter().next();
        let Some(name) = text.map(str::to_owned).or_else(newest) else {
            return Err(CommandError::refused(
                "no_runs",
                format!("there is no run in `{}`", results.display()),
            )
            .hint("begin one: runner eval run"));
        };
        let (source, agent) = match name.split_once('@') {
            Some((source, agent)) if !Path::new(&name).is_dir() => (source, Some(agent)),
            _ => (name.as_str(), None),
        };
        let is_run = results.join("_runs").join(source).is_dir() && !source.contains('/');
        let folder: PathBuf = if is_run { results } else { global.manner.directory.join(source) };
        if !is_run && !folder.is_dir() {
            return Err(CommandError::refused("no_results", format!("there are no results `{source}`"))
                .cause(format!("there is no run of this name, and no folder `{}`", folder.display()))
                .hint("list what is there: runner eval results"));
        }
        let run = is_run.then_some(source);
        let (mut trials, mut faults) =
            load(&folder).map_err(|error| CommandError::io("could not read the results", &folder, &error))?;
        trials.retain(|trial| {
            run.is_none_or(|run| run == trial.meta.run) && agent.is_none_or(|agent| agent == trial.meta.agent)
        });
        faults.retain(|fault| run.is_none_or(|run| is_of_run(&fault.path, run)));
        let missing = missing(&folder, run, agent, &trials);
        // A run that has only begun has results to come.
        if trials.is_empty() && missing.is_empty() {
            return Err(CommandError::refused("no_results", format!("there are no results in `{name}`"))
                .hint("list what is there: runner eval results"));
        }
        Ok(Self { name, trials, faults, missing })
    }

    /// The attempts that scores are made from.
    pub(crate) fn last(&self) -> Vec<&StoredTrial> {
        last_attempts(&self.trials)
    }

    /// The agent, if there is only one.
    pub(crate) fn one_agent(&self) -> Result<&str, CommandError> {
        let tried = self.trials.iter().map(|trial| trial.meta.agent.as_str());
        let agents: BTreeSet<&str> =
            tried.chain(self.missing.iter().map(|unit| unit.agent.as_str())).collect();
        match agents.first() {
            Some(agent) if agents.len() == 1 => Ok(agent),
            _ => {
                let list: Vec<&str> = agents.iter().copied().collect();
                Err(CommandError::refused("many_agents", format!("`{}` has more than one agent", self.name))
                    .cause(format!("it has {}", list.join(", ")))
                    .hint(format!("name one: {}@{}", self.name, list.first().unwrap_or(&"AGENT"))))
            }
        }
    }
}

/// Whether a path leads through the folder of a result of this run.
fn is_of_run(path: &Path, run: &str) -> bool {
    let begins = |name: &str| name.strip_prefix(run).is_some_and(|rest| rest.starts_with('.'));
    path.iter().any(|part| begins(&part.to_string_lossy()))
}

/// Which units of the plans have no result, or one that was broken off.
fn missing(folder: &Path, run: Option<&str>, agent: Option<&str>, trials: &[StoredTrial]) -> Vec<TrialUnit> {
    let last = last_attempts(trials);
    let done: BTreeSet<_> = last
        .iter()
        .filter(|trial| trial.meta.cause != Some(FailureCause::Interrupted))
        .map(|trial| trial.unit())
        .collect();
    let runs = run.map_or_else(|| RunFolder::all(folder), |run| vec![run.to_owned()]);
    let mut missing = Vec::new();
    for plan in runs.iter().filter_map(|run| RunFolder::open(folder, run).ok()).map(|folder| folder.plan) {
        let is_meant = |unit: &&TrialUnit| agent.is_none_or(|agent| agent == unit.agent);
        let is_done =
            |unit: &TrialUnit| done.contains(&(plan.run.as_str(), &unit.case, &unit.agent, unit.trial));
        missing.extend(plan.scope.units.iter().filter(is_meant).filter(|unit| !is_done(unit)).cloned());
    }
    missing
}
