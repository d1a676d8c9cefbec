//! The server without its socket: the router, with the access check before every route and the security headers on every
//! response.
//!
//! It shows one repository, or the results of an evaluation. The run of a trial has the routes of a repository, below
//! `/trial/{case}/{id}`.

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

use crate::api::{OverviewPart, PageSnapshot};
use crate::error::RequestError;
use crate::evaluation::Evaluation;
use crate::read::snapshot::{self, ServerFacts};
use crate::server::access::{AccessPolicy, GrantedAccess};
use crate::server::assets;
use crate::server::response::{self, Reply};
use crate::server::routes::{self, QueryResult, ReadLimit, json_response, parse_query};
use crate::server::served_repo::ServedRepo;
use crate::server::sse::EventStream;

/// What the server shows.
#[derive(Clone, Debug)]
pub(crate) enum SiteSubject {
    Repository(ServedRepo),
    Evaluation(Arc<Evaluation>),
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) events: Arc<EventStream>,
    pub(crate) access: AccessPolicy,
    pub(crate) subject: SiteSubject,
}

type Shared = State<Arc<AppState>>;
type SharedEvaluation = State<Arc<Evaluation>>;

impl ReadLimit for Evaluation {
    fn readers(&self) -> &Semaphore {
        &self.readers
    }
}

/// The description of the API, generated from its types.
const OPENAPI: &[u8] = include_bytes!("../../openapi.json");

/// The addresses of an evaluation.
const EVALUATION_ROUTES: [&str; 5] =
    ["/api/snapshot", "/api/overview", "/api/eval", "/api/eval/compare", "/trial/{case}/{id}/{*rest}"];

pub(crate) fn router(app: Arc<AppState>) -> Router {
    let subject = match &app.subject {
        SiteSubject::Repository(served) => routes::router(served.clone()),
        SiteSubject::Evaluation(evaluation) => evaluation_router(Arc::clone(evaluation)),
    };
    let own = Router::new()
        .route("/healthz", get(healthz))
        .route("/events", get(events))
        .route("/api/openapi.json", get(openapi))
        .fallback(page_file)
        .with_state(Arc::clone(&app));
    own.merge(subject).layer(from_fn_with_state(app, access_layer))
}

fn evaluation_router(evaluation: Arc<Evaluation>) -> Router {
    let handlers =
        [get(get_snapshot), get(get_overview), get(get_evaluation), get(get_comparison), get(get_trial)];
    let routes = EVALUATION_ROUTES.into_iter().zip(handlers);
    routes.fold(Router::new(), |router, (path, handler)| router.route(path, handler)).with_state(evaluation)
}

/// Checks access before any route runs, and adds the security headers to every response.
async fn access_layer(State(app): Shared, request: Request, next: Next) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let mut reply = match app.access.check(&parts) {
        Ok(GrantedAccess::Granted) => next.run(Request::from_parts(parts, body)).await,
        Ok(GrantedAccess::SetCookie) => set_cookie(&app.access, &parts.uri),
        Err(error) => response::error(error),
    };
    response::add_security_headers(&mut reply);
    reply
}

async fn healthz() -> Reply {
    response::plain(StatusCode::OK, "text/plain; charset=utf-8", "ok\n")
}

async fn openapi(headers: HeaderMap) -> Reply {
    response::tagged(&headers, "application/json", OPENAPI)
}

/// Stores the token in a cookie and redirects to the address without it, so that it stays out of the browser's history.
fn set_cookie(access: &AccessPolicy, uri: &Uri) -> Reply {
    let mut reply = response::plain(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    let headers = reply.headers_mut();
    if let (Ok(location), Ok(cookie)) =
        (HeaderValue::from_str(uri.path()), HeaderValue::from_str(&access.set_cookie()))
    {
        headers.insert(LOCATION, location);
        headers.insert(SET_COOKIE, cookie);
    }
    reply
}

/// The query of the event stream.
#[derive(Debug, Default, Deserialize)]
struct EventsQuery {
    since: Option<String>,
}

async fn events(State(app): Shared, query: QueryResult<EventsQuery>, headers: HeaderMap) -> Reply {
    let listen = |query: EventsQuery| app.events.listen(&headers, query.since.as_deref());
    parse_query(query).and_then(listen).unwrap_or_else(response::error)
}

async fn page_file(headers: HeaderMap, uri: Uri) -> Reply {
    match assets::file(uri.path()) {
        Some(file) => response::page_file(&headers, file),
        None if uri.path() == "/" => {
            response::plain(StatusCode::OK, "text/plain; charset=utf-8", assets::NO_PAGE)
        }
        None => response::error(RequestError::not_found()),
    }
}

async fn get_snapshot(State(evaluation): SharedEvaluation, headers: HeaderMap) -> Reply {
    json_response(evaluation, headers, |evaluation| Ok(evaluation_snapshot(evaluation))).await
}

fn evaluation_snapshot(evaluation: &Evaluation) -> PageSnapshot {
    let event_id = evaluation.events.last_id();
    let folder = runner_core::text::one_line(&evaluation.paths.results.display().to_string());
    snapshot::evaluation_snapshot(&folder, ServerFacts { watching: evaluation.watch.watching(), event_id })
}

/// The overview of an evaluation has one part, the snapshot.
async fn get_overview(State(evaluation): SharedEvaluation, headers: HeaderMap) -> Reply {
    let snapshot = Some(evaluation_snapshot(&evaluation));
    json_response(evaluation, headers, |_| Ok(OverviewPart { snapshot, ..OverviewPart::default() })).await
}

/// The query of requests about results.
#[derive(Debug, Default, Deserialize)]
struct ResultsQuery {
    run: Option<String>,
    #[serde(default)]
    base: String,
    #[serde(default)]
    new: String,
}

async fn get_evaluation(
    State(evaluation): SharedEvaluation,
    query: QueryResult<ResultsQuery>,
    headers: HeaderMap,
) -> Reply {
    json_response(evaluation, headers, move |evaluation| evaluation.view(parse_query(query)?.run.as_deref()))
        .await
}

async fn get_comparison(
    State(evaluation): SharedEvaluation,
    query: QueryResult<ResultsQuery>,
    headers: HeaderMap,
) -> Reply {
    json_response(evaluation, headers, move |evaluation| {
        let query = parse_query(query)?;
        evaluation.compare(&query.base, &query.new)
    })
    .await
}

/// The path of a request about a trial's run.
#[derive(Debug, Deserialize)]
struct TrialPath {
    case: String,
    id: String,
    rest: String,
}

/// Serves the run of a trial with the routes of a repository.
async fn get_trial(
    State(evaluation): SharedEvaluation,
    Path(path): Path<TrialPath>,
    request: Request,
) -> Reply {
    if !path.rest.starts_with("api/") {
        return response::error(RequestError::not_found());
    }
    let opened = tokio::task::spawn_blocking(move || evaluation.trial(&path.case, &path.id)).await;
    let state = match opened {
        Ok(Ok(state)) => state,
        Ok(Err(error)) => return response::error(error),
        Err(_) => return response::error(RequestError::failed()),
    };
    let Some(request) = strip_trial_prefix(request) else {
        return response::error(RequestError::not_found());
    };
    let service = TowerToHyperService::new(
        routes::router(ServedRepo::new(state))
            .fallback(|| async { response::error(RequestError::not_found()) }),
    );
    match service.call(request).await {
        Ok(reply) => reply,
        Err(never) => match never {},
    }
}

/// A request for `/trial/{case}/{id}/{rest}` as one for `/{rest}`, still percent-encoded.
fn strip_trial_prefix(request: Request) -> Option<Request> {
    let (mut parts, body) = request.into_parts();
    let text = parts.uri.path_and_query()?.as_str();
    let rest = text.splitn(5, '/').nth(4)?;
    parts.uri = format!("/{rest}").parse().ok()?;
    // The inner router must not see the path parameters of the outer route.
    parts.extensions.clear();
    Some(Request::from_parts(parts, body))
}
