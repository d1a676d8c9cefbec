//! Watches files and publishes changes.
//!
//! A notification of the system is only a hint that something may have changed: after every hint the files are
//! fingerprinted, and the difference to the last fingerprint is published. Hints are debounced: the first after a quiet
//! period is handled at once, later ones at most every 100 ms. Folders that appear later are watched as soon as a
//! fingerprint includes them. Where watching fails, files are polled every two seconds, and the page shows that.

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

/// The minimum time between two fingerprints.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// How often files are polled where watching fails, and how often it is checked that a runner still lives.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How often an idle target is checked for changes that were not reported.
const IDLE_INTERVAL: Duration = Duration::from_secs(30);

/// Whether a notification can be about a watched file.
pub(crate) type EventFilter = Box<dyn Fn(&notify::Event) -> bool + Send>;

/// Something whose files are watched.
pub(crate) trait WatchTarget {
    /// The versions of everything that can change.
    type Fingerprint;

    fn fingerprint(&self) -> Self::Fingerprint;

    /// The folders in which every change happens: few, because old files do not change.
    fn folders(&self, fingerprint: &Self::Fingerprint) -> BTreeSet<PathBuf>;

    fn event_filter(&self) -> EventFilter;

    /// Whether a process is working, whose death would change no file.
    fn is_live(fingerprint: &Self::Fingerprint) -> bool;

    /// The changes between two fingerprints.
    fn changes(&self, before: &Self::Fingerprint, now: &Self::Fingerprint) -> Vec<ChangeEvent>;
}

/// How a watcher notices changes, and whether it is still needed.
#[derive(Debug, Default)]
pub(crate) struct WatchState {
    is_polling: AtomicBool,
    is_ended: AtomicBool,
}

impl WatchState {
    pub(crate) fn watching(&self) -> WatchMethod {
        if self.is_polling.load(Ordering::Relaxed) { WatchMethod::Polling } else { WatchMethod::Events }
    }

    /// Ends the watcher's thread.
    pub(crate) fn end(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
    }
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Whether a notification is about reading: this server's own reads are reported, too.
fn is_read(event: &notify::Event) -> bool {
    match event.kind {
        EventKind::Access(kind) => kind != AccessKind::Close(AccessMode::Write),
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => false,
    }
}

/// The system's watcher and the folders that it watches.
struct NotifyWatcher {
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
}

impl NotifyWatcher {
    fn new(filter: EventFilter, hint: mpsc::Sender<()>) -> notify::Result<Self> {
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error may hide a change.
            if event.as_ref().map_or(true, |event| !is_read(event) && filter(event)) {
                let _ = hint.send(());
            }
        })?;
        Ok(Self { watcher, watched: BTreeSet::new() })
    }

    /// Watches these folders and no others. Returns whether there were new ones.
    fn watch(&mut self, wanted: BTreeSet<PathBuf>) -> notify::Result<bool> {
        for old in self.watched.difference(&wanted) {
            // A removed folder is no longer watched anyway.
            let _ = self.watcher.unwatch(old);
        }
        let new: Vec<PathBuf> = wanted.difference(&self.watched).cloned().collect();
        for folder in &new {
            match self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                // Removed in the meantime.
                Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => {}
                other => other?,
            }
        }
        self.watched = wanted;
        Ok(!new.is_empty())
    }
}

pub(crate) struct FileWatcher<W: WatchTarget> {
    notifier: Option<NotifyWatcher>,
    receiver: Receiver<()>,
    /// Keeps the channel open while polling.
    _sender: mpsc::Sender<()>,
    before: W::Fingerprint,
}

impl<W: WatchTarget> FileWatcher<W> {
    /// Takes the first fingerprint and starts to watch: from now on, no change is missed.
    pub(crate) fn begin(target: &W, state: &WatchState, method: WatchMethod) -> Self {
        let (sender, receiver) = mpsc::channel();
        let notifier = match method {
            WatchMethod::Events => NotifyWatcher::new(target.event_filter(), sender.clone()).ok(),
            WatchMethod::Polling => None,
        };
        let mut watcher = Self { notifier, receiver, _sender: sender, before: target.fingerprint() };
        watcher.watch_folders(target);
        state.is_polling.store(watcher.notifier.is_none(), Ordering::Relaxed);
        watcher
    }

    /// Watches the folders of the last fingerprint. Returns whether some were not watched before.
    fn watch_folders(&mut self, target: &W) -> bool {
        let folders = target.folders(&self.before);
        let added = self.notifier.as_mut().map(|notifier| notifier.watch(folders));
        if matches!(added, Some(Err(_))) {
            self.notifier = None;
        }
        matches!(added, Some(Ok(true)))
    }

    /// Publishes every change until [`WatchState::end`] is called.
    pub(crate) fn run(mut self, target: &W, publish: impl Fn(ChangeEvent), state: &WatchState) {
        // One more fingerprint sees what happened before the first folders were watched.
        let mut checks_again = true;
        loop {
            let is_blind = self.notifier.as_ref().is_none_or(|notifier| notifier.watched.is_empty());
            let timeout = if is_blind || W::is_live(&self.before) { POLL_INTERVAL } else { IDLE_INTERVAL };
            if !checks_again && !wait(&self.receiver, timeout) || state.is_ended.load(Ordering::Relaxed) {
                return;
            }
            let now = target.fingerprint();
            target.changes(&self.before, &now).into_iter().for_each(&publish);
            self.before = now;
            checks_again = self.watch_folders(target);
            let is_polling = self.notifier.is_none();
            if state.is_polling.swap(is_polling, Ordering::Relaxed) != is_polling {
                publish(ChangeEvent::RunChanged {});
            }
        }
    }
}

/// Waits for a hint, and then for the hints that follow it closely. Returns whether the channel is open.
fn wait(receiver: &Receiver<()>, timeout: Duration) -> bool {
    let started = Instant::now();
    match receiver.recv_timeout(timeout) {
        Ok(()) | Err(RecvTimeoutError::Timeout) => {}
        Err(RecvTimeoutError::Disconnected) => return false,
    }
    std::thread::sleep(DEBOUNCE.saturating_sub(started.elapsed()));
    while receiver.try_recv().is_ok() {}
    true
}
