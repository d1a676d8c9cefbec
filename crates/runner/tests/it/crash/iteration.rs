//! A crash at any point of an iteration: the next command finishes it, loses nothing and repeats nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use testkit::oracle::{assert_sound, processes_of};
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;

/// The failpoints of an iteration, in order.
const POINTS: [&str; 11] = [
    "iter.begun",
    "iter.ended",
    "iter.stored",
    "iter.guard",
    "iter.commit",
    "publish.journal",
    "publish.branch",
    "publish.documents",
    "publish.head",
    "publish.index-lock",
    "publish.index",
];
/// The failpoints that only a start reaches; crash/start.rs tests them.
const START_POINTS: [&str; 2] = ["start.commit", "publish.files"];
/// The failpoint that only an outage reaches; behaviour/progress.rs tests it.
const OUTAGE_POINTS: [&str; 1] = ["iter.discarded"];

/// A run, and its outcomes without a crash.
struct Scenario {
    agent: &'static str,
    guard: &'static str,
    outcomes: &'static [&'static str],
    has_guard: bool,
}

/// What every agent does: count its sessions, then change files.
const WORK: &str = "echo >> $AROUND/sessions; nth=$(wc -l < $AROUND/sessions); echo $nth >> work; rm -f old; mkdir -p new; echo $nth > new/$nth";

const DECOMPOSITION: Scenario = Scenario {
    agent: "case $nth in 1) split ;; *) answer done ;; esac",
    guard: "true",
    outcomes: &["decomposed", "passed", "passed"],
    has_guard: false,
};
const PASS: Scenario =
    Scenario { agent: "answer done", guard: "true", outcomes: &["passed"], has_guard: true };
const FAILED_GUARD: Scenario = Scenario {
    agent: "case $nth in 1) ;; *) touch ok ;; esac; answer done",
    guard: "echo no; test -f ok",
    outcomes: &["guard_failed", "passed"],
    has_guard: true,
};

impl Scenario {
    fn setup(&self) -> RunBuilder {
        RunBuilder::new(RUNNER)
            .agent(&format!("{WORK}; {}", self.agent))
            .guard(self.guard)
            .file("old", "old\n")
    }

    fn points(&self) -> Vec<&'static str> {
        POINTS.into_iter().filter(|point| self.has_guard || *point != "iter.guard").collect()
    }
}

fn fail_at(sandbox: &TestRepo, variable: &str, point: &str) -> RunOutput {
    run(sandbox.runner_command(&["loop"]).env(variable, point))
}

fn crash_at(sandbox: &TestRepo, point: &str) {
    let output = fail_at(sandbox, "RUNNER_TEST_CRASH_AT", point);
    assert_eq!(output.code, None, "{point} was not reached: {}{}", output.stdout, output.stderr);
}

/// After a crash the loop completes, the work of every session is there once, and no session was repeated or lost.
/// `interrupted` is the number of iterations whose session did not end.
fn assert_completes(sandbox: &TestRepo, scenario: &Scenario, interrupted: usize, point: &str) {
    let output = sandbox.runner(&["loop"]);
    assert_eq!(output.code, Some(0), "{point}: {}{}", output.stdout, output.stderr);
    let outcomes = sandbox.outcomes();
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "interrupted").count(), interrupted, "{point}");
    let completed: Vec<&str> =
        outcomes.iter().map(String::as_str).filter(|outcome| *outcome != "interrupted").collect();
    assert_eq!(completed, scenario.outcomes, "{point}");
    let sessions = std::fs::read_to_string(sandbox.outside().join("sessions")).unwrap().lines().count();
    let work: String = (1..=sessions).map(|nth| format!("{nth}\n")).collect();
    assert_eq!(sandbox.read("work"), work, "{point}");
    assert!(!sandbox.path("old").exists() && sandbox.path(&format!("new/{sessions}")).exists(), "{point}");
    assert_eq!(
        sandbox.git(&["for-each-ref", "refs/runner/demo/found"]),
        "",
        "{point}: no stray files were stored"
    );
    assert_sound(sandbox);
}

fn assert_survives_every_crash(scenario: &Scenario) {
    for point in scenario.points() {
        let sandbox = scenario.setup().start();
        crash_at(&sandbox, point);
        assert_completes(&sandbox, scenario, usize::from(point == "iter.begun"), point);
        let sessions = std::fs::read_to_string(sandbox.outside().join("sessions")).unwrap().lines().count();
        assert_eq!(sessions, scenario.outcomes.len(), "{point}: no session ran twice");
    }
}

#[test]
fn a_decomposition_survives_a_crash_at_every_point() {
    assert_survives_every_crash(&DECOMPOSITION);
}

#[test]
fn a_pass_survives_a_crash_at_every_point() {
    assert_survives_every_crash(&PASS);
}

#[test]
fn a_failed_guard_survives_a_crash_at_every_point() {
    assert_survives_every_crash(&FAILED_GUARD);
}

#[test]
fn a_crash_during_recovery_is_recovered_too() {
    let pairs = [
        ("iter.begun", "iter.commit"),
        ("iter.begun", "publish.branch"),
        ("iter.ended", "iter.guard"),
        ("iter.ended", "publish.journal"),
        ("iter.ended", "publish.index-lock"),
        ("iter.guard", "iter.guard"),
        ("iter.guard", "publish.head"),
        ("iter.commit", "iter.commit"),
        ("iter.commit", "publish.index"),
        ("publish.journal", "publish.documents"),
        ("publish.branch", "publish.head"),
        ("publish.index-lock", "publish.index-lock"),
    ];
    for (first, second) in pairs {
        let sandbox = FAILED_GUARD.setup().start();
        crash_at(&sandbox, first);
        crash_at(&sandbox, second);
        let interrupted = usize::from(first == "iter.begun");
        assert_completes(&sandbox, &FAILED_GUARD, interrupted, &format!("{first}, {second}"));
    }
}

#[test]
fn a_disk_that_is_full_from_any_point_on_loses_nothing() {
    for point in FAILED_GUARD.points() {
        let sandbox = FAILED_GUARD.setup().start();
        let output = fail_at(&sandbox, "RUNNER_TEST_FULL_AT", point);
        assert_eq!(output.code, Some(1), "{point}: {}{}", output.stdout, output.stderr);
        assert!(
            output.stderr.starts_with("error: ") && !output.stderr.contains("panicked"),
            "{point}: {}",
            output.stderr
        );
        // While it is full, every command fails and changes nothing.
        for _ in 0..2 {
            let mut full = sandbox.command("prlimit");
            full.args(["--fsize=0:0", RUNNER, "loop"]);
            let output = run(&mut full);
            assert_eq!(output.code, Some(1), "{point}: {}{}", output.stdout, output.stderr);
        }
        let interrupted = usize::from(point == "iter.begun");
        assert_completes(&sandbox, &FAILED_GUARD, interrupted, point);
    }
}

/// A small tmpfs, unmounted on drop.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(folder: &Path, size: &str) -> Self {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"]).arg(folder);
        let output = run(&mut mount);
        assert_eq!(
            output.code,
            Some(0),
            "this test mounts a small tmpfs and must run as root: {}",
            output.stderr
        );
        Self(folder.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_disk_filled_by_the_agent_or_the_guard_loses_nothing() {
    let fill = "cat /dev/zero > ignored 2> /dev/null";
    let agent = FAILED_GUARD.agent;
    let guard = FAILED_GUARD.guard;
    let by_agent =
        RunBuilder::new(RUNNER).agent(&format!("{WORK}; test $nth -gt 1 || {fill}; {agent}")).guard(guard);
    let filling = format!("test -e $HOME/../filled || {{ touch $HOME/../filled; {fill}; }}; {guard}");
    let by_guard = RunBuilder::new(RUNNER).agent(&format!("{WORK}; {agent}")).guard(&filling);
    for (who, setup) in [("agent", by_agent), ("guard", by_guard)] {
        let sandbox = TestRepo::empty(RUNNER);
        let _disk = SmallDisk::mount(sandbox.root(), "24m");
        let sandbox = setup.file("old", "old\n").start_in(sandbox);
        let output = sandbox.runner(&["loop"]);
        assert_eq!(output.code, Some(1), "{who}: {}{}", output.stdout, output.stderr);
        assert!(output.stderr.contains("No space left on device"), "{who}: {}", output.stderr);
        assert_eq!(sandbox.runner(&["loop"]).code, Some(1), "{who}: the disk is still full");
        std::fs::remove_file(sandbox.path("ignored")).unwrap();
        let output = sandbox.runner(&["loop"]).ok();
        assert_eq!(sandbox.read("work").lines().next(), Some("1"), "{who}: {}", output.stdout);
        assert_sound(&sandbox);
    }
}

#[test]
fn logs_give_way_to_the_commit_on_a_full_disk() {
    // The guard fills the disk; what the agent printed is all that can be removed.
    let agent = format!("{WORK}; head -c 8000000 /dev/zero | tr '\\0' x; {}", PASS.agent);
    let guard = "test ! -e work || cat /dev/zero > ignored 2> /dev/null; true";
    let sandbox = TestRepo::empty(RUNNER);
    let _disk = SmallDisk::mount(sandbox.root(), "40m");
    let sandbox = RunBuilder::new(RUNNER).agent(&agent).guard(guard).file("old", "old\n").start_in(sandbox);
    let output = sandbox.runner(&["loop"]).ok();
    let dropped = sandbox.meta(1)["logs_dropped"].to_string();
    assert!(dropped.contains("executor.log: removed from a full disk"), "{dropped}: {}", output.stdout);
    assert_eq!(sandbox.outcomes(), ["passed"]);
    assert_eq!(sandbox.git(&["show", "runner/demo:work"]), "1");
    std::fs::remove_file(sandbox.path("ignored")).unwrap();
    assert_sound(&sandbox);
}

/// Kills all processes of a test repository at once, as stopping a container does: none sees another one die.
fn kill_all(sandbox: &TestRepo) {
    wait_for("everything to be dead", || {
        let all = processes_of(sandbox.outside());
        let pids = all.iter().filter_map(|line| line.trim_start_matches("/proc/").split(':').next());
        for signal in ["-STOP", "-KILL"] {
            let mut kill = std::process::Command::new("kill");
            let _ = kill.arg(signal).args(pids.clone()).stderr(Stdio::null()).status();
        }
        all.is_empty()
    });
}

#[test]
fn a_session_is_recovered_if_the_runner_or_every_process_is_killed() {
    for killed in [Killed::Runner, Killed::Everything] {
        let agent = format!(
            "{WORK}; if test $nth = 1; then touch $AROUND/begun; setsid sleep 999; fi; {}",
            PASS.agent
        );
        let sandbox = RunBuilder::new(RUNNER).agent(&agent).file("old", "old\n").start();
        kill_when(&sandbox, "begun", killed);
        assert_completes(&sandbox, &PASS, 1, "session");
        assert_eq!(sandbox.outcomes(), ["interrupted", "passed"]);
    }
}

#[test]
fn a_guard_run_is_recovered_if_the_runner_or_every_process_is_killed() {
    for killed in [Killed::Runner, Killed::Everything] {
        let guard = "test -e $HOME/../guarded || { touch $HOME/../guarded; setsid sleep 999; }; test -e ok";
        let setup = RunBuilder::new(RUNNER).agent(&format!("{WORK}; {}", FAILED_GUARD.agent)).guard(guard);
        let sandbox = setup.file("old", "old\n").start();
        kill_when(&sandbox, "guarded", killed);
        assert_completes(&sandbox, &FAILED_GUARD, 0, "guard");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Killed {
    Runner,
    Everything,
}

/// Kills a loop as soon as this file exists.
fn kill_when(sandbox: &TestRepo, file: &str, killed: Killed) {
    if killed == Killed::Runner {
        sandbox.kill_when(&["loop"], file);
        return;
    }
    let mut command = sandbox.runner_command(&["loop"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(file, || sandbox.outside().join(file).exists());
    kill_all(sandbox);
    child.wait().unwrap();
}

#[test]
fn every_failpoint_in_the_source_is_tested() {
    fn collect(folder: &Path, points: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                collect(&entry, points);
                continue;
            }
            let text = std::fs::read_to_string(&entry).unwrap();
            let calls = text.split("failpoint::reach(\"").skip(1);
            points.extend(calls.map(|rest| rest.split('"').next().unwrap().to_owned()));
        }
    }
    let mut points = BTreeSet::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../runner-host/src"), &mut points);
    let of_others = START_POINTS
        .into_iter()
        .chain(crate::commands::edit::POINTS)
        .chain(crate::behaviour::baseline::POINTS);
    let of_others = of_others.chain(crate::commands::fork::POINTS).chain(OUTAGE_POINTS);
    let of_others = of_others.chain([crate::behaviour::checks::POINT, crate::behaviour::review::POINT]);
    let of_others = of_others.chain([crate::behaviour::ratchet::POINT, crate::commands::queued_notes::POINT]);
    let listed: BTreeSet<String> = POINTS.into_iter().chain(of_others).map(str::to_owned).collect();
    assert_eq!(points, listed);
}
