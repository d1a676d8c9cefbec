//! A program that starts others in every way in which a process can try to be forgotten.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use crate::processes::{alive, wait_for};

/// Runs this process as a part of the program: `seven TOKEN stay` or `seven TOKEN leave` begins.
pub fn run_detached(args: &[&str]) -> ExitCode {
    match args {
        ["seven", token, after] => seven(token, after),
        ["nap", _] => nap(),
        ["session", token] => {
            rustix::process::setsid().expect("a session");
            return become_nap(token);
        }
        ["daemon", token] => {
            rustix::process::setsid().expect("a session");
            spawn(&mut me(&["nap", token]));
            return become_nap(token);
        }
        ["orphan", what, token] => spawn(&mut me(&[what, token])),
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

/// A plain child, one in its own session, an orphan in its own session and its child, one behind `nohup`, an orphan
/// in its own group, and this process itself.
#[expect(clippy::print_stdout, reason = "tests read it")]
fn seven(token: &str, after: &str) {
    spawn(&mut me(&["nap", token]));
    spawn(&mut me(&["session", token]));
    spawn(Command::new("nohup").args(std::env::args_os().take(1)).args(["nap", token]));
    me(&["orphan", "daemon", token]).status().expect("a process");
    me(&["orphan", "nap", token]).process_group(0).status().expect("a process");
    wait_for("seven processes", || alive(token).len() == 7);
    println!("seven");
    if after == "stay" {
        nap();
    }
}

/// This program again.
fn me(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::args_os().next().expect("a name"));
    command.args(args);
    command
}

#[expect(clippy::zombie_processes, reason = "it is here to misbehave")]
fn spawn(command: &mut Command) {
    command.spawn().expect("a process");
}

fn become_nap(token: &str) -> ExitCode {
    let failed = me(&["nap", token]).exec();
    panic!("{failed}");
}

fn nap() {
    loop {
        std::thread::park();
    }
}
