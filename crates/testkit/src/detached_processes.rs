//! A program that starts other processes in every way in which a process can try to escape its parent.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use crate::processes::{alive, wait_for};

/// The `main` of each of these processes. `seven TOKEN stay` or `seven TOKEN leave` starts them all.
pub fn main(args: &[&str]) -> ExitCode {
    match args {
        ["seven", token, after] => start_seven(token, after),
        ["sleep", _] => sleep(),
        ["session", token] => {
            rustix::process::setsid().expect("setsid");
            return exec_sleep(token);
        }
        ["daemon", token] => {
            rustix::process::setsid().expect("setsid");
            spawn(&mut own_command(&["sleep", token]));
            return exec_sleep(token);
        }
        ["orphan", mode, token] => spawn(&mut own_command(&[mode, token])),
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

/// A plain child, one in its own session, an orphan in its own session and its child, one under `nohup`, an orphan in its
/// own group, and this process itself.
#[expect(clippy::print_stdout, reason = "tests read it")]
fn start_seven(token: &str, after: &str) {
    spawn(&mut own_command(&["sleep", token]));
    spawn(&mut own_command(&["session", token]));
    spawn(Command::new("nohup").args(std::env::args_os().take(1)).args(["sleep", token]));
    own_command(&["orphan", "daemon", token]).status().expect("a process");
    own_command(&["orphan", "sleep", token]).process_group(0).status().expect("a process");
    wait_for("seven processes", || alive(token).len() == 7);
    println!("seven");
    if after == "stay" {
        sleep();
    }
}

/// A command that runs this program again.
fn own_command(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::args_os().next().expect("argv[0]"));
    command.args(args);
    command
}

#[expect(clippy::zombie_processes, reason = "these processes misbehave on purpose")]
fn spawn(command: &mut Command) {
    command.spawn().expect("a process");
}

fn exec_sleep(token: &str) -> ExitCode {
    let error = own_command(&["sleep", token]).exec();
    panic!("{error}");
}

fn sleep() {
    loop {
        std::thread::park();
    }
}
