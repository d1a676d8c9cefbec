//! Runs points in parallel, each in a process and a folder of its own, with a deadline.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use testkit::oracle::processes_of;

use crate::point::{PointSpec, PointVerdict};
use crate::scenarios::Workspace;

/// A point that takes longer hangs: the slowest one takes some seconds on an idle machine.
const POINT_TIMEOUT: Duration = Duration::from_secs(240);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How points are run.
pub(crate) struct PointPool<'a> {
    pub(crate) workspace: &'a Workspace,
    /// The folder for the folders of points.
    pub(crate) folder: &'a Path,
    pub(crate) jobs: usize,
    /// Whether no point starts after a bad one.
    pub(crate) until_bad: bool,
    /// No point starts after this.
    pub(crate) deadline: Option<Instant>,
}

/// Receives the verdict of every point, and how long it took.
pub(crate) type VerdictReport<'r> = dyn FnMut(&PointSpec, PointVerdict, Duration) + Send + 'r;

impl PointPool<'_> {
    /// Runs the points and reports each verdict as it arrives. Returns the number of points that there was no time for.
    pub(crate) fn run(&self, points: Vec<PointSpec>, report: &mut VerdictReport<'_>) -> usize {
        let queue = Mutex::new(VecDeque::from(points));
        let report = Mutex::new(report);
        std::thread::scope(|scope| {
            for worker in 0..self.jobs {
                let folder = self.folder.join(format!("worker-{worker}"));
                let queue = &queue;
                let report = &report;
                scope.spawn(move || {
                    while let Some(point) = self.next(queue) {
                        let started = Instant::now();
                        let verdict = self.run_point(&point, &folder);
                        if self.until_bad && matches!(verdict, PointVerdict::Bad(_)) {
                            queue.lock().expect("no worker panics").clear();
                        }
                        let mut report = report.lock().expect("no reporter panics");
                        report(&point, verdict, started.elapsed());
                    }
                });
            }
        });
        queue.into_inner().expect("no worker panics").len()
    }

    fn next(&self, queue: &Mutex<VecDeque<PointSpec>>) -> Option<PointSpec> {
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late { None } else { queue.lock().expect("no worker panics").pop_front() }
    }

    fn run_point(&self, point: &PointSpec, folder: &Path) -> PointVerdict {
        fs::create_dir_all(folder).expect("a folder for the point");
        let exe = std::env::current_exe().expect("the path of this program");
        let mut command = Command::new(exe);
        command.args(["point", &point.to_string(), "--runner", &self.workspace.runner]);
        command.arg("--templates").arg(self.workspace.templates());
        command
            .env("TMPDIR", folder)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("a process for the point");
        let is_timely = wait_until(&mut child, Instant::now() + POINT_TIMEOUT);
        if !is_timely {
            let _ = child.kill();
        }
        kill_processes_of(folder);
        let output = child.wait_with_output().expect("the point's output");
        let _ = fs::remove_dir_all(folder);
        if !is_timely {
            return PointVerdict::Bad(vec![format!("no end within {} s", POINT_TIMEOUT.as_secs())]);
        }
        let stdout = String::from_utf8_lossy(&output.stdout);
        PointVerdict::parse(&stdout).unwrap_or_else(|| {
            let stderr = String::from_utf8_lossy(&output.stderr);
            PointVerdict::Bad(vec![format!("the point failed: {}", stderr.trim_end())])
        })
    }
}

/// Whether the child ended before the deadline. Its output is small enough for the pipes.
fn wait_until(child: &mut Child, deadline: Instant) -> bool {
    while Instant::now() < deadline {
        if child.try_wait().is_ok_and(|status| status.is_some()) {
            return true;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    false
}

/// Kills what a point left: a hanging git, or an agent that the runner failed to kill.
pub(crate) fn kill_processes_of(folder: &Path) {
    for line in processes_of(folder) {
        let process = line.strip_prefix("/proc/").and_then(|rest| rest.split(':').next());
        if let Some(process) = process.and_then(|text| Pid::from_raw(text.parse().ok()?)) {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}
