//! The message of an iteration's commit. It depends on state and results alone, so that `verify` can derive it again.

use super::annotations::Annotation;
use super::plan::{SessionRequest, SessionTarget};
use super::settle::Settling;
use crate::commit_message::{CommitKind, CommitMessage, IterationTarget, Trailer};
use crate::model::checks::RedRecord;
use crate::model::digest::Sha256;
use crate::model::run_state::{RunState, SEMANTICS};
use crate::prompt;
use crate::text::{head, lines};

/// The most bytes of the summary in the message; run_state.json holds more of it.
const BODY_BYTES_MAX: usize = 2000;

/// What the subject calls the target of a session.
pub(crate) fn target_name(target: &SessionTarget) -> IterationTarget {
    match target {
        SessionTarget::Leaf(node) | SessionTarget::Replan(node) | SessionTarget::Split(node) => {
            IterationTarget::Node(node.clone())
        }
        SessionTarget::Plan(_) => IterationTarget::Plan,
        SessionTarget::Repair(_) => IterationTarget::Repair,
    }
}

/// What the user's command asked of the session of a commit.
pub(crate) fn session_request(kind: &CommitKind) -> SessionRequest {
    let is_plan = matches!(kind, CommitKind::Iteration { target: IterationTarget::Plan, .. });
    if is_plan { SessionRequest::Plan } else { SessionRequest::Next }
}

impl Settling<'_> {
    pub(super) fn message(&self, state: &RunState, tree: Sha256, annotations: &[Annotation]) -> String {
        let decision = &self.decision;
        let kind = CommitKind::Iteration {
            run_id: self.job.run_id.clone(),
            iter: self.job.iteration,
            target: target_name(&self.job.target),
            status: decision.status,
            guard: decision.guard,
        };
        let summary = lines(state.last_note().unwrap_or_default());
        let guard_exit = decision.guard_exit.map_or_else(|| "none".to_owned(), |exit| exit.to_string());
        let mut message = CommitMessage::new(kind)
            .body(head(summary.trim(), BODY_BYTES_MAX))
            .trailer(Trailer::Outcome, decision.outcome)
            .trailer(Trailer::Attempt, decision.charge().as_str())
            .trailer(Trailer::Prompt, self.job.prompt.sha256)
            .trailer(Trailer::PromptVersion, prompt::template_version())
            .trailer(Trailer::Tree, tree)
            .trailer(Trailer::State, Sha256::of(&state.to_bytes()))
            .trailer(Trailer::GuardExit, guard_exit);
        if let Some(place) = self.evidence.place() {
            message =
                message.trailer(Trailer::Room, place.room).trailer(Trailer::Candidate, &place.candidate);
        }
        for record in self.evidence.checks.records(self.job.task.checks.as_ref()) {
            message = message.trailer(Trailer::Check, record);
        }
        for record in RedRecord::of(&self.evidence.checks.above) {
            message = message.trailer(Trailer::Red, record);
        }
        for record in self.evidence.checks.heldout_records(self.job) {
            message = message.trailer(Trailer::Heldout, record);
        }
        if let Some(review) = &state.review.last {
            message = message.trailer(Trailer::Review, review.record());
        }
        message = message.trailer(Trailer::Semantics, SEMANTICS).user_commits(self.snapshot.user_commits);
        for annotation in annotations {
            message = message.trailer(Trailer::Annotation, annotation);
        }
        message.to_string()
    }
}
