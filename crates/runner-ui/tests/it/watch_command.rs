//! `runner-ui watch` on a real terminal, in real repositories.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;

use crate::pty::Pty;
use crate::server::{everything, finished_run, runner};

fn watch(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner-ui"));
    command.arg("--project-dir").arg(root).arg("watch").args(args);
    command.env("HOME", root).env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
    command
}

/// An agent that is done when a file says so, and a guard that is, too.
const AGENT: &str = "case $RUNNER_ITER in 0001) split; exit ;; esac\n\
    printf 'I \\033[31mbegin\\033[0m\\033]0;evil\\007 now\\n'; touch $AROUND/begun-$RUNNER_ITER\n\
    while ! [ -e $AROUND/go-$RUNNER_ITER ]; do sleep 0.05; done\n\
    echo $RUNNER_ITER > work; answer done 'it works'";
const GUARD: &str = "echo checking it; while ! [ -e ../green ]; do sleep 0.05; done; exit 0";

#[test]
fn a_run_is_followed_to_its_end_and_left_with_a_key() {
    let sandbox = RunBuilder::new(&runner()).agent(AGENT).guard(GUARD).start();
    let mut screen = Pty::start(&watch(sandbox.root(), &[]), (100, 30));
    screen.wait_for("IDLE  demo  nothing has happened yet");
    screen.wait_for("type  runner loop");
    let mut child = sandbox.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
    screen.wait_for("RUNNING  demo  the agent is at work");
    screen.wait_for("transcript #2 a 1/3");
    screen.wait_for("I begin now");
    fs::write(sandbox.outside().join("go-0002"), "").unwrap();
    screen.wait_for("GUARDING  demo  the guard is running");
    screen.wait_for("guard #2 a");
    screen.wait_for("checking it");
    fs::write(sandbox.outside().join("green"), "").unwrap();
    screen.wait_for("transcript #3 b 1/3");
    screen.wait_for("1/2 leaves");
    screen.resize(40, 15);
    screen.wait_for("─ [tree] ───────────────────────────────\n");
    screen.resize(80, 24);
    fs::write(sandbox.outside().join("go-0003"), "").unwrap();
    assert!(child.wait().unwrap().success());
    screen.wait_for("COMPLETE  demo  all 2 leaves pass");
    screen.wait_for("git log --oneline runner/demo");
    let bytes = screen.bytes();
    assert!(!bytes.windows(4).any(|four| four == b"evil"), "what an agent writes never acts on the terminal");
    screen.press("q");
    assert_eq!(screen.ended(), 0);
    screen.assert_given_back();
}

#[test]
fn whatever_ends_it_the_terminal_is_given_back_and_the_code_tells() {
    let sandbox = finished_run();
    for (end, code) in [("\u{3}", 130), ("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let mut screen = Pty::start(&watch(sandbox.root(), &[]), (80, 24));
        screen.wait_for("COMPLETE");
        match end {
            "TERM" => screen.signal(Signal::TERM),
            "INT" => screen.signal(Signal::INT),
            "HUP" => screen.signal(Signal::HUP),
            key => screen.press(key),
        }
        assert_eq!(screen.ended(), code, "{end:?}");
        screen.assert_given_back();
    }
}

#[test]
fn a_terminal_that_is_gone_ends_it() {
    let sandbox = finished_run();
    let mut screen = Pty::start(&watch(sandbox.root(), &[]), (80, 24));
    screen.wait_for("COMPLETE");
    screen.hang_up();
    assert_eq!(screen.ended(), 129);
}

#[test]
fn suspended_it_gives_the_terminal_back_until_it_goes_on() {
    let sandbox = finished_run();
    let mut screen = Pty::start(&watch(sandbox.root(), &[]), (80, 24));
    screen.wait_for("COMPLETE");
    screen.press("\u{1a}");
    let stat = format!("/proc/{}/stat", screen.pid());
    wait_for("it to stand still", || fs::read_to_string(&stat).unwrap().contains(") T "));
    screen.assert_given_back();
    screen.signal(Signal::CONT);
    screen.wait_for("COMPLETE");
    screen.press("q");
    assert_eq!(screen.ended(), 0);
}

#[test]
fn it_reads_what_keys_ask_for_and_changes_nothing() {
    let sandbox = finished_run();
    let before = everything(sandbox.root());
    let mut screen = Pty::start(&watch(sandbox.root(), &["--poll"]), (110, 30));
    screen.wait_for("COMPLETE  demo");
    screen.wait_for("looks every 2 s");
    screen.press("[[3");
    screen.wait_for("[guard #2 a 1/3]");
    screen.wait_for("error: a is bad");
    screen.press("1");
    screen.wait_for("thinking <b>hard</b>");
    screen.press("?");
    screen.wait_for("quit; the run goes on");
    screen.press("xq");
    assert_eq!(screen.ended(), 0);
    assert_eq!(everything(sandbox.root()), before);
}

#[test]
fn without_colour_there_is_none_and_without_unicode_neither() {
    let sandbox = finished_run();
    let mut command = watch(sandbox.root(), &[]);
    command.env("NO_COLOR", "1").env("LC_ALL", "C");
    let mut screen = Pty::start(&command, (80, 24));
    screen.wait_for("x COMPLETE  demo");
    screen.press("q");
    assert_eq!(screen.ended(), 0);
    let text = String::from_utf8(screen.bytes()).unwrap();
    let styles = text.split("\u{1b}[").filter_map(|part| {
        let (codes, end) = part.split_at(part.find(|c: char| c.is_ascii_alphabetic())?);
        end.starts_with('m').then_some(codes)
    });
    let codes: BTreeSet<&str> = styles.flat_map(|codes| codes.split(';')).collect();
    let known = BTreeSet::from(["", "0", "7", "27", "39", "49", "59"]);
    assert!(codes.is_subset(&known), "only resets and what is chosen: {codes:?}");
    assert!(text.is_ascii(), "{text}");
}

#[test]
fn where_there_is_no_terminal_it_says_what_to_type_instead() {
    let sandbox = finished_run();
    let told = watch(sandbox.root(), &[]).stdin(Stdio::null()).output().unwrap();
    assert_eq!((told.status.code(), told.stdout.as_slice()), (Some(2), [].as_slice()));
    let text = String::from_utf8(told.stderr).unwrap();
    assert!(text.contains("no terminal") && text.contains("runner log --follow"), "{text}");
    let mut json = Command::new(env!("CARGO_BIN_EXE_runner-ui"));
    let told = json.arg("--project-dir").arg(sandbox.root()).args(["--json", "watch"]).output().unwrap();
    let error: serde_json::Value = serde_json::from_slice(&told.stderr).unwrap();
    assert_eq!((&error["code"], &error["exit"]), (&"no_json".into(), &2.into()));
}

#[test]
fn a_run_that_is_not_there_is_refused_before_the_terminal_is_taken() {
    let sandbox = finished_run();
    let mut screen = Pty::start(&watch(sandbox.root(), &["nightly"]), (80, 24));
    assert_eq!(screen.ended(), 2);
    screen.wait_for("error: could not show the run");
    assert!(!screen.bytes().windows(8).any(|eight| eight == b"\x1b[?1049h"));
}
