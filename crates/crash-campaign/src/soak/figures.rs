//! What the soak measures: time per iteration, memory, file descriptors, processes and sizes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::processes::{children_of, kilobytes};

const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How many iterations around a number give its median.
const WINDOW: usize = 10;

/// The resources of the runner's process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessFigures {
    memory_kilobytes: u64,
    descriptors: usize,
    children: usize,
}

impl ProcessFigures {
    pub(super) fn read(process: u32) -> Self {
        let name = process.to_string();
        let pid = rustix::process::Pid::from_raw(process.cast_signed());
        Self {
            memory_kilobytes: kilobytes(&name, "VmRSS"),
            descriptors: fs::read_dir(format!("/proc/{name}/fd")).map_or(0, Iterator::count),
            children: pid.map_or(0, |pid| children_of(pid).len()),
        }
    }
}

/// One entry per iteration.
#[derive(Debug, Default)]
pub(super) struct LoopFigures {
    own_millis: Vec<f64>,
    processes: Vec<ProcessFigures>,
}

impl LoopFigures {
    pub(super) fn record(&mut self, own_millis: f64, process: ProcessFigures) {
        self.own_millis.push(own_millis);
        self.processes.push(process);
    }

    pub(super) fn iterations(&self) -> usize {
        self.own_millis.len()
    }

    /// Prints the figures around iterations 10, 100, 1,000 and the last one, and the ratio of the last to the first.
    pub(super) fn print(&self) {
        let last = self.iterations();
        let places = [10, 100, 1000, last];
        for place in places.into_iter().filter(|place| *place <= last) {
            let process = self.processes.get(place.saturating_sub(1)).copied().unwrap_or_default();
            crate::print(&format!(
                "at {place:>6}: own time per iteration {:.1} ms (median), memory {:.1} MB, {} descriptors, {} children",
                self.median_around(place),
                to_megabytes(process.memory_kilobytes),
                process.descriptors,
                process.children,
            ));
        }
        let ratio = self.median_around(last) / self.median_around(10.min(last)).max(f64::MIN_POSITIVE);
        crate::print(&format!("last / 10th: {ratio:.2}"));
    }

    fn median_around(&self, place: usize) -> f64 {
        let end = (place + WINDOW).min(self.iterations());
        let start = end.saturating_sub(2 * WINDOW);
        let mut window = self.own_millis.get(start..end).unwrap_or_default().to_vec();
        window.sort_by(f64::total_cmp);
        window.get(window.len() / 2).copied().unwrap_or_default()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn to_megabytes(kilobytes: u64) -> f64 {
    kilobytes as f64 / 1024.0
}

/// A command's time and peak memory.
pub(super) struct CommandFigures {
    pub(super) code: Option<i32>,
    pub(super) seconds: f64,
    pub(super) peak_megabytes: f64,
}

pub(super) fn measure(command: &mut Command) -> CommandFigures {
    let started = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the runner");
    let name = child.id().to_string();
    let mut peak = 0;
    let code = loop {
        // The file is gone as soon as the process ended, so the last value counts.
        peak = peak.max(kilobytes(&name, "VmHWM"));
        match child.try_wait().expect("the runner") {
            Some(status) => break status.code(),
            None => std::thread::sleep(POLL_INTERVAL),
        }
    };
    CommandFigures { code, seconds: started.elapsed().as_secs_f64(), peak_megabytes: to_megabytes(peak) }
}

/// The size of all files in a folder.
pub(super) fn folder_megabytes(folder: &Path) -> f64 {
    fn bytes(folder: &Path) -> u64 {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .map(|entry| match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => bytes(&entry.path()),
                Ok(metadata) => metadata.len(),
                Err(_) => 0,
            })
            .sum()
    }
    to_megabytes(bytes(folder) / 1024)
}
