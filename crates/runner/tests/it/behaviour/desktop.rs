//! Programs of the user's desktop: the one that keeps the machine awake, and the one that shows notifications.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use testkit::oracle::{assert_idle, assert_sound};
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

/// Puts a script on the PATH under this name, and returns that PATH.
fn with_program(sandbox: &TestRepo, name: &str, script: &str) -> String {
    let bin = sandbox.outside().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let program = bin.join(name);
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// A command on a machine that systemd seems to run.
fn with_systemd(sandbox: &TestRepo, path: &str, name: &str) -> Command {
    let mut command = sandbox.command("bwrap");
    command.args(["--dev-bind", "/", "/", "--tmpfs", "/run/systemd", "--dir", "/run/systemd/system", "--"]);
    command.args([RUNNER, name]).env("PATH", path);
    command
}

fn recorded(sandbox: &TestRepo, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(sandbox.outside().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn machine_is_kept_awake_for_exactly_as_long_as_the_loop_runs() {
    // The agent sees that the program runs; the program ends when its input does.
    let agent =
        "test -e $AROUND/awake && ! test -e $AROUND/ended && touch $AROUND/seen; echo 1 > work; answer done";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let around = sandbox.outside().display();
    let script = format!(
        "for word; do echo \"$word\"; done > {around}/called; touch {around}/awake\n\
         for program; do :; done; \"$program\"; touch {around}/ended"
    );
    let path = with_program(&sandbox, "systemd-inhibit", &script);
    run(&mut with_systemd(&sandbox, &path, "loop")).ok();
    let called = recorded(&sandbox, "called");
    let options = ["--what=idle:sleep", "--who=runner", "--why=a run is in progress", "--mode=block"];
    assert_eq!(called[..4], options);
    assert!(PathBuf::from(&called[4]).ends_with("cat") && called.len() == 5, "{called:?}");
    assert!(sandbox.outside().join("seen").exists(), "it runs during the session");
    assert!(sandbox.outside().join("ended").exists(), "it ends with the loop");
    assert_idle(&sandbox);
}

#[test]
fn program_that_cannot_keep_the_machine_awake_changes_nothing() {
    let real = "for each in /usr/bin /bin; do test -x $each/systemd-inhibit && exec $each/systemd-inhibit \"$@\"; done; exit 1";
    for script in ["exit 1", "trap '' TERM; exec sleep 600", real] {
        let sandbox = RunBuilder::new(RUNNER).agent("echo 1 > work; answer done").start();
        let path = with_program(&sandbox, "systemd-inhibit", script);
        let output = run(&mut with_systemd(&sandbox, &path, "loop")).ok();
        assert!(output.stdout.contains("stop=complete"), "{script}: {}", output.stdout);
        assert_idle(&sandbox);
        assert_sound(&sandbox);
    }
}

#[test]
fn doctor_tries_what_keeps_the_machine_awake() {
    let sandbox = RunBuilder::new(RUNNER).start();
    let may_sleep = "the machine may go to sleep during a loop: systemd-inhibit does not work: no logind";
    for (script, line) in [
        ("exec cat", "check=sleep verdict=ok found=\"systemd-inhibit keeps the machine awake".to_owned()),
        (
            "echo no logind >&2; exit 1",
            format!("check=sleep verdict=warning found=\"{may_sleep}\" fix=\"turn off automatic suspend"),
        ),
    ] {
        let path = with_program(&sandbox, "systemd-inhibit", script);
        let output = run(&mut with_systemd(&sandbox, &path, "doctor"));
        assert!(output.stdout.contains(&line), "{}", output.stdout);
    }
}

#[test]
fn desktop_notification_has_why_and_what_to_type() {
    let builder = RunBuilder::new(RUNNER).agent("answer retry").keys("max_attempts_default = 1");
    let sandbox = builder.config_tables("[notify]\ndesktop = true").start();
    let file = sandbox.outside().join("shown");
    let script = format!("for word; do echo \"[$word]\"; done >> {}", file.display());
    let path = with_program(&sandbox, "notify-send", &script);
    let output = run(sandbox.runner_command(&["loop"]).env("PATH", &path));
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert!(output.stdout.contains("event=notified to=desktop ok=true"), "{}", output.stdout);
    let shown = std::fs::read_to_string(&file).unwrap();
    let start = "[--app-name=runner]\n[--urgency=critical]\n[--]\n[runner demo: stuck]\n[`root` failed 1 of 1 attempts\n";
    assert!(shown.starts_with(start), "{shown}");
    assert!(shown.contains("\nrunner node allow root  # allow more attempts"), "{shown}");
}

#[test]
fn desktop_that_shows_nothing_changes_nothing() {
    let builder = RunBuilder::new(RUNNER).agent("echo 1 > work; answer done");
    let builder = builder.config_tables("[notify]\ndesktop = true\ntimeout_secs = 1");
    for (script, fault) in
        [("echo no display >&2; exit 1", "no display"), ("sleep 600", "longer than 1 second")]
    {
        let sandbox = builder.start();
        let path = with_program(&sandbox, "notify-send", script);
        let output = run(sandbox.runner_command(&["loop"]).env("PATH", &path)).ok();
        assert!(output.stdout.contains("to=desktop ok=false"), "{}", output.stdout);
        assert!(output.stdout.contains(fault), "{fault}: {}", output.stdout);
        assert_idle(&sandbox);
        assert_sound(&sandbox);
    }
}
