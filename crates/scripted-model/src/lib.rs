//! A model server that plays a script, so that real agents can be tested without a real model.
//!
//! It speaks the wire formats that agents use (OpenAI Responses and chat completions, Anthropic Messages, Gemini), on
//! the loopback interface and nowhere else. What it answers is in a [`Script`]; what it was asked is in its log, without
//! the value of any key. It never looks at a clock to decide, and the same requests get the same answers.

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

/// A server that is running, until it is dropped.
pub struct ScriptedModel {
    address: SocketAddr,
    ledger: Arc<RequestLog>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ScriptedModel {
    /// Starts on a free port.
    pub fn start(script: ModelScript) -> std::io::Result<Self> {
        Self::start_at(script, 0, None)
    }

    /// Starts on a port (0 for a free one), and adds every request to a file, one JSON object a line.
    pub fn start_at(script: ModelScript, port: u16, log: Option<&Path>) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let ledger = Arc::new(RequestLog::new(log)?);
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let accepting = server::accept(listener, Arc::new(script), Arc::clone(&ledger));
        let thread = std::thread::Builder::new().name("scripted-model".to_owned()).spawn(move || {
            runtime.spawn(accepting);
            // Ends when the handle is dropped; every connection goes with the runtime.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self { address, ledger, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT`, with nothing behind it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, oldest first.
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.ledger.requests()
    }

    /// Waits until the requests are as they should be; `false` if they are not when time is up.
    pub fn wait_until(&self, patience: Duration, is_so: impl Fn(&[LoggedRequest]) -> bool) -> bool {
        self.ledger.wait_until(patience, is_so)
    }

    /// Serves until the process is ended.
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
