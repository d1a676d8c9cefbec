//! Arguments of `runner log`.

use clap::Args;

use super::RunArg;

/// List the iterations of a run, or print the output of one
///
/// ITER is 57 or #57; @ is the last iteration or the current one, @-1 the one before it. NODE means the last iteration
/// that worked on that task. In a clone without the run's logs, shows what git has.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner log                # all iterations, newest last
  runner log -n 5           # the last five
  runner log 57             # output of the agent and the guard in iteration 57
  runner log @ --errors     # why the last iteration failed
  runner log 57 --grep 'error|panic'
  runner log -f             # print each new iteration when it ends
  runner log @ -f           # follow the output of the current iteration")]
pub(crate) struct LogArgs {
    /// Number of an iteration or id of a task
    #[arg(value_name = "ITER|NODE")]
    pub(crate) target: Option<String>,
    /// Show only the last N iterations
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "target")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    part: LogPartArgs,
    /// Only lines that match the regular expression
    #[arg(long, value_name = "RE")]
    pub(crate) grep: Option<String>,
    /// Print new output as it arrives
    #[arg(short, long, conflicts_with_all = ["grep", "errors", "prompt"])]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) run: RunArg,
}

#[derive(Args, Debug)]
struct LogPartArgs {
    /// Only the guard's output
    #[arg(long, group = "part")]
    guard: bool,
    /// Only the agent's output
    #[arg(long, group = "part")]
    agent: bool,
    /// The agent's output as recorded, one JSON object per line with times
    #[arg(long, group = "part")]
    raw: bool,
    /// Every request to the model and its answer, if they were recorded
    #[arg(long, group = "part")]
    requests: bool,
    /// Rule violations, and the last lines of the guard's output
    #[arg(long, group = "part")]
    errors: bool,
    /// Print the prompt of the session
    #[arg(long, group = "part")]
    prompt: bool,
}

/// Which of an iteration's logs to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogPart {
    All,
    Guard,
    Agent,
    Raw,
    Requests,
    Errors,
    Prompt,
}

impl LogPart {
    /// Whether it is lines for programs, which are printed as they are.
    pub(crate) fn is_raw(self) -> bool {
        matches!(self, Self::Raw | Self::Requests)
    }
}

impl LogArgs {
    pub(crate) fn part(&self) -> LogPart {
        // clap allows at most one of the flags.
        let flags = [
            (self.part.guard, LogPart::Guard),
            (self.part.agent, LogPart::Agent),
            (self.part.raw, LogPart::Raw),
            (self.part.requests, LogPart::Requests),
            (self.part.errors, LogPart::Errors),
            (self.part.prompt, LogPart::Prompt),
        ];
        flags.into_iter().find(|(is_set, _)| *is_set).map_or(LogPart::All, |(_, part)| part)
    }
}
