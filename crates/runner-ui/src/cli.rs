//! The command line of `runner-ui`: the server, `export` and `watch`.

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use runner_core::model::id::RunId;
use runner_host::view::known_names::run_names;
use runner_term::completion::{self, Candidate};
use runner_term::help_pages::with_terminal_help;
use runner_term::{ColorChoice, CommandError, CommandExit, GlobalArgs, Ui, print_clap_error};
use serde_json::json;
use supervise::executables::show_in_browser;
use tokio::sync::Semaphore;

use crate::api::WatchMethod;
use crate::error::RequestError;
use crate::evaluation::{EntryName, EvalPaths, Evaluation, LATEST};
use crate::export::{ExportError, RunExporter, without_keys};
use crate::read::repo_reader::RepoReader;
use crate::server::access::AccessPolicy;
use crate::server::app::{AppState, SiteSubject};
use crate::server::routes::READERS_MAX;
use crate::server::served_repo::{RepoWatcher, ServedRepo};
use crate::server::sse::EventStream;
use crate::server::{self, PortInUse};
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
    #[arg(value_name = "RUN", conflicts_with = "run_option")]
    run: Option<String>,
    /// The same as an option
    #[arg(id = "run_option", long = "run", value_name = "RUN")]
    run_option: Option<String>,
    /// Poll the files every two seconds instead of watching them
    #[arg(long)]
    poll: bool,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
}

/// Export a run as one file
///
/// Writes a page that opens in any browser without a server, or JSON. The middle of large logs is omitted; the file lists
/// what is missing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  runner-ui export html --out ../run.html   # the current run as a page
  runner-ui export json nightly | gzip > nightly.json.gz")]
struct UiExportArgs {
    /// Format of the exported file
    format: ExportFormat,
    /// Run to export [default: the one on the current branch]
    #[arg(value_name = "RUN", conflicts_with = "run_option")]
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
    let matches = with_terminal_help(UiCli::command(), &[]).try_get_matches()?;
    UiCli::from_arg_matches(&matches)
}

/// The words for a value, in the repository that `-C` names.
fn completed(name: &str, words: &[String]) -> Vec<Candidate> {
    match name {
        "RUN" => {
            let runs = run_names(&completion::folder_in(words));
            runs.into_iter().map(|run| Candidate::new(run.name, run.meaning)).collect()
        }
        _ => Vec::new(),
    }
}

pub fn main() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().collect();
    if let Some(words) = completion::requested_words(&typed) {
        let found = completion::candidates(UiCli::command(), &words, &|name| completed(name, &words));
        Ui::new(&GlobalArgs::default()).raw(&completion::lines(&found));
        return ExitCode::SUCCESS;
    }
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => return print_clap_error(&error),
    };
    let out = Ui::new(&GlobalArgs { json: cli.json, ..GlobalArgs::default() });
    match run(&cli) {
        Ok(exit) => ExitCode::from(exit.0),
        Err(error) => out.print_error(&error),
    }
}

/// What the server shows.
enum ServeSubject {
    Repository(Arc<RepoReader>),
    Evaluation(EvalPaths),
}

fn run(cli: &UiCli) -> Result<CommandExit, CommandError> {
    let project = || {
        RepoReader::open(&cli.project_dir).map_err(|error| {
            CommandError::refused("no_repository", "could not open the repository")
                .cause(error.to_string())
                .hint("pass a git repository: runner-ui --project-dir DIR")
        })
    };
    match &cli.command {
        Some(UiCommand::Export(args)) => return export(args, &project()?).map(|()| CommandExit::SUCCESS),
        Some(UiCommand::Watch(args)) => return watch(cli, args, project()?),
        None => {}
    }
    let subject = match &cli.eval {
        Some(folder) => ServeSubject::Evaluation(eval_paths(cli, folder)?),
        None => ServeSubject::Repository(Arc::new(project()?)),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| {
        CommandError::new("start", CommandExit::FAILURE, "could not start the server")
            .cause(error.to_string())
            .hint("close some programs and try again")
    })?;
    runtime.block_on(serve(cli, subject)).map(|()| CommandExit::SUCCESS)
}

fn eval_paths(cli: &UiCli, folder: &Path) -> Result<EvalPaths, CommandError> {
    let fail = |why: &str, hint: &str| {
        CommandError::refused("no_evaluation", "could not open the evaluation").cause(why).hint(hint)
    };
    if cli.case.as_ref().is_some_and(|case| EntryName::new(case).is_none()) {
        return Err(fail("CASE is not a valid name", "`runner eval list` lists the cases"));
    }
    let paths = EvalPaths::find(&cli.project_dir.join(folder)).map_err(|error| {
        fail(&error.to_string(), "pass the folder of its results: runner-ui --eval eval/results")
    })?;
    let workspaces = cli.workspaces.as_ref().map(|folder| cli.project_dir.join(folder));
    Ok(EvalPaths { workspaces: workspaces.unwrap_or(paths.workspaces), results: paths.results })
}

fn parse_run_id(text: Option<&str>, what: &str) -> Result<Option<RunId>, CommandError> {
    text.map(RunId::new).transpose().map_err(|error| {
        CommandError::refused("run_id", what)
            .cause(format!("the run {error}"))
            .hint("`runner ui` lists the runs")
    })
}

#[cfg(feature = "watch")]
fn watch(cli: &UiCli, args: &UiWatchArgs, project: RepoReader) -> Result<CommandExit, CommandError> {
    let wanted = parse_run_id(args.run.as_deref().or(args.run_option.as_deref()), "could not show the run")?;
    if cli.json {
        return Err(CommandError::refused("no_json", "could not show the run")
            .cause("`watch` has no JSON output")
            .hint("for scripts: runner log --follow --json, or runner status --json"));
    }
    let globals = GlobalArgs { color: args.color, ..GlobalArgs::default() };
    let method = if cli.poll || args.poll { WatchMethod::Polling } else { WatchMethod::Events };
    crate::tui::run(project, wanted, method, &globals)
}

#[cfg(not(feature = "watch"))]
fn watch(_: &UiCli, _: &UiWatchArgs, _: RepoReader) -> Result<CommandExit, CommandError> {
    Err(CommandError::new("no_watch", CommandExit::FAILURE, "could not show the run")
        .cause("this `runner-ui` was built without the feature `watch`")
        .hint("build it with its default features: cargo install --locked --path crates/runner")
        .hint("or follow the run as lines: runner log --follow"))
}

fn export(args: &UiExportArgs, project: &RepoReader) -> Result<(), CommandError> {
    const WHAT: &str = "could not export the run";
    let fail = |exit, why: &str, hint: &str| CommandError::new("export", exit, WHAT).cause(why).hint(hint);
    if args.out.is_none() && io::stdout().is_terminal() {
        return Err(fail(
            CommandExit::REFUSED,
            "standard output is a terminal",
            "pass a file: --out ../run.html",
        ));
    }
    let wanted = parse_run_id(args.run.as_deref().or(args.run_option.as_deref()), WHAT)?;
    let refused = |error: &RequestError| {
        fail(CommandExit::REFUSED, error.message(), "`runner status` shows the current run")
    };
    let failed =
        |error: &io::Error| fail(CommandExit::FAILURE, &error.to_string(), "pass another file: --out FILE");
    let mut run = RunExporter::new(project, wanted.as_ref()).map_err(|error| refused(&error))?;
    let mut out: BufWriter<Box<dyn Write>> = BufWriter::new(match &args.out {
        Some(path) => Box::new(std::fs::File::create(path).map_err(|error| failed(&error))?),
        None => Box::new(io::stdout()),
    });
    let total = run.iterations();
    let written = match args.format {
        ExportFormat::Html => run.html(&mut out, |done| print_progress(done, total)),
        ExportFormat::Json => {
            run.json(|done| print_progress(done, total)).map_err(ExportError::from).and_then(|run| {
                out.write_all(&without_keys(&run))?;
                Ok(writeln!(out).and_then(|()| out.flush())?)
            })
        }
    };
    match written {
        Ok(()) => {}
        // The reader may close the pipe early.
        Err(ExportError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe && args.out.is_none() => {
        }
        Err(ExportError::Write(error)) => return Err(failed(&error)),
        Err(ExportError::Request(error)) => return Err(refused(&error)),
        Err(error @ ExportError::NoPage) => {
            let hint = "run `just ui-build`, then build runner-ui again";
            return Err(fail(CommandExit::FAILURE, &error.to_string(), hint));
        }
    }
    print_export(args, project, &run);
    Ok(())
}

/// Shows how far an export is, on a terminal.
fn print_progress(done: usize, total: usize) {
    let mut err = io::stderr();
    if err.is_terminal() && (done.is_multiple_of(20) || done == total) {
        let end = if done == total { "\r\x1b[K" } else { "" };
        let _ = write!(err, "\rexporting iteration {done} of {total}{end}");
    }
}

/// Reports what was written, and warns of a file that would make the work tree dirty.
fn print_export(args: &UiExportArgs, project: &RepoReader, run: &RunExporter<'_>) {
    let mut lines = Vec::new();
    if let Some(path) = &args.out {
        let iterations = run.iterations();
        let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
        lines.push(format!(
            "wrote {} ({iterations} iterations, {} kB)",
            path.display(),
            bytes.div_ceil(1000)
        ));
        let file = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        if std::fs::canonicalize(project.repo.root()).is_ok_and(|root| file.starts_with(root)) {
            lines.push(
                "note: the file is in the work tree, which must be clean before the next step".to_owned(),
            );
        }
    }
    lines.extend(run.omitted().iter().map(|what| format!("note: {what}")));
    for line in lines {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

async fn serve(cli: &UiCli, subject: ServeSubject) -> Result<(), CommandError> {
    let requested = SocketAddr::new(cli.bind, cli.port.unwrap_or(PORT));
    let failed = |error: io::Error| {
        CommandError::new("listen", CommandExit::FAILURE, format!("could not listen on {requested}"))
            .cause(error.to_string())
            .hint("use any free port: runner-ui --port 0")
    };
    let in_use = if cli.port.is_none() { PortInUse::UseAnother } else { PortInUse::Fail };
    let listener = server::listen(requested, in_use).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    // Trials of an evaluation run on this machine and must not read results, so an evaluation always needs the token.
    let needs_token = cli.token || cli.eval.is_some() || !cli.bind.is_loopback();
    let token = needs_token.then(generate_token).transpose().map_err(|error| {
        CommandError::new("token", CommandExit::FAILURE, "could not generate a token")
            .cause(error.to_string())
            .hint("serve this machine only: omit --bind and --token")
    })?;
    let access = AccessPolicy { address, hosts: cli.allow_host.clone(), token };
    let url = page_url(&access)
        + &cli.case.as_ref().map(|case| format!("#/trial/{case}/{LATEST}")).unwrap_or_default();
    let (app, watched) = start_watching(cli, subject, access);
    print_address(cli, &watched, &url);
    if cli.open
        && let Err(error) = show_in_browser(&url)
    {
        let _ =
            writeln!(io::stderr(), "note: could not start a browser ({error}); open the address yourself");
    }
    server::serve(listener, Arc::new(app)).await;
    Ok(())
}

/// What the server watches, and how.
struct WatchedRoot {
    root: PathBuf,
    method: WatchMethod,
}

/// Starts a thread that watches the subject and publishes its changes.
fn start_watching(cli: &UiCli, subject: ServeSubject, access: AccessPolicy) -> (AppState, WatchedRoot) {
    let events = Arc::new(EventStream::new());
    let readers = Arc::new(Semaphore::new(READERS_MAX));
    let method = if cli.poll { WatchMethod::Polling } else { WatchMethod::Events };
    let (subject, watched) = match subject {
        ServeSubject::Repository(project) => {
            let watcher = RepoWatcher { events: Arc::clone(&events), readers, method };
            let state = watcher.watch(project);
            let root = state.project.repo.root().to_owned();
            let watched = WatchedRoot { root, method: state.watch.watching() };
            let served = ServedRepo::new(state);
            watcher.follow(&cli.project_dir, served.clone());
            (SiteSubject::Repository(served), watched)
        }
        ServeSubject::Evaluation(paths) => {
            let root = paths.results.clone();
            let evaluation = Arc::new(Evaluation::new(paths, Arc::clone(&events), readers, method));
            let watcher = FileWatcher::begin(evaluation.as_ref(), &evaluation.watch, method);
            let (target, publisher) = (Arc::clone(&evaluation), Arc::clone(&events));
            std::thread::spawn(move || {
                watcher.run(target.as_ref(), |change| publisher.publish(&change), &target.watch);
            });
            let watched = WatchedRoot { root, method: evaluation.watch.watching() };
            (SiteSubject::Evaluation(evaluation), watched)
        }
    };
    (AppState { events, access, subject }, watched)
}

/// The address of the page. An unspecified address, such as 0.0.0.0, is replaced by the loopback address.
fn page_url(access: &AccessPolicy) -> String {
    let (ip, port) = (access.address.ip(), access.address.port());
    let host = match ip {
        ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let token = access.token.as_ref().map(|token| format!("?token={token}")).unwrap_or_default();
    format!("http://{host}:{port}/{token}")
}

fn print_address(cli: &UiCli, watched: &WatchedRoot, url: &str) {
    let root = runner_core::text::one_line(&watched.root.display().to_string());
    let watching = if watched.method == WatchMethod::Polling { "polling" } else { "events" };
    let mut out = io::stdout();
    let text = if cli.json {
        json!({ "schema": "runner.ui/1", "url": url, "root": root, "watching": watching }).to_string()
    } else if out.is_terminal() {
        let warning = if cli.bind.is_loopback() {
            ""
        } else {
            "\nOther machines can reach this address: keep the token secret."
        };
        format!("watching {root}\n\n    {url}\n{warning}\nPress Ctrl-C to quit; runs continue.")
    } else {
        format!("url={url} root={} watching={watching}", json!(root))
    };
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// 128 random bits, as hexadecimal digits.
fn generate_token() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
