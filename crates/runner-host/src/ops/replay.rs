//! `runner replay`: reads a run for a replay, with its commits from git and its sessions from their directories.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::ops::ControlFlow;
use std::path::Path;

use runner_core::commit_message::CommitKind;
use runner_core::layout::Doc;
use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;
use runner_core::model::tree::Tree;
use runner_core::replay::{RecordedCommit, RecordedSession, Recording, RecordingWriter};
use runner_core::step::{Attempt, CheckEvidence, GuardExit, GuardRun, ReviewEvidence};
use runner_core::verify::{is_read, kept};
use serde::{Deserialize, Serialize};

use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::{CatFileBatch, Git};
use crate::iteration::iteration_dir::IterationDir;
use crate::iteration::stored_attempt::StoredAttempt;
use crate::repo::run_history::{RunCommit, RunHistory, files_at, resolve, run_history};

/// The file in an iteration's directory with what came back from its session.
const SESSION: &str = "session.json";
/// The limit for a recording, and for any part of it.
const BYTES_MAX: u64 = 1 << 30;

/// What came back from a session. The guard's output is in guard.log.
#[derive(Debug, Serialize, Deserialize)]
struct SessionRecord {
    /// The commit that the session began from.
    base: CommitId,
    /// A tree that the session left unchanged is the one of `base`.
    #[serde(flatten)]
    attempt: StoredAttempt,
    #[serde(rename = "verdict")]
    guard: GuardRun,
    #[serde(default)]
    checks: CheckEvidence,
    #[serde(default)]
    review: ReviewEvidence,
}

/// The results of an iteration.
pub(crate) struct SessionResults<'a> {
    pub(crate) attempt: &'a Attempt,
    pub(crate) guard: &'a GuardRun,
    pub(crate) checks: &'a CheckEvidence,
    pub(crate) review: &'a ReviewEvidence,
}

/// Records what came back from a session in its directory. The guard's output is there already.
pub(crate) fn write_session(
    dir: &IterationDir,
    base: &CommitId,
    tree_before: &Tree,
    results: &SessionResults<'_>,
) {
    let attempt = StoredAttempt::new(results.attempt, tree_before);
    let guard = match results.guard {
        GuardRun::Ended { exit, place, .. } => {
            GuardRun::Ended { exit: *exit, output: Vec::new(), place: place.clone() }
        }
        GuardRun::Skipped
        | GuardRun::NotStarted { .. }
        | GuardRun::TimedOut
        | GuardRun::Interrupted { .. } => results.guard.clone(),
    };
    let record = SessionRecord {
        base: base.clone(),
        attempt,
        guard,
        checks: results.checks.clone(),
        review: results.review.clone(),
    };
    dir.write_log(SESSION, &serde_json::to_vec(&record).unwrap_or_default());
}

/// What is known of a run before its first commit is read.
#[derive(Debug)]
pub struct RecordedRun {
    pub run_id: RunId,
    /// The files that steps read, before the first commit.
    pub base: BTreeMap<String, String>,
    git: Git,
    history: RunHistory,
}

impl RecordedRun {
    /// Finds a run; without a name, the one on the current branch.
    pub fn open(dir: &Path, wanted: Option<&str>) -> Result<Self, Error> {
        let git = Git::open(dir)?;
        let target = resolve(&git, wanted)?;
        let mut batch = git.batch()?;
        let history = run_history(&git, &mut batch, &target)?;
        let parent = history.entries.first().and_then(|entry| entry.parents.first());
        let files = match parent {
            Some(parent) => files_at(&git, &mut batch, parent)?,
            None => BTreeMap::new(),
        };
        let base = files.iter().map(|(path, bytes)| (lossy_text(path), lossy_text(bytes))).collect();
        Ok(Self { run_id: target.run, base, git, history })
    }

    /// Passes every commit to `on_commit`, oldest first, until that returns [`ControlFlow::Break`]. Only one commit is in
    /// memory at a time: a plan of some hundred kilobytes changes with every iteration.
    pub fn for_each_commit(
        &self,
        mut on_commit: impl FnMut(&RecordedCommit) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        let mut batch = self.git.batch()?;
        for entry in &self.history.entries {
            let commit = RecordedCommit {
                message: lossy_text(&entry.message),
                files: changed_files(&mut batch, entry)?,
                session: match CommitKind::parse(&entry.message) {
                    CommitKind::Iteration { run_id, iter, .. } => {
                        let dir = self.git.paths().iteration(run_id.as_str(), &iter.to_string());
                        read_session(&mut batch, &dir, entry)?
                    }
                    CommitKind::Start { .. }
                    | CommitKind::Baseline { .. }
                    | CommitKind::Final { .. }
                    | CommitKind::Milestone { .. }
                    | CommitKind::Edit { .. }
                    | CommitKind::Malformed { .. }
                    | CommitKind::User { .. } => None,
                },
            };
            if on_commit(&commit)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Writes the run as a recording.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let file = File::create(path).map_err(Error::io("write", path))?;
        let mut writer = RecordingWriter::begin(BufWriter::new(file), &self.run_id, &self.base)
            .map_err(Error::io("write", path))?;
        self.for_each_commit(|commit| {
            writer.push(commit).map_err(Error::io("write", path))?;
            Ok(ControlFlow::Continue(()))
        })?;
        writer.finish().map_err(Error::io("write", path))
    }
}

fn lossy_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads a recording from a file; none if the file does not exist.
pub fn read(path: &Path) -> Result<Option<Result<Recording, String>>, Error> {
    Ok(atomic::read(path, BYTES_MAX)?.map(|bytes| Recording::decode(&bytes)))
}

/// Writes a recording into a file.
pub fn write(path: &Path, recording: &Recording) -> Result<(), Error> {
    std::fs::write(path, recording.to_bytes()).map_err(Error::io("write", path))
}

fn changed_files(
    batch: &mut CatFileBatch,
    entry: &RunCommit,
) -> Result<BTreeMap<String, Option<String>>, Error> {
    let mut files = BTreeMap::new();
    for change in entry.logged.changes.iter().filter(|change| is_read(&change.path)) {
        let path = String::from_utf8_lossy(&change.path).into_owned();
        let text = match change.mode.as_str() {
            "100644" | "100755" | "100664" => {
                let missing = || UserError::MissingObject(change.object.clone());
                let bytes = batch.object(&change.object)?.ok_or_else(missing)?;
                Some(String::from_utf8_lossy(&kept(&change.path, bytes)).into_owned())
            }
            _ => None,
        };
        files.insert(path, text);
    }
    Ok(files)
}

/// The session in an iteration's directory; none if the directory is incomplete or belongs to another commit. The prompt, and
/// the output of a guard that succeeded, may have been removed with the logs.
fn read_session(
    batch: &mut CatFileBatch,
    dir: &Path,
    entry: &RunCommit,
) -> Result<Option<RecordedSession>, Error> {
    let file = |name: &str| atomic::read(&dir.join(name), BYTES_MAX);
    let record = file(SESSION)?.and_then(|bytes| serde_json::from_slice::<SessionRecord>(&bytes).ok());
    let Some(record) = record.filter(|record| entry.parents.first() == Some(&record.base)) else {
        return Ok(None);
    };
    let tree_before = if record.attempt.is_tree_untouched() {
        batch.object(&format!("{}:{}", record.base, Doc::Tree.path()))?
    } else {
        Some(Vec::new())
    };
    let Some(tree_before) = tree_before else { return Ok(None) };
    let guard_run = match record.guard {
        GuardRun::Ended { exit, place, .. } => match file("guard.log")? {
            Some(output) => GuardRun::Ended { exit, output, place },
            None if exit == GuardExit::Code(0) => GuardRun::Ended { exit, output: Vec::new(), place },
            None => return Ok(None),
        },
        other @ (GuardRun::Skipped
        | GuardRun::NotStarted { .. }
        | GuardRun::TimedOut
        | GuardRun::Interrupted { .. }) => other,
    };
    let prompt = file("prompt.md")?.map(|prompt| lossy_text(&prompt));
    let attempt = record.attempt.into_attempt(|| tree_before);
    Ok(Some(RecordedSession { prompt, attempt, guard_run, checks: record.checks, review: record.review }))
}
