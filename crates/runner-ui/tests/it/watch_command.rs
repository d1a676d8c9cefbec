//! `runner-ui watch` on a pseudo-terminal, in real repositories.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;

use crate::pty::Pty;
use crate::server::{all_files, finished_run, runner};

fn watch(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner-ui"));
    command.arg("--project-dir").arg(root).arg("watch").args(args);
    command.env("HOME", root).env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
    command
}

/// An agent that waits for a file in every session; the guard waits for one, too.
const AGENT: &str = "case $RUNNER_ITER in 0001) split; exit ;; esac\n\
    printf 'I \\033[31mbegin\\033[0m\\033]0;evil\\007 now\\n'; touch $AROUND/begun-$RUNNER_ITER\n\
    while ! [ -e $AROUND/go-$RUNNER_ITER ]; do sleep 0.05; done\n\
    echo $RUNNER_ITER > work; answer done 'it works'";
const GUARD: &str = "echo checking it; while ! [ -e ../green ]; do sleep 0.05; done; exit 0";

#[test]
fn run_is_followed_to_its_end_and_a_key_quits() {
    let sandbox = RunBuilder::new(&runner()).agent(AGENT).guard(GUARD).start();
    let mut screen = Pty::start(&watch(sandbox.root(), &[]), 100, 30);
    screen.wait_for("STOPPED  demo  not run yet");
    screen.wait_for("next  runner loop");
    let mut child = sandbox.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
    screen.wait_for("RUNNING  demo  iteration 2: the agent is working on root/a");
    screen.wait_for("transcript #2 a 1/3");
    screen.wait_for("I begin now");
    fs::write(sandbox.outside().join("go-0002"), "").unwrap();
    screen.wait_for("RUNNING  demo  iteration 2: running the guard");
    screen.wait_for("guard #2 a");
    screen.wait_for("checking it");
    fs::write(sandbox.outside().join("green"), "").unwrap();
    screen.wait_for("transcript #3 b 1/3");
    screen.wait_for("1/2 tasks");
    screen.resize(40, 15);
    screen.wait_for("─ [tree] ───────────────────────────────\n");
    screen.resize(80, 24);
    fs::write(sandbox.outside().join("go-0003"), "").unwrap();
    assert!(child.wait().unwrap().success());
    screen.wait_for("COMPLETE  demo  all 2 tasks passed");
    screen.wait_for("runner report");
    let bytes = screen.bytes();
    assert!(
        !bytes.windows(4).any(|bytes| bytes == b"evil"),
        "escape sequences of agents never reach the terminal"
    );
    screen.press("q");
    assert_eq!(screen.exit_code(), 0);
    screen.assert_restored();
}

#[test]
fn run_is_verified_when_it_is_opened_and_a_forged_one_is_untrusted() {
    let sandbox = finished_run();
    let mut screen = Pty::start(&watch(sandbox.root(), &[]), 100, 30);
    screen.wait_for("COMPLETE  demo");
    screen.wait_for("verified, ");
    screen.wait_for("runner land");
    let tree = sandbox.read(".runner/state/tree.json").replace("\"title\": \"a\"", "\"title\": \"forged\"");
    sandbox.write(".runner/state/tree.json", tree);
    sandbox.git(&["commit", "-qam", "sneaky"]);
    screen.wait_for("UNTRUSTED  demo  verification failed");
    screen.wait_for("next  runner verify demo");
    let text = screen.screen();
    assert!(text.contains("rule  ") && !text.contains("runner land"), "{text}");
    screen.press("q");
    assert_eq!(screen.exit_code(), 0);
}

#[test]
fn every_exit_restores_the_terminal_and_has_its_code() {
    let sandbox = finished_run();
    for (end, code) in [("\u{3}", 130), ("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let mut screen = Pty::start(&watch(sandbox.root(), &[]), 80, 24);
        screen.wait_for("COMPLETE");
        match end {
            "TERM" => screen.signal(Signal::TERM),
            "INT" => screen.signal(Signal::INT),
            "HUP" => screen.signal(Signal::HUP),
            key => screen.press(key),
        }
        assert_eq!(screen.exit_code(), code, "{end:?}");
        screen.assert_restored();
    }
}

#[test]
fn closed_terminal_ends_the_program() {
    let sandbox = finished_run();
    let mut screen = Pty::start(&watch(sandbox.root(), &[]), 80, 24);
    screen.wait_for("COMPLETE");
    screen.hang_up();
    assert_eq!(screen.exit_code(), 129);
}

#[test]
fn suspending_restores_the_terminal_until_the_program_continues() {
    let sandbox = finished_run();
    let mut screen = Pty::start(&watch(sandbox.root(), &[]), 80, 24);
    screen.wait_for("COMPLETE");
    screen.press("\u{1a}");
    let stat = format!("/proc/{}/stat", screen.pid());
    wait_for("the process to stop", || fs::read_to_string(&stat).unwrap().contains(") T "));
    screen.assert_restored();
    screen.signal(Signal::CONT);
    screen.wait_for("COMPLETE");
    screen.press("q");
    assert_eq!(screen.exit_code(), 0);
}

#[test]
fn keys_show_other_logs_and_nothing_is_changed() {
    let sandbox = finished_run();
    let before = all_files(sandbox.root());
    let mut screen = Pty::start(&watch(sandbox.root(), &["--poll"]), 110, 30);
    screen.wait_for("COMPLETE  demo");
    screen.wait_for("polling every 2 s");
    screen.press("[[3");
    screen.wait_for("[guard #2 a 1/3]");
    screen.wait_for("error: a is bad");
    screen.press("1");
    screen.wait_for("thinking <b>hard</b>");
    screen.press("?");
    screen.wait_for("quit; the run continues");
    screen.press("xq");
    assert_eq!(screen.exit_code(), 0);
    assert_eq!(all_files(sandbox.root()), before);
}

#[test]
fn colour_and_unicode_can_be_turned_off() {
    let sandbox = finished_run();
    let mut command = watch(sandbox.root(), &[]);
    command.env("NO_COLOR", "1").env("LC_ALL", "C");
    let mut screen = Pty::start(&command, 80, 24);
    screen.wait_for("+ COMPLETE  demo");
    screen.press("q");
    assert_eq!(screen.exit_code(), 0);
    let text = String::from_utf8(screen.bytes()).unwrap();
    let styles = text.split("\u{1b}[").filter_map(|part| {
        let (codes, end) = part.split_at(part.find(|c: char| c.is_ascii_alphabetic())?);
        end.starts_with('m').then_some(codes)
    });
    let codes: BTreeSet<&str> = styles.flat_map(|codes| codes.split(';')).collect();
    let known = BTreeSet::from(["", "0", "7", "27", "39", "49", "59"]);
    assert!(codes.is_subset(&known), "only resets and the selected row: {codes:?}");
    assert!(text.is_ascii(), "{text}");
}

#[test]
fn without_a_terminal_another_command_is_suggested() {
    let sandbox = finished_run();
    let output = watch(sandbox.root(), &[]).stdin(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), [].as_slice()));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("not a terminal") && text.contains("runner log --follow"), "{text}");
    let mut json = Command::new(env!("CARGO_BIN_EXE_runner-ui"));
    let output = json.arg("--project-dir").arg(sandbox.root()).args(["--json", "watch"]).output().unwrap();
    let error: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((&error["code"], &error["exit"]), (&"no_json".into(), &2.into()));
}

#[test]
fn unknown_run_is_refused_before_the_screen_changes() {
    let sandbox = finished_run();
    let mut screen = Pty::start(&watch(sandbox.root(), &["nightly"]), 80, 24);
    assert_eq!(screen.exit_code(), 2);
    screen.wait_for("error: could not show the run");
    assert!(!screen.bytes().windows(8).any(|bytes| bytes == b"\x1b[?1049h"));
}
