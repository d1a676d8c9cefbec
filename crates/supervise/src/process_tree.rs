//! Finds and kills everything that descends from this process, through `/proc` (Linux).
//!
//! A process can leave its group and its session and outlive its parent, but it cannot leave its ancestry: an orphan is
//! re-parented to the nearest ancestor that is a sub-reaper, so it stays a descendant of this process. A process that a
//! system service starts on a program's behalf (a container, a timer, a job of the user's service manager) is not a
//! descendant and is not found.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

use crate::protocol::LeftoverProcesses;
use crate::spec::SignalTarget;

/// How long killed processes may take to disappear.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(16);

/// The fields of `/proc/<pid>/stat` that are needed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcStat {
    pid: Pid,
    parent: i32,
    group: i32,
    session: i32,
    /// In clock ticks since boot. Together with the pid it identifies a process, even after the pid is reused.
    start_time: u64,
    is_dead: bool,
}

/// Makes this process a sub-reaper: orphans among its descendants become its children.
pub(super) fn adopt_orphans() -> rustix::io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
}

/// Kills all descendants. The count does not include `program`.
pub(super) fn kill_descendants(program: Pid) -> LeftoverProcesses {
    kill_trees(own_children, Some(program))
}

/// Kills the processes that were re-parented to this process when a supervisor died.
///
/// They are recognised by their session: a supervisor starts a session of its own, its descendants cannot join the session of
/// this process, and this process's other children never leave it.
pub(super) fn kill_orphans() -> LeftoverProcesses {
    let own_session = own_session();
    let find_orphans =
        || own_children().into_iter().filter(|process| process.session != own_session).collect();
    kill_trees(find_orphans, None)
}

/// The session of this process; 0 if the session leader is outside of the container that this process runs in.
///
/// Read from `/proc` like that of the others, because the wrapper of the system call rejects 0.
fn own_session() -> i32 {
    read_stat(&rustix::process::getpid().to_string()).map_or(0, |process| process.session)
}

/// Kills every process whose environment has this variable with this value, and its descendants, except this process.
pub(super) fn kill_by_env_marker(name: &OsStr, value: &OsStr) -> LeftoverProcesses {
    let marker = [name.as_bytes(), b"=", value.as_bytes()].concat();
    let has_marker = |process: &ProcStat| {
        let environ = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        process.pid != rustix::process::getpid() && environ.split(|byte| *byte == 0).any(|one| one == marker)
    };
    kill_trees(|| all_processes().filter(has_marker).collect(), None)
}

/// Signals the processes inside a sandbox, but not the sandbox itself. Its outer process would kill everything at once, and
/// its inner process is pid 1 of its namespace and ignores such signals.
pub(super) fn signal_inside(sandbox: Pid, target: SignalTarget, signal: Signal) {
    let init_processes = children_of(sandbox);
    let inside = init_processes.iter().flat_map(|init| children_of(init.pid));
    let receivers: Vec<ProcStat> = match target {
        // Orphans become children of pid 1 too; the program is the oldest of its children.
        SignalTarget::Program => inside.min_by_key(|process| process.start_time).into_iter().collect(),
        SignalTarget::Group => {
            let mut processes = with_descendants(inside.collect());
            processes.retain(|process| process.group == sandbox.as_raw_pid());
            processes
        }
    };
    for process in receivers {
        process.signal(signal);
    }
}

/// The CPU time that the descendants of a process have used so far, those that it reaped included.
pub(super) fn cpu_time_below(ancestor: Pid) -> Option<Duration> {
    let mut ticks = cpu_ticks(ancestor)?.of_reaped;
    for process in with_descendants(children_of(ancestor)) {
        ticks += cpu_ticks(process.pid).map_or(0, |ticks| ticks.own + ticks.of_reaped);
    }
    Some(Duration::from_millis(ticks.saturating_mul(1000 / TICKS_PER_SEC)))
}

/// The kernel's unit for CPU time in `/proc`; the same on every architecture that this program is built for.
const TICKS_PER_SEC: u64 = 100;

/// CPU time in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuTicks {
    own: u64,
    /// Of children that ended and were waited for.
    of_reaped: u64,
}

fn cpu_ticks(pid: Pid) -> Option<CpuTicks> {
    parse_cpu_ticks(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_cpu_ticks(line: &[u8]) -> Option<CpuTicks> {
    let fields = fields_after_name(line)?;
    let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
    Some(CpuTicks { own: ticks(11)? + ticks(12)?, of_reaped: ticks(13)? + ticks(14)? })
}

/// Sends SIGSTOP to all descendants.
pub(super) fn suspend_descendants() {
    freeze(&own_children, Instant::now() + KILL_TIMEOUT);
}

/// Sends SIGCONT to all descendants.
pub(super) fn resume_descendants() {
    for process in with_descendants(own_children()) {
        process.signal(Signal::CONT);
    }
}

/// Kills the processes that `find_roots` returns and all of their descendants, and reaps those that are children of this
/// process.
///
/// It stops them from the top down until no new ones appear, so that none can fork behind the walk, then kills them, and
/// repeats until none is left.
fn kill_trees(find_roots: impl Fn() -> Vec<ProcStat>, program: Option<Pid>) -> LeftoverProcesses {
    let deadline = Instant::now() + KILL_TIMEOUT;
    let mut pause = FIRST_PAUSE;
    let mut killed = BTreeSet::new();
    loop {
        let frozen = freeze(&find_roots, deadline);
        for process in frozen.values() {
            if !process.is_dead && process.signal(Signal::KILL) && Some(process.pid) != program {
                killed.insert((process.pid.as_raw_pid(), process.start_time));
            }
        }
        reap(frozen.values());
        let left = with_descendants(find_roots());
        if left.is_empty() || Instant::now() >= deadline {
            let alive = left.iter().filter(|process| !process.is_dead).count();
            return LeftoverProcesses { killed: killed.len(), alive };
        }
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// Stops the roots and their descendants, until no new ones appear.
fn freeze(find_roots: &impl Fn() -> Vec<ProcStat>, deadline: Instant) -> BTreeMap<i32, ProcStat> {
    let mut frozen = BTreeMap::new();
    loop {
        let before = frozen.len();
        for process in with_descendants(find_roots()) {
            if frozen.insert(process.pid.as_raw_pid(), process) != Some(process) && !process.is_dead {
                process.signal(Signal::STOP);
            }
        }
        if frozen.len() == before || Instant::now() >= deadline {
            return frozen;
        }
    }
}

/// Reaps own children. Others are reaped by their parents, or become children of this process later.
fn reap<'a>(processes: impl Iterator<Item = &'a ProcStat>) {
    let own_pid = rustix::process::getpid().as_raw_pid();
    for process in processes.filter(|process| process.parent == own_pid) {
        let _ = rustix::process::waitpid(Some(process.pid), WaitOptions::NOHANG);
    }
}

/// The given processes and all of their descendants, parents before children.
fn with_descendants(mut processes: Vec<ProcStat>) -> Vec<ProcStat> {
    let mut visited = BTreeSet::new();
    let mut next = 0;
    while let Some(process) = processes.get(next).copied() {
        next += 1;
        if visited.insert(process.pid.as_raw_pid()) {
            processes.extend(children_of(process.pid));
        }
    }
    processes
}

fn own_children() -> Vec<ProcStat> {
    children_of(rustix::process::getpid())
}

fn children_of(pid: Pid) -> Vec<ProcStat> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut children = Vec::new();
    for task in tasks.flatten() {
        match fs::read_to_string(task.path().join("children")) {
            Ok(list) => children.extend(list.split_ascii_whitespace().filter_map(read_stat)),
            // The kernel was built without this file.
            Err(_) if task.path().exists() => return children_by_search(pid),
            // The thread has exited, and its children belong to another thread by now.
            Err(_) => {}
        }
    }
    children.retain(|child| child.parent == pid.as_raw_pid());
    children
}

/// The same, by reading the parent of every process on the machine.
fn children_by_search(pid: Pid) -> Vec<ProcStat> {
    all_processes().filter(|process| process.parent == pid.as_raw_pid()).collect()
}

fn all_processes() -> impl Iterator<Item = ProcStat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read_stat(entry.file_name().to_str()?))
}

fn read_stat(pid: &str) -> Option<ProcStat> {
    let pid = Pid::from_raw(pid.parse().ok()?)?;
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(pid, &line)
}

/// The fields of a line of `/proc/<pid>/stat` after the process name. The name, in parentheses, may contain anything, so the
/// fields are counted from the last parenthesis.
fn fields_after_name(line: &[u8]) -> Option<Vec<&str>> {
    let end_of_name = line.iter().rposition(|byte| *byte == b')')?;
    let text = std::str::from_utf8(line.get(end_of_name + 1..)?).ok()?;
    Some(text.split_ascii_whitespace().collect())
}

/// Parses a line of `/proc/<pid>/stat`.
fn parse_stat(pid: Pid, line: &[u8]) -> Option<ProcStat> {
    let fields = fields_after_name(line)?;
    Some(ProcStat {
        pid,
        is_dead: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

impl ProcStat {
    /// Sends a signal to this process, and never to another one that has reused its pid.
    fn signal(&self, signal: Signal) -> bool {
        match rustix::process::pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(pidfd) => self.is_same() && rustix::process::pidfd_send_signal(pidfd, signal).is_ok(),
            Err(rustix::io::Errno::SRCH) => false,
            // The kernel has no pidfds, or this process has no descriptors left.
            Err(_) => self.is_same() && rustix::process::kill_process(self.pid, signal).is_ok(),
        }
    }

    fn is_same(&self) -> bool {
        read_stat(&self.pid.to_string()).is_some_and(|now| now.start_time == self.start_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_parsed_after_a_name_that_contains_parentheses() {
        let line = b"77 (a) S 1 (b) R 12 77 76 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 1 2";
        let process = parse_stat(Pid::from_raw(77).unwrap(), line).unwrap();
        assert_eq!(
            (process.parent, process.session, process.start_time, process.is_dead),
            (12, 76, 123_456, false)
        );
        assert_eq!(parse_stat(Pid::from_raw(77).unwrap(), b"77 (a"), None);
        let entered = b"77 (a) S 0 0 0 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 1 2";
        let process = parse_stat(Pid::from_raw(77).unwrap(), entered).unwrap();
        assert_eq!((process.parent, process.session), (0, 0), "both are outside of the container");
    }

    #[test]
    fn cpu_time_is_parsed_with_that_of_reaped_children() {
        let line = b"77 (a) b) R 12 77 76 0 -1 4194560 1 0 0 0 30 4 200 10 20 0 1 0 123456 1 2";
        assert_eq!(parse_cpu_ticks(line), Some(CpuTicks { own: 34, of_reaped: 210 }));
        assert_eq!(parse_cpu_ticks(b"77 (a) R 12"), None);
    }

    #[test]
    fn a_child_is_found_by_list_and_by_search() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own_pid = rustix::process::getpid();
        let pid = Pid::from_child(&child);
        let by_list = children_of(own_pid).into_iter().find(|process| process.pid == pid);
        let by_search = children_by_search(own_pid).into_iter().find(|process| process.pid == pid);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(by_list.is_some());
        assert_eq!(by_list.map(|process| process.start_time), by_search.map(|process| process.start_time));
        assert!(!by_list.unwrap().signal(Signal::KILL), "its pid is free now");
    }
}
