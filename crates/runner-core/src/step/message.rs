//! The commit's message: subject, what was said, and trailers. A function of state and results alone.

use super::bookkeeping::findings;
use super::interpret::{Claim, Finding};
use super::mark::Mark;
use super::plan::Job;
use super::settle::{Charge, Ruling};
use crate::digest::Sha256;
use crate::run_state::SEMANTICS;
use crate::text::{head, lines};

/// How much of what was said stands in the message.
const BODY_BYTES_MAX: usize = 2000;

/// The message of an iteration's commit.
pub(super) fn compose(
    job: &Job,
    claim: &Claim,
    ruling: &Ruling<'_>,
    marks: &[Mark],
    tree_sha256: Sha256,
) -> String {
    let mut message = subject(job, ruling);
    message.push_str("\n\n");
    message.push_str(&body(claim));
    let guard_exit = ruling.guard_exit.map_or_else(|| "none".to_owned(), |exit| exit.to_string());
    let charge = match ruling.charge() {
        Charge::Charged => "charged",
        Charge::Free => "free",
    };
    let fixed = [
        ("Runner-Outcome", ruling.outcome.to_string()),
        ("Runner-Attempt", charge.to_owned()),
        ("Runner-Prompt", job.prompt.sha256.to_string()),
        ("Runner-Tree", tree_sha256.to_string()),
        ("Runner-Guard-Exit", guard_exit),
        ("Runner-Semantics", SEMANTICS.to_string()),
    ];
    let marks = marks.iter().map(|mark| (mark.trailer(), mark.to_string()));
    for (key, value) in fixed.into_iter().chain(marks) {
        message.push_str(&format!("{key}: {value}\n"));
    }
    message
}

fn subject(job: &Job, ruling: &Ruling<'_>) -> String {
    let target = job.aim.node().map_or_else(|| "repair".to_owned(), |node| format!("node {node}"));
    let (run, iteration) = (&job.run_id, job.iteration);
    let (status, guard) = (ruling.status.as_str(), ruling.guard.as_str());
    format!("chore(loop): run {run} iter {iteration} {target} status={status} guard={guard}")
}

/// What was said, indented so that no line of it can be taken for a trailer; a paragraph of its own, or nothing.
fn body(claim: &Claim) -> String {
    let said = match &claim.finding {
        Finding::Lawful { answer, .. } => lines(&answer.summary),
        Finding::Silent { .. } | Finding::InvalidTree { .. } | Finding::Broken { .. } => {
            lines(&findings(claim).join("\n"))
        }
    };
    let said = head(said.trim(), BODY_BYTES_MAX);
    if said.is_empty() {
        return String::new();
    }
    let indented: Vec<String> = said.lines().map(|line| format!("  {}", line.trim_end())).collect();
    let indented: Vec<&str> = indented.iter().map(|line| line.trim_end()).collect();
    format!("{}\n\n", indented.join("\n"))
}
