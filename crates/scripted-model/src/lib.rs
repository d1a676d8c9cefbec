//! A model server that answers from a script, so that tests can run real agents without a real model.
//!
//! It implements the wire formats that agents use (OpenAI Responses and chat completions, Anthropic Messages, Gemini) and
//! listens on the loopback interface only. A [`ModelScript`] holds the answers; the log holds every request, with API keys
//! redacted. No choice depends on a clock: the same requests get the same answers.

mod body;
mod choice;
mod request_log;
mod script;
mod server;
mod wire;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

pub use request_log::{LoggedRequest, RequestKind};
pub use script::{
    HttpError, InjectedFault, ModelAction, ModelScript, ScriptError, ScriptFault, ScriptPart, ScriptStep,
    ScriptUsage, StepCounter,
};
pub use wire::WireFormat;

use request_log::RequestLog;

/// A running server; dropping it stops it.
pub struct ScriptedModel {
    address: SocketAddr,
    log: Arc<RequestLog>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ScriptedModel {
    /// Starts on a free port.
    pub fn start(script: ModelScript) -> std::io::Result<Self> {
        Self::start_at(script, 0, None)
    }

    /// Starts on `port` (0 for a free one) and appends every request to `log_file`, one JSON object per line.
    pub fn start_at(script: ModelScript, port: u16, log_file: Option<&Path>) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let log = Arc::new(RequestLog::new(log_file)?);
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let accept_loop = server::accept(listener, Arc::new(script), Arc::clone(&log));
        let thread = std::thread::Builder::new().name("scripted-model".to_owned()).spawn(move || {
            runtime.spawn(accept_loop);
            // Returns when the handle is dropped; dropping the runtime closes every connection.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self { address, log, stop: Some(stop), thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT`, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, oldest first.
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.log.requests()
    }

    /// Waits until `condition` holds for the requests so far; returns `false` after `timeout`.
    pub fn wait_until(&self, timeout: Duration, condition: impl Fn(&[LoggedRequest]) -> bool) -> bool {
        self.log.wait_until(timeout, condition)
    }

    /// Serves until the process exits.
    pub fn serve(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
