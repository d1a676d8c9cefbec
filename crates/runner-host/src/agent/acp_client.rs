//! The client of an agent that speaks the Agent Client Protocol: this binary, started by the runner as the program of the
//! session, inside the sandbox. It gives the agent the prompt of its standard input, answers its requests for permission, and
//! prints what happens as one [`AcpLine`] per line.
//!
//! It offers the agent no files and no terminals: the agent uses its own tools, which the sandbox confines. SIGINT or SIGTERM
//! cancel the turn.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, Implementation, InitializeRequest, NewSessionRequest, PermissionOption,
    PermissionOptionKind, PromptRequest, PromptResponse, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, SessionId, SessionNotification, TextContent,
    ToolKind,
};
use agent_client_protocol::{Agent, Client, Error as AcpError, ErrorCode, Lines};
use futures::channel::mpsc::{self, UnboundedReceiver};
use futures::future::{self, Either};
use futures::{Stream, StreamExt, sink};
use runner_core::agents::{AcpLine, AcpPermission};
use supervise::signals::on_shutdown_signal;

use super::acp_text::TextPieces;
use super::command::SessionPaths;
use super::session_folders::write_refusal;

/// The hidden first argument that makes this binary the client.
const CLIENT_ARG: &str = "__acp-client";
/// Stands between the folders and the agent's command.
const SEPARATOR: &str = "--";

/// The longest message of an agent.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// How many lines that are no messages an agent may print before it counts as one that does not speak the protocol.
const STRAY_LINES_MAX: usize = 20;
/// How long an agent may take to exit after its turn.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);

/// The command line of the client for an agent's command.
pub(super) fn command(agent: Vec<OsString>, paths: &SessionPaths) -> Result<Vec<OsString>, String> {
    let binary = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut argv: Vec<OsString> = vec![binary.into(), CLIENT_ARG.into(), paths.root.clone().into()];
    argv.extend(paths.writable.iter().map(|folder| folder.clone().into()));
    argv.push(SEPARATOR.into());
    argv.extend(agent);
    Ok(argv)
}

/// The session of a client.
#[derive(Debug)]
pub struct ClientSession {
    /// The repository, and other folders that the session may write to.
    folders: Vec<PathBuf>,
    agent: Vec<OsString>,
}

/// The session, if this process was started as the client.
pub fn session_arguments() -> Option<ClientSession> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != CLIENT_ARG {
        return None;
    }
    let mut args = args.peekable();
    let folders = std::iter::from_fn(|| args.next_if(|word| word != SEPARATOR)).map(PathBuf::from).collect();
    Some(ClientSession { folders, agent: args.skip(1).collect() })
}

/// The `main` of the client.
pub fn run(session: &ClientSession) -> ExitCode {
    let reporter = Reporter::default();
    let end = match TurnEnd::of(session, &reporter) {
        Ok(TurnEnd { stop_reason, usage }) => AcpLine::Ended { stop_reason, usage },
        Err(failure) => AcpLine::Failed { message: failure.message, needs_login: failure.needs_login },
    };
    let is_success = matches!(end, AcpLine::Ended { .. });
    reporter.print(&end);
    if is_success { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints lines, from any thread. The text of a message arrives in pieces: a key in two of them is replaced here, where they are
/// known to belong together.
#[derive(Clone, Default)]
struct Reporter(Arc<Mutex<TextPieces>>);

impl Reporter {
    fn print(&self, line: &AcpLine) {
        let mut pieces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for line in pieces.lines(line) {
            Self::write(&line);
        }
    }

    fn write(line: &AcpLine) {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        // The runner reads until this process ends; if it does not, no process needs the line.
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(&text).and_then(|()| stdout.flush());
    }
}

/// Why a session failed.
struct AcpFailure {
    message: String,
    needs_login: bool,
}

impl AcpFailure {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), needs_login: false }
    }

    /// An error that the agent returned, or one of the connection.
    fn of(what: &str, error: &AcpError) -> Self {
        let detail = match &error.data {
            Some(serde_json::Value::String(detail)) => format!(": {detail}"),
            Some(detail) => format!(": {detail}"),
            None => String::new(),
        };
        Self {
            message: format!("{what} failed: {}{detail}", error.message),
            needs_login: error.code == ErrorCode::AUTH_REQUIRED,
        }
    }
}

/// How the agent's turn ended.
struct TurnEnd {
    stop_reason: String,
    usage: Option<serde_json::Value>,
}

impl TurnEnd {
    fn of(session: &ClientSession, reporter: &Reporter) -> Result<Self, AcpFailure> {
        let mut prompt = String::new();
        std::io::stdin()
            .read_to_string(&mut prompt)
            .map_err(|error| AcpFailure::new(format!("could not read the prompt: {error}")))?;
        let (stop, stopped) = mpsc::unbounded();
        on_shutdown_signal(move |_| drop(stop.unbounded_send(())))
            .map_err(|error| AcpFailure::new(error.to_string()))?;
        let mut agent = AgentProcess::start(&session.agent)?;
        let end = agent.turn(session, prompt, stopped, reporter);
        match end {
            Ok(response) => {
                agent.wait();
                Ok(Self::of_response(&response))
            }
            Err(failure) => Err(agent.explain(failure)),
        }
    }

    fn of_response(response: &PromptResponse) -> Self {
        let stop_reason = serde_json::to_value(response.stop_reason).ok();
        let stop_reason = stop_reason.and_then(|reason| reason.as_str().map(str::to_owned));
        Self {
            stop_reason: stop_reason.unwrap_or_default(),
            usage: response.usage.as_ref().and_then(|usage| serde_json::to_value(usage).ok()),
        }
    }
}

/// The agent's process. It ends with this value.
struct AgentProcess {
    child: Child,
    pipes: Option<AgentPipes>,
}

struct AgentPipes {
    stdin: ChildStdin,
    stdout: ChildStdout,
}

impl AgentProcess {
    fn start(command: &[OsString]) -> Result<Self, AcpFailure> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| AcpFailure::new("no program is configured"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| AcpFailure::new(format!("could not start the agent: {error}")))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        Ok(Self { child, pipes: pipes.map(|(stdin, stdout)| AgentPipes { stdin, stdout }) })
    }

    /// Runs the one turn of the session.
    fn turn(
        &mut self,
        session: &ClientSession,
        prompt: String,
        stopped: UnboundedReceiver<()>,
        reporter: &Reporter,
    ) -> Result<PromptResponse, AcpFailure> {
        let pipes = self.pipes.take().ok_or_else(|| AcpFailure::new("the agent has no pipes"))?;
        let outgoing = sink::unfold(pipes.stdin, |mut stdin, line: String| async move {
            stdin.write_all(line.as_bytes())?;
            stdin.write_all(b"\n")?;
            stdin.flush()?;
            Ok::<_, std::io::Error>(stdin)
        });
        let lines = Lines::new(outgoing, incoming_lines(pipes.stdout, reporter.clone()));
        let (updates, permissions) = (reporter.clone(), reporter.clone());
        let folders = session.folders.clone();
        let root = session.folders.first().cloned().unwrap_or_default();
        let started = reporter.clone();
        let connected = Client
            .v1()
            .on_receive_notification(
                async move |notification: SessionNotification, _connection| {
                    let update = serde_json::to_value(&notification.update).unwrap_or_default();
                    updates.print(&AcpLine::Update { update });
                    Ok(())
                },
                agent_client_protocol::on_receive_notification!(),
            )
            .on_receive_request(
                async move |request: RequestPermissionRequest, responder, _connection| {
                    let (permission, outcome) = permission(&request, &folders);
                    permissions.print(&AcpLine::Permission(permission));
                    responder.respond(RequestPermissionResponse::new(outcome))
                },
                agent_client_protocol::on_receive_request!(),
            )
            .connect_with(lines, |connection: ConnectionTo<Agent>| async move {
                // An error of the agent is a result here; the connection has errors of its own.
                Ok(converse(&connection, root, prompt, stopped, &started).await)
            });
        match futures::executor::block_on(connected) {
            Ok(result) => result,
            Err(error) => Err(AcpFailure::of("the connection to the agent", &error)),
        }
    }

    /// Waits for the agent to exit; it has nothing left to do.
    fn wait(&mut self) {
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Adds how the agent's process ended, if it did.
    fn explain(&mut self, failure: AcpFailure) -> AcpFailure {
        let deadline = Instant::now() + Duration::from_millis(500);
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
                Ok(None) | Err(_) => break None,
            }
        };
        match status {
            Some(status) => {
                AcpFailure { message: format!("the agent ended ({status}): {}", failure.message), ..failure }
            }
            None => failure,
        }
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Initializes the agent, opens a session, and sends the prompt.
async fn converse(
    connection: &ConnectionTo<Agent>,
    root: PathBuf,
    prompt: String,
    mut stopped: UnboundedReceiver<()>,
    reporter: &Reporter,
) -> Result<PromptResponse, AcpFailure> {
    let name = Implementation::new("runner", env!("CARGO_PKG_VERSION"));
    let initialize = InitializeRequest::new(ProtocolVersion::V1).client_info(name);
    let initialized = connection.send_request(initialize).block_task();
    let initialized = until_stopped(initialized, &mut stopped, "initialize").await?;
    if initialized.protocol_version != ProtocolVersion::V1 {
        let version = initialized.protocol_version;
        return Err(AcpFailure::new(format!(
            "the agent speaks version {version} of the protocol, not version 1"
        )));
    }
    let opened = connection.send_request(NewSessionRequest::new(root)).block_task();
    let opened = until_stopped(opened, &mut stopped, "session/new").await?;
    let session: SessionId = opened.session_id;
    let agent = initialized.agent_info;
    reporter.print(&AcpLine::Started {
        session_id: session.to_string(),
        agent: agent.as_ref().map(|agent| agent.name.clone()),
        version: agent.map(|agent| agent.version),
    });
    let content = vec![ContentBlock::Text(TextContent::new(prompt))];
    let turn = connection.send_request(PromptRequest::new(session.clone(), content)).block_task();
    let turn = match future::select(Box::pin(turn), stopped.next()).await {
        Either::Left((response, _)) => response,
        Either::Right((_, turn)) => {
            let _ = connection.send_notification(CancelNotification::new(session));
            // The agent answers a cancelled turn too. If it does not, the runner kills it after a while.
            turn.await
        }
    };
    turn.map_err(|error| AcpFailure::of("session/prompt", &error))
}

/// The response, unless the session is stopped before.
async fn until_stopped<T>(
    response: impl Future<Output = Result<T, AcpError>>,
    stopped: &mut UnboundedReceiver<()>,
    what: &str,
) -> Result<T, AcpFailure> {
    match future::select(Box::pin(response), stopped.next()).await {
        Either::Left((response, _)) => response.map_err(|error| AcpFailure::of(what, &error)),
        Either::Right(_) => Err(AcpFailure::new(format!("the session was stopped during {what}"))),
    }
}

/// The answer to a request for permission: yes, unless it would change a file that the session may not write. The sandbox
/// confines everything else.
fn permission(
    request: &RequestPermissionRequest,
    folders: &[PathBuf],
) -> (AcpPermission, RequestPermissionOutcome) {
    let call = &request.tool_call.fields;
    let title = call.title.clone().unwrap_or_else(|| request.tool_call.tool_call_id.to_string());
    let changes_files = matches!(call.kind, Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move));
    let locations = call.locations.iter().flatten().filter(|_| changes_files);
    let refused =
        locations.map(|location| write_refusal(&location.path, folders)).find(Option::is_some).flatten();
    let kinds = match &refused {
        None => [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways],
        Some(_) => [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways],
    };
    let option = kinds.iter().find_map(|kind| request.options.iter().find(|option| option.kind == *kind));
    let select = |option: &PermissionOption| {
        RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
    };
    let outcome = option.map_or(RequestPermissionOutcome::Cancelled, select);
    let refused = refused.or_else(|| option.is_none().then(|| "the agent offers no such answer".to_owned()));
    (AcpPermission { title, refused }, outcome)
}

/// The messages of the agent. Other lines are reported, and too many of them end the connection.
fn incoming_lines(
    stdout: ChildStdout,
    reporter: Reporter,
) -> impl Stream<Item = std::io::Result<String>> + Send + 'static {
    let (sender, receiver) = mpsc::unbounded();
    let read = move || {
        let mut reader = BufReader::new(stdout);
        let mut stray_lines = 0;
        loop {
            let mut line = Vec::new();
            match reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            let is_message =
                serde_json::from_str::<serde_json::Value>(&text).is_ok_and(|value| value.is_object());
            if is_message {
                if sender.unbounded_send(Ok(text)).is_err() {
                    return;
                }
                continue;
            }
            if text.is_empty() {
                continue;
            }
            stray_lines += 1;
            reporter.print(&AcpLine::NotAMessage { text: text.chars().take(200).collect() });
            if stray_lines >= STRAY_LINES_MAX {
                let error = "the agent does not speak the protocol";
                let _ = sender.unbounded_send(Err(std::io::Error::other(error)));
                return;
            }
        }
    };
    std::thread::spawn(read);
    receiver
}
