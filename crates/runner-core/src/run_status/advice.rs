//! What to type next, by the state of a run: the same commands on the command line, in the terminal UI and on the page.

use schemars::JsonSchema;
use serde::Serialize;

use super::{RunRef, StartBlocker};
use crate::detect::command_line;
use crate::layout::{Doc, FINAL_LOG, RUNNER_DIR};
use crate::model::id::{NodeId, RunId};
use crate::step::{Outcome, StopReason};

/// A command to type, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NextCommand {
    pub command: String,
    /// What it does, in the imperative.
    pub what: String,
}

impl NextCommand {
    pub fn new(command: impl Into<String>, what: impl Into<String>) -> Self {
        Self { command: command.into(), what: what.into() }
    }
}

fn command(command: impl Into<String>, what: impl Into<String>) -> NextCommand {
    NextCommand::new(command, what)
}

fn edit(doc: Doc, what: impl Into<String>) -> NextCommand {
    command(format!("${{EDITOR:-vi}} {}", doc.path()), what)
}

fn start_after_edit() -> NextCommand {
    command("runner start", "commit the change")
}

fn continue_loop() -> NextCommand {
    command("runner loop", "continue")
}

/// What to do about the questions of a planning session.
pub(super) fn answer_and_plan() -> Vec<NextCommand> {
    vec![
        command("runner questions", "see what it asked"),
        command("runner answer 1 \"…\"", "answer question 1"),
        command("runner plan make", "let it write the plan"),
    ]
}

pub(super) fn recover() -> Vec<NextCommand> {
    vec![command("runner loop", "recover and continue")]
}

pub(super) fn validate() -> Vec<NextCommand> {
    vec![command("runner validate", "list every problem")]
}

pub(super) fn run(what: &str) -> Vec<NextCommand> {
    vec![command("runner loop", what)]
}

pub(super) fn wait() -> Vec<NextCommand> {
    vec![command("runner loop", "wait for the rest and continue")]
}

pub(super) fn resume(has_loop: bool) -> Vec<NextCommand> {
    let again = if has_loop { "if that loop has ended" } else { "continue" };
    vec![command("runner resume", "end the pause"), command("runner loop", again)]
}

pub(super) fn switch(run: &RunId) -> NextCommand {
    command(format!("runner switch {run}"), "check the run out")
}

/// The same commands for a run that another work tree has checked out.
pub(super) fn in_worktree(worktree: &str, commands: Vec<NextCommand>) -> Vec<NextCommand> {
    let there = command_line(&["runner", "-C", worktree].map(str::to_owned));
    let moved = |next: NextCommand| match next.command.strip_prefix("runner ") {
        // Its work tree is removed before a run is cleaned.
        Some(rest) if !rest.starts_with("clean ") => command(format!("{there} {rest}"), next.what),
        Some(_) | None => next,
    };
    commands.into_iter().map(moved).collect()
}

/// How to start a run, or to get back to it.
pub(super) fn start(blocker: Option<StartBlocker>) -> Vec<NextCommand> {
    let start = command("runner start", "start or resume the run");
    match blocker {
        Some(StartBlocker::NotInitialized) => {
            vec![
                command("runner run \"GOAL\"", "detect your test command and agent, and start"),
                command("runner init", format!("or create {RUNNER_DIR}/ and write the goal yourself")),
            ]
        }
        Some(StartBlocker::GoalNotWritten) => vec![edit(Doc::Goal, "write your goal"), start],
        Some(StartBlocker::UncommittedRunnerFiles | StartBlocker::DirtyWorktree) | None => vec![start],
    }
}

/// How to continue a run that cannot before something else is done.
pub(super) fn unblock(blocker: StartBlocker) -> Vec<NextCommand> {
    match blocker {
        StartBlocker::NotInitialized | StartBlocker::GoalNotWritten => start(Some(blocker)),
        StartBlocker::UncommittedRunnerFiles => {
            vec![command("runner start", format!("commit your changes under {RUNNER_DIR}/")), continue_loop()]
        }
        StartBlocker::DirtyWorktree => {
            vec![command("git status", "commit or stash these changes first"), continue_loop()]
        }
    }
}

/// How to continue after a stop, or to use the work of a complete run.
pub(super) fn after_stop(reason: &StopReason, run: Option<RunRef<'_>>) -> Vec<NextCommand> {
    match reason {
        StopReason::Complete => merge(run),
        StopReason::Stuck { node } => unstick(node),
        StopReason::NotReproducible { .. } => reproduce(run),
        StopReason::Regressed { node, check, .. } => vec![
            command(format!("runner node check run {node} {check}"), "see what it prints"),
            command("runner node add root --title \"…\"", "add a task that fixes it"),
            edit(Doc::Config, "or raise regression_tasks under [checks]"),
            start_after_edit(),
            command("runner loop", "run the checks again"),
        ],
        StopReason::MaxIterations { .. } => {
            vec![edit(Doc::Config, "raise max_iterations"), start_after_edit(), continue_loop()]
        }
        StopReason::Budget { limit, .. } => {
            let raise = format!("raise {} under [budget]", limit.as_str());
            vec![edit(Doc::Config, raise), start_after_edit(), continue_loop()]
        }
        StopReason::Stalled { .. } => vec![
            command("runner log --errors", "see what failed"),
            command("runner tree --open", "find a task to change: runner node edit, runner node split"),
            command("runner loop", "try again for as many iterations"),
            edit(Doc::Config, "or raise stall_iterations under [limits]"),
            start_after_edit(),
        ],
        StopReason::TimeLimit { outcome } => {
            let key =
                if *outcome == Outcome::IdleTimeout { "idle_timeout_secs" } else { "iteration_timeout_secs" };
            let raise = edit(Doc::Config, format!("if it was too short: raise {key}"));
            vec![continue_loop(), raise, start_after_edit()]
        }
        StopReason::Failures { .. } => find_failure(),
        StopReason::NeedsUser { .. } => {
            vec![command("runner doctor", "see how to log the agent in"), continue_loop()]
        }
        StopReason::VacuousChecks { node, .. } => vec![
            command(format!("runner show {node}"), "see the task, then change its checks"),
            edit(Doc::Config, "or set vacuous = \"annotate\" under [checks]"),
            start_after_edit(),
            continue_loop(),
        ],
        StopReason::NotApproved => vec![
            command("runner plan lint", "see whether the plan is sound"),
            command("runner plan approve", "approve it as it is"),
            continue_loop(),
        ],
        StopReason::LoopBudget { spent: None, .. } => vec![
            command("runner log @", "see what the agent reported"),
            edit(Doc::Config, "add [prices] for its tokens, or remove the limit under [budget]"),
            start_after_edit(),
            command("runner loop", "continue, without an option that sets the limit"),
        ],
        StopReason::LoopIterations { .. }
        | StopReason::LoopBudget { .. }
        | StopReason::LoopUntil { .. }
        | StopReason::Interrupted { .. }
        | StopReason::UserStop
        | StopReason::Unknown => vec![continue_loop()],
    }
}

/// What to do with the work of a complete run. Whether it is landed is not known here: to find that out takes a search of the
/// whole history, so both next steps are named.
fn merge(run: Option<RunRef<'_>>) -> Vec<NextCommand> {
    let Some(run) = run else { return Vec::new() };
    vec![
        command("runner report", "see what was done"),
        command("runner land", "make commits for your own branch"),
        command(format!("runner clean {}", run.id), "remove it once landed"),
    ]
}

/// What to do about a guard that fails in a clean checkout.
fn reproduce(run: Option<RunRef<'_>>) -> Vec<NextCommand> {
    let log = run.map(|run| {
        command(format!("less {RUNNER_DIR}/iterations/{}/{FINAL_LOG}", run.id), "see what the guard printed")
    });
    let rest = [
        edit(Doc::Config, "if the guard needs ignored files: [guard] keep or setup, then 'runner start'"),
        command("runner node add root --title \"…\"", "or add a task that fixes it"),
        command("runner loop", "run the final check again, or the new task"),
    ];
    log.into_iter().chain(rest).collect()
}

/// What to do about an agent that fails again and again. Its own output has the cause more often than the setup.
fn find_failure() -> Vec<NextCommand> {
    vec![
        command("runner log @", "read the agent's output"),
        command("runner doctor", "check the setup"),
        continue_loop(),
    ]
}

fn unstick(node: &NodeId) -> Vec<NextCommand> {
    vec![
        command(format!("runner node allow {node}"), "allow more attempts"),
        command(format!("runner node edit {node} --goal \"…\""), "or change the task first"),
        command(format!("runner node split {node} --into \"…\" --into \"…\""), "or split it"),
        continue_loop(),
    ]
}
