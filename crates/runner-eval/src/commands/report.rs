//! `runner eval report`

mod output_files;

use std::collections::{BTreeMap, BTreeSet};

use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::compare::{DRAWS, add_difference};
use output_files::{ReportFileOutput, ReportText, write_harbor_job, write_trajectories};

use crate::args::{EvalGlobalArgs, ReportArgs, ReportFormat};
use crate::files;
use crate::plan::PlannedTrial;
use crate::report::html::PageExtras;
use crate::report::plots::ForestRow;
use crate::report::{atif, html, inspect, junit, predictions, rows};
use crate::result::run_folder::RunFolder;
use crate::result::selection::ResultSelection;
use crate::result::stored_trial::StoredTrial;
use crate::stats::Interval;
use crate::stats::comparison::PairedComparison;
use crate::stats::holm;
use crate::stats::loop_summary::{LoopSummary, loop_summary};
use crate::stats::paired::{InferenceScope, MeanDifference, mean_difference};
use crate::stats::score::{ScoreRow, ScoreTable, scores, table};

/// The report as a table.
pub(crate) struct ReportOutput {
    name: String,
    table: ScoreTable,
    missing: Vec<PlannedTrial>,
    unreadable: Vec<String>,
    /// Every attempt at every trial.
    trials: Vec<Value>,
    loops: BTreeMap<String, LoopSummary>,
    arms: Vec<ArmDifference>,
}

/// An arm compared with the base arm of the same agent.
struct ArmDifference {
    label: String,
    base: String,
    difference: MeanDifference,
    /// Corrected for the number of arms (Holm).
    adjusted_p: f64,
}

fn loop_summaries(last: &[&StoredTrial]) -> BTreeMap<String, LoopSummary> {
    let agents: BTreeSet<&str> = last.iter().map(|trial| trial.meta.agent.as_str()).collect();
    let mut summaries = BTreeMap::new();
    for agent in agents {
        let metas = last.iter().map(|trial| &trial.meta).filter(|meta| meta.agent == agent);
        summaries.insert(agent.to_owned(), loop_summary(metas));
    }
    summaries
}

/// Compares every arm with the base of its agent, paired by case.
fn arm_differences(selection: &ResultSelection) -> Result<Vec<ArmDifference>, CommandError> {
    let mut arms = Vec::new();
    for label in selection.agents() {
        let Some((agent, _)) = label.split_once('+') else { continue };
        let [base, new] = [agent, &label].map(|name| selection.only(name));
        let comparison = PairedComparison::new(&base, &new)?;
        if let Some(difference) = mean_difference(&comparison.pairs(), InferenceScope::Cases, DRAWS) {
            arms.push(ArmDifference { base: agent.to_owned(), label, difference, adjusted_p: 1.0 });
        }
    }
    let p_values: Vec<f64> = arms.iter().map(|arm| arm.difference.p_value).collect();
    for (arm, adjusted) in arms.iter_mut().zip(holm::adjusted(&p_values)) {
        arm.adjusted_p = adjusted;
    }
    Ok(arms)
}

/// Whether the last attempt is a new judgement of this one: then both are the same work, which was paid for once.
fn is_judged_again(trial: &StoredTrial, last: &[&StoredTrial]) -> bool {
    let number = trial.meta.regrade_of.unwrap_or(trial.meta.attempt);
    last.iter().any(|last| last.key() == trial.key() && last.meta.regrade_of == Some(number))
}

pub(crate) fn run(
    global: &EvalGlobalArgs,
    args: &ReportArgs,
) -> Result<Box<dyn CommandOutput>, CommandError> {
    let selection = ResultSelection::load(global, args.selection.as_deref())?;
    let last = selection.last_attempts();
    let is_last = |trial: &&StoredTrial| last.iter().any(|last| last.folder == trial.folder);
    let earlier = selection.trials.iter().filter(|trial| !is_last(trial) && !is_judged_again(trial, &last));
    let earlier = earlier.map(|trial| &trial.meta);
    let table = table(&scores(last.iter().map(|trial| &trial.meta), earlier), args.k);
    let text = match args.format {
        ReportFormat::Table if args.out.is_some() => {
            return Err(CommandError::refused("format", "--out does not apply to the format `table`")
                .hint("choose another format; or: runner eval report --json > FILE"));
        }
        ReportFormat::Table => {
            return Ok(Box::new(ReportOutput {
                table,
                unreadable: selection.unreadable.iter().map(ToString::to_string).collect(),
                trials: rows::rows(&selection.trials),
                loops: loop_summaries(&last),
                arms: arm_differences(&selection)?,
                name: selection.name,
                missing: selection.missing,
            }));
        }
        ReportFormat::Html => {
            let extras = PageExtras {
                loops: loop_summaries(&last),
                differences: forest_rows(&selection)?,
                budget: RunFolder::budget_text(&global.results(), &selection.name),
            };
            html::html(&selection, &table, &extras)
        }
        ReportFormat::Predictions => predictions::predictions(&last),
        ReportFormat::Harbor => return write_harbor_job(global, args, &selection.name, &last),
        ReportFormat::Junit => junit::junit(&selection.name, &selection.trials),
        ReportFormat::Jsonl => rows::jsonl(&selection.trials),
        ReportFormat::Csv => rows::csv(&selection.trials),
        ReportFormat::Atif => match &args.out {
            Some(out) => return write_trajectories(&global.shared.project_dir.join(out), &last),
            None => last.iter().map(|trial| format!("{}\n", atif::atif(trial))).collect(),
        },
        ReportFormat::Inspect => {
            selection.require_one_agent()?;
            let mut text = String::new();
            for agent in &table.agents {
                let log = inspect::inspect(&selection.name, agent, &selection.trials);
                text.push_str(&format!("{log:#}\n"));
            }
            text
        }
    };
    let Some(out) = &args.out else { return Ok(Box::new(ReportText(text))) };
    let file = global.shared.project_dir.join(out);
    files::write_atomic(&file, text.as_bytes())
        .map_err(|error| CommandError::io("could not write the report", &file, &error))?;
    Ok(Box::new(ReportFileOutput { file: file.display().to_string(), bytes: text.len(), trials: last.len() }))
}

/// The differences to draw: every arm against its base, and every other agent against the first.
fn forest_rows(selection: &ResultSelection) -> Result<Vec<ForestRow>, CommandError> {
    let mut rows = Vec::new();
    for arm in arm_differences(selection)? {
        let MeanDifference { mean, interval, .. } = arm.difference;
        rows.push(ForestRow { label: format!("{} against {}", arm.label, arm.base), mean, interval });
    }
    let agents: Vec<String> = selection.agents().into_iter().filter(|agent| !agent.contains('+')).collect();
    let Some((first, others)) = agents.split_first() else { return Ok(rows) };
    for other in others {
        let [base, new] = [first, other].map(|name| selection.only(name));
        let comparison = PairedComparison::new(&base, &new)?;
        if let Some(difference) = mean_difference(&comparison.pairs(), InferenceScope::Cases, DRAWS) {
            let MeanDifference { mean, interval, .. } = difference;
            rows.push(ForestRow { label: format!("{other} against {first}"), mean, interval });
        }
    }
    Ok(rows)
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(unknown, |value| format!("{value:.digits$}"))
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(unknown, |rate| format!("{:.0} %", 100.0 * rate))
}

/// An interval of rates, in percent.
fn percent_range(interval: Option<Interval>) -> String {
    interval
        .map_or_else(unknown, |interval| format!("{:.0}–{:.0}", 100.0 * interval.low, 100.0 * interval.high))
}

fn unknown() -> String {
    "n/a".to_owned()
}

const COLUMNS: usize = 9;

impl ArmDifference {
    fn json(&self) -> Value {
        json!({
            "agent": self.label,
            "base": self.base,
            "difference": self.difference,
            "adjusted_p": self.adjusted_p,
        })
    }
}

impl ReportOutput {
    /// The loop metrics of each agent, the worst case if trials were lost, and the arms, for people.
    fn loop_lines(&self) -> String {
        let mut text = String::new();
        for (agent, summary) in &self.loops {
            text.push_str(&format!(
                "{agent}: {} leaves, {} sessions per passed leaf, guard failures {}, check failures {}, false done {}, hacking gap {}, cheated {}\n",
                number(summary.leaves_mean, 1),
                number(summary.sessions_per_passed_leaf, 1),
                percent(summary.guard_failure_rate),
                percent(summary.check_failure_rate),
                percent(summary.false_done_rate),
                percent(summary.hacking_gap),
                percent(summary.cheated_rate)
            ));
        }
        for row in self.table.agents.iter().filter(|row| row.score.unscored > 0) {
            text.push_str(&format!(
                "{}: {} if every trial without a score had failed\n",
                row.agent,
                percent(row.worst_rate)
            ));
        }
        for arm in &self.arms {
            let MeanDifference { mean, interval, .. } = arm.difference;
            text.push_str(&format!(
                "{} against {}: {:+.1} points (95 %: {:+.1} to {:+.1}), p = {:.3} (Holm)\n",
                arm.label,
                arm.base,
                100.0 * mean,
                100.0 * interval.low,
                100.0 * interval.high,
                arm.adjusted_p
            ));
        }
        text
    }

    fn key_values_of(&self, row: &ScoreRow) -> KeyValueLine {
        let line = KeyValueLine::new().with("agent", &row.agent);
        let line = match &row.case {
            Some(case) => line.with("case", case),
            None => line.with("cases", row.cases),
        };
        line.with("n", row.score.n)
            .with("successes", row.score.successes)
            .with("unscored", row.score.unscored)
            .with("pass_rate", number(row.rate.value, 4))
            .with("ci_low", number(row.rate.interval.map(|interval| interval.low), 4))
            .with("ci_high", number(row.rate.interval.map(|interval| interval.high), 4))
            .with("worst_rate", number(row.worst_rate, 4))
            .with("k", self.table.k)
            .with("pass_at_k", number(row.pass_at.value, 4))
            .with("pass_all_k", number(row.pass_all.value, 4))
            .with("secs_per_success", number(row.secs_per_success.value, 1))
            .with("usd_per_success", number(row.usd_per_success.value, 4))
            .with("median_secs", number(row.median_secs.value, 1))
            .with("median_usd", number(row.median_usd.value, 4))
    }

    fn header(&self) -> [String; COLUMNS] {
        let k = self.table.k;
        [
            String::new(),
            "passed".to_owned(),
            "excl.".to_owned(),
            "rate".to_owned(),
            "95 % CI".to_owned(),
            format!("pass@{k}"),
            format!("pass^{k}"),
            "time".to_owned(),
            "cost".to_owned(),
        ]
    }

    fn cells(row: &ScoreRow) -> [String; COLUMNS] {
        let score = &row.score;
        [
            row.case.clone().unwrap_or_else(|| row.agent.clone()),
            format!("{}/{}", score.successes, score.n),
            if score.unscored == 0 { String::new() } else { score.unscored.to_string() },
            percent(row.rate.value),
            percent_range(row.rate.interval),
            percent(row.pass_at.value),
            percent(row.pass_all.value),
            row.secs_per_success.value.map_or_else(unknown, |secs| format!("{secs:.1} s")),
            row.usd_per_success.value.map_or_else(unknown, |usd| format!("${usd:.2}")),
        ]
    }
}

fn row_json(row: &ScoreRow) -> Value {
    json!({
        "agent": row.agent,
        "case": row.case,
        "cases": row.cases,
        "n": row.score.n,
        "successes": row.score.successes,
        "unscored": row.score.unscored,
        "pass_rate": row.rate.value,
        "confidence_interval": row.rate.interval,
        "worst_rate": row.worst_rate,
        "pass_at_k": row.pass_at.value,
        "pass_all_k": row.pass_all.value,
        "secs_per_success": row.secs_per_success.value,
        "usd_per_success": row.usd_per_success.value,
        "median_secs": row.median_secs.value,
        "median_usd": row.median_usd.value,
        "intervals": {
            "pass_at_k": row.pass_at.interval,
            "pass_all_k": row.pass_all.interval,
            "secs_per_success": row.secs_per_success.interval,
            "usd_per_success": row.usd_per_success.interval,
            "median_secs": row.median_secs.interval,
            "median_usd": row.median_usd.interval,
        },
    })
}

/// A trial without a result, with the part of the names of its results that identifies it.
fn missing_json(trial: &PlannedTrial) -> Value {
    json!({ "case": trial.case, "agent": trial.agent, "trial": trial.trial, "slug": trial.slug() })
}

impl CommandOutput for ReportOutput {
    fn json(&self) -> Value {
        let rows = |rows: &[ScoreRow]| rows.iter().map(row_json).collect::<Vec<_>>();
        json!({
            "schema": "runner.eval.report/1",
            "results": self.name,
            "k": self.table.k,
            "agents": rows(&self.table.agents),
            "cases": rows(&self.table.cases),
            "loops": self.loops,
            "arms": self.arms.iter().map(ArmDifference::json).collect::<Vec<_>>(),
            "missing": self.missing.iter().map(missing_json).collect::<Vec<_>>(),
            "trials": self.trials,
            "unreadable": self.unreadable,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let rows = self.table.agents.iter().chain(&self.table.cases);
        let mut lines: Vec<KeyValueLine> = rows.map(|row| self.key_values_of(row)).collect();
        for (agent, summary) in &self.loops {
            lines.push(
                KeyValueLine::new()
                    .with("loop", agent)
                    .with("leaves", number(summary.leaves_mean, 2))
                    .with("depth", number(summary.depth_mean, 2))
                    .with("sessions_per_passed_leaf", number(summary.sessions_per_passed_leaf, 2))
                    .with("attempts_per_passed_leaf", number(summary.attempts_per_passed_leaf, 2))
                    .with("guard_failure_rate", number(summary.guard_failure_rate, 4))
                    .with("check_failure_rate", number(summary.check_failure_rate, 4))
                    .with("false_done_rate", number(summary.false_done_rate, 4))
                    .with("hacking_gap", number(summary.hacking_gap, 4))
                    .with("cheated_rate", number(summary.cheated_rate, 4))
                    .with("usd_per_passed_leaf", number(summary.usd_per_passed_leaf, 4))
                    .with("setup_secs", number(summary.setup_secs_mean, 2))
                    .with("check_secs", number(summary.check_secs_mean, 2))
                    .with("agent_time", number(summary.agent_time, 2))
                    .with("guard_time", number(summary.guard_time, 2)),
            );
        }
        for arm in &self.arms {
            let line = KeyValueLine::new().with("arm", &arm.label).with("base", &arm.base);
            let adjusted = format!("{:.4}", arm.adjusted_p);
            lines.push(add_difference(line, &arm.difference).with("adjusted_p", adjusted));
        }
        lines.push(
            KeyValueLine::new()
                .with("results", &self.name)
                .with("missing", self.missing.len())
                .with("unreadable", self.unreadable.len()),
        );
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let mut lines = Vec::new();
        for agent in &self.table.agents {
            lines.push(TableLine { role: Some(TextRole::Faint), cells: self.header() });
            lines.push(TableLine { role: Some(TextRole::Strong), cells: Self::cells(agent) });
            for case in self.table.cases.iter().filter(|row| row.agent == agent.agent) {
                lines.push(TableLine { role: None, cells: Self::cells(case) });
            }
        }
        let mut text = align(styler, &lines);
        let legend = "time, cost: per success, failures included; excl.: trials that are not scored";
        text.push_str(&format!("{}\n", styler.paint(TextRole::Faint, legend)));
        text.push_str(&self.loop_lines());
        if !self.missing.is_empty() {
            let line = format!("{} planned trials have no result", self.missing.len());
            text.push_str(&format!("{}\n", styler.paint(TextRole::Warn, &line)));
        }
        for result in &self.unreadable {
            text.push_str(&format!("{} {result}\n", styler.paint(TextRole::Bad, "unreadable:")));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        if self.unreadable.is_empty() { CommandExit::SUCCESS } else { CommandExit::FAILURE }
    }
}

struct TableLine {
    role: Option<TextRole>,
    cells: [String; COLUMNS],
}

/// Aligns columns: the first to the left, the others to the right.
fn align(styler: &Styler, lines: &[TableLine]) -> String {
    let mut widths = [0; COLUMNS];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(&line.cells) {
            *width = cell.width().max(*width);
        }
    }
    let mut text = String::new();
    for TableLine { role, cells } in lines {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            let padding = " ".repeat(width.saturating_sub(cell.width()));
            if line.is_empty() {
                line.push_str(&format!("{cell}{padding}"));
            } else {
                line.push_str(&format!("  {padding}{cell}"));
            }
        }
        let line = styler.fit(line.trim_end(), styler.width);
        text.push_str(&role.map_or_else(|| line.clone(), |role| styler.paint(role, &line)));
        text.push('\n');
    }
    text
}
