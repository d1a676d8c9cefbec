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

use serde_json::{Value, json};
use supervise::signals::{self, SignalListener};
use supervise::{
    self, CancelHandle, ExitReason, OutputLog, OutputTarget, ProcessInput, ProcessResult, ProcessSpec,
    SignalTarget, StopPolicy, StopSignal, SupervisorSlot, TimeLimits,
};
use testkit::detached_processes;
use testkit::processes::{LaunchSpec, kilobytes};

fn main() -> ExitCode {
    if supervise::is_supervisor() {
        return supervise::supervise();
    }
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [_, "run", order] => run(order),
        [_, args @ ..] => detached_processes::run_detached(args),
        [] => ExitCode::FAILURE,
    }
}

fn run(order: &str) -> ExitCode {
    let spec: LaunchSpec = serde_json::from_slice(&std::fs::read(order).unwrap()).unwrap();
    signals::survive_file_size_limit().unwrap();
    let control = CancelHandle::new().unwrap();
    let listener = SignalListener::install(&control).unwrap();
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
    let ended = supervise::run(&launch_of(&spec, &has_changed_files), &control, &SupervisorSlot::default());
    let grown = kilobytes("self", "VmHWM").saturating_sub(before);
    println!(
        "{}",
        ended.map_or_else(|error| json!({"error": error.to_string()}), |ended| told(&ended, grown))
    );
    listener.received().map_or(ExitCode::SUCCESS, |caught| caught.exit_code().into())
}

fn launch_of<'a>(spec: &LaunchSpec, has_changed_files: &'a dyn Fn() -> bool) -> ProcessSpec<'a> {
    let log = |name: &str| OutputLog { path: spec.logs.join(name), bytes_max: spec.bytes_max };
    let output = if spec.is_together {
        OutputTarget::Combined(log("both"))
    } else {
        OutputTarget::Separate { stdout: log("stdout"), stderr: log("stderr") }
    };
    let (polite, reach) = match spec.is_agent {
        true => (StopSignal::Interrupt, SignalTarget::Program),
        false => (StopSignal::Terminate, SignalTarget::Group),
    };
    ProcessSpec {
        argv: spec.argv.iter().map(Into::into).collect(),
        working_dir: spec.folder.clone(),
        environment: spec.environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        input: spec.input.clone().map_or(ProcessInput::Empty, ProcessInput::File),
        output,
        stream: Some(log("stream")),
        limits: TimeLimits {
            wall: Duration::from_millis(spec.wall_ms),
            idle: Duration::from_millis(spec.idle_ms),
        },
        stop_policy: StopPolicy {
            signal: polite,
            target: reach,
            grace: Duration::from_millis(spec.grace_ms),
            is_sandboxed: false,
        },
        has_changed_files,
        on_output: &|_, _| (),
    }
}

fn told(ended: &ProcessResult, grown: u64) -> Value {
    let how = match &ended.exit {
        ExitReason::Exited(code) => json!({"exited": code}),
        ExitReason::Signalled(signal) => json!({"signalled": signal}),
        ExitReason::CouldNotStart(error) => json!({"could_not_start": format!("{:?}", error.kind())}),
        ExitReason::TimedOut => json!("timed out"),
        ExitReason::Idle => json!("idle"),
        ExitReason::Stopped => json!("stopped"),
        ExitReason::Lost => json!("lost"),
    };
    json!({
        "how": how,
        "killed": ended.leftovers.killed,
        "alive": ended.leftovers.alive,
        "ms": u64::try_from(ended.elapsed.as_millis()).unwrap(),
        "stdout": [ended.stdout.seen, ended.stdout.dropped],
        "stderr": [ended.stderr.seen, ended.stderr.dropped],
        "fault": ended.log_error.as_ref().map(ToString::to_string),
        "grown_kb": grown,
    })
}
