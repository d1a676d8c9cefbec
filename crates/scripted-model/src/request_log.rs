//! The request log: keeps every request for tests and writes it to a file, with API keys redacted.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::HeaderMap;
use serde::Serialize;
use serde_json::Value;

use crate::wire::WireFormat;

#[derive(Clone, Debug, Serialize)]
pub struct LoggedRequest {
    /// Counted from 0.
    pub number: usize,
    /// Milliseconds since the server started.
    pub at_ms: u128,
    pub method: String,
    /// Path and query, with API keys redacted.
    pub path: String,
    /// By lower-case name, with API keys redacted.
    pub headers: BTreeMap<String, String>,
    /// The body, or null if it is not JSON.
    pub body: Value,
    pub kind: RequestKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireFormat>,
    /// The names of the offered tools.
    pub tools: Vec<String>,
    /// The part of the script that the server chose, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
    /// The step within the part, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// The injected fault, by [`crate::InjectedFault::name`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// How the server classified a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestKind {
    /// A step of the script.
    Step,
    /// A request without tools, outside the agent's main conversation: for a title, for example.
    Side,
    /// A request to summarise the conversation.
    Summary,
    /// A request that does not call the model: a list of models, a token count.
    Probe,
    /// Refused: no part of the script matches, too many requests, or an unknown path.
    Refused,
}

const SECRET_HEADERS: [&str; 5] = ["authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"];
const REDACTED: &str = "(hidden)";

impl LoggedRequest {
    /// A request that is not classified yet.
    pub(crate) fn new(method: &str, path: &str, headers: &HeaderMap, body: Value) -> Self {
        let header_value = |name: &str, value: &[u8]| {
            if SECRET_HEADERS.contains(&name) {
                REDACTED.to_owned()
            } else {
                String::from_utf8_lossy(value).into_owned()
            }
        };
        Self {
            number: 0,
            at_ms: 0,
            method: method.to_owned(),
            path: redact_key(path),
            headers: headers
                .iter()
                .map(|(name, value)| (name.to_string(), header_value(name.as_str(), value.as_bytes())))
                .collect(),
            body,
            kind: RequestKind::Refused,
            wire: None,
            tools: Vec::new(),
            part: None,
            step: None,
            fault: None,
        }
    }
}

/// Redacts the API key in a query.
fn redact_key(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let redact =
        |pair: &str| if pair.starts_with("key=") { format!("key={REDACTED}") } else { pair.to_owned() };
    format!("{path}?{}", query.split('&').map(redact).collect::<Vec<_>>().join("&"))
}

/// All requests, and the server's position in the script.
pub(crate) struct RequestLog {
    started_at: Instant,
    state: Mutex<ScriptState>,
    request_added: Condvar,
}

#[derive(Default)]
pub(crate) struct ScriptState {
    pub(crate) requests: Vec<LoggedRequest>,
    /// How often the server injected each fault, by part, step and index in the step's list.
    pub(crate) faults: BTreeMap<(usize, usize, usize), u32>,
    /// How many steps the server has served, by session name and part.
    pub(crate) served: BTreeMap<(String, usize), usize>,
    file: Option<File>,
}

impl RequestLog {
    pub(crate) fn new(log_file: Option<&Path>) -> std::io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        let state = ScriptState { file: log_file.map(open).transpose()?, ..ScriptState::default() };
        Ok(Self { started_at: Instant::now(), state: Mutex::new(state), request_added: Condvar::new() })
    }

    /// Classifies and logs a request under one lock, so that concurrent requests have an order.
    pub(crate) fn record<T>(
        &self,
        mut request: LoggedRequest,
        classify: impl FnOnce(&mut ScriptState, &mut LoggedRequest) -> T,
    ) -> T {
        let mut state = self.lock();
        request.number = state.requests.len();
        request.at_ms = self.started_at.elapsed().as_millis();
        let result = classify(&mut state, &mut request);
        if let (Some(file), Ok(line)) = (&mut state.file, serde_json::to_string(&request)) {
            // An agent must get its answer even if the log cannot be written.
            let _ = writeln!(file, "{line}");
        }
        state.requests.push(request);
        drop(state);
        self.request_added.notify_all();
        result
    }

    pub(crate) fn requests(&self) -> Vec<LoggedRequest> {
        self.lock().requests.clone()
    }

    pub(crate) fn wait_until(&self, timeout: Duration, condition: impl Fn(&[LoggedRequest]) -> bool) -> bool {
        let must_wait = |state: &mut ScriptState| !condition(&state.requests);
        let result = self.request_added.wait_timeout_while(self.lock(), timeout, must_wait);
        let (state, _) = result.unwrap_or_else(PoisonError::into_inner);
        condition(&state.requests)
    }

    fn lock(&self) -> MutexGuard<'_, ScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
