//! The files of `.runner/context/`: the goal of the session, the history of its node, and the guard's last failure.

use std::fmt::Write as _;

use crate::model::id::IterationNumber;
use crate::model::run_state::{GuardResult, NodeHistory, RecordedGuardRun};
use crate::model::tree::{Node, SelectedLeaf};
use crate::step::{Outcome, SessionTarget, Snapshot};
use crate::text::{lines, one_line};

/// The files of a session; an absent one is not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFiles {
    /// goal.md
    pub goal: String,
    /// history.md, after a retry, a rule violation or a session without an answer.
    pub history: Option<String>,
    /// failure.md, after a failed guard or failed checks, and while a failed baseline is all that is known.
    pub failure: Option<String>,
}

/// The context files of a session.
pub fn context_files(
    snapshot: &Snapshot,
    target: &SessionTarget,
    selected: Option<&SelectedLeaf<'_>>,
) -> ContextFiles {
    let past = target.node().and_then(|node| snapshot.state.history_of(node));
    let guard = snapshot.config.guard.command.words().join(" ");
    ContextFiles {
        goal: selected.map_or_else(|| repair_goal(target), |selected| node_goal(selected.leaf)),
        history: past.and_then(history),
        failure: past
            .and_then(|past| failure(past, &guard, snapshot.state.baseline.as_ref()))
            .or_else(|| red_baseline(snapshot, &guard)),
    }
}

fn node_goal(leaf: &Node) -> String {
    let mut text = format!("# {}\n\n{}\n", one_line(&leaf.title), lines(leaf.goal.trim()));
    if !leaf.acceptance.is_empty() {
        text.push_str("\n## Acceptance\n\n");
        for criterion in &leaf.acceptance {
            let _ = writeln!(text, "- {}", lines(criterion.trim()).replace('\n', "\n  "));
        }
    }
    text
}

fn repair_goal(target: &SessionTarget) -> String {
    let mut text = String::from("# Repair tree.json\n\n");
    if let SessionTarget::Repair(repair) = target {
        let _ = writeln!(
            text,
            "Iteration {} on node {} left an invalid tree.json. Write what was meant as a valid tree.",
            repair.iter, repair.node
        );
    }
    text
}

fn history(past: &NodeHistory) -> Option<String> {
    let has_failed =
        matches!(past.outcome, Outcome::GuardFailed | Outcome::ChecksFailed | Outcome::ReviewRefused);
    let has_summary = !has_failed && !past.summary.trim().is_empty();
    let mut text = format!("Iteration {} on this node ended with `{}`.\n", past.iter, past.outcome);
    if has_summary {
        let _ = write!(text, "\nIts summary:\n\n{}\n", lines(past.summary.trim()));
    }
    let notes = past.note_lines();
    if !notes.is_empty() {
        text.push_str("\nThe runner reported:\n\n");
        for note in &notes {
            let _ = writeln!(text, "- {}", one_line(note));
        }
    }
    if past.later_outcome == Some(Outcome::ReviewFailed) {
        text.push_str(
            "\nA later session answered `done`, and checks and guard succeeded, but the reviewer gave no verdict. Its changes to \
             files are still there.\n",
        );
    } else if let Some(later) = past.later_outcome {
        let _ = write!(
            text,
            "\nA later session ended without an answer (`{later}`). Its changes to files are still there.\n"
        );
    }
    text.push_str(advice(past));
    let is_useful = !has_failed || !notes.is_empty() || past.later_outcome.is_some();
    is_useful.then_some(text)
}

/// What the next session should do differently.
#[expect(clippy::wildcard_enum_match_arm, reason = "few outcomes come with advice")]
fn advice(past: &NodeHistory) -> &'static str {
    match past.later_outcome.unwrap_or(past.outcome) {
        Outcome::ContextFull => {
            "\nThe session exceeded the model's context: take smaller steps, read less at once, or split the node.\n"
        }
        Outcome::TimedOut | Outcome::GuardTimedOut => {
            "\nThe session ran out of time: continue from what is there, take smaller steps, or split the node.\n"
        }
        Outcome::OverBudget => {
            "\nThe session used up its budget: continue from what is there, and take smaller steps.\n"
        }
        Outcome::IdleTimeout => {
            "\nThe session was stopped because nothing happened for too long: do not wait for input or for programs that do \
             not end.\n"
        }
        Outcome::Unconfirmed => {
            "\nThe session answered `done` and changed no file. That answer alone is not accepted.\n"
        }
        _ => "",
    }
}

fn failure(past: &NodeHistory, guard: &str, baseline: Option<&RecordedGuardRun>) -> Option<String> {
    let output = past.guard_output.as_ref()?;
    if past.outcome == Outcome::ReviewRefused {
        let iter = past.iter;
        return Some(format!(
            "Iteration {iter} answered `done`, and checks and guard succeeded, but a reviewer refused the work:\n\n{}\n",
            output.trim_end()
        ));
    }
    let is_checks = past.outcome == Outcome::ChecksFailed;
    let what = if is_checks { "checks of the task".to_owned() } else { format!("the guard `{guard}`") };
    let mut text = format!("Iteration {} answered `done`, but {what} failed.\n", past.iter);
    if !past.summary.trim().is_empty() {
        let _ = write!(text, "\nIts summary:\n\n{}\n", lines(past.summary.trim()));
    }
    if is_checks {
        let _ = write!(text, "\n{}\n", output.trim_end());
        return Some(text);
    }
    let _ = write!(text, "\nOutput of the guard:\n\n{}\n", output.trim_end());
    if let Some(before) = baseline.filter(|baseline| baseline.guard != GuardResult::Pass) {
        text.push_str(&baseline_note(before, output));
    }
    Some(text)
}

/// What the first sessions must know: the guard failed before any of them. A task that passed shows that it no longer does.
/// If the user changed the guard later, the first session with it gets the result; the next ones see their own guard runs.
fn red_baseline(snapshot: &Snapshot, guard: &str) -> Option<String> {
    let state = &snapshot.state;
    let baseline = state.baseline.as_ref().filter(|baseline| baseline.guard != GuardResult::Pass)?;
    let is_shown = match baseline.next_iter {
        IterationNumber::FIRST => snapshot.tree.root().leaves().passed == 0,
        iter => iter == state.next_iter,
    };
    if !is_shown {
        return None;
    }
    let output = baseline.output.as_deref().unwrap_or_default().trim_end();
    let what = match baseline.guard {
        GuardResult::Skipped => "could not run",
        GuardResult::Pass | GuardResult::Fail => "failed",
    };
    let files = match baseline.next_iter {
        IterationNumber::FIRST => ", on files that no agent had changed",
        _ => "",
    };
    let when = before_session(baseline);
    Some(format!(
        "The guard `{guard}` {what} {when}{files}. No task passes before it succeeds.\n\nOutput of the guard:\n\n{output}\n"
    ))
}

/// When a baseline was recorded.
fn before_session(baseline: &RecordedGuardRun) -> String {
    match baseline.next_iter {
        IterationNumber::FIRST => "before the first session of this run".to_owned(),
        iter => format!("before iteration {}, the first one with this guard", iter.get()),
    }
}

/// How the guard failed before the first session with it.
fn baseline_note(baseline: &RecordedGuardRun, now: &str) -> String {
    let then = baseline.output.as_deref().unwrap_or_default().trim_end();
    let when = before_session(baseline);
    match baseline.guard {
        GuardResult::Fail if then == now.trim_end() => {
            format!("\nThe guard already failed {when}, with exactly this output.\n")
        }
        GuardResult::Fail => format!("\nThe guard already failed {when}, with this output:\n\n{then}\n"),
        GuardResult::Pass | GuardResult::Skipped => format!("\nThe guard could not run {when}: {then}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::{IterationNumber, NodeId};
    use crate::model::run_state::PendingRepair;
    use crate::step::SessionMode;

    fn past(outcome: Outcome) -> NodeHistory {
        NodeHistory {
            node: NodeId::root(),
            iter: IterationNumber::FIRST,
            outcome,
            summary: String::new(),
            notes: Vec::new(),
            notes_omitted: 0,
            restored: Vec::new(),
            restored_omitted: 0,
            guard_output: Some("1 failed\n".to_owned()),
            later_outcome: None,
        }
    }

    #[test]
    fn the_goal_of_a_repair_names_the_node() {
        let repair = PendingRepair {
            iter: IterationNumber::FIRST,
            node: NodeId::new("parser").unwrap(),
            mode: SessionMode::Leaf,
            tries: 0,
            rejected: String::new(),
            errors: Vec::new(),
            errors_omitted: 0,
        };
        let goal = repair_goal(&SessionTarget::Repair(Box::new(repair)));
        let start = "# Repair tree.json\n\nIteration 0001 on node parser left an invalid tree.json.";
        assert!(goal.starts_with(start), "{goal}");
    }

    #[test]
    fn only_a_full_context_gives_the_advice_to_read_less() {
        let advises =
            |past: NodeHistory| history(&past).is_some_and(|text| text.contains("read less at once"));
        assert!(advises(past(Outcome::ContextFull)));
        assert!(advises(NodeHistory { later_outcome: Some(Outcome::ContextFull), ..past(Outcome::Retry) }));
        assert!(!advises(NodeHistory {
            later_outcome: Some(Outcome::TimedOut),
            ..past(Outcome::ContextFull)
        }));
        assert!(!advises(past(Outcome::Retry)));
    }

    #[test]
    fn a_failure_has_the_summary_and_the_guards_output() {
        let text = |summary: &str| {
            let past = NodeHistory { summary: summary.to_owned(), ..past(Outcome::GuardFailed) };
            failure(&past, "just ci", None).unwrap()
        };
        let head = "Iteration 0001 answered `done`, but the guard `just ci` failed.\n";
        let printed = "\nOutput of the guard:\n\n1 failed\n";
        assert_eq!(text(" \n"), format!("{head}{printed}"));
        assert_eq!(text("All of it.\n"), format!("{head}\nIts summary:\n\nAll of it.\n{printed}"));
    }

    #[test]
    fn a_failed_baseline_is_mentioned() {
        let note = |guard, output: Option<&str>| {
            let exit = "1".to_owned();
            let baseline = RecordedGuardRun {
                guard,
                exit,
                room: None,
                output: output.map(str::to_owned),
                next_iter: IterationNumber::FIRST,
            };
            let text = failure(&past(Outcome::GuardFailed), "just ci", Some(&baseline)).unwrap();
            text.split_once("1 failed\n").unwrap().1.to_owned()
        };
        assert_eq!(note(GuardResult::Pass, None), "");
        assert_eq!(
            note(GuardResult::Fail, Some("1 failed")),
            "\nThe guard already failed before the first session of this run, with exactly this output.\n"
        );
        assert_eq!(
            note(GuardResult::Fail, Some("2 failed\n")),
            "\nThe guard already failed before the first session of this run, with this output:\n\n2 failed\n"
        );
        assert_eq!(
            note(GuardResult::Skipped, Some("no such program")),
            "\nThe guard could not run before the first session of this run: no such program\n"
        );
    }
}
