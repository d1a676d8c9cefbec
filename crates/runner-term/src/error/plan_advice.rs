//! What to type when a goal, a plan or an edit of it is refused.

use runner_core::runs::edit::EditError;
use runner_core::runs::import::InsertError;
use runner_core::runs::start::StartError;

use super::setup_advice::run_complete_advice;
use super::{ErrorAdvice, texts};

pub(super) fn start_error_advice(error: &StartError) -> ErrorAdvice {
    const FIX_TREE: &str =
        "fix .runner/state/tree.json, or undo the edit: git checkout -- .runner/state/tree.json";
    match error {
        StartError::Goal(_) => ErrorAdvice::new("goal", "fix .runner/GOAL.md, then run 'runner start'"),
        StartError::GoalTaken => {
            let mut advice = ErrorAdvice::new(
                "goal_taken",
                "to change the goal of this run, edit its plan: runner node edit root --goal \"…\"",
            );
            advice.hints.push(
                "for a new run: remove `id` from .runner/GOAL.md, write the new goal there, then run 'runner start'"
                    .to_owned(),
            );
            advice.hints.push("to continue with the current goal, omit --goal".to_owned());
            advice
        }
        StartError::RunComplete { goal } => run_complete_advice(goal, None),
        StartError::GoalEmpty => {
            ErrorAdvice::new("goal_empty", "write what must be true at the end: runner run \"GOAL\"")
        }
        StartError::Config(problems) => {
            let mut advice =
                ErrorAdvice::new("config", "fix .runner/state/config.toml, then run 'runner start'");
            advice
                .hints
                .push("or detect a new one, keeping the old file as .bak: runner init --force".to_owned());
            advice.with_details(texts(problems))
        }
        StartError::Tree(problems) => ErrorAdvice::new("tree", FIX_TREE).with_details(texts(problems)),
        StartError::Notes(problems) => ErrorAdvice::new("notes", "restore .runner/state/notes.json with git")
            .with_details(texts(problems)),
        StartError::RunState(problems) => {
            ErrorAdvice::new("run_state", "restore it from an earlier commit of the run's branch")
                .with_details(texts(problems))
        }
        StartError::Semantics { found } => {
            let hint = format!("continue it with a runner that has version {found} of the rules");
            let mut advice = ErrorAdvice::new("other_semantics", hint);
            advice.hints.push("or start a new run with this one: runner run \"GOAL\"".to_owned());
            advice
        }
        StartError::TreeEdit(violations) => {
            ErrorAdvice::new("tree_edit", FIX_TREE).with_details(texts(violations))
        }
        StartError::Plan(error) => insert_error_advice(error),
        StartError::PlanMoved => ErrorAdvice::new("plan_moved", "run 'runner plan edit' again"),
        StartError::WouldLose(docs) => {
            ErrorAdvice::new("would_lose", "move them away or undo the changes, then run 'runner start'")
                .with_details(docs.iter().map(|doc| doc.path().to_owned()).collect())
        }
    }
}

pub(super) fn insert_error_advice(error: &InsertError) -> ErrorAdvice {
    let advice = |hint: &str| ErrorAdvice::new("plan", hint);
    match error {
        InsertError::NoSuchNode(_) => advice("run 'runner tree' to list the tasks"),
        InsertError::Passed(_) => {
            advice("choose an open task with --under, or start a new run: runner run \"GOAL\"")
        }
        InsertError::Nothing(_) => advice("to import completed items as open tasks, add --include-done"),
        InsertError::Tree(problems) => {
            advice("import a smaller part, or under another task").with_details(texts(problems))
        }
    }
}

pub(super) fn edit_error_advice(error: &EditError) -> ErrorAdvice {
    let advice = |hint: &str| ErrorAdvice::new("edit", hint);
    match error {
        EditError::Tree(problems) => {
            advice("choose an id, numbers and texts within the limits").with_details(texts(problems))
        }
        EditError::RunnerOwned(violations) => {
            advice("leave that task as it is and add a new one").with_details(texts(violations))
        }
        EditError::NoSuchNode(_) => advice("run 'runner tree' to list the tasks"),
        EditError::Passed(_) => {
            advice("add a new task for what is missing: runner node add PARENT --title \"…\"")
        }
        EditError::GoalPassed(_) => advice("start a new run for what is missing: runner run \"GOAL\""),
        EditError::PassedBelow { .. } => {
            advice("remove the open tasks under it one by one ('runner tree --open' lists them)")
        }
        EditError::UnderPassed(_) => advice(
            "choose an open task ('runner tree --open' lists them), or the root if it has subtasks; for another goal: \
             runner run \"GOAL\"",
        ),
        EditError::Root(_) => advice("reword it with 'runner node edit', or edit .runner/GOAL.md"),
        EditError::NotALeaf(_) => {
            advice("choose one of its subtasks (see 'runner tree'), or add one with 'runner node add'")
        }
        EditError::UnderItself { .. } => advice("choose a parent that is not under it"),
        EditError::NotASibling { .. } => advice("choose a direct child of that task (see 'runner tree')"),
        EditError::NoRoom(_) => advice("set its position explicitly: --order N"),
        EditError::Taken(_) => advice("choose another id: --id ID"),
        EditError::PlanChanged => advice("run 'runner plan approve' again"),
        EditError::Notes(_) => advice("restore .runner/state/notes.json with git"),
        EditError::Nothing => advice("run 'runner show NODE' to see its current values"),
        EditError::NoTitle | EditError::NoText => advice("write some text"),
        EditError::TooLong { .. } => {
            advice("put long text into .runner/nodes/<id>/context.md, then run 'runner start'")
        }
        EditError::TooFewParts => {
            advice("repeat --into at least twice, or reword the task with 'runner node edit'")
        }
        EditError::BelowAttempts { .. } => advice("choose that number or a larger one"),
        EditError::NoSuchQuestion { count: 0, .. } => advice("no agent has asked a question yet"),
        EditError::NoSuchQuestion { .. } => advice("run 'runner questions' to list the numbers"),
    }
}
