//! Everything that descends from this process, and how to end it.
//!
//! A process can leave its group and its session, and outlive its parent; it cannot leave its descent. What loses
//! its parent falls to the nearest ancestor that asked for orphans (a sub-reaper), so it is still a descendant of
//! this one. What no descendant starts, but a service of the system on its behalf (a container, a timer, a job of
//! the user's service manager), is none and is not found here.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

use crate::SignalTarget;
use crate::protocol::LeftoverProcesses;

/// How long killed processes may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(16);

/// What the system says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcStat {
    pid: Pid,
    parent: i32,
    group: i32,
    session: i32,
    /// In clock ticks since the machine was started. With the number it names one process for ever.
    started: u64,
    is_dead: bool,
}

/// Lets orphans fall to this process from now on.
pub(super) fn adopt_orphans() -> rustix::io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
}

/// Ends all descendants, of which `itself` is not counted.
pub(super) fn end_all(itself: Pid) -> LeftoverProcesses {
    end(own_children, Some(itself))
}

/// Ends what fell to this process when a supervisor died.
///
/// A supervisor begins a session of its own, which none of its descendants can leave for that of this process,
/// while this process's other children never leave it.
pub(super) fn end_foreign_sessions() -> LeftoverProcesses {
    let own = own_session();
    end(|| own_children().into_iter().filter(|member| member.session != own).collect(), None)
}

/// The session of this process; 0 when it began outside of the container that this process runs in.
///
/// Read as it is for the others: the system call's wrapper takes 0 for impossible.
fn own_session() -> i32 {
    member_of(&rustix::process::getpid().to_string()).map_or(0, |member| member.session)
}

/// Ends every process that has this variable with this value, and what descends from it. This process is spared.
pub(super) fn end_marked(name: &OsStr, value: &OsStr) -> LeftoverProcesses {
    let mark = [name.as_bytes(), b"=", value.as_bytes()].concat();
    let is_marked = |member: &ProcStat| {
        let variables = fs::read(format!("/proc/{}/environ", member.pid)).unwrap_or_default();
        member.pid != rustix::process::getpid() && variables.split(|byte| *byte == 0).any(|one| one == mark)
    };
    end(|| everyone().filter(is_marked).collect(), None)
}

/// Signals what runs in a sandbox, but not the sandbox: its outer process, which would take everything with it, and its
/// inner one, which is the first process in there and hears no such signal.
pub(super) fn signal_inside(sandbox: Pid, reach: SignalTarget, signal: Signal) {
    let first = children_of(sandbox);
    let inside = first.iter().flat_map(|member| children_of(member.pid));
    let asked: Vec<ProcStat> = match reach {
        // Orphans fall to the first process, too; the program is the oldest of its children.
        SignalTarget::Program => inside.min_by_key(|member| member.started).into_iter().collect(),
        SignalTarget::Group => {
            let is_of_group = |member: &ProcStat| member.group == sandbox.as_raw_pid();
            descended(inside.collect()).into_iter().filter(is_of_group).collect()
        }
    };
    asked.iter().for_each(|member| {
        member.signal(signal);
    });
}

/// Lets all descendants stand still.
pub(super) fn pause_all() {
    stop(&own_children, Instant::now() + GONE_WITHIN);
}

/// Lets them go on.
pub(super) fn continue_all() {
    for member in descended(own_children()) {
        member.signal(Signal::CONT);
    }
}

/// Ends the processes that are found, with all that descends from them, and reaps those that fell to this one.
///
/// They are stopped from the top down until no new ones appear, so that none starts another behind the back of
/// this walk, then killed; and all that again until none is there.
fn end(find: impl Fn() -> Vec<ProcStat>, itself: Option<Pid>) -> LeftoverProcesses {
    let until = Instant::now() + GONE_WITHIN;
    let mut pause = FIRST_PAUSE;
    let mut killed = BTreeSet::new();
    loop {
        let members = stop(&find, until);
        for member in members.values() {
            if !member.is_dead && member.signal(Signal::KILL) && Some(member.pid) != itself {
                killed.insert((member.pid.as_raw_pid(), member.started));
            }
        }
        reap(members.values());
        let left = descended(find());
        if left.is_empty() || Instant::now() >= until {
            let alive = left.iter().filter(|member| !member.is_dead).count();
            return LeftoverProcesses { killed: killed.len(), alive };
        }
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// Stops what is found and what descends from it, until no new ones appear.
fn stop(find: &impl Fn() -> Vec<ProcStat>, until: Instant) -> BTreeMap<i32, ProcStat> {
    let mut members = BTreeMap::new();
    loop {
        let before = members.len();
        for member in descended(find()) {
            if members.insert(member.pid.as_raw_pid(), member) != Some(member) && !member.is_dead {
                member.signal(Signal::STOP);
            }
        }
        if members.len() == before || Instant::now() >= until {
            return members;
        }
    }
}

/// Takes note of the deaths of own children. Others are reaped by their parents, or fall to this process.
fn reap<'a>(members: impl Iterator<Item = &'a ProcStat>) {
    let me = rustix::process::getpid().as_raw_pid();
    for member in members.filter(|member| member.parent == me) {
        let _ = rustix::process::waitpid(Some(member.pid), WaitOptions::NOHANG);
    }
}

/// These, and all that descends from them, parents before their children.
fn descended(mut found: Vec<ProcStat>) -> Vec<ProcStat> {
    let mut known = BTreeSet::new();
    let mut next = 0;
    while let Some(member) = found.get(next).copied() {
        next += 1;
        if known.insert(member.pid.as_raw_pid()) {
            found.extend(children_of(member.pid));
        }
    }
    found
}

fn own_children() -> Vec<ProcStat> {
    children_of(rustix::process::getpid())
}

fn children_of(pid: Pid) -> Vec<ProcStat> {
    let tasks = format!("/proc/{pid}/task");
    let Ok(tasks) = fs::read_dir(tasks) else { return Vec::new() };
    let mut children = Vec::new();
    for task in tasks.flatten() {
        match fs::read_to_string(task.path().join("children")) {
            Ok(list) => children.extend(list.split_ascii_whitespace().filter_map(member_of)),
            // The thread is gone, and its children belong to another one by now; or this kernel has no such list.
            Err(_) if task.path().exists() => return children_by_search(pid),
            Err(_) => {}
        }
    }
    children.retain(|child| child.parent == pid.as_raw_pid());
    children
}

/// The same, by asking every process of the machine.
fn children_by_search(pid: Pid) -> Vec<ProcStat> {
    everyone().filter(|member| member.parent == pid.as_raw_pid()).collect()
}

fn everyone() -> impl Iterator<Item = ProcStat> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| member_of(entry.file_name().to_str()?))
}

fn member_of(number: &str) -> Option<ProcStat> {
    let pid = Pid::from_raw(number.parse().ok()?)?;
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    understand(pid, &line)
}

/// Reads a process's line of facts. Its name, in parentheses, may hold anything.
fn understand(pid: Pid, line: &[u8]) -> Option<ProcStat> {
    let end_of_name = line.iter().rposition(|byte| *byte == b')')?;
    let facts = std::str::from_utf8(line.get(end_of_name + 1..)?).ok()?;
    let facts: Vec<&str> = facts.split_ascii_whitespace().collect();
    Some(ProcStat {
        pid,
        is_dead: matches!(*facts.first()?, "Z" | "X"),
        parent: facts.get(1)?.parse().ok()?,
        group: facts.get(2)?.parse().ok()?,
        session: facts.get(3)?.parse().ok()?,
        started: facts.get(19)?.parse().ok()?,
    })
}

impl ProcStat {
    /// Sends a signal to this process and to no other that has its number by now.
    fn signal(&self, signal: Signal) -> bool {
        match rustix::process::pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(handle) => self.is_same() && rustix::process::pidfd_send_signal(handle, signal).is_ok(),
            Err(rustix::io::Errno::SRCH) => false,
            // A kernel without such handles, or no handle left.
            Err(_) => self.is_same() && rustix::process::kill_process(self.pid, signal).is_ok(),
        }
    }

    fn is_same(&self) -> bool {
        member_of(&self.pid.to_string()).is_some_and(|now| now.started == self.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_behind_a_name_that_lies() {
        let line = b"77 (a) S 1 (b) R 12 77 76 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 1 2";
        let member = understand(Pid::from_raw(77).unwrap(), line).unwrap();
        assert_eq!((member.parent, member.session, member.started, member.is_dead), (12, 76, 123_456, false));
        assert_eq!(understand(Pid::from_raw(77).unwrap(), b"77 (a"), None);
        let entered = b"77 (a) S 0 0 0 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 1 2";
        let member = understand(Pid::from_raw(77).unwrap(), entered).unwrap();
        assert_eq!((member.parent, member.session), (0, 0), "both are outside of the container");
    }

    #[test]
    fn a_child_is_found_by_either_way() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let me = rustix::process::getpid();
        let pid = Pid::from_child(&child);
        let by_list = children_of(me).into_iter().find(|member| member.pid == pid);
        let by_search = children_by_search(me).into_iter().find(|member| member.pid == pid);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(by_list.is_some());
        assert_eq!(by_list.map(|member| member.started), by_search.map(|member| member.started));
        assert!(!by_list.unwrap().signal(Signal::KILL), "its number means nobody now");
    }
}
