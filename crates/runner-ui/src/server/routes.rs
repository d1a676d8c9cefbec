//! The routes of a repository and their handlers. All work that waits for a disk or for git runs on blocking threads, a
//! limited number at a time.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{MethodRouter, get};
use runner_core::layout::Doc;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::api;
use crate::error::RequestError;
use crate::read::confined_fs::RegularFile;
use crate::read::files;
use crate::read::iterations;
use crate::read::log_groups::log_groups;
use crate::read::log_index::LogIndex;
use crate::read::logs::{self, LetterCase};
use crate::read::repo_reader::{RepoReader, RunSource};
use crate::read::search::{self, LogScope};
use crate::read::snapshot::{self, ServerFacts};
use crate::read::tree_view::{self, NodeFacts};
use crate::read::verify;
use crate::server::diff_routes;
use crate::server::download;
use crate::server::overview;
use crate::server::response::{self, Reply};
use crate::server::served_repo::ServedRepo;
use crate::server::sse::EventStream;
use crate::watch::WatchState;

/// How many requests read at the same time.
pub(crate) const READERS_MAX: usize = 8;

/// The addresses of a repository.
pub const ROUTES: [&str; 20] = [
    "/api/snapshot",
    "/api/overview",
    "/api/tree",
    "/api/tree/{node}",
    "/api/run-state",
    "/api/runs",
    "/api/search",
    "/api/files",
    "/api/export",
    "/api/verify",
    "/api/iterations",
    "/api/iterations/{run}/{iter}",
    "/api/iterations/{run}/{iter}/log/{log}",
    "/api/iterations/{run}/{iter}/log/{log}/search",
    "/api/iterations/{run}/{iter}/log/{log}/errors",
    "/api/iterations/{run}/{iter}/log/{log}/groups",
    "/api/iterations/{run}/{iter}/diff",
    "/api/iterations/{run}/{iter}/diff/file",
    "/api/iterations/{run}/{iter}/diff/image",
    "/api/iterations/{run}/{iter}/{file}",
];

/// What all requests about a repository share.
#[derive(Debug)]
pub(crate) struct RepoState {
    pub(crate) project: Arc<RepoReader>,
    pub(crate) watch: Arc<WatchState>,
    pub(crate) readers: Arc<Semaphore>,
    events: Arc<EventStream>,
}

impl RepoState {
    pub(crate) fn new(project: Arc<RepoReader>, readers: &Arc<Semaphore>, events: &Arc<EventStream>) -> Self {
        let (readers, events) = (Arc::clone(readers), Arc::clone(events));
        Self { project, watch: Arc::default(), readers, events }
    }

    /// The first screen of a run.
    pub(crate) fn snapshot(&self, run: Option<&RunId>) -> Result<api::PageSnapshot, RequestError> {
        let facts = ServerFacts { watching: self.watch.watching(), event_id: self.events.last_id() };
        snapshot::snapshot(&self.project, run, facts)
    }
}

/// Shared state with a limit on how many requests read at the same time.
pub(crate) trait ReadLimit: Send + Sync + 'static {
    fn readers(&self) -> &Semaphore;

    /// Fails if there is nothing to read.
    fn check(&self) -> Result<(), RequestError> {
        Ok(())
    }
}

impl ReadLimit for RepoState {
    fn readers(&self) -> &Semaphore {
        &self.readers
    }

    /// A folder that was moved away can still be read through its open handle, but git cannot find it.
    fn check(&self) -> Result<(), RequestError> {
        let root = self.project.repo.root();
        if root.is_dir() { Ok(()) } else { Err(RequestError::repository_gone(root)) }
    }
}

pub(crate) type Shared = State<Arc<RepoState>>;
pub(crate) type QueryResult<T> = Result<Query<T>, QueryRejection>;

/// The query of requests about a run; without `run`, about the current one.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RunQuery {
    pub(crate) run: Option<String>,
    pub(crate) node: Option<String>,
    slim: Option<String>,
    logs: Option<String>,
    after: Option<u32>,
    limit: Option<usize>,
    #[serde(default)]
    q: String,
}

/// The query of requests about a log.
#[derive(Debug, Default, Deserialize)]
struct LogQuery {
    #[serde(default)]
    line: u64,
    count: Option<u64>,
    #[serde(default)]
    q: String,
    case: Option<String>,
}

/// The iteration in an address.
#[derive(Debug, Deserialize)]
pub(crate) struct IterationPath {
    pub(crate) run: String,
    pub(crate) iter: String,
}

/// The log of an iteration in an address.
#[derive(Debug, Deserialize)]
struct LogPath {
    run: String,
    iter: String,
    log: String,
}

/// The file of an iteration in an address.
#[derive(Debug, Deserialize)]
struct FilePath {
    run: String,
    iter: String,
    file: String,
}

pub(crate) fn router(served: ServedRepo) -> Router {
    let handlers: [MethodRouter<ServedRepo>; ROUTES.len()] = [
        get(get_snapshot),
        get(overview::get_overview),
        get(get_tree),
        get(get_node),
        get(get_run_state),
        get(get_runs),
        get(get_search),
        get(get_files),
        get(download::get_export),
        get(get_verify),
        get(get_iterations),
        get(get_iteration),
        get(log_page),
        get(log_search),
        get(log_errors),
        get(get_log_groups),
        get(diff_routes::get_diff),
        get(diff_routes::get_patch),
        get(diff_routes::get_image),
        get(get_file),
    ];
    let routes = ROUTES.into_iter().zip(handlers);
    routes.fold(Router::new(), |router, (path, handler)| router.route(path, handler)).with_state(served)
}

/// Responds with the result of `work` as JSON.
pub(crate) async fn json_response<S, T, F>(state: Arc<S>, headers: HeaderMap, work: F) -> Reply
where
    S: ReadLimit,
    T: Serialize,
    F: FnOnce(&S) -> Result<T, RequestError> + Send + 'static,
{
    run_blocking(state, move |state| Ok(response::json(&headers, &work(state)?))).await
}

/// Runs `work` on a blocking thread, once fewer than [`READERS_MAX`] others do.
pub(crate) async fn run_blocking<S, F>(state: Arc<S>, work: F) -> Reply
where
    S: ReadLimit,
    F: FnOnce(&S) -> Result<Reply, RequestError> + Send + 'static,
{
    let Ok(_permit) = state.readers().acquire().await else {
        return response::error(RequestError::busy("the server is shutting down"));
    };
    let shared = Arc::clone(&state);
    match tokio::task::spawn_blocking(move || shared.check().and_then(|()| work(&shared))).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => response::error(error),
        Err(_) => response::error(RequestError::failed()),
    }
}

pub(crate) fn parse_run_id(text: &str) -> Result<RunId, RequestError> {
    RunId::new(text).map_err(|error| RequestError::bad_request(format!("the run {error}")))
}

fn parse_iteration(text: &str) -> Result<IterationNumber, RequestError> {
    text.parse().map_err(|error| RequestError::bad_request(format!("the iteration {error}")))
}

pub(crate) fn parse_query<T>(query: QueryResult<T>) -> Result<T, RequestError> {
    query.map(|Query(query)| query).map_err(|_| RequestError::bad_request("the query string is invalid"))
}

fn resolve_run(state: &RepoState, query: &RunQuery) -> Result<Option<RunSource>, RequestError> {
    let id = query.run.as_deref().map(parse_run_id).transpose()?;
    state.project.run(id.as_ref())
}

fn require_run(state: &RepoState, query: &RunQuery) -> Result<RunSource, RequestError> {
    resolve_run(state, query)?.ok_or_else(RequestError::no_current_run)
}

pub(crate) fn resolve_iteration(
    state: &RepoState,
    run: &str,
    iter: &str,
) -> Result<(RunSource, IterationNumber), RequestError> {
    let id = parse_run_id(run)?;
    let iter = parse_iteration(iter)?;
    let run = state.project.run(Some(&id))?.ok_or_else(|| RequestError::no_run(&id))?;
    Ok((run, iter))
}

async fn get_snapshot(State(state): Shared, query: QueryResult<RunQuery>, headers: HeaderMap) -> Reply {
    json_response(state, headers, move |state| {
        let id = parse_query(query)?.run.as_deref().map(parse_run_id).transpose()?;
        state.snapshot(id.as_ref())
    })
    .await
}

async fn get_tree(State(state): Shared, query: QueryResult<RunQuery>, headers: HeaderMap) -> Reply {
    run_blocking(state, move |state| {
        let query = parse_query(query)?;
        let run = require_run(state, &query)?;
        let tree = state.project.tree(&run)?;
        let tree = tree.as_ref().as_ref().map_err(|problems| RequestError::invalid_tree(problems.clone()))?;
        if query.slim.is_some() {
            let on_stuck = tree_view::on_stuck(state.project.config(&run).as_deref());
            let columns = tree_view::tree_columns(tree, on_stuck, Some(run.id.to_string()));
            return Ok(response::json(&headers, &columns));
        }
        Ok(response::tagged(&headers, "application/json", tree.bytes().to_vec()))
    })
    .await
}

async fn get_node(
    State(state): Shared,
    Path(node): Path<String>,
    query: QueryResult<RunQuery>,
    headers: HeaderMap,
) -> Reply {
    json_response(state, headers, move |state| {
        let id = NodeId::new(node).map_err(|error| RequestError::bad_request(format!("the node {error}")))?;
        let run = require_run(state, &parse_query(query)?)?;
        node_detail(&state.project, &run, &id)
    })
    .await
}

/// One task of a run.
pub(crate) fn node_detail(
    project: &RepoReader,
    run: &RunSource,
    id: &NodeId,
) -> Result<api::NodeDetail, RequestError> {
    let tree = project.tree(run)?;
    let tree = tree.as_ref().as_ref().map_err(|problems| RequestError::invalid_tree(problems.clone()))?;
    let state = project.state(run);
    let facts = NodeFacts {
        run: &run.id,
        rows: &iterations::rows(project, run)?,
        state: state.as_deref(),
        checks: &project.checks(run, tree),
        on_stuck: tree_view::on_stuck(project.config(run).as_deref()),
    };
    tree_view::node_detail(tree, id, &facts).ok_or_else(|| RequestError::no_node(id))
}

async fn get_run_state(State(state): Shared, query: QueryResult<RunQuery>, headers: HeaderMap) -> Reply {
    run_blocking(state, move |state| {
        let run = require_run(state, &parse_query(query)?)?;
        let bytes = state.project.doc(&run, Doc::RunState)?;
        let bytes = bytes.ok_or_else(|| RequestError::no_doc(Doc::RunState))?;
        // Any JSON is sent unchanged: a newer runner may write keys that this version does not know.
        let document: serde_json::Value = serde_json::from_slice(&bytes).map_err(|_| {
            RequestError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_state", "run_state.json is not JSON")
        })?;
        Ok(response::json(&headers, &document))
    })
    .await
}

async fn get_runs(State(state): Shared, headers: HeaderMap) -> Reply {
    json_response(state, headers, |state| snapshot::runs(&state.project)).await
}

async fn get_verify(State(state): Shared, query: QueryResult<RunQuery>, headers: HeaderMap) -> Reply {
    json_response(state, headers, move |state| {
        let run = require_run(state, &parse_query(query)?)?;
        Ok(state.project.verify_result(&run, || verify::verify(&state.project, &run)))
    })
    .await
}

async fn get_iterations(State(state): Shared, query: QueryResult<RunQuery>, headers: HeaderMap) -> Reply {
    json_response(state, headers, move |state| {
        let query = parse_query(query)?;
        let Some(run) = resolve_run(state, &query)? else {
            return Ok(api::IterationList { run: None, iterations: Vec::new() });
        };
        let after = query.after.unwrap_or_default();
        let rows = iterations::rows(&state.project, &run)?;
        let rows = rows.iter().filter(|row| row.iter > after).take(query.limit.unwrap_or(usize::MAX));
        let iterations = rows.map(|row| row.as_ref().clone()).collect();
        Ok(api::IterationList { run: Some(run.id.to_string()), iterations })
    })
    .await
}

async fn get_iteration(State(state): Shared, Path(path): Path<IterationPath>, headers: HeaderMap) -> Reply {
    json_response(state, headers, move |state| {
        let (run, iter) = resolve_iteration(state, &path.run, &path.iter)?;
        iterations::detail(&state.project, &run, iter)
    })
    .await
}

async fn get_files(State(state): Shared, query: QueryResult<RunQuery>, headers: HeaderMap) -> Reply {
    json_response(state, headers, move |state| {
        let run = require_run(state, &parse_query(query)?)?;
        files::run_files(&state.project, &run)
    })
    .await
}

async fn get_search(State(state): Shared, query: QueryResult<RunQuery>, headers: HeaderMap) -> Reply {
    json_response(state, headers, move |state| {
        let query = parse_query(query)?;
        let run = require_run(state, &query)?;
        let scope = if query.logs.is_some() { LogScope::With } else { LogScope::Without };
        search::search(&state.project, &run, &query.q, scope)
    })
    .await
}

/// The file of a log, by its name in addresses.
fn log_file(name: &str) -> Result<&'static str, RequestError> {
    Ok(match name {
        "guard" => "guard.log",
        "agent" => "executor.log",
        "stderr" => "executor.err.log",
        "stream" => "stream.jsonl",
        "events" => "events.jsonl",
        "prompt" => "prompt.md",
        "error" => "error.log",
        "patch" => "diff.patch",
        _ => return Err(RequestError::not_found()),
    })
}

/// Opens a log and indexes its lines.
fn open_log(state: &RepoState, path: &LogPath) -> Result<(RegularFile, Arc<LogIndex>), RequestError> {
    let name = log_file(&path.log)?;
    let (run, iter) = resolve_iteration(state, &path.run, &path.iter)?;
    let file = iterations::file(&state.project, &run, iter, name)?;
    let index = state.project.indexes.index(&format!("{}/{iter}/{name}", run.id), &file)?;
    Ok((file, index))
}

async fn log_page(
    State(state): Shared,
    Path(path): Path<LogPath>,
    query: QueryResult<LogQuery>,
    headers: HeaderMap,
) -> Reply {
    json_response(state, headers, move |state| {
        let query = parse_query(query)?;
        let opened = open_log(state, &path);
        if opened.is_err() {
            let (run, iter) = resolve_iteration(state, &path.run, &path.iter)?;
            if iterations::is_unwritten(&state.project, &run, iter, log_file(&path.log)?)? {
                return Ok(api::LogPage::default());
            }
        }
        let (file, index) = opened?;
        Ok(logs::page(&file, &index, query.line, query.count.unwrap_or(logs::LINES_MAX))?)
    })
    .await
}

async fn log_search(
    State(state): Shared,
    Path(path): Path<LogPath>,
    query: QueryResult<LogQuery>,
    headers: HeaderMap,
) -> Reply {
    json_response(state, headers, move |state| {
        let query = parse_query(query)?;
        let case = if query.case.is_some() { LetterCase::Matters } else { LetterCase::Ignored };
        let (file, index) = open_log(state, &path)?;
        Ok(logs::search(&file, &index, &query.q, case)?)
    })
    .await
}

async fn log_errors(State(state): Shared, Path(path): Path<LogPath>, headers: HeaderMap) -> Reply {
    json_response(state, headers, move |state| {
        let (file, index) = open_log(state, &path)?;
        Ok(logs::error_lines(&file, &index)?)
    })
    .await
}

async fn get_log_groups(State(state): Shared, Path(path): Path<LogPath>, headers: HeaderMap) -> Reply {
    json_response(state, headers, move |state| {
        let (file, index) = open_log(state, &path)?;
        Ok(log_groups(&file, &index)?)
    })
    .await
}

/// A file of an iteration's log folder, unchanged. It is streamed, so it takes no turn among the readers.
async fn get_file(State(state): Shared, Path(path): Path<FilePath>, headers: HeaderMap) -> Reply {
    let opened = tokio::task::spawn_blocking(move || open_file(&state, &path)).await;
    let file = opened.unwrap_or_else(|_| Err(RequestError::failed()));
    file.and_then(|file| response::file(&headers, file)).unwrap_or_else(response::error)
}

fn open_file(state: &RepoState, path: &FilePath) -> Result<RegularFile, RequestError> {
    let name = iterations::FILES.into_iter().find(|name| *name == path.file);
    let name = name.ok_or_else(RequestError::not_found)?;
    let (run, iter) = resolve_iteration(state, &path.run, &path.iter)?;
    iterations::file(&state.project, &run, iter, name)
}
