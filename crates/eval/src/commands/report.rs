//! `runner eval report`

use std::fs;
use std::path::Path;

use runner_cli::{Exit, Ink, Line, Pen, Reply, Report};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::cli::{Form, Global, ReportArgs};
use crate::files;
use crate::plan::Unit;
use crate::report::{atif, html, inspect, junit, rows};
use crate::results::Trial;
use crate::selection::Selection;
use crate::stats::Interval;
use crate::stats::score::{Row, Table, scores, table};

/// What results mean.
pub(crate) struct Scored {
    name: String,
    table: Table,
    missing: Vec<Unit>,
    unreadable: Vec<String>,
    trials: Vec<Value>,
}

pub(crate) fn run(global: &Global, args: &ReportArgs) -> Result<Box<dyn Reply>, Report> {
    let chosen = Selection::read(global, args.what.as_deref())?;
    let last = chosen.last();
    let table = table(&scores(last.iter().map(|trial| &trial.meta)), args.k);
    let scored = Scored {
        name: chosen.name.clone(),
        table,
        missing: chosen.missing.clone(),
        unreadable: chosen.faults.iter().map(ToString::to_string).collect(),
        trials: rows::rows(&chosen.trials).collect(),
    };
    let text = match args.form {
        Form::Table if args.out.is_some() => {
            return Err(Report::refused("form", "a table is not written to a file").hint(
                "choose a form for files (html, junit, jsonl, csv, atif, inspect), or: runner eval report --json > FILE",
            ));
        }
        Form::Table => return Ok(Box::new(scored)),
        Form::Html => html::html(&chosen, &scored.table),
        Form::Junit => junit::junit(&chosen.name, &chosen.trials),
        Form::Jsonl => rows::jsonl(&chosen.trials),
        Form::Csv => rows::csv(&chosen.trials),
        Form::Atif => match &args.out {
            Some(out) => return trajectories(&global.manner.directory.join(out), &last),
            None => last.iter().map(|trial| format!("{}\n", atif::atif(trial))).collect(),
        },
        Form::Inspect => {
            chosen.one_agent()?;
            let logs =
                scored.table.agents.iter().map(|row| inspect::inspect(&chosen.name, row, &chosen.trials));
            logs.map(|log| format!("{log:#}\n")).collect()
        }
    };
    let Some(out) = &args.out else { return Ok(Box::new(Document(text))) };
    let file = global.manner.directory.join(out);
    files::write(&file, text.as_bytes())
        .map_err(|error| Report::io("could not write the report", &file, &error))?;
    Ok(Box::new(Written { file: file.display().to_string(), bytes: text.len(), trials: last.len() }))
}

/// Writes a trajectory for each trial into a folder.
fn trajectories(folder: &Path, trials: &[&Trial]) -> Result<Box<dyn Reply>, Report> {
    let fail = |error| Report::io("could not write the trajectories", folder, &error);
    fs::create_dir_all(folder).map_err(fail)?;
    let mut bytes = 0;
    for trial in trials {
        let text = format!("{:#}\n", atif::atif(trial));
        let name = format!("{}.{}.json", trial.meta.case_id, trial.meta.eval_run_id);
        files::write(&folder.join(name), text.as_bytes()).map_err(fail)?;
        bytes += text.len();
    }
    Ok(Box::new(Written { file: folder.display().to_string(), bytes, trials: trials.len() }))
}

/// A report that is told as it stands.
struct Document(String);

impl Reply for Document {
    fn json(&self) -> Value {
        json!({ "schema": "runner.eval.document/1", "text": self.0 })
    }

    fn plain(&self) -> Vec<Line> {
        vec![Line::verbatim(self.0.trim_end())]
    }

    fn drawn(&self, _: &Pen) -> String {
        self.0.clone()
    }
}

/// A report that was written to a file.
struct Written {
    file: String,
    bytes: usize,
    trials: usize,
}

impl Reply for Written {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.eval.written/1",
            "file": self.file,
            "bytes": self.bytes,
            "trials": self.trials,
        })
    }

    fn plain(&self) -> Vec<Line> {
        vec![Line::new().with("file", &self.file).with("bytes", self.bytes).with("trials", self.trials)]
    }

    fn drawn(&self, _: &Pen) -> String {
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

impl Scored {
    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.table.agents.iter().chain(&self.table.cases)
    }

    fn line(&self, row: &Row) -> Line {
        let line = Line::new().with("agent", &row.agent);
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

    fn cells(row: &Row) -> [String; 9] {
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

fn value(row: &Row) -> Value {
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
fn missing(unit: &Unit) -> Value {
    json!({ "case": unit.case, "agent": unit.agent, "trial": unit.trial, "slug": unit.slug() })
}

impl Reply for Scored {
    fn json(&self) -> Value {
        let values = |rows: &[Row]| rows.iter().map(value).collect::<Vec<_>>();
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

    fn plain(&self) -> Vec<Line> {
        let end = Line::new().with("results", &self.name).with("missing", self.missing.len());
        let end = end.with("unreadable", self.unreadable.len());
        self.rows().map(|row| self.line(row)).chain([end]).collect()
    }

    fn drawn(&self, pen: &Pen) -> String {
        let k = self.table.k;
        let head =
            ["", "passed", "out", "rate", "95 %", &format!("pass@{k}"), &format!("pass^{k}"), "time", "cost"];
        let mut lines: Vec<(Option<Ink>, [String; 9])> = Vec::new();
        for agent in &self.table.agents {
            lines.push((Some(Ink::Faint), head.map(str::to_owned)));
            lines.push((Some(Ink::Strong), Self::cells(agent)));
            let cases = self.table.cases.iter().filter(|row| row.agent == agent.agent);
            lines.extend(cases.map(|row| (None, Self::cells(row))));
        }
        let mut text = aligned(pen, &lines);
        text.push_str(&pen.ink(
            Ink::Faint,
            "time, cost: of a success, failures included; out: says nothing about the agent",
        ));
        text.push('\n');
        if !self.missing.is_empty() {
            let told = format!("{} planned trials have no result yet", self.missing.len());
            text.push_str(&format!("{}\n", pen.ink(Ink::Warn, &told)));
        }
        for fault in &self.unreadable {
            text.push_str(&format!("{} {fault}\n", pen.ink(Ink::Bad, "unreadable")));
        }
        text
    }

    fn exit(&self) -> Exit {
        if self.unreadable.is_empty() { Exit::SUCCESS } else { Exit::FAILURE }
    }
}

/// Columns of equal width, the first to the left, the others to the right.
fn aligned<const N: usize>(pen: &Pen, lines: &[(Option<Ink>, [String; N])]) -> String {
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
        text.push_str(&ink.map_or_else(|| line.clone(), |ink| pen.ink(ink, &line)));
        text.push('\n');
    }
    text
}
