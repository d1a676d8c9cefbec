//! What people can type, and what they are told.

use std::io::{self, IsTerminal, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use clap::Parser;
use serde_json::json;

use crate::api::Watching;
use crate::gate::Gate;
use crate::project::Project;
use crate::routes::App;
use crate::server;
use crate::watch::Watcher;

/// The port that is tried first.
const PORT: u16 = 7878;

/// Watch and read runs in a browser
///
/// Serves a page about the runs of a repository, on this machine alone. It only reads: the runner does not know of it,
/// and nothing in the repository is changed or locked.
#[derive(Debug, Parser)]
#[command(name = "runner-ui", version, max_term_width = 100)]
#[command(after_help = "Examples:
  runner-ui                          the repository around the current folder
  runner-ui --project-dir ../app --open
  runner-ui --bind 0.0.0.0           for other machines too, with a token in the printed address

From another machine without that: ssh -L 7878:localhost:7878 HOST")]
struct Cli {
    /// The repository, or a folder in it
    #[arg(long, short = 'C', value_name = "DIR", default_value = ".", hide_default_value = true)]
    project_dir: PathBuf,
    /// The port; 0 for any that is free [default: 7878, or any if that is taken]
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// The address to listen at; one that others can reach needs the token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Ask for a token on this machine too
    #[arg(long)]
    token: bool,
    /// Serve requests for this host name too
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Look at the files every two seconds instead of being told of changes
    #[arg(long)]
    poll: bool,
    /// Say where the server is as one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) => {
            let _ = told.print();
            return ExitCode::from(u8::try_from(told.exit_code()).unwrap_or(2));
        }
    };
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Told { code, lines }) => {
            let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
            ExitCode::from(code)
        }
    }
}

/// An error, ready to be told.
struct Told {
    code: u8,
    lines: Vec<String>,
}

impl Told {
    fn new(code: u8, what: &str, why: &str, hint: &str) -> Self {
        let lines = vec![format!("error: {what}"), format!("caused by: {why}"), format!("hint: {hint}")];
        Self { code, lines }
    }
}

fn run(cli: &Cli) -> Result<(), Told> {
    let project = Project::open(&cli.project_dir).map_err(|error| {
        let hint = "name a git repository: runner-ui --project-dir DIR";
        Told::new(2, "could not open the repository", &error.to_string(), hint)
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| {
        Told::new(1, "could not start", &error.to_string(), "close some programs and try again")
    })?;
    runtime.block_on(serve(cli, project))
}

async fn serve(cli: &Cli, project: Project) -> Result<(), Told> {
    let wanted = SocketAddr::new(cli.bind, cli.port.unwrap_or(PORT));
    let failed = |error: io::Error| {
        let hint = "choose another one, or any: runner-ui --port 0";
        Told::new(1, &format!("could not listen at {wanted}"), &error.to_string(), hint)
    };
    let listener = server::listen(wanted, cli.port.is_none()).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let needs_token = cli.token || !cli.bind.is_loopback();
    let token = needs_token.then(make_token).transpose().map_err(|error| {
        Told::new(
            1,
            "could not make a token",
            &error.to_string(),
            "listen on this machine alone: leave --bind away",
        )
    })?;
    let gate = Gate { address, hosts: cli.allow_host.clone(), token };
    let url = url(&gate);
    let app = Arc::new(App::new(Arc::new(project), gate));
    let watcher = Watcher::begin(&app.project, &app.watch, cli.poll);
    let watched = Arc::clone(&app);
    std::thread::spawn(move || watcher.run(&watched.project, &watched.feed, &watched.watch));
    tell(cli, &app, &url);
    if cli.open {
        open(&url);
    }
    server::serve(listener, app).await;
    Ok(())
}

/// Where the page is. An address that stands for every one of the machine's is named by this machine's own.
fn url(gate: &Gate) -> String {
    let (ip, port) = (gate.address.ip(), gate.address.port());
    let host = match ip {
        ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let token = gate.token.as_ref().map(|token| format!("?token={token}")).unwrap_or_default();
    format!("http://{host}:{port}/{token}")
}

fn tell(cli: &Cli, app: &App, url: &str) {
    let root: &Path = app.project.reading.root();
    let root = runner_core::text::one_line(&root.display().to_string());
    let watching = if app.watch.watching() == Watching::Polling { "polling" } else { "events" };
    let mut out = io::stdout();
    let text = if cli.json {
        json!({ "schema": "runner.ui/1", "url": url, "root": root, "watching": watching }).to_string()
    } else if out.is_terminal() {
        let beyond = if cli.bind.is_loopback() {
            ""
        } else {
            "\nreachable from other machines: keep the token to yourself"
        };
        format!("watching {root}\n\n    {url}\n{beyond}\nCtrl-C ends it; the run goes on.")
    } else {
        format!("url={url} root={} watching={watching}", json!(root))
    };
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// A secret of 128 bits.
fn make_token() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Asks the desktop to show the page. Where it cannot, the address is on the screen.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        // Waited for aside, so that it leaves no trace.
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(error) => {
            let _ = writeln!(
                io::stderr(),
                "note: `{program}` could not be started ({error}); open the address yourself"
            );
        }
    }
}
