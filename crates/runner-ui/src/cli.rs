//! What people can type, and what they are told.

use std::io::{self, IsTerminal, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand, ValueEnum};
use runner_core::id::RunId;
use runner_host::programs::show_in_browser;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::api::{Watching, WholeRun};
use crate::evaluation::{Evaluation, LATEST, Name, Places};
use crate::export;
use crate::feed::Feed;
use crate::gate::Gate;
use crate::project::Project;
use crate::routes::{App, READERS_MAX};
use crate::server;
use crate::site::{Shown, Site};
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
  runner-ui --eval                   the results of an evaluation, in eval/results
  runner-ui --bind 0.0.0.0           for other machines too, with a token in the printed address
  runner-ui export html --out ../run.html

From another machine without that: ssh -L 7878:localhost:7878 HOST")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// The repository, or a folder in it
    #[arg(
        long,
        short = 'C',
        value_name = "DIR",
        default_value = ".",
        hide_default_value = true,
        global = true
    )]
    project_dir: PathBuf,
    /// Show the results of an evaluation instead: a folder of results, or one that holds eval/results [default: .]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    eval: Option<PathBuf>,
    /// Where its workspaces are [default: beside the results]
    #[arg(long, value_name = "DIR", requires = "eval")]
    workspaces: Option<PathBuf>,
    /// Begin at the newest trial of this case, and follow it to the next one
    #[arg(long, value_name = "CASE", requires = "eval")]
    case: Option<String>,
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

#[derive(Debug, Subcommand)]
enum Command {
    Export(ExportArgs),
}

/// Write a whole run into one file
///
/// As a page that opens from the disk, in any browser and without a server, or as JSON. Large logs are cut in their
/// middle, and the file says what is left out.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  runner-ui export html --out ../run.html      the current run, as a page
  runner-ui export json nightly | gzip > nightly.json.gz")]
struct ExportArgs {
    /// What to write
    form: Form,
    /// The run, by its id; without one, the current
    run: Option<String>,
    /// The file; without one, standard output
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The page with the run in it
    Html,
    /// The run as one JSON document
    Json,
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

/// What the server is to show.
enum Subject {
    Repository(Arc<Project>),
    Evaluation(Places),
}

fn run(cli: &Cli) -> Result<(), Told> {
    let project = || {
        Project::open(&cli.project_dir).map_err(|error| {
            let hint = "name a git repository: runner-ui --project-dir DIR";
            Told::new(2, "could not open the repository", &error.to_string(), hint)
        })
    };
    if let Some(Command::Export(args)) = &cli.command {
        return export(args, &project()?);
    }
    let subject = match &cli.eval {
        Some(folder) => Subject::Evaluation(places(cli, folder)?),
        None => Subject::Repository(Arc::new(project()?)),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| {
        Told::new(1, "could not start", &error.to_string(), "close some programs and try again")
    })?;
    runtime.block_on(serve(cli, subject))
}

/// Where the evaluation is.
fn places(cli: &Cli, folder: &Path) -> Result<Places, Told> {
    let fail = |why: &str, hint: &str| Told::new(2, "could not open the evaluation", why, hint);
    if cli.case.as_ref().is_some_and(|case| Name::new(case).is_none()) {
        return Err(fail("the case is not a name", "`runner eval list` lists the cases"));
    }
    let found = Places::find(&cli.project_dir.join(folder)).map_err(|error| {
        fail(&error.to_string(), "name the folder of its results: runner-ui --eval eval/results")
    })?;
    let workspaces = cli.workspaces.as_ref().map(|folder| cli.project_dir.join(folder));
    Ok(Places { workspaces: workspaces.unwrap_or(found.workspaces), ..found })
}

fn export(args: &ExportArgs, project: &Project) -> Result<(), Told> {
    let fail = |code, why: &str, hint: &str| Told::new(code, "could not export the run", why, hint);
    if args.out.is_none() && io::stdout().is_terminal() {
        return Err(fail(2, "a whole run is too much for a terminal", "say where: --out ../run.html"));
    }
    let wanted = args.run.as_deref().map(RunId::new).transpose();
    let wanted =
        wanted.map_err(|fault| fail(2, &format!("the run {fault}"), "`runner ui` lists the runs"))?;
    let run = export::whole_run(project, wanted.as_ref())
        .map_err(|fault| fail(2, fault.message(), "`runner status` says which run is here"))?;
    let text = match args.form {
        Form::Html => export::html(&run).ok_or_else(|| {
            fail(1, "this binary was built without its page", "run `just ui-build` and build again")
        })?,
        Form::Json => serde_json::to_string(&run).unwrap_or_default() + "\n",
    };
    let written = match &args.out {
        Some(path) => std::fs::write(path, &text),
        // Whoever reads it may have seen enough.
        None => match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        },
    };
    written.map_err(|error| fail(1, &error.to_string(), "choose another file: --out FILE"))?;
    tell_export(args, project, &run, text.len());
    Ok(())
}

/// Says what was written, and warns of a file that would stop the next step.
fn tell_export(args: &ExportArgs, project: &Project, run: &WholeRun, bytes: usize) {
    let mut lines = Vec::new();
    if let Some(path) = &args.out {
        let iterations = run.iterations.iterations.len();
        lines.push(format!(
            "wrote {} ({iterations} iterations, {} kB)",
            path.display(),
            bytes.div_ceil(1000)
        ));
        let place = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        if std::fs::canonicalize(project.reading.root()).is_ok_and(|root| place.starts_with(root)) {
            lines.push("note: it lies in the work tree, and a step needs a clean one".to_owned());
        }
    }
    lines.extend(run.left_out.iter().map(|what| format!("note: {what}")));
    for line in lines {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

async fn serve(cli: &Cli, subject: Subject) -> Result<(), Told> {
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
    let url =
        url(&gate) + &cli.case.as_ref().map(|case| format!("#/trial/{case}/{LATEST}")).unwrap_or_default();
    let (site, told) = begin(cli, subject, gate);
    tell(cli, &told, &url);
    if cli.open
        && let Err(error) = show_in_browser(&url)
    {
        let _ =
            writeln!(io::stderr(), "note: no browser could be started ({error}); open the address yourself");
    }
    server::serve(listener, Arc::new(site)).await;
    Ok(())
}

/// Begins to watch what is shown; gives back where that is, and how changes are noticed.
fn begin(cli: &Cli, subject: Subject, gate: Gate) -> (Site, (PathBuf, Watching)) {
    let (feed, readers) = (Arc::new(Feed::new()), Arc::new(Semaphore::new(READERS_MAX)));
    let (shown, told) = match subject {
        Subject::Repository(project) => {
            let app = Arc::new(App::new(project, readers));
            let watcher = Watcher::begin(app.project.as_ref(), &app.watch, cli.poll);
            let (watched, feed) = (Arc::clone(&app), Arc::clone(&feed));
            std::thread::spawn(move || {
                watcher.run(watched.project.as_ref(), &watched.watch, |change| feed.publish(&change));
            });
            let told = (app.project.reading.root().to_owned(), app.watch.watching());
            (Shown::Repository(app), told)
        }
        Subject::Evaluation(places) => {
            let root = places.results.clone();
            let evaluation = Arc::new(Evaluation::new(places, Arc::clone(&feed), readers, cli.poll));
            let watcher = Watcher::begin(evaluation.as_ref(), &evaluation.watch, cli.poll);
            let (watched, feed) = (Arc::clone(&evaluation), Arc::clone(&feed));
            std::thread::spawn(move || {
                watcher.run(watched.as_ref(), &watched.watch, |change| feed.publish(&change));
            });
            let told = (root, evaluation.watch.watching());
            (Shown::Evaluation(evaluation), told)
        }
    };
    (Site { feed, gate, shown }, told)
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

fn tell(cli: &Cli, (root, watching): &(PathBuf, Watching), url: &str) {
    let root = runner_core::text::one_line(&root.display().to_string());
    let watching = if *watching == Watching::Polling { "polling" } else { "events" };
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
