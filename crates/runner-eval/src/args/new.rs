//! Arguments of `runner eval new` and `runner eval import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Create a case from a commit of a repository
///
/// The repository starts at the commit's parent. The commit's message is the goal, its changes are the solution, and its
/// changed tests are the hidden files. Then edit the goal, add cheats, and run `runner eval lint`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval new fix-login --commit 3f2a9c1 --check 'cargo test --test login'
  runner eval new fix-login --repo ../app --commit HEAD~3 --check 'npm test'")]
pub(crate) struct NewCaseArgs {
    /// Id of the new case
    #[arg(value_name = "CASE")]
    pub(crate) id: String,
    /// Commit that does what the agent will be asked to do
    #[arg(long, value_name = "REV")]
    pub(crate) commit: String,
    /// Repository of the commit [default: the project]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
    /// Shell command that fails before the commit and succeeds after it
    #[arg(long, value_name = "COMMAND")]
    pub(crate) check: String,
}

/// Convert tasks of another framework into cases
///
/// Tasks run with the programs of this machine: images are not used. The tests of a task become a hidden check.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval import harbor tasks/hello-world
  runner eval import terminal-bench tasks/*
  runner eval import swe-bench instances.jsonl --repos bundles/")]
pub(crate) struct ImportArgs {
    /// Format of the tasks
    #[arg(value_name = "FORMAT")]
    pub(crate) format: TaskFormat,
    /// Task folders, or files with instances
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Folder of git bundles named OWNER__NAME.bundle, for swe-bench
    #[arg(long, value_name = "DIR")]
    pub(crate) repos: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskFormat {
    /// task.toml, instruction.md, environment/, tests/test.sh, solution/solve.sh
    Harbor,
    /// task.yaml, run-tests.sh, tests/, solution.sh
    TerminalBench,
    /// JSON lines with FAIL_TO_PASS and PASS_TO_PASS
    SweBench,
}
