//! Tests what `runner` survives: crashes at every system call, errors of the system, power cuts, a failing git, odd
//! repositories, hostile agents and a user who works meanwhile. `just crash` runs it; docs/design/crash-safety.md describes it.
//!
//! The parts: `injector` produces a fault, `scenarios` are what it interrupts, `oracle` judges the result, `families` combine
//! them into points, `campaign` and `pool` select and run points, `soak` measures a long run.
//!
//! The injector knows the registers and calls of Linux on x86-64; elsewhere this library is empty.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::expect_used, clippy::panic, reason = "a point that cannot be set up is a failed point")]

mod campaign;
mod disk_state;
mod disk_view;
mod families;
mod injector;
mod oracle;
mod point;
mod pool;
mod random;
mod result_file;
mod scenarios;
mod soak;
mod sweep;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::campaign::CampaignPlan;
use crate::families::counted_folder;
use crate::injector::{CallClass, Injection, trace};
use crate::point::{PointSpec, PointVerdict};
use crate::result_file::ResultFile;
use crate::scenarios::Workspace;
use crate::soak::SoakCommand;

#[derive(Debug, Parser)]
#[command(about = "Crash campaign and soak for the `runner` binary")]
struct CampaignCli {
    #[command(subcommand)]
    command: CampaignCommand,
    /// The binary under test [default: `runner` beside this program].
    #[arg(long, global = true, value_name = "FILE")]
    runner: Option<PathBuf>,
    /// Folder with prepared scenarios [default: a temporary one].
    #[arg(long, global = true, value_name = "DIR")]
    templates: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum CampaignCommand {
    /// Run a campaign, or one point of it.
    Run(RunArgs),
    /// Run one point and print its verdict.
    Point { spec: String },
    /// Judge all points of a family in a scenario in one run, and print them as JSON.
    Sweep(SweepArgs),
    /// Judge a scenario's folder as it is.
    #[command(hide = true)]
    Judge { scenario: String, folder: PathBuf, before: PathBuf },
    /// Continue from the copies of a power cut, and judge.
    #[command(hide = true)]
    JudgeCut(families::CutArgs),
    /// List the counted system calls of a scenario's command.
    Calls { scenario: String, class: String },
    /// Run many iterations with an agent that behaves differently every time, and print figures.
    Soak {
        /// Number of iterations.
        #[arg(default_value_t = 2000)]
        iterations: usize,
        /// Run each iteration with a `runner step` of its own instead of one `runner loop`.
        #[arg(long)]
        steps: bool,
    },
    /// The agent of the soak.
    #[command(hide = true)]
    ChaosAgent,
    /// List families and scenarios.
    List,
}

#[derive(Debug, clap::Args)]
struct SweepArgs {
    family: String,
    scenario: String,
    /// Judge only every K-th different state.
    #[arg(long, value_name = "K", default_value_t = 1)]
    every: usize,
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Scenarios to interrupt [default: all].
    scenarios: Vec<String>,
    /// Only this family of faults; repeatable.
    #[arg(long = "family", value_name = "NAME")]
    families: Vec<String>,
    /// Run only every K-th point.
    #[arg(long, value_name = "K", default_value_t = 1)]
    every: usize,
    /// Run points in a random order of a few scenarios, seeded by this text.
    #[arg(long, value_name = "SEED")]
    sample: Option<String>,
    /// Start no point after N minutes.
    #[arg(long, value_name = "N")]
    minutes: Option<f64>,
    /// Points at the same time [default: the number of cores].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Stop at the first bad point.
    #[arg(long)]
    until_bad: bool,
    /// Append results to this file, and skip points that it has for the same `runner` binary. Its scenarios stay in `FILE.d`.
    #[arg(long, value_name = "FILE", conflicts_with = "point")]
    resume: Option<PathBuf>,
    /// Run only this point, as a report printed it.
    #[arg(long, value_name = "SPEC", conflicts_with_all = ["scenarios", "families"])]
    point: Option<String>,
}

/// The command line of `crash-campaign`.
pub fn main() -> ExitCode {
    if let Some(code) = run_as_child() {
        return code;
    }
    let cli = CampaignCli::parse();
    let folder =
        tempfile::Builder::new().prefix("campaign-").tempdir_in(testkit::test_repo::temporary_root());
    let folder = folder.expect("a temporary folder");
    let runner = cli.runner.unwrap_or_else(|| sibling("runner"));
    let runner = runner.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", runner.display()));
    let kept = if let CampaignCommand::Run(RunArgs { resume: Some(file), .. }) = &cli.command {
        Some(file.with_added_extension("d").join(disk_state::hash_file(&runner)))
    } else {
        None
    };
    let templates = cli.templates.or(kept).unwrap_or_else(|| folder.path().join("templates"));
    std::fs::create_dir_all(&templates).expect("a folder for scenarios");
    let templates = templates.canonicalize().expect("the folder for scenarios");
    let workspace = Workspace::new(runner.display().to_string(), templates);
    let is_success = match cli.command {
        CampaignCommand::Run(args) => run(&workspace, folder.path(), args),
        CampaignCommand::Point { spec } => run_point(&workspace, &spec),
        CampaignCommand::Sweep(args) => run_sweep(&workspace, folder.path(), &args),
        CampaignCommand::Judge { scenario, folder, before } => {
            print_verdict(&sweep::judge_folder(&workspace, &scenario, &folder, &before))
        }
        CampaignCommand::JudgeCut(args) => print_verdict(&families::judge_cut(&workspace, &args)),
        CampaignCommand::Calls { scenario, class } => list_calls(&workspace, &scenario, &class),
        CampaignCommand::Soak { iterations, steps } => {
            let command = if steps { SoakCommand::Steps } else { SoakCommand::Loop };
            soak::run(&workspace.runner, iterations, command)
        }
        CampaignCommand::ChaosAgent => soak::run_chaos_agent(),
        CampaignCommand::List => list(),
    };
    if is_success { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What the campaign starts itself as, besides a point.
fn run_as_child() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let first = args.next()?;
    let failed = |error: &str| {
        eprint(error);
        ExitCode::FAILURE
    };
    if first == injector::TRACED_CHILD {
        return Some(failed(&injector::exec_traced(args)));
    }
    (first == disk_view::VIEW_INIT)
        .then(|| disk_view::run_init().map_or_else(|error| failed(&error), ExitCode::from))
}

/// A program in the folder of this one.
fn sibling(name: &str) -> PathBuf {
    let exe = std::env::current_exe().expect("the path of this program");
    exe.with_file_name(name)
}

/// Prints a line at once, so that a campaign can be followed.
pub(crate) fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    // A reader that went away does not end the campaign.
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}

fn eprint(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn run(workspace: &Workspace, folder: &Path, args: RunArgs) -> bool {
    if let Some(spec) = &args.point {
        return run_point(workspace, spec);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if let Some(seed) = &args.sample {
        print(&format!("seed {seed}"));
    }
    // A part of the points, or the first bad one, is found faster point by point.
    let is_complete = args.every <= 1 && args.sample.is_none() && !args.until_bad;
    let obstacle = is_complete.then(|| disk_view::unavailable_in(folder)).flatten();
    if let Some(reason) = &obstacle {
        print(&format!("no sweeps, every point runs by itself: {reason}"));
    }
    let plan = CampaignPlan {
        scenarios: args.scenarios,
        families: args.families,
        every: args.every.max(1),
        sample: args.sample,
        time_limit: args.minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0)),
        jobs: args.jobs.unwrap_or(cores),
        until_bad: args.until_bad,
        sweeps: is_complete && obstacle.is_none(),
        results: args
            .resume
            .map(|file| ResultFile::open(file, disk_state::hash_file(Path::new(&workspace.runner)))),
    };
    campaign::run(workspace, folder, &plan)
}

fn run_point(workspace: &Workspace, spec: &str) -> bool {
    let point = PointSpec::parse(spec).unwrap_or_else(|| panic!("`{spec}` is not a point"));
    let family = families::all().into_iter().find(|family| family.name == point.family);
    let family = family.unwrap_or_else(|| panic!("`{}` is not a family", point.family));
    print_verdict(&(family.run)(workspace, &point))
}

fn print_verdict(verdict: &PointVerdict) -> bool {
    print(verdict.to_text().trim_end());
    !matches!(verdict, PointVerdict::Bad(_))
}

fn run_sweep(workspace: &Workspace, folder: &Path, args: &SweepArgs) -> bool {
    let SweepArgs { family, scenario, every } = args;
    let sweep = families::sweep_of(family).unwrap_or_else(|| panic!("`{family}` has no sweep"));
    let scenario = scenarios::find(scenario).unwrap_or_else(|| panic!("`{scenario}` is not a scenario"));
    if let Some(reason) = disk_view::unavailable_in(folder) {
        print(&format!("sweep SKIPPED: {reason}"));
        return true;
    }
    sweep(workspace, &scenario, *every);
    true
}

fn list_calls(workspace: &Workspace, scenario: &str, class: &str) -> bool {
    let scenario = scenarios::find(scenario).unwrap_or_else(|| panic!("`{scenario}` is not a scenario"));
    let class = CallClass::parse(class).unwrap_or_else(|| panic!("`{class}` is not a class of calls"));
    let repo = workspace.copy(&scenario);
    let mut states = Vec::new();
    let mut observer = |_: usize, _: &_| {
        let has_states = class == CallClass::Mutating;
        states.push(if has_states { disk_state::hash_folder(repo.outside()) } else { "-".to_owned() });
    };
    let injection =
        Injection { class, root: counted_folder(&repo), at: 0, fault: None, observer: Some(&mut observer) };
    let outcome = trace(&repo.runner_command(scenario.command), injection);
    assert_eq!(outcome.exit_code, Some(0), "`runner {}` without a fault", scenario.command.join(" "));
    for (call, state) in outcome.calls.iter().zip(states) {
        let paths: Vec<String> = call.paths.iter().map(|path| path.display().to_string()).collect();
        let beside = if call.is_alone { "alone" } else { "beside" };
        print(&format!("{} {} {state} {beside} {}", call.program, call.name, paths.join(" -> ")));
    }
    true
}

fn list() -> bool {
    for family in families::all() {
        print(&format!("family   {:<18} {}", family.name, family.summary));
    }
    for scenario in scenarios::all() {
        print(&format!("scenario {:<18} runner {}", scenario.name, scenario.command.join(" ")));
    }
    true
}
