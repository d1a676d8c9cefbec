//! Arguments of `runner plan`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Make, check, edit, approve, import or export the plan
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner plan make                 # an agent asks, then writes the plan
  runner plan lint                 # run its checks: each must fail now
  runner plan edit                 # change it in your editor
  runner plan approve              # record your consent
  runner plan import PLAN.md --dry-run
  runner plan import .taskmaster/tasks/tasks.json
  runner plan export --out PLAN.md")]
pub(crate) struct PlanArgs {
    #[command(subcommand)]
    pub(crate) command: PlanCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    Make(PlanMakeArgs),
    Lint(PlanLintArgs),
    Edit(PlanEditArgs),
    Approve(PlanApproveArgs),
    Import(PlanImportArgs),
    Export(PlanExportArgs),
}

/// Run one session that only writes the plan: tasks with acceptance criteria and checks
///
/// The session reads the repository and asks at most five questions. On a terminal you answer them at once; elsewhere the command ends
/// with exit code 3, and after 'runner answer' the next 'runner plan make' continues. Nothing that the session changes outside
/// .runner/ is kept. A plan that breaks a rule is rejected, and up to two further sessions get the reasons.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner plan make
  runner answer 1 \"PostgreSQL only\"   # if it asked something
  runner plan make                     # continues with the answers
  runner plan lint                     # then check the plan")]
pub(crate) struct PlanMakeArgs {}

/// Check the plan before a long run, without an agent
///
/// Runs every check of the open tasks on the last commit (those that must fail, twice) and reports what is wrong: checks that succeed
/// already or are broken, tasks without acceptance criteria, tasks that are too large, check files with the same destination. Lists
/// the acceptance criteria that no check decides, and estimates cost and time (P50 and P90) from tasks that passed in this
/// repository. Exit 2 if anything is wrong.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner plan lint
  runner plan lint --mutants   # checks must also fail on stubs
  runner plan lint --json")]
pub(crate) struct PlanLintArgs {
    /// Also run each check with stubs: every missing file that its command names, empty and then as `exit 0`
    #[arg(long)]
    pub(crate) mutants: bool,
}

/// Edit the plan as Markdown in your editor ($VISUAL or $EDITOR), as one commit
///
/// Every task carries its id behind its title. A task without one is new, a missing one is removed, and the order of the text is
/// the order of the plan. Tasks that passed cannot change. All errors are reported at once with their lines, and your text is kept.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner plan edit
  EDITOR='code --wait' runner plan edit
  runner plan edit --file /tmp/runner-plan-42-0.md   # read an edited text back")]
pub(crate) struct PlanEditArgs {
    /// Read this edited text instead of opening the editor
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// Record your consent to the plan as it is, as one commit
///
/// With `[plan] approval = "required"`, no session begins without it. The approval covers the texts of all tasks and their checks
/// with all files. It ends when you change the plan ('runner node', 'plan edit', 'plan import', 'start') and with 'plan make'; what agents
/// add while they work does not end it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner plan approve
  runner config set plan.approval required   # then 'runner start'")]
pub(crate) struct PlanApproveArgs {}

/// Add the items of a checklist or task file to the plan, as one commit
///
/// Reads Markdown checklists, user stories (prd.json), Task Master's tasks.json, GitHub issues, the tasks.md of Spec Kit,
/// OpenSpec and Kiro, and beads' issues.jsonl. Nesting becomes the tree, and dependencies become order. Completed items are
/// skipped (and counted): only the runner can mark a task as passed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner plan import PLAN.md --dry-run   # show the resulting tree
  runner plan import PLAN.md
  runner plan import prd.json --under api
  gh issue list --json number,title,body,labels,state | runner plan import -
  runner plan import .kiro/specs/search/tasks.md
  runner plan import .beads/issues.jsonl
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
    Github,
    SpecKit,
    OpenSpec,
    Kiro,
    Beads,
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
