//! The first screen in one answer, and the rows of the list of runs.

use std::time::{SystemTime, UNIX_EPOCH};

use runner_core::config::{Config, TokenLimit, Usd};
use runner_core::model::id::{IterationNumber, RunId};
use serde_json::Value;

use crate::api::{
    CurrentIteration, IterationRow, LogLine, PageSnapshot, RunHead, RunList, RunProgress, RunRow,
    ServerSubject, ServerView, StateWord, StopView, WatchMethod,
};
use crate::error::RequestError;
use crate::read::iterations;
use crate::read::logs::most_telling;
use crate::read::repo_reader::{RepoReader, RunSource};
use crate::read::run_status::{RunFacts, RunStanding, phase, standing};
use crate::server::assets;

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// What a look at a run gives.
struct RunSnapshot {
    rows: Vec<IterationRow>,
    standing: RunStanding,
    progress: RunProgress,
    events: Vec<Value>,
    problems: Vec<String>,
    config: Option<Config>,
}

fn look(project: &RepoReader, run: &RunSource) -> RunSnapshot {
    let (tree, mut problems) = match project.tree(run) {
        Ok(tree) => (Some(tree), Vec::new()),
        Err(fault) => (None, vec![fault.to_string()]),
    };
    let rows = iterations::rows(project, run).unwrap_or_default();
    let newest = rows.last().and_then(|row| IterationNumber::new(row.iter));
    let folder = newest.and_then(|iter| iterations::folder(project, run, iter).ok());
    let events = folder.as_ref().map(iterations::last_events).unwrap_or_default();
    let config = project.config(run);
    let good = tree.as_deref().and_then(|tree| tree.as_ref().ok());
    if let Some(Err(faults)) = tree.as_deref() {
        problems.extend(faults.iter().map(|fault| format!("tree.json: {fault}")));
    }
    let is_at_work = run.is_here && project.reading.lock_holder().is_some();
    let branch =
        run.branch.as_ref().map_or_else(|| run.id.branch().to_string(), |branch| branch.name.clone());
    let facts = RunFacts {
        branch: &branch,
        tree: good,
        config: config.as_ref(),
        rows: &rows,
        is_at_work,
        is_paused: run.is_here && project.reading.is_paused(),
        is_unfinished: run.is_here && !is_at_work && project.reading.pending_iteration().is_some(),
        events: &events,
    };
    let standing = standing(&facts);
    let leaves = good.map(|tree| tree.root().leaves());
    let budget = config.as_ref().map(|config| config.budget);
    let progress = RunProgress {
        leaves_total: leaves.map_or(0, |leaves| leaves.total),
        leaves_passed: leaves.map_or(0, |leaves| leaves.passed),
        iterations_max: config.as_ref().map(|config| config.max_iterations.as_u32()),
        tokens_max: budget.and_then(|budget| budget.run_tokens).map(TokenLimit::as_u64),
        cost_microdollars_max: budget.and_then(|budget| budget.run_usd).map(Usd::microdollars),
        ..sums(&rows)
    };
    RunSnapshot { rows, standing, progress, events, problems, config }
}

/// What all iterations took together.
fn sums(rows: &[IterationRow]) -> RunProgress {
    let sum = |of: fn(&IterationRow) -> Option<u64>| rows.iter().filter_map(of).sum();
    let known = |of: fn(&IterationRow) -> Option<u64>| {
        let values: Vec<u64> = rows.iter().filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    };
    let took = |row: &IterationRow| Some(row.ended_ms?.saturating_sub(row.started_ms?));
    RunProgress {
        iterations: u32::try_from(rows.len()).unwrap_or(u32::MAX),
        started_ms: rows.iter().find_map(|row| row.started_ms.or(row.ended_ms)),
        ended_ms: rows.last().and_then(|row| row.ended_ms),
        busy_ms: sum(took),
        agent_ms: sum(|row| row.agent_ms),
        guard_ms: sum(|row| row.guard_ms),
        input_tokens: known(|row| row.input_tokens),
        output_tokens: known(|row| row.output_tokens),
        cost_microdollars: known(|row| row.cost_microdollars),
        ..RunProgress::default()
    }
}

fn head(project: &RepoReader, run: &RunSource) -> RunHead {
    RunHead {
        id: run.id.to_string(),
        branch: run.branch.as_ref().map_or_else(|| run.id.branch().to_string(), |branch| branch.name.clone()),
        commit: run.branch.as_ref().map(|branch| branch.commit.to_string()),
        goal: project.goal(run),
        is_here: run.is_here,
    }
}

fn is_live(word: StateWord) -> bool {
    matches!(word, StateWord::Running | StateWord::Guarding | StateWord::Committing | StateWord::Waiting)
}

/// The iteration under way, if one is.
fn current(look: &RunSnapshot) -> Option<CurrentIteration> {
    let row = look.rows.last().filter(|_| is_live(look.standing.word))?;
    let (phase, since) = phase(&look.events).map_or(("", None), |(event, ..)| {
        let name = event.get("event").and_then(Value::as_str).unwrap_or_default();
        (name, event.get("t_ms").and_then(Value::as_u64))
    });
    let planned = look.events.iter().find(|event| event.get("title").is_some());
    let title = planned.and_then(|event| event.get("title")).and_then(Value::as_str);
    let secs = look.config.as_ref().map(|config| config.iteration_timeout_secs.as_u64());
    Some(CurrentIteration {
        iter: row.iter,
        node: row.node.clone(),
        path: row.path.clone(),
        title: title.unwrap_or_default().to_owned(),
        attempt: row.attempt,
        phase: phase.to_owned(),
        phase_since_ms: since,
        started_ms: row.started_ms,
        timeout_ms: secs.map(|secs| secs.saturating_mul(1000)),
    })
}

/// The iterations that show why a run does not go on: those on the leaf that was worked on last, newest first.
fn telling(rows: &[IterationRow]) -> Vec<&IterationRow> {
    let node = rows.last().and_then(|row| row.node.as_deref());
    rows.iter().rev().filter(|row| row.node.as_deref() == node).take(8).collect()
}

fn stop(project: &RepoReader, run: &RunSource, look: &RunSnapshot) -> Option<StopView> {
    if is_live(look.standing.word) {
        return None;
    }
    let tells = !matches!(look.standing.word, StateWord::Complete | StateWord::Paused);
    let shown = if tells { telling(&look.rows) } else { Vec::new() };
    let evidence = shown.iter().find(|row| row.outcome.as_deref() != Some("passed")).and_then(|row| {
        let log = if row.guard.as_deref() == Some("fail") { "guard" } else { "agent" };
        evidence(project, run, row.iter, log)
    });
    Some(StopView {
        why: look.standing.why.clone(),
        iterations: shown.iter().map(|row| row.iter).collect(),
        evidence,
        next: look.standing.advice(),
    })
}

/// The line of a log that says best what went wrong.
fn evidence(project: &RepoReader, run: &RunSource, iter: u32, log: &str) -> Option<LogLine> {
    let folder = iterations::folder(project, run, IterationNumber::new(iter)?).ok()?;
    let name = if log == "guard" { "guard.log" } else { "executor.log" };
    most_telling(&folder.file(name).ok()?, iter, log).ok().flatten()
}

/// Everything that the first screen needs.
pub(crate) fn snapshot(
    project: &RepoReader,
    wanted: Option<&RunId>,
    watching: WatchMethod,
) -> Result<PageSnapshot, RequestError> {
    let shows =
        if project.reading.has_repository() { ServerSubject::Repository } else { ServerSubject::Record };
    let server = server_view(project.name(), watching, shows);
    let Some(run) = project.run(wanted)? else {
        return Ok(empty(server));
    };
    let look = look(project, &run);
    let since = phase(&look.events).and_then(|(event, ..)| event.get("t_ms").and_then(Value::as_u64));
    Ok(PageSnapshot {
        server,
        run: Some(head(project, &run)),
        state: look.standing.word,
        headline: look.standing.headline.clone(),
        since_ms: if is_live(look.standing.word) { since } else { look.progress.ended_ms.or(since) },
        stop: stop(project, &run, &look),
        current: current(&look),
        problems: look.problems,
        progress: look.progress,
    })
}

fn server_view(project: String, watching: WatchMethod, shows: ServerSubject) -> ServerView {
    let (version, build) = (env!("CARGO_PKG_VERSION").to_owned(), assets::build().to_owned());
    ServerView { version, build, now_ms: now_ms(), watching, project, shows }
}

/// The first screen of an evaluation says only that it is one.
pub(crate) fn of_evaluation(folder: &str, watching: WatchMethod) -> PageSnapshot {
    let server = server_view(folder.to_owned(), watching, ServerSubject::Evaluation);
    PageSnapshot { headline: "the results of an evaluation".to_owned(), stop: None, ..empty(server) }
}

fn empty(server: ServerView) -> PageSnapshot {
    let next = crate::api::NextCommand {
        what: "set this repository up and begin".to_owned(),
        command: Some("runner init && runner start".to_owned()),
    };
    PageSnapshot {
        server,
        run: None,
        state: StateWord::Empty,
        headline: "there is no run in this repository yet".to_owned(),
        since_ms: None,
        stop: Some(StopView { why: Vec::new(), iterations: Vec::new(), evidence: None, next: vec![next] }),
        progress: RunProgress::default(),
        current: None,
        problems: Vec::new(),
    }
}

/// The runs of the repository, the newest first.
pub(crate) fn runs(project: &RepoReader) -> Result<RunList, RequestError> {
    let branches = project.branches()?;
    let mut ids: Vec<RunId> = project.here().into_iter().collect();
    ids.extend(branches.iter().map(|branch| branch.run.clone()));
    let mut rows: Vec<RunRow> = Vec::new();
    for id in &ids {
        if rows.iter().any(|row| row.head.id == id.as_str()) {
            continue;
        }
        let Some(run) = project.run(Some(id))? else { continue };
        let look = look(project, &run);
        rows.push(RunRow {
            head: head(project, &run),
            state: look.standing.word,
            headline: look.standing.headline,
            progress: look.progress,
            moved_ms: run.branch.map(|branch| branch.unix_secs.saturating_mul(1000)),
        });
    }
    Ok(RunList { runs: rows })
}
