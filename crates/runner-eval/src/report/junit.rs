//! Renders a JUnit report. Earlier attempts use nextest's elements for flaky and rerun tests.

use super::{TrialHistory, by_trial, escape, tail};
use crate::execution::trial::LOOP_LOG;
use crate::result::stored_trial::StoredTrial;
use crate::result::{TrialMeta, TrialOutcome};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JunitKind {
    /// The outcome that the case file expects; a success if it expects none.
    Passed,
    /// Scored, and not the expected outcome.
    Failure,
    /// A trial that is not scored.
    Error,
    Skipped,
}

fn kind(meta: &TrialMeta) -> JunitKind {
    if meta.outcome == meta.expected.unwrap_or(TrialOutcome::Success) {
        JunitKind::Passed
    } else if meta.outcome == TrialOutcome::Skipped {
        JunitKind::Skipped
    } else if meta.is_scored() {
        JunitKind::Failure
    } else {
        JunitKind::Error
    }
}

/// The document: a suite per agent, a test per trial.
pub(crate) fn junit(name: &str, trials: &[StoredTrial]) -> String {
    let mut histories = by_trial(trials);
    histories.sort_by(|a, b| a.last.meta.agent.cmp(&b.last.meta.agent));
    let mut suites = String::new();
    for suite in histories.chunk_by(|a, b| a.last.meta.agent == b.last.meta.agent) {
        let agent = suite.first().map_or("", |history| history.last.meta.agent.as_str());
        let tests: String = suite.iter().map(test_case).collect();
        suites.push_str(&format!(
            "  <testsuite name=\"{}\" {}>\n{tests}  </testsuite>\n",
            escape(agent),
            counts(suite)
        ));
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" {}>\n{suites}</testsuites>\n",
        escape(name),
        counts(&histories)
    )
}

fn counts(histories: &[TrialHistory<'_>]) -> String {
    let count =
        |wanted: JunitKind| histories.iter().filter(|history| kind(&history.last.meta) == wanted).count();
    let seconds: f64 = histories.iter().map(|history| history.last.meta.wall_secs).sum();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{seconds:.3}\"",
        histories.len(),
        count(JunitKind::Failure),
        count(JunitKind::Error),
        count(JunitKind::Skipped)
    )
}

/// One trial. Failed earlier attempts are `flaky…` elements if the last attempt passed, and `rerun…` elements if not.
fn test_case(history: &TrialHistory<'_>) -> String {
    let meta = &history.last.meta;
    let last = kind(meta);
    let prefix = if last == JunitKind::Passed { "flaky" } else { "rerun" };
    let mut inner = match last {
        JunitKind::Passed => String::new(),
        JunitKind::Skipped => format!("      <skipped message=\"{}\"/>\n", escape(&why(meta))),
        JunitKind::Failure => element("failure", meta, &details(history.last)),
        JunitKind::Error => element("error", meta, &details(history.last)),
    };
    for attempt in history.earlier {
        let name = if kind(&attempt.meta) == JunitKind::Error { "Error" } else { "Failure" };
        let trace = format!("<stackTrace>{}</stackTrace>", details(attempt));
        inner.push_str(&element(&format!("{prefix}{name}"), &attempt.meta, &trace));
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
    let why = meta.why.as_deref().unwrap_or("the case file expects another outcome");
    format!("{}: {why}", meta.outcome)
}

/// The failed checks and the end of the loop's log, escaped.
fn details(trial: &StoredTrial) -> String {
    let mut text = String::new();
    for check in trial.checks.checks.iter().filter(|check| !check.passed) {
        text.push_str(&format!("{}: {}\n", check.name, check.why.as_deref().unwrap_or("failed")));
    }
    text.push_str(&tail(&trial.folder.join(LOOP_LOG)).unwrap_or_default());
    escape(&text)
}
