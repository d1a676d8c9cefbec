//! What the soak measures: time per iteration, memory, file descriptors, processes and sizes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::processes::{children_of, kilobytes};

const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How many iterations before and after a number give its median.
const WINDOW: usize = 10;
/// How many give the mean of the processor time. Every 200 or so, maintenance packs objects.
const PROCESSOR_WINDOW: usize = 100;
/// The iterations whose own times are compared, and how much the later one may take more.
const COMPARED: [usize; 2] = [10, 1700];
const GROWTH_MAX: f64 = 1.2;
/// How much memory a command may use that reads the whole run.
const PEAK_MEGABYTES_MAX: f64 = 200.0;
/// The unit of times in `/proc/PID/stat` on x86-64.
const TICK_MILLIS: f64 = 10.0;

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

/// The processor time of a process and of its children that have ended, in ticks. Other work on the machine does not count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessorTime {
    ticks: u64,
}

impl ProcessorTime {
    pub(super) fn of(process: u32) -> Self {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name of the program may contain spaces. Fields 14 to 17: user and system time, then those of the children.
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
        Self { ticks: fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum() }
    }

    /// Of the ended children of this process.
    pub(super) fn of_children() -> Self {
        Self::of(std::process::id())
    }

    #[expect(clippy::cast_precision_loss, reason = "a time for people")]
    pub(super) fn millis_since(&self, before: &Self) -> f64 {
        self.ticks.saturating_sub(before.ticks) as f64 * TICK_MILLIS
    }
}

/// The time of one iteration, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct IterationTime {
    /// Without agent and guard.
    pub(super) own: f64,
    /// Of all processors, with agent and guard.
    pub(super) processor: f64,
}

/// One entry per iteration.
#[derive(Debug, Default)]
pub(super) struct LoopFigures {
    times: Vec<IterationTime>,
    processes: Vec<ProcessFigures>,
}

impl LoopFigures {
    pub(super) fn record(&mut self, time: IterationTime, process: ProcessFigures) {
        self.times.push(time);
        self.processes.push(process);
    }

    pub(super) fn iterations(&self) -> usize {
        self.times.len()
    }

    /// Prints the figures around some iterations, and how they grew. Returns what grew too much.
    pub(super) fn print(&self) -> Option<String> {
        let last = self.iterations();
        let mut places = vec![10, 100, 1000, 1700, last];
        places.retain(|place| *place <= last);
        places.dedup();
        for place in places {
            let process = self.processes.get(place.saturating_sub(1)).copied().unwrap_or_default();
            let time = self.around(place);
            crate::print(&format!(
                "at {place:>6}: own time per iteration {:.1} ms (median), processor time {:.1} ms (mean), memory {:.1} MB, \
                 {} descriptors, {} children",
                time.own,
                time.processor,
                to_megabytes(process.memory_kilobytes),
                process.descriptors,
                process.children,
            ));
        }
        let [early, late] = COMPARED.map(|place| place.min(last));
        let ratio = self.ratio(early, late);
        crate::print(&format!(
            "at {late} / at {early}: own time {:.2}, processor time {:.2}",
            ratio.own, ratio.processor
        ));
        self.growth()
    }

    /// Why the own time of a late iteration is too long. A soak that has fewer iterations shows nothing.
    fn growth(&self) -> Option<String> {
        let [early, late] = COMPARED;
        let ratio = self.ratio(early, late).own;
        let is_too_slow = self.iterations() >= late && ratio > GROWTH_MAX;
        is_too_slow.then(|| {
            format!(
                "iteration {late} takes {ratio:.2} times as long as iteration {early}, more than {GROWTH_MAX}"
            )
        })
    }

    fn ratio(&self, early: usize, late: usize) -> IterationTime {
        let (early, late) = (self.around(early), self.around(late));
        let of = |time: fn(&IterationTime) -> f64| time(&late) / time(&early).max(f64::MIN_POSITIVE);
        IterationTime { own: of(|time| time.own), processor: of(|time| time.processor) }
    }

    /// The median of the own time, and the mean of the processor time, whose clock is coarse.
    #[expect(clippy::cast_precision_loss, reason = "a time for people")]
    fn around(&self, place: usize) -> IterationTime {
        let mut own: Vec<f64> = self.window(place, WINDOW).iter().map(|time| time.own).collect();
        own.sort_by(f64::total_cmp);
        let window = self.window(place, PROCESSOR_WINDOW);
        let processor = window.iter().map(|time| time.processor).sum::<f64>() / window.len().max(1) as f64;
        IterationTime { own: own.get(own.len() / 2).copied().unwrap_or_default(), processor }
    }

    fn window(&self, place: usize, width: usize) -> &[IterationTime] {
        let end = (place + width).min(self.iterations());
        self.times.get(end.saturating_sub(2 * width)..end).unwrap_or_default()
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

impl CommandFigures {
    /// Why a command that reads the whole run failed or used too much memory.
    pub(super) fn violation(&self, name: &str) -> Option<String> {
        if self.code != Some(0) {
            return Some(format!("`runner {name}`: exit {:?}", self.code));
        }
        (self.peak_megabytes > PEAK_MEGABYTES_MAX).then(|| {
            format!("`runner {name}` used {:.0} MB, more than {PEAK_MEGABYTES_MAX}", self.peak_megabytes)
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A soak whose iterations take one millisecond each, from number 1,000 on this many.
    fn figures(iterations: usize, later: f64) -> LoopFigures {
        let mut figures = LoopFigures::default();
        for number in 1..=iterations {
            let own = if number < 1000 { 1.0 } else { later };
            figures.record(IterationTime { own, processor: 1.0 }, ProcessFigures::default());
        }
        figures
    }

    #[test]
    fn a_late_iteration_that_takes_longer_fails_the_soak() {
        assert_eq!(figures(2000, 1.19).growth(), None);
        let growth = figures(2000, 1.25).growth().unwrap();
        assert_eq!(growth, "iteration 1700 takes 1.25 times as long as iteration 10, more than 1.2");
        assert_eq!(figures(1699, 9.0).growth(), None, "it has no iteration 1,700");
        let mut slow_end = figures(1900, 1.0);
        slow_end.times.extend(figures(2000, 9.0).times.into_iter().skip(1900));
        assert_eq!(slow_end.growth(), None, "the promise is about iteration 1,700");
    }

    #[test]
    fn a_command_that_fails_or_needs_much_memory_fails_the_soak() {
        let figures =
            |code, peak_megabytes| CommandFigures { code: Some(code), seconds: 1.0, peak_megabytes };
        assert_eq!(figures(0, 199.0).violation("verify"), None);
        let violation = figures(0, 201.0).violation("verify");
        assert_eq!(violation.as_deref(), Some("`runner verify` used 201 MB, more than 200"));
        assert!(figures(1, 1.0).violation("verify").is_some());
    }
}
