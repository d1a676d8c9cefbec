//! Watches how much memory, how many processes and how much disk a trial uses, and kills it when it uses more than its case
//! allows. The kernel's own limits apply to single processes; these apply to the trial as a whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use supervise::IoError;

use crate::case::Case;
use crate::execution::disk_share;
use crate::execution::process::{CommandResult, CommandRunner, CommandSpec};
use crate::execution::sandbox::ProcessQuotas;
use crate::files::agent_folders::{DiskUsage, FOLDER_DEPTH_MAX, UsageLimit};

const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);
/// The files are measured in every n-th sample, because that reads every folder, and in every one while the disk is full.
const DISK_EVERY: u32 = 8;
/// A folder with more entries than this is over any quota; counting stops there.
const ENTRIES_MAX: u64 = 2_000_000;

/// What a trial may use as a whole.
#[derive(Clone, Debug)]
pub(crate) struct TrialQuotas {
    pub(crate) memory_bytes: u64,
    pub(crate) processes: u64,
    pub(crate) disk_bytes: u64,
    /// Where it may write.
    pub(crate) folders: Vec<PathBuf>,
}

/// A program that ran under quotas.
pub(crate) struct WatchedRun {
    pub(crate) result: Result<CommandResult, IoError>,
    /// The quota that it exceeded.
    pub(crate) exceeded: Option<String>,
}

/// Runs a program and kills it when it exceeds a quota.
pub(crate) fn run_watched(
    quotas: &TrialQuotas,
    commands: &CommandRunner,
    spec: &CommandSpec<'_>,
) -> WatchedRun {
    let watch = QuotaWatch { quotas, state: Mutex::default(), ended: Condvar::new() };
    let result = std::thread::scope(|scope| {
        scope.spawn(|| watch.sample());
        let result = commands.run(spec);
        watch.lock().is_over = true;
        watch.ended.notify_all();
        result
    });
    // What was written since the last sample counts too: it is copied, and it stays on the disk.
    let exceeded = watch.lock().exceeded.take().or_else(|| quotas.disk_excess());
    WatchedRun { result, exceeded }
}

/// A watch over the descendants of this process.
struct QuotaWatch<'a> {
    quotas: &'a TrialQuotas,
    state: Mutex<WatchState>,
    ended: Condvar,
}

#[derive(Default)]
struct WatchState {
    is_over: bool,
    exceeded: Option<String>,
}

impl QuotaWatch<'_> {
    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Samples until the program has ended.
    fn sample(&self) {
        let mut sample = 0_u32;
        let mut state = self.lock();
        while !state.is_over {
            drop(state);
            let is_full = self.quotas.folders.first().is_some_and(|folder| disk_share::is_full(folder));
            let is_disk_sample = is_full || sample % DISK_EVERY == DISK_EVERY - 1;
            let excess = self.find_excess(is_disk_sample);
            state = self.lock();
            if let Some(what) = excess.filter(|_| !state.is_over) {
                state.exceeded.get_or_insert(what);
                kill_programs();
            }
            sample = sample.wrapping_add(1);
            let waited = self.ended.wait_timeout_while(state, SAMPLE_INTERVAL, |state| !state.is_over);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn find_excess(&self, is_disk_sample: bool) -> Option<String> {
        let TrialQuotas { memory_bytes, processes, .. } = *self.quotas;
        let usage = ProcessUsage::of_descendants();
        if usage.memory_bytes > memory_bytes {
            return Some(format!("memory: more than {} MB", memory_bytes >> 20));
        }
        if usage.processes > processes {
            return Some(format!("processes: more than {processes}"));
        }
        if is_disk_sample { self.quotas.disk_excess() } else { None }
    }
}

impl TrialQuotas {
    /// What a case allows programs that may write to these folders.
    pub(crate) fn of_case(case: &Case, folders: Vec<PathBuf>) -> Self {
        Self {
            memory_bytes: u64::from(case.limits.memory_mb) << 20,
            processes: case.limits.processes.into(),
            disk_bytes: u64::from(case.limits.disk_mb) << 20,
            folders,
        }
    }

    /// The part that the kernel enforces on each process.
    pub(crate) fn of_processes(&self) -> ProcessQuotas {
        ProcessQuotas { file_bytes_max: self.disk_bytes, processes_max: self.processes }
    }

    /// Which quota the files of the trial exceed.
    pub(crate) fn disk_excess(&self) -> Option<String> {
        let limit = UsageLimit { bytes: self.disk_bytes, entries: ENTRIES_MAX };
        let mut total = DiskUsage::default();
        for folder in &self.folders {
            total.add(folder, limit);
        }
        if total.is_too_deep {
            return Some(format!("disk: folders nested more than {FOLDER_DEPTH_MAX} deep"));
        }
        total.exceeds(limit).then(|| format!("disk: more than {} MB", self.disk_bytes >> 20))
    }
}

#[derive(Default)]
struct ProcessUsage {
    processes: u64,
    memory_bytes: u64,
}

impl ProcessUsage {
    /// Of every descendant of this process that is not a supervisor of it.
    fn of_descendants() -> Self {
        let parents = parents();
        let own = std::process::id();
        let mut usage = Self::default();
        for pid in parents.keys().filter(|pid| depth_below(own, **pid, &parents) >= PROGRAM_DEPTH) {
            usage.processes += 1;
            usage.memory_bytes += resident_bytes(*pid);
        }
        usage
    }
}

/// The supervisor is a child of this process, and the program that it runs is a child of the supervisor.
const PROGRAM_DEPTH: u32 = 2;
/// Longer chains of parents are cut off; a process table may change while it is read.
const DEPTH_MAX: u32 = 10_000;

/// How many generations `pid` is below `ancestor`; 0 if it is not below it.
fn depth_below(ancestor: u32, pid: u32, parents: &BTreeMap<u32, u32>) -> u32 {
    let mut current = pid;
    for depth in 1..DEPTH_MAX {
        match parents.get(&current) {
            Some(parent) if *parent == ancestor => return depth,
            Some(parent) if *parent > 1 => current = *parent,
            _ => return 0,
        }
    }
    0
}

/// The parent of every process.
fn parents() -> BTreeMap<u32, u32> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in parentheses may contain anything, even parentheses.
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        if let Some(parent) = parent {
            parents.insert(pid, parent);
        }
    }
    parents
}

fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.unwrap_or(0_u64) << 10
}

/// Kills the programs that this process runs. Their supervisors kill everything below.
fn kill_programs() {
    let parents = parents();
    let own = std::process::id();
    for pid in parents.keys().filter(|pid| depth_below(own, **pid, &parents) == PROGRAM_DEPTH) {
        if let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_file_counts_with_its_length() {
        let folder = tempfile::tempdir().unwrap();
        let quotas = TrialQuotas {
            memory_bytes: 1,
            processes: 1,
            disk_bytes: 1 << 20,
            folders: vec![folder.path().to_owned()],
        };
        fs::write(folder.path().join("small"), "x").unwrap();
        assert_eq!(quotas.disk_excess(), None);
        fs::File::create(folder.path().join("sparse")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(quotas.disk_excess().as_deref(), Some("disk: more than 1 MB"));
    }

    #[test]
    fn depth_counts_generations() {
        let parents = BTreeMap::from([(10, 1), (11, 10), (12, 11), (13, 12), (20, 1)]);
        assert_eq!(depth_below(10, 13, &parents), 3);
        assert_eq!(depth_below(10, 20, &parents), 0);
        assert_eq!(depth_below(10, 10, &parents), 0);
    }
}
