//! The review of work that would pass: a second agent that may only refuse, a bounded number of times.
//!
//! Everything is decided here; the world only runs the session. A reviewer that fails, hangs, answers nonsense or changes files
//! gives no verdict: the task does not pass, no attempt is charged, and the work is committed as it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::IterationWorld;
use super::attempt::{CostSource, LeftFile, ProviderError, SessionExit, Usage};
use super::event::Event;
use super::evidence::Evidence;
use super::interpret::Claim;
use super::next_state::is_open_leaf;
use super::outcome::{Interruption, Outcome, OutcomeClass};
use super::plan::{Job, Ordinal, SessionTarget};
use super::settle::{Settling, is_review_due};
use super::snapshot::Snapshot;
use crate::config::Executor;
use crate::model::cost::SessionCost;
use crate::model::heldout::{HeldoutRecord, HeldoutResult};
use crate::model::repo_path::RepoPath;
use crate::model::review::{
    RecordedReview, ReviewAnswer, ReviewResult, ReviewState, ReviewVerdict, TaskRefusals, bounded_reasons,
};
use crate::model::tree::Tree;
use crate::prompt::{PromptError, ReviewBrief};

/// Whether the work of a session is reviewed before its task passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewPlan {
    /// No reviewer is configured, or the session cannot make a task pass.
    Off,
    Due {
        reviewer: Box<Executor>,
        /// Which review of the task it is, of how many that may refuse.
        round: Ordinal,
    },
    /// The reviewer refused the task as often as it may.
    Overruled,
}

impl ReviewPlan {
    /// The review of a session. It depends on the snapshot alone.
    pub(super) fn of(snapshot: &Snapshot, target: &SessionTarget) -> Self {
        let (Some(review), SessionTarget::Leaf(node)) = (&snapshot.config.review, target) else {
            return Self::Off;
        };
        let refusals = snapshot.state.review.refusals_of(node);
        let rounds = u32::try_from(review.rounds.get()).unwrap_or(1);
        if refusals >= rounds {
            return Self::Overruled;
        }
        let round = Ordinal { nth: refusals + 1, of: rounds };
        Self::Due { reviewer: Box::new(review.executor.clone()), round }
    }

    fn label(&self) -> String {
        match self {
            Self::Due { reviewer, .. } => reviewer.label(),
            Self::Off | Self::Overruled => String::new(),
        }
    }
}

/// A review to run: the reviewer, and what it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewJob {
    pub reviewer: Executor,
    pub brief: ReviewBrief,
}

/// The result of a reviewer's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewRun {
    pub exit: SessionExit,
    pub answer: LeftFile,
    pub usage: Usage,
    /// Files that the reviewer changed; the runner restored them.
    pub changed: Vec<RepoPath>,
}

/// What a review showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReviewEvidence {
    /// No review was due.
    #[default]
    Skipped,
    Ended {
        result: ReviewResult,
        /// What the reviewer found, or why it gave no answer; bounded.
        reasons: Vec<String>,
        exit: SessionExit,
        usage: Usage,
    },
}

/// A review that ended, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewReport {
    pub result: ReviewResult,
    pub reasons: Vec<String>,
}

impl ReviewEvidence {
    /// What interrupted the review.
    pub(super) fn interruption(&self) -> Option<Interruption> {
        match self {
            Self::Ended { exit: SessionExit::Interrupted { by }, .. } => Some(*by),
            Self::Ended { .. } | Self::Skipped => None,
        }
    }

    /// How the reviewer's session ended, if it gave no verdict.
    pub(super) fn failed_exit(&self) -> Option<&SessionExit> {
        match self {
            Self::Ended { result: ReviewResult::Failed, exit, .. } => Some(exit),
            Self::Ended { .. } | Self::Skipped => None,
        }
    }

    /// The outcome of an iteration whose review gave no verdict. A provider that will recover is waited for; every other failure
    /// counts, and three in a row stop the loop.
    pub(super) fn failed_outcome(&self) -> Outcome {
        let outcome = self.failed_exit().map(SessionExit::without_answer);
        let is_kept = |outcome: &Outcome| match outcome.class() {
            OutcomeClass::Transient
            | OutcomeClass::UsageLimit
            | OutcomeClass::NeedsUser
            | OutcomeClass::Budget
            | OutcomeClass::Interrupted => true,
            OutcomeClass::Answered
            | OutcomeClass::TimeLimit
            | OutcomeClass::TooLarge
            | OutcomeClass::Failure => false,
        };
        outcome.filter(is_kept).unwrap_or(Outcome::ReviewFailed)
    }
}

/// Runs the review if everything else would make the task pass.
pub(super) fn run_review<W: IterationWorld>(
    world: &mut W,
    snapshot: &Snapshot,
    job: &Job,
    claim: &Claim,
    evidence: &Evidence,
    iteration: &mut W::Iteration,
) -> Result<ReviewEvidence, W::Error> {
    let ReviewPlan::Due { reviewer, round } = &job.task.review else { return Ok(ReviewEvidence::Skipped) };
    if !is_review_due(snapshot, job, claim, evidence) {
        return Ok(ReviewEvidence::Skipped);
    }
    let results = result_lines(job, evidence);
    let review = ReviewJob { reviewer: (**reviewer).clone(), brief: brief(snapshot, job, *round, results) };
    world.announce(&Event::ReviewStarted { iter: job.iteration, agent: reviewer.label(), round: *round });
    let run = world.run_review(iteration, job, &review)?;
    let ended = interpret_review(run);
    if let ReviewEvidence::Ended { result, reasons, .. } = &ended {
        let report = ReviewReport { result: *result, reasons: reasons.clone() };
        world.announce(&Event::ReviewEnded { iter: job.iteration, report });
    }
    Ok(ended)
}

/// Renders the prompt once without changes, so that an error in the user's template shows before a session runs.
pub(super) fn check_template(snapshot: &Snapshot, job: &Job) -> Result<(), PromptError> {
    match &job.task.review {
        ReviewPlan::Due { round, .. } => brief(snapshot, job, *round, String::new()).prompt(b"").map(drop),
        ReviewPlan::Off | ReviewPlan::Overruled => Ok(()),
    }
}

fn brief(snapshot: &Snapshot, job: &Job, round: Ordinal, results: String) -> ReviewBrief {
    ReviewBrief {
        run_id: job.run_id.to_string(),
        iteration: job.iteration.to_string(),
        node: job.target.node().map(ToString::to_string).unwrap_or_default(),
        round: round.nth,
        rounds: round.of,
        task: job.context.goal.clone(),
        results,
        bytes_max: usize::try_from(snapshot.config.prompt_budget_bytes.as_u32()).unwrap_or(usize::MAX),
        templates: snapshot.templates.clone(),
    }
}

/// How the checks of the task and the guard ended, one line each.
fn result_lines(job: &Job, evidence: &Evidence) -> String {
    let mut text = String::new();
    let checks = job.task.checks.iter().flat_map(|checks| &checks.task.checks);
    let records = evidence.checks.records(job.task.checks.as_ref());
    for (check, record) in checks.zip(&records) {
        let command = check.command.words().join(" ");
        let exit = record.exit.map_or_else(|| "not run".to_owned(), |exit| exit.to_string());
        text.push_str(&format!(
            "check `{}` (`{command}`): {} before the work, exit {exit} after it\n",
            check.name, record.red
        ));
    }
    let heldout = evidence.checks.heldout_records(job);
    let own = heldout.iter().filter(|record| job.target.node() == Some(&record.node));
    for HeldoutRecord { name, red, result, .. } in own.clone() {
        let result = result.map_or("not run", HeldoutResult::as_str);
        text.push_str(&format!("held-out check `{name}`: {red} before the work, {result} after it\n"));
    }
    if records.is_empty() && own.count() == 0 {
        text.push_str("The task has no checks of its own.\n");
    }
    text.push_str(&format!("guard `{}`: exit 0\n", job.guard.command.words().join(" ")));
    text
}

/// What a reviewer's session comes to. Only a valid answer of a session that ended by itself counts.
fn interpret_review(run: ReviewRun) -> ReviewEvidence {
    let ReviewRun { exit, answer, usage, changed } = run;
    let failed = |reasons: Vec<String>, exit: SessionExit| ReviewEvidence::Ended {
        result: ReviewResult::Failed,
        reasons: bounded_reasons(&reasons),
        exit,
        usage,
    };
    let mut why: Vec<String> = exit.why().into_iter().collect();
    if exit.stopped_from_outside().is_some() {
        why.extend(stop_reason(&exit));
        return failed(why, exit);
    }
    if !changed.is_empty() {
        let names: Vec<String> = changed.iter().map(ToString::to_string).collect();
        why.push(format!("the reviewer changed files, which the runner restored: {}", names.join(", ")));
        return failed(why, exit);
    }
    match answer {
        LeftFile::Bytes(bytes) => match ReviewAnswer::decode(&bytes) {
            Ok(answer) => {
                let result = match answer.verdict {
                    ReviewVerdict::Accept => ReviewResult::Accepted,
                    ReviewVerdict::Refuse => ReviewResult::Refused,
                };
                let reasons = bounded_reasons(&answer.reasons);
                return ReviewEvidence::Ended { result, reasons, exit, usage };
            }
            Err(problems) => why.extend(problems.iter().map(|problem| format!("the answer: {problem}"))),
        },
        LeftFile::Missing if matches!(exit, SessionExit::Provider { .. }) => {}
        LeftFile::Missing => why.push("the reviewer left no answer".to_owned()),
        LeftFile::NotAFile => why.push("the answer is not a regular file".to_owned()),
        LeftFile::TooLarge(bytes) => why.push(format!("the answer is too large: {bytes} bytes")),
    }
    failed(why, exit)
}

/// Why a session that was stopped from outside gave no verdict, where the exit itself has no text.
fn stop_reason(exit: &SessionExit) -> Option<String> {
    let text = match exit {
        SessionExit::TimedOut => "the reviewer reached its time limit",
        SessionExit::Idle => "the reviewer produced no output for too long",
        SessionExit::OverBudget => "the reviewer reached the limit on its tokens or its cost",
        SessionExit::Interrupted { .. } => "the review was interrupted",
        SessionExit::Finished { .. }
        | SessionExit::Killed { .. }
        | SessionExit::NotStarted { .. }
        | SessionExit::Provider { .. } => return None,
    };
    Some(text.to_owned())
}

impl Settling<'_> {
    /// The reviewer's exit, if it decided the outcome.
    pub(super) fn failed_review(&self) -> Option<&SessionExit> {
        self.evidence.review.failed_exit()
    }

    /// The agent whose failure decided the outcome.
    pub(super) fn failing_agent(&self) -> String {
        match self.failed_review() {
            Some(_) => self.job.task.review.label(),
            None => self.job.agent.label(),
        }
    }

    /// What the review cost, if there was one.
    pub(super) fn review_cost(&self) -> Option<SessionCost> {
        let ReviewEvidence::Ended { exit, usage, .. } = &self.evidence.review else { return None };
        let review = self.snapshot.config.review.as_ref()?;
        let price = self.snapshot.config.price_of(&review.executor);
        Some(SessionCost::of(exit, *usage, price))
    }

    /// The review as the run state records it.
    pub(super) fn recorded_review(&self) -> Option<RecordedReview> {
        let ReviewEvidence::Ended { result, reasons, .. } = &self.evidence.review else { return None };
        let ReviewPlan::Due { reviewer, round } = &self.job.task.review else { return None };
        let record = RecordedReview {
            agent: reviewer.label(),
            round: *round,
            result: *result,
            reasons: reasons.clone(),
            tokens: None,
            microdollars: None,
            cost_source: CostSource::Unknown,
        };
        Some(record.with_cost(self.review_cost()?))
    }

    pub(super) fn next_review_state(&self, tree: &Tree) -> ReviewState {
        let mut refusals = self.snapshot.state.review.refusals.clone();
        if let (Outcome::ReviewRefused, Some(node)) = (self.decision.outcome, self.job.target.node()) {
            let count = self.snapshot.state.review.refusals_of(node).saturating_add(1);
            refusals.retain(|known| known.node != *node);
            refusals.push(TaskRefusals { node: node.clone(), count });
        }
        refusals.retain(|known| is_open_leaf(tree, &known.node));
        refusals.sort_by(|one, other| one.node.cmp(&other.node));
        ReviewState { last: self.recorded_review(), refusals }
    }

    /// What a reviewer refused, for the next session.
    pub(super) fn refusal_text(&self) -> Option<String> {
        let ReviewEvidence::Ended { reasons, .. } = &self.evidence.review else { return None };
        Some(reasons.iter().map(|reason| format!("- {}\n", reason.replace('\n', "\n  "))).collect())
    }
}

/// The exit of a review that a commit records as failed, as far as the recorded outcome and wait depend on it.
pub(crate) fn recorded_exit(outcome: Outcome, fault: Option<ProviderError>) -> SessionExit {
    match (outcome, fault) {
        (Outcome::Interrupted, _) => SessionExit::Interrupted { by: Interruption::Int },
        (Outcome::NotLoggedIn, _) => {
            SessionExit::Provider { fault: ProviderError::NotLoggedIn { why: String::new() } }
        }
        (_, Some(fault)) => SessionExit::Provider { fault },
        (_, None) => SessionExit::Finished { code: 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(exit: SessionExit, answer: &str) -> ReviewRun {
        let answer = LeftFile::Bytes(answer.as_bytes().to_vec());
        ReviewRun { exit, answer, usage: Usage::default(), changed: Vec::new() }
    }

    fn result(run: ReviewRun) -> (ReviewResult, Outcome) {
        let evidence = interpret_review(run);
        let ReviewEvidence::Ended { result, reasons, .. } = &evidence else { panic!("it ended") };
        assert!(*result == ReviewResult::Accepted || !reasons.is_empty(), "{evidence:?}");
        (*result, evidence.failed_outcome())
    }

    const ACCEPT: &str = r#"{"verdict": "accept", "reasons": []}"#;
    const FINISHED: SessionExit = SessionExit::Finished { code: 0 };

    #[test]
    fn only_a_valid_answer_of_a_session_that_ended_by_itself_counts() {
        assert_eq!(result(run(FINISHED, ACCEPT)).0, ReviewResult::Accepted);
        assert_eq!(result(run(SessionExit::Finished { code: 3 }, ACCEPT)).0, ReviewResult::Accepted);
        let refuse = r#"{"verdict": "refuse", "reasons": ["a"]}"#;
        assert_eq!(result(run(FINISHED, refuse)).0, ReviewResult::Refused);
        for exit in
            [SessionExit::TimedOut, SessionExit::Idle, SessionExit::NotStarted { why: "x".to_owned() }]
        {
            assert_eq!(result(run(exit, ACCEPT)), (ReviewResult::Failed, Outcome::ReviewFailed));
        }
        for nonsense in ["", "accept", "{}", r#"{"verdict": "refuse", "reasons": []}"#] {
            assert_eq!(result(run(FINISHED, nonsense)), (ReviewResult::Failed, Outcome::ReviewFailed));
        }
        let missing = ReviewRun { answer: LeftFile::Missing, ..run(FINISHED, "") };
        assert_eq!(result(missing), (ReviewResult::Failed, Outcome::ReviewFailed));
        let writer = ReviewRun { changed: vec![RepoPath::of_bytes(b"src/a.rs")], ..run(FINISHED, ACCEPT) };
        assert_eq!(result(writer), (ReviewResult::Failed, Outcome::ReviewFailed));
    }

    #[test]
    fn a_provider_that_recovers_is_waited_for() {
        let provider =
            |fault| ReviewRun { answer: LeftFile::Missing, ..run(SessionExit::Provider { fault }, "") };
        for (fault, outcome) in [
            (ProviderError::Overloaded, Outcome::Overloaded),
            (ProviderError::UsageLimit { resets_unix_secs: None }, Outcome::UsageLimit),
            (ProviderError::NotLoggedIn { why: "x".to_owned() }, Outcome::NotLoggedIn),
            (ProviderError::ContextFull, Outcome::ReviewFailed),
            (ProviderError::Refused { why: "x".to_owned() }, Outcome::ReviewFailed),
        ] {
            assert_eq!(result(provider(fault)), (ReviewResult::Failed, outcome));
        }
    }
}
