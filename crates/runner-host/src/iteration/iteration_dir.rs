//! The folder of one iteration: everything that was said and done, for people and for the page.
//!
//! It is a log. Nothing is ever decided by what stands in it, and a folder that is gone is made again.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::tree::Tree;
use runner_core::step::{Event, IterationMeta, RecordedEvent};
use serde_json::{Value, json};

use crate::error::Error;
use crate::fs::atomic::{self, FileStamp};
use crate::repo::paths::RepoPaths;

/// An iteration's folder.
#[derive(Debug)]
pub(crate) struct IterationDir {
    root: PathBuf,
    path: PathBuf,
    started_ms: u64,
    agent_ms: Option<u64>,
    guard_ms: Option<u64>,
    /// The tree that the iteration left, and how its file looked when it was written.
    after: Option<(Tree, FileStamp)>,
}

/// The tree before and after an iteration.
const BEFORE: &str = "tree.before.json";
const AFTER: &str = "tree.after.json";

/// How much of a log's end is looked at for its last line.
const TAIL_BYTES: u64 = 4 << 10;

/// The last line with something on it in a log of an iteration that may still be written.
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

/// Milliseconds since 1970: for the record and for waits, never for what is committed.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl IterationDir {
    /// Makes the folder, in the work tree at `root`. What is there already stays, if it is plain files.
    pub(crate) fn open(root: &Path, path: PathBuf) -> Result<Self, Error> {
        let folder = Self {
            root: root.to_owned(),
            path,
            started_ms: now_ms(),
            agent_ms: None,
            guard_ms: None,
            after: None,
        };
        folder.tidy()?;
        Ok(folder)
    }

    /// Takes away what an agent may have put here in the place of a log: pipes that would block, links that lead
    /// elsewhere.
    pub(crate) fn tidy(&self) -> Result<(), Error> {
        atomic::create_folders(&self.root, &self.path)?;
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let is_own =
                |found: fs::Metadata| found.is_file() && (found.nlink() == 1 || entry.file_name() == BEFORE);
            if !entry.metadata().is_ok_and(is_own) {
                atomic::remove_any(&entry.path())?;
            }
        }
        Ok(())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file of the log. The folder may be gone by an agent's hand: then it is made again.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        atomic::create_folders(&self.root, &self.path)?;
        atomic::overwrite(&self.file(name), bytes)
    }

    /// Writes the tree that an iteration leaves.
    pub(crate) fn write_after(&mut self, tree: &Tree) -> Result<(), Error> {
        self.write(AFTER, tree.bytes())?;
        self.after = atomic::stamp(&self.file(AFTER)).map(|stamp| (tree.clone(), stamp));
        Ok(())
    }

    /// The iteration is over, and all of it on the disk.
    pub(crate) fn let_go(&self) {
        atomic::evict_page_cache(&self.file(AFTER));
    }

    /// Writes the tree that an iteration begins with: mostly the one that the last iteration left, which then is the
    /// same file.
    pub(crate) fn write_before(&self, tree: &Tree, last: Option<&Self>) -> Result<(), Error> {
        let left =
            last.and_then(|last| last.after.as_ref().map(|(after, stamp)| (last.file(AFTER), after, stamp)));
        if let Some((path, after, stamp)) = left
            && after.sha256() == tree.sha256()
            && atomic::stamp(&path).as_ref() == Some(stamp)
        {
            atomic::remove_any(&self.file(BEFORE))?;
            if fs::hard_link(&path, self.file(BEFORE)).is_ok() {
                return Ok(());
            }
        }
        self.write(BEFORE, tree.bytes())
    }

    /// Adds a line to events.jsonl. What cannot be logged is not worth stopping for.
    pub(crate) fn tell(&self, event: &Event) {
        let Ok(line) = serde_json::to_string(&RecordedEvent { t_ms: now_ms(), event }) else { return };
        let _ = atomic::create_folders(&self.root, &self.path).and_then(|()| {
            let path = self.file("events.jsonl");
            let file = File::options().create(true).append(true).open(&path);
            let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
            written.map_err(Error::io("write", path))
        });
    }

    pub(crate) fn agent_took(&mut self, time: Duration) {
        self.agent_ms = u64::try_from(time.as_millis()).ok();
    }

    pub(crate) fn guard_took(&mut self, time: Duration) {
        self.guard_ms = u64::try_from(time.as_millis()).ok();
    }

    /// Writes meta.json: what was decided, with the times and commits around it.
    pub(crate) fn write_meta(&self, meta: &IterationMeta, more: Value) -> Result<(), Error> {
        let mut whole = serde_json::to_value(meta).unwrap_or_default();
        if let Value::Object(whole) = &mut whole {
            whole.insert("started_ms".to_owned(), json!(self.started_ms));
            whole.insert("ended_ms".to_owned(), json!(now_ms()));
            whole.insert("agent_ms".to_owned(), json!(self.agent_ms));
            whole.insert("guard_ms".to_owned(), json!(self.guard_ms));
            if let Value::Object(more) = more {
                whole.extend(more);
            }
        }
        self.write("meta.json", format!("{whole:#}\n").as_bytes())
    }
}
