//! Requests about what an iteration, or the run up to its end, changed.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use runner_core::model::id::IterationNumber;
use serde::Deserialize;

use crate::read::diff::{self, DiffSide, DiffSpan, DiffStart};
use crate::server::response::{self, Reply};
use crate::server::routes::{
    IterationPath, QueryResult, Shared, json_response, parse_query, resolve_iteration, run_blocking,
};

#[derive(Debug, Default, Deserialize)]
pub(crate) struct DiffQuery {
    #[serde(default)]
    path: String,
    /// How many unchanged lines are around each change.
    context: Option<u32>,
    side: Option<String>,
    since: Option<String>,
}

impl DiffQuery {
    /// The changes that an address is about: of the iteration, or `since=run`.
    fn span(&self, iter: IterationNumber) -> DiffSpan {
        let is_run = self.since.as_deref() == Some("run");
        DiffSpan { iter, since: if is_run { DiffStart::Run } else { DiffStart::Iteration } }
    }
}

pub(crate) async fn get_diff(
    State(state): Shared,
    Path(path): Path<IterationPath>,
    query: QueryResult<DiffQuery>,
    headers: HeaderMap,
) -> Reply {
    json_response(state, headers, move |state| {
        let query = parse_query(query)?;
        let (run, iter) = resolve_iteration(state, &path.run, &path.iter)?;
        diff::diff_view(&state.project, &run, query.span(iter))
    })
    .await
}

pub(crate) async fn get_patch(
    State(state): Shared,
    Path(path): Path<IterationPath>,
    query: QueryResult<DiffQuery>,
    headers: HeaderMap,
) -> Reply {
    json_response(state, headers, move |state| {
        let query = parse_query(query)?;
        let (run, iter) = resolve_iteration(state, &path.run, &path.iter)?;
        let context = query.context.unwrap_or(diff::CONTEXT_LINES);
        diff::file_patch(&state.project, &run, query.span(iter), &query.path, context)
    })
    .await
}

pub(crate) async fn get_image(
    State(state): Shared,
    Path(path): Path<IterationPath>,
    query: QueryResult<DiffQuery>,
    headers: HeaderMap,
) -> Reply {
    run_blocking(state, move |state| {
        let query = parse_query(query)?;
        let (run, iter) = resolve_iteration(state, &path.run, &path.iter)?;
        let side = if query.side.as_deref() == Some("before") { DiffSide::Before } else { DiffSide::After };
        let (kind, bytes) = diff::image(&state.project, &run, query.span(iter), &query.path, side)?;
        Ok(response::tagged(&headers, kind, bytes))
    })
    .await
}
