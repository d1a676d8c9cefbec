//! What people can type to steer a run.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

/// Edit the plan of a run: add, reword, divide, move or remove open nodes, and allow more attempts
///
/// Every edit is checked and is a commit of its own, which `runner verify` makes again and compares. What passed stays as
/// it is. A node is named by its path, its id, or the beginning of it. While a loop runs, let it stand still first:
/// `runner pause --wait`, edit, `runner resume`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node add root --title \"Write the manual\" --acceptance \"every command has an example\"
  runner node edit auth/login --goal \"Log in by e-mail, not by name\"
  runner node split login --into \"The form\" --into \"The session\"
  runner node move docs --before auth
  runner node allow login 2
  runner node remove old-idea")]
pub(crate) struct NodeArgs {
    #[command(subcommand)]
    pub(crate) command: NodeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    Add(AddArgs),
    Edit(EditArgs),
    Split(SplitArgs),
    Remove(RemoveArgs),
    Move(MoveArgs),
    Allow(AllowArgs),
}

/// Where among its siblings a node goes; without any of these, behind all of them
#[derive(Args, Debug, Default)]
pub(crate) struct PositionArgs {
    /// Before this sibling
    #[arg(long, value_name = "NODE", group = "place")]
    pub(crate) before: Option<String>,
    /// Behind this sibling
    #[arg(long, value_name = "NODE", group = "place")]
    pub(crate) after: Option<String>,
    /// With this number; siblings are sorted by it
    #[arg(long, value_name = "N", group = "place", allow_negative_numbers = true)]
    pub(crate) order: Option<i64>,
}

/// Add a node under another one
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node add root --title \"Write the manual\"
  runner node add auth --title \"Log out\" --goal \"A button that ends the session\" --after login")]
pub(crate) struct AddArgs {
    /// The node that it goes under
    #[arg(value_name = "PARENT")]
    pub(crate) parent: String,
    /// A short name
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: String,
    /// What must be true when it is done; without it, the title
    #[arg(long, value_name = "TEXT")]
    pub(crate) goal: Option<String>,
    /// How one sees that it is: one point; may be given more than once
    #[arg(long, value_name = "TEXT")]
    pub(crate) acceptance: Vec<String>,
    #[command(flatten)]
    pub(crate) place: PositionArgs,
    /// Its id; without it, one is made from the title
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// How many attempts it has; without it, max_attempts_default of the configuration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_attempts: Option<u32>,
}

/// Reword an open node, or set how many attempts it has
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node edit login --title \"Log in by e-mail\"
  runner node edit login --acceptance \"wrong passwords are refused\" --acceptance \"three tries\"")]
#[command(group = ArgGroup::new("change").required(true).multiple(true).args(["title", "goal", "acceptance", "no_acceptance", "max_attempts"]))]
pub(crate) struct EditArgs {
    /// The node
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    /// A short name
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// What must be true when it is done
    #[arg(long, value_name = "TEXT")]
    pub(crate) goal: Option<String>,
    /// How one sees that it is: in the place of all points that are there; may be given more than once
    #[arg(long, value_name = "TEXT")]
    pub(crate) acceptance: Vec<String>,
    /// No points at all
    #[arg(long, conflicts_with = "acceptance")]
    pub(crate) no_acceptance: bool,
    /// How many attempts it has, those that are spent included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_attempts: Option<u32>,
}

/// Divide an open leaf into steps
///
/// In a file, a line at the margin is a title; what is indented below it is the step's goal, and indented points are its
/// acceptance.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node split login --into \"The form\" --into \"The session\"
  runner node split login --from steps.md
  printf 'The form\\n  Two fields.\\n  - tab order is right\\nThe session\\n' | runner node split login --from -")]
#[command(group = ArgGroup::new("parts").required(true).multiple(false).args(["into", "from"]))]
pub(crate) struct SplitArgs {
    /// The leaf
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    /// A step, by its title; given twice or more
    #[arg(long, value_name = "TITLE")]
    pub(crate) into: Vec<String>,
    /// A file with the steps; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
}

/// Remove an open node and everything below it; refused where anything of that passed
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node remove old-idea")]
pub(crate) struct RemoveArgs {
    /// The node
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
}

/// Move an open node, with everything below it
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node move login --under auth
  runner node move docs --before auth       among the siblings it has
  runner node move docs --under root --after auth")]
#[command(group = ArgGroup::new("where").required(true).multiple(true).args(["under", "before", "after", "order"]))]
pub(crate) struct MoveArgs {
    /// The node
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    /// The node that it goes under; without it, the one that it is under
    #[arg(long, value_name = "PARENT")]
    pub(crate) under: Option<String>,
    #[command(flatten)]
    pub(crate) place: PositionArgs,
}

/// Allow more attempts at a leaf: what to do when a run is stuck and the leaf is fine as it is
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner node allow login       as many more as a new node has
  runner node allow login 1")]
pub(crate) struct AllowArgs {
    /// The leaf
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    /// How many more
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) more: Option<u32>,
}

/// List what agents asked, with the answers
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner questions
  runner questions --open
  runner questions --json | jq -r '.questions[].text'")]
pub(crate) struct QuestionsArgs {
    /// Only those without an answer
    #[arg(long)]
    pub(crate) open: bool,
}

/// Answer a question: the next session reads the answer behind it
///
/// Agents never wait for an answer: they go on with an assumption. Commits .runner/state/questions.md.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner questions
  runner answer 2 \"Port 8080, as in the old server\"")]
pub(crate) struct AnswerArgs {
    /// The question's number, as 'runner questions' lists it
    #[arg(value_name = "N")]
    pub(crate) number: usize,
    /// The answer
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
}

/// Say a word to the sessions to come
///
/// It goes to the end of .runner/state/feedback.md, which every prompt shows, and is committed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner note \"The database is read-only on this machine: use the copy in testdata/\"")]
pub(crate) struct NoteArgs {
    /// What to say
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
}

/// Let a loop stand still after the iteration that it is making
///
/// The loop lives on and waits; meanwhile the plan can be edited, and 'runner start' takes changes in. A loop that is
/// started while the run is paused waits too. 'runner resume' lets it go on. 'runner step' is made all the same.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner pause
  runner pause --wait && runner node split login --into \"The form\" --into \"The session\" && runner resume")]
pub(crate) struct PauseArgs {
    /// Wait until the running iteration is over
    #[arg(long)]
    pub(crate) wait: bool,
}

/// Let a paused run go on
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner resume")]
pub(crate) struct ResumeArgs {}
