//! JUnit, with nextest's marks for what passed or failed after more than one attempt.

use super::{TrialHistory, by_trial, escape, tail};
use crate::execution::trial::LOOP_LOG;
use crate::result::stored_trial::StoredTrial;
use crate::result::{TrialMeta, TrialOutcome};

/// How a trial counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JunitKind {
    /// As the case's file says, otherwise with success.
    Good,
    /// The agent did not do it.
    Failure,
    /// It says nothing about the agent.
    Error,
    Skipped,
}

fn kind(meta: &TrialMeta) -> JunitKind {
    if meta.outcome == meta.expected.unwrap_or(TrialOutcome::Success) {
        JunitKind::Good
    } else if meta.outcome == TrialOutcome::Skipped {
        JunitKind::Skipped
    } else if meta.is_scored() {
        JunitKind::Failure
    } else {
        JunitKind::Error
    }
}

/// The document: a suite for each agent, a test for each trial of a case.
pub(crate) fn junit(name: &str, trials: &[StoredTrial]) -> String {
    let mut tried = by_trial(trials);
    tried.sort_by(|a, b| a.last.meta.agent.cmp(&b.last.meta.agent));
    let mut suites = String::new();
    for suite in tried.chunk_by(|a, b| a.last.meta.agent == b.last.meta.agent) {
        let agent = suite.first().map_or("", |tried| tried.last.meta.agent.as_str());
        let tests: String = suite.iter().map(test).collect();
        suites.push_str(&format!(
            "  <testsuite name=\"{}\" {}>\n{tests}  </testsuite>\n",
            escape(agent),
            counts(suite)
        ));
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" {}>\n{suites}</testsuites>\n",
        escape(name),
        counts(&tried)
    )
}

fn counts(tried: &[TrialHistory<'_>]) -> String {
    let count = |wanted: JunitKind| tried.iter().filter(|tried| kind(&tried.last.meta) == wanted).count();
    let seconds: f64 = tried.iter().map(|tried| tried.last.meta.wall_secs).sum();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{seconds:.3}\"",
        tried.len(),
        count(JunitKind::Failure),
        count(JunitKind::Error),
        count(JunitKind::Skipped)
    )
}

/// One trial. An earlier attempt that failed marks it as flaky if the last one is good, and as run again if not.
fn test(tried: &TrialHistory<'_>) -> String {
    let meta = &tried.last.meta;
    let last = kind(meta);
    let mark = if last == JunitKind::Good { "flaky" } else { "rerun" };
    let mut inner = match last {
        JunitKind::Good => String::new(),
        JunitKind::Skipped => format!("      <skipped message=\"{}\"/>\n", escape(&why(meta))),
        JunitKind::Failure => element("failure", meta, &details(tried.last)),
        JunitKind::Error => element("error", meta, &details(tried.last)),
    };
    for attempt in tried.earlier {
        let name = if kind(&attempt.meta) == JunitKind::Error { "Error" } else { "Failure" };
        let trace = format!("<stackTrace>{}</stackTrace>", details(attempt));
        inner.push_str(&element(&format!("{mark}{name}"), &attempt.meta, &trace));
    }
    let head = format!(
        "    <testcase name=\"{}.t{:02}\" classname=\"{}\" timestamp=\"{}\" time=\"{:.3}\"",
        escape(&meta.case_id),
        meta.trial,
        escape(&format!("{}.{}", meta.run, meta.agent)),
        escape(&meta.started_at),
        meta.wall_secs
    );
    if inner.is_empty() { format!("{head}/>\n") } else { format!("{head}>\n{inner}    </testcase>\n") }
}

fn element(name: &str, meta: &TrialMeta, inner: &str) -> String {
    let cause = meta.cause.map_or("unexpected", crate::result::FailureCause::as_str);
    format!("      <{name} type=\"{cause}\" message=\"{}\">{inner}</{name}>\n", escape(&why(meta)))
}

fn why(meta: &TrialMeta) -> String {
    let told = meta.why.as_deref().unwrap_or("ended otherwise than its file says");
    format!("{}: {told}", meta.outcome)
}

/// The checks that do not pass, and the end of the loop's log, escaped.
fn details(trial: &StoredTrial) -> String {
    let failed = trial.checks.checks.iter().filter(|check| !check.passed);
    let mut text: String = failed
        .map(|check| format!("{}: {}\n", check.name, check.why.as_deref().unwrap_or("fails")))
        .collect();
    text.push_str(&tail(&trial.folder.join(LOOP_LOG)).unwrap_or_default());
    escape(&text)
}
