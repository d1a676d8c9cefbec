//! Working through units with several workers at a time: what is tried again, when nothing more is begun, how it stops.

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
use crate::execution::trial::{WorkerJob, WorkerMessage};
use crate::execution::worker::WorkerProcess;
use crate::plan::TrialUnit;
use crate::result::run_folder::RunFolder;
use crate::result::{FailureCause, TrialMeta};

/// How often wishes are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What happens, as it happens.
#[derive(Clone, Debug)]
pub(crate) enum PoolEvent {
    /// A worker begins an attempt.
    Began(TrialUnit),
    /// It says something.
    Said(TrialUnit, WorkerMessage),
    /// Time went by.
    Tick,
}

/// How it is done.
#[derive(Clone, Debug)]
pub(crate) struct PoolSettings {
    pub(crate) jobs: u32,
    /// How often a unit is tried again that the provider or the evaluation itself spoiled.
    pub(crate) retries: u32,
    /// How long is waited before the first of these; twice as long before each further one.
    pub(crate) retry_wait: Duration,
    /// Nothing more is begun once so much was spent, in millionths of a dollar.
    pub(crate) budget_microdollars: Option<u64>,
    pub(crate) results: PathBuf,
    pub(crate) workspaces: PathBuf,
}

/// Why there may be units left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolEnd {
    /// There are none.
    Done,
    /// Somebody asked to stop.
    Stopped,
    /// The budget is spent.
    Budget,
}

/// Everything that the threads share.
struct PoolState<'a> {
    queue: Mutex<VecDeque<TrialUnit>>,
    workers: Mutex<BTreeSet<u32>>,
    /// Nothing more is begun.
    halt: AtomicBool,
    /// What the run has cost, in millionths of a dollar: known before anything more is begun.
    spent: AtomicU64,
    failed: Mutex<Option<CommandError>>,
    settings: &'a PoolSettings,
    run: &'a RunFolder,
    kits: &'a [LoadedCase],
    runner: &'a RunnerUnderTest,
}

/// Works through units. `spent` is what the run has cost before.
pub(crate) fn work(
    (run, kits, runner): (&RunFolder, &[LoadedCase], &RunnerUnderTest),
    units: Vec<TrialUnit>,
    settings: &PoolSettings,
    (control, spent): (&CancelHandle, u64),
    tell: &mut dyn FnMut(PoolEvent),
) -> Result<PoolEnd, CommandError> {
    let count = (settings.jobs as usize).min(units.len());
    let shared = PoolState {
        queue: Mutex::new(units.into()),
        workers: Mutex::new(BTreeSet::new()),
        halt: AtomicBool::new(false),
        spent: AtomicU64::new(spent),
        failed: Mutex::new(None),
        settings,
        run,
        kits,
        runner,
    };
    if shared.is_spent() {
        return Ok(PoolEnd::Budget);
    }
    let mut ending = PoolEnd::Done;
    std::thread::scope(|scope| {
        let (sender, events) = channel();
        for _ in 0..count {
            let (sender, shared) = (sender.clone(), &shared);
            scope.spawn(move || shared.serve(&sender));
        }
        drop(sender);
        let mut wished = StopRequest::None;
        loop {
            match events.recv_timeout(LOOK_EVERY) {
                Ok(event) => tell(event),
                Err(RecvTimeoutError::Timeout) => tell(PoolEvent::Tick),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if shared.is_spent() && !shared.halt.swap(true, Ordering::SeqCst) && shared.has_more() {
                ending = PoolEnd::Budget;
            }
            if control.request() > wished {
                wished = control.request();
                ending = PoolEnd::Stopped;
                shared.halt.store(true, Ordering::SeqCst);
                shared.signal(if wished == StopRequest::Kill { Signal::KILL } else { Signal::TERM });
            }
        }
    });
    let failed = shared.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(ending), Err)
}

impl PoolState<'_> {
    /// Takes unit after unit until there are none, or nothing more is to be begun.
    fn serve(&self, events: &Sender<PoolEvent>) {
        while !self.is_halted() && !self.is_spent() {
            let Some(unit) = locked(&self.queue).pop_front() else { return };
            if let Err(report) = self.finish(&unit, events) {
                locked(&self.failed).get_or_insert(report);
                self.halt.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Attempts at one unit, until one is final.
    fn finish(&self, unit: &TrialUnit, events: &Sender<PoolEvent>) -> Result<(), CommandError> {
        let mut wait = self.settings.retry_wait;
        for _ in 0..=self.settings.retries {
            let Some(meta) = self.attempt(unit, events)? else { return Ok(()) };
            if self.is_halted() || self.is_spent() || !meta.cause.is_some_and(FailureCause::is_retried) {
                return Ok(());
            }
            self.pause(wait);
            wait = wait.saturating_mul(2);
        }
        Ok(())
    }

    /// One attempt; nothing if there was none to be made.
    fn attempt(
        &self,
        unit: &TrialUnit,
        events: &Sender<PoolEvent>,
    ) -> Result<Option<TrialMeta>, CommandError> {
        let kit = self.kits.iter().find(|kit| kit.case.id == unit.case);
        let kit = kit.ok_or_else(|| {
            CommandError::refused(
                "no_such_case",
                format!("the case `{}` of the plan is not there", unit.case),
            )
        })?;
        let order = WorkerJob {
            unit: unit.clone(),
            run: self.run.name().to_owned(),
            case_file: absolute(&kit.file),
            case_sha256: kit.digests.whole.to_string(),
            runner: self.runner.path.clone(),
            runner_id: self.runner.id.clone(),
            results: absolute(&self.settings.results),
            workspaces: absolute(&self.settings.workspaces),
            retries: self.settings.retries,
            jobs: self.settings.jobs,
        };
        let _ = events.send(PoolEvent::Began(unit.clone()));
        let mut worker = WorkerProcess::start(&order)?;
        locked(&self.workers).insert(worker.id());
        let mut made = None;
        let ended = worker.attend(|said| {
            if let WorkerMessage::Made(meta) = &said {
                self.spent.fetch_add(meta.cost.microdollars.unwrap_or(0), Ordering::SeqCst);
                made = Some((**meta).clone());
            }
            let _ = events.send(PoolEvent::Said(unit.clone(), said));
        });
        locked(&self.workers).remove(&worker.id());
        if self.is_halted() {
            // A worker that was told to stop has nothing to complain about.
            return Ok(made);
        }
        ended.map(|()| made)
    }

    fn has_more(&self) -> bool {
        !locked(&self.queue).is_empty()
    }

    fn is_spent(&self) -> bool {
        let spent = self.spent.load(Ordering::SeqCst);
        self.settings.budget_microdollars.is_some_and(|budget| spent >= budget)
    }

    fn is_halted(&self) -> bool {
        self.halt.load(Ordering::SeqCst)
    }

    fn pause(&self, wait: Duration) {
        let until = Instant::now() + wait;
        while Instant::now() < until && !self.is_halted() {
            std::thread::sleep(LOOK_EVERY.min(wait));
        }
    }

    fn signal(&self, signal: Signal) {
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

fn absolute(path: &std::path::Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
