//! Watches how much memory, how many processes and how much disk a trial uses, and kills it when it uses more than its case
//! allows. The kernel's own limits apply to single processes; these apply to the trial as a whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);
/// The disk is measured in every n-th sample, because that reads every folder.
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

/// A watch over the descendants of this process.
pub(crate) struct QuotaWatch<'a> {
    quotas: &'a TrialQuotas,
    exceeded: Mutex<Option<String>>,
    is_over: AtomicBool,
}

impl<'a> QuotaWatch<'a> {
    pub(crate) fn new(quotas: &'a TrialQuotas) -> Self {
        Self { quotas, exceeded: Mutex::new(None), is_over: AtomicBool::new(false) }
    }

    /// Samples on a thread of its own until [`Self::finish`].
    pub(crate) fn start<'scope, 'env>(&'scope self, scope: &'scope Scope<'scope, 'env>) {
        scope.spawn(move || {
            let mut sample = 0_u32;
            while !self.is_over.load(Ordering::SeqCst) {
                let is_disk_sample = sample % DISK_EVERY == DISK_EVERY - 1;
                if let Some(what) = self.find_excess(is_disk_sample) {
                    self.exceeded.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
                    kill_programs();
                }
                sample = sample.wrapping_add(1);
                thread::sleep(SAMPLE_INTERVAL);
            }
        });
    }

    /// Ends the watch and returns the quota that was exceeded.
    pub(crate) fn finish(&self) -> Option<String> {
        self.is_over.store(true, Ordering::SeqCst);
        self.exceeded.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
    /// Which quota the files of the trial exceed, by their length: a sparse file counts whole, because copies fill it.
    pub(crate) fn disk_excess(&self) -> Option<String> {
        let mut total = DiskUsage::default();
        for folder in &self.folders {
            total.add(folder, self.disk_bytes);
        }
        let is_over = total.bytes > self.disk_bytes || total.entries > ENTRIES_MAX;
        is_over.then(|| format!("disk: more than {} MB", self.disk_bytes >> 20))
    }
}

#[derive(Default)]
struct DiskUsage {
    bytes: u64,
    entries: u64,
}

impl DiskUsage {
    fn add(&mut self, folder: &Path, bytes_max: u64) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            self.entries += 1;
            if self.bytes > bytes_max || self.entries > ENTRIES_MAX {
                return;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                self.add(&entry.path(), bytes_max);
            } else {
                self.bytes = self.bytes.saturating_add(metadata.len());
            }
        }
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
