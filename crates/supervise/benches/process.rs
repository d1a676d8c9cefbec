//! The cost of running a program, of killing it with all its processes, and of reading its output.
//!
//! `RUNNER_BENCH_BYTES` sets the amount of output [default: 300 MB; the target is 5 GB].
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints its results, and may panic"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use supervise::{CancelHandle, OutputLog, OutputTarget, ProcessResult, ProcessSpec, SupervisorSlot};
use testkit::detached_processes;
use testkit::processes::{alive, kilobytes, wait_for};

fn main() -> ExitCode {
    if supervise::is_supervisor() {
        return supervise::run_supervisor();
    }
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [_, "hold", number, dir] => {
            run_seven(&format!("bench-hold-{number}"), Path::new(dir), &CancelHandle::new().unwrap());
        }
        [_, args @ ..] if args.len() > 1 => return detached_processes::main(args),
        _ => {
            let dir = tempfile::tempdir().unwrap();
            read_output(dir.path());
            kill_seven(dir.path());
            kill_runner(dir.path());
            spawn_nothing(dir.path());
        }
    }
    ExitCode::SUCCESS
}

fn run(argv: &[&str], dir: &Path, cancel: &CancelHandle) -> ProcessResult {
    let log = |name: &str| OutputLog { path: dir.join(name), bytes_max: 50 << 20 };
    let output = OutputTarget::Separate { stdout: log("stdout"), stderr: log("stderr") };
    let spec = ProcessSpec::new(argv.iter().map(Into::into).collect(), dir, output)
        .env(vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())]);
    supervise::run(&spec, cancel, &SupervisorSlot::default()).unwrap()
}

fn run_seven(token: &str, dir: &Path, cancel: &CancelHandle) -> ProcessResult {
    let own_binary = std::env::current_exe().unwrap();
    run(&[own_binary.to_str().unwrap(), "seven", token, "stay"], dir, cancel)
}

fn wait_for_seven(dir: &Path) {
    wait_for("all seven", || fs::read(dir.join("stdout")).is_ok_and(|text| text == b"seven\n"));
}

fn read_output(dir: &Path) {
    let bytes = std::env::var("RUNNER_BENCH_BYTES").unwrap_or_else(|_| "300000000".to_owned());
    let script = format!("head -c {bytes} /dev/zero | tr '\\0' x; grep VmHWM /proc/$PPID/status >&2");
    let before_kb = kilobytes("self", "VmRSS");
    let result = run(&["/bin/sh", "-c", &script], dir, &CancelHandle::new().unwrap());
    let growth_kb = kilobytes("self", "VmHWM") - before_kb;
    let log = fs::metadata(dir.join("stdout")).unwrap().len();
    let rate = result.stdout.total as f64 / 1e6 / result.elapsed.as_secs_f64();
    println!("output: {} bytes in {:.2?}, {rate:.0} MB/s", result.stdout.total, result.elapsed);
    println!("output: log {log} bytes, {} dropped", result.stdout.dropped);
    let supervisor = fs::read_to_string(dir.join("stderr")).unwrap();
    println!("output: runner grew by {growth_kb} kB; supervisor's {}", supervisor.trim());
}

/// The time from the kill request to the return of `run`, and the number of survivors.
fn kill_seven(dir: &Path) {
    let mut times = Vec::new();
    let mut survivors = 0;
    for number in 0..20 {
        let token = format!("bench-{}-{number}", std::process::id());
        let cancel = CancelHandle::new().unwrap();
        let _ = fs::remove_file(dir.join("stdout"));
        let elapsed = std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                wait_for_seven(dir);
                cancel.kill();
                Instant::now()
            });
            run_seven(&token, dir, &cancel);
            let returned_at = Instant::now();
            returned_at - killer.join().unwrap()
        });
        survivors += alive(&token).len();
        times.push(elapsed);
    }
    println!("kill of seven processes: {}, survivors {survivors}", spread(times));
}

/// The time from SIGKILL to the runner until all seven are dead.
fn kill_runner(dir: &Path) {
    let mut times = Vec::new();
    for number in 0..10 {
        let number = format!("{}-{number}", std::process::id());
        let _ = fs::remove_file(dir.join("stdout"));
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["hold", &number]).arg(dir).stdin(Stdio::null());
        let mut runner = command.spawn().unwrap();
        wait_for_seven(dir);
        let seven = alive(&format!("bench-hold-{number}"));
        assert_eq!(seven.len(), 7);
        runner.kill().unwrap();
        let since = Instant::now();
        wait_for("their end", || seven.iter().all(|pid| rustix::process::test_kill_process(*pid).is_err()));
        times.push(since.elapsed());
        let status = runner.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(Signal::KILL.as_raw()));
    }
    println!("kill of seven processes after kill -9 of the runner: {}", spread(times));
}

/// The cost of a program that does nothing, for a small and for a large runner.
fn spawn_nothing(dir: &Path) {
    let cancel = CancelHandle::new().unwrap();
    let cost = |megabytes: usize| {
        let ballast = vec![1_u8; megabytes << 20];
        let times = (0..100).map(|_| run(&["/bin/true"], dir, &cancel).elapsed).collect();
        assert!(ballast.iter().step_by(4096).all(|byte| *byte == 1));
        let resident = kilobytes("self", "VmRSS") >> 10;
        let times = sorted(times);
        println!("start and end of /bin/true, runner of {resident} MB: {}", spread(times.clone()));
        times[times.len() / 2]
    };
    let small = cost(10);
    let large = cost(1_024);
    println!("large to small: {:.2}", large.as_secs_f64() / small.as_secs_f64());
    let plain = (0..100).map(|_| {
        let since = Instant::now();
        Command::new("/bin/true").status().unwrap();
        since.elapsed()
    });
    println!("/bin/true without a supervisor: {}", spread(plain.collect()));
}

fn sorted(mut times: Vec<Duration>) -> Vec<Duration> {
    times.sort();
    times
}

fn spread(times: Vec<Duration>) -> String {
    let times = sorted(times);
    format!("min {:.2?}, median {:.2?}, max {:.2?}", times[0], times[times.len() / 2], times[times.len() - 1])
}
