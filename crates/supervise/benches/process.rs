//! What it costs to run a program, to end it with all it started, and to read what it writes.
//!
//! `RUNNER_BENCH_BYTES` sets how much is written: 300 MB unless told otherwise, 5 GB for the goal.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench tells people, and may fail"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use supervise::{
    self, CancelHandle, OutputLog, OutputTarget, ProcessInput, ProcessResult, ProcessSpec, StopPolicy,
    SupervisorSlot, TimeLimits,
};
use testkit::detached_processes;
use testkit::processes::{alive, kilobytes, wait_for};

fn main() -> ExitCode {
    if supervise::is_supervisor() {
        return supervise::supervise();
    }
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [_, "hold", number, folder] => {
            run_seven(&format!("bench-hold-{number}"), Path::new(folder), &CancelHandle::new().unwrap());
        }
        [_, args @ ..] if args.len() > 1 => return detached_processes::run_detached(args),
        _ => {
            let folder = tempfile::tempdir().unwrap();
            flood(folder.path());
            ending(folder.path());
            killed_runner(folder.path());
            spawning(folder.path());
        }
    }
    ExitCode::SUCCESS
}

fn run(argv: &[&str], folder: &Path, control: &CancelHandle) -> ProcessResult {
    let log = |name: &str| OutputLog { path: folder.join(name), bytes_max: 50 << 20 };
    let launch = ProcessSpec {
        argv: argv.iter().map(Into::into).collect(),
        working_dir: folder.to_owned(),
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
        input: ProcessInput::Empty,
        output: OutputTarget::Separate { stdout: log("stdout"), stderr: log("stderr") },
        stream: None,
        limits: TimeLimits { wall: Duration::from_secs(600), idle: Duration::ZERO },
        stop_policy: StopPolicy::default(),
        has_changed_files: &|| false,
        on_output: &|_, _| (),
    };
    supervise::run(&launch, control, &SupervisorSlot::default()).unwrap()
}

fn run_seven(token: &str, folder: &Path, control: &CancelHandle) -> ProcessResult {
    let me = std::env::current_exe().unwrap();
    run(&[me.to_str().unwrap(), "seven", token, "stay"], folder, control)
}

/// Waits until all seven are up.
fn wait_for_seven(folder: &Path) {
    wait_for("all seven", || fs::read(folder.join("stdout")).is_ok_and(|text| text == b"seven\n"));
}

fn flood(folder: &Path) {
    let bytes = std::env::var("RUNNER_BENCH_BYTES").unwrap_or_else(|_| "300000000".to_owned());
    let script = format!("head -c {bytes} /dev/zero | tr '\\0' x; grep VmHWM /proc/$PPID/status >&2");
    let before = kilobytes("self", "VmRSS");
    let ended = run(&["/bin/sh", "-c", &script], folder, &CancelHandle::new().unwrap());
    let grown = kilobytes("self", "VmHWM") - before;
    let log = fs::metadata(folder.join("stdout")).unwrap().len();
    let rate = ended.stdout.seen as f64 / 1e6 / ended.elapsed.as_secs_f64();
    println!("output: {} bytes in {:.2?}, {rate:.0} MB/s", ended.stdout.seen, ended.elapsed);
    println!("output: log {log} bytes, {} dropped", ended.stdout.dropped);
    let supervisor = fs::read_to_string(folder.join("stderr")).unwrap();
    println!("output: runner grew by {grown} kB; supervisor's {}", supervisor.trim());
}

/// From the wish to the end of the call, and how many lived on.
fn ending(folder: &Path) {
    let mut times = Vec::new();
    let mut survivors = 0;
    for number in 0..20 {
        let token = format!("bench-{}-{number}", std::process::id());
        let control = CancelHandle::new().unwrap();
        let _ = fs::remove_file(folder.join("stdout"));
        let asked = std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                wait_for_seven(folder);
                control.kill();
                Instant::now()
            });
            run_seven(&token, folder, &control);
            let ended = Instant::now();
            ended - asking.join().unwrap()
        });
        survivors += alive(&token).len();
        times.push(asked);
    }
    println!("end of seven processes: {}, survivors {survivors}", spread(times));
}

/// From the death of the runner to that of all seven, seen from outside.
fn killed_runner(folder: &Path) {
    let mut times = Vec::new();
    for number in 0..10 {
        let number = format!("{}-{number}", std::process::id());
        let _ = fs::remove_file(folder.join("stdout"));
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["hold", &number]).arg(folder).stdin(Stdio::null());
        let mut runner = command.spawn().unwrap();
        wait_for_seven(folder);
        let seven = alive(&format!("bench-hold-{number}"));
        assert_eq!(seven.len(), 7);
        runner.kill().unwrap();
        let since = Instant::now();
        wait_for("their end", || seven.iter().all(|pid| rustix::process::test_kill_process(*pid).is_err()));
        times.push(since.elapsed());
        let status = runner.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(Signal::KILL.as_raw()));
    }
    println!("end of seven processes after kill -9 of the runner: {}", spread(times));
}

/// The cost of a program that does nothing, in a small and in a large runner.
fn spawning(folder: &Path) {
    let control = CancelHandle::new().unwrap();
    let cost = |megabytes: usize| {
        let ballast = vec![1_u8; megabytes << 20];
        let times = (0..100).map(|_| run(&["/bin/true"], folder, &control).elapsed).collect();
        assert!(ballast.iter().step_by(4096).all(|byte| *byte == 1));
        let resident = kilobytes("self", "VmRSS") >> 10;
        let times = sorted(times);
        println!("start and end of /bin/true, runner of {resident} MB: {}", spread(times.clone()));
        times[times.len() / 2]
    };
    let (small, large) = (cost(10), cost(1_024));
    println!("large to small: {:.2}", large.as_secs_f64() / small.as_secs_f64());
    let plain = (0..100).map(|_| {
        let since = Instant::now();
        Command::new("/bin/true").status().unwrap();
        since.elapsed()
    });
    println!("/bin/true without any of it: {}", spread(plain.collect()));
}

fn sorted(mut times: Vec<Duration>) -> Vec<Duration> {
    times.sort();
    times
}

fn spread(times: Vec<Duration>) -> String {
    let times = sorted(times);
    format!("min {:.2?}, median {:.2?}, max {:.2?}", times[0], times[times.len() / 2], times[times.len() - 1])
}
