//! What people can type, and what they are told.

use std::io::{self, IsTerminal, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use runner_core::model::id::RunId;
use runner_term::help_pages::with_compact_help;
use runner_term::{ColorChoice, CommandError, CommandExit, GlobalArgs, Ui, print_clap_error};
use serde_json::json;
use supervise::executables::show_in_browser;
use tokio::sync::Semaphore;

use crate::api::{RunExport, WatchMethod};
use crate::evaluation::{EntryName, EvalPaths, Evaluation, LATEST};
use crate::export;
use crate::read::repo_reader::RepoReader;
use crate::server;
use crate::server::access::AccessPolicy;
use crate::server::app::{AppState, SiteSubject};
use crate::server::routes::{READERS_MAX, RepoState};
use crate::server::sse::EventStream;
use crate::watch::FileWatcher;

/// The port that the server tries first.
const PORT: u16 = 7878;

/// Show runs in a browser
///
/// Serves a read-only page about the runs of a repository on this machine. It changes and locks nothing in the
/// repository.
#[derive(Debug, Parser)]
#[command(name = "runner-ui", version, max_term_width = 100)]
#[command(after_help = "Examples:
  runner-ui                          # the repository of the current folder
  runner-ui -C ../app --open         # another one, and open the browser
  runner-ui --eval                   # the results of an evaluation
  runner-ui --bind 0.0.0.0           # reachable from other machines, by token
  ssh -L 7878:localhost:7878 HOST    # or through a tunnel from your machine
  runner-ui export html --out ../run.html")]
struct UiCli {
    #[command(subcommand)]
    command: Option<UiCommand>,
    /// Run as if started in DIR
    #[arg(
        short = 'C',
        long,
        value_name = "DIR",
        default_value = ".",
        hide_default_value = true,
        global = true
    )]
    project_dir: PathBuf,
    /// Show the results of an evaluation: a results folder, or the parent of eval/results [default: .]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    eval: Option<PathBuf>,
    /// Workspaces of the evaluation [default: beside the results]
    #[arg(long, value_name = "DIR", requires = "eval")]
    workspaces: Option<PathBuf>,
    /// Start at the newest trial of this case and follow its next trials
    #[arg(long, value_name = "CASE", requires = "eval")]
    case: Option<String>,
    /// Port; 0 for any free one [default: 7878, or any free one]
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Address to listen on; one that other machines can reach requires the token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Require a token on this machine too
    #[arg(long)]
    token: bool,
    /// Also serve requests for this host name; repeatable
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Poll the files every two seconds instead of watching them
    #[arg(long)]
    poll: bool,
    /// Print the server's address as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum UiCommand {
    Export(UiExportArgs),
    Watch(UiWatchArgs),
}

/// Watch a run in this terminal
///
/// Shows the task tree and the agent's output live. It is read-only: quitting it does not affect the run. Press ? for
/// the keys. Without a terminal, use `runner log --follow`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  runner-ui watch                    # the current run
  runner-ui watch nightly            # another run
  ssh build -t runner -C app watch   # a run on another machine")]
struct UiWatchArgs {
    /// Run to watch [default: the one on the current branch]
    #[arg(conflicts_with = "run_option")]
    run: Option<String>,
    /// The same as an option
    #[arg(id = "run_option", long = "run", value_name = "RUN")]
    run_option: Option<String>,
    /// Poll the files every two seconds instead of watching them
    #[arg(long)]
    poll: bool,
    /// Colour output
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
}

/// Write a whole run to one file
///
/// HTML is a page that opens from disk, without a server. Large logs are cut in the middle, and the file marks the cuts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  runner-ui export html --out ../run.html   # the current run as a page
  runner-ui export json nightly | gzip > nightly.json.gz")]
struct UiExportArgs {
    /// File format
    format: ExportFormat,
    /// Run to export [default: the one on the current branch]
    #[arg(conflicts_with = "run_option")]
    run: Option<String>,
    /// The same as an option
    #[arg(id = "run_option", long = "run", value_name = "RUN")]
    run_option: Option<String>,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    Html,
    Json,
}

fn parse() -> Result<UiCli, clap::Error> {
    let matches = with_compact_help(UiCli::command(), &[]).try_get_matches()?;
    UiCli::from_arg_matches(&matches)
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => return print_clap_error(&error),
    };
    let out = Ui::new(&GlobalArgs { json: cli.json, ..GlobalArgs::default() });
    match run(&cli) {
        Ok(exit) => ExitCode::from(exit.0),
        Err(report) => out.print_error(&report),
    }
}

/// What the server is to show.
enum ServeSubject {
    Repository(Arc<RepoReader>),
    Evaluation(EvalPaths),
}

fn run(cli: &UiCli) -> Result<CommandExit, CommandError> {
    let project = || {
        RepoReader::open(&cli.project_dir).map_err(|error| {
            CommandError::refused("no_repository", "could not open the repository")
                .cause(error.to_string())
                .hint("name a git repository: runner-ui --project-dir DIR")
        })
    };
    match &cli.command {
        Some(UiCommand::Export(args)) => return export(args, &project()?).map(|()| CommandExit::SUCCESS),
        Some(UiCommand::Watch(args)) => return watch(cli, args, project()?),
        None => {}
    }
    let subject = match &cli.eval {
        Some(folder) => ServeSubject::Evaluation(places(cli, folder)?),
        None => ServeSubject::Repository(Arc::new(project()?)),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| {
        CommandError::new("start", CommandExit::FAILURE, "could not start")
            .cause(error.to_string())
            .hint("close some programs and try again")
    })?;
    runtime.block_on(serve(cli, subject)).map(|()| CommandExit::SUCCESS)
}

/// Where the evaluation is.
fn places(cli: &UiCli, folder: &Path) -> Result<EvalPaths, CommandError> {
    let fail = |why: &str, hint: &str| {
        CommandError::refused("no_evaluation", "could not open the evaluation").cause(why).hint(hint)
    };
    if cli.case.as_ref().is_some_and(|case| EntryName::new(case).is_none()) {
        return Err(fail("the case is not a name", "`runner eval list` lists the cases"));
    }
    let found = EvalPaths::find(&cli.project_dir.join(folder)).map_err(|error| {
        fail(&error.to_string(), "name the folder of its results: runner-ui --eval eval/results")
    })?;
    let workspaces = cli.workspaces.as_ref().map(|folder| cli.project_dir.join(folder));
    Ok(EvalPaths { workspaces: workspaces.unwrap_or(found.workspaces), ..found })
}

/// The run that was typed.
fn run_id(typed: Option<&str>, what: &str) -> Result<Option<RunId>, CommandError> {
    typed.map(RunId::new).transpose().map_err(|fault| {
        CommandError::refused("run_id", what)
            .cause(format!("the run {fault}"))
            .hint("`runner ui` lists the runs")
    })
}

#[cfg(feature = "watch")]
fn watch(cli: &UiCli, args: &UiWatchArgs, project: RepoReader) -> Result<CommandExit, CommandError> {
    let wanted = run_id(args.run.as_deref().or(args.run_option.as_deref()), "could not show the run")?;
    if cli.json {
        return Err(CommandError::refused("no_json", "could not show the run")
            .cause("this view is for people, and has no JSON")
            .hint("for programs: runner log --follow --json, or runner status --json"));
    }
    let manner = GlobalArgs { color: args.color, ..GlobalArgs::default() };
    crate::tui::run(project, wanted, cli.poll || args.poll, &manner)
}

#[cfg(not(feature = "watch"))]
fn watch(_: &UiCli, _: &UiWatchArgs, _: RepoReader) -> Result<CommandExit, CommandError> {
    Err(CommandError::new("no_watch", CommandExit::FAILURE, "could not show the run")
        .cause("this `runner-ui` was built without the view for terminals")
        .hint("build it with its usual features: cargo install --locked --path crates/runner-ui")
        .hint("or follow the run as lines: runner log --follow"))
}

fn export(args: &UiExportArgs, project: &RepoReader) -> Result<(), CommandError> {
    const WHAT: &str = "could not export the run";
    let fail = |exit, why: &str, hint: &str| CommandError::new("export", exit, WHAT).cause(why).hint(hint);
    if args.out.is_none() && io::stdout().is_terminal() {
        return Err(fail(
            CommandExit::REFUSED,
            "a whole run is too much for a terminal",
            "say where: --out ../run.html",
        ));
    }
    let wanted = run_id(args.run.as_deref().or(args.run_option.as_deref()), WHAT)?;
    let run = export::whole_run(project, wanted.as_ref()).map_err(|fault| {
        fail(CommandExit::REFUSED, fault.message(), "`runner status` says which run is here")
    })?;
    let text = match args.format {
        ExportFormat::Html => export::html(&run).ok_or_else(|| {
            fail(
                CommandExit::FAILURE,
                "this binary was built without its page",
                "run `just ui-build` and build again",
            )
        })?,
        ExportFormat::Json => serde_json::to_string(&run).unwrap_or_default() + "\n",
    };
    let written = match &args.out {
        Some(path) => std::fs::write(path, &text),
        // Whoever reads it may have seen enough.
        None => match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        },
    };
    written
        .map_err(|error| fail(CommandExit::FAILURE, &error.to_string(), "choose another file: --out FILE"))?;
    tell_export(args, project, &run, text.len());
    Ok(())
}

/// Says what was written, and warns of a file that would stop the next step.
fn tell_export(args: &UiExportArgs, project: &RepoReader, run: &RunExport, bytes: usize) {
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

async fn serve(cli: &UiCli, subject: ServeSubject) -> Result<(), CommandError> {
    let wanted = SocketAddr::new(cli.bind, cli.port.unwrap_or(PORT));
    let failed = |error: io::Error| {
        CommandError::new("listen", CommandExit::FAILURE, format!("could not listen at {wanted}"))
            .cause(error.to_string())
            .hint("choose another one, or any: runner-ui --port 0")
    };
    let listener = server::listen(wanted, cli.port.is_none()).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let needs_token = cli.token || !cli.bind.is_loopback();
    let token = needs_token.then(make_token).transpose().map_err(|error| {
        CommandError::new("token", CommandExit::FAILURE, "could not make a token")
            .cause(error.to_string())
            .hint("listen on this machine alone: leave --bind away")
    })?;
    let gate = AccessPolicy { address, hosts: cli.allow_host.clone(), token };
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
fn begin(cli: &UiCli, subject: ServeSubject, gate: AccessPolicy) -> (AppState, (PathBuf, WatchMethod)) {
    let (feed, readers) = (Arc::new(EventStream::new()), Arc::new(Semaphore::new(READERS_MAX)));
    let (shown, told) = match subject {
        ServeSubject::Repository(project) => {
            let app = Arc::new(RepoState::new(project, readers));
            let watcher = FileWatcher::begin(app.project.as_ref(), &app.watch, cli.poll);
            let (watched, feed) = (Arc::clone(&app), Arc::clone(&feed));
            std::thread::spawn(move || {
                watcher.run(watched.project.as_ref(), |change| feed.publish(&change), &watched.watch);
            });
            let told = (app.project.reading.root().to_owned(), app.watch.watching());
            (SiteSubject::Repository(app), told)
        }
        ServeSubject::Evaluation(places) => {
            let root = places.results.clone();
            let evaluation = Arc::new(Evaluation::new(places, Arc::clone(&feed), readers, cli.poll));
            let watcher = FileWatcher::begin(evaluation.as_ref(), &evaluation.watch, cli.poll);
            let (watched, feed) = (Arc::clone(&evaluation), Arc::clone(&feed));
            std::thread::spawn(move || {
                watcher.run(watched.as_ref(), |change| feed.publish(&change), &watched.watch);
            });
            let told = (root, evaluation.watch.watching());
            (SiteSubject::Evaluation(evaluation), told)
        }
    };
    (AppState { feed, gate, shown }, told)
}

/// Where the page is. An address that stands for every one of the machine's is named by this machine's own.
fn url(gate: &AccessPolicy) -> String {
    let (ip, port) = (gate.address.ip(), gate.address.port());
    let host = match ip {
        ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let token = gate.token.as_ref().map(|token| format!("?token={token}")).unwrap_or_default();
    format!("http://{host}:{port}/{token}")
}

fn tell(cli: &UiCli, (root, watching): &(PathBuf, WatchMethod), url: &str) {
    let root = runner_core::text::one_line(&root.display().to_string());
    let watching = if *watching == WatchMethod::Polling { "polling" } else { "events" };
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
