//! Executes trials with several worker processes at a time: retries, the budget, and stopping.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runner_term::CommandError;
use rustix::process::{Pid, Signal, kill_process};
use supervise::{CancelHandle, StopRequest};

use crate::case::suite::LoadedCase;
use crate::execution::runner_under_test::RunnerUnderTest;
use crate::execution::worker::{WorkerJob, WorkerMessage, WorkerProcess};
use crate::files::absolute;
use crate::plan::PlannedTrial;
use crate::result::run_folder::RunFolder;
use crate::result::{FailureCause, TrialMeta};

/// How often stop requests are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub(crate) enum PoolEvent {
    /// A worker starts an attempt.
    Started(PlannedTrial),
    Message(PlannedTrial, WorkerMessage),
    /// Nothing happened for [`POLL_INTERVAL`].
    Tick,
}

#[derive(Clone, Debug)]
pub(crate) struct PoolSettings {
    pub(crate) jobs: u32,
    /// Retries of trials lost to provider or infrastructure errors.
    pub(crate) retries: u32,
    /// The delay before the first retry; doubled before each further one.
    pub(crate) retry_wait: Duration,
    /// No more trials start once the run has cost this much.
    pub(crate) budget_microdollars: Option<u64>,
    pub(crate) results: PathBuf,
    pub(crate) workspaces: PathBuf,
}

/// Why the pool ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolEnd {
    Complete,
    /// The user stopped the evaluation.
    Stopped,
    /// The budget is used up, and trials are left.
    Budget,
}

/// What the trials have in common.
pub(crate) struct TrialPool<'a> {
    pub(crate) run: &'a RunFolder,
    pub(crate) cases: &'a [LoadedCase],
    pub(crate) runner: &'a RunnerUnderTest,
    pub(crate) settings: &'a PoolSettings,
    /// What the run has cost before.
    pub(crate) spent_microdollars: u64,
}

impl TrialPool<'_> {
    /// Executes the trials and reports what happens to `on_event`.
    pub(crate) fn run(
        &self,
        trials: Vec<PlannedTrial>,
        cancel: &CancelHandle,
        on_event: &mut dyn FnMut(PoolEvent),
    ) -> Result<PoolEnd, CommandError> {
        let threads = (self.settings.jobs as usize).min(trials.len());
        let state = PoolState {
            pool: self,
            queue: Mutex::new(trials.into()),
            workers: Mutex::new(BTreeSet::new()),
            is_halted: AtomicBool::new(false),
            spent_microdollars: AtomicU64::new(self.spent_microdollars),
            failure: Mutex::new(None),
        };
        if state.is_over_budget() {
            return Ok(PoolEnd::Budget);
        }
        let mut end = PoolEnd::Complete;
        std::thread::scope(|scope| {
            let (sender, events) = channel();
            for _ in 0..threads {
                let sender = sender.clone();
                let state = &state;
                scope.spawn(move || state.run_trials(&sender));
            }
            drop(sender);
            let mut handled_request = StopRequest::None;
            loop {
                match events.recv_timeout(POLL_INTERVAL) {
                    Ok(event) => on_event(event),
                    Err(RecvTimeoutError::Timeout) => on_event(PoolEvent::Tick),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if state.is_over_budget() && !state.halt() && state.has_more() {
                    end = PoolEnd::Budget;
                }
                let request = cancel.request();
                if request > handled_request {
                    handled_request = request;
                    end = PoolEnd::Stopped;
                    state.halt();
                    let signal = if request == StopRequest::Kill { Signal::KILL } else { Signal::TERM };
                    state.signal_workers(signal);
                }
            }
        });
        let failure = state.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(end), Err)
    }
}

/// What the threads of a pool share.
struct PoolState<'a> {
    pool: &'a TrialPool<'a>,
    queue: Mutex<VecDeque<PlannedTrial>>,
    /// The process ids of the running workers.
    workers: Mutex<BTreeSet<u32>>,
    /// No more attempts start.
    is_halted: AtomicBool,
    /// Updated before a thread decides whether to start another attempt.
    spent_microdollars: AtomicU64,
    failure: Mutex<Option<CommandError>>,
}

impl PoolState<'_> {
    /// Executes one trial after the other until none is left or the pool is halted.
    fn run_trials(&self, events: &Sender<PoolEvent>) {
        while !self.is_halted() && !self.is_over_budget() {
            let Some(trial) = locked(&self.queue).pop_front() else { return };
            if let Err(error) = self.run_trial(&trial, events) {
                locked(&self.failure).get_or_insert(error);
                self.halt();
            }
        }
    }

    /// Makes attempts at one trial until one is final.
    fn run_trial(&self, trial: &PlannedTrial, events: &Sender<PoolEvent>) -> Result<(), CommandError> {
        let mut wait = self.pool.settings.retry_wait;
        for _ in 0..=self.pool.settings.retries {
            let Some(meta) = self.run_attempt(trial, events)? else { return Ok(()) };
            let is_retried = meta.cause.is_some_and(FailureCause::is_retried);
            if self.is_halted() || self.is_over_budget() || !is_retried {
                return Ok(());
            }
            self.sleep(wait);
            wait = wait.saturating_mul(2);
        }
        Ok(())
    }

    /// Makes one attempt; none if the trial already has a final result.
    fn run_attempt(
        &self,
        trial: &PlannedTrial,
        events: &Sender<PoolEvent>,
    ) -> Result<Option<TrialMeta>, CommandError> {
        let job = self.worker_job(trial)?;
        let _ = events.send(PoolEvent::Started(trial.clone()));
        let mut worker = WorkerProcess::start(&job)?;
        locked(&self.workers).insert(worker.id());
        let mut finished = None;
        let result = worker.wait(|message| {
            if let WorkerMessage::Finished(meta) = &message {
                self.spent_microdollars.fetch_add(meta.cost.microdollars.unwrap_or(0), Ordering::SeqCst);
                finished = Some((**meta).clone());
            }
            let _ = events.send(PoolEvent::Message(trial.clone(), message));
        });
        locked(&self.workers).remove(&worker.id());
        if self.is_halted() {
            // A worker that was stopped may fail in any way; its error is not worth reporting.
            return Ok(finished);
        }
        result.map(|()| finished)
    }

    fn worker_job(&self, trial: &PlannedTrial) -> Result<WorkerJob, CommandError> {
        let TrialPool { run, cases, runner, settings, .. } = self.pool;
        let loaded = cases.iter().find(|loaded| loaded.case.id == trial.case).ok_or_else(|| {
            CommandError::refused("no_such_case", format!("no such case: `{}`", trial.case))
                .cause(format!("the plan of run `{}` contains it", run.name()))
        })?;
        Ok(WorkerJob {
            trial: trial.clone(),
            run: run.name().clone(),
            case_file: absolute(&loaded.file),
            case_sha256: loaded.digests.whole.to_string(),
            runner: runner.path.clone(),
            runner_version: runner.version.clone(),
            results: absolute(&settings.results),
            workspaces: absolute(&settings.workspaces),
            retries: settings.retries,
            jobs: settings.jobs,
        })
    }

    fn has_more(&self) -> bool {
        !locked(&self.queue).is_empty()
    }

    fn is_over_budget(&self) -> bool {
        let spent = self.spent_microdollars.load(Ordering::SeqCst);
        self.pool.settings.budget_microdollars.is_some_and(|budget| spent >= budget)
    }

    fn is_halted(&self) -> bool {
        self.is_halted.load(Ordering::SeqCst)
    }

    /// Starts no more attempts; returns whether the pool was already halted.
    fn halt(&self) -> bool {
        self.is_halted.swap(true, Ordering::SeqCst)
    }

    fn sleep(&self, wait: Duration) {
        let until = Instant::now() + wait;
        while Instant::now() < until && !self.is_halted() {
            std::thread::sleep(POLL_INTERVAL.min(wait));
        }
    }

    fn signal_workers(&self, signal: Signal) {
        for id in locked(&self.workers).iter() {
            if let Some(pid) = i32::try_from(*id).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, signal);
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
