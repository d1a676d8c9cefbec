//! However a program ends, none of its processes is left, and the runner does not wait for processes it left behind.

use std::process::Command;

use rustix::process::Signal;
use supervise::LeftoverProcesses;
use testkit::processes::{LaunchProcess, ProcessFixture, children_of, wait_for};

use crate::{launch_binary, program, shell};

/// Starts the seven processes, as the user who runs the tests and as an unprivileged user, and runs the test on each.
fn for_each_user(
    after: &str,
    configure: impl Fn(&mut ProcessFixture),
    test: impl Fn(&ProcessFixture, LaunchProcess),
) {
    for is_unprivileged in [false, true] {
        let mut fixture = ProcessFixture::seven(launch_binary(), after);
        configure(&mut fixture);
        let launch = fixture.share();
        if let Some(program) = fixture.spec.argv.first_mut() {
            *program = launch.display().to_string();
        }
        let mut command = if is_unprivileged && rustix::process::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(&launch);
            command
        } else {
            Command::new(&launch)
        };
        // Without `setpriv` this fails: install it with `apt-get install util-linux`.
        let runner = fixture.start_with(&mut command);
        test(&fixture, runner);
        wait_for("the end of all seven", || fixture.alive() == 0);
    }
}

fn wait_for_seven(fixture: &ProcessFixture) {
    wait_for("all seven", || fixture.log_ends_with("stdout", "seven\n"));
}

#[test]
fn processes_left_behind_are_killed_when_the_program_exits() {
    for_each_user(
        "leave",
        |_| {},
        |fixture, runner| {
            let report = runner.report();
            assert_eq!(fixture.alive(), 0, "all are dead when `run` returns");
            assert_eq!(report.exit, "exited with code 0");
            assert_eq!((report.killed, report.alive), (6, 0));
            assert_eq!(fixture.log("stdout"), "seven\n");
        },
    );
}

#[test]
fn all_processes_are_killed_at_the_time_limit() {
    let configure = |fixture: &mut ProcessFixture| {
        fixture.spec.wall_ms = 4_000;
        fixture.spec.grace_ms = 0;
    };
    for_each_user("stay", configure, |fixture, runner| {
        let report = runner.report();
        assert_eq!(report.exit, "timed out");
        assert_eq!((fixture.alive(), report.alive), (0, 0));
    });
}

#[test]
fn all_processes_are_killed_after_a_graceful_stop() {
    for_each_user(
        "stay",
        |_| {},
        |fixture, mut runner| {
            wait_for_seven(fixture);
            runner.send("stop");
            let report = runner.report();
            assert_eq!(report.exit, "was stopped");
            assert_eq!((fixture.alive(), report.alive), (0, 0));
        },
    );
}

#[test]
fn all_processes_are_killed_when_the_runner_is_killed() {
    for_each_user(
        "stay",
        |_| {},
        |fixture, runner| {
            wait_for_seven(fixture);
            let supervisors = children_of(runner.pid());
            runner.signal(Signal::KILL);
            assert_eq!(runner.exit_code_and_stdout().0, None);
            wait_for("the end of all seven", || fixture.alive() == 0);
            for pid in supervisors {
                wait_for("the supervisor's end", || rustix::process::test_kill_process(pid).is_err());
            }
        },
    );
}

#[test]
fn all_processes_are_killed_when_the_supervisor_is_killed() {
    for_each_user(
        "stay",
        |_| {},
        |fixture, runner| {
            wait_for_seven(fixture);
            for pid in children_of(runner.pid()) {
                rustix::process::kill_process(pid, Signal::KILL).unwrap();
            }
            let report = runner.report();
            assert_eq!(report.exit, "was lost: its supervisor died");
            assert_eq!((fixture.alive(), report.killed), (0, 7));
        },
    );
}

#[test]
fn processes_that_outlive_runner_and_supervisor_are_found_by_their_env_marker() {
    let mut fixture = ProcessFixture::seven(launch_binary(), "stay");
    let marker = fixture.path("output.json");
    fixture.spec.env.push(("RUNNER_OUTPUT".to_owned(), marker.display().to_string()));
    let runner = fixture.start();
    wait_for_seven(&fixture);
    let supervisors = children_of(runner.pid());
    runner.signal(Signal::STOP);
    for pid in supervisors.iter().chain([&runner.pid()]) {
        rustix::process::kill_process(*pid, Signal::KILL).unwrap();
    }
    assert_eq!((runner.exit_code_and_stdout().0, fixture.alive()), (None, 7));
    let other = fixture.path("output");
    assert_eq!(supervise::kill_by_env_marker("RUNNER_OUTPUT".as_ref(), other.as_os_str()).killed, 0);
    assert_eq!(
        supervise::kill_by_env_marker("RUNNER_OUTPUT".as_ref(), marker.as_os_str()),
        LeftoverProcesses { killed: 7, alive: 0 }
    );
    assert_eq!(fixture.alive(), 0);
}

#[test]
fn a_program_that_kills_its_supervisor_is_lost() {
    let fixture = shell("setsid sleep 1000 & kill -9 $PPID; sleep 1000");
    let report = fixture.run();
    assert_eq!((fixture.alive(), report.exit.as_str()), (0, "was lost: its supervisor died"));
}

#[test]
fn a_program_that_kills_its_group_does_not_reach_the_supervisor() {
    let script = "setsid sh -c 'echo >up; exec sleep 1000' & while [ ! -e up ]; do :; done; kill -9 0";
    let fixture = shell(script);
    let report = fixture.run();
    assert_eq!((report.exit.as_str(), report.killed), ("was killed by signal 9", 1));
}

#[test]
fn the_supervisor_ignores_signals() {
    let script =
        "for s in ALRM HUP INT QUIT TERM USR1 USR2; do kill -s $s $PPID; done; echo still here; exit 7";
    let fixture = shell(script);
    assert_eq!(fixture.run().exit, "exited with code 7");
    assert_eq!(fixture.log("stdout"), "still here\n");
}

#[test]
fn the_supervisor_has_a_process_name_of_its_own() {
    let fixture = shell("tr '\\0' ' ' </proc/$PPID/cmdline; cat /proc/$PPID/comm");
    fixture.run();
    assert_eq!(fixture.log("stdout"), "supervise __supervise supervise\n");
}

#[test]
fn a_fork_storm_is_killed() {
    let storm = "storm() { setsid sh -c 'n=0; while [ $n -lt 200 ]; do setsid sleep 1000 & n=$((n+1)); done; wait' \"$0\" & }";
    let mut fixture = shell(&format!("{storm}; storm; storm; storm; sleep 1000"));
    fixture.spec.wall_ms = 700;
    fixture.spec.grace_ms = 0;
    let report = fixture.run();
    assert_eq!((fixture.alive(), report.exit.as_str(), report.alive), (0, "timed out", 0));
}

#[test]
fn a_grandchild_that_holds_the_output_open_does_not_block_the_runner() {
    let fixture = shell("setsid sleep 1000 & echo done");
    let report = fixture.run();
    assert_eq!((report.exit.as_str(), fixture.log("stdout").as_str()), ("exited with code 0", "done\n"));
    assert!(report.elapsed_ms < 10_000, "{report:?}");
}

#[test]
fn orphans_that_exit_are_reaped_at_once() {
    let script = "i=0; while [ $i -lt 50 ]; do (true &); i=$((i+1)); done; \
        until ! grep -lq \"^State:.Z\" $(sed 's| *\\([0-9]\\+\\)|/proc/\\1/status |g' /proc/$PPID/task/$PPID/children) 2>/dev/null; do :; done; echo none";
    let fixture = shell(script);
    assert_eq!(fixture.run().exit, "exited with code 0");
    assert_eq!(fixture.log("stdout"), "none\n");
}

#[test]
fn exit_codes_and_signals_are_reported() {
    assert_eq!(shell("exit 37").run().exit, "exited with code 37");
    assert_eq!(shell("kill -SEGV $$").run().exit, "was killed by signal 11");
}

#[test]
fn a_failed_start_is_reported() {
    let missing = program(&["/no/such/program"]);
    assert_eq!(missing.run().exit, "could not start: No such file or directory (os error 2)");
    for not_executable in ["/etc/passwd", "/etc"] {
        let exit = program(&[not_executable]).run().exit;
        assert_eq!(exit, "could not start: Permission denied (os error 13)");
    }
    let huge = "x".repeat(200_000);
    let long = program(&["/bin/true", &huge]);
    assert_eq!(long.run().exit, "could not start: Argument list too long (os error 7)");
}

#[test]
fn a_missing_folder_or_input_file_is_an_error() {
    let mut fixture = shell("true");
    fixture.spec.working_dir = "/no/such/folder".into();
    assert_eq!(fixture.run_error(), "could not enter `/no/such/folder`");
    let mut fixture = shell("true");
    fixture.spec.stdin = Some("/no/such/file".into());
    assert_eq!(fixture.run_error(), "could not open `/no/such/file`");
}

#[test]
fn the_program_does_not_inherit_the_environment() {
    let mut fixture = program(&["/usr/bin/env"]);
    fixture.spec.env = vec![("ONE".to_owned(), "1\n2".to_owned())];
    fixture.run();
    assert_eq!(fixture.log("stdout"), "ONE=1\n2\n");
}

#[test]
fn the_program_has_no_terminal_and_default_signal_handlers() {
    let script = "(: </dev/tty) 2>/dev/null || echo Terminal: none; exec cat /proc/self/status";
    let fixture = shell(script);
    fixture.run();
    let log = fixture.log("stdout");
    let value = |name: &str| log.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    let mask = |name: &str| u64::from_str_radix(value(name), 16).unwrap();
    assert_eq!((value("Terminal:"), mask("SigBlk:"), mask("SigCgt:")), ("none", 0, 0));
    for signal in [Signal::PIPE, Signal::CHILD, Signal::XFSZ] {
        assert_eq!(mask("SigIgn:") >> (signal.as_raw() - 1) & 1, 0, "{signal:?}");
    }
}

#[test]
fn a_program_that_handles_the_stop_signal_gets_its_grace_period() {
    let mut fixture = shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
    fixture.spec.grace_ms = 60_000;
    let mut runner = fixture.start();
    wait_for("the program to start", || fixture.log_ends_with("stdout", "ready\n"));
    runner.send("stop");
    assert_eq!(runner.report().exit, "was stopped");
    assert_eq!(fixture.log("stdout"), "ready\nbye\n");
}

#[test]
fn an_agent_alone_gets_sigint() {
    // The signal would kill its child if the child got it.
    let script = "trap 'echo interrupted; kill -0 $! && echo child lives; exit 0' INT; \
        sh -c 'trap \"exit 1\" INT; while :; do sleep 0.01; done' & echo ready; while :; do sleep 0.01; done";
    let mut fixture = shell(script);
    fixture.spec.is_agent = true;
    fixture.spec.grace_ms = 60_000;
    let mut runner = fixture.start();
    wait_for("the program to start", || fixture.log_ends_with("stdout", "ready\n"));
    runner.send("stop");
    assert_eq!(runner.report().exit, "was stopped");
    assert_eq!(fixture.log("stdout"), "ready\ninterrupted\nchild lives\n");
}

#[test]
fn unresponsive_process_is_killed_after_grace_or_second_stop() {
    for commands in [&["stop"][..], &["stop", "kill"], &["kill"]] {
        let mut fixture = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
        fixture.spec.grace_ms = if commands.len() == 1 { 50 } else { 600_000 };
        let mut runner = fixture.start();
        wait_for("the program to start", || fixture.log_ends_with("stdout", "ready\n"));
        commands.iter().for_each(|command| runner.send(command));
        assert_eq!(runner.report().exit, "was stopped");
        assert_eq!(fixture.alive(), 0);
    }
}

#[test]
fn a_suspended_supervisor_does_not_block_the_runner() {
    let mut fixture = shell("kill -STOP $PPID; setsid sleep 1000 & echo ready; sleep 1000");
    fixture.spec.wall_ms = 100;
    fixture.spec.grace_ms = 0;
    let report = fixture.run();
    assert_eq!((fixture.alive(), report.exit.as_str()), (0, "was lost: its supervisor died"));
}

#[test]
fn an_idle_program_is_stopped_and_an_active_one_is_not() {
    let mut idle = shell("echo once; sleep 1000");
    idle.spec.idle_ms = 300;
    let report = idle.run();
    assert_eq!(report.exit, "was idle for too long");
    assert!(report.elapsed_ms >= 300, "{report:?}");

    let mut printing = shell("i=0; while [ $i -lt 10 ]; do echo $i >&2; sleep 0.5; i=$((i+1)); done");
    printing.spec.idle_ms = 4_000;
    assert_eq!(printing.run().exit, "exited with code 0");

    // Silent, and it changes no file: a grandchild burns CPU time while its parents wait.
    let mut busy =
        shell("sh -c 'end=$(($(date +%s) + 4)); while [ $(date +%s) -lt $end ]; do :; done' & wait; exit 7");
    busy.spec.idle_ms = 1_000;
    let report = busy.run();
    assert_eq!(report.exit, "exited with code 7", "{report:?}");
    assert!(report.elapsed_ms >= 3_000, "{report:?}");

    let mut done = shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exec sleep 1000");
    done.spec.idle_ms = 1_000;
    let report = done.run();
    assert_eq!(report.exit, "was idle for too long", "what it used before does not count for ever");

    let mut writing = shell("sleep 1000");
    writing.spec.idle_ms = 100;
    writing.spec.file_changes = 3;
    let report = writing.run();
    assert_eq!(report.exit, "was idle for too long");
    assert!(report.elapsed_ms >= 400, "{report:?}");
}
