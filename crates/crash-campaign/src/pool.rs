//! Runs points in parallel, each in a process and a folder of its own, with a deadline; and sweeps, which are many points.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use testkit::oracle::processes_of;

use crate::point::{PointSpec, PointVerdict};
use crate::scenarios::Workspace;
use crate::sweep::{self, SweptPoint};

/// A point that takes longer hangs: the slowest one takes some seconds on an idle machine.
pub(crate) const POINT_TIMEOUT: Duration = Duration::from_secs(240);
/// Each point of a sweep has a limit of its own.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(3600);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// A poll that takes longer was stopped.
const POLL_MAX: Duration = Duration::from_secs(1);

/// What a worker runs.
#[derive(Clone, Debug)]
pub(crate) enum PoolTask {
    Point(PointSpec),
    /// All points of a family in a scenario.
    Sweep(SweepSpec),
}

/// A family and a scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SweepSpec {
    pub(crate) family: String,
    pub(crate) scenario: String,
}

/// What a task showed.
pub(crate) enum TaskResult {
    Point(SweptPoint),
    /// The points of a complete sweep.
    Sweep(Vec<SweptPoint>),
    /// Why a sweep is not complete.
    BrokenSweep(SweepSpec, String),
}

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

/// Receives every result, and how long it took.
pub(crate) type TaskReport<'r> = dyn FnMut(TaskResult, Duration) + Send + 'r;

impl PointPool<'_> {
    /// Runs the tasks and reports each result as it arrives. Returns the tasks that there was no time for.
    pub(crate) fn run(&self, tasks: Vec<PoolTask>, report: &mut TaskReport<'_>) -> Vec<PoolTask> {
        let queue = Mutex::new(VecDeque::from(tasks));
        let report = Mutex::new(report);
        std::thread::scope(|scope| {
            for worker in 0..self.jobs {
                let folder = self.folder.join(format!("worker-{worker}"));
                let queue = &queue;
                let report = &report;
                scope.spawn(move || {
                    while let Some(task) = self.next(queue) {
                        let started = Instant::now();
                        let result = self.run_task(task, &folder);
                        if self.until_bad && result.is_bad() {
                            queue.lock().expect("no worker panics").clear();
                        }
                        let mut report = report.lock().expect("no reporter panics");
                        report(result, started.elapsed());
                    }
                });
            }
        });
        queue.into_inner().expect("no worker panics").into()
    }

    fn next(&self, queue: &Mutex<VecDeque<PoolTask>>) -> Option<PoolTask> {
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late { None } else { queue.lock().expect("no worker panics").pop_front() }
    }

    fn run_task(&self, task: PoolTask, folder: &Path) -> TaskResult {
        match task {
            PoolTask::Point(spec) => {
                let text = self.run_process(&["point", &spec.to_string()], folder, POINT_TIMEOUT);
                let verdict = text.and_then(|text| PointVerdict::parse(&text).ok_or(text));
                let verdict = verdict.unwrap_or_else(|error| PointVerdict::Bad(vec![error]));
                TaskResult::Point(SweptPoint { spec, verdict })
            }
            PoolTask::Sweep(sweep) => {
                let text =
                    self.run_process(&["sweep", &sweep.family, &sweep.scenario], folder, SWEEP_TIMEOUT);
                match text.and_then(|text| sweep::parse(&text).ok_or(text)) {
                    Ok(points) => TaskResult::Sweep(points),
                    Err(error) => TaskResult::BrokenSweep(sweep, error),
                }
            }
        }
    }

    /// Runs this program with a folder of its own; returns what it printed, or why it failed.
    fn run_process(&self, args: &[&str], folder: &Path, timeout: Duration) -> Result<String, String> {
        fs::create_dir_all(folder).expect("a folder for the point");
        let exe = std::env::current_exe().expect("the path of this program");
        let [stdout, stderr] = ["out", "err"].map(|name| folder.with_extension(name));
        let file = |path: &Path| File::create(path).expect("a file for the output");
        let mut command = Command::new(exe);
        command.args(args).args(["--runner", &self.workspace.runner]);
        command.arg("--templates").arg(self.workspace.templates());
        command.env("TMPDIR", folder).env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::null()).stdout(file(&stdout)).stderr(file(&stderr));
        let mut child = command.spawn().expect("a process for the point");
        let is_timely = wait_for_end(&mut child, timeout);
        if !is_timely {
            let _ = child.kill();
        }
        kill_processes_of(folder);
        let status = child.wait().expect("the point's process");
        let _ = fs::remove_dir_all(folder);
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        if !is_timely {
            return Err(format!("no end within {} s", timeout.as_secs()));
        }
        let stdout = read(&stdout);
        if stdout.is_empty() {
            return Err(format!("the point failed: {status}: {}", read(&stderr).trim_end()));
        }
        Ok(stdout)
    }
}

impl TaskResult {
    fn is_bad(&self) -> bool {
        let is_bad = |point: &SweptPoint| matches!(point.verdict, PointVerdict::Bad(_));
        match self {
            Self::Point(point) => is_bad(point),
            Self::Sweep(points) => points.iter().any(is_bad),
            Self::BrokenSweep(..) => true,
        }
    }
}

/// Whether the child ended in time. Its output is in files, or small enough for pipes. While the campaign itself is stopped,
/// as by a suspended machine, no time passes.
pub(crate) fn wait_for_end(child: &mut Child, timeout: Duration) -> bool {
    let mut left = timeout;
    while !left.is_zero() {
        if child.try_wait().is_ok_and(|status| status.is_some()) {
            return true;
        }
        let started = Instant::now();
        std::thread::sleep(POLL_INTERVAL);
        left = left.saturating_sub(started.elapsed().min(POLL_MAX));
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
