//! Notices what changes and tells it.
//!
//! What the system reports is a hint that something may have changed, no more: after every hint the files themselves
//! are looked at, and what is told is the difference to the look before. Hints are gathered: the first after a quiet
//! while is followed at once, the rest not more often than every 100 ms. Folders that appear later are watched as
//! soon as they are seen. Where watching fails, files are looked at every two seconds, and the page says so.

mod evaluation;
mod repository;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::api::{ChangeEvent, WatchMethod};

/// How much time lies between two looks at least.
const GATHER: Duration = Duration::from_millis(100);
/// How often files are looked at where watching fails, and whether a runner still lives.
const POLL: Duration = Duration::from_secs(2);
/// How often something idle is looked at for what no hint told.
const IDLE: Duration = Duration::from_secs(30);

/// Says whether a report of the system's can be about something that is looked at.
pub(crate) type Sieve = Box<dyn Fn(&notify::Event) -> bool + Send>;

/// Something whose files are watched.
pub(crate) trait WatchTarget {
    /// One look at everything that can change.
    type RepoFingerprint;

    fn look(&self) -> Self::RepoFingerprint;

    /// The folders that tell of every change: few, because what is old does not change.
    fn folders(&self, look: &Self::RepoFingerprint) -> BTreeSet<PathBuf>;

    fn sieve(&self) -> Sieve;

    /// Whether a process is at work, whose death no file would tell of.
    fn is_live(look: &Self::RepoFingerprint) -> bool;

    /// What to tell of the difference between two looks.
    fn changes(&self, before: &Self::RepoFingerprint, now: &Self::RepoFingerprint) -> Vec<ChangeEvent>;
}

/// Whether the system tells of changes, and whether anyone still asks.
#[derive(Debug, Default)]
pub(crate) struct WatchState {
    polls: AtomicBool,
    is_over: AtomicBool,
}

impl WatchState {
    pub(crate) fn watching(&self) -> WatchMethod {
        if self.polls.load(Ordering::Relaxed) { WatchMethod::Polling } else { WatchMethod::Events }
    }

    /// Nobody needs it any more.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Our own reading is reported too, and is no reason to look.
fn is_reading(event: &notify::Event) -> bool {
    match event.kind {
        EventKind::Access(kind) => kind != AccessKind::Close(AccessMode::Write),
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => false,
    }
}

/// The system's watcher, and what it watches.
struct NotifyWatcher {
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
}

impl NotifyWatcher {
    fn new(sieve: Sieve, hint: mpsc::Sender<()>) -> notify::Result<Self> {
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Whatever could not be reported is a reason to look.
            if event.as_ref().map_or(true, |event| !is_reading(event) && sieve(event)) {
                let _ = hint.send(());
            }
        })?;
        Ok(Self { watcher, watched: BTreeSet::new() })
    }

    /// Watches these folders and no others; gives back whether there were new ones.
    fn watch(&mut self, wanted: BTreeSet<PathBuf>) -> notify::Result<bool> {
        for old in self.watched.difference(&wanted) {
            // A folder that is gone is watched no more already.
            let _ = self.watcher.unwatch(old);
        }
        let new: Vec<PathBuf> = wanted.difference(&self.watched).cloned().collect();
        for folder in &new {
            match self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                // Gone again in the meantime.
                Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => {}
                other => other?,
            }
        }
        self.watched = wanted;
        Ok(!new.is_empty())
    }
}

/// Watches something.
pub(crate) struct FileWatcher<W: WatchTarget> {
    hints: Option<NotifyWatcher>,
    receiver: Receiver<()>,
    /// Kept, so that the channel stays open where the system does not tell.
    _sender: mpsc::Sender<()>,
    before: W::RepoFingerprint,
}

impl<W: WatchTarget> FileWatcher<W> {
    /// Takes the first look and begins to watch: from now on, no change is missed.
    pub(crate) fn begin(watched: &W, watch: &WatchState, only_polls: bool) -> Self {
        let (sender, receiver) = mpsc::channel();
        let hints = if only_polls { None } else { NotifyWatcher::new(watched.sieve(), sender.clone()).ok() };
        let mut watcher = Self { hints, receiver, _sender: sender, before: watched.look() };
        watcher.watch_folders(watched);
        watch.polls.store(watcher.hints.is_none(), Ordering::Relaxed);
        watcher
    }

    /// Watches what the last look saw; gives back whether there were folders not watched before.
    fn watch_folders(&mut self, watched: &W) -> bool {
        let more = self.hints.as_mut().map(|hints| hints.watch(watched.folders(&self.before)));
        if matches!(more, Some(Err(_))) {
            self.hints = None;
        }
        matches!(more, Some(Ok(true)))
    }

    /// Watches until nobody needs it any more, and tells every change.
    pub(crate) fn run(mut self, watched: &W, tell: impl Fn(ChangeEvent), watch: &WatchState) {
        // What happened while the first folders were not watched yet is seen by one more look.
        let mut looks_again = true;
        loop {
            let most = if self.hints.is_none() || W::is_live(&self.before) { POLL } else { IDLE };
            if !looks_again && !wait(&self.receiver, most) || watch.is_over.load(Ordering::Relaxed) {
                return;
            }
            let now = watched.look();
            watched.changes(&self.before, &now).into_iter().for_each(&tell);
            self.before = now;
            looks_again = self.watch_folders(watched);
            let polls = self.hints.is_none();
            if watch.polls.swap(polls, Ordering::Relaxed) != polls {
                tell(ChangeEvent::RunChanged {});
            }
        }
    }
}

/// Waits for a hint, and then until the hints that come with it are there too.
fn wait(receiver: &Receiver<()>, most: Duration) -> bool {
    let looked = Instant::now();
    match receiver.recv_timeout(most) {
        Ok(()) | Err(RecvTimeoutError::Timeout) => {}
        Err(RecvTimeoutError::Disconnected) => return false,
    }
    std::thread::sleep(GATHER.saturating_sub(looked.elapsed()));
    while receiver.try_recv().is_ok() {}
    true
}
