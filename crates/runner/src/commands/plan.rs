//! `runner plan import` and `runner plan export`

use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use runner_cli::numbers::counted;
use runner_cli::{Exit, Glyph, Ink, Line, Pen, Reply, Report, explain_graft};
use runner_core::config::Config;
use runner_core::plan::{BYTES_MAX, Format, Grafted, Import, Plan, Reading, Remark, export, graft, read};
use runner_core::start::max_attempts;
use runner_core::tree::Tree;
use runner_host::inspect::inspect;
use runner_host::start::{Started, import};
use serde_json::{Value, json};

use super::tree::load;
use crate::cli::{PlanArgs, PlanCommand, PlanExportArgs, PlanFormat, PlanImportArgs};
use crate::view::recovered::{recovered_json, recovered_line, recovered_text};
use crate::view::short;
use crate::view::tree::{Shown, draw};
use crate::which::node;

const IMPORT: &str = "could not import the plan";
const EXPORT: &str = "could not export the plan";

pub(crate) fn run(dir: &Path, args: &PlanArgs) -> Result<Box<dyn Reply>, Report> {
    match &args.command {
        PlanCommand::Import(args) => Ok(Box::new(take_in(dir, args)?)),
        PlanCommand::Export(args) => Ok(Box::new(write_out(dir, args)?)),
    }
}

/// What an import did, or would do.
struct Imported {
    format: Format,
    title: String,
    remarks: Vec<Remark>,
    grafted: Grafted,
    /// The commit; none of a dry run.
    started: Option<Started>,
}

fn take_in(dir: &Path, args: &PlanImportArgs) -> Result<Imported, Report> {
    let plan = read_plan(args)?;
    let tree = load(dir, IMPORT)?;
    let under = args.under.as_deref().map(|under| node(under, &tree, IMPORT)).transpose()?;
    let (format, title, remarks) = (plan.format, plan.title.clone(), plan.remarks.clone());
    let plan = Import { plan, under, with_done: args.include_done };
    if args.dry_run {
        let grafted = rehearse(dir, &tree, &plan)?;
        return Ok(Imported { format, title, remarks, grafted, started: None });
    }
    let mut started = import(dir, plan).map_err(|error| Report::of(IMPORT, &error))?;
    let nothing = || Report::new("plan", Exit::FAILURE, IMPORT).cause("nothing was taken in");
    let grafted = started.grafted.take().ok_or_else(nothing)?;
    Ok(Imported { format, title, remarks, grafted, started: Some(started) })
}

/// The tree as the import would leave it.
fn rehearse(dir: &Path, tree: &Tree, plan: &Import) -> Result<Grafted, Report> {
    let here = inspect(dir).map_err(|error| Report::of(IMPORT, &error))?;
    let usual = Config::default();
    let attempts = max_attempts(here.config.good().unwrap_or(&usual));
    graft(tree, plan, attempts).map_err(|fault| {
        let (code, details, hints) = explain_graft(&fault);
        let report = Report::new(code, Exit::REFUSED, IMPORT).cause(fault.to_string()).details(details);
        hints.into_iter().fold(report, Report::hint)
    })
}

fn read_plan(args: &PlanImportArgs) -> Result<Plan, Report> {
    let name = args.file.display().to_string();
    let bytes = bytes_of(&args.file).map_err(|error| {
        Report::new("plan_file", Exit::REFUSED, IMPORT)
            .cause(format!("`{name}` cannot be read: {error}"))
            .hint("name a file, or - for standard input")
    })?;
    let format = args.format.map(|format| match format {
        PlanFormat::Markdown => Format::Markdown,
        PlanFormat::Prd => Format::Prd,
        PlanFormat::TaskMaster => Format::TaskMaster,
    });
    let reading = Reading { name: &name, format, tag: args.tag.as_deref() };
    read(&bytes, reading).map_err(|faults| {
        Report::new("plan", Exit::REFUSED, IMPORT)
            .cause(format!("`{name}` has {}", counted(faults.len(), "fault", "faults")))
            .details(faults.iter().map(|fault| format!("{name}:{}: {}", fault.line, short(&fault.reason))))
            .hint("mend the file, or say how it is written with --format; nothing was written")
    })
}

/// A little more than may be there, so that too much is noticed.
fn bytes_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = BYTES_MAX as u64 + 1;
    if path == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

impl Imported {
    fn commit(&self) -> Option<&str> {
        self.started.as_ref().map(|started| started.commit.as_str())
    }

    fn recovered(&self) -> Option<&runner_host::workshop::Taken> {
        self.started.as_ref().and_then(|started| started.recovered.as_ref())
    }
}

impl Reply for Imported {
    fn json(&self) -> Value {
        let grafted = &self.grafted;
        json!({
            "schema": "runner.plan_import/1",
            "format": self.format,
            "title": self.title,
            "dry_run": self.started.is_none(),
            "under": grafted.under,
            "added": grafted.added,
            "skipped": grafted.skipped,
            "remarks": self.remarks,
            "commit": self.commit(),
            "recovered": self.recovered().map(recovered_json),
        })
    }

    fn plain(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = self.recovered().map(recovered_line).into_iter().collect();
        let remark = |remark: &Remark| Line::new().with("remark", &remark.text).with("line", remark.line);
        lines.extend(self.remarks.iter().map(remark));
        lines.extend(self.grafted.skipped.iter().map(|item| {
            let line = Line::new().with("skipped", short(&item.title)).with("line", item.line);
            line.with("standing", item.standing.as_str())
        }));
        lines.extend(self.grafted.added.iter().map(|id| Line::new().with("added", id)));
        let last = Line::new()
            .with("format", self.format)
            .with("under", &self.grafted.under)
            .with("nodes", self.grafted.added.len())
            .with("skipped", self.grafted.skipped.len())
            .with("dry_run", self.started.is_none());
        lines.push(self.commit().into_iter().fold(last, |line, commit| line.with("commit", commit)));
        lines
    }

    fn drawn(&self, pen: &Pen) -> String {
        let mut text = String::new();
        let tick = pen.ink(Ink::Good, pen.glyph(Glyph::Passed));
        if let Some(recovered) = self.recovered() {
            text.push_str(&format!("{tick} {}\n", recovered_text(recovered)));
        }
        text.push_str(&draw(&self.grafted.tree, Shown { levels: usize::MAX, only_open: false }, pen));
        text.push('\n');
        for remark in &self.remarks {
            text.push_str(&format!(
                "{} line {}: {}\n",
                pen.ink(Ink::Warn, "note:"),
                remark.line,
                short(&remark.text)
            ));
        }
        for item in &self.grafted.skipped {
            let line =
                format!("left out, {}: {} (line {})", item.standing.as_str(), short(&item.title), item.line);
            text.push_str(&pen.ink(Ink::Faint, &pen.fit(&line, pen.width)));
            text.push('\n');
        }
        let counts =
            format!("{} nodes from {} below {}", self.grafted.added.len(), self.format, self.grafted.under);
        match self.commit() {
            Some(commit) => {
                let commit: String = commit.chars().take(8).collect();
                text.push_str(&format!("{tick} imported {counts}, commit {commit}\n\nNext: runner loop\n"));
            }
            None => text.push_str(&format!("would import {counts}; nothing was written\n")),
        }
        text
    }
}

/// A plan that was exported.
struct Exported {
    text: String,
    nodes: usize,
    file: Option<String>,
}

fn write_out(dir: &Path, args: &PlanExportArgs) -> Result<Exported, Report> {
    let tree = load(dir, EXPORT)?;
    let (text, nodes) = (export(&tree), tree.node_count());
    if args.file == Path::new("-") {
        return Ok(Exported { text, nodes, file: None });
    }
    let name = args.file.display().to_string();
    write_file(&args.file, &text, args.force).map_err(|error| {
        let report = Report::new("plan_file", Exit::REFUSED, EXPORT);
        if error.kind() == ErrorKind::AlreadyExists {
            return report.cause(format!("`{name}` is there already")).hint("replace it with --force");
        }
        report
            .cause(format!("`{name}` cannot be written: {error}"))
            .hint("name a file in a folder that is there")
    })?;
    Ok(Exported { text, nodes, file: Some(name) })
}

fn write_file(path: &Path, text: &str, force: bool) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).truncate(force);
    options.create(force).create_new(!force);
    options.open(path)?.write_all(text.as_bytes())
}

impl Reply for Exported {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.plan_export/1", "format": Format::Markdown, "nodes": self.nodes,
            "file": self.file, "text": self.text,
        })
    }

    fn plain(&self) -> Vec<Line> {
        match &self.file {
            Some(file) => vec![
                Line::new().with("file", file).with("format", Format::Markdown).with("nodes", self.nodes),
            ],
            None => self.text.split_terminator('\n').map(Line::verbatim).collect(),
        }
    }

    fn drawn(&self, pen: &Pen) -> String {
        match &self.file {
            Some(file) => {
                let tick = pen.ink(Ink::Good, pen.glyph(Glyph::Passed));
                format!("{tick} {} nodes written to {file}\n", self.nodes)
            }
            None => self.text.clone(),
        }
    }

    fn is_long(&self) -> bool {
        self.file.is_none()
    }
}
