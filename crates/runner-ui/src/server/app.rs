//! The whole server, but for its socket: who may ask, what is served at which address.
//!
//! Shows one repository, or the results of an evaluation. The run of a trial is served by the very routes of a repository,
//! beneath an address of its own.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::get;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::error::RequestError;
use crate::evaluation::Evaluation;
use crate::read::snapshot;
use crate::server::access::{AccessPolicy, GrantedAccess};
use crate::server::assets;
use crate::server::response::{self, Reply};
use crate::server::routes::{self, Asked, ReadLimit, RepoState, answer, asked_for};
use crate::server::sse::EventStream;

/// What is shown.
#[derive(Clone, Debug)]
pub(crate) enum SiteSubject {
    Repository(Arc<RepoState>),
    Evaluation(Arc<Evaluation>),
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) feed: Arc<EventStream>,
    pub(crate) gate: AccessPolicy,
    pub(crate) shown: SiteSubject,
}

type Shared = State<Arc<AppState>>;
type OfEvaluation = State<Arc<Evaluation>>;

impl ReadLimit for Evaluation {
    fn readers(&self) -> &Semaphore {
        &self.readers
    }
}

/// The whole server.
pub(crate) fn router(site: Arc<AppState>) -> Router {
    let shown = match &site.shown {
        SiteSubject::Repository(app) => routes::router(Arc::clone(app)),
        SiteSubject::Evaluation(evaluation) => evaluation_router(Arc::clone(evaluation)),
    };
    let own = Router::new()
        .route(
            "/healthz",
            get(|| async { response::plain(StatusCode::OK, "text/plain; charset=utf-8", "ok\n") }),
        )
        .route("/events", get(events))
        .fallback(page_file)
        .with_state(Arc::clone(&site));
    own.merge(shown).layer(from_fn_with_state(site, guarded))
}

fn evaluation_router(evaluation: Arc<Evaluation>) -> Router {
    Router::new()
        .route("/api/snapshot", get(get_snapshot))
        .route("/api/eval", get(view))
        .route("/api/eval/compare", get(compare))
        .route("/trial/{case}/{id}/{*rest}", get(trial))
        .with_state(evaluation)
}

/// Checks every request before its route, and dresses every answer.
async fn guarded(State(site): Shared, request: Request, next: Next) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let mut reply = match site.gate.check(&parts) {
        Ok(GrantedAccess::Enter) => next.run(Request::from_parts(parts, body)).await,
        Ok(GrantedAccess::TakeCookie) => take_cookie(&site.gate, &parts.uri),
        Err(fault) => response::fault(fault),
    };
    response::dress(&mut reply);
    reply
}

/// Keeps the token as a cookie and asks again without it, so that it stays out of histories.
fn take_cookie(gate: &AccessPolicy, uri: &Uri) -> Reply {
    let mut reply = response::plain(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    let headers = reply.headers_mut();
    if let (Ok(place), Ok(cookie)) =
        (HeaderValue::from_str(uri.path()), HeaderValue::from_str(&gate.set_cookie()))
    {
        headers.insert(LOCATION, place);
        headers.insert(SET_COOKIE, cookie);
    }
    reply
}

async fn events(State(site): Shared, asked: HeaderMap) -> Reply {
    site.feed.listen(&asked).unwrap_or_else(response::fault)
}

async fn page_file(asked: HeaderMap, uri: Uri) -> Reply {
    match assets::file(uri.path()) {
        Some((bytes, kind)) => response::tagged(&asked, kind, bytes),
        None if uri.path() == "/" => {
            response::plain(StatusCode::OK, "text/plain; charset=utf-8", assets::WITHOUT)
        }
        None => response::fault(RequestError::not_found()),
    }
}

async fn get_snapshot(State(evaluation): OfEvaluation, asked: HeaderMap) -> Reply {
    answer(evaluation, asked, |evaluation| {
        let folder = runner_core::text::one_line(&evaluation.places.results.display().to_string());
        Ok(snapshot::of_evaluation(&folder, evaluation.watch.watching()))
    })
    .await
}

/// Which results.
#[derive(Debug, Default, Deserialize)]
struct ResultsQuery {
    run: Option<String>,
    #[serde(default)]
    base: String,
    #[serde(default)]
    new: String,
}

async fn view(State(evaluation): OfEvaluation, which: Asked<ResultsQuery>, asked: HeaderMap) -> Reply {
    answer(evaluation, asked, move |evaluation| evaluation.view(asked_for(which)?.run.as_deref())).await
}

async fn compare(State(evaluation): OfEvaluation, which: Asked<ResultsQuery>, asked: HeaderMap) -> Reply {
    answer(evaluation, asked, move |evaluation| {
        let which = asked_for(which)?;
        evaluation.compare(&which.base, &which.new)
    })
    .await
}

/// The run of a trial, at the addresses that a repository has.
async fn trial(
    State(evaluation): OfEvaluation,
    Path((case, id, rest)): Path<(String, String, String)>,
    request: Request,
) -> Reply {
    let opened = tokio::task::spawn_blocking(move || evaluation.trial(&case, &id)).await;
    let app = match opened {
        Ok(Ok(app)) => app,
        Ok(Err(fault)) => return response::fault(fault),
        Err(_) => return response::fault(RequestError::failed()),
    };
    let Some(request) = beneath(request, rest.starts_with("api/")) else {
        return response::fault(RequestError::not_found());
    };
    let service = TowerToHyperService::new(
        routes::router(app).fallback(|| async { response::fault(RequestError::not_found()) }),
    );
    match service.call(request).await {
        Ok(reply) => reply,
        Err(never) => match never {},
    }
}

/// A request for `/trial/<case>/<id>/<rest>` as one for `/<rest>`, as it was written.
fn beneath(request: Request, is_api: bool) -> Option<Request> {
    let (mut parts, body) = request.into_parts();
    let text = parts.uri.path_and_query()?.as_str();
    let rest = text.splitn(5, '/').nth(4).filter(|_| is_api)?;
    parts.uri = format!("/{rest}").parse().ok()?;
    // What the outer route has found in the address is not for the inner one.
    parts.extensions.clear();
    Some(Request::from_parts(parts, body))
}
