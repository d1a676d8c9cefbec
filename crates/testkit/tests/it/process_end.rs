//! However a program ends, nothing of it is left, and nobody waits for what it left behind.

use std::process::Command;

use rustix::process::Signal;
use serde_json::json;
use supervise::{self, LeftoverProcesses};
use testkit::processes::{ProcessFixture, children_of, wait_for};

use crate::LAUNCH;

/// Starts the seven, as the user running the tests and as one without rights, and gives them to the test.
fn for_each_user(
    after: &str,
    change: impl Fn(&mut ProcessFixture),
    test: impl Fn(&ProcessFixture, testkit::processes::RunnerProcess),
) {
    for is_nobody in [false, true] {
        let mut scene = ProcessFixture::seven(LAUNCH, after);
        change(&mut scene);
        let launch = scene.share();
        if let Some(program) = scene.spec.argv.first_mut() {
            *program = launch.display().to_string();
        }
        let mut command = if is_nobody && rustix::process::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(&launch);
            command
        } else {
            Command::new(&launch)
        };
        // Without `setpriv` this fails: it comes with `apt-get install util-linux`.
        let runner = scene.start_with(&mut command);
        test(&scene, runner);
        wait_for("the end of all seven", || scene.alive() == 0);
    }
}

#[test]
fn what_the_program_leaves_behind_dies_with_it() {
    for_each_user(
        "leave",
        |_| {},
        |scene, runner| {
            let ended = runner.ended();
            assert_eq!(scene.alive(), 0, "all are dead when the runner goes on");
            assert_eq!(
                (&ended["how"], &ended["killed"], &ended["alive"]),
                (&json!({"exited": 0}), &json!(6), &json!(0))
            );
            assert_eq!(scene.log("stdout"), "seven\n");
        },
    );
}

#[test]
fn all_die_when_time_is_up() {
    let change = |scene: &mut ProcessFixture| (scene.spec.wall_ms, scene.spec.grace_ms) = (4_000, 0);
    for_each_user("stay", change, |scene, runner| {
        let ended = runner.ended();
        assert_eq!((scene.alive(), &ended["how"], &ended["alive"]), (0, &json!("timed out"), &json!(0)));
    });
}

#[test]
fn all_die_when_the_user_stops_politely() {
    for_each_user(
        "stay",
        |_| {},
        |scene, mut runner| {
            wait_for("all seven", || scene.has_written("stdout", "seven\n"));
            runner.ask("stop");
            let ended = runner.ended();
            assert_eq!((scene.alive(), &ended["how"], &ended["alive"]), (0, &json!("stopped"), &json!(0)));
        },
    );
}

#[test]
fn all_die_when_the_runner_is_killed() {
    for_each_user(
        "stay",
        |_| {},
        |scene, runner| {
            wait_for("all seven", || scene.has_written("stdout", "seven\n"));
            let supervisors = children_of(runner.pid());
            runner.signal(Signal::KILL);
            assert_eq!(runner.left().0, None);
            wait_for("the end of all seven", || scene.alive() == 0);
            for pid in supervisors {
                wait_for("the supervisor's end", || rustix::process::test_kill_process(pid).is_err());
            }
        },
    );
}

#[test]
fn all_die_when_the_program_kills_its_supervisor() {
    for_each_user(
        "stay",
        |_| {},
        |scene, runner| {
            wait_for("all seven", || scene.has_written("stdout", "seven\n"));
            for pid in children_of(runner.pid()) {
                rustix::process::kill_process(pid, Signal::KILL).unwrap();
            }
            let ended = runner.ended();
            assert_eq!((scene.alive(), &ended["how"], &ended["killed"]), (0, &json!("lost"), &json!(7)));
        },
    );
}

#[test]
fn what_outlives_both_runner_and_supervisor_is_found_by_its_mark() {
    let mut scene = ProcessFixture::seven(LAUNCH, "stay");
    scene
        .spec
        .environment
        .push(("RUNNER_OUTPUT".to_owned(), scene.path("output.json").display().to_string()));
    let runner = scene.start();
    wait_for("all seven", || scene.has_written("stdout", "seven\n"));
    let supervisors = children_of(runner.pid());
    runner.signal(Signal::STOP);
    for pid in supervisors.iter().chain([&runner.pid()]) {
        rustix::process::kill_process(*pid, Signal::KILL).unwrap();
    }
    assert_eq!((runner.left().0, scene.alive()), (None, 7));
    let other = scene.path("output");
    assert_eq!(supervise::kill_by_env_marker("RUNNER_OUTPUT".as_ref(), other.as_os_str()).killed, 0);
    let mark = scene.path("output.json");
    assert_eq!(
        supervise::kill_by_env_marker("RUNNER_OUTPUT".as_ref(), mark.as_os_str()),
        LeftoverProcesses { killed: 7, alive: 0 }
    );
    assert_eq!(scene.alive(), 0);
}

#[test]
fn a_program_that_kills_its_parent_is_noticed() {
    let scene = ProcessFixture::sh(LAUNCH, "setsid sleep 1000 & kill -9 $PPID; sleep 1000");
    let ended = scene.run();
    assert_eq!((scene.alive(), &ended["how"]), (0, &json!("lost")));
}

#[test]
fn a_program_that_kills_its_own_group_harms_only_itself() {
    let script = "setsid sh -c 'echo >up; exec sleep 1000' & while [ ! -e up ]; do :; done; kill -9 0";
    let scene = ProcessFixture::sh(LAUNCH, script);
    let ended = scene.run();
    assert_eq!((&ended["how"], &ended["killed"]), (&json!({"signalled": 9}), &json!(1)));
}

#[test]
fn signals_to_the_supervisor_are_shrugged_off() {
    let script =
        "for s in ALRM HUP INT QUIT TERM USR1 USR2; do kill -s $s $PPID; done; echo still here; exit 7";
    let scene = ProcessFixture::sh(LAUNCH, script);
    assert_eq!(scene.run()["how"], json!({"exited": 7}));
    assert_eq!(scene.log("stdout"), "still here\n");
}

#[test]
fn the_supervisor_does_not_bear_the_runners_name() {
    let scene = ProcessFixture::sh(LAUNCH, "tr '\\0' ' ' </proc/$PPID/cmdline; cat /proc/$PPID/comm");
    scene.run();
    assert_eq!(scene.log("stdout"), "supervise __supervise supervise\n");
}

#[test]
fn a_fork_storm_ends() {
    let storm = "storm() { setsid sh -c 'n=0; while [ $n -lt 200 ]; do setsid sleep 1000 & n=$((n+1)); done; wait' \"$0\" & }";
    let mut scene = ProcessFixture::sh(LAUNCH, &format!("{storm}; storm; storm; storm; sleep 1000"));
    (scene.spec.wall_ms, scene.spec.grace_ms) = (700, 0);
    let ended = scene.run();
    assert_eq!((scene.alive(), &ended["how"], &ended["alive"]), (0, &json!("timed out"), &json!(0)));
}

#[test]
fn nobody_waits_for_a_grandchild_that_holds_the_output_open() {
    let scene = ProcessFixture::sh(LAUNCH, "setsid sleep 1000 & echo done");
    let ended = scene.run();
    assert_eq!((&ended["how"], scene.log("stdout").as_str()), (&json!({"exited": 0}), "done\n"));
    assert!(ended["ms"].as_u64().unwrap() < 10_000, "{ended}");
}

#[test]
fn orphans_that_end_meanwhile_are_no_zombies_at_the_end() {
    let script = "i=0; while [ $i -lt 50 ]; do (true &); i=$((i+1)); done; \
        until ! grep -lq \"^State:.Z\" $(sed 's| *\\([0-9]\\+\\)|/proc/\\1/status |g' /proc/$PPID/task/$PPID/children) 2>/dev/null; do :; done; echo none";
    let scene = ProcessFixture::sh(LAUNCH, script);
    assert_eq!(scene.run()["how"], json!({"exited": 0}));
    assert_eq!(scene.log("stdout"), "none\n");
}

#[test]
fn exit_codes_and_signals_are_told() {
    assert_eq!(ProcessFixture::sh(LAUNCH, "exit 37").run()["how"], json!({"exited": 37}));
    assert_eq!(ProcessFixture::sh(LAUNCH, "kill -SEGV $$").run()["how"], json!({"signalled": 11}));
}

#[test]
fn what_cannot_be_started_is_told() {
    let missing = ProcessFixture::new(LAUNCH, &["/no/such/program"]);
    assert_eq!(missing.run()["how"], json!({"could_not_start": "NotFound"}));
    let plain = ProcessFixture::new(LAUNCH, &["/etc/passwd"]);
    assert_eq!(plain.run()["how"], json!({"could_not_start": "PermissionDenied"}));
    let folder = ProcessFixture::new(LAUNCH, &["/etc"]);
    assert_eq!(folder.run()["how"], json!({"could_not_start": "PermissionDenied"}));
    let huge = "x".repeat(200_000);
    let long = ProcessFixture::new(LAUNCH, &["/bin/true", &huge]);
    assert_eq!(long.run()["how"], json!({"could_not_start": "ArgumentListTooLong"}));
}

#[test]
fn what_the_caller_got_wrong_is_an_error() {
    let mut scene = ProcessFixture::sh(LAUNCH, "true");
    scene.spec.folder = "/no/such/folder".into();
    assert_eq!(scene.run()["error"], "could not enter `/no/such/folder`");
    let mut scene = ProcessFixture::sh(LAUNCH, "true");
    scene.spec.input = Some("/no/such/file".into());
    assert_eq!(scene.run()["error"], "could not open `/no/such/file`");
}

#[test]
fn the_program_sees_its_environment_and_nothing_else() {
    let mut scene = ProcessFixture::new(LAUNCH, &["/usr/bin/env"]);
    scene.spec.environment = vec![("ONE".to_owned(), "1\n2".to_owned())];
    scene.run();
    assert_eq!(scene.log("stdout"), "ONE=1\n2\n");
}

#[test]
fn the_program_has_no_terminal_and_starts_with_plain_signals() {
    let script = "(: </dev/tty) 2>/dev/null || echo Terminal: none; exec cat /proc/self/status";
    let scene = ProcessFixture::sh(LAUNCH, script);
    scene.run();
    let log = scene.log("stdout");
    let value = |name: &str| log.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    let set = |name: &str| u64::from_str_radix(value(name), 16).unwrap();
    assert_eq!((value("Terminal:"), set("SigBlk:"), set("SigCgt:")), ("none", 0, 0));
    for signal in [Signal::PIPE, Signal::CHILD, Signal::XFSZ] {
        assert_eq!(set("SigIgn:") >> (signal.as_raw() - 1) & 1, 0, "{signal:?}");
    }
}

#[test]
fn a_program_that_ends_when_asked_gets_the_time_to() {
    let mut scene =
        ProcessFixture::sh(LAUNCH, "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
    scene.spec.grace_ms = 60_000;
    let mut runner = scene.start();
    wait_for("the program", || scene.has_written("stdout", "ready\n"));
    runner.ask("stop");
    assert_eq!(runner.ended()["how"], "stopped");
    assert_eq!(scene.log("stdout"), "ready\nbye\n");
}

#[test]
fn an_agent_is_asked_alone_and_by_the_signal_it_knows() {
    // Its child would die of the signal if it got it, too.
    let script = "trap 'echo asked; kill -0 $! && echo child lives; exit 0' INT; \
        sh -c 'trap \"exit 1\" INT; while :; do sleep 0.01; done' & echo ready; while :; do sleep 0.01; done";
    let mut scene = ProcessFixture::sh(LAUNCH, script);
    (scene.spec.is_agent, scene.spec.grace_ms) = (true, 60_000);
    let mut runner = scene.start();
    wait_for("the program", || scene.has_written("stdout", "ready\n"));
    runner.ask("stop");
    assert_eq!(runner.ended()["how"], "stopped");
    assert_eq!(scene.log("stdout"), "ready\nasked\nchild lives\n");
}

#[test]
fn one_that_does_not_listen_is_killed_after_its_grace_or_at_the_second_wish() {
    for words in [&["stop"][..], &["stop", "kill"], &["kill"]] {
        let mut scene = ProcessFixture::sh(LAUNCH, "trap '' TERM; echo ready; while :; do sleep 0.01; done");
        scene.spec.grace_ms = if words.len() == 1 { 50 } else { 600_000 };
        let mut runner = scene.start();
        wait_for("the program", || scene.has_written("stdout", "ready\n"));
        words.iter().for_each(|word| runner.ask(word));
        assert_eq!(runner.ended()["how"], "stopped");
        assert_eq!(scene.alive(), 0);
    }
}

#[test]
fn a_supervisor_that_was_stopped_does_not_stop_the_runner() {
    let mut scene =
        ProcessFixture::sh(LAUNCH, "kill -STOP $PPID; setsid sleep 1000 & echo ready; sleep 1000");
    (scene.spec.wall_ms, scene.spec.grace_ms) = (100, 0);
    let ended = scene.run();
    assert_eq!((scene.alive(), &ended["how"]), (0, &json!("lost")));
}

#[test]
fn an_idle_program_is_ended_and_a_busy_one_is_not() {
    let mut idle = ProcessFixture::sh(LAUNCH, "echo once; sleep 1000");
    idle.spec.idle_ms = 300;
    let ended = idle.run();
    assert_eq!(ended["how"], "idle");
    assert!(ended["ms"].as_u64().unwrap() >= 300, "{ended}");

    let mut talking =
        ProcessFixture::sh(LAUNCH, "i=0; while [ $i -lt 10 ]; do echo $i >&2; sleep 0.5; i=$((i+1)); done");
    talking.spec.idle_ms = 4_000;
    assert_eq!(talking.run()["how"], json!({"exited": 0}));

    let mut writing = ProcessFixture::sh(LAUNCH, "sleep 1000");
    (writing.spec.idle_ms, writing.spec.changes) = (100, 3);
    let ended = writing.run();
    assert_eq!(ended["how"], "idle");
    assert!(ended["ms"].as_u64().unwrap() >= 400, "{ended}");
}
