//! The soak: one run of many iterations with a chaos agent, and figures that must stay flat.

mod chaos_agent;
mod figures;

pub(crate) use chaos_agent::run_chaos_agent;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use serde_json::Value;
use testkit::oracle::RunOracle;
use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::TestRepo;

use figures::{
    CommandFigures, IterationTime, LoopFigures, ProcessFigures, ProcessorTime, folder_megabytes, measure,
};

/// A loop stops after three failures of the agent in a row, which chance produces now and then.
const RESTARTS_MAX: usize = 50;

/// How the iterations are run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SoakCommand {
    /// One process for all of them.
    Loop,
    /// One process for each of them.
    Steps,
}

/// Runs the soak and prints its figures. Returns whether they are within their limits, and the run is sound at the end.
pub(crate) fn run(runner: &str, iterations: usize, command: SoakCommand) -> bool {
    let started = Instant::now();
    let repo = prepare(runner, iterations);
    let mut figures = LoopFigures::default();
    match command {
        SoakCommand::Loop => run_loops(&repo, iterations, &mut figures),
        SoakCommand::Steps => run_steps(&repo, iterations, &mut figures),
    }
    let seconds = started.elapsed().as_secs();
    crate::print(&format!("soak: {} iterations in {seconds} s", figures.iterations()));
    let mut violations: Vec<String> = figures.print().into_iter().collect();
    print_outcomes(&repo);
    print_sizes(&repo);
    for args in [&["status"][..], &["log"], &["verify"], &["replay", RUN]] {
        let measured = measure(&mut repo.runner_command(args));
        let CommandFigures { code, seconds, peak_megabytes } = measured;
        let name = args.first().copied().unwrap_or_default();
        violations.extend(measured.violation(name));
        crate::print(&format!("{name:<8} exit {code:?}, {seconds:.2} s, peak memory {peak_megabytes:.0} MB"));
    }
    violations.extend(RunOracle::new(&repo, RUN).violations());
    for violation in &violations {
        crate::print(&format!("BAD {violation}"));
    }
    violations.is_empty() && figures.iterations() >= iterations
}

/// A run with more tasks than iterations, so that it does not complete before the end.
fn prepare(runner: &str, iterations: usize) -> TestRepo {
    let exe = std::env::current_exe().expect("the path of this program");
    let executor = format!("kind = \"command\"\ncommand = [\"{}\", \"chaos-agent\"]", exe.display());
    let keys = "max_iterations = 1000000\nmax_attempts_default = 1000";
    let builder = RunBuilder::new(runner).executor(&executor).keys(keys).guard("test ! -e red");
    let repo = builder.start();
    let plan: String = (1..=iterations).map(|task| format!("- [ ] Task {task}\n")).collect();
    let path = repo.outside().join("plan.md");
    fs::write(&path, format!("# Plan\n\n{plan}")).expect("a plan");
    repo.runner(&["plan", "import", &path.display().to_string()]).ok();
    repo
}

fn run_loops(repo: &TestRepo, iterations: usize, figures: &mut LoopFigures) {
    for _ in 0..RESTARTS_MAX {
        let left = iterations.saturating_sub(figures.iterations());
        if left == 0 || is_complete(repo) {
            break;
        }
        follow_loop(repo, left, figures);
    }
}

/// Runs each iteration in a process of its own, which also has to read the run from the disk.
fn run_steps(repo: &TestRepo, iterations: usize, figures: &mut LoopFigures) {
    for number in (1..).take(iterations) {
        let started = Instant::now();
        let processor_before = ProcessorTime::of_children();
        repo.runner(&["step"]);
        let processor = ProcessorTime::of_children().millis_since(&processor_before);
        let wall = started.elapsed().as_secs_f64() * 1000.0;
        let own = (wall - session_millis(repo.root(), number)).max(0.0);
        figures.record(IterationTime { own, processor }, ProcessFigures::default());
    }
}

fn is_complete(repo: &TestRepo) -> bool {
    repo.tree().pointer("/root/passes") == Some(&Value::Bool(true))
}

/// Runs one loop and collects its figures from its events and from `/proc`.
fn follow_loop(repo: &TestRepo, iterations: usize, figures: &mut LoopFigures) {
    let limit = iterations.to_string();
    let mut command = repo.runner_command(&["loop", "--json", "--max-iterations", &limit]);
    let mut child: Child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the loop");
    let events = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut previous = Instant::now();
    let mut processor_before = ProcessorTime::default();
    for line in events.lines().map_while(Result::ok) {
        let event: Value = serde_json::from_str(&line).unwrap_or_default();
        if event.get("event").and_then(Value::as_str) != Some("committed") {
            continue;
        }
        let Some(number) = event.get("iter").and_then(Value::as_u64) else { continue };
        let wall = previous.elapsed();
        previous = Instant::now();
        let others = session_millis(repo.root(), number);
        let own = (wall.as_secs_f64() * 1000.0 - others).max(0.0);
        let processor_now = ProcessorTime::of(child.id());
        let processor = processor_now.millis_since(&processor_before);
        processor_before = processor_now;
        figures.record(IterationTime { own, processor }, ProcessFigures::read(child.id()));
    }
    let _ = child.wait();
}

/// The time of agent and guard in an iteration, as its meta.json has it.
fn session_millis(root: &Path, number: u64) -> f64 {
    let path = root.join(format!(".runner/iterations/{RUN}/{number:04}/meta.json"));
    let meta: Value = serde_json::from_slice(&fs::read(path).unwrap_or_default()).unwrap_or_default();
    ["agent_ms", "guard_ms"].iter().filter_map(|key| meta.get(key)?.as_f64()).sum()
}

fn print_outcomes(repo: &TestRepo) {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for outcome in repo.outcomes() {
        *counts.entry(outcome).or_default() += 1;
    }
    let text: Vec<String> = counts.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    crate::print(&format!("outcomes: {}", text.join(", ")));
}

fn print_sizes(repo: &TestRepo) {
    let counted = repo.git(&["count-objects", "-v"]);
    let value = |key: &str| {
        let line = counted.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        line.unwrap_or("?").to_owned()
    };
    crate::print(&format!(
        ".git {:.1} MB, {} loose objects, {} packs; .runner {:.1} MB, logs {:.0} bytes per iteration",
        folder_megabytes(&repo.path(".git")),
        value("count"),
        value("packs"),
        folder_megabytes(&repo.path(".runner")),
        logs_per_iteration(repo),
    ));
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn logs_per_iteration(repo: &TestRepo) -> f64 {
    let folder = repo.path(&format!(".runner/iterations/{RUN}"));
    let iterations = fs::read_dir(&folder).map_or(1, Iterator::count).max(1);
    folder_megabytes(&folder) * 1024.0 * 1024.0 / iterations as f64
}
