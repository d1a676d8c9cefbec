//! Executes trials with several worker processes at a time: retries, the budget, and stopping.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runner_term::{CommandError, CommandExit};
use supervise::{CancelHandle, StopRequest};

use crate::args::IsolationMode;
use crate::case::suite::LoadedCase;
use crate::execution::runner_under_test::RunnerUnderTest;
use crate::execution::worker::{
    LOOP_PHASE, WorkerCommand, WorkerEnd, WorkerJob, WorkerMessage, WorkerProcess, send_command,
};
use crate::files::absolute;
use crate::plan::arm::ExperimentArm;
use crate::plan::{PlannedTrial, TrialSubject};
use crate::result::run_folder::{RunBudget, RunFolder, SpendingSum};
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
    /// No more trials start once the whole run, on all machines, has used this much.
    pub(crate) budget: RunBudget,
    pub(crate) isolation: IsolationMode,
    /// A command that fails while the provider does.
    pub(crate) provider_check: Option<String>,
    pub(crate) cases: PathBuf,
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
    /// There is a budget, but what the finished trials used is unknown.
    UnknownSpending,
}

/// What the trials have in common.
pub(crate) struct TrialPool<'a> {
    pub(crate) run: &'a RunFolder,
    pub(crate) cases: &'a [LoadedCase],
    pub(crate) runner: &'a RunnerUnderTest,
    pub(crate) settings: &'a PoolSettings,
    /// Trials of other machines, to help with once the own ones are done.
    pub(crate) stolen: Vec<PlannedTrial>,
}

impl TrialPool<'_> {
    /// Executes the trials and reports what happens to `on_event`.
    pub(crate) fn run(
        &self,
        trials: Vec<PlannedTrial>,
        cancel: &CancelHandle,
        on_event: &mut dyn FnMut(PoolEvent),
    ) -> Result<PoolEnd, CommandError> {
        let threads = (self.settings.jobs as usize).min(trials.len() + self.stolen.len());
        let own = trials.len();
        let mut queue: VecDeque<QueuedTrial> = VecDeque::new();
        for (trial, position) in trials.into_iter().chain(self.stolen.iter().cloned()).zip(0..) {
            queue.push_back(QueuedTrial { trial, is_stolen: position >= own });
        }
        let state = PoolState {
            pool: self,
            queue: Mutex::new(queue),
            workers: Mutex::new(BTreeMap::new()),
            is_halted: AtomicBool::new(false),
            spending: Mutex::new(self.run.spending()),
            failure: Mutex::new(None),
        };
        if let Some(end) = state.budget_end() {
            return Ok(end);
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
                if let Some(budget_end) = state.budget_end()
                    && !state.halt()
                    && state.has_more()
                {
                    end = budget_end;
                }
                let request = cancel.request();
                if request > handled_request {
                    handled_request = request;
                    end = PoolEnd::Stopped;
                    state.halt();
                    let is_kill = request == StopRequest::Kill;
                    state.command_workers(if is_kill { WorkerCommand::Kill } else { WorkerCommand::Stop });
                }
            }
        });
        let failure = state.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(end), Err)
    }
}

#[derive(Clone, Debug)]
struct QueuedTrial {
    trial: PlannedTrial,
    /// Whether it is of another machine's partition, which may be working on it.
    is_stolen: bool,
}

/// What the threads of a pool share.
struct PoolState<'a> {
    pool: &'a TrialPool<'a>,
    queue: Mutex<VecDeque<QueuedTrial>>,
    /// The pipes to the running workers, by process id.
    workers: Mutex<BTreeMap<u32, ChildStdin>>,
    /// No more attempts start.
    is_halted: AtomicBool,
    /// Of the whole run. Read again before a thread decides whether to start another attempt.
    spending: Mutex<SpendingSum>,
    failure: Mutex<Option<CommandError>>,
}

impl PoolState<'_> {
    /// Executes one trial after the other until none is left or the pool is halted.
    fn run_trials(&self, events: &Sender<PoolEvent>) {
        while !self.is_halted() && self.budget_end().is_none() {
            let Some(queued) = locked(&self.queue).pop_front() else { return };
            if let Err(error) = self.run_trial(&queued, events) {
                locked(&self.failure).get_or_insert(error);
                self.halt();
            }
        }
    }

    /// Makes attempts at one trial until one is final.
    fn run_trial(&self, queued: &QueuedTrial, events: &Sender<PoolEvent>) -> Result<(), CommandError> {
        let mut wait = self.pool.settings.retry_wait;
        for _ in 0..=self.pool.settings.retries {
            let Some(meta) = self.run_attempt(queued, events)? else { return Ok(()) };
            let is_retried = meta.cause.is_some_and(FailureCause::is_retried);
            if self.is_halted() || self.budget_end().is_some() || !is_retried {
                return Ok(());
            }
            self.sleep(wait);
            wait = wait.saturating_mul(2);
        }
        Ok(())
    }

    /// Makes one attempt; none if the trial already has a final result. If the worker is killed, or fails once the loop has begun,
    /// another one records that as the result: an agent must gain nothing from it, and other trials must not suffer.
    fn run_attempt(
        &self,
        queued: &QueuedTrial,
        events: &Sender<PoolEvent>,
    ) -> Result<Option<TrialMeta>, CommandError> {
        let mut job = self.worker_job(queued)?;
        let _ = events.send(PoolEvent::Started(queued.trial.clone()));
        let worked = self.run_worker(&job, events)?;
        if let WorkerEnd::Died(exit) = worked.end
            && worked.meta.is_none()
            && !self.is_halted()
        {
            job.killed_worker = Some(exit);
            let recorded = self.run_worker(&job, events)?;
            if let WorkerEnd::Died(exit) = &recorded.end {
                let what = format!("no result of {}: the worker {exit}", job.trial.slug());
                locked(&self.failure).get_or_insert(CommandError::new("worker", CommandExit::FAILURE, what));
            }
            return Ok(recorded.meta);
        }
        Ok(worked.meta)
    }

    fn run_worker(&self, job: &WorkerJob, events: &Sender<PoolEvent>) -> Result<WorkedAttempt, CommandError> {
        let mut worker = WorkerProcess::start(job)?;
        if let Some(input) = worker.take_input() {
            locked(&self.workers).insert(worker.id(), input);
        }
        let mut meta = None;
        let mut has_begun = job.killed_worker.is_some();
        let result = worker.wait(|message| {
            has_begun |= matches!(&message, WorkerMessage::Phase(phase) if phase == LOOP_PHASE);
            if let WorkerMessage::Finished(finished) = &message {
                *locked(&self.spending) = self.pool.run.spending();
                meta = Some((**finished).clone());
            }
            let _ = events.send(PoolEvent::Message(job.trial.clone(), message));
        });
        locked(&self.workers).remove(&worker.id());
        if self.is_halted() {
            // A worker that was stopped may fail in any way; its error is not worth reporting.
            return Ok(WorkedAttempt { end: WorkerEnd::Exited, meta });
        }
        match result {
            Err(error) if has_begun => {
                let json = error.json();
                let why = json.get("message").and_then(|message| message.as_str()).unwrap_or_default();
                let end = WorkerEnd::Died(format!("failed: {why}"));
                Ok(WorkedAttempt { end, meta })
            }
            result => result.map(|end| WorkedAttempt { end, meta }),
        }
    }

    fn worker_job(&self, queued: &QueuedTrial) -> Result<WorkerJob, CommandError> {
        let TrialPool { run, cases, runner, settings, .. } = self.pool;
        let trial = &queued.trial;
        let loaded = cases.iter().find(|loaded| loaded.case.id == trial.case).ok_or_else(|| {
            CommandError::refused("no_such_case", format!("no such case: `{}`", trial.case))
                .cause(format!("the plan of run `{}` contains it", run.name()))
        })?;
        let planned = run.plan.scope.cases.iter().find(|planned| planned.id == trial.case);
        Ok(WorkerJob {
            trial: trial.clone(),
            run: run.name().clone(),
            case_file: absolute(&loaded.file),
            case_sha256: planned.map(|planned| planned.sha256.clone()).unwrap_or_default(),
            runner: runner.path.clone(),
            runner_version: runner.version.clone(),
            results: absolute(&settings.results),
            workspaces: absolute(&settings.workspaces),
            retries: settings.retries,
            jobs: settings.jobs,
            arm: self.arm_of(trial)?,
            key: run.key.clone(),
            isolation: settings.isolation,
            hidden: [&settings.cases, &settings.results, &settings.workspaces]
                .map(|path| absolute(path))
                .into(),
            provider_check: settings.provider_check.clone(),
            skips_busy: queued.is_stolen,
            killed_worker: None,
        })
    }

    fn arm_of(&self, trial: &PlannedTrial) -> Result<ExperimentArm, CommandError> {
        let name = TrialSubject::parse(&trial.agent)?.arm;
        let arms = &self.pool.run.plan.scope.arms;
        let arm = arms.iter().find(|arm| arm.name == name).cloned();
        arm.ok_or_else(|| CommandError::refused("arm", format!("the plan has no arm `{name}`")))
    }

    fn has_more(&self) -> bool {
        !locked(&self.queue).is_empty()
    }

    /// Why the budget allows no more trials, if it does not.
    fn budget_end(&self) -> Option<PoolEnd> {
        let budget = self.pool.settings.budget;
        let spent = *locked(&self.spending);
        if budget.is_used_up(spent) {
            Some(PoolEnd::Budget)
        } else if budget.is_unenforceable(spent) {
            Some(PoolEnd::UnknownSpending)
        } else {
            None
        }
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

    fn command_workers(&self, command: WorkerCommand) {
        for input in locked(&self.workers).values_mut() {
            send_command(input, command);
        }
    }
}

/// What a worker made of an attempt.
struct WorkedAttempt {
    end: WorkerEnd,
    /// None if it published no result.
    meta: Option<TrialMeta>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
