//! Real signals to a real runner.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use testkit::processes::{ProcessFixture, alive, wait_for};

use crate::LAUNCH;

#[test]
fn the_first_signal_stops_politely_and_the_exit_code_names_it() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut scene = ProcessFixture::sh(
            LAUNCH,
            "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done",
        );
        scene.spec.grace_ms = 60_000;
        let runner = scene.start();
        wait_for("the program", || scene.has_written("stdout", "ready\n"));
        runner.signal(signal);
        let (left, said) = runner.left();
        assert_eq!(left, Some(code));
        assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["how"], "stopped");
        assert_eq!((scene.alive(), scene.log("stdout").as_str()), (0, "ready\nbye\n"));
    }
}

#[test]
fn the_second_signal_ends_at_once() {
    let script = "trap 'echo asked' TERM; echo ready; while :; do sleep 0.01; done";
    let mut scene = ProcessFixture::sh(LAUNCH, script);
    scene.spec.grace_ms = 600_000;
    let runner = scene.start();
    wait_for("the program", || scene.has_written("stdout", "ready\n"));
    runner.signal(Signal::INT);
    wait_for("the first signal", || scene.has_written("stdout", "asked\n"));
    runner.signal(Signal::TERM);
    assert_eq!(runner.left().0, Some(130), "the first signal names the end");
    assert_eq!(scene.alive(), 0);
}

#[test]
fn nohup_means_what_it_says() {
    let scene = ProcessFixture::sh(LAUNCH, "echo ready; while [ ! -e go ]; do sleep 0.01; done");
    let runner = scene.start_with(Command::new("nohup").arg(LAUNCH).stderr(std::process::Stdio::null()));
    wait_for("the program", || scene.has_written("stdout", "ready\n"));
    runner.signal(Signal::HUP);
    std::fs::write(scene.path("go"), "").unwrap();
    assert_eq!(runner.ended()["how"], json!({"exited": 0}));
}

#[test]
fn a_limit_on_file_sizes_is_told_and_stops_neither_runner_nor_program() {
    let mut scene = ProcessFixture::sh(LAUNCH, "head -c 5000000 /dev/zero; echo end >&2");
    scene.spec.bytes_max = 10 << 20;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -f 1000 && exec \"$0\" \"$@\"", LAUNCH]);
    let ended = scene.start_with(&mut command).ended();
    assert_eq!((&ended["how"], &ended["stdout"][0]), (&json!({"exited": 0}), &json!(5_000_000)));
    assert!(ended["fault"].as_str().unwrap().contains("stdout"), "{ended}");
    assert_eq!(scene.log("stderr"), "end\n");
}

#[test]
fn while_the_runner_stands_still_so_does_the_program_and_its_time() {
    let script = "echo ready; while [ ! -e go ]; do sleep 0.01; done; exit 5";
    let mut scene = ProcessFixture::sh(LAUNCH, script);
    (scene.spec.wall_ms, scene.spec.idle_ms) = (8_000, 8_000);
    let runner = scene.start();
    wait_for("the program", || scene.has_written("stdout", "ready\n"));
    runner.signal(Signal::TSTP);
    wait_for("the runner to stand still", || state(runner.pid()) == 'T');
    // A shell that is stopped in the middle of starting a command waits for a child that is stopped, too.
    let is_still = |pid| matches!(state(pid), 'T' | 'D');
    wait_for("the program to stand still", || alive(&scene.token).into_iter().all(is_still));
    let since = Instant::now();
    wait_for("more time than the program has", || since.elapsed() > Duration::from_secs(9));
    std::fs::write(scene.path("go"), "").unwrap();
    assert!(scene.alive() > 0);
    runner.signal(Signal::CONT);
    assert_eq!(runner.ended()["how"], json!({"exited": 5}));
}

/// How the system names what a process does; a space for one that is gone.
fn state(pid: Pid) -> char {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("State:\t")?.chars().next()).unwrap_or(' ')
}
