//! Sends the export of a run while it is made.

use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_DISPOSITION;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use http_body_util::channel::{Channel, Sender};
use tokio::runtime::Handle;

use crate::error::RequestError;
use crate::export::RunExporter;
use crate::server::response::{self, Reply};
use crate::server::routes::{QueryResult, RepoState, RunQuery, Shared, parse_query, parse_run_id};

/// How much is sent at once.
const PIECE_BYTES: usize = 64 << 10;
/// How many iterations the export has. Each is one line of it, so a client can show how far it is.
const ITERATIONS_HEADER: HeaderName = HeaderName::from_static("x-iterations");

/// The exported page as a download.
pub(crate) async fn get_export(State(state): Shared, query: QueryResult<RunQuery>) -> Reply {
    export(state, query).await.unwrap_or_else(response::error)
}

async fn export(state: Arc<RepoState>, query: QueryResult<RunQuery>) -> Result<Reply, RequestError> {
    let id = parse_query(query)?.run.as_deref().map(parse_run_id).transpose()?;
    let permit = Arc::clone(&state.readers).acquire_owned().await;
    let permit = permit.map_err(|_| RequestError::busy("the server is shutting down"))?;
    let begin = Arc::clone(&state);
    let first = tokio::task::spawn_blocking(move || {
        let exporter = RunExporter::new(&begin.project, id.as_ref())?;
        Ok((exporter.run_id().clone(), exporter.iterations()))
    });
    let (run, iterations) = first.await.unwrap_or_else(|_| Err(RequestError::failed()))?;
    let (sender, body) = Channel::<Bytes, io::Error>::new(2);
    let name = format!("attachment; filename=\"{run}.html\"");
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let writer = BodyWriter::new(sender);
        let mut out = io::BufWriter::with_capacity(PIECE_BYTES, writer);
        // An error ends the response early: the client sees that it is incomplete.
        let written = RunExporter::new(&state.project, Some(&run))
            .map_err(Into::into)
            .and_then(|mut exporter| exporter.html(&mut out, |_| ()));
        if written.is_err()
            && let Ok(writer) = out.into_inner()
        {
            writer.abort();
        }
    });
    let mut reply = response::plain(StatusCode::OK, "text/html; charset=utf-8", Body::new(body));
    let headers = reply.headers_mut();
    headers.insert(ITERATIONS_HEADER, HeaderValue::from(iterations));
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    Ok(reply)
}

/// Writes into the body of a response, as fast as the client reads.
pub(crate) struct BodyWriter {
    sender: Sender<Bytes, io::Error>,
    runtime: Handle,
}

impl BodyWriter {
    /// Must be called on a thread of the server's runtime.
    pub(crate) fn new(sender: Sender<Bytes, io::Error>) -> Self {
        Self { sender, runtime: Handle::current() }
    }

    /// Ends the response as incomplete.
    fn abort(self) {
        self.sender.abort(io::Error::other("the export failed"));
    }
}

impl io::Write for BodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.runtime.block_on(self.sender.send_data(Bytes::copy_from_slice(bytes)));
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
