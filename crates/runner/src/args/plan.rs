//! What people can type about plans.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Take a plan in from a file, or write the tree as one
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner plan import PLAN.md --dry-run
  runner plan import .taskmaster/tasks/tasks.json
  runner plan export PLAN.md")]
pub(crate) struct PlanArgs {
    #[command(subcommand)]
    pub(crate) command: PlanCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    Import(PlanImportArgs),
    Export(PlanExportArgs),
}

/// Put the items of a checklist or a task file into the tree, as one commit
///
/// Reads markdown checklists, user stories (prd.json) and task-master's tasks.json. Nesting becomes the tree and
/// dependencies become order. Only the runner says that a node passes, so items that the file calls done are left out
/// and counted.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner plan import PLAN.md --dry-run    show the tree that it would make
  runner plan import PLAN.md
  runner plan import prd.json --under api
  runner plan import tasks.json --tag release
  cat notes.txt | runner plan import - --format markdown")]
pub(crate) struct PlanImportArgs {
    /// The file; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The node that the items go below, by its path, its id or the beginning of it; without it, the root
    #[arg(long, value_name = "NODE")]
    pub(crate) under: Option<String>,
    /// Show the tree, and write nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// How the file is written; without it, that is found out and told
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<PlanFormatArg>,
    /// Which list of tasks, in a file of task-master's that holds several
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Take items that the file calls done in too, as open work
    #[arg(long)]
    pub(crate) include_done: bool,
}

/// How a plan is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormatArg {
    /// A checklist: `- [ ] what to do`
    Markdown,
    /// User stories: prd.json
    Prd,
    /// Task-master's tasks.json
    TaskMaster,
}

/// Write the tree as a markdown checklist, which `plan import` reads back
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner plan export              print it
  runner plan export PLAN.md      write it into a file that is not there yet
  runner plan export PLAN.md --force")]
pub(crate) struct PlanExportArgs {
    /// The file; - is standard output
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    pub(crate) file: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}
