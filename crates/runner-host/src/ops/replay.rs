//! `runner replay`: records a run, with its commits from git and its sessions from their directories.

use std::collections::BTreeMap;
use std::path::Path;

use runner_core::commit_message::CommitKind;
use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::object_id::CommitId;
use runner_core::model::tree::Tree;
use runner_core::replay::{RecordedCommit, RecordedSession, Recording, SCHEMA};
use runner_core::step::{Attempt, GuardRun};
use runner_core::verify::{is_read, kept};
use serde::{Deserialize, Serialize};

use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::{CatFileBatch, Git};
use crate::iteration::iteration_dir::IterationDir;
use crate::iteration::stored_attempt::StoredAttempt;
use crate::repo::run_history::{RunCommit, files_at, resolve, run_history};

/// The file in an iteration's directory with what came back from its session.
const SESSION: &str = "session.json";
/// The limit for a recording, and for any part of it.
const BYTES_MAX: u64 = 1 << 30;

/// What came back from a session. The guard's output is in guard.log.
#[derive(Debug, Serialize, Deserialize)]
struct SessionRecord {
    /// The commit that the session began from.
    base: CommitId,
    /// A tree that the session left unchanged is in tree.before.json.
    #[serde(flatten)]
    attempt: StoredAttempt,
    #[serde(rename = "verdict")]
    guard: GuardRun,
}

/// Records what came back from a session in its directory. The guard's output is there already.
pub(crate) fn write_session(
    dir: &IterationDir,
    base: &CommitId,
    tree_before: &Tree,
    attempt: &Attempt,
    guard: &GuardRun,
) -> Result<(), Error> {
    let attempt = StoredAttempt::new(attempt, tree_before);
    let guard = match guard {
        GuardRun::Ended { exit, .. } => GuardRun::Ended { exit: *exit, output: Vec::new() },
        GuardRun::Skipped
        | GuardRun::NotStarted { .. }
        | GuardRun::TimedOut
        | GuardRun::Interrupted { .. } => guard.clone(),
    };
    let record = SessionRecord { base: base.clone(), attempt, guard };
    dir.write(SESSION, &serde_json::to_vec(&record).unwrap_or_default())
}

/// Records a run; without a name, the one on the current branch.
pub fn record(dir: &Path, wanted: Option<&str>) -> Result<Recording, Error> {
    let git = Git::open(dir)?;
    let target = resolve(&git, wanted)?;
    let mut batch = git.batch()?;
    let run = run_history(&git, &mut batch, &target)?;
    let parent = run.entries.first().and_then(|entry| entry.parents.first());
    let base = match parent {
        Some(parent) => files_at(&git, &mut batch, parent)?,
        None => BTreeMap::new(),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut commits = Vec::new();
    for entry in &run.entries {
        commits.push(RecordedCommit {
            message: text(&entry.message),
            files: changed_files(&mut batch, entry)?,
            session: match CommitKind::parse(&entry.message) {
                CommitKind::Iteration { run_id, iter, .. } => read_session(&git, &run_id, iter, entry)?,
                CommitKind::Start { .. }
                | CommitKind::Baseline { .. }
                | CommitKind::Edit { .. }
                | CommitKind::Malformed { .. }
                | CommitKind::User { .. } => None,
            },
        });
    }
    let base = base.iter().map(|(path, bytes)| (text(path), text(bytes))).collect();
    Ok(Recording { schema: SCHEMA.to_owned(), run_id: target.run, base, commits })
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

/// The session in an iteration's directory; none if the directory is incomplete or belongs to another commit.
fn read_session(
    git: &Git,
    run: &RunId,
    iter: IterationNumber,
    entry: &RunCommit,
) -> Result<Option<RecordedSession>, Error> {
    let dir = git.paths().iteration(run.as_str(), &iter.to_string());
    let file = |name: &str| atomic::read(&dir.join(name), BYTES_MAX);
    let record = file(SESSION)?.and_then(|bytes| serde_json::from_slice::<SessionRecord>(&bytes).ok());
    let Some(record) = record.filter(|record| entry.parents.first() == Some(&record.base)) else {
        return Ok(None);
    };
    let tree_before =
        if record.attempt.is_tree_untouched() { file("tree.before.json")? } else { Some(Vec::new()) };
    let Some(tree_before) = tree_before else { return Ok(None) };
    let Some(prompt) = file("prompt.md")? else { return Ok(None) };
    let guard_run = match record.guard {
        GuardRun::Ended { exit, .. } => {
            GuardRun::Ended { exit, output: file("guard.log")?.unwrap_or_default() }
        }
        other @ (GuardRun::Skipped
        | GuardRun::NotStarted { .. }
        | GuardRun::TimedOut
        | GuardRun::Interrupted { .. }) => other,
    };
    let prompt = String::from_utf8_lossy(&prompt).into_owned();
    Ok(Some(RecordedSession { prompt, attempt: record.attempt.into_attempt(|| tree_before), guard_run }))
}
