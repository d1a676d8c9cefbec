//! `runner plan import` and `runner plan export`

use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use runner_core::config::Config;
use runner_core::model::tree::Tree;
use runner_core::runs::import::{
    BYTES_MAX, ImportOptions, ImportWarning, ImportedPlan, ImportedTree, PlanFormat, PlanImport, export,
    insert_plan, read,
};
use runner_host::ops::start::{StartResult, import};
use runner_host::view::inspect::inspect;
use runner_term::format::counted;
use runner_term::{
    CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, insert_error_hints,
};
use serde_json::{Value, json};

use super::tree::load;
use crate::args::{PlanArgs, PlanCommand, PlanExportArgs, PlanFormatArg, PlanImportArgs};
use crate::render::recovery::{recovered_json, recovered_line, recovered_text};
use crate::render::short;
use crate::render::tree::{TreeScope, draw};
use crate::target_arg::node;

const IMPORT: &str = "could not import the plan";
const EXPORT: &str = "could not export the plan";

pub(crate) fn run(dir: &Path, args: &PlanArgs) -> Result<Box<dyn CommandOutput>, CommandError> {
    match &args.command {
        PlanCommand::Import(args) => Ok(Box::new(take_in(dir, args)?)),
        PlanCommand::Export(args) => Ok(Box::new(write_out(dir, args)?)),
    }
}

/// What an import did, or would do.
struct PlanImportOutput {
    format: PlanFormat,
    title: String,
    remarks: Vec<ImportWarning>,
    grafted: ImportedTree,
    /// The commit; none of a dry run.
    started: Option<StartResult>,
}

fn take_in(dir: &Path, args: &PlanImportArgs) -> Result<PlanImportOutput, CommandError> {
    let plan = read_plan(args)?;
    let tree = load(dir, IMPORT)?;
    let under = args.under.as_deref().map(|under| node(under, &tree, IMPORT)).transpose()?;
    let (format, title, remarks) = (plan.format, plan.title.clone(), plan.warnings.clone());
    let plan = PlanImport { plan, under, with_done: args.include_done };
    if args.dry_run {
        let grafted = rehearse(dir, &tree, &plan)?;
        return Ok(PlanImportOutput { format, title, remarks, grafted, started: None });
    }
    let mut started = import(dir, plan).map_err(|error| CommandError::from_host(IMPORT, error))?;
    let nothing = || CommandError::new("plan", CommandExit::FAILURE, IMPORT).cause("nothing was taken in");
    let grafted = started.imported.take().ok_or_else(nothing)?;
    Ok(PlanImportOutput { format, title, remarks, grafted, started: Some(started) })
}

/// The tree as the import would leave it.
fn rehearse(dir: &Path, tree: &Tree, plan: &PlanImport) -> Result<ImportedTree, CommandError> {
    let here = inspect(dir).map_err(|error| CommandError::from_host(IMPORT, error))?;
    let usual = Config::default();
    let attempts = here.config.valid().unwrap_or(&usual).max_attempts_default.as_u32();
    insert_plan(tree, plan, attempts).map_err(|fault| {
        let (code, details, hints) = insert_error_hints(&fault);
        let report =
            CommandError::new(code, CommandExit::REFUSED, IMPORT).cause(fault.to_string()).details(details);
        hints.into_iter().fold(report, CommandError::hint)
    })
}

fn read_plan(args: &PlanImportArgs) -> Result<ImportedPlan, CommandError> {
    let name = args.file.display().to_string();
    let bytes = bytes_of(&args.file).map_err(|error| {
        CommandError::new("plan_file", CommandExit::REFUSED, IMPORT)
            .cause(format!("`{name}` cannot be read: {error}"))
            .hint("name a file, or - for standard input")
    })?;
    let format = args.format.map(|format| match format {
        PlanFormatArg::Markdown => PlanFormat::Markdown,
        PlanFormatArg::Prd => PlanFormat::Prd,
        PlanFormatArg::TaskMaster => PlanFormat::TaskMaster,
    });
    let reading = ImportOptions { name: &name, format, tag: args.tag.as_deref() };
    read(&bytes, reading).map_err(|faults| {
        CommandError::new("plan", CommandExit::REFUSED, IMPORT)
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

impl PlanImportOutput {
    fn commit(&self) -> Option<&str> {
        self.started.as_ref().map(|started| started.commit.as_str())
    }

    fn recovered(&self) -> Option<&runner_host::iteration::Recovered> {
        self.started.as_ref().and_then(|started| started.recovered.as_ref())
    }
}

impl CommandOutput for PlanImportOutput {
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

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines: Vec<KeyValueLine> = self.recovered().map(recovered_line).into_iter().collect();
        let remark = |remark: &ImportWarning| {
            KeyValueLine::new().with("remark", &remark.text).with("line", remark.line)
        };
        lines.extend(self.remarks.iter().map(remark));
        lines.extend(self.grafted.skipped.iter().map(|item| {
            let line = KeyValueLine::new().with("skipped", short(&item.title)).with("line", item.line);
            line.with("standing", item.status.as_str())
        }));
        lines.extend(self.grafted.added.iter().map(|id| KeyValueLine::new().with("added", id)));
        let last = KeyValueLine::new()
            .with("format", self.format)
            .with("under", &self.grafted.under)
            .with("nodes", self.grafted.added.len())
            .with("skipped", self.grafted.skipped.len())
            .with("dry_run", self.started.is_none());
        lines.push(self.commit().into_iter().fold(last, |line, commit| line.with("commit", commit)));
        lines
    }

    fn human(&self, pen: &Styler) -> String {
        let mut text = String::new();
        let tick = pen.paint(TextRole::Good, pen.glyph(Glyph::Passed));
        if let Some(recovered) = self.recovered() {
            text.push_str(&format!("{tick} {}\n", recovered_text(recovered)));
        }
        text.push_str(&draw(&self.grafted.tree, TreeScope { levels: usize::MAX, only_open: false }, pen));
        text.push('\n');
        for remark in &self.remarks {
            text.push_str(&format!(
                "{} line {}: {}\n",
                pen.paint(TextRole::Warn, "note:"),
                remark.line,
                short(&remark.text)
            ));
        }
        for item in &self.grafted.skipped {
            let line =
                format!("left out, {}: {} (line {})", item.status.as_str(), short(&item.title), item.line);
            text.push_str(&pen.paint(TextRole::Faint, &pen.fit(&line, pen.width)));
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
struct PlanExportOutput {
    text: String,
    nodes: usize,
    file: Option<String>,
}

fn write_out(dir: &Path, args: &PlanExportArgs) -> Result<PlanExportOutput, CommandError> {
    let tree = load(dir, EXPORT)?;
    let (text, nodes) = (export(&tree), tree.node_count());
    if args.file == Path::new("-") {
        return Ok(PlanExportOutput { text, nodes, file: None });
    }
    let name = args.file.display().to_string();
    write_file(&args.file, &text, args.force).map_err(|error| {
        let report = CommandError::new("plan_file", CommandExit::REFUSED, EXPORT);
        if error.kind() == ErrorKind::AlreadyExists {
            return report.cause(format!("`{name}` is there already")).hint("replace it with --force");
        }
        report
            .cause(format!("`{name}` cannot be written: {error}"))
            .hint("name a file in a folder that is there")
    })?;
    Ok(PlanExportOutput { text, nodes, file: Some(name) })
}

fn write_file(path: &Path, text: &str, force: bool) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).truncate(force);
    options.create(force).create_new(!force);
    options.open(path)?.write_all(text.as_bytes())
}

impl CommandOutput for PlanExportOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.plan_export/1", "format": PlanFormat::Markdown, "nodes": self.nodes,
            "file": self.file, "text": self.text,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        match &self.file {
            Some(file) => vec![
                KeyValueLine::new()
                    .with("file", file)
                    .with("format", PlanFormat::Markdown)
                    .with("nodes", self.nodes),
            ],
            None => self.text.split_terminator('\n').map(KeyValueLine::verbatim).collect(),
        }
    }

    fn human(&self, pen: &Styler) -> String {
        match &self.file {
            Some(file) => {
                let tick = pen.paint(TextRole::Good, pen.glyph(Glyph::Passed));
                format!("{tick} {} nodes written to {file}\n", self.nodes)
            }
            None => self.text.clone(),
        }
    }

    fn is_long(&self) -> bool {
        self.file.is_none()
    }
}
