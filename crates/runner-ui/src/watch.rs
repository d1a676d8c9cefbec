//! Notices what changes and tells it.
//!
//! What the system reports is a hint that something may have changed, no more: after every hint the files themselves
//! are looked at, and what is told is the difference to the look before. Hints are gathered: the first after a quiet
//! while is followed at once, the rest not more often than every 100 ms. Folders that appear later are watched as
//! soon as they are seen. Where watching fails, files are looked at every two seconds, and the page says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use runner_core::id::{Iteration, RunId};
use runner_core::layout::{Doc, RUNNER_DIR};

use crate::api::{Change, FileSize, Watching};
use crate::beneath::Stamp;
use crate::history;
use crate::project::Project;

/// How much time lies between two looks at least.
const GATHER: Duration = Duration::from_millis(100);
/// How often files are looked at where watching fails, and whether a runner still lives.
const POLL: Duration = Duration::from_secs(2);
/// How often an idle repository is looked at for what no hint told.
const IDLE: Duration = Duration::from_secs(30);
/// How many of the newest iterations may still change.
const LIVE: usize = 2;
/// More new iterations than this at once are not told one by one.
const ADDED_MAX: usize = 50;

/// Whether the system tells of changes.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    polls: AtomicBool,
}

impl Watch {
    pub(crate) fn watching(&self) -> Watching {
        if self.polls.load(Ordering::Relaxed) { Watching::Polling } else { Watching::Events }
    }
}

/// One look at everything that can change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Look {
    tree: Option<Stamp>,
    state: Option<Stamp>,
    run: Option<RunId>,
    /// Branches, the runner at work, its journal, goal and configuration.
    around: Vec<String>,
    is_live: bool,
    iterations: BTreeSet<Iteration>,
    newest: BTreeMap<Iteration, Vec<FileSize>>,
}

fn look(project: &Project) -> Look {
    let run = project.here();
    let folder = run.as_ref().and_then(|run| project.folder_of(run).ok());
    let names = folder.as_ref().and_then(|folder| folder.names().ok()).unwrap_or_default();
    let iterations: BTreeSet<Iteration> = names.iter().filter_map(|name| history::of_name(name)).collect();
    let newest = iterations.iter().rev().take(LIVE).filter_map(|iter| {
        let folder = folder.as_ref()?.folder(&iter.to_string()).ok()?;
        Some((*iter, history::sizes(&folder)))
    });
    let at_work = project.reading.at_work();
    let mut around = vec![
        format!("{at_work:?}"),
        format!("{:?}", project.reading.is_paused()),
        format!("{:?}", project.reading.branch()),
        format!("{:?}", project.root.stamp(Doc::Goal.path())),
        format!("{:?}", project.root.stamp(Doc::Config.path())),
    ];
    for place in project.reading.places() {
        for name in ["packed-refs", "journal.json"] {
            around.push(plain_stamp(&place.join(name)));
        }
        if place.ends_with("refs/heads/runner") {
            around.extend(stamps_in(&place));
        }
    }
    Look {
        tree: project.root.stamp(Doc::Tree.path()),
        state: project.root.stamp(Doc::RunState.path()),
        run,
        around,
        is_live: at_work.is_some(),
        newest: newest.collect(),
        iterations,
    }
}

/// The version of a file of git's.
fn plain_stamp(path: &Path) -> String {
    fs::symlink_metadata(path)
        .map(|found| format!("{} {} {}.{}", found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
        .unwrap_or_default()
}

fn stamps_in(folder: &Path) -> Vec<String> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut stamps: Vec<String> =
        paths.map(|path| format!("{} {}", path.display(), plain_stamp(&path))).collect();
    stamps.sort_unstable();
    stamps
}

/// What to tell of the difference between two looks.
fn changes(before: &Look, now: &Look) -> Vec<Change> {
    if before.run != now.run {
        return vec![Change::Resync {}];
    }
    let mut told = Vec::new();
    if before.tree != now.tree {
        told.push(Change::TreeChanged { revision: format!("{:?}", now.tree) });
    }
    if before.state != now.state {
        told.push(Change::RunStateChanged {});
    }
    if before.around != now.around {
        told.push(Change::RunChanged {});
    }
    let Some(run) = now.run.as_ref().map(ToString::to_string) else { return told };
    let added: Vec<Iteration> = now.iterations.difference(&before.iterations).copied().collect();
    if added.len() > ADDED_MAX || before.iterations.difference(&now.iterations).next().is_some() {
        return vec![Change::Resync {}];
    }
    told.extend(added.iter().map(|iter| Change::IterationAdded { run: run.clone(), iter: iter.get() }));
    for (iter, files) in &now.newest {
        if before.newest.get(iter) != Some(files) {
            told.push(Change::IterationChanged { run: run.clone(), iter: iter.get(), files: files.clone() });
        }
    }
    told
}

/// The folders that tell of every change: few, because what is old does not change.
fn folders(project: &Project, look: &Look) -> BTreeSet<PathBuf> {
    let root = project.reading.root();
    let mut folders = BTreeSet::from([root.to_owned()]);
    let iterations = root.join(RUNNER_DIR).join("iterations");
    folders.extend([root.join(RUNNER_DIR), root.join(RUNNER_DIR).join("state"), iterations.clone()]);
    if let Some(run) = &look.run {
        let run = iterations.join(run.as_str());
        folders.extend(look.newest.keys().map(|iter| run.join(iter.to_string())));
        folders.insert(run);
    }
    folders.extend(project.reading.places());
    let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    folders.into_iter().filter(is_folder).collect()
}

/// Whether a report can be about something that is looked at. Our own reading is reported too.
fn is_hint(event: &notify::Event, root: &Path, git: &[PathBuf]) -> bool {
    if matches!(event.kind, EventKind::Access(kind) if !matches!(kind, notify::event::AccessKind::Close(notify::event::AccessMode::Write)))
    {
        return false;
    }
    event.paths.is_empty()
        || event.paths.iter().any(|path| {
            let name = path.file_name().unwrap_or_default();
            match path.parent() {
                Some(parent) if parent == root => name == RUNNER_DIR,
                // git's folders are busy with what is not ours: only these names are.
                Some(parent) if git.iter().take(2).any(|folder| folder == parent) => {
                    ["HEAD", "packed-refs", "refs", "runner"].iter().any(|known| name == *known)
                }
                Some(_) | None => true,
            }
        })
}

/// The system's watcher, and what it watches.
struct Hints {
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
}

impl Hints {
    fn new(project: &Project, hint: mpsc::Sender<()>) -> notify::Result<Self> {
        let (root, git) = (project.reading.root().to_owned(), project.reading.places());
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Whatever could not be reported is a reason to look.
            if event.as_ref().map_or(true, |event| is_hint(event, &root, &git)) {
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

/// Watches a project.
pub(crate) struct Watcher {
    hints: Option<Hints>,
    receiver: Receiver<()>,
    /// Kept, so that the channel stays open where the system does not tell.
    _sender: mpsc::Sender<()>,
    before: Look,
}

impl Watcher {
    /// Takes the first look and begins to watch: from now on, no change is missed.
    pub(crate) fn begin(project: &Project, watch: &Watch, only_polls: bool) -> Self {
        let (sender, receiver) = mpsc::channel();
        let hints = if only_polls { None } else { Hints::new(project, sender.clone()).ok() };
        let mut watcher = Self { hints, receiver, _sender: sender, before: look(project) };
        watcher.watch_folders(project);
        watch.polls.store(watcher.hints.is_none(), Ordering::Relaxed);
        watcher
    }

    /// Watches what the last look saw; gives back whether there were folders not watched before.
    fn watch_folders(&mut self, project: &Project) -> bool {
        let more = self.hints.as_mut().map(|hints| hints.watch(folders(project, &self.before)));
        if matches!(more, Some(Err(_))) {
            self.hints = None;
        }
        matches!(more, Some(Ok(true)))
    }

    /// Watches for ever, and tells every change.
    pub(crate) fn run(mut self, project: &Project, watch: &Watch, told: impl Fn(Change)) {
        // What happened while the first folders were not watched yet is seen by one more look.
        let mut looks_again = true;
        loop {
            let most = if self.hints.is_none() || self.before.is_live { POLL } else { IDLE };
            if !looks_again && !wait(&self.receiver, most) {
                return;
            }
            let now = look(project);
            if now.around != self.before.around || now.run != self.before.run {
                project.forget_branches();
            }
            changes(&self.before, &now).into_iter().for_each(&told);
            self.before = now;
            looks_again = self.watch_folders(project);
            let polls = self.hints.is_none();
            if watch.polls.swap(polls, Ordering::Relaxed) != polls {
                told(Change::RunChanged {});
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

#[cfg(test)]
mod tests {
    use super::*;

    fn iteration(number: u32) -> Iteration {
        Iteration::new(number).unwrap()
    }

    #[test]
    fn only_what_differs_is_told() {
        let before = Look { run: RunId::new("x").ok(), tree: Some(Stamp::default()), ..Look::default() };
        assert_eq!(changes(&before, &before), []);
        let size = |bytes| vec![FileSize { name: "guard.log".to_owned(), bytes }];
        let now = Look {
            tree: None,
            iterations: [iteration(1)].into(),
            newest: [(iteration(1), size(3))].into(),
            ..before.clone()
        };
        let (run, iter) = ("x".to_owned(), 1);
        let grown = |bytes| Change::IterationChanged { run: run.clone(), iter, files: size(bytes) };
        let tree = Change::TreeChanged { revision: "None".to_owned() };
        assert_eq!(
            changes(&before, &now),
            [tree, Change::IterationAdded { run: run.clone(), iter }, grown(3)]
        );
        let more = Look { newest: [(iteration(1), size(4))].into(), ..now.clone() };
        assert_eq!(changes(&now, &more), [grown(4)]);
    }

    #[test]
    fn another_run_and_iterations_that_are_gone_are_read_anew() {
        let before = Look { run: RunId::new("x").ok(), iterations: [iteration(1)].into(), ..Look::default() };
        let other = Look { run: RunId::new("y").ok(), ..before.clone() };
        assert_eq!(changes(&before, &other), [Change::Resync {}]);
        let gone = Look { iterations: BTreeSet::new(), ..before.clone() };
        assert_eq!(changes(&before, &gone), [Change::Resync {}]);
        let many = Look { iterations: (1..=99).map(iteration).collect(), ..before.clone() };
        assert_eq!(changes(&before, &many), [Change::Resync {}]);
    }
}
