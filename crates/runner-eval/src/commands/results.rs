//! `runner eval results`

use std::collections::{BTreeMap, BTreeSet};

use runner_term::format::counted;
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::{EvalGlobalArgs, ResultsArgs};
use crate::execution::progress::mark;
use crate::plan::EvalPlan;
use crate::result::run_folder::RunFolder;
use crate::result::stored_trial::{StoredTrial, UnreadableResult, last_attempts, load};
use crate::result::{TrialMeta, TrialOutcome};

/// What is on record.
pub(crate) struct ResultsOutput {
    trials: Vec<StoredTrial>,
    faults: Vec<UnreadableResult>,
    /// Newest first.
    plans: Vec<EvalPlan>,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &ResultsArgs) -> Result<ResultsOutput, CommandError> {
    let folder = global.results();
    let (mut trials, faults) =
        load(&folder).map_err(|error| CommandError::io("could not read the results", &folder, &error))?;
    trials.retain(|trial| args.run.as_ref().is_none_or(|run| *run == trial.meta.run));
    let mut plans = RunFolder::plans(&folder);
    plans.retain(|plan| args.run.as_ref().is_none_or(|run| *run == plan.run));
    Ok(ResultsOutput { trials, faults, plans })
}

/// A run: what was planned, and how much of it has a result.
fn run_value(plan: &EvalPlan, trials: &[StoredTrial]) -> Value {
    let units = &plan.scope.units;
    let agents: BTreeSet<&str> = units.iter().map(|unit| unit.agent.as_str()).collect();
    let last = last_attempts(trials);
    let done = last.iter().filter(|trial| trial.meta.run == plan.run);
    json!({
        "run": plan.run,
        "created_at": plan.created_at,
        "runner": plan.scope.runner.version,
        "agents": agents,
        "cases": plan.scope.cases.len(),
        "units": units.len(),
        "done": done.count(),
    })
}

impl CommandOutput for ResultsOutput {
    fn json(&self) -> Value {
        let faults: Vec<String> = self.faults.iter().map(ToString::to_string).collect();
        let results: Vec<_> = self.trials.iter().map(|trial| &trial.meta).collect();
        let runs: Vec<Value> = self.plans.iter().map(|plan| run_value(plan, &self.trials)).collect();
        json!({ "schema": "runner.eval.results/1", "runs": runs, "results": results, "unreadable": faults })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let result = |trial: &StoredTrial| {
            let meta = &trial.meta;
            let line = KeyValueLine::new()
                .with("case", &meta.case_id)
                .with("agent", &meta.agent)
                .with("run", &meta.run);
            let line = line.with("trial", meta.trial).with("attempt", meta.attempt);
            let line = line.with("outcome", meta.outcome);
            let line = line.with("cause", meta.cause.map_or("none", crate::result::FailureCause::as_str));
            line.with("seconds", format!("{:.1}", meta.wall_secs)).with("folder", trial.folder.display())
        };
        let fault = |fault: &UnreadableResult| KeyValueLine::new().with("unreadable", fault);
        self.trials.iter().map(result).chain(self.faults.iter().map(fault)).collect()
    }

    fn human(&self, pen: &Styler) -> String {
        let mut runs: BTreeMap<&str, Rows<'_>> = BTreeMap::new();
        for StoredTrial { meta, .. } in &self.trials {
            let row = runs.entry(&meta.run).or_default().entry((&meta.agent, &meta.case_id)).or_default();
            // Attempts come in their order, and the last one counts.
            row.insert(meta.trial, meta);
        }
        let mut text: String = runs.iter().map(|(run, rows)| run_drawn(run, rows, pen)).collect();
        for fault in &self.faults {
            text.push_str(&format!("{} {fault}\n", pen.paint(TextRole::Bad, "unreadable:")));
        }
        if text.is_empty() {
            text = format!("{}\n", pen.paint(TextRole::Faint, "no results yet: runner eval run"));
        } else {
            text.push_str("Next: runner eval report    what they mean: rates and intervals\n");
        }
        text
    }

    fn exit(&self) -> CommandExit {
        if self.faults.is_empty() { CommandExit::SUCCESS } else { CommandExit::FAILURE }
    }
}

/// The trials of an agent and a case, by their numbers.
type Rows<'t> = BTreeMap<(&'t str, &'t str), BTreeMap<u32, &'t TrialMeta>>;

/// One run: a row for each agent and case, a mark for each trial.
fn run_drawn(run: &str, rows: &Rows<'_>, pen: &Styler) -> String {
    let name = |(agent, case): &(&str, &str)| format!("{case} ({agent})");
    let wide = rows.keys().map(|key| name(key).len()).max().unwrap_or_default();
    let many = rows.values().map(BTreeMap::len).max().unwrap_or_default();
    let trials = counted(rows.values().map(BTreeMap::len).sum::<usize>(), "trial", "trials");
    let mut text = format!("{} {run}, {trials}\n", pen.paint(TextRole::Strong, "run"));
    for (key, trials) in rows {
        let marks: String = trials.values().map(|meta| mark(pen, meta.outcome)).collect();
        let mut ends: BTreeMap<TrialOutcome, usize> = BTreeMap::new();
        trials.values().for_each(|meta| *ends.entry(meta.outcome).or_default() += 1);
        let ends: Vec<String> = ends.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        let seconds = trials.values().map(|meta| meta.wall_secs).sum::<f64>() / trials.len().max(1) as f64;
        let blank = " ".repeat(many - trials.len());
        text.push_str(&format!(
            "  {:wide$}  {marks}{blank}  {}, {seconds:.1} s\n",
            name(key),
            ends.join(", ")
        ));
    }
    text.push('\n');
    text
}
