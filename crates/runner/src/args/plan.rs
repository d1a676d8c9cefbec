//! Arguments of `runner plan`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Import or export the plan
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner plan import PLAN.md --dry-run
  runner plan import .taskmaster/tasks/tasks.json
  runner plan export --out PLAN.md")]
pub(crate) struct PlanArgs {
    #[command(subcommand)]
    pub(crate) command: PlanCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    Import(PlanImportArgs),
    Export(PlanExportArgs),
}

/// Add the items of a checklist or task file to the plan, as one commit
///
/// Reads Markdown checklists, user stories (prd.json) and Task Master's tasks.json. Nesting becomes the tree, and
/// dependencies become order. Completed items are skipped (and counted): only the runner can mark a task as passed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner plan import PLAN.md --dry-run   # show the resulting tree
  runner plan import PLAN.md
  runner plan import prd.json --under api
  runner plan import tasks.json --tag release
  cat notes.txt | runner plan import - --format markdown")]
pub(crate) struct PlanImportArgs {
    /// File to import; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Parent task (path, id or unique prefix) [default: the root]
    #[arg(long, value_name = "NODE")]
    pub(crate) under: Option<String>,
    /// Show the resulting tree and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// File format [default: detected]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<PlanFormatArg>,
    /// Task list to import, for a Task Master file with several
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Import completed items as open tasks
    #[arg(long)]
    pub(crate) include_done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormatArg {
    Markdown,
    Prd,
    TaskMaster,
}

/// Write the plan as a Markdown checklist, which `plan import` reads
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner plan export                       # print it
  runner plan export --out PLAN.md         # write a new file
  runner plan export --out PLAN.md --force")]
pub(crate) struct PlanExportArgs {
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}
