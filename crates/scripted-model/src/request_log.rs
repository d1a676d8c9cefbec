//! What was asked: every request, kept for tests and written to a file, without the value of any key.

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

/// One request.
#[derive(Clone, Debug, Serialize)]
pub struct LoggedRequest {
    /// Counted from 0.
    pub number: usize,
    /// Since the server started.
    pub at_ms: u128,
    /// GET, HEAD, POST.
    pub method: String,
    /// With its query, without a key in it.
    pub path: String,
    /// By lower-case name; of keys no more than that they were there.
    pub headers: BTreeMap<String, String>,
    /// The body, if it is JSON.
    pub body: Value,
    /// What it was taken for.
    pub kind: RequestKind,
    /// The format it came in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireFormat>,
    /// The names of the tools that it offers.
    pub tools: Vec<String>,
    /// The part of the script that was played, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
    /// The step of it, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// What went wrong, by [`crate::Trouble::name`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// What a request was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestKind {
    /// A step of the script.
    Step,
    /// A question beside the work, without tools.
    Aside,
    /// A summary of the conversation is wanted.
    Summary,
    /// Anything but a question to the model: the list of models, a count of tokens.
    Probe,
    /// Refused: nothing of the script fits, too many requests, a path that there is not.
    Refused,
}

/// The headers that hold keys.
const KEYS: [&str; 5] = ["authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"];
/// What stands in the place of a key.
const HIDDEN: &str = "(hidden)";

impl LoggedRequest {
    /// A request as it came in, before anything is known about it.
    pub(crate) fn new(method: &str, path: &str, headers: &HeaderMap, body: Value) -> Self {
        let shown = |name: &str, value: &[u8]| {
            let is_key = KEYS.contains(&name);
            if is_key { HIDDEN.to_owned() } else { String::from_utf8_lossy(value).into_owned() }
        };
        Self {
            number: 0,
            at_ms: 0,
            method: method.to_owned(),
            path: without_key(path),
            headers: headers
                .iter()
                .map(|(name, value)| (name.to_string(), shown(name.as_str(), value.as_bytes())))
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

/// A path whose query holds no key.
fn without_key(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let shown = |pair: &str| if pair.starts_with("key=") { format!("key={HIDDEN}") } else { pair.to_owned() };
    format!("{path}?{}", query.split('&').map(shown).collect::<Vec<_>>().join("&"))
}

/// All requests, and what was played of the script.
pub(crate) struct RequestLog {
    began: Instant,
    pages: Mutex<ScriptState>,
    grew: Condvar,
}

#[derive(Default)]
pub(crate) struct ScriptState {
    pub(crate) requests: Vec<LoggedRequest>,
    /// How often each fault was played, by part, step and place.
    pub(crate) faults: BTreeMap<(usize, usize, usize), u32>,
    /// How many steps each session was given, by its name and the part.
    pub(crate) served: BTreeMap<(String, usize), usize>,
    file: Option<File>,
}

impl RequestLog {
    pub(crate) fn new(log: Option<&Path>) -> std::io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        let pages = ScriptState { file: log.map(open).transpose()?, ..ScriptState::default() };
        Ok(Self { began: Instant::now(), pages: Mutex::new(pages), grew: Condvar::new() })
    }

    /// Decides about a request and writes it down, in one go: what comes in at the same time comes after it.
    pub(crate) fn enter<T>(
        &self,
        mut request: LoggedRequest,
        decide: impl FnOnce(&mut ScriptState, &mut LoggedRequest) -> T,
    ) -> T {
        let mut pages = self.lock();
        request.number = pages.requests.len();
        request.at_ms = self.began.elapsed().as_millis();
        let decided = decide(&mut pages, &mut request);
        if let (Some(file), Ok(line)) = (&mut pages.file, serde_json::to_string(&request)) {
            // A log that cannot be written is no reason to leave an agent without an answer.
            let _ = writeln!(file, "{line}");
        }
        pages.requests.push(request);
        drop(pages);
        self.grew.notify_all();
        decided
    }

    pub(crate) fn requests(&self) -> Vec<LoggedRequest> {
        self.lock().requests.clone()
    }

    pub(crate) fn wait_until(&self, patience: Duration, is_so: impl Fn(&[LoggedRequest]) -> bool) -> bool {
        let waits = |pages: &mut ScriptState| !is_so(&pages.requests);
        let waited = self.grew.wait_timeout_while(self.lock(), patience, waits);
        let (pages, _) = waited.unwrap_or_else(PoisonError::into_inner);
        is_so(&pages.requests)
    }

    fn lock(&self) -> MutexGuard<'_, ScriptState> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
