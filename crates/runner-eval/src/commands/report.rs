//! `runner eval report`

use std::fs;
use std::path::Path;

use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::args::{EvalGlobalArgs, ReportArgs, ReportFormat};
use crate::files;
use crate::plan::TrialUnit;
use crate::report::{atif, html, inspect, junit, rows};
use crate::result::selection::ResultSelection;
use crate::result::stored_trial::StoredTrial;
use crate::stats::Interval;
use crate::stats::score::{ScoreRow, ScoreTable, scores, table};

/// What results mean.
pub(crate) struct ReportOutput {
    name: String,
    table: ScoreTable,
    missing: Vec<TrialUnit>,
    unreadable: Vec<String>,
    trials: Vec<Value>,
}

pub(crate) fn run(
    global: &EvalGlobalArgs,
    args: &ReportArgs,
) -> Result<Box<dyn CommandOutput>, CommandError> {
    let chosen = ResultSelection::read(global, args.what.as_deref())?;
    let last = chosen.last();
    let table = table(&scores(last.iter().map(|trial| &trial.meta)), args.k);
    let scored = ReportOutput {
        name: chosen.name.clone(),
        table,
        missing: chosen.missing.clone(),
        unreadable: chosen.faults.iter().map(ToString::to_string).collect(),
        trials: rows::rows(&chosen.trials).collect(),
    };
    let text = match args.form {
        ReportFormat::Table if args.out.is_some() => {
            return Err(CommandError::refused("form", "a table is not written to a file").hint(
                "choose a form for files (html, junit, jsonl, csv, atif, inspect), or: runner eval report --json > FILE",
            ));
        }
        ReportFormat::Table => return Ok(Box::new(scored)),
        ReportFormat::Html => html::html(&chosen, &scored.table),
        ReportFormat::Junit => junit::junit(&chosen.name, &chosen.trials),
        ReportFormat::Jsonl => rows::jsonl(&chosen.trials),
        ReportFormat::Csv => rows::csv(&chosen.trials),
        ReportFormat::Atif => match &args.out {
            Some(out) => return trajectories(&global.manner.directory.join(out), &last),
            None => last.iter().map(|trial| format!("{}\n", atif::atif(trial))).collect(),
        },
        ReportFormat::Inspect => {
            chosen.one_agent()?;
            let logs =
                scored.table.agents.iter().map(|row| inspect::inspect(&chosen.name, row, &chosen.trials));
            logs.map(|log| format!("{log:#}\n")).collect()
        }
    };
    let Some(out) = &args.out else { return Ok(Box::new(ReportDocument(text))) };
    let file = global.manner.directory.join(out);
    files::write(&file, text.as_bytes())
        .map_err(|error| CommandError::io("could not write the report", &file, &error))?;
    Ok(Box::new(ReportFileOutput { file: file.display().to_string(), bytes: text.len(), trials: last.len() }))
}

/// Writes a trajectory for each trial into a folder.
fn trajectories(folder: &Path, trials: &[&StoredTrial]) -> Result<Box<dyn CommandOutput>, CommandError> {
    let fail = |error| CommandError::io("could not write the trajectories", folder, &error);
    fs::create_dir_all(folder).map_err(fail)?;
    let mut bytes = 0;
    for trial in trials {
        let text = format!("{:#}\n", atif::atif(trial));
        let name = format!("{}.{}.json", trial.meta.case_id, trial.meta.eval_run_id);
        files::write(&folder.join(name), text.as_bytes()).map_err(fail)?;
        bytes += text.len();
    }
    Ok(Box::new(ReportFileOutput { file: folder.display().to_string(), bytes, trials: trials.len() }))
}

/// A report that is told as it stands.
struct ReportDocument(String);

impl CommandOutput for ReportDocument {
    fn json(&self) -> Value {
        json!({ "schema": "runner.eval.document/1", "text": self.0 })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        vec![KeyValueLine::verbatim(self.0.trim_end())]
    }

    fn human(&self, _: &Styler) -> String {
        self.0.clone()
    }
}

/// A report that was written to a file.
struct ReportFileOutput {
    file: String,
    bytes: usize,
    trials: usize,
}

impl CommandOutput for ReportFileOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.eval.written/1",
            "file": self.file,
            "bytes": self.bytes,
            "trials": self.trials,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        vec![
            KeyValueLine::new()
                .with("file", &self.file)
                .with("bytes", self.bytes)
                .with("trials", self.trials),
        ]
    }

    fn human(&self, _: &Styler) -> String {
        format!("{}: {} trials\n", self.file, self.trials)
    }
}

/// A number that is not always known, with so many digits.
fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "n/a".to_owned(), |value| format!("{value:.digits$}"))
}

/// An interval of rates, in percent.
fn percents(interval: Option<Interval>) -> String {
    interval.map_or_else(
        || "n/a".to_owned(),
        |interval| format!("{:.0}–{:.0}", 100.0 * interval.low, 100.0 * interval.high),
    )
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "n/a".to_owned(), |rate| format!("{:.0} %", 100.0 * rate))
}

impl ReportOutput {
    fn rows(&self) -> impl Iterator<Item = &ScoreRow> {
        self.table.agents.iter().chain(&self.table.cases)
    }

    fn line(&self, row: &ScoreRow) -> KeyValueLine {
        let line = KeyValueLine::new().with("agent", &row.agent);
        let line = match &row.case {
            Some(case) => line.with("case", case),
            None => line.with("cases", row.cases),
        };
        let line = line.with("n", row.score.n).with("successes", row.score.successes);
        let line = line.with("left_out", row.score.left_out).with("rate", number(row.score.rate(), 4));
        let line = line.with("low", number(row.interval.map(|interval| interval.low), 4));
        let line = line.with("high", number(row.interval.map(|interval| interval.high), 4));
        let line = line.with("k", self.table.k).with("pass_at_k", number(row.pass_at, 4));
        let line = line.with("pass_all_k", number(row.pass_all, 4));
        let line = line.with("secs_per_success", number(row.score.secs_per_success(), 1));
        line.with("usd_per_success", number(row.score.usd_per_success(), 4))
    }

    fn cells(row: &ScoreRow) -> [String; 9] {
        let score = &row.score;
        let left_out = if score.left_out == 0 { String::new() } else { score.left_out.to_string() };
        [
            row.case.clone().unwrap_or_else(|| row.agent.clone()),
            format!("{}/{}", score.successes, score.n),
            left_out,
            percent(score.rate()),
            percents(row.interval),
            percent(row.pass_at),
            percent(row.pass_all),
            score.secs_per_success().map_or_else(|| "n/a".to_owned(), |secs| format!("{secs:.1} s")),
            score.usd_per_success().map_or_else(|| "n/a".to_owned(), |usd| format!("{usd:.2} $")),
        ]
    }
}

fn value(row: &ScoreRow) -> Value {
    json!({
        "agent": row.agent,
        "case": row.case,
        "cases": row.cases,
        "n": row.score.n,
        "successes": row.score.successes,
        "left_out": row.score.left_out,
        "rate": row.score.rate(),
        "interval": row.interval,
        "pass_at_k": row.pass_at,
        "pass_all_k": row.pass_all,
        "secs_per_success": row.score.secs_per_success(),
        "usd_per_success": row.score.usd_per_success(),
    })
}

/// A trial that has no result yet, with the part of its results' names that is its own.
fn missing(unit: &TrialUnit) -> Value {
    json!({ "case": unit.case, "agent": unit.agent, "trial": unit.trial, "slug": unit.slug() })
}

impl CommandOutput for ReportOutput {
    fn json(&self) -> Value {
        let values = |rows: &[ScoreRow]| rows.iter().map(value).collect::<Vec<_>>();
        json!({
            "schema": "runner.eval.report/1",
            "results": self.name,
            "k": self.table.k,
            "agents": values(&self.table.agents),
            "cases": values(&self.table.cases),
            "missing": self.missing.len(),
            "missing_units": self.missing.iter().map(missing).collect::<Vec<_>>(),
            "trials": self.trials,
            "unreadable": self.unreadable,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let end = KeyValueLine::new().with("results", &self.name).with("missing", self.missing.len());
        let end = end.with("unreadable", self.unreadable.len());
        self.rows().map(|row| self.line(row)).chain([end]).collect()
    }

    fn human(&self, pen: &Styler) -> String {
        let k = self.table.k;
        let head =
            ["", "passed", "out", "rate", "95 %", &format!("pass@{k}"), &format!("pass^{k}"), "time", "cost"];
        let mut lines: Vec<(Option<TextRole>, [String; 9])> = Vec::new();
        for agent in &self.table.agents {
            lines.push((Some(TextRole::Faint), head.map(str::to_owned)));
            lines.push((Some(TextRole::Strong), Self::cells(agent)));
            let cases = self.table.cases.iter().filter(|row| row.agent == agent.agent);
            lines.extend(cases.map(|row| (None, Self::cells(row))));
        }
        let mut text = aligned(pen, &lines);
        text.push_str(&pen.paint(
            TextRole::Faint,
            "time, cost: of a success, failures included; out: says nothing about the agent",
        ));
        text.push('\n');
        if !self.missing.is_empty() {
            let told = format!("{} planned trials have no result yet", self.missing.len());
            text.push_str(&format!("{}\n", pen.paint(TextRole::Warn, &told)));
        }
        for fault in &self.unreadable {
            text.push_str(&format!("{} {fault}\n", pen.paint(TextRole::Bad, "unreadable")));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        if self.unreadable.is_empty() { CommandExit::SUCCESS } else { CommandExit::FAILURE }
    }
}

/// Columns of equal width, the first to the left, the others to the right.
fn aligned<const N: usize>(pen: &Styler, lines: &[(Option<TextRole>, [String; N])]) -> String {
    let width =
        |at: usize| lines.iter().filter_map(|(_, cells)| Some(cells.get(at)?.width())).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for (ink, cells) in lines {
        let mut line = String::new();
        for (at, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            let room = " ".repeat(width.saturating_sub(cell.width()));
            line.push_str(&if at == 0 { format!("{cell}{room}") } else { format!("  {room}{cell}") });
        }
        let line = pen.fit(line.trim_end(), pen.width);
        text.push_str(&ink.map_or_else(|| line.clone(), |ink| pen.paint(ink, &line)));
        text.push('\n');
    }
    text
}
