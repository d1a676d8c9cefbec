//! A runner for the tests and nothing else: it runs one program with [`supervise::run`] and prints the result as JSON.
//!
//! `launch run SPEC` runs the program in the file SPEC and reads `stop` and `kill` from standard input. `launch seven TOKEN stay|leave`
//! is a program for it: seven processes that try to escape their parent.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "only tests run it, and they read its output")]

use std::cell::Cell;
use std::process::ExitCode;
use std::time::Duration;

use supervise::signals::{self, SignalListener};
use supervise::{
    ByteCounts, CancelHandle, OutputLog, OutputTarget, ProcessResult, ProcessSpec, SignalTarget, StopPolicy,
    StopSignal, SupervisorSlot, TimeLimits,
};
use testkit::detached_processes;
use testkit::processes::{LaunchReport, LaunchSpec, StreamCounts, kilobytes};

fn main() -> ExitCode {
    if supervise::is_supervisor() {
        return supervise::run_supervisor();
    }
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [_, "run", spec] => run(spec),
        [_, args @ ..] => detached_processes::main(args),
        [] => ExitCode::FAILURE,
    }
}

fn run(spec: &str) -> ExitCode {
    let spec: LaunchSpec = serde_json::from_slice(&std::fs::read(spec).unwrap()).unwrap();
    signals::survive_file_size_limit().unwrap();
    let cancel = CancelHandle::new().unwrap();
    let listener = SignalListener::install(&cancel).unwrap();
    let stdin_cancel = cancel.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            match line.as_str() {
                "stop" => stdin_cancel.stop(),
                _ => stdin_cancel.kill(),
            }
        }
    });
    let changes_left = Cell::new(spec.file_changes);
    let has_changed_files = || changes_left.replace(changes_left.get().saturating_sub(1)) > 0;
    let before_kb = kilobytes("self", "VmRSS");
    let result = supervise::run(
        &process_spec(&spec).file_activity(&has_changed_files),
        &cancel,
        &SupervisorSlot::default(),
    );
    let growth_kb = kilobytes("self", "VmHWM").saturating_sub(before_kb);
    let report: Result<LaunchReport, String> =
        result.map(|result| launch_report(&result, growth_kb)).map_err(|error| error.to_string());
    println!("{}", serde_json::to_string(&report).unwrap());
    listener.received().map_or(ExitCode::SUCCESS, |signal| signal.exit_code().into())
}

fn process_spec(spec: &LaunchSpec) -> ProcessSpec<'static> {
    let log = |name: &str| OutputLog { path: spec.log_dir.join(name), bytes_max: spec.bytes_max };
    let output = if spec.is_combined {
        OutputTarget::Combined(log("combined"))
    } else {
        OutputTarget::Separate { stdout: log("stdout"), stderr: log("stderr") }
    };
    let (signal, target) = if spec.is_agent {
        (StopSignal::Interrupt, SignalTarget::Program)
    } else {
        (StopSignal::Terminate, SignalTarget::Group)
    };
    let mut process = ProcessSpec::new(spec.argv.iter().map(Into::into).collect(), &spec.working_dir, output)
        .env(spec.env.iter().map(|(name, value)| (name.into(), value.into())).collect())
        .jsonl_copy(log("jsonl"))
        .time_limits(TimeLimits {
            wall: Duration::from_millis(spec.wall_ms),
            idle: Duration::from_millis(spec.idle_ms),
        })
        .stop_policy(StopPolicy {
            signal,
            target,
            grace: Duration::from_millis(spec.grace_ms),
            is_sandboxed: false,
        });
    if let Some(path) = &spec.stdin {
        process = process.stdin_file(path);
    }
    process
}

fn launch_report(result: &ProcessResult, growth_kb: u64) -> LaunchReport {
    LaunchReport {
        exit: result.exit.to_string(),
        killed: result.leftovers.killed,
        alive: result.leftovers.alive,
        elapsed_ms: u64::try_from(result.elapsed.as_millis()).unwrap(),
        stdout: stream_counts(result.stdout),
        stderr: stream_counts(result.stderr),
        log_error: result.log_error.as_ref().map(ToString::to_string),
        growth_kb,
    }
}

fn stream_counts(counts: ByteCounts) -> StreamCounts {
    StreamCounts { total: counts.total, dropped: counts.dropped }
}
