//! A run as a recording: its commits from git, and what came back from its sessions from their folders.

use std::collections::BTreeMap;
use std::path::Path;

use runner_core::commit_message::CommitKind;
use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::tree::Tree;
use runner_core::replay::{RecordedCommit, RecordedSession, Recording, SCHEMA};
use runner_core::step::{Attempt, GuardRun, LeftFile};
use runner_core::verify::{is_read, kept};
use serde::{Deserialize, Serialize};

use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::{CatFileBatch, Git};
use crate::iteration::iteration_dir::IterationDir;
use crate::repo::run_history::{RunCommit, files_at, line, resolve};

/// The file in an iteration's folder that holds what came back.
const SESSION: &str = "session.json";
/// The most bytes of a recording, and of any part of it.
const BYTES_MAX: u64 = 1 << 30;

/// What came back from a session. What the guard printed is in guard.log.
#[derive(Debug, Serialize, Deserialize)]
struct SessionRecord {
    /// The commit that it began from.
    base: String,
    attempt: Attempt,
    verdict: GuardRun,
    /// Whether the tree was left as it was: then it is in tree.before.json.
    #[serde(default)]
    tree_untouched: bool,
}

/// Keeps what came back from a session in its folder; what the guard printed lies there already.
pub(crate) fn keep(
    folder: &IterationDir,
    base: &str,
    before: Option<&Tree>,
    attempt: Option<Attempt>,
    verdict: &GuardRun,
) -> Result<(), Error> {
    let Some(mut attempt) = attempt else { return Ok(()) };
    let tree_untouched = match (&attempt.tree, before) {
        (LeftFile::Bytes(left), Some(before)) => left == before.bytes(),
        (_, _) => false,
    };
    if tree_untouched {
        attempt.tree = LeftFile::Missing;
    }
    let verdict = match verdict {
        GuardRun::Ended { exit, .. } => GuardRun::Ended { exit: *exit, output: Vec::new() },
        GuardRun::Skipped
        | GuardRun::NotStarted { .. }
        | GuardRun::TimedOut
        | GuardRun::Interrupted { .. } => verdict.clone(),
    };
    let came = SessionRecord { base: base.to_owned(), attempt, verdict, tree_untouched };
    folder.write(SESSION, &serde_json::to_vec(&came).unwrap_or_default())
}

/// Records a run: the one that is named, or the one here.
pub fn record(dir: &Path, wanted: Option<&str>) -> Result<Recording, Error> {
    let git = Git::open(dir)?;
    let target = resolve(&git, wanted)?;
    let mut batch = git.batch()?;
    let run = line(&git, &mut batch, &target)?;
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
                CommitKind::Iteration { run_id, iter, .. } => session(&git, &run_id, iter, entry)?,
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

/// Reads a recording from a file; none if there is no such file.
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

/// What an iteration's folder holds of its session, if it is that of this commit.
fn session(
    git: &Git,
    run: &RunId,
    iter: IterationNumber,
    entry: &RunCommit,
) -> Result<Option<RecordedSession>, Error> {
    let folder = git.paths().iteration(run.as_str(), &iter.to_string());
    let file = |name: &str| atomic::read(&folder.join(name), BYTES_MAX);
    let came = file(SESSION)?.and_then(|bytes| serde_json::from_slice::<SessionRecord>(&bytes).ok());
    let Some(mut came) = came.filter(|came| entry.parents.first() == Some(&came.base)) else {
        return Ok(None);
    };
    if came.tree_untouched {
        let Some(tree) = file("tree.before.json")? else { return Ok(None) };
        came.attempt.tree = LeftFile::Bytes(tree);
    }
    let Some(prompt) = file("prompt.md")? else { return Ok(None) };
    let verdict = match came.verdict {
        GuardRun::Ended { exit, .. } => {
            GuardRun::Ended { exit, output: file("guard.log")?.unwrap_or_default() }
        }
        other @ (GuardRun::Skipped
        | GuardRun::NotStarted { .. }
        | GuardRun::TimedOut
        | GuardRun::Interrupted { .. }) => other,
    };
    let prompt = String::from_utf8_lossy(&prompt).into_owned();
    Ok(Some(RecordedSession { prompt, attempt: came.attempt, guard_run: verdict }))
}
