//! `runner eval results`

use std::collections::{BTreeMap, BTreeSet};

use runner_term::format::counted;
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::{EvalGlobalArgs, ResultsArgs};
use crate::execution::progress::{outcome_counts, outcome_glyph};
use crate::plan::EvalPlan;
use crate::result::run_folder::RunFolder;
use crate::result::stored_trial::{
    StoredResults, StoredTrial, UnreadableResult, last_attempts, load_results,
};
use crate::result::{FailureCause, TrialMeta};

pub(crate) struct ResultsOutput {
    trials: Vec<StoredTrial>,
    unreadable: Vec<UnreadableResult>,
    /// The newest run comes first.
    plans: Vec<EvalPlan>,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &ResultsArgs) -> Result<ResultsOutput, CommandError> {
    let folder = global.results();
    let StoredResults { mut trials, unreadable } = load_results(&folder)
        .map_err(|error| CommandError::io("could not read the results", &folder, &error))?;
    let mut plans = RunFolder::plans(&folder);
    if let Some(run) = &args.run {
        trials.retain(|trial| trial.meta.run == run.as_str());
        plans.retain(|plan| plan.run == *run);
    }
    Ok(ResultsOutput { trials, unreadable, plans })
}

/// A run: what is planned, and how many trials have a result.
fn run_json(plan: &EvalPlan, trials: &[StoredTrial]) -> Value {
    let planned = &plan.scope.trials;
    let agents: BTreeSet<&str> = planned.iter().map(|trial| trial.agent.as_str()).collect();
    let last = last_attempts(trials);
    let done = last.iter().filter(|trial| trial.meta.run == plan.run.as_str()).count();
    json!({
        "run": plan.run,
        "created_at": plan.created_at,
        "runner": plan.scope.runner.version,
        "agents": agents,
        "cases": plan.scope.cases.len(),
        "trials": planned.len(),
        "done": done,
    })
}

impl CommandOutput for ResultsOutput {
    fn json(&self) -> Value {
        let unreadable: Vec<String> = self.unreadable.iter().map(ToString::to_string).collect();
        let results: Vec<&TrialMeta> = self.trials.iter().map(|trial| &trial.meta).collect();
        let runs: Vec<Value> = self.plans.iter().map(|plan| run_json(plan, &self.trials)).collect();
        json!({
            "schema": "runner.eval.results/1",
            "runs": runs,
            "results": results,
            "unreadable": unreadable,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = Vec::new();
        for StoredTrial { meta, folder, .. } in &self.trials {
            lines.push(
                KeyValueLine::new()
                    .with("case", &meta.case_id)
                    .with("agent", &meta.agent)
                    .with("run", &meta.run)
                    .with("trial", meta.trial)
                    .with("attempt", meta.attempt)
                    .with("outcome", meta.outcome)
                    .with("cause", meta.cause.map_or("none", FailureCause::as_str))
                    .with("seconds", format!("{:.1}", meta.wall_secs))
                    .with("folder", folder.display()),
            );
        }
        lines.extend(self.unreadable.iter().map(|result| KeyValueLine::new().with("unreadable", result)));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let mut runs: BTreeMap<&str, RunRows<'_>> = BTreeMap::new();
        for StoredTrial { meta, .. } in &self.trials {
            let row = runs.entry(&meta.run).or_default().entry((&meta.agent, &meta.case_id)).or_default();
            // Attempts are in order, so the last one remains.
            row.insert(meta.trial, meta);
        }
        let mut text: String = runs.iter().map(|(run, rows)| render_run(run, rows, styler)).collect();
        for result in &self.unreadable {
            text.push_str(&format!("{} {result}\n", styler.paint(TextRole::Bad, "unreadable:")));
        }
        if text.is_empty() {
            return format!("{}\n", styler.paint(TextRole::Faint, "no results yet: runner eval run"));
        }
        text + "Next: runner eval report  # pass rates with confidence intervals\n"
    }

    fn exit(&self) -> CommandExit {
        if self.unreadable.is_empty() { CommandExit::SUCCESS } else { CommandExit::FAILURE }
    }
}

/// By agent and case: the last attempt at each trial, by its number.
type RunRows<'t> = BTreeMap<(&'t str, &'t str), BTreeMap<u32, &'t TrialMeta>>;

/// One run: a row per agent and case, a glyph per trial.
fn render_run(run: &str, rows: &RunRows<'_>, styler: &Styler) -> String {
    let name = |(agent, case): &(&str, &str)| format!("{case} ({agent})");
    let name_width = rows.keys().map(|key| name(key).len()).max().unwrap_or_default();
    let trials_max = rows.values().map(BTreeMap::len).max().unwrap_or_default();
    let total = counted(rows.values().map(BTreeMap::len).sum::<usize>(), "trial", "trials");
    let mut text = format!("{} {run}, {total}\n", styler.paint(TextRole::Strong, "run"));
    for (key, trials) in rows {
        let glyphs: String = trials.values().map(|meta| outcome_glyph(styler, meta.outcome)).collect();
        let counts = outcome_counts(trials.values().copied());
        let outcomes: Vec<String> =
            counts.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        let seconds = trials.values().map(|meta| meta.wall_secs).sum::<f64>() / trials.len().max(1) as f64;
        let padding = " ".repeat(trials_max - trials.len());
        text.push_str(&format!(
            "  {:name_width$}  {glyphs}{padding}  {}, {seconds:.1} s\n",
            name(key),
            outcomes.join(", ")
        ));
    }
    text.push('\n');
    text
}
