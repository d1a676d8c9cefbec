//! Real signals to a real runner.

use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::processes::{Scene, wait_for};

use crate::LAUNCH;

#[test]
fn the_first_signal_stops_politely_and_the_exit_code_names_it() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut scene =
            Scene::sh(LAUNCH, "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
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
    let mut scene = Scene::sh(LAUNCH, script);
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
    let scene = Scene::sh(LAUNCH, "echo ready; while [ ! -e go ]; do sleep 0.01; done");
    let runner = scene.start_with(Command::new("nohup").arg(LAUNCH).stderr(std::process::Stdio::null()));
    wait_for("the program", || scene.has_written("stdout", "ready\n"));
    runner.signal(Signal::HUP);
    std::fs::write(scene.path("go"), "").unwrap();
    assert_eq!(runner.ended()["how"], json!({"exited": 0}));
}

#[test]
fn a_limit_on_file_sizes_does_not_kill_the_runner() {
    let mut scene = Scene::sh(LAUNCH, "head -c 5000000 /dev/zero");
    scene.spec.bytes_max = 10 << 20;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -f 1000 && exec \"$0\" \"$@\"", LAUNCH]);
    let ended = scene.start_with(&mut command).ended();
    assert_eq!((&ended["how"], &ended["stdout"][0]), (&json!({"exited": 0}), &json!(5_000_000)));
    assert!(ended["fault"].is_string(), "{ended}");
}
