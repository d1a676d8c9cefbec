//! A runner without a run: it runs one program through the host's process layer and says how it ended.
//!
//! `launch run ORDER` runs what the file says and listens on standard input for `stop` and `kill`. `launch seven
//! TOKEN stay|leave` is a program for it: seven processes that try everything to be forgotten.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "only tests use it, and they read what it prints"
)]

use std::cell::Cell;
use std::process::ExitCode;
use std::time::Duration;

use runner_host::process::{
    self, Control, Ended, How, Input, Launch, Limits, Log, Output, Polite, Reach, Stop, Supervision,
};
use runner_host::signals::{self, Listener};
use serde_json::{Value, json};
use testkit::processes::{Spec, kilobytes};
use testkit::seven;

fn main() -> ExitCode {
    if process::is_supervisor() {
        return process::supervise();
    }
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [_, "run", order] => run(order),
        [_, args @ ..] => seven::main(args),
        [] => ExitCode::FAILURE,
    }
}

fn run(order: &str) -> ExitCode {
    let spec: Spec = serde_json::from_slice(&std::fs::read(order).unwrap()).unwrap();
    signals::survive_file_size_limit().unwrap();
    let control = Control::new().unwrap();
    let listener = Listener::begin(&control).unwrap();
    let asked = control.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            match line.as_str() {
                "stop" => asked.stop(),
                _ => asked.kill(),
            }
        }
    });
    let changes = Cell::new(spec.changes);
    let has_changed_files = || changes.replace(changes.get().saturating_sub(1)) > 0;
    let before = kilobytes("self", "VmRSS");
    let ended = process::run(&launch_of(&spec, &has_changed_files), &control, &Supervision::default());
    let grown = kilobytes("self", "VmHWM").saturating_sub(before);
    println!(
        "{}",
        ended.map_or_else(|error| json!({"error": error.to_string()}), |ended| told(&ended, grown))
    );
    listener.caught().map_or(ExitCode::SUCCESS, |caught| caught.exit_code().into())
}

fn launch_of<'a>(spec: &Spec, has_changed_files: &'a dyn Fn() -> bool) -> Launch<'a> {
    let log = |name: &str| Log { path: spec.logs.join(name), bytes_max: spec.bytes_max };
    let output = if spec.is_together {
        Output::Together(log("both"))
    } else {
        Output::Apart { stdout: log("stdout"), stderr: log("stderr") }
    };
    let (polite, reach) = match spec.is_agent {
        true => (Polite::Interrupt, Reach::Program),
        false => (Polite::Terminate, Reach::Group),
    };
    Launch {
        argv: spec.argv.iter().map(Into::into).collect(),
        folder: spec.folder.clone(),
        environment: spec.environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        input: spec.input.clone().map_or(Input::Nothing, Input::File),
        output,
        stream: Some(log("stream")),
        limits: Limits {
            wall: Duration::from_millis(spec.wall_ms),
            idle: Duration::from_millis(spec.idle_ms),
        },
        stop: Stop { polite, reach, grace: Duration::from_millis(spec.grace_ms), is_wrapped: false },
        has_changed_files,
        hear: &|_, _| (),
    }
}

fn told(ended: &Ended, grown: u64) -> Value {
    let how = match &ended.how {
        How::Exited(code) => json!({"exited": code}),
        How::Signalled(signal) => json!({"signalled": signal}),
        How::CouldNotStart(error) => json!({"could_not_start": format!("{:?}", error.kind())}),
        How::TimedOut => json!("timed out"),
        How::Idle => json!("idle"),
        How::Stopped => json!("stopped"),
        How::Lost => json!("lost"),
    };
    json!({
        "how": how,
        "killed": ended.leftovers.killed,
        "alive": ended.leftovers.alive,
        "ms": u64::try_from(ended.elapsed.as_millis()).unwrap(),
        "stdout": [ended.stdout.seen, ended.stdout.dropped],
        "stderr": [ended.stderr.seen, ended.stderr.dropped],
        "fault": ended.log_fault.as_ref().map(ToString::to_string),
        "grown_kb": grown,
    })
}
