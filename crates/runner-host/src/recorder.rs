//! A recorder on the loopback interface between an agent and its provider, for `[executor] record` and `replay`.
//!
//! The agent gets the recorder's address in the place of its provider's. Each request is hashed and stored without keys and
//! goes on to the provider; the answer comes back as it arrives. With recorded answers there is no provider, and the real agent
//! runs offline.
//!
//! The recorder adds no key to a request, so another process that finds its port gains nothing. Its address has a random
//! part all the same: no other process can add to the record.

mod http_message;
mod provider;
mod recording;
mod request_log;
mod upstream;

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use runner_core::config::Executor;
use runner_core::step::RecordedRequests;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use supervise::executables;

use http_message::{AnswerHead, Request, end_chunks, write_chunk};
use provider::Provider;
use recording::{RecordedAnswer, Recording};
use request_log::{LoggedRequest, ReceivedAnswer, RequestLog};
use upstream::{RunningRequest, SentRequest, Upstream};

/// The log of a session's requests, and that of a review's.
pub(crate) const REQUESTS: &str = "requests.jsonl";
pub(crate) const REVIEW_REQUESTS: &str = "review.requests.jsonl";

/// How long an agent may take to send a request, or to take a piece of an answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(120);
/// How long the rest of an answer may take after its agent has gone.
const REST_TIMEOUT: Duration = Duration::from_secs(1);
const BUFFER_BYTES: usize = 64 << 10;
const GONE: &str = "the agent did not wait for the whole answer";

/// Where a recorder keeps what it needs.
pub(crate) struct RecorderPlaces<'a> {
    /// The repository. Programs inside of it are not used.
    pub(crate) root: &'a Path,
    /// The log of the session.
    pub(crate) log: PathBuf,
    /// The log of the recorded session.
    pub(crate) recording: Option<PathBuf>,
    /// A private folder for bodies on their way.
    pub(crate) folder: PathBuf,
    pub(crate) log_bytes_max: u64,
}

/// A recorder that accepts requests until it is finished or dropped.
pub(crate) struct Recorder {
    url: String,
    port: u16,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

/// What all connections share.
struct Shared {
    /// The random first part of every path.
    token: String,
    provider: Provider,
    source: AnswerSource,
    log: RequestLog,
    is_stopped: AtomicBool,
    running: Mutex<BTreeMap<u64, RunningRequest>>,
    /// The connections of agents, so that none keeps the recorder from ending.
    connections: Mutex<BTreeMap<u64, TcpStream>>,
}

/// Where answers come from.
enum AnswerSource {
    Provider(Upstream),
    Recording(Recording),
}

impl Recorder {
    /// Starts the recorder that an executor wants; none if it wants none. `Err` has why it cannot start.
    pub(crate) fn start(executor: &Executor, places: &RecorderPlaces<'_>) -> Result<Option<Self>, String> {
        if !executor.record && executor.replay.is_none() {
            return Ok(None);
        }
        let variable = |name: &str| std::env::var(name).ok();
        let provider = Provider::of(executor, variable)
            .ok_or("the requests of this agent cannot be recorded without `base_url`")?;
        let source = match &places.recording {
            Some(recording) => AnswerSource::Recording(Recording::read(recording)?),
            None => AnswerSource::Provider(upstream(places)?),
        };
        let log = executor.record.then_some(places.log.as_path());
        let failed = |error: std::io::Error| format!("the recorder of requests cannot start: {error}");
        let log = RequestLog::create(log, places.log_bytes_max).map_err(failed)?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let token = random_token().map_err(failed)?;
        let url = format!("http://127.0.0.1:{port}/{token}{}", provider.path);
        let shared = Arc::new(Shared {
            token,
            provider,
            source,
            log,
            is_stopped: AtomicBool::new(false),
            running: Mutex::default(),
            connections: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        let listener = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || accept(&listener, &accepting))
            .map_err(failed)?;
        Ok(Some(Self { url, port, shared, listener: Some(listener) }))
    }

    /// The address for the agent, in the place of its provider's.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Ends all requests, and returns what goes into the iteration's record.
    pub(crate) fn finish(mut self) -> RecordedRequests {
        self.stop();
        let replay = match &self.shared.source {
            AnswerSource::Recording(recording) => Some(recording.counts()),
            AnswerSource::Provider(_) => None,
        };
        RecordedRequests { replay, ..self.shared.log.summary() }
    }

    fn stop(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        // The listener notices at its next connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        for request in self.shared.running.lock().unwrap_or_else(PoisonError::into_inner).values() {
            upstream::end(request);
        }
        for connection in self.shared.connections.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let _ = connection.shutdown(Shutdown::Both);
        }
        let _ = listener.join();
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The way to the provider.
fn upstream(places: &RecorderPlaces<'_>) -> Result<Upstream, String> {
    let curl = executables::find("curl", Some(places.root))
        .ok_or("`curl` is not on PATH, which `record = true` needs: install it, or remove that key")?;
    let _ = std::fs::remove_dir_all(&places.folder);
    crate::fs::atomic::ensure_folder(&places.folder).map_err(|error| error.to_string())?;
    Ok(Upstream { curl, folder: places.folder.clone() })
}

fn random_token() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Serves each connection in a thread of its own, and waits for all of them at the end.
fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    std::thread::scope(|scope| {
        for (number, stream) in (1..).zip(listener.incoming().flatten()) {
            shared.add_connection(number, &stream);
            if shared.is_stopped.load(Ordering::SeqCst) {
                return;
            }
            let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
                // Without an answer the agent sees a connection that ended, as it would without a recorder.
                let _ = serve(&stream, shared);
                let _ = stream.shutdown(Shutdown::Both);
                shared.connections.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
            });
        }
    });
}

impl Shared {
    fn add_connection(&self, number: u64, stream: &TcpStream) {
        if let Ok(stream) = stream.try_clone() {
            self.connections.lock().unwrap_or_else(PoisonError::into_inner).insert(number, stream);
        }
    }
}

/// Answers the one request of a connection.
fn serve(stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    stream.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    stream.set_nodelay(true)?;
    let Some(mut request) = Request::read(stream)? else { return Ok(()) };
    let prefix = format!("/{}", shared.token);
    let Some(target) = request.target.strip_prefix(&prefix).map(str::to_owned) else {
        return answer_itself(stream, &request, 404, "this address is not the recorder's");
    };
    request.target = if target.is_empty() { "/".to_owned() } else { target };
    if request.wants_upgrade() {
        // Agents that prefer a WebSocket go on with HTTP, which can be recorded.
        return answer_itself(stream, &request, 426, "the recorder speaks HTTP only");
    }
    let logged = shared.log.add_request(&request, &request.target);
    let answer = match &shared.source {
        AnswerSource::Recording(recording) => {
            replay(stream, &request, recording.answer(&request.method, &logged))
        }
        AnswerSource::Provider(upstream) => forward(stream, &request, &logged, shared, upstream),
    };
    shared.log.add_answer(logged.number, &answer);
    Ok(())
}

/// An answer of the recorder's own, in the form that providers use for errors.
fn answer_itself(
    mut stream: &TcpStream,
    request: &Request,
    status: u16,
    message: &str,
) -> std::io::Result<()> {
    let head = AnswerHead::new(status, "application/json");
    head.write(&mut stream, &request.method)?;
    if head.has_body(&request.method) {
        let body = serde_json::json!({ "error": { "type": "recorder", "message": message } });
        write_chunk(&mut stream, body.to_string().as_bytes())?;
        end_chunks(&mut stream)?;
    }
    Ok(())
}

/// Sends a recorded answer. One that was cut is cut again.
fn replay(mut stream: &TcpStream, request: &Request, recorded: RecordedAnswer) -> ReceivedAnswer {
    let (answer, is_whole) = match recorded {
        RecordedAnswer::Found(answer) => (answer, true),
        RecordedAnswer::Cut(answer) => (answer, false),
        RecordedAnswer::Missing => {
            let error = "the recording has no request like this one".to_owned();
            let _ = answer_itself(stream, request, 404, &error);
            return ReceivedAnswer { error: Some(error), ..ReceivedAnswer::default() };
        }
    };
    let Some(head) = &answer.head else { return answer };
    let sent = head.write(&mut stream, &request.method).and_then(|()| {
        if !head.has_body(&request.method) {
            return Ok(());
        }
        write_chunk(&mut stream, &answer.body)?;
        if is_whole { end_chunks(&mut stream) } else { Ok(()) }
    });
    // The agent has gone.
    let _ = sent;
    answer
}

/// Sends a request on to the provider, and its answer back as it arrives.
fn forward(
    stream: &TcpStream,
    request: &Request,
    logged: &LoggedRequest,
    shared: &Shared,
    upstream: &Upstream,
) -> ReceivedAnswer {
    let failed = |error: String| ReceivedAnswer { error: Some(error), ..ReceivedAnswer::default() };
    let Some(url) = shared.provider.address(request) else {
        let error = "this path is not the provider's".to_owned();
        let _ = answer_itself(stream, request, 404, &error);
        return failed(error);
    };
    let sent = match upstream.send(request, &url, logged.number) {
        Ok(sent) => sent,
        Err(error) => return failed(error.to_string()),
    };
    shared.running.lock().unwrap_or_else(PoisonError::into_inner).insert(logged.number, sent.running());
    if shared.is_stopped.load(Ordering::SeqCst) {
        upstream::end(&sent.running());
    }
    let answer = pass_on(stream, request, sent);
    shared.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&logged.number);
    answer
}

fn pass_on(mut stream: &TcpStream, request: &Request, mut sent: SentRequest) -> ReceivedAnswer {
    let mut answer = ReceivedAnswer::default();
    if !wait_for_output(stream, &sent) {
        answer.error = Some(GONE.to_owned());
        return answer;
    }
    answer.head = upstream::read_head(&mut sent);
    let Some(head) = &answer.head else {
        answer.error = Some(sent.finish().err().unwrap_or_else(|| "the provider sent no answer".to_owned()));
        return answer;
    };
    let has_body = head.has_body(&request.method);
    let mut is_gone = head.write(&mut stream, &request.method).is_err();
    let mut buffer = vec![0; BUFFER_BYTES];
    while has_body && !is_gone {
        if !wait_for_output(stream, &sent) {
            is_gone = true;
            break;
        }
        let bytes = match sent.output.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => buffer.get(..count).unwrap_or_default(),
        };
        answer.body.extend_from_slice(bytes);
        is_gone = write_chunk(&mut stream, bytes).is_err();
    }
    if is_gone && !read_rest(&mut sent, &mut answer.body) {
        answer.error = Some(GONE.to_owned());
        return answer;
    }
    answer.error = sent.finish().err();
    // Without its last piece, the agent sees that the answer was cut. It may have gone after what it needed.
    if has_body && answer.error.is_none() {
        let _ = end_chunks(&mut stream);
    }
    answer
}

/// Reads the rest of an answer whose agent has gone: agents end a connection after the last event, before the provider does. False
/// if there is more than a rest.
fn read_rest(sent: &mut SentRequest, body: &mut Vec<u8>) -> bool {
    let deadline = Instant::now() + REST_TIMEOUT;
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        if sent.output.buffer().is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).ok();
            let output = sent.output.get_ref().as_fd();
            let mut fds = [PollFd::from_borrowed_fd(output, PollFlags::IN)];
            if left.is_zero() || !poll(&mut fds, timeout.as_ref()).is_ok_and(|ready| ready > 0) {
                return false;
            }
        }
        match sent.output.read(&mut buffer) {
            Ok(0) => return true,
            Ok(count) => body.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(_) => return false,
        }
    }
}

/// Waits until the provider has sent something, or has ended. False if the agent has gone meanwhile: nothing reads the answer.
fn wait_for_output(stream: &TcpStream, sent: &SentRequest) -> bool {
    if !sent.output.buffer().is_empty() {
        return true;
    }
    loop {
        let output = sent.output.get_ref().as_fd();
        let mut fds = [PollFd::from_borrowed_fd(output, PollFlags::IN), PollFd::new(stream, PollFlags::IN)];
        if poll(&mut fds, None).is_err() {
            return true;
        }
        let [output, client] = &fds;
        if !output.revents().is_empty() {
            return true;
        }
        if !client.revents().is_empty() {
            // More bytes of an agent that sends ahead are no end.
            return stream.peek(&mut [0]).is_ok_and(|count| count > 0);
        }
    }
}

#[cfg(test)]
mod tests;
