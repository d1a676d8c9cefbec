//! Work that keeps a long run small, done by a thread of its own while sessions run: no iteration waits for it. Only the end of
//! the command does, because sessions may be shorter than it.
//!
//! It changes nothing that an iteration depends on, so a crash of it, or of the runner, changes nothing either.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use runner_core::config::LogsConfig;
use runner_core::step::{Job, LoadedRun};

use super::log_retention::{LogRetention, RetentionScope};
use crate::git::{Git, LoosePack};

/// How long the end of a command waits for a round. A round is bounded, and this is many times of what it takes.
const FINISH_TIME_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// The maintenance of a repository. Dropping it ends it, so that no git process outlives the runner.
#[derive(Debug, Default)]
pub(super) struct Maintenance {
    running: Option<JoinHandle<MaintenanceState>>,
    state: MaintenanceState,
    cancelled: Arc<AtomicBool>,
}

/// What is remembered from one session to the next.
#[derive(Debug, Default)]
struct MaintenanceState {
    retention: Option<LogRetention>,
    /// Whether packing failed. It is not tried again by this process.
    has_failed: bool,
}

/// One round of maintenance, for a thread of its own.
struct MaintenanceJob {
    root: PathBuf,
    job: Job,
    config: LogsConfig,
    tree_bytes: u64,
    retention: PathBuf,
    pack: Option<LoosePack>,
    cancelled: Arc<AtomicBool>,
}

impl Maintenance {
    /// Begins a round, unless the last one is still running.
    pub(super) fn begin(&mut self, git: &Git, run: &LoadedRun, job: &Job) {
        if self.running.as_ref().is_some_and(|running| !running.is_finished()) {
            return;
        }
        if let Some(ended) = self.running.take() {
            // A round that panicked begins again with nothing remembered.
            self.state = ended.join().unwrap_or_default();
        }
        let mut state = std::mem::take(&mut self.state);
        let round = MaintenanceJob {
            root: git.root().to_owned(),
            job: job.clone(),
            config: run.snapshot.config.logs.clone(),
            tree_bytes: run.snapshot.tree.bytes().len() as u64,
            retention: git.paths().log_retention(),
            pack: if state.has_failed { None } else { git.due_loose_pack() },
            cancelled: Arc::clone(&self.cancelled),
        };
        // Without another thread the round is left out: a later session makes up for it.
        let thread = thread::Builder::new().name("maintenance".to_owned());
        self.running = thread
            .spawn(move || {
                round.run(&mut state);
                state
            })
            .ok();
    }

    /// Waits for a round that is running, unless the user wants to stop. Commands whose sessions are short would otherwise cancel
    /// every round, and the objects of a run that uses `runner step` would never be packed.
    pub(super) fn finish(&mut self, wants_stop: impl Fn() -> bool) {
        let deadline = Instant::now() + FINISH_TIME_MAX;
        let is_running =
            |running: &JoinHandle<MaintenanceState>| !running.is_finished() && Instant::now() < deadline;
        while self.running.as_ref().is_some_and(is_running) && !wants_stop() {
            thread::sleep(POLL);
        }
    }
}

impl MaintenanceJob {
    fn run(self, state: &mut MaintenanceState) {
        let run = &self.job.run_id;
        let scope = RetentionScope {
            root: &self.root,
            run,
            newest: self.job.iteration,
            tree_bytes: self.tree_bytes,
            config: &self.config,
        };
        let retention = state.retention.get_or_insert_with(|| LogRetention::read(&self.retention, &scope));
        retention.apply(&scope);
        retention.store(&self.retention);
        if let Some(pack) = self.pack {
            state.has_failed = pack.run(&self.cancelled).is_err();
        }
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.running.take().map(JoinHandle::join);
    }
}
