//! The commit's message: subject, what was said, and trailers. A function of state and results alone.

use super::annotations::Annotation;
use super::plan::Job;
use super::settle::{AttemptCharge, Decision};
use crate::model::digest::Sha256;
use crate::model::run_state::{RunState, SEMANTICS};
use crate::prompt;
use crate::text::{head, lines};

/// How much of what was said stands in the message.
const BODY_BYTES_MAX: usize = 2000;

/// The trailer that says how many commits of the user's own, made since the runner's last, were taken in.
pub(crate) const TAKEN_IN: &str = "Runner-Taken-In";

/// The message of an iteration's commit.
pub(super) fn compose(
    job: &Job,
    state: &RunState,
    ruling: &Decision<'_>,
    marks: &[Annotation],
    (tree_sha256, own_commits): (Sha256, u32),
) -> String {
    let mut message = subject(job, ruling);
    message.push_str("\n\n");
    message.push_str(&body(state));
    let guard_exit = ruling.guard_exit.map_or_else(|| "none".to_owned(), |exit| exit.to_string());
    let charge = match ruling.charge() {
        AttemptCharge::Charged => "charged",
        AttemptCharge::Free => "free",
    };
    let fixed = [
        ("Runner-Outcome", ruling.outcome.to_string()),
        ("Runner-Attempt", charge.to_owned()),
        ("Runner-Prompt", job.prompt.sha256.to_string()),
        ("Runner-Prompt-Edition", prompt::template_version()),
        ("Runner-Tree", tree_sha256.to_string()),
        ("Runner-State", Sha256::of(&state.to_bytes()).to_string()),
        ("Runner-Guard-Exit", guard_exit),
        ("Runner-Semantics", SEMANTICS.to_string()),
    ];
    let taken_in = (own_commits > 0).then(|| (TAKEN_IN, own_commits.to_string()));
    let marks = marks.iter().map(|mark| (mark.trailer(), mark.to_string()));
    for (key, value) in fixed.into_iter().chain(taken_in).chain(marks) {
        message.push_str(&format!("{key}: {value}\n"));
    }
    message
}

fn subject(job: &Job, ruling: &Decision<'_>) -> String {
    let target = job.target.node().map_or_else(|| "repair".to_owned(), |node| format!("node {node}"));
    let (run, iteration) = (&job.run_id, job.iteration);
    let (status, guard) = (ruling.status.as_str(), ruling.guard.as_str());
    format!("chore(loop): run {run} iter {iteration} {target} status={status} guard={guard}")
}

/// What was said, as the state keeps it, indented so that no line of it can be taken for a trailer; a paragraph of its
/// own, or nothing.
fn body(state: &RunState) -> String {
    let said = lines(state.last_summary.as_deref().unwrap_or_default());
    let said = head(said.trim(), BODY_BYTES_MAX);
    if said.is_empty() {
        return String::new();
    }
    let indented: Vec<String> = said.lines().map(|line| format!("  {}", line.trim_end())).collect();
    let indented: Vec<&str> = indented.iter().map(|line| line.trim_end()).collect();
    format!("{}\n\n", indented.join("\n"))
}
