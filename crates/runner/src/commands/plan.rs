//! `runner plan`: its subcommands, and import and export themselves

use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use runner_core::config::{Config, OnStuck};
use runner_core::model::tree::Tree;
use runner_core::runs::import::{
    BYTES_MAX, ImportOptions, ImportWarning, ImportedPlan, ImportedTree, PlanFormat, PlanImport, export,
    insert_plan, parse_plan,
};
use runner_host::ops::start::{StartResult, import};
use runner_host::repo::readonly_repo::ReadonlyRepo;
use runner_host::view::inspect::inspect;
use runner_term::format::counted;
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use super::tree::load;
use super::{plan_approve, plan_edit, plan_lint, plan_make};
use crate::args::{PlanArgs, PlanCommand, PlanExportArgs, PlanFormatArg, PlanImportArgs};
use crate::render::recovery::{recovered_json, recovered_line, recovered_text};
use crate::render::short;
use crate::render::tree::{TreeScope, draw};
use crate::target_arg::resolve_node;

const IMPORT: &str = "could not import the plan";
const EXPORT: &str = "could not export the plan";

pub(crate) fn run(dir: &Path, args: &PlanArgs, ui: &Ui) -> Result<Box<dyn CommandOutput>, CommandError> {
    match &args.command {
        PlanCommand::Make(_) => Ok(Box::new(plan_make::run(dir, ui)?)),
        PlanCommand::Lint(args) => Ok(Box::new(plan_lint::run(dir, args, ui)?)),
        PlanCommand::Edit(args) => Ok(Box::new(plan_edit::run(dir, args, ui)?)),
        PlanCommand::Approve(_) => Ok(Box::new(plan_approve::run(dir)?)),
        PlanCommand::Import(args) => Ok(Box::new(import_plan(dir, args)?)),
        PlanCommand::Export(args) => Ok(Box::new(export_plan(dir, args)?)),
    }
}

struct PlanImportOutput {
    format: PlanFormat,
    title: String,
    warnings: Vec<ImportWarning>,
    imported: ImportedTree,
    /// None in a dry run.
    started: Option<StartResult>,
}

fn import_plan(dir: &Path, args: &PlanImportArgs) -> Result<PlanImportOutput, CommandError> {
    let plan = read_plan(args)?;
    let tree = load(dir, IMPORT)?;
    let under = args.under.as_deref().map(|under| resolve_node(under, &tree, IMPORT)).transpose()?;
    let format = plan.format;
    let title = plan.title.clone();
    let warnings = plan.warnings.clone();
    let plan = PlanImport { plan, under, with_done: args.include_done };
    if args.dry_run {
        let imported = dry_run(dir, &tree, &plan)?;
        return Ok(PlanImportOutput { format, title, warnings, imported, started: None });
    }
    let mut started = import(dir, plan).map_err(|error| CommandError::from_host(IMPORT, error))?;
    let missing = || {
        CommandError::new("plan", CommandExit::FAILURE, IMPORT)
            .cause("internal error: the start imported no plan (this is a bug, please report it)")
    };
    let imported = started.imported.take().ok_or_else(missing)?;
    Ok(PlanImportOutput { format, title, warnings, imported, started: Some(started) })
}

/// The tree that the import would result in.
fn dry_run(dir: &Path, tree: &Tree, plan: &PlanImport) -> Result<ImportedTree, CommandError> {
    let inspection = ReadonlyRepo::open(dir)
        .and_then(|repo| inspect(&repo))
        .map_err(|error| CommandError::from_host(IMPORT, error))?;
    let default_config = Config::default();
    let attempts = inspection.docs.config.valid().unwrap_or(&default_config).max_attempts_default.as_u32();
    insert_plan(tree, plan, attempts).map_err(|error| CommandError::from_insert_error(IMPORT, &error))
}

fn read_plan(args: &PlanImportArgs) -> Result<ImportedPlan, CommandError> {
    let name = args.file.display().to_string();
    let bytes = read_bytes(&args.file).map_err(|error| {
        CommandError::refused("plan_file", IMPORT)
            .cause(format!("cannot read `{name}`: {error}"))
            .hint("pass a file, or - for standard input")
    })?;
    let format = args.format.map(|format| match format {
        PlanFormatArg::Markdown => PlanFormat::Markdown,
        PlanFormatArg::Prd => PlanFormat::Prd,
        PlanFormatArg::TaskMaster => PlanFormat::TaskMaster,
        PlanFormatArg::Github => PlanFormat::Github,
        PlanFormatArg::SpecKit => PlanFormat::SpecKit,
        PlanFormatArg::OpenSpec => PlanFormat::OpenSpec,
        PlanFormatArg::Kiro => PlanFormat::Kiro,
        PlanFormatArg::Beads => PlanFormat::Beads,
    });
    let options = ImportOptions { name: &name, format, tag: args.tag.as_deref() };
    parse_plan(&bytes, options).map_err(|problems| {
        CommandError::refused("plan", IMPORT)
            .cause(format!("`{name}` has {}", counted(problems.len(), "problem", "problems")))
            .details(
                problems.iter().map(|problem| format!("{name}:{}: {}", problem.line, short(&problem.reason))),
            )
            .hint("fix the file, or set its format with --format (nothing was written)")
    })
}

/// Reads one byte more than allowed, so that the parser notices a file that is too large.
fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = BYTES_MAX as u64 + 1;
    if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

impl PlanImportOutput {
    fn commit(&self) -> Option<&str> {
        self.started.as_ref().map(|started| started.commit.as_str())
    }

    fn recovered(&self) -> Option<&runner_host::repo::recovery::Recovered> {
        self.started.as_ref().and_then(|started| started.recovered.as_ref())
    }
}

impl CommandOutput for PlanImportOutput {
    fn json(&self) -> Value {
        let imported = &self.imported;
        json!({
            "schema": "runner.plan_import/1",
            "format": self.format,
            "title": self.title,
            "dry_run": self.started.is_none(),
            "under": imported.under,
            "added": imported.added,
            "skipped": imported.skipped,
            "warnings": self.warnings,
            "commit": self.commit(),
            "recovered": self.recovered().map(recovered_json),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines: Vec<KeyValueLine> = self.recovered().map(recovered_line).into_iter().collect();
        for warning in &self.warnings {
            lines.push(KeyValueLine::new().with("warning", &warning.text).with("line", warning.line));
        }
        for item in &self.imported.skipped {
            let line = KeyValueLine::new().with("skipped", short(&item.title)).with("line", item.line);
            lines.push(line.with("status", item.status.as_str()));
        }
        lines.extend(self.imported.added.iter().map(|id| KeyValueLine::new().with("added", id)));
        let totals = KeyValueLine::new()
            .with("format", self.format)
            .with("under", &self.imported.under)
            .with("nodes", self.imported.added.len())
            .with("skipped", self.imported.skipped.len())
            .with("dry_run", self.started.is_none());
        lines.push(match self.commit() {
            Some(commit) => totals.with("commit", commit),
            None => totals,
        });
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text = String::new();
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        if let Some(recovered) = self.recovered() {
            text.push_str(&format!("{tick} {}\n", recovered_text(recovered)));
        }
        let scope = TreeScope { levels: usize::MAX, only_open: false };
        text.push_str(&draw(&self.imported.tree, OnStuck::Stop, scope, styler));
        text.push('\n');
        for warning in &self.warnings {
            let label = styler.paint(TextRole::Warn, "warning:");
            text.push_str(&format!("{label} line {}: {}\n", warning.line, short(&warning.text)));
        }
        for item in &self.imported.skipped {
            let row =
                format!("Skipped ({}): {} (line {})", item.status.as_str(), short(&item.title), item.line);
            text.push_str(&styler.paint(TextRole::Faint, &styler.fit(&row, styler.width)));
            text.push('\n');
        }
        let tasks = counted(self.imported.added.len(), "task", "tasks");
        let counts = format!("{tasks} from {} under {}", self.format, self.imported.under);
        match self.commit() {
            Some(commit) => {
                let commit: String = commit.chars().take(8).collect();
                text.push_str(&format!("{tick} imported {counts}, commit {commit}\n\nNext: runner loop\n"));
            }
            None => text.push_str(&format!("dry run: would import {counts}\n")),
        }
        text
    }
}

struct PlanExportOutput {
    text: String,
    nodes: usize,
    /// None for standard output.
    file: Option<String>,
}

fn export_plan(dir: &Path, args: &PlanExportArgs) -> Result<PlanExportOutput, CommandError> {
    let tree = load(dir, EXPORT)?;
    let text = export(&tree);
    let nodes = tree.node_count();
    let Some(path) = args.out.as_deref().filter(|path| *path != Path::new("-")) else {
        return Ok(PlanExportOutput { text, nodes, file: None });
    };
    let name = path.display().to_string();
    write_file(path, &text, args.force).map_err(|error| {
        let command_error = CommandError::refused("plan_file", EXPORT);
        if error.kind() == ErrorKind::AlreadyExists {
            return command_error.cause(format!("`{name}` already exists")).hint("overwrite it with --force");
        }
        command_error
            .cause(format!("cannot write `{name}`: {error}"))
            .hint("pass a file in an existing, writable directory")
    })?;
    Ok(PlanExportOutput { text, nodes, file: Some(name) })
}

fn write_file(path: &Path, text: &str, overwrite: bool) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).truncate(overwrite);
    options.create(overwrite).create_new(!overwrite);
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

    fn human(&self, styler: &Styler) -> String {
        match &self.file {
            Some(file) => {
                let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
                format!("{tick} {} written to {file}\n", counted(self.nodes, "task", "tasks"))
            }
            None => self.text.clone(),
        }
    }

    fn is_long(&self) -> bool {
        self.file.is_none()
    }
}
