//! Holds loop runners, this project's and others, to one table of misbehaving agents.
//!
//! An [`adapter::Adapter`] defines how a tool is set up and started. Each [`row::Row`] is an agent with a task; the tool runs it
//! in a sandbox without a network, and [`judge::judge`] decides from what is left behind: the tool's report, a fresh clone of
//! its branch, its processes and the time. No code of a judged tool takes part in the verdict.

pub mod adapter;
mod agent_script;
pub mod args;
pub mod error;
mod inside;
pub mod judge;
pub mod report;
pub mod row;
pub mod row_run;
mod sandbox;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use adapter::Adapter;
use args::{BenchCommand, ToolRunArgs};
use error::BenchError;
use judge::{Judgement, RowVerdict, judge};
use report::{RowReport, ToolReport, page};
use row::{Row, rows};
use row_run::RowRunner;

/// The hidden first arguments of the inner programs.
const INSIDE_ARG: &str = "__inside";
const MODEL_ARG: &str = "__model";

/// Runs the inner program that this process was started as, if it is one.
#[expect(clippy::print_stderr, reason = "the outer program reads it")]
fn inner_program() -> Option<ExitCode> {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [program, first, second] = args.as_slice() else { return None };
    let result = match program.to_str()? {
        INSIDE_ARG => {
            let secs = second.to_str()?.parse().ok()?;
            inside::run(first, Duration::from_secs(secs)).map_err(Into::into)
        }
        MODEL_ARG => inside::serve_model(first, second),
        _ => return None,
    };
    if let Err(error) = &result {
        eprintln!("error: {error}");
    }
    Some(if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The program.
#[expect(clippy::print_stderr, clippy::print_stdout, reason = "a development program: this is its output")]
pub fn main() -> ExitCode {
    if let Some(code) = inner_program() {
        return code;
    }
    let result = match args::parse() {
        BenchCommand::Run(args) => run(&args, &mut |line| println!("{line}")),
        BenchCommand::Rows => rows().map_err(Into::into).map(|rows| {
            for row in rows {
                println!("{:18} {}", row.name, row.what);
            }
            true
        }),
        BenchCommand::Page { reports } => print_page(&reports).map(|page| {
            print!("{page}");
            true
        }),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn print_page(files: &[PathBuf]) -> Result<String, BenchError> {
    let reports: Result<Vec<ToolReport>, BenchError> =
        files.iter().map(|file| ToolReport::read(file)).collect();
    Ok(page(&reports?))
}

/// Runs the rows of one adapter. Returns whether no row failed.
pub fn run(args: &ToolRunArgs, print: &mut dyn FnMut(&str)) -> Result<bool, BenchError> {
    let adapter = Adapter::read(&args.adapter)?;
    let all = rows()?;
    adapter.check(&all)?;
    let chosen = choose(all, &args.row)?;
    let runner = RowRunner::new(&adapter, args.grace_secs)?;
    let parent = std::path::absolute(&args.folder).map_err(BenchError::io("find", &args.folder))?;
    let folder = tempfile::Builder::new().prefix("conformance-").tempdir_in(&parent);
    let mut folder = folder.map_err(BenchError::io("create a folder in", &parent))?;
    folder.disable_cleanup(args.keep);
    let (version, agent_version) = runner.versions(&adapter, folder.path())?;
    let mut report = ToolReport::new(&adapter, version, agent_version.as_deref(), today());
    report.rows = run_rows(&runner, &chosen, &adapter, folder.path(), &mut *print, args.jobs)?;
    print(&report.summary());
    if args.keep {
        print(&format!("folders: {}", folder.path().display()));
    }
    if let Some(path) = &args.json {
        report.write(path)?;
    }
    Ok(report.count(RowVerdict::Fail) == 0)
}

/// Runs the rows, some at a time, and prints each when it has ended.
fn run_rows(
    runner: &RowRunner,
    rows: &[Row],
    adapter: &Adapter,
    folder: &Path,
    print: &mut dyn FnMut(&str),
    jobs: u32,
) -> Result<Vec<RowReport>, BenchError> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let mut reports = BTreeMap::new();
    thread::scope(|scope| {
        for _ in 0..jobs {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(row) = rows.get(index) else { break };
                    if sender.send((index, run_row(runner, row, adapter, folder))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        while let Ok((index, report)) = receiver.recv() {
            // After an error, no thread starts another row.
            let report = report.inspect_err(|_| next.store(rows.len(), Ordering::Relaxed))?;
            print(&report.line());
            reports.insert(index, report);
        }
        Ok(reports.into_values().collect())
    })
}

fn choose(all: Vec<Row>, names: &[String]) -> Result<Vec<Row>, BenchError> {
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|row| row.name != **name)) {
        return Err(BenchError::NoSuchRow(unknown.clone()));
    }
    Ok(all.into_iter().filter(|row| names.is_empty() || names.contains(&row.name)).collect())
}

fn run_row(runner: &RowRunner, row: &Row, adapter: &Adapter, folder: &Path) -> Result<RowReport, BenchError> {
    if let Some(reason) = adapter.not_applicable.get(&row.name) {
        return Ok(RowReport::new(row, adapter, &Judgement::not_applicable(reason), None));
    }
    let folder = folder.join(&row.name);
    fs::create_dir(&folder).map_err(BenchError::io("create", &folder))?;
    let facts = runner.run(row, adapter, &folder)?;
    Ok(RowReport::new(row, adapter, &judge(row, &facts), Some(&facts)))
}

/// The date in UTC, as `date` prints it.
fn today() -> String {
    let output = std::process::Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
