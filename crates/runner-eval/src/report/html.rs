//! Renders results as one self-contained HTML page: no scripts, nothing to load, all text escaped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use runner_core::text::head;

use super::agent_tables::{self, rate_bar};
use super::plots::{self, ForestRow};
use super::transcript::{AgentAction, TranscriptSession, sessions};
use super::{TrialHistory, by_trial, escape, iteration_folders, tail};
use crate::execution::trial::{LOOP_LOG, START_LOG};
use crate::result::selection::ResultSelection;
use crate::result::stored_trial::StoredTrial;
use crate::result::{TrialMeta, TrialOutcome};
use crate::stats::loop_summary::LoopSummary;
use crate::stats::score::{ScoreRow, ScoreTable};

const STYLE: &str = include_str!("page.css");
/// How much of each message, tool call and answer is shown.
const PART_BYTES_MAX: usize = 4_000;
/// What a page shows besides the results.
pub(crate) struct PageExtras {
    /// How each agent works in loops.
    pub(crate) loops: BTreeMap<String, LoopSummary>,
    /// Differences between agents and arms.
    pub(crate) differences: Vec<ForestRow>,
    /// What the run may spend and has spent, in words; none if it has no budget.
    pub(crate) budget: Option<String>,
}

pub(crate) fn html(selection: &ResultSelection, table: &ScoreTable, extras: &PageExtras) -> String {
    let histories = by_trial(&selection.trials);
    let name = escape(&selection.name);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>Evaluation {name}</title>\n<style>\n{STYLE}</style>\n<h1>Evaluation {name}</h1>\n"
    );
    page.push_str(&format!("<p>{} trials, {} attempts.", histories.len(), selection.trials.len()));
    if !selection.missing.is_empty() {
        page.push_str(&format!(" <b>{} planned trials have no result.</b>", selection.missing.len()));
    }
    if !selection.unreadable.is_empty() {
        page.push_str(&format!(" <b>{} results cannot be read.</b>", selection.unreadable.len()));
    }
    page.push_str("</p>\n");
    page.push_str(&provenance(selection, extras.budget.as_deref()));
    page.push_str("<h2>Agents</h2>\n");
    page.push_str(&agent_tables::scores(table));
    page.push_str(&agent_tables::loops(&extras.loops));
    page.push_str(&plots::forest(&extras.differences));
    page.push_str(&plots::cost_against_success(table));
    page.push_str(&plots::pass_all_curve(table));
    page.push_str(&plots::matrix(table, &|agent, case| first_trial(&histories, agent, case)));
    for agent in &table.agents {
        page.push_str(&trial_grid(agent, table, &histories));
    }
    page.push_str("<h2>Trials</h2>\n");
    page.extend(histories.iter().map(trial_details));
    page.push_str("</html>\n");
    page
}

/// Where the results come from: machines, versions, isolation, budget. A difference between rows may explain a difference
/// between results.
fn provenance(selection: &ResultSelection, budget: Option<&str>) -> String {
    let mut rows: Vec<(&str, BTreeSet<String>)> = Vec::new();
    let mut add = |name, value: &dyn Fn(&StoredTrial) -> Option<String>| {
        rows.push((name, selection.trials.iter().filter_map(value).collect()));
    };
    add("machine", &|trial| {
        let host = &trial.inputs.host;
        let memory = host.memory_bytes.map(|bytes| format!(", {} GB", bytes >> 30)).unwrap_or_default();
        Some(format!(
            "{} ({} {}, {} processors{memory}, {} jobs)",
            host.hostname, host.os, host.kernel, host.cpus, host.jobs
        ))
    });
    add("runner", &|trial| Some(trial.inputs.runner.version.clone()));
    add("runner-eval", &|trial| Some(trial.inputs.evaluator.clone()));
    add("agent version", &|trial| trial.inputs.agent_version.clone());
    add("model", &|trial| trial.inputs.model.clone());
    add("isolation", &|trial| Some(trial.inputs.isolation.clone()));
    rows.push(("budget", budget.map(str::to_owned).into_iter().collect()));
    let mut text = String::from("<table>\n");
    for (name, values) in rows {
        let values: Vec<String> = values.iter().map(|value| escape(value)).collect();
        let shown = if values.is_empty() { "none".to_owned() } else { values.join("<br>") };
        text.push_str(&format!("<tr><th>{name}<td>{shown}\n"));
    }
    text + "</table>\n"
}

/// The anchor of the first trial of an agent and a case.
fn first_trial(histories: &[TrialHistory<'_>], agent: &str, case: &str) -> Option<String> {
    let mut metas = histories.iter().map(|history| &history.last.meta);
    metas.find(|meta| meta.agent == agent && meta.case_id == case).map(anchor)
}

/// The cases of one agent, with a cell per trial.
fn trial_grid(agent: &ScoreRow, table: &ScoreTable, histories: &[TrialHistory<'_>]) -> String {
    let mut text = format!(
        "<h2>{}</h2>\n<div class=\"scroll\"><table>\n<tr><th>case<th>trials<th>passed<th>95 % CI\n",
        escape(&agent.agent)
    );
    for row in table.cases.iter().filter(|row| row.agent == agent.agent) {
        let mut cells = String::new();
        for history in histories {
            let meta = &history.last.meta;
            if meta.agent == row.agent && Some(&meta.case_id) == row.case.as_ref() {
                cells.push_str(&cell(meta));
            }
        }
        text.push_str(&format!(
            "<tr><th>{}<td>{cells}<td class=\"n\">{}/{}<td>{}\n",
            escape(row.case.as_deref().unwrap_or_default()),
            row.score.successes,
            row.score.n,
            rate_bar(row)
        ));
    }
    text + "</table></div>\n"
}

/// The anchor of a trial's details.
fn anchor(meta: &TrialMeta) -> String {
    escape(&format!("{}/{}", meta.case_id, meta.eval_run_id))
}

fn css_class(meta: &TrialMeta) -> String {
    if meta.is_scored() { meta.outcome.to_string() } else { format!("{} unscored", meta.outcome) }
}

fn cell(meta: &TrialMeta) -> String {
    let sign = match meta.outcome {
        TrialOutcome::Success => "✓",
        TrialOutcome::Fail => "✗",
        TrialOutcome::Stuck => "S",
        TrialOutcome::Error => "E",
        TrialOutcome::Skipped => "–",
    };
    let title = format!("{}, trial {}: {}", meta.run, meta.trial, headline(meta));
    format!(
        "<a class=\"cell {}\" href=\"#{}\" title=\"{}\">{sign}</a>",
        css_class(meta),
        anchor(meta),
        escape(&title)
    )
}

fn headline(meta: &TrialMeta) -> String {
    match (meta.cause, &meta.why) {
        (Some(cause), Some(why)) => format!("{} ({cause}): {why}", meta.outcome),
        (Some(cause), None) => format!("{} ({cause})", meta.outcome),
        (None, _) => meta.outcome.to_string(),
    }
}

/// A trial: outcome, earlier attempts, checks, ends of logs, and transcripts.
fn trial_details(history: &TrialHistory<'_>) -> String {
    let meta = &history.last.meta;
    let mut text = format!(
        "<details><summary><b>{}</b> {} {}.t{:02} <span class=\"{}\">{}</span></summary>\n",
        escape(&meta.case_id),
        escape(&meta.agent),
        escape(&meta.run),
        meta.trial,
        css_class(meta),
        escape(&headline(meta))
    );
    // The anchor is inside <details>, because browsers then open it for a link to the anchor.
    let or_unknown = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    text.push_str(&format!(
        "<p id=\"{}\">{:.1} s, {} iterations, tokens: {}, cost: {}, started {}</p>\n",
        anchor(meta),
        meta.wall_secs,
        meta.iterations,
        or_unknown(meta.tokens.map(|tokens| tokens.to_string())),
        or_unknown(meta.cost.usd().map(|usd| format!("${usd:.2}"))),
        escape(&meta.started_at)
    ));
    for attempt in history.earlier {
        text.push_str(&format!(
            "<p>attempt {}: <span class=\"{}\">{}</span></p>\n",
            attempt.meta.attempt,
            css_class(&attempt.meta),
            escape(&headline(&attempt.meta))
        ));
    }
    text.push_str(&check_table(history.last));
    text.push_str(&log_tails(history.last));
    for (session, number) in sessions(history.last).iter().zip(1..) {
        text.push_str(&transcript(session, number));
    }
    text + "</details>\n"
}

/// The prompt, the actions and the answer of one session.
fn transcript(session: &TranscriptSession, number: u32) -> String {
    let mut text = format!("<details><summary>session {number}: {}</summary>\n", escape(&session.outcome));
    text.push_str(&part("prompt", &session.prompt));
    for action in &session.actions {
        text.push_str(&match action {
            AgentAction::Message(text) => part("message", text),
            AgentAction::Reasoning(text) => part("reasoning", text),
            AgentAction::ToolCall { name, input, output } => {
                part(name, &format!("{input}\n{}", output.as_deref().unwrap_or_default()))
            }
        });
    }
    text.push_str(&part("answer", &session.answer));
    text + "</details>\n"
}

fn part(title: &str, body: &str) -> String {
    let is_long = body.len() > PART_BYTES_MAX;
    let body = if is_long { format!("{}\n…", head(body, PART_BYTES_MAX)) } else { body.to_owned() };
    format!("<h5>{}</h5><pre>{}</pre>\n", escape(title), escape(&body))
}

fn check_table(trial: &StoredTrial) -> String {
    let mut rows = String::new();
    for check in &trial.checks.checks {
        let (class, result) = match (check.trap, check.passed) {
            (false, true) => ("success", "passed"),
            (false, false) => ("fail", "failed"),
            (true, true) => ("fail", "cheated"),
            (true, false) => ("success", "not cheated"),
        };
        let hidden = if check.hidden { " (hidden)" } else { "" };
        let output = match &check.output {
            Some(output) if !check.passed && !output.is_empty() => format!("<pre>{}</pre>", escape(output)),
            _ => String::new(),
        };
        rows.push_str(&format!(
            "<tr><td>{}{hidden}<td class=\"{class}\">{result}<td>{}{output}\n",
            escape(&check.name),
            escape(check.why.as_deref().unwrap_or_default())
        ));
    }
    if rows.is_empty() { rows } else { format!("<table>\n<tr><th>check<th>result<th>why\n{rows}</table>\n") }
}

/// The ends of the runner's logs, and of those of the last session.
fn log_tails(trial: &StoredTrial) -> String {
    let mut text = String::new();
    let mut add = |title: &str, path: &Path| {
        if let Some(tail) = tail(path) {
            text.push_str(&format!("<h4>{}</h4><pre>{}</pre>\n", escape(title), escape(&tail)));
        }
    };
    for name in [START_LOG, LOOP_LOG] {
        add(name, &trial.folder.join(name));
    }
    if let Some(iteration) = iteration_folders(&trial.folder).pop() {
        for name in ["executor.log", "guard.log"] {
            add(&format!("{name} of the last session"), &iteration.join(name));
        }
    }
    text
}
