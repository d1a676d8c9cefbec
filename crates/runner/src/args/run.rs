//! Arguments of `runner run`.

use std::path::PathBuf;

use clap::Args;

use super::LoopOptions;

/// Set up a run for a goal and work until it is reached
///
/// Detects how the project is tested and which agent is installed, shows the setup, asks once, and starts the loop. An
/// existing configuration, or that of the newest run, is used as it is. Without a goal, continues the current run like
/// `runner loop`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner run \"Add OAuth login\"
  runner run \"Port the parser to Rust\" --yes --agent claude
  runner run \"Fix the flaky tests\" --guard \"npm run ci\" --worktree
  runner run            # continue the current run")]
pub(crate) struct RunGoalArgs {
    /// What must be true at the end; words without quotes are joined
    #[arg(value_name = "GOAL")]
    pub(crate) goal: Vec<String>,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Agent: codex, claude, a preset, or a command [default: detected]
    #[arg(long, value_name = "AGENT", requires = "goal")]
    pub(crate) agent: Option<String>,
    /// Model of the agent [default: the agent's default]
    #[arg(long, value_name = "MODEL", requires = "goal")]
    pub(crate) model: Option<String>,
    /// Test command that must succeed [default: detected]
    #[arg(long, value_name = "COMMAND", requires = "goal")]
    pub(crate) guard: Option<String>,
    /// Id of the run [default: from the words of the goal]
    #[arg(long, value_name = "ID", requires = "goal")]
    pub(crate) id: Option<String>,
    /// Work in a linked work tree [default folder: beside the repository]
    #[arg(long, value_name = "DIR", num_args = 0..=1, requires = "goal")]
    pub(crate) worktree: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) options: LoopOptions,
}
