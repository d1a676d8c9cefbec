//! The cost of one iteration relative to the minimum that a shell script would need: the floor.
//!
//! `just bench step`. Both sides run the same agent, which only answers, and the same guard, which is `true`. The
//! floor then runs `git status`, `git add -A`, `git commit`, with objects as durable as the runner's, and commits as
//! much as the runner does: a changed tree and a changed state. Ratios are of medians over interleaved rounds.
//!
//! The last rows compare an iteration whose guard runs in the room with one whose guard runs in the work tree: alone, with a check
//! of each task (twice before the work, once after it), and with the final check, divided by the iterations of the run. In a small
//! repository they may cost 10 ms, whatever the ratio.
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has no result")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

const RUNNER: &str = env!("CARGO_BIN_EXE_runner");
/// Iterations per round: enough to make the start of a loop, which is as long as two of them, negligible.
const ITERATIONS: usize = 60;
/// Objects are on the disk before the branch names them, as in the runner, which syncs them together.
const FSYNC: &str = "committed,loose-object";
/// The leaves of a small tree: as many as the rounds of the longest case pass.
const LEAVES: usize = 310;

struct Case {
    name: &'static str,
    files: usize,
    nodes: usize,
    rounds: usize,
    against: Against,
    extra: Extra,
    goal: &'static str,
}

/// What the measured run does beside its guard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extra {
    Nothing,
    /// Every task has a check of its own.
    Check,
    /// The run ends, with the guard in a clean checkout. Every round is a run of its own.
    FinalCheck,
}

/// What an iteration is compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Against {
    /// The shell script.
    Floor,
    /// An iteration whose guard runs in the work tree; this one's runs in the room. Sessions change files.
    InPlace { changed_files: usize },
}

const CASES: [Case; 9] = [
    Case {
        name: "20 files, small tree",
        files: 20,
        nodes: LEAVES,
        rounds: 4,
        against: Against::Floor,
        extra: Extra::Nothing,
        goal: "1.35",
    },
    Case {
        name: "50,000 files",
        files: 50_000,
        nodes: LEAVES,
        rounds: 4,
        against: Against::Floor,
        extra: Extra::Nothing,
        goal: "0.80",
    },
    Case {
        name: "10,000 nodes",
        files: 20,
        nodes: 10_000,
        rounds: 4,
        against: Against::Floor,
        extra: Extra::Nothing,
        goal: "1.10",
    },
    small("20 files, in the room", Extra::Nothing),
    small("20 files, room and check", Extra::Check),
    small("20 files, room and end", Extra::FinalCheck),
    large("50,000 files, in the room", Extra::Nothing),
    large("50,000 files, room, check", Extra::Check),
    large("50,000 files, room, end", Extra::FinalCheck),
];

/// A room in a small repository.
const fn small(name: &'static str, extra: Extra) -> Case {
    let against = Against::InPlace { changed_files: 1 };
    Case { name, files: 20, nodes: extra.nodes(), rounds: 4, against, extra, goal: "+10 ms" }
}

/// A room in a large repository.
const fn large(name: &'static str, extra: Extra) -> Case {
    let against = Against::InPlace { changed_files: 20 };
    Case { name, files: 50_000, nodes: extra.nodes(), rounds: 4, against, extra, goal: "1.30" }
}

impl Extra {
    /// The nodes of the tree: a run that ends has as many leaves as a round has iterations.
    const fn nodes(self) -> usize {
        match self {
            Self::Nothing | Self::Check => LEAVES,
            Self::FinalCheck => ITERATIONS + 1,
        }
    }
}

fn main() {
    // `just bench step nodes` measures only the cases whose names contain `nodes`.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    println!("one iteration                   runner      other   ratio    goal   git processes");
    for case in CASES {
        if !wanted.is_empty() && !wanted.iter().any(|part| case.name.contains(part)) {
            continue;
        }
        let prepare = || [prepared(&case, Side::Measured), prepared(&case, Side::Other)];
        let mut repos = prepare();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..case.rounds {
            if case.extra == Extra::FinalCheck && round > 0 {
                repos = prepare();
            }
            let [runner, other] = &repos;
            // The second one finds a busier disk, so they alternate.
            for turn in [round % 2, (round + 1) % 2] {
                if turn == 0 {
                    ours.push(timed(&mut loop_of(runner)));
                } else {
                    theirs.push(timed(&mut case.other(other, round)));
                }
            }
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let [runner, _] = &repos;
        let processes = match case.extra {
            // The run has ended.
            Extra::FinalCheck => "-".to_owned(),
            Extra::Nothing | Extra::Check => format!("{:.1}", git_processes(runner)),
        };
        println!(
            "{:<26} {:>8.2} ms {:>7.2} ms {:>7.2} {:>7} {processes:>10}",
            case.name,
            ours * 1e3,
            theirs * 1e3,
            ours / theirs,
            case.goal,
        );
    }
}

/// A side of the comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Measured,
    Other,
}

impl Case {
    /// The keys of `[guard]`.
    fn guard_keys(&self, side: Side) -> String {
        let is_measured = side == Side::Measured;
        let room = if is_measured && self.against != Against::Floor { "require" } else { "in-place" };
        let has_final_check = is_measured && self.extra == Extra::FinalCheck;
        format!("room = \"{room}\"\nfinal_check = {has_final_check}")
    }

    /// The command that the runner is compared with.
    fn other(&self, sandbox: &TestRepo, round: usize) -> Command {
        if self.against == Against::Floor { floor_of(sandbox, round) } else { loop_of(sandbox) }
    }

    /// What a session changes.
    fn work(&self) -> String {
        let Against::InPlace { changed_files } = self.against else { return String::new() };
        let files = (0..changed_files).map(|nth| format!("echo $RUNNER_ITER > d{nth}/e{nth}/f{nth}.txt; "));
        files.chain(["echo > done/$RUNNER_NODE_ID; ".to_owned()]).collect()
    }
}

/// A repository with a run whose root was just divided.
fn prepared(case: &Case, side: Side) -> TestRepo {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let agent = format!(
        r#"if [ "$RUNNER_ITER" = 0001 ]; then cp "$AROUND/tree.json" "$RUNNER_TREE"; cp -r "$AROUND/nodes" .runner/; answer decomposed; else {}answer done; fi"#,
        case.work()
    );
    let setup = RunBuilder::new(RUNNER)
        .agent(&agent)
        .keys("max_iterations = 100000\nmax_attempts_default = 1")
        .guard_keys(&case.guard_keys(side))
        .config_tables("[limits]\nmax_children = 100000\nmax_nodes = 100000");
    let sandbox = TestRepo::empty_in(RUNNER, folder);
    for nth in 0..case.files {
        sandbox.write(&format!("d{}/e{}/f{nth}.txt", nth % 50, nth % 400), format!("file {nth}\n"));
    }
    sandbox.write("done/none", "");
    fs::create_dir(sandbox.outside().join("nodes")).expect("a folder");
    if side == Side::Measured && case.extra == Extra::Check {
        (1..case.nodes).for_each(|nth| write_check(&sandbox, nth));
    }
    let sandbox = setup.start_in(sandbox);
    fs::write(sandbox.outside().join("tree.json"), divided(&sandbox, case.nodes)).expect("a tree");
    sandbox.runner(&["step"]).ok();
    sandbox
}

/// Writes the check of a leaf to where the first session finds it.
fn write_check(sandbox: &TestRepo, nth: usize) {
    let folder = sandbox.outside().join(format!("nodes/leaf-{nth}"));
    let check = format!("[[check]]\nname = \"done\"\ncommand = [\"test\", \"-e\", \"done/leaf-{nth}\"]\n");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("checks.toml"), check).expect("a check");
}

/// The run's tree with a flat row of leaves below its root.
fn divided(sandbox: &TestRepo, nodes: usize) -> String {
    let leaf = |nth: usize| {
        format!(
            "{{\"id\": \"leaf-{nth}\", \"order\": {nth}, \"title\": \"Draw table {nth}\", \"goal\": \
             \"{}\", \"acceptance\": [\"a test shows it\"], \"passes\": false, \"attempts\": 0, \
             \"max_attempts\": 1, \"children\": []}}",
            "Every row is at most 80 columns wide, whatever the screen. ".repeat(6),
        )
    };
    let leaves: Vec<String> = (1..nodes).map(leaf).collect();
    sandbox
        .read(".runner/state/tree.json")
        .replace("\"children\": []", &format!("\"children\": [{}]", leaves.join(",\n")))
}

fn loop_of(sandbox: &TestRepo) -> Command {
    sandbox.runner_command(&["-q", "loop", "--max-iterations", &ITERATIONS.to_string()])
}

/// The same work by a shell, in the same environment.
fn floor_of(sandbox: &TestRepo, round: usize) -> Command {
    let script = format!(
        r#"export RUNNER_OUTPUT="$HOME/answer.json" RUNNER_ITER=0002 GIT_PAGER=cat
        i=0
        while [ $i -lt {ITERATIONS} ]; do
            i=$((i + 1))
            sh "$AROUND/agent.sh" < .runner/GOAL.md > "$HOME/log"
            sh guard.sh > "$HOME/guard.log"
            printf '%s\n' {round}.$i >> .runner/state/tree.json
            printf '%s\n' {round}.$i >> .runner/state/run_state.json
            set -- -c core.fsync={FSYNC} -c gc.auto=0 -c maintenance.auto=false -c user.name=x -c user.email=x
            git "$@" status --porcelain -uall > "$HOME/status"
            git "$@" add -A
            git "$@" commit -q -m "{round}.$i"
        done"#
    );
    let mut command = sandbox.command("sh");
    command.arg("-c").arg(script).env("AROUND", sandbox.outside());
    command
}

/// Seconds for one iteration.
fn timed(command: &mut Command) -> f64 {
    let begin = Instant::now();
    let ran = run(command);
    let took: Duration = begin.elapsed();
    assert!(matches!(ran.code, Some(0 | 4)), "{}", ran.stderr);
    took.as_secs_f64() / ITERATIONS as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// How many git processes an iteration starts: a git in front of git counts them.
fn git_processes(sandbox: &TestRepo) -> f64 {
    let folder = sandbox.outside().join("counting");
    fs::create_dir_all(&folder).expect("a folder");
    let git = run(sandbox.command("sh").args(["-c", "command -v git"])).ok().stdout;
    let (count, shim) = (folder.join("count"), folder.join("git"));
    let text = format!("#!/bin/sh\necho >> '{}'\nexec {} \"$@\"\n", count.display(), git.trim());
    fs::write(&shim, text).expect("a script");
    fs::set_permissions(&shim, fs::Permissions::from_mode(0o755)).expect("permissions");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    run(loop_of(sandbox).env("PATH", path));
    fs::read(&count).map_or(0.0, |lines| lines.len() as f64 / ITERATIONS as f64)
}
