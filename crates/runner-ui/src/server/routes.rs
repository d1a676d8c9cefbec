//! The addresses, and what each answers. All work that may wait for a disk or for git is done aside, and only so
//! much of it at a time.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use runner_core::layout::Doc;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::api;
use crate::error::RequestError;
use crate::read::confined_fs::RegularFile;
use crate::read::diff;
use crate::read::iterations;
use crate::read::logs;
use crate::read::repo_reader::{RepoReader, RunSource};
use crate::read::snapshot;
use crate::read::tree_view;
use crate::read::verify;
use crate::server::response::{self, Reply};
use crate::watch::WatchState;

/// How much is read at the same time.
pub(crate) const READERS_MAX: usize = 8;
/// How many nodes or iterations a search lists.
const FOUND_MAX: usize = 50;

/// What all requests about a repository share.
#[derive(Debug)]
pub(crate) struct RepoState {
    pub(crate) project: Arc<RepoReader>,
    pub(crate) watch: Arc<WatchState>,
    readers: Arc<Semaphore>,
}

impl RepoState {
    pub(crate) fn new(project: Arc<RepoReader>, readers: Arc<Semaphore>) -> Self {
        Self { project, watch: Arc::default(), readers }
    }
}

/// Where questions are answered, only so many at the same time.
pub(crate) trait ReadLimit: Send + Sync + 'static {
    fn readers(&self) -> &Semaphore;
}

impl ReadLimit for RepoState {
    fn readers(&self) -> &Semaphore {
        &self.readers
    }
}

type Shared = State<Arc<RepoState>>;
pub(crate) type Asked<T> = Result<Query<T>, QueryRejection>;

/// Which run; without one, the current.
#[derive(Debug, Default, Deserialize)]
struct RunQuery {
    run: Option<String>,
    slim: Option<String>,
    after: Option<u32>,
    limit: Option<usize>,
    #[serde(default)]
    q: String,
}

/// Which part of a log.
#[derive(Debug, Default, Deserialize)]
struct LogQuery {
    #[serde(default)]
    line: u64,
    count: Option<u64>,
    #[serde(default)]
    q: String,
    case: Option<String>,
    #[serde(default)]
    path: String,
}

/// The addresses of a repository.
pub(crate) fn router(app: Arc<RepoState>) -> Router {
    const ITERATION: &str = "/api/iterations/{run}/{iter}";
    let under = |rest: &str| format!("{ITERATION}{rest}");
    Router::new()
        .route("/api/snapshot", get(get_snapshot))
        .route("/api/tree", get(tree))
        .route("/api/tree/{node}", get(node))
        .route("/api/run-state", get(run_state))
        .route("/api/runs", get(runs))
        .route("/api/search", get(search))
        .route("/api/verify", get(verdict))
        .route("/api/iterations", get(iterations))
        .route(ITERATION, get(iteration))
        .route(&under("/log/{log}"), get(log_page))
        .route(&under("/log/{log}/search"), get(log_search))
        .route(&under("/log/{log}/errors"), get(log_errors))
        .route(&under("/diff"), get(changed_files))
        .route(&under("/diff/file"), get(patch))
        .route(&under("/{file}"), get(file))
        .with_state(app)
}

/// Does work aside and answers with it as JSON.
pub(crate) async fn answer<D, T, F>(desk: Arc<D>, asked: HeaderMap, work: F) -> Reply
where
    D: ReadLimit,
    T: Serialize,
    F: FnOnce(&D) -> Result<T, RequestError> + Send + 'static,
{
    aside(desk, move |desk| Ok(response::json(&asked, &work(desk)?))).await
}

async fn aside<D, F>(desk: Arc<D>, work: F) -> Reply
where
    D: ReadLimit,
    F: FnOnce(&D) -> Result<Reply, RequestError> + Send + 'static,
{
    let Ok(_turn) = desk.readers().acquire().await else {
        return response::fault(RequestError::busy("the server is about to end"));
    };
    let shared = Arc::clone(&desk);
    let done = tokio::task::spawn_blocking(move || work(&shared)).await;
    match done {
        Ok(Ok(reply)) => reply,
        Ok(Err(fault)) => response::fault(fault),
        Err(_) => response::fault(RequestError::failed()),
    }
}

fn run_id(text: &str) -> Result<RunId, RequestError> {
    RunId::new(text).map_err(|fault| RequestError::bad_request(format!("the run {fault}")))
}

fn iter_id(text: &str) -> Result<IterationNumber, RequestError> {
    text.parse().map_err(|fault| RequestError::bad_request(format!("the iteration {fault}")))
}

pub(crate) fn asked_for<T>(asked: Asked<T>) -> Result<T, RequestError> {
    asked
        .map(|Query(asked)| asked)
        .map_err(|_| RequestError::bad_request("the part of the address behind `?` cannot be read"))
}

/// The run that is asked for.
fn run_of(app: &RepoState, which: &RunQuery) -> Result<Option<RunSource>, RequestError> {
    let wanted = which.run.as_deref().map(run_id).transpose()?;
    app.project.run(wanted.as_ref())
}

fn some_run(app: &RepoState, which: &RunQuery) -> Result<RunSource, RequestError> {
    run_of(app, which)?.ok_or_else(|| RequestError::no_doc(Doc::Tree))
}

/// The run and the iteration in an address.
fn place(app: &RepoState, run: &str, iter: &str) -> Result<(RunSource, IterationNumber), RequestError> {
    let (run, iter) = (run_id(run)?, iter_id(iter)?);
    let found = app.project.run(Some(&run))?.ok_or_else(|| RequestError::no_run(&run))?;
    Ok((found, iter))
}

async fn get_snapshot(State(app): Shared, which: Asked<RunQuery>, asked: HeaderMap) -> Reply {
    answer(app, asked, move |app| {
        let wanted = asked_for(which)?.run.as_deref().map(run_id).transpose()?;
        snapshot::snapshot(&app.project, wanted.as_ref(), app.watch.watching())
    })
    .await
}

async fn tree(State(app): Shared, which: Asked<RunQuery>, asked: HeaderMap) -> Reply {
    aside(app, move |app| {
        let which = asked_for(which)?;
        let run = some_run(app, &which)?;
        let tree = app.project.tree(&run)?;
        let tree = tree.as_ref().as_ref().map_err(|problems| RequestError::invalid_tree(problems.clone()))?;
        if which.slim.is_some() {
            return Ok(response::json(&asked, &tree_view::slim(tree, Some(run.id.to_string()))));
        }
        Ok(response::tagged(&asked, "application/json", tree.bytes().to_vec()))
    })
    .await
}

async fn node(
    State(app): Shared,
    Path(node): Path<String>,
    which: Asked<RunQuery>,
    asked: HeaderMap,
) -> Reply {
    answer(app, asked, move |app| {
        let id = NodeId::new(node).map_err(|fault| RequestError::bad_request(format!("the node {fault}")))?;
        let run = some_run(app, &asked_for(which)?)?;
        let tree = app.project.tree(&run)?;
        let tree = tree.as_ref().as_ref().map_err(|problems| RequestError::invalid_tree(problems.clone()))?;
        let rows = iterations::rows(&app.project, &run)?;
        let state = app.project.state(&run);
        tree_view::node(tree, &id, Some(run.id.to_string()), (&rows, state.as_ref()))
            .ok_or_else(|| RequestError::no_node(&id))
    })
    .await
}

async fn run_state(State(app): Shared, which: Asked<RunQuery>, asked: HeaderMap) -> Reply {
    aside(app, move |app| {
        let run = some_run(app, &asked_for(which)?)?;
        let bytes =
            app.project.doc(&run, Doc::RunState)?.ok_or_else(|| RequestError::no_doc(Doc::RunState))?;
        // As it stands, so long as it is JSON: a newer runner may write more into it than is known here.
        let state: serde_json::Value = serde_json::from_slice(&bytes).map_err(|_| {
            RequestError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_state", "run_state.json is not JSON")
        })?;
        Ok(response::json(&asked, &state))
    })
    .await
}

async fn runs(State(app): Shared, asked: HeaderMap) -> Reply {
    answer(app, asked, |app| snapshot::runs(&app.project)).await
}

async fn verdict(State(app): Shared, which: Asked<RunQuery>, asked: HeaderMap) -> Reply {
    answer(app, asked, move |app| {
        let run = some_run(app, &asked_for(which)?)?;
        Ok(app.project.verdict_of(&run, || verify::verdict(&app.project, &run)))
    })
    .await
}

async fn iterations(State(app): Shared, which: Asked<RunQuery>, asked: HeaderMap) -> Reply {
    answer(app, asked, move |app| {
        let which = asked_for(which)?;
        let Some(run) = run_of(app, &which)? else {
            return Ok(api::IterationList { run: None, iterations: Vec::new() });
        };
        let after = which.after.unwrap_or_default();
        let rows = iterations::rows(&app.project, &run)?.into_iter().filter(|row| row.iter > after);
        let iterations = rows.take(which.limit.unwrap_or(usize::MAX)).collect();
        Ok(api::IterationList { run: Some(run.id.to_string()), iterations })
    })
    .await
}

async fn iteration(State(app): Shared, Path((run, iter)): Path<(String, String)>, asked: HeaderMap) -> Reply {
    answer(app, asked, move |app| {
        let (run, iter) = place(app, &run, &iter)?;
        iterations::detail(&app.project, &run, iter)
    })
    .await
}

async fn search(State(app): Shared, which: Asked<RunQuery>, asked: HeaderMap) -> Reply {
    answer(app, asked, move |app| {
        let which = asked_for(which)?;
        let run = some_run(app, &which)?;
        let tree = app.project.tree(&run)?;
        let found = tree.as_ref().as_ref().map(|tree| tree_view::find(tree, &which.q, FOUND_MAX));
        let (nodes_total, nodes) = found.unwrap_or_default();
        let wanted = which.q.to_lowercase();
        let holds = |text: &str| text.to_lowercase().contains(&wanted);
        let mut rows = iterations::rows(&app.project, &run)?;
        rows.retain(|row| {
            holds(&row.summary) || holds(&row.path) || row.findings.iter().any(|text| holds(text))
        });
        let iterations_total = rows.len();
        rows.truncate(FOUND_MAX);
        Ok(api::SearchResults { nodes_total, nodes, iterations_total, iterations: rows })
    })
    .await
}

/// The files that are logs, by the names they have in addresses.
fn log_file(name: &str) -> Result<&'static str, RequestError> {
    Ok(match name {
        "guard" => "guard.log",
        "agent" => "executor.log",
        "stream" => "stream.jsonl",
        "events" => "events.jsonl",
        "prompt" => "prompt.md",
        "error" => "error.log",
        "patch" => "diff.patch",
        _ => return Err(RequestError::not_found()),
    })
}

type Log = (String, String, String);

/// Opens a log and finds its lines.
fn open_log(
    app: &RepoState,
    (run, iter, name): &Log,
) -> Result<(RegularFile, Arc<crate::read::log_index::LogIndex>), RequestError> {
    let name = log_file(name)?;
    let (run, iter) = place(app, run, iter)?;
    let file = iterations::folder(&app.project, &run, iter)?
        .file(name)
        .map_err(|error| RequestError::unreadable(name, &error))?;
    let index = app.project.indexes.of(&format!("{}/{iter}/{name}", run.id), &file)?;
    Ok((file, index))
}

async fn log_page(
    State(app): Shared,
    Path(place): Path<Log>,
    part: Asked<LogQuery>,
    asked: HeaderMap,
) -> Reply {
    answer(app, asked, move |app| {
        let part = asked_for(part)?;
        let (file, index) = open_log(app, &place)?;
        Ok(logs::page(&file, &index, part.line, part.count.unwrap_or(logs::LINES_MAX))?)
    })
    .await
}

async fn log_search(
    State(app): Shared,
    Path(place): Path<Log>,
    part: Asked<LogQuery>,
    asked: HeaderMap,
) -> Reply {
    answer(app, asked, move |app| {
        let part = asked_for(part)?;
        let (file, index) = open_log(app, &place)?;
        Ok(logs::search(&file, &index, &part.q, part.case.is_some())?)
    })
    .await
}

async fn log_errors(State(app): Shared, Path(place): Path<Log>, asked: HeaderMap) -> Reply {
    answer(app, asked, move |app| {
        let (file, index) = open_log(app, &place)?;
        Ok(logs::failures(&file, &index)?)
    })
    .await
}

async fn changed_files(
    State(app): Shared,
    Path((run, iter)): Path<(String, String)>,
    asked: HeaderMap,
) -> Reply {
    answer(app, asked, move |app| {
        let (run, iter) = place(app, &run, &iter)?;
        diff::view(&app.project, &run, iter)
    })
    .await
}

async fn patch(
    State(app): Shared,
    Path((run, iter)): Path<(String, String)>,
    part: Asked<LogQuery>,
    asked: HeaderMap,
) -> Reply {
    answer(app, asked, move |app| {
        let part = asked_for(part)?;
        let (run, iter) = place(app, &run, &iter)?;
        diff::patch(&app.project, &run, iter, &part.path)
    })
    .await
}

/// A file of an iteration's folder as it stands.
async fn file(State(app): Shared, Path(place): Path<Log>, asked: HeaderMap) -> Reply {
    let opened = aside_open(app, place).await;
    opened.and_then(|file| response::file(&asked, file)).unwrap_or_else(response::fault)
}

async fn aside_open(app: Arc<RepoState>, (run, iter, name): Log) -> Result<RegularFile, RequestError> {
    let work = move || {
        let known =
            iterations::FILES.into_iter().find(|known| *known == name).ok_or_else(RequestError::not_found)?;
        let (run, iter) = place(&app, &run, &iter)?;
        iterations::folder(&app.project, &run, iter)?
            .file(known)
            .map_err(|error| RequestError::unreadable(known, &error))
    };
    tokio::task::spawn_blocking(work).await.map_err(|_| RequestError::failed())?
}
