//! Sends the first screen in one response: the snapshot at once, then the iterations, the tree and one task as they are read.

use std::io::{self, Write};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_ENCODING, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::channel::Channel;
use runner_core::model::id::NodeId;

use crate::api::{IterationList, OverviewPart, PageSnapshot, TreeColumns};
use crate::error::RequestError;
use crate::read::iterations;
use crate::read::repo_reader::{RepoReader, RunSource};
use crate::read::tree_view;
use crate::server::compress;
use crate::server::download::BodyWriter;
use crate::server::response::{self, Reply};
use crate::server::routes::{
    QueryResult, ReadLimit as _, RepoState, RunQuery, Shared, node_detail, parse_query, parse_run_id,
};

pub(crate) async fn get_overview(
    State(state): Shared,
    query: QueryResult<RunQuery>,
    headers: HeaderMap,
) -> Reply {
    overview(state, query, &headers).await.unwrap_or_else(response::error)
}

async fn overview(
    state: Arc<RepoState>,
    query: QueryResult<RunQuery>,
    headers: &HeaderMap,
) -> Result<Reply, RequestError> {
    let query = parse_query(query)?;
    let id = query.run.as_deref().map(parse_run_id).transpose()?;
    let permit = Arc::clone(&state.readers).acquire_owned().await;
    let permit = permit.map_err(|_| RequestError::busy("the server is shutting down"))?;
    let first = Arc::clone(&state);
    let read = tokio::task::spawn_blocking(move || {
        first.check()?;
        let snapshot = first.snapshot(id.as_ref())?;
        Ok((snapshot, first.project.run(id.as_ref())?))
    });
    let (snapshot, run) = read.await.unwrap_or_else(|_| Err(RequestError::failed()))?;
    let (sender, body) = Channel::<Bytes, io::Error>::new(2);
    let is_compressed = compress::accepts_gzip(headers);
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let writer = BodyWriter::new(sender);
        let out: Box<dyn Write> = if is_compressed {
            Box::new(GzEncoder::new(writer, Compression::fast()))
        } else {
            Box::new(writer)
        };
        // A client that left needs nothing more. What is missing, the page requests by itself.
        let _ = PartWriter(out).write_all(&state.project, run.as_ref(), snapshot, query.node.as_deref());
    });
    let mut reply = response::plain(StatusCode::OK, "application/x-ndjson", Body::new(body));
    let headers = reply.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if is_compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(reply)
}

/// Writes one part on each line.
struct PartWriter(Box<dyn Write>);

impl PartWriter {
    fn write(&mut self, part: &OverviewPart) -> io::Result<()> {
        let mut line = response::json_bytes(part)?;
        line.push(b'\n');
        self.0.write_all(&line)?;
        // Each part is sent at once, also if it is compressed.
        self.0.flush()
    }

    fn write_all(
        &mut self,
        project: &RepoReader,
        run: Option<&RunSource>,
        snapshot: PageSnapshot,
        node: Option<&str>,
    ) -> io::Result<()> {
        let current = snapshot.current.as_ref().and_then(|current| current.node.clone());
        let current = current.filter(|_| snapshot.status.is_live());
        self.write(&OverviewPart { snapshot: Some(snapshot), ..OverviewPart::default() })?;
        let Some(run) = run else { return Ok(()) };
        let iterations = iteration_list(project, run);
        self.write(&OverviewPart { iterations, ..OverviewPart::default() })?;
        let tree = tree_columns(project, run);
        // The task that the page shows: the wanted one, the one in progress, the next one, or the root.
        let root = || tree.as_ref().and_then(|tree| tree.id.get(0).map(str::to_owned));
        let selected = || tree.as_ref().and_then(|tree| tree.selected.clone());
        let shown = node.map(str::to_owned).or(current).or_else(selected).or_else(root);
        self.write(&OverviewPart { tree, ..OverviewPart::default() })?;
        let shown = shown.and_then(|id| NodeId::new(id).ok());
        let task = shown.and_then(|id| node_detail(project, run, &id).ok());
        self.write(&OverviewPart { task, ..OverviewPart::default() })?;
        self.write(&OverviewPart { files: project.known_run_files(run), ..OverviewPart::default() })
    }
}

fn iteration_list(project: &RepoReader, run: &RunSource) -> Option<IterationList> {
    let rows = iterations::rows(project, run).ok()?;
    let iterations = rows.iter().map(|row| row.as_ref().clone()).collect();
    Some(IterationList { run: Some(run.id.to_string()), iterations })
}

fn tree_columns(project: &RepoReader, run: &RunSource) -> Option<TreeColumns> {
    let tree = project.tree(run).ok()?;
    let on_stuck = tree_view::on_stuck(project.config(run).as_deref());
    Some(tree_view::tree_columns(tree.as_ref().as_ref().ok()?, on_stuck, Some(run.id.to_string())))
}
