//! Forks: a new run from an iteration of another one.
//!
//! The first commit of a fork is a child of the iteration's commit and changes two things: the id in GOAL.md and the run in
//! run_state.json. Everything else continues: the tree with its passed tasks, attempts, feedback, budget and iteration
//! numbers. So the commits from the first start to the newest iteration are one history, and a fork does not reset a limit.

use crate::commit_message::{CommitKind, CommitMessage, MessageParts, Trailer};
use crate::layout::Doc;
use crate::model::goal::{Goal, GoalError};
use crate::model::id::{IterationNumber, RunId};
use crate::model::run_state::RunState;
use crate::runs::start::DocSet;

/// The message of a fork's first commit.
pub fn message(run: &RunId, from: &RunId, iter: IterationNumber) -> String {
    CommitMessage::new(CommitKind::Start { run_id: run.clone() })
        .trailer(Trailer::Fork, format!("{from} {iter}"))
        .to_string()
}

/// The run and the iteration that a fork continues, by its message.
pub fn origin(message: &[u8]) -> Option<(RunId, IterationNumber)> {
    let text = String::from_utf8_lossy(message);
    MessageParts::parse(&text).fork_origin()
}

/// The documents that a fork changes.
pub fn documents(run: &RunId, goal: &[u8], state: &RunState) -> Result<DocSet, GoalError> {
    let goal = Goal::parse(goal)?.with_id(run).into_bytes();
    let state = RunState { run_id: Some(run.clone()), ..state.clone() };
    Ok(DocSet::from([(Doc::Goal, goal), (Doc::RunState, state.to_bytes())]))
}

/// The default id of a fork: the run and the iteration, with the first free number.
pub fn generate(from: &RunId, iter: IterationNumber, taken: &[RunId]) -> Option<RunId> {
    let base = format!("{from}-{}", iter.get());
    let numbered = (1_u32..1000).map(|n| if n == 1 { base.clone() } else { format!("{base}-{n}") });
    numbered.filter_map(|id| RunId::new(id).ok()).find(|id| !taken.contains(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_was_forked() {
        let (new, old, iter) =
            (RunId::new("b").unwrap(), RunId::new("a").unwrap(), IterationNumber::new(57).unwrap());
        let text = message(&new, &old, iter);
        assert_eq!(text, "chore(loop): start run b\n\nRunner-Fork: a 0057\n");
        assert_eq!(origin(text.as_bytes()), Some((old.clone(), iter)));
        assert_eq!(origin(b"chore(loop): start run b\n\nRunner-Fork: a 57\n"), None);
        assert_eq!(origin(b"Runner-Fork: a 0057\n"), None);
        assert_eq!(generate(&old, iter, &[]).unwrap().as_str(), "a-57");
        assert_eq!(generate(&old, iter, &[RunId::new("a-57").unwrap()]).unwrap().as_str(), "a-57-2");
    }

    #[test]
    fn a_fork_has_its_own_id_and_goes_on_with_all_the_rest() {
        let (new, old) = (RunId::new("b").unwrap(), RunId::new("a").unwrap());
        let state = RunState {
            next_iter: IterationNumber::new(58).unwrap(),
            last_summary: Some("half of it".to_owned()),
            failures_in_row: 2,
            ..RunState::new(Some(old))
        };
        let forked = documents(&new, b"---\nid: a\n---\n\n# Ship it\n", &state).unwrap();
        let before = String::from_utf8(state.to_bytes()).unwrap();
        let after = before.replace(r#""run_id": "a""#, r#""run_id": "b""#);
        assert_ne!(after, before);
        let goal = b"---\nid: b\n---\n\n# Ship it\n".to_vec();
        assert_eq!(forked, DocSet::from([(Doc::Goal, goal), (Doc::RunState, after.into_bytes())]));
        assert_eq!(documents(&new, b"---\nid: a\n", &state), Err(GoalError::Unclosed));
    }
}
