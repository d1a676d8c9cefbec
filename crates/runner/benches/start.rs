//! The time from the start of a program to its end, compared with that of `/bin/true`, for commands that do little.
//!
//! `just bench start` measures the build of the `release` profile, and with `RUNNER_BENCH_PROGRAM` another one, such as the
//! static executable of `just release`. `RUNNER_BENCH_STARTS` sets the number of starts of each command [default: 500].
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints its results, and may panic"
)]

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time of `--help`, as a multiple of the time of `/bin/true`.
const GOAL: f64 = 1.5;

const COMMANDS: &[&[&str]] = &[&["--help"], &["--version"], &["log", "--help"], &["nothing"]];

struct Started {
    name: String,
    program: OsString,
    args: &'static [&'static str],
    times: Vec<Duration>,
}

impl Started {
    fn new(kind: &str, program: OsString, args: &'static [&'static str]) -> Self {
        Self { name: format!("{kind} {}", args.join(" ")), program, args, times: Vec::new() }
    }

    fn start(&mut self) {
        let mut command = Command::new(&self.program);
        command.args(self.args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let since = Instant::now();
        command.status().unwrap();
        self.times.push(since.elapsed());
    }

    fn min(&self) -> Duration {
        self.times[0]
    }

    fn median(&self) -> Duration {
        self.times[self.times.len() / 2]
    }
}

fn main() {
    let starts = std::env::var("RUNNER_BENCH_STARTS").map_or(500, |number| number.parse().unwrap());
    let mut programs = vec![Started::new("/bin/true", "/bin/true".into(), &[])];
    let own = ("runner", OsString::from(env!("CARGO_BIN_EXE_runner")));
    let other = std::env::var_os("RUNNER_BENCH_PROGRAM").map(|program| ("RUNNER_BENCH_PROGRAM", program));
    for (kind, program) in std::iter::once(own).chain(other) {
        programs.extend(COMMANDS.iter().map(|args| Started::new(kind, program.clone(), args)));
    }
    // Each in turn, so that other work of the machine delays all alike.
    for _ in 0..starts {
        programs.iter_mut().for_each(Started::start);
    }
    programs.iter_mut().for_each(|started| started.times.sort());
    let ratio = |time: Duration, of: Duration| time.as_secs_f64() / of.as_secs_f64();
    println!("{starts} starts of each; in brackets: times that of /bin/true; goal of --help: {GOAL:.1}");
    for started in &programs {
        let (min, median) = (started.min(), started.median());
        println!(
            "{:<36} min {min:>9.1?} ({:.2})   median {median:>9.1?} ({:.2})",
            started.name,
            ratio(min, programs[0].min()),
            ratio(median, programs[0].median()),
        );
    }
}
