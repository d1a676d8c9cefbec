//! What the proof of a run costs against showing its history: `runner verify` and `git log -p` over the same files.
//!
//! `just bench verify`. The run is made by the runner itself: a tree of 1,000 nodes, an agent that only answers, a guard
//! that is `true`, one leaf passed an iteration. Both sides read the same commits of the same repository and print to
//! nowhere; ratios are of medians over interleaved rounds. Time per iteration must not grow with their number.
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]
#![expect(clippy::expect_used, reason = "a benchmark that cannot work has nothing to say")]

use std::process::{Command, Stdio};
use std::time::Instant;

use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

const RUNNER: &str = env!("CARGO_BIN_EXE_runner");
/// The nodes of the tree: the root and its leaves.
const NODES: usize = 1_000;
/// How many iterations are made; the last ones of them are looked at.
const ITERATIONS: usize = 1_000;
const ROUNDS: usize = 5;
/// The most that the proof may take, in times of showing the history.
const GOAL: f64 = 3.0;

fn main() {
    let sandbox = prepared();
    println!("iterations     verify   each    git log -p   each   ratio   goal");
    for count in [250, 500, ITERATIONS] {
        let range = format!("HEAD~{count}..HEAD");
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(timed(sandbox.runner_command(&["-q", "verify", &range])));
            theirs.push(timed(log_of(&sandbox, &range)));
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let each = |seconds: f64| seconds * 1e3 / count as f64;
        println!(
            "{count:>10} {:>8.2} s {:>5.2} ms {:>8.2} s {:>5.2} ms {:>6.2} {GOAL:>6.2}",
            ours,
            each(ours),
            theirs,
            each(theirs),
            ours / theirs,
        );
    }
}

/// A run with as many iterations as there are leaves and one more, which divided the root.
fn prepared() -> TestRepo {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let agent = r#"if [ "$RUNNER_ITER" = 0001 ]; then cp "$AROUND/tree.json" "$RUNNER_TREE"; answer decomposed; else answer done; fi"#;
    let setup =
        RunBuilder::new(RUNNER).agent(agent).keys("max_iterations = 100000\nmax_attempts_default = 1");
    let sandbox = setup.start_in(TestRepo::empty_in(RUNNER, folder));
    std::fs::write(sandbox.outside().join("tree.json"), divided(&sandbox)).expect("a tree");
    sandbox.runner(&["step"]).ok();
    sandbox.runner(&["-q", "loop"]).ok();
    sandbox
}

/// The run's tree with a flat row of leaves below its root.
fn divided(sandbox: &TestRepo) -> String {
    let goal = "Every row is at most 80 columns wide, whatever the screen. ".repeat(6);
    let leaf = |nth: usize| {
        format!(
            "{{\"id\": \"leaf-{nth}\", \"order\": {nth}, \"title\": \"Draw table {nth}\", \"goal\": \"{goal}\", \
             \"acceptance\": [\"a test shows it\"], \"passes\": false, \"attempts\": 0, \"max_attempts\": 1, \
             \"children\": []}}"
        )
    };
    let leaves: Vec<String> = (1..=NODES).map(leaf).collect();
    let tree = sandbox.read(".runner/state/tree.json");
    tree.replace("\"children\": []", &format!("\"children\": [{}]", leaves.join(",\n")))
}

/// The history of the files that the proof is about.
fn log_of(sandbox: &TestRepo, range: &str) -> Command {
    let mut git = sandbox.command("git");
    git.args(["--no-pager", "log", "-p", range, "--", ".runner"]);
    git
}

fn timed(mut command: Command) -> f64 {
    let begin = Instant::now();
    let status = command.stdout(Stdio::null()).status().expect("a program that can be started");
    assert!(status.success(), "{command:?}");
    begin.elapsed().as_secs_f64()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
