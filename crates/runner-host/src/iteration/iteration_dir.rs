//! The log directory of one iteration: prompt, outputs, events, diff and meta.json, for people and the web UI.
//!
//! It is a log: nothing is decided by its content, and a missing directory is created again.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::tree::Tree;
use runner_core::step::{Event, RecordedEvent, RecordedIteration, RecordedRequests};

use super::known_state::TreeFile;
use crate::clock::now_ms;
use crate::error::Error;
use crate::fs::atomic;
use crate::paths::RepoPaths;
use crate::recorder::{REQUESTS, REVIEW_REQUESTS};

#[derive(Debug)]
pub(crate) struct IterationDir {
    /// The root of the work tree.
    root: PathBuf,
    path: PathBuf,
    started_ms: u64,
    agent_ms: Option<u64>,
    guard_ms: Option<u64>,
    requests: Option<RecordedRequests>,
    /// The logs that could not be written, and why.
    dropped: Mutex<Vec<String>>,
}

/// The logs that may be removed when the disk is full, largest first. Nothing but people reads them.
const LARGE_LOGS: [&str; 7] =
    [REQUESTS, REVIEW_REQUESTS, "stream.jsonl", "executor.log", "executor.err.log", TREE_AFTER, TREE_BEFORE];

/// What the agent reads; a directory with it and without meta.json is that of an iteration in progress.
pub(crate) const PROMPT: &str = "prompt.md";

/// The tree before and after an iteration. They are in git too; [`super::log_retention`] removes old copies.
pub(super) const TREE_BEFORE: &str = "tree.before.json";
pub(super) const TREE_AFTER: &str = "tree.after.json";

/// How much of a log's end is searched for its last line.
const TAIL_BYTES: u64 = 4 << 10;

/// The last line that is not blank in a log that may still be written.
pub fn last_line(root: &Path, run: &RunId, iter: IterationNumber, log: &str) -> Option<String> {
    let path = RepoPaths::new(root, Path::new("")).iteration(run.as_str(), &iter.to_string()).join(log);
    let mut file = File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().rev().map(runner_core::text::one_line).find(|line| !line.is_empty())
}

/// The file events.jsonl of an iteration, or of a run.
#[derive(Clone, Debug)]
pub(crate) struct EventsFile {
    root: PathBuf,
    dir: PathBuf,
}

impl EventsFile {
    /// The events that no iteration's file has, or not yet: the baseline, and a loop that stopped before the next session.
    pub(crate) fn of_run(paths: &RepoPaths, run: &RunId) -> Self {
        Self { root: paths.root().to_owned(), dir: paths.run_logs(run.as_str()) }
    }

    /// Appends an event. A failure is ignored: no run stops because its log cannot be written.
    pub(super) fn append(&self, event: &Event) {
        let Ok(line) = serde_json::to_string(&RecordedEvent { t_ms: now_ms(), event }) else { return };
        if atomic::create_folders(&self.root, &self.dir).is_ok() {
            let file = File::options().create(true).append(true).open(self.dir.join("events.jsonl"));
            let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        }
    }
}

impl IterationDir {
    /// Creates the directory of an iteration. Existing regular files stay.
    pub(crate) fn open(paths: &RepoPaths, run: &RunId, iter: IterationNumber) -> Result<Self, Error> {
        let dir = Self {
            root: paths.root().to_owned(),
            path: paths.iteration(run.as_str(), &iter.to_string()),
            started_ms: now_ms(),
            agent_ms: None,
            guard_ms: None,
            requests: None,
            dropped: Mutex::default(),
        };
        dir.tidy()?;
        atomic::make_private(&paths.iterations());
        Ok(dir)
    }

    /// Removes what an agent may have put in the place of a log: pipes that would block, links that point elsewhere.
    pub(crate) fn tidy(&self) -> Result<(), Error> {
        atomic::create_folders(&self.root, &self.path)?;
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let is_plain = |metadata: fs::Metadata| {
                metadata.is_file() && (metadata.nlink() == 1 || entry.file_name() == TREE_BEFORE)
            };
            // A killed runner may have left a file that it was about to rename.
            let is_temporary = entry.path().extension().is_some_and(|extension| extension == "tmp");
            if is_temporary || !entry.metadata().is_ok_and(is_plain) {
                atomic::remove_any(&entry.path())?;
            }
        }
        Ok(())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn events_file(&self) -> EventsFile {
        EventsFile { root: self.root.clone(), dir: self.path.clone() }
    }

    /// Writes a file that the session needs, so that it appears whole. If an agent removed the directory, creates it again.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        atomic::overwrite_any(&self.root, &self.file(name), bytes)
    }

    /// Writes a log, so that it appears whole. A failure is recorded and stops nothing: logs give way to the state of the run.
    pub(crate) fn write_log(&self, name: &str, bytes: &[u8]) {
        if let Err(error) = self.write(name, bytes) {
            // Half a log, or the one of an earlier attempt, would be taken for this one.
            let _ = atomic::discard_prepared(&self.file(name)).and(atomic::remove_any(&self.file(name)));
            let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            self.note_dropped(format!("{name}: {cause}"));
        }
    }

    /// Removes whatever has the name of a log.
    pub(super) fn remove_log(&self, name: &str) {
        let _ = atomic::remove_any(&self.file(name));
    }

    fn note_dropped(&self, note: String) {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// Removes the largest logs of this iteration, so that its state finds room on a full disk.
    pub(super) fn drop_large_logs(&self) {
        for name in LARGE_LOGS {
            let has_freed = fs::symlink_metadata(self.file(name)).is_ok_and(|metadata| metadata.len() > 0);
            if has_freed && atomic::remove_any(&self.file(name)).is_ok() {
                self.note_dropped(format!("{name}: removed from a full disk"));
            }
        }
    }

    /// Writes the tree that the iteration begins with: a hard link to `same`, if that still holds this tree.
    pub(super) fn write_tree_before(&self, tree: &Tree, same: Option<&TreeFile>) {
        if let Some(same) = same.filter(|same| atomic::stamp(&same.path).as_ref() == Some(&same.stamp)) {
            let _ = atomic::remove_any(&self.file(TREE_BEFORE));
            if fs::hard_link(&same.path, self.file(TREE_BEFORE)).is_ok() {
                return;
            }
        }
        self.write_log(TREE_BEFORE, tree.bytes());
    }

    /// Writes the tree that the iteration ends with.
    pub(super) fn write_tree_after(&self, tree: &Tree) -> Option<TreeFile> {
        self.write_log(TREE_AFTER, tree.bytes());
        let path = self.file(TREE_AFTER);
        atomic::stamp(&path).map(|stamp| TreeFile { path, stamp })
    }

    /// Drops the tree from the page cache once it is on the disk.
    pub(super) fn evict_tree_after(&self) {
        atomic::evict_page_cache(&self.file(TREE_AFTER));
    }

    pub(super) fn set_agent_time(&mut self, time: Duration) {
        self.agent_ms = u64::try_from(time.as_millis()).ok();
    }

    pub(super) fn set_requests(&mut self, requests: Option<RecordedRequests>) {
        self.requests = requests;
    }

    pub(super) fn set_guard_time(&mut self, time: Duration) {
        self.guard_ms = u64::try_from(time.as_millis()).ok();
    }

    /// Writes meta.json, with the times of this iteration and the logs that could not be written.
    pub(super) fn write_meta(&self, record: RecordedIteration) {
        let record = RecordedIteration {
            started_ms: self.started_ms,
            ended_ms: now_ms(),
            agent_ms: self.agent_ms,
            guard_ms: self.guard_ms,
            requests: self.requests.clone(),
            logs_dropped: self.dropped.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ..record
        };
        let document = serde_json::to_value(&record).unwrap_or_default();
        self.write_log("meta.json", format!("{document:#}\n").as_bytes());
    }
}
