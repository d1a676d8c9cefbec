//! The files of `.runner/context/`: what the session is for, what went before, what the guard said.

use std::fmt::Write as _;

use crate::model::run_state::{Baseline, GuardResult, NodeHistory};
use crate::model::tree::{Node, SelectedLeaf};
use crate::step::{Outcome, SessionTarget, Snapshot};
use crate::text::{lines, one_line};

/// The files, as text; one that is absent is not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFiles {
    /// goal.md
    pub goal: String,
    /// history.md: after a retry, a broken rule, or a session that gave no answer.
    pub history: Option<String>,
    /// failure.md: after a guard that failed.
    pub failure: Option<String>,
}

/// The context of a session.
pub fn context_files(
    snapshot: &Snapshot,
    aim: &SessionTarget,
    choice: Option<&SelectedLeaf<'_>>,
) -> ContextFiles {
    let lesson = aim.node().and_then(|node| snapshot.state.history_of(node));
    let guard = snapshot.config.guard.command.words().join(" ");
    ContextFiles {
        goal: choice.map_or_else(|| repair_goal(aim), |choice| node_goal(choice.leaf)),
        history: lesson.and_then(history),
        failure: lesson.and_then(|lesson| failure(lesson, &guard, snapshot.state.baseline.as_ref())),
    }
}

fn node_goal(leaf: &Node) -> String {
    let mut text = format!("# {}\n\n{}\n", one_line(&leaf.title), lines(leaf.goal.trim()));
    if !leaf.acceptance.is_empty() {
        text.push_str("\n## Acceptance\n\n");
        for point in &leaf.acceptance {
            let _ = writeln!(text, "- {}", lines(point.trim()).replace('\n', "\n  "));
        }
    }
    text
}

fn repair_goal(aim: &SessionTarget) -> String {
    let mut text = String::from("# Mend tree.json\n\n");
    if let SessionTarget::Repair(repair) = aim {
        let _ = writeln!(
            text,
            "Iteration {}, on node {}, left a tree.json that was refused. Write what was meant as a valid tree.",
            repair.iter, repair.node
        );
    }
    text
}

fn history(lesson: &NodeHistory) -> Option<String> {
    let own_words = lesson.outcome != Outcome::GuardFailed && !lesson.summary.trim().is_empty();
    let mut text = format!("Iteration {} on this node ended as `{}`.\n", lesson.iter, lesson.outcome);
    if own_words {
        let _ = write!(text, "\nIts summary:\n\n{}\n", lines(lesson.summary.trim()));
    }
    let notes = lesson.note_lines();
    if !notes.is_empty() {
        text.push_str("\nWhat the runner found:\n\n");
        for note in &notes {
            let _ = writeln!(text, "- {}", one_line(note));
        }
    }
    if let Some(then) = lesson.later_outcome {
        let _ = write!(
            text,
            "\nA later session gave no answer (`{then}`). What it did to the files is still there.\n"
        );
    }
    if lesson.later_outcome.unwrap_or(lesson.outcome) == Outcome::ContextFull {
        text.push_str(
            "\nThe session was too long for its model: take smaller steps, read less at once, or divide the node.\n",
        );
    }
    let worth_telling =
        lesson.outcome != Outcome::GuardFailed || !notes.is_empty() || lesson.later_outcome.is_some();
    worth_telling.then_some(text)
}

fn failure(lesson: &NodeHistory, guard: &str, baseline: Option<&Baseline>) -> Option<String> {
    let output = lesson.guard_output.as_ref()?;
    let mut text = format!("Iteration {} said `done`, and the guard `{guard}` failed.\n", lesson.iter);
    if !lesson.summary.trim().is_empty() {
        let _ = write!(text, "\nIts summary:\n\n{}\n", lines(lesson.summary.trim()));
    }
    let _ = write!(text, "\nWhat the guard printed:\n\n{}\n", output.trim_end());
    if let Some(before) = baseline.filter(|baseline| baseline.guard != GuardResult::Pass) {
        text.push_str(&red_before(before, output));
    }
    Some(text)
}

/// What was red before any agent came.
fn red_before(baseline: &Baseline, now: &str) -> String {
    let then = baseline.output.as_deref().unwrap_or_default().trim_end();
    match baseline.guard {
        GuardResult::Fail if then == now.trim_end() => {
            "\nThe guard printed exactly this before the first session of the run, too.\n".to_owned()
        }
        GuardResult::Fail => format!(
            "\nThe guard was red before the first session of the run, too. What it printed then:\n\n{then}\n"
        ),
        GuardResult::Pass | GuardResult::Skipped => {
            format!("\nBefore the first session of the run the guard could not be asked: {then}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::{IterationNumber, NodeId};
    use crate::model::run_state::PendingRepair;
    use crate::step::SessionMode;

    fn lesson(outcome: Outcome) -> NodeHistory {
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
    fn a_repair_is_told_whose_tree_it_mends() {
        let repair = PendingRepair {
            iter: IterationNumber::FIRST,
            node: NodeId::new("parser").unwrap(),
            mode: SessionMode::Leaf,
            tries: 0,
            rejected: String::new(),
            errors: Vec::new(),
            errors_omitted: 0,
        };
        let told = repair_goal(&SessionTarget::Repair(Box::new(repair)));
        let begin = "# Mend tree.json\n\nIteration 0001, on node parser, left a tree.json that was refused.";
        assert!(told.starts_with(begin), "{told}");
    }

    #[test]
    fn only_a_session_that_was_too_long_is_told_to_be_shorter() {
        let is_told =
            |lesson: NodeHistory| history(&lesson).is_some_and(|told| told.contains("smaller steps"));
        assert!(is_told(lesson(Outcome::ContextFull)));
        assert!(is_told(NodeHistory { later_outcome: Some(Outcome::ContextFull), ..lesson(Outcome::Retry) }));
        assert!(!is_told(NodeHistory {
            later_outcome: Some(Outcome::TimedOut),
            ..lesson(Outcome::ContextFull)
        }));
        assert!(!is_told(lesson(Outcome::Retry)));
    }

    #[test]
    fn a_failure_has_the_summary_and_what_the_guard_printed() {
        let told = |summary: &str| {
            let lesson = NodeHistory { summary: summary.to_owned(), ..lesson(Outcome::GuardFailed) };
            failure(&lesson, "just ci", None).unwrap()
        };
        let head = "Iteration 0001 said `done`, and the guard `just ci` failed.\n";
        let printed = "\nWhat the guard printed:\n\n1 failed\n";
        assert_eq!(told(" \n"), format!("{head}{printed}"));
        assert_eq!(told("All of it.\n"), format!("{head}\nIts summary:\n\nAll of it.\n{printed}"));
    }

    #[test]
    fn what_was_red_before_any_agent_came_is_told() {
        let told = |guard, output: Option<&str>| {
            let exit = "1".to_owned();
            let baseline = Baseline { guard, exit, output: output.map(str::to_owned) };
            let told = failure(&lesson(Outcome::GuardFailed), "just ci", Some(&baseline)).unwrap();
            told.split_once("1 failed\n").unwrap().1.to_owned()
        };
        assert_eq!(told(GuardResult::Pass, None), "");
        assert_eq!(
            told(GuardResult::Fail, Some("1 failed")),
            "\nThe guard printed exactly this before the first session of the run, too.\n"
        );
        assert_eq!(
            told(GuardResult::Fail, Some("2 failed\n")),
            "\nThe guard was red before the first session of the run, too. What it printed then:\n\n2 failed\n"
        );
        assert_eq!(
            told(GuardResult::Skipped, Some("no such program")),
            "\nBefore the first session of the run the guard could not be asked: no such program\n"
        );
    }
}
