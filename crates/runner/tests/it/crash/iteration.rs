//! An iteration that dies at any point is finished by the next command: nothing lost, nothing twice, nobody asked.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use testkit::oracle::{assert_sound, processes_of};
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;

/// The points of an iteration, in the order in which they are reached.
const POINTS: [&str; 10] = [
    "iter.begun",
    "iter.ended",
    "iter.guard",
    "iter.commit",
    "move.journal",
    "move.branch",
    "move.documents",
    "move.head",
    "move.index-lock",
    "move.index",
];
/// The points that only a start reaches. They have their own tests.
const OF_START: [&str; 2] = ["start.commit", "move.files"];

/// What an iteration comes to if nothing happens to it, and what follows.
struct Kind {
    agent: &'static str,
    guard: &'static str,
    outcomes: &'static [&'static str],
    has_guard: bool,
}

/// What every agent does: it counts its sessions, and works.
const WORK: &str = "echo >> $AROUND/sessions; nth=$(wc -l < $AROUND/sessions); echo $nth >> work; rm -f old; mkdir -p new; echo $nth > new/$nth";

const DECOMPOSITION: Kind = Kind {
    agent: "case $nth in 1) split ;; *) answer done ;; esac",
    guard: "true",
    outcomes: &["decomposed", "passed", "passed"],
    has_guard: false,
};
const PASS: Kind = Kind { agent: "answer done", guard: "true", outcomes: &["passed"], has_guard: true };
const FAILED_GUARD: Kind = Kind {
    agent: "case $nth in 1) ;; *) touch ok ;; esac; answer done",
    guard: "echo no; test -f ok",
    outcomes: &["guard_failed", "passed"],
    has_guard: true,
};

impl Kind {
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
    let ran = fail_at(sandbox, "RUNNER_TEST_CRASH_AT", point);
    assert_eq!(ran.code, None, "{point} was not reached: {}{}", ran.stdout, ran.stderr);
}

/// After whatever happened: the loop ends by itself, every session's work is there once, and no session was
/// repeated or forgotten. `interrupted` iterations are those whose session never ended.
fn assert_goes_on(sandbox: &TestRepo, kind: &Kind, interrupted: usize, point: &str) {
    let ran = sandbox.runner(&["loop"]);
    assert_eq!(ran.code, Some(0), "{point}: {}{}", ran.stdout, ran.stderr);
    let outcomes = sandbox.outcomes();
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "interrupted").count(), interrupted, "{point}");
    let told: Vec<&str> = outcomes.iter().map(String::as_str).filter(|one| *one != "interrupted").collect();
    assert_eq!(told, kind.outcomes, "{point}");
    let sessions = std::fs::read_to_string(sandbox.outside().join("sessions")).unwrap().lines().count();
    let work: String = (1..=sessions).map(|nth| format!("{nth}\n")).collect();
    assert_eq!(sandbox.read("work"), work, "{point}");
    assert!(!sandbox.path("old").exists() && sandbox.path(&format!("new/{sessions}")).exists(), "{point}");
    assert_eq!(sandbox.git(&["for-each-ref", "refs/runner"]), "", "{point}: nothing foreign was found");
    assert_sound(sandbox);
}

fn assert_survives_every_crash(kind: &Kind) {
    for point in kind.points() {
        let sandbox = kind.setup().start();
        crash_at(&sandbox, point);
        assert_goes_on(&sandbox, kind, usize::from(point == "iter.begun"), point);
        let sessions = std::fs::read_to_string(sandbox.outside().join("sessions")).unwrap().lines().count();
        assert_eq!(sessions, kind.outcomes.len(), "{point}: no session was made twice");
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
        ("iter.begun", "move.branch"),
        ("iter.ended", "iter.guard"),
        ("iter.ended", "move.journal"),
        ("iter.ended", "move.index-lock"),
        ("iter.guard", "iter.guard"),
        ("iter.guard", "move.head"),
        ("iter.commit", "iter.commit"),
        ("iter.commit", "move.index"),
        ("move.journal", "move.documents"),
        ("move.branch", "move.head"),
        ("move.index-lock", "move.index-lock"),
    ];
    for (first, second) in pairs {
        let sandbox = FAILED_GUARD.setup().start();
        crash_at(&sandbox, first);
        crash_at(&sandbox, second);
        let interrupted = usize::from(first == "iter.begun");
        assert_goes_on(&sandbox, &FAILED_GUARD, interrupted, &format!("{first}, {second}"));
    }
}

#[test]
fn a_disk_that_is_full_from_any_point_on_costs_nothing() {
    for point in FAILED_GUARD.points() {
        let sandbox = FAILED_GUARD.setup().start();
        let ran = fail_at(&sandbox, "RUNNER_TEST_FULL_AT", point);
        assert_eq!(ran.code, Some(1), "{point}: {}{}", ran.stdout, ran.stderr);
        assert!(
            ran.stderr.starts_with("error: ") && !ran.stderr.contains("panicked"),
            "{point}: {}",
            ran.stderr
        );
        // As long as it is full, nothing goes on and nothing breaks.
        for _ in 0..2 {
            let mut full = sandbox.command("prlimit");
            full.args(["--fsize=0:0", RUNNER, "loop"]);
            let ran = run(&mut full);
            assert_eq!(ran.code, Some(1), "{point}: {}{}", ran.stdout, ran.stderr);
        }
        let interrupted = usize::from(point == "iter.begun");
        assert_goes_on(&sandbox, &FAILED_GUARD, interrupted, point);
    }
}

/// A file system with little room, until it is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(place: &Path, size: &str) -> Self {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"]).arg(place);
        let ran = run(&mut mount);
        assert_eq!(ran.code, Some(0), "this test mounts a small tmpfs and must run as root: {}", ran.stderr);
        Self(place.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_the_agent_or_the_guard_fills_costs_nothing() {
    let fill = "cat /dev/zero > ignored 2> /dev/null";
    let (agent, guard) = (FAILED_GUARD.agent, FAILED_GUARD.guard);
    let by_agent =
        RunBuilder::new(RUNNER).agent(&format!("{WORK}; test $nth -gt 1 || {fill}; {agent}")).guard(guard);
    let filling = format!("test -e $HOME/../filled || {{ touch $HOME/../filled; {fill}; }}; {guard}");
    let by_guard = RunBuilder::new(RUNNER).agent(&format!("{WORK}; {agent}")).guard(&filling);
    for (who, setup) in [("agent", by_agent), ("guard", by_guard)] {
        let sandbox = TestRepo::empty(RUNNER);
        let _disk = SmallDisk::mount(sandbox.root(), "4m");
        let sandbox = setup.file("old", "old\n").start_in(sandbox);
        let ran = sandbox.runner(&["loop"]);
        assert_eq!(ran.code, Some(1), "{who}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("No space left on device"), "{who}: {}", ran.stderr);
        assert_eq!(sandbox.runner(&["loop"]).code, Some(1), "{who}: the disk is still full");
        std::fs::remove_file(sandbox.path("ignored")).unwrap();
        let ran = sandbox.runner(&["loop"]).ok();
        assert_eq!(sandbox.read("work").lines().next(), Some("1"), "{who}: {}", ran.stdout);
        assert_sound(&sandbox);
    }
}

/// Ends all processes of a sandbox as one would with a container: none of them sees another one die.
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
fn a_session_survives_the_death_of_the_runner_and_of_everything() {
    for everything in [false, true] {
        let agent = format!(
            "{WORK}; if test $nth = 1; then touch $AROUND/begun; setsid sleep 999; fi; {}",
            PASS.agent
        );
        let sandbox = RunBuilder::new(RUNNER).agent(&agent).file("old", "old\n").start();
        die_when(&sandbox, "begun", everything);
        assert_goes_on(&sandbox, &PASS, 1, "session");
        assert_eq!(sandbox.outcomes(), ["interrupted", "passed"]);
    }
}

#[test]
fn a_guard_survives_the_death_of_the_runner_and_of_everything() {
    for everything in [false, true] {
        let guard = "test -e $HOME/../guarded || { touch $HOME/../guarded; setsid sleep 999; }; test -e ok";
        let setup = RunBuilder::new(RUNNER).agent(&format!("{WORK}; {}", FAILED_GUARD.agent)).guard(guard);
        let sandbox = setup.file("old", "old\n").start();
        die_when(&sandbox, "guarded", everything);
        assert_goes_on(&sandbox, &FAILED_GUARD, 0, "guard");
    }
}

fn die_when(sandbox: &TestRepo, file: &str, everything: bool) {
    if !everything {
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
fn every_point_in_the_source_is_in_a_list() {
    fn collect(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                collect(&entry, found);
                continue;
            }
            let text = std::fs::read_to_string(&entry).unwrap();
            let calls = text.split("failpoint::reach(\"").skip(1);
            found.extend(calls.map(|rest| rest.split('"').next().unwrap().to_owned()));
        }
    }
    let mut found = BTreeSet::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../runner-host/src"), &mut found);
    let of_others =
        OF_START.into_iter().chain(crate::commands::edit::POINTS).chain(crate::behaviour::baseline::POINTS);
    let of_others = of_others.chain(crate::commands::fork::POINTS);
    let listed: BTreeSet<String> = POINTS.into_iter().chain(of_others).map(str::to_owned).collect();
    assert_eq!(found, listed);
}
