//! JUnit, with nextest's marks for what passed or failed after more than one attempt.

use super::{Tried, by_trial, escape, tail};
use crate::result::{Meta, Outcome};
use crate::results::Trial;
use crate::trial::LOOP_LOG;

/// How a trial counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// As the case's file says, otherwise with success.
    Good,
    /// The agent did not do it.
    Failure,
    /// It says nothing about the agent.
    Error,
    Skipped,
}

fn kind(meta: &Meta) -> Kind {
    if meta.outcome == meta.expected.unwrap_or(Outcome::Success) {
        Kind::Good
    } else if meta.outcome == Outcome::Skipped {
        Kind::Skipped
    } else if meta.is_scored() {
        Kind::Failure
    } else {
        Kind::Error
    }
}

/// The document: a suite for each agent, a test for each trial of a case.
pub(crate) fn junit(name: &str, trials: &[Trial]) -> String {
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

fn counts(tried: &[Tried<'_>]) -> String {
    let count = |wanted: Kind| tried.iter().filter(|tried| kind(&tried.last.meta) == wanted).count();
    let seconds: f64 = tried.iter().map(|tried| tried.last.meta.wall_secs).sum();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{seconds:.3}\"",
        tried.len(),
        count(Kind::Failure),
        count(Kind::Error),
        count(Kind::Skipped)
    )
}

/// One trial. An earlier attempt that failed marks it as flaky if the last one is good, and as run again if not.
fn test(tried: &Tried<'_>) -> String {
    let meta = &tried.last.meta;
    let last = kind(meta);
    let mark = if last == Kind::Good { "flaky" } else { "rerun" };
    let mut inner = match last {
        Kind::Good => String::new(),
        Kind::Skipped => format!("      <skipped message=\"{}\"/>\n", escape(&why(meta))),
        Kind::Failure => element("failure", meta, &details(tried.last)),
        Kind::Error => element("error", meta, &details(tried.last)),
    };
    for attempt in tried.earlier {
        let name = if kind(&attempt.meta) == Kind::Error { "Error" } else { "Failure" };
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

fn element(name: &str, meta: &Meta, inner: &str) -> String {
    let cause = meta.cause.map_or("unexpected", crate::result::Cause::as_str);
    format!("      <{name} type=\"{cause}\" message=\"{}\">{inner}</{name}>\n", escape(&why(meta)))
}

fn why(meta: &Meta) -> String {
    let told = meta.why.as_deref().unwrap_or("ended otherwise than its file says");
    format!("{}: {told}", meta.outcome)
}

/// The checks that do not pass, and the end of the loop's log, escaped.
fn details(trial: &Trial) -> String {
    let failed = trial.checks.checks.iter().filter(|check| !check.passed);
    let mut text: String = failed
        .map(|check| format!("{}: {}\n", check.name, check.why.as_deref().unwrap_or("fails")))
        .collect();
    text.push_str(&tail(&trial.folder.join(LOOP_LOG)).unwrap_or_default());
    escape(&text)
}
