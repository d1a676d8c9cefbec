//! A run as a recording: its commits from git, and what came back from its sessions from their folders.

use std::collections::BTreeMap;
use std::path::Path;

use runner_core::id::{Iteration, RunId};
use runner_core::replay::{Recorded, Recording, SCHEMA, Session};
use runner_core::step::{Attempt, FileLeft, Verdict};
use runner_core::tree::Tree;
use runner_core::verify::{Kind, is_read, kept, kind};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Refusal};
use crate::git::{Batch, Git};
use crate::history::{Entry, files_at, line, resolve};
use crate::record::Folder;
use crate::store;

/// The file in an iteration's folder that holds what came back.
const SESSION: &str = "session.json";
/// The most bytes of a recording, and of any part of it.
const BYTES_MAX: u64 = 1 << 30;

/// What came back from a session. What the guard printed is in guard.log.
#[derive(Debug, Serialize, Deserialize)]
struct Came {
    /// The commit that it began from.
    base: String,
    attempt: Attempt,
    verdict: Verdict,
    /// Whether the tree was left as it was: then it is in tree.before.json.
    #[serde(default)]
    tree_untouched: bool,
}

/// Keeps what came back from a session in its folder; what the guard printed lies there already.
pub(crate) fn keep(
    folder: &Folder,
    base: &str,
    before: Option<&Tree>,
    attempt: Option<Attempt>,
    verdict: &Verdict,
) -> Result<(), Error> {
    let Some(mut attempt) = attempt else { return Ok(()) };
    let tree_untouched = match (&attempt.tree, before) {
        (FileLeft::Bytes(left), Some(before)) => left == before.bytes(),
        (_, _) => false,
    };
    if tree_untouched {
        attempt.tree = FileLeft::Missing;
    }
    let verdict = match verdict {
        Verdict::Ended { exit, .. } => Verdict::Ended { exit: *exit, output: Vec::new() },
        Verdict::Skipped | Verdict::NotStarted { .. } | Verdict::TimedOut | Verdict::Interrupted { .. } => {
            verdict.clone()
        }
    };
    let came = Came { base: base.to_owned(), attempt, verdict, tree_untouched };
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
        commits.push(Recorded {
            message: text(&entry.message),
            files: changed_files(&mut batch, entry)?,
            session: match kind(&entry.message) {
                Kind::Iteration { run_id, iter, .. } => session(&git, &run_id, iter, entry)?,
                Kind::Start { .. }
                | Kind::Baseline { .. }
                | Kind::Edit { .. }
                | Kind::Garbled { .. }
                | Kind::Own { .. } => None,
            },
        });
    }
    let base = base.iter().map(|(path, bytes)| (text(path), text(bytes))).collect();
    Ok(Recording { schema: SCHEMA.to_owned(), run_id: target.run, base, commits })
}

/// Reads a recording from a file; none if there is no such file.
pub fn read(path: &Path) -> Result<Option<Result<Recording, String>>, Error> {
    Ok(store::read(path, BYTES_MAX)?.map(|bytes| Recording::decode(&bytes)))
}

/// Writes a recording into a file.
pub fn write(path: &Path, recording: &Recording) -> Result<(), Error> {
    std::fs::write(path, recording.to_bytes()).map_err(Error::io("write", path))
}

fn changed_files(batch: &mut Batch, entry: &Entry) -> Result<BTreeMap<String, Option<String>>, Error> {
    let mut files = BTreeMap::new();
    for change in entry.logged.changes.iter().filter(|change| is_read(&change.path)) {
        let path = String::from_utf8_lossy(&change.path).into_owned();
        let text = match change.mode.as_str() {
            "100644" | "100755" | "100664" => {
                let missing = || Refusal::MissingObject(change.object.clone());
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
fn session(git: &Git, run: &RunId, iter: Iteration, entry: &Entry) -> Result<Option<Session>, Error> {
    let folder = git.paths().iteration(run.as_str(), &iter.to_string());
    let file = |name: &str| store::read(&folder.join(name), BYTES_MAX);
    let came = file(SESSION)?.and_then(|bytes| serde_json::from_slice::<Came>(&bytes).ok());
    let Some(mut came) = came.filter(|came| entry.parents.first() == Some(&came.base)) else {
        return Ok(None);
    };
    if came.tree_untouched {
        let Some(tree) = file("tree.before.json")? else { return Ok(None) };
        came.attempt.tree = FileLeft::Bytes(tree);
    }
    let Some(prompt) = file("prompt.md")? else { return Ok(None) };
    let verdict = match came.verdict {
        Verdict::Ended { exit, .. } => {
            Verdict::Ended { exit, output: file("guard.log")?.unwrap_or_default() }
        }
        other @ (Verdict::Skipped
        | Verdict::NotStarted { .. }
        | Verdict::TimedOut
        | Verdict::Interrupted { .. }) => other,
    };
    let prompt = String::from_utf8_lossy(&prompt).into_owned();
    Ok(Some(Session { prompt, attempt: came.attempt, verdict }))
}
