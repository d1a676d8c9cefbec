//! The commands on the program's help page, in groups.

use runner_term::help_pages::{CommandGroup, CommandRow};

use super::{
    AnswerArgs, AttestArgs, BlameArgs, ChecksArgs, CleanArgs, CompletionsArgs, ConfigArgs, ConformanceArgs,
    DemoArgs, DiffArgs, DoctorArgs, EvalArgs, ExplainArgs, ExportArgs, ForkArgs, InitArgs, LandArgs, LogArgs,
    LoopArgs, ManArgs, McpArgs, NodeArgs, NoteArgs, PauseArgs, PlanArgs, QuestionsArgs, ReplayArgs,
    ReportArgs, ResumeArgs, RunGoalArgs, RunsArgs, SelectArgs, ShowArgs, StartArgs, StatusArgs, StepArgs,
    StopArgs, SwitchArgs, TreeArgs, UiArgs, ValidateArgs, VerifyArgs, WatchArgs,
};

pub(super) const GROUPS: &[CommandGroup] = &[
    CommandGroup {
        heading: "Run",
        commands: &[
            CommandRow::new::<RunGoalArgs>("run", "Set up a run for a goal and work until it is reached"),
            CommandRow::new::<StartArgs>("start", "Start or resume a run"),
            CommandRow::new::<StepArgs>(
                "step",
                "Run one iteration: one agent session, checked and committed",
            ),
            CommandRow::new::<LoopArgs>("loop", "Run until the goal is reached or something stops it"),
            CommandRow::new::<StopArgs>("stop", "Stop the loop in this work tree, from any terminal"),
        ],
    },
    CommandGroup {
        heading: "Look",
        commands: &[
            CommandRow::new::<StatusArgs>("status", "Show the run's status"),
            CommandRow::new::<ReportArgs>("report", "Report what a run did, task by task"),
            CommandRow::new::<TreeArgs>("tree", "Show the task tree"),
            CommandRow::new::<LogArgs>("log", "List the iterations of a run, or print the output of one"),
            CommandRow::new::<ShowArgs>("show", "Show one iteration or task in full"),
            CommandRow::new::<DiffArgs>("diff", "Show the changes of an iteration"),
            CommandRow::new::<SelectArgs>("select", "Print the next task"),
            CommandRow::new::<ChecksArgs>("checks", "List the checks of all tasks"),
            CommandRow::new::<WatchArgs>("watch", "Watch a run in this terminal"),
            CommandRow::new::<UiArgs>("ui", "Open the web UI"),
            CommandRow::new::<ExportArgs>("export", "Write a whole run to one HTML or JSON file"),
        ],
    },
    CommandGroup {
        heading: "Steer",
        commands: &[
            CommandRow::new::<PauseArgs>("pause", "Pause the loop after the current iteration"),
            CommandRow::new::<ResumeArgs>("resume", "Resume a paused run"),
            CommandRow::new::<NodeArgs>("node", "Edit the plan: add, edit, split, move or remove open tasks"),
            CommandRow::new::<PlanArgs>("plan", "Make, check, edit, approve, import or export the plan"),
            CommandRow::new::<QuestionsArgs>("questions", "List the agents' questions and your answers"),
            CommandRow::new::<AnswerArgs>("answer", "Answer a question; the next session sees your answer"),
            CommandRow::new::<NoteArgs>("note", "Leave a note for all later sessions"),
            CommandRow::new::<ForkArgs>(
                "fork",
                "Start a new run from an earlier iteration, and switch to it",
            ),
        ],
    },
    CommandGroup {
        heading: "Finish",
        commands: &[
            CommandRow::new::<LandArgs>("land", "Turn a run into commits for your branch"),
            CommandRow::new::<RunsArgs>("runs", "List the runs of this repository"),
            CommandRow::new::<SwitchArgs>("switch", "Check out the branch of another run"),
            CommandRow::new::<CleanArgs>("clean", "Remove the logs, references and branch of a run"),
        ],
    },
    CommandGroup {
        heading: "Prove",
        commands: &[
            CommandRow::new::<VerifyArgs>(
                "verify",
                "Prove from git alone that every rule held at every commit",
            ),
            CommandRow::new::<AttestArgs>("attest", "Print what a run proves as in-toto statements"),
            CommandRow::new::<ReplayArgs>(
                "replay",
                "Replay a recorded run and check that it gives identical results",
            ),
            CommandRow::new::<BlameArgs>(
                "blame",
                "Find the iteration that broke a task, the guard or a command",
            ),
        ],
    },
    CommandGroup {
        heading: "Set up",
        commands: &[
            CommandRow::new::<InitArgs>("init", "Create .runner/ in this repository"),
            CommandRow::new::<ConfigArgs>("config", "Show or change the configuration"),
            CommandRow::new::<DoctorArgs>(
                "doctor",
                "Check git, guard and agent, and explain how to fix problems",
            ),
            CommandRow::new::<ExplainArgs>(
                "explain",
                "Explain an error code, a stop reason, an outcome or a rule",
            ),
            CommandRow::new::<ValidateArgs>(
                "validate",
                "Check the files under .runner/ and list every problem",
            ),
            CommandRow::new::<DemoArgs>(
                "demo",
                "Watch a whole run in a scratch repository: no agent, no key",
            ),
            CommandRow::new::<CompletionsArgs>("completions", "Print a completion script for a shell"),
            CommandRow::new::<ManArgs>("man", "Print the manual page, or write one page per command"),
            CommandRow::new::<McpArgs>("mcp", "Serve this repository's runs to MCP clients"),
        ],
    },
    CommandGroup {
        heading: "Evaluate",
        commands: &[
            CommandRow::new::<EvalArgs>("eval", "Evaluate agents on many cases"),
            CommandRow::new::<ConformanceArgs>(
                "conformance",
                "Test an agent, or the runner itself, against scripted scenarios",
            ),
        ],
    },
];
