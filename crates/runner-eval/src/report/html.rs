//! One page that holds everything itself: no script, nothing to load, all text escaped.

use std::path::PathBuf;

use runner_core::text::head;

use super::transcript::{AgentAction, TranscriptSession, sessions};
use super::{TrialHistory, by_trial, escape, tail};
use crate::execution::trial::{LOOP_LOG, START_LOG};
use crate::result::selection::ResultSelection;
use crate::result::stored_trial::StoredTrial;
use crate::result::{TrialMeta, TrialOutcome};
use crate::stats::Interval;
use crate::stats::score::{ScoreRow, ScoreTable};

const STYLE: &str = include_str!("page.css");
/// How much is shown of each thing that was said or done.
const PART_BYTES: usize = 4_000;
/// How wide a rate of 100 % is drawn.
const BAR: f64 = 160.0;

/// The page.
pub(crate) fn html(chosen: &ResultSelection, table: &ScoreTable) -> String {
    let tried = by_trial(&chosen.trials);
    let name = escape(&chosen.name);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>Evaluation {name}</title>\n<style>\n{STYLE}</style>\n<h1>Evaluation {name}</h1>\n"
    );
    page.push_str(&format!("<p>{} trials, {} attempts.", tried.len(), chosen.trials.len()));
    if !chosen.missing.is_empty() {
        page.push_str(&format!(" <b>{} planned trials have no result.</b>", chosen.missing.len()));
    }
    if !chosen.faults.is_empty() {
        page.push_str(&format!(" <b>{} results cannot be read.</b>", chosen.faults.len()));
    }
    page.push_str("</p>\n<h2>Agents</h2>\n");
    page.push_str(&rates(table));
    for agent in &table.agents {
        page.push_str(&grid(agent, table, &tried));
    }
    page.push_str("<h2>Trials</h2>\n");
    page.extend(tried.iter().map(details));
    page.push_str("</html>\n");
    page
}

/// A rate and its interval as a bar.
fn bar(rate: Option<f64>, interval: Option<Interval>) -> String {
    let (Some(rate), Some(interval)) = (rate, interval) else { return "n/a".to_owned() };
    let (from, width) = (BAR * interval.low, BAR * (interval.high - interval.low));
    let label =
        format!("{:.0} %, 95 %: {:.0} to {:.0}", 100.0 * rate, 100.0 * interval.low, 100.0 * interval.high);
    format!(
        "<svg role=\"img\" aria-label=\"{label}\" width=\"{BAR}\" height=\"14\"><title>{label}</title>\
         <rect class=\"all\" y=\"6\" width=\"{BAR}\" height=\"2\"/>\
         <rect class=\"range\" x=\"{from:.1}\" y=\"3\" width=\"{width:.1}\" height=\"8\" rx=\"2\"/>\
         <rect class=\"rate\" x=\"{:.1}\" width=\"3\" height=\"14\"/></svg>",
        (BAR - 3.0) * rate
    )
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "n/a".to_owned(), |rate| format!("{:.0} %", 100.0 * rate))
}

fn rates(table: &ScoreTable) -> String {
    let k = table.k;
    let mut text = format!(
        "<div class=\"scroll\"><table>\n<tr><th>agent<th>cases<th>passed<th>rate<th>95 %<th>pass@{k}<th>pass^{k}\
         <th>time of a success<th>cost of a success<th>left out\n"
    );
    for row in &table.agents {
        let score = &row.score;
        let or = |value: Option<String>| value.unwrap_or_else(|| "n/a".to_owned());
        text.push_str(&format!(
            "<tr><th>{}<td class=\"n\">{}<td class=\"n\">{}/{}<td class=\"n\">{}<td>{}<td class=\"n\">{}\
             <td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}\n",
            escape(&row.agent),
            row.cases,
            score.successes,
            score.n,
            percent(score.rate()),
            bar(score.rate(), row.interval),
            percent(row.pass_at),
            percent(row.pass_all),
            or(score.secs_per_success().map(|secs| format!("{secs:.1} s"))),
            or(score.usd_per_success().map(|usd| format!("{usd:.2} $"))),
            score.left_out
        ));
    }
    text + "</table></div>\n"
}

/// Cases by trials, of one agent.
fn grid(agent: &ScoreRow, table: &ScoreTable, tried: &[TrialHistory<'_>]) -> String {
    let mut text = format!(
        "<h2>{}</h2>\n<div class=\"scroll\"><table>\n<tr><th>case<th>trials<th>passed<th>95 %\n",
        escape(&agent.agent)
    );
    for row in table.cases.iter().filter(|row| row.agent == agent.agent) {
        let is_here = |meta: &TrialMeta| meta.agent == row.agent && Some(&meta.case_id) == row.case.as_ref();
        let cells: String = tried.iter().filter(|tried| is_here(&tried.last.meta)).map(cell).collect();
        text.push_str(&format!(
            "<tr><th>{}<td>{cells}<td class=\"n\">{}/{}<td>{}\n",
            escape(row.case.as_deref().unwrap_or_default()),
            row.score.successes,
            row.score.n,
            bar(row.score.rate(), row.interval)
        ));
    }
    text + "</table></div>\n"
}

/// The name of a trial's part of the page.
fn anchor(meta: &TrialMeta) -> String {
    escape(&format!("{}/{}", meta.case_id, meta.eval_run_id))
}

fn class(meta: &TrialMeta) -> String {
    if meta.is_scored() { meta.outcome.to_string() } else { format!("{} unscored", meta.outcome) }
}

fn cell(tried: &TrialHistory<'_>) -> String {
    let meta = &tried.last.meta;
    let sign = match meta.outcome {
        TrialOutcome::Success => "✓",
        TrialOutcome::Fail => "✗",
        TrialOutcome::Stuck => "S",
        TrialOutcome::Error => "E",
        TrialOutcome::Skipped => "–",
    };
    let told = format!("{}, trial {}: {}", meta.run, meta.trial, headline(meta));
    format!(
        "<a class=\"cell {}\" href=\"#{}\" title=\"{}\">{sign}</a>",
        class(meta),
        anchor(meta),
        escape(&told)
    )
}

fn headline(meta: &TrialMeta) -> String {
    match (meta.cause, &meta.why) {
        (Some(cause), Some(why)) => format!("{} ({cause}): {why}", meta.outcome),
        (Some(cause), None) => format!("{} ({cause})", meta.outcome),
        (None, _) => meta.outcome.to_string(),
    }
}

/// A trial: how it ended, its checks, the ends of its logs, its earlier attempts, and its sessions.
fn details(tried: &TrialHistory<'_>) -> String {
    let meta = &tried.last.meta;
    let mut text = format!(
        "<details><summary><b>{}</b> {} {}.t{:02} <span class=\"{}\">{}</span></summary>\n",
        escape(&meta.case_id),
        escape(&meta.agent),
        escape(&meta.run),
        meta.trial,
        class(meta),
        escape(&headline(meta))
    );
    // The name is within: browsers open what a link into it leads to.
    let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    text.push_str(&format!(
        "<p id=\"{}\">{:.1} s, {} iterations, tokens: {}, cost: {}, began {}</p>\n",
        anchor(meta),
        meta.wall_secs,
        meta.iterations,
        known(meta.tokens.map(|tokens| tokens.to_string())),
        known(meta.cost.usd().map(|usd| format!("{usd:.2} $"))),
        escape(&meta.started_at)
    ));
    for attempt in tried.earlier {
        let (nth, told) = (attempt.meta.attempt, escape(&headline(&attempt.meta)));
        text.push_str(&format!(
            "<p>attempt {nth}: <span class=\"{}\">{told}</span></p>\n",
            class(&attempt.meta)
        ));
    }
    text.push_str(&checks(tried.last));
    for (name, path) in logs(tried.last) {
        if let Some(tail) = tail(&path) {
            text.push_str(&format!("<h4>{}</h4><pre>{}</pre>\n", escape(&name), escape(&tail)));
        }
    }
    for (session, nth) in sessions(tried.last).iter().zip(1..) {
        text.push_str(&transcript(session, nth));
    }
    text + "</details>\n"
}

/// What the agent was told, said and did in one session.
fn transcript(session: &TranscriptSession, nth: u32) -> String {
    let part = |title: &str, body: &str| {
        let body = if body.len() > PART_BYTES {
            format!("{}\n…", head(body, PART_BYTES))
        } else {
            body.to_owned()
        };
        format!("<h5>{}</h5><pre>{}</pre>\n", escape(title), escape(&body))
    };
    let mut text = format!("<details><summary>session {nth}: {}</summary>\n", escape(&session.outcome));
    text.push_str(&part("prompt", &session.prompt));
    for act in &session.acts {
        text.push_str(&match act {
            AgentAction::Said(words) => part("says", words),
            AgentAction::Thought(words) => part("thinks", words),
            AgentAction::Called { name, input, output } => {
                part(name, &format!("{input}\n{}", output.as_deref().unwrap_or_default()))
            }
        });
    }
    text.push_str(&part("answer", &session.answer));
    text + "</details>\n"
}

fn checks(trial: &StoredTrial) -> String {
    let row = |check: &crate::result::CheckResult| {
        let (class, word) = if check.passed { ("success", "passes") } else { ("fail", "fails") };
        let hidden = if check.hidden { " (hidden)" } else { "" };
        let output = check.output.as_deref().filter(|output| !check.passed && !output.is_empty());
        let output = output.map(|output| format!("<pre>{}</pre>", escape(output))).unwrap_or_default();
        format!(
            "<tr><td>{}{hidden}<td class=\"{class}\">{word}<td>{}{output}\n",
            escape(&check.name),
            escape(check.why.as_deref().unwrap_or_default())
        )
    };
    let rows: String = trial.checks.checks.iter().map(row).collect();
    if rows.is_empty() { rows } else { format!("<table>\n<tr><th>check<th><th>why\n{rows}</table>\n") }
}

/// The logs that are shown: the runner's, and those of the last session.
fn logs(trial: &StoredTrial) -> Vec<(String, PathBuf)> {
    let mut logs: Vec<_> =
        [START_LOG, LOOP_LOG].into_iter().map(|name| (name.to_owned(), trial.folder.join(name))).collect();
    if let Some(iteration) = super::iterations(&trial.folder).pop() {
        for name in ["executor.log", "guard.log"] {
            logs.push((format!("the last session's {name}"), iteration.join(name)));
        }
    }
    logs
}
