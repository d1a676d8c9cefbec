//! Arguments of `runner node`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

/// Edit the plan: add, edit, split, move or remove open tasks
///
/// Each edit is validated and committed, and `runner verify` checks it. Passed tasks cannot change. NODE is the path,
/// id or unique prefix of a task. If a loop is running, pause it first: `runner pause --wait`, edit, `runner resume`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node add root --title \"Write the manual\"
  runner node edit auth/login --goal \"Log in by e-mail, not by name\"
  runner node split login --into \"The form\" --into \"The session\"
  runner node move docs --before auth
  runner node allow login 2   # two more attempts
  runner node remove old-idea")]
pub(crate) struct NodeArgs {
    #[command(subcommand)]
    pub(crate) command: NodeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    #[command(flatten)]
    Edit(NodeEditCommand),
    Check(NodeCheckArgs),
}

/// The subcommands that edit the plan.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeEditCommand {
    Add(AddArgs),
    Edit(EditArgs),
    Split(SplitArgs),
    Remove(RemoveArgs),
    Move(MoveArgs),
    Allow(AllowArgs),
}

/// Position among its siblings [default: last]
#[derive(Args, Debug, Default)]
pub(crate) struct PositionArgs {
    /// Place it before this sibling
    #[arg(long, value_name = "NODE", group = "position")]
    pub(crate) before: Option<String>,
    /// Place it after this sibling
    #[arg(long, value_name = "NODE", group = "position")]
    pub(crate) after: Option<String>,
    /// Sort position among its siblings
    #[arg(long, value_name = "N", group = "position", allow_negative_numbers = true)]
    pub(crate) order: Option<i64>,
}

/// Add a task below another task
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node add root --title \"Write the manual\"
  runner node add auth --title \"Log out\" --goal \"A button ends the session\"
  runner node add auth --title \"Sign up\" --after login")]
pub(crate) struct AddArgs {
    /// Id of the parent task
    #[arg(value_name = "PARENT")]
    pub(crate) parent: String,
    /// Title of the task, in a few words
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: String,
    /// What must be true when it is done [default: the title]
    #[arg(long, value_name = "TEXT")]
    pub(crate) goal: Option<String>,
    /// Acceptance criterion; repeat the option for more
    #[arg(long, value_name = "TEXT")]
    pub(crate) acceptance: Vec<String>,
    #[command(flatten)]
    pub(crate) position: PositionArgs,
    /// Id [default: derived from the title]
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Number of attempts [default: max_attempts_default of config.toml]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_attempts: Option<u32>,
}

/// Change an open task's text, or its number of attempts
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node edit login --title \"Log in by e-mail\"
  runner node edit login --acceptance \"wrong passwords are refused\"")]
#[command(group = ArgGroup::new("change").required(true).multiple(true).args(["title", "goal", "acceptance", "no_acceptance", "max_attempts"]))]
pub(crate) struct EditArgs {
    /// Id of the task
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    /// Title of the task, in a few words
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// What must be true when it is done
    #[arg(long, value_name = "TEXT")]
    pub(crate) goal: Option<String>,
    /// An acceptance criterion; repeatable; replaces the existing ones
    #[arg(long, value_name = "TEXT")]
    pub(crate) acceptance: Vec<String>,
    /// Remove all acceptance criteria
    #[arg(long, conflicts_with = "acceptance")]
    pub(crate) no_acceptance: bool,
    /// Number of attempts, including those already used
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_attempts: Option<u32>,
}

/// Split an open task into steps
///
/// In a file, an unindented line is the title of a step, indented text below it is the step's goal, and indented list
/// items are its acceptance criteria.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node split login --into \"The form\" --into \"The session\"
  runner node split login --from steps.md
  cat steps.md | runner node split login --from -")]
#[command(group = ArgGroup::new("parts").required(true).multiple(false).args(["into", "from"]))]
pub(crate) struct SplitArgs {
    /// Id of the task
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    /// Title of a step; repeat at least twice
    #[arg(long, value_name = "TITLE")]
    pub(crate) into: Vec<String>,
    /// File with the steps; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
}

/// Remove an open task and everything under it
///
/// Not allowed if any of it has passed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node remove old-idea")]
pub(crate) struct RemoveArgs {
    /// Id of the task
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
}

/// Move an open task and everything under it
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node move login --under auth
  runner node move docs --before auth   # among its current siblings
  runner node move docs --under root --after auth")]
#[command(group = ArgGroup::new("where").required(true).multiple(true).args(["under", "before", "after", "order"]))]
pub(crate) struct MoveArgs {
    /// Id of the task
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    /// New parent [default: the current one]
    #[arg(long, value_name = "PARENT")]
    pub(crate) under: Option<String>,
    #[command(flatten)]
    pub(crate) position: PositionArgs,
}

/// Allow more attempts at a task
///
/// Use this when a run is stuck but the task is right as written.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node allow login     # as many more as a new task has
  runner node allow login 1")]
pub(crate) struct AllowArgs {
    /// Id of the task
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    /// How many more [default: max_attempts_default of config.toml]
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) more: Option<u32>,
}

/// Add or remove a task's own acceptance commands
///
/// A check must fail before the work on its task and succeed after it. The runner runs it; no session can change it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node check add login --name rejects --command 'cargo test --test login'
  runner node check run login
  runner node check remove login rejects")]
pub(crate) struct NodeCheckArgs {
    #[command(subcommand)]
    pub(crate) command: NodeCheckCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCheckCommand {
    Add(CheckAddArgs),
    Remove(CheckRemoveArgs),
    Run(CheckRunArgs),
}

/// Add a check to an open task
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node check add login --name rejects --command 'cargo test --test login'
  runner node check add login --name form --command 'npx vitest t/form.ts' \\
    --file t/form.ts=/tmp/form.ts --covers 1,3")]
pub(crate) struct CheckAddArgs {
    /// Id of the task
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    /// Name of the check
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// Program and arguments, quoted as in a shell; a line with shell syntax runs with `sh -c`
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: String,
    /// Acceptance criteria that it decides, from 1 [default: all]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) covers: Vec<i64>,
    /// File that goes to a path of the repository while the task is open
    #[arg(long, value_name = "DEST=PATH")]
    pub(crate) file: Vec<String>,
    /// Time limit in seconds [default: 600]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<i64>,
    /// Whether it must fail before the work
    #[arg(long, value_name = "RULE", default_value = "required", value_parser = ["required", "any"])]
    pub(crate) red: String,
}

/// Remove a check of an open task
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node check remove login rejects")]
pub(crate) struct CheckRemoveArgs {
    /// Id of the task
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    /// Name of the check
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// Run the checks of a task now, and commit nothing
///
/// Each check runs on the last commit with the task's check files, in a fresh room; where there is none, in a temporary clone.
/// Exit 0: all of them succeeded; 1: one failed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node check run login            # all checks of the task
  runner node check run login rejects    # one of them")]
pub(crate) struct CheckRunArgs {
    /// Id of the task
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    /// Name of the check [default: all of them]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}
