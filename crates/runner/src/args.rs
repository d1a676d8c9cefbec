//! What people can type.

mod edit;
mod fork;
mod plan;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use runner_core::agents::{AGENTS, AgentSpec, agent_named};
use runner_term::GlobalArgs;

pub(crate) use edit::{
    AddArgs, AnswerArgs, EditArgs, MoveArgs, NodeArgs, NodeCommand, NoteArgs, PauseArgs, PositionArgs,
    QuestionsArgs, ResumeArgs, SplitArgs,
};
pub(crate) use fork::{BlameArgs, ForkArgs};
pub(crate) use plan::{PlanArgs, PlanCommand, PlanExportArgs, PlanFormatArg, PlanImportArgs};

/// Makes a coding agent finish a goal unattended, without trusting the agent.
///
/// Write down a goal, run `runner start`, and every step from then on is one commit on a branch of its own.
#[derive(Debug, Parser)]
#[command(name = "runner", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Examples:
  runner init                        set this repository up, then edit .runner/GOAL.md
  runner start                       begin or resume the run that the goal names
  runner start --goal \"Port to Rust\"  the same, with the goal given here
  runner status                      where the run stands, and what to do next

Exit codes:
  0 success   1 something failed   2 wrong usage or invalid input   3 stuck   4 a limit was reached
  129, 130, 143 interrupted by a signal")]
pub struct RunnerCli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: RunnerCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunnerCommand {
    Init(InitArgs),
    Start(StartArgs),
    Step(StepArgs),
    #[command(name = "loop", visible_alias = "run")]
    Loop(LoopArgs),
    Validate(ValidateArgs),
    Select(SelectArgs),
    Status(StatusArgs),
    Tree(TreeArgs),
    Log(LogArgs),
    Show(ShowArgs),
    Diff(DiffArgs),
    Node(NodeArgs),
    Questions(QuestionsArgs),
    Answer(AnswerArgs),
    Note(NoteArgs),
    Pause(PauseArgs),
    Resume(ResumeArgs),
    Verify(VerifyArgs),
    Replay(ReplayArgs),
    Fork(ForkArgs),
    Blame(BlameArgs),
    Plan(PlanArgs),
    Doctor(DoctorArgs),
    Conformance(ConformanceArgs),
    Demo(DemoArgs),
    Ui(UiArgs),
    Watch(WatchArgs),
    Export(ExportArgs),
    Eval(EvalArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Check an agent: sessions in repositories made for them, what each must come to, and what it came to
///
/// The scripted agent plays honest and misbehaving sessions, which tells whether the runner holds on this machine. A real
/// agent is asked for three small tasks: it is found and logged in, answers as it should, splits a goal, reports what it
/// used, and ends in time with everything it started. That uses your login and costs some thousand tokens, so it needs
/// --yes. Without --agent it is the agent of this repository's configuration, or else the scripted one.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner conformance                        the agent configured here
  runner conformance --agent script         played sessions, free of charge
  runner conformance --agent claude --yes   three sessions with your own login
  runner conformance --json | jq '.rows[] | select(.verdict == \"bad\")'")]
pub(crate) struct ConformanceArgs {
    /// The agent to check
    #[arg(long, value_name = "AGENT", value_parser = ConformanceAgent::parser())]
    pub(crate) agent: Option<ConformanceAgent>,
    /// Let a real agent work, with your login and at your cost
    #[arg(long)]
    pub(crate) yes: bool,
    /// How long the session may take that does not end by itself
    #[arg(long, value_name = "SECS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
}

/// An agent that `runner conformance` can test.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConformanceAgent {
    /// Scenarios, played by the runner itself.
    Script,
    /// The program configured here, or else the runner itself, started as a program.
    Command,
    /// An agent of the registry.
    Known(&'static AgentSpec),
}

impl ConformanceAgent {
    /// A parser that accepts the names of all agents.
    fn parser() -> impl TypedValueParser<Value = Self> {
        let special = [
            PossibleValue::new("script").help("Scripted sessions, played by the runner itself"),
            PossibleValue::new("command")
                .help("The program configured here, or the runner itself as a program"),
        ];
        let known = AGENTS.into_iter().map(|agent| PossibleValue::new(agent.name));
        PossibleValuesParser::new(special.into_iter().chain(known)).map(|name| match name.as_str() {
            "script" => Self::Script,
            name => agent_named(name).map_or(Self::Command, Self::Known),
        })
    }
}

/// Set a repository up: write what is missing under .runner/
///
/// Nothing that is there is changed. Afterwards, write your goal into .runner/GOAL.md and run `runner start`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner init
  runner init --force    write the files anew; the old ones stay beside them as .bak")]
pub(crate) struct InitArgs {
    /// Replace files that are there already; the old ones stay beside them as .bak
    #[arg(long)]
    pub(crate) force: bool,
}

/// Begin or resume the run that GOAL.md names
///
/// Checks out or creates the branch runner/<id>, writes the id into GOAL.md, takes in what you changed under .runner/
/// and commits it. Running it again changes nothing. A goal without an id begins a new run.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner start
  runner start --goal \"Make the parser twice as fast\"
  runner start --goal-file docs/plan.md
  runner start --keep-plan    a new run that goes on with the open nodes of the last one")]
pub(crate) struct StartArgs {
    /// The goal, for a repository that has none yet
    #[arg(long, value_name = "TEXT", conflicts_with = "goal_file")]
    pub(crate) goal: Option<String>,
    /// A file that holds the goal
    #[arg(long, value_name = "FILE")]
    pub(crate) goal_file: Option<PathBuf>,
    /// In a new run, go on with the open nodes of the tree that is here
    #[arg(long)]
    pub(crate) keep_plan: bool,
}

/// Make one iteration: one agent session, judged, guarded and committed
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner step
  runner step --json")]
pub(crate) struct StepArgs {}

/// Make iterations until the goal is reached or something stops the run
///
/// Ctrl-C stops the session politely, commits what there is and ends; a second one ends at once, and the next command
/// finishes the rest.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner loop
  runner loop --max-iterations 10
  runner loop --json | jq -c 'select(.event == \"committed\")'")]
pub(crate) struct LoopArgs {
    /// Stop after so many iterations of this invocation
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,
}

/// Check the files under .runner/ and the run's identity, and list every problem
///
/// Changes nothing. Exits with 2 if there is a problem.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner validate
  runner validate --json | jq '.problems[].message'")]
pub(crate) struct ValidateArgs {}

/// Print the leaf that comes next, or that there is none
///
/// Exits with 3 if every attempt at that leaf is spent.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner select
  runner select --explain    say at every level why it goes that way")]
pub(crate) struct SelectArgs {
    /// Say why it is this one
    #[arg(long)]
    pub(crate) explain: bool,
}

/// Show where the run stands, on one screen
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner status
  runner -C ../other status --json")]
pub(crate) struct StatusArgs {}

/// Draw the task tree
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner tree
  runner tree --open --depth 2    only what is left to do, two levels of it
  runner tree -v                  with the goal of each node")]
pub(crate) struct TreeArgs {
    /// How many levels to show
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) depth: Option<u16>,
    /// Only nodes that do not pass yet
    #[arg(long)]
    pub(crate) open: bool,
}

/// List the iterations of a run, or show what one of them printed
///
/// An iteration is 57 or #57; @ is the last one, or the one that is being made; @-1 the one before it. A node stands for
/// the last iteration that worked on it. In a clone without the run's logs, what git alone knows is shown.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner log                     every iteration, newest last
  runner log 57                  what the agent and the guard printed
  runner log @ --errors          what was found against the last one, and the end of the guard's output
  runner log 57 --grep 'error|panic'
  runner log -f                  every iteration as it is made
  runner log @ -f                what the running one prints")]
pub(crate) struct LogArgs {
    /// An iteration, or a node
    #[arg(value_name = "ITER|NODE")]
    pub(crate) which: Option<String>,
    /// Only what the guard printed
    #[arg(long, group = "part")]
    pub(crate) guard: bool,
    /// Only what the agent printed
    #[arg(long, group = "part")]
    pub(crate) agent: bool,
    /// The agent's output line by line, with times, as it was recorded
    #[arg(long, group = "part")]
    pub(crate) raw: bool,
    /// What was found against the session, and the end of the guard's output
    #[arg(long, group = "part")]
    pub(crate) errors: bool,
    /// The prompt
    #[arg(long, group = "part")]
    pub(crate) prompt: bool,
    /// Only lines that match
    #[arg(long, value_name = "RE")]
    pub(crate) grep: Option<String>,
    /// Go on as long as something is added
    #[arg(short, long, conflicts_with_all = ["grep", "errors", "prompt"])]
    pub(crate) follow: bool,
    /// Another run than the one here
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
}

/// Show one iteration or one node, whole
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner show                    the last iteration: outcome, guard, summary, changed files
  runner show 57
  runner show auth/login         a node: goal, acceptance, attempts, every iteration on it, the last failure")]
pub(crate) struct ShowArgs {
    /// An iteration (57, #57, @, @-1), or a node by its path, its id or the beginning of it
    #[arg(value_name = "ITER|NODE")]
    pub(crate) which: Option<String>,
    /// Another run than the one here
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
}

/// Show what an iteration changed
///
/// Without paths, everything but the runner's own files under .runner/.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner diff                    the last iteration
  runner diff 57 -- src          only below src
  runner diff 57 -- .runner      what it did to the plan and the memory files
  runner diff @-1 | delta")]
pub(crate) struct DiffArgs {
    /// An iteration (57, #57, @, @-1), or a node: the last iteration on it
    #[arg(value_name = "ITER|NODE")]
    pub(crate) which: Option<String>,
    /// Only these paths
    #[arg(last = true, value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Another run than the one here
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
}

/// Prove from git alone that every rule held at every commit of a run
///
/// Derives every iteration again from the commit before it: number, node, prompt, tree, state, message, protected files.
/// Works in any clone; the logs of the run are not needed. Exits with 1 if a rule does not hold, with 2 if there is no
/// such run.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner verify                       the run that is checked out
  runner verify port-to-rust          a run by its id, here or as a remote has it
  runner verify HEAD~20..HEAD         a part of one
  runner verify --rerun-guard         and run the guard again on every commit that passed a node
  runner verify --json | jq .first_divergence")]
pub(crate) struct VerifyArgs {
    /// A run, a commit of one, or a range of commits; without it, the run here
    #[arg(value_name = "RUN|RANGE")]
    pub(crate) target: Option<String>,
    /// Check passes out into a temporary repository and run the guard of that time again: one iteration, or all
    #[arg(long, value_name = "ITER|all", num_args = 0..=1, default_missing_value = "all",
          value_parser = crate::commands::verify::which_passes)]
    pub(crate) rerun_guard: Option<PassSelection>,
}

/// Put a recorded run through this version's rules, and compare every byte
///
/// Takes what came back from every session and every guard, plans, judges and settles again, and compares prompts, trees,
/// states and messages with those of the run. Exits with 1 at the first difference.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner replay                        the run that is checked out
  runner replay --export run.json      and write it into one file, which needs no repository
  runner replay run.json")]
pub(crate) struct ReplayArgs {
    /// A run whose logs are here, or a file that was exported
    #[arg(value_name = "RUN|FILE")]
    pub(crate) target: Option<String>,
    /// Write the recording into a file
    #[arg(long, value_name = "FILE")]
    pub(crate) export: Option<PathBuf>,
}

/// Which passes the guard is run on again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassSelection {
    /// Every one.
    All,
    /// That of one iteration.
    One(runner_core::model::id::IterationNumber),
}

/// Check git, the guard and the agent, and say how to get what is missing
///
/// Exits with 1 if a run would fail.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner doctor
  runner doctor --json")]
pub(crate) struct DoctorArgs {}

/// See a whole run in a scratch repository: no agent, no key, no network
///
/// A scripted agent plans, works, makes a mistake and tries to cheat; everything else is real: git, the guard, the tree.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner demo
  runner demo --dir ~/runner-demo    in a folder of your choice, which must not exist yet")]
pub(crate) struct DemoArgs {
    /// Where to make the scratch repository
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Watch and read runs in a browser: hands over to `runner-ui`
///
/// A local page that only reads. It is a program of its own, found beside `runner` or on the PATH; what is typed behind
/// `ui` is for it, and `runner-ui --help` lists that.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner ui
  runner ui --open
  runner ui --port 0 --json")]
pub(crate) struct UiArgs {
    /// Options of `runner-ui`
    #[arg(value_name = "OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<OsString>,
}

/// Watch a run in this terminal: hands over to `runner-ui`
///
/// The tree and what the agent says and does, as it happens; it only reads. `?` lists the keys, and
/// `runner-ui watch --help` the options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner watch
  runner watch nightly               a run by its id
  ssh -t build runner -C app watch   a run on another machine")]
pub(crate) struct WatchArgs {
    /// The run, and options of `runner-ui watch`
    #[arg(value_name = "OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<OsString>,
}

/// Evaluate agents over many cases: hands over to `runner-eval`
///
/// Real loops over declarative cases, with statistics, from one machine to a cluster. It is a program of its own, found
/// beside `runner` or on the PATH; what is typed behind `eval` is for it, and `runner-eval --help` lists that.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval list
  runner eval run --tag scripted --jobs 4
  runner eval run --agent codex --agent claude --trials 5")]
pub(crate) struct EvalArgs {
    /// Command and options of `runner-eval`
    #[arg(value_name = "OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<OsString>,
}

/// Write a whole run into one file: hands over to `runner-ui`
///
/// As a page that opens from the disk, without a server, or as JSON. `runner-ui export --help` lists the options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner export html --out ../run.html      the current run, as a page
  runner export json nightly | gzip > nightly.json.gz")]
pub(crate) struct ExportArgs {
    /// `html` or `json`, then the run and options of `runner-ui export`
    #[arg(value_name = "FORM", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<OsString>,
}

/// Print a shell's completion script
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner completions bash > ~/.local/share/bash-completion/completions/runner
  runner completions fish > ~/.config/fish/completions/runner.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// Print the manual page, or write one page per command into a folder
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner man | man -l -
  runner man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write the pages here
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// The reference of every command, as Markdown, from what is defined above.
pub fn reference() -> String {
    runner_term::cli_docs::reference(RunnerCli::command(), "runner", "Command line")
}
