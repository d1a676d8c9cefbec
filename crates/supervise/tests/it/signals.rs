//! Real signals to a runner: stop, kill, hang-up and suspend.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use testkit::processes::{alive, parse_launch_output, wait_for};

use crate::{launch_binary, shell};

#[test]
fn the_first_signal_stops_gracefully_and_sets_the_exit_code() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut fixture = shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
        fixture.spec.grace_ms = 60_000;
        let runner = fixture.start();
        wait_for("the program to start", || fixture.log_ends_with("stdout", "ready\n"));
        runner.signal(signal);
        let (exit_code, stdout) = runner.exit_code_and_stdout();
        assert_eq!(exit_code, Some(code));
        assert_eq!(parse_launch_output(&stdout).unwrap().exit, "was stopped");
        assert_eq!((fixture.alive(), fixture.log("stdout").as_str()), (0, "ready\nbye\n"));
    }
}

#[test]
fn the_second_signal_kills_at_once() {
    let script = "trap 'echo terminated' TERM; echo ready; while :; do sleep 0.01; done";
    let mut fixture = shell(script);
    fixture.spec.grace_ms = 600_000;
    let runner = fixture.start();
    wait_for("the program to start", || fixture.log_ends_with("stdout", "ready\n"));
    runner.signal(Signal::INT);
    wait_for("the first signal", || fixture.log_ends_with("stdout", "terminated\n"));
    runner.signal(Signal::TERM);
    assert_eq!(runner.exit_code_and_stdout().0, Some(130), "the first signal sets the exit code");
    assert_eq!(fixture.alive(), 0);
}

#[test]
fn nohup_works() {
    let fixture = shell("echo ready; while [ ! -e go ]; do sleep 0.01; done");
    let runner =
        fixture.start_with(Command::new("nohup").arg(launch_binary()).stderr(std::process::Stdio::null()));
    wait_for("the program to start", || fixture.log_ends_with("stdout", "ready\n"));
    runner.signal(Signal::HUP);
    std::fs::write(fixture.path("go"), "").unwrap();
    assert_eq!(runner.report().exit, "exited with code 0");
}

#[test]
fn a_file_size_limit_is_reported_and_stops_neither_runner_nor_program() {
    let mut fixture = shell("head -c 5000000 /dev/zero; echo end >&2");
    fixture.spec.bytes_max = 10 << 20;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -f 1000 && exec \"$0\" \"$@\""]).arg(launch_binary());
    let report = fixture.start_with(&mut command).report();
    assert_eq!((report.exit.as_str(), report.stdout.total), ("exited with code 0", 5_000_000));
    assert!(report.log_error.as_ref().unwrap().contains("stdout"), "{report:?}");
    assert_eq!(fixture.log("stderr"), "end\n");
}

#[test]
fn while_the_runner_is_suspended_so_is_the_program_and_its_time() {
    let script = "echo ready; while [ ! -e go ]; do sleep 0.01; done; exit 5";
    let mut fixture = shell(script);
    fixture.spec.wall_ms = 8_000;
    fixture.spec.idle_ms = 8_000;
    let runner = fixture.start();
    wait_for("the program to start", || fixture.log_ends_with("stdout", "ready\n"));
    runner.signal(Signal::TSTP);
    wait_for("the runner to be suspended", || state(runner.pid()) == 'T');
    // A shell that is stopped in the middle of a vfork waits in state D for its stopped child.
    let is_suspended = |pid| matches!(state(pid), 'T' | 'D');
    wait_for("the program to be suspended", || alive(&fixture.token).into_iter().all(is_suspended));
    let since = Instant::now();
    wait_for("more time than the limits allow", || since.elapsed() > Duration::from_secs(9));
    std::fs::write(fixture.path("go"), "").unwrap();
    assert!(fixture.alive() > 0);
    runner.signal(Signal::CONT);
    assert_eq!(runner.report().exit, "exited with code 5");
}

/// The state letter in `/proc/<pid>/status`; a space if the process is gone.
fn state(pid: Pid) -> char {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("State:\t")?.chars().next()).unwrap_or(' ')
}
