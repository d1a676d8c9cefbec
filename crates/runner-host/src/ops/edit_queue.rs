//! Notes and answers of the user that came while a runner held the lock: files in the git folder, which the runner commits
//! before its next session, or which the next command commits.
//!
//! A file is removed after its edit is committed. A crash in between must not commit it twice: before the commit, the file
//! has the number of notes. Notes are only ever added, and only under the lock, so more notes than that mean that
//! it is committed.

use std::fs;
use std::path::{Path, PathBuf};

use runner_core::layout::Doc;
use runner_core::model::user_notes::UserNotes;
use runner_core::runs::edit::UserEdit;
use runner_core::step::Event;
use runner_core::strict::canonical_json;
use serde::{Deserialize, Serialize};

use super::edit::commit_edit;
use crate::clock::now_ms;
use crate::error::{Error, UserError};
use crate::failpoint;
use crate::fs::atomic;
use crate::git::Git;
use crate::iteration::load::load_work_tree;
use crate::paths::RepoPaths;
use crate::repo::documents::read_doc;
use crate::repo::locked_repo::LockedRepo;
use crate::repo::readonly_repo::{ReadonlyRepo, is_alive};

/// More than the longest text, as JSON.
const BYTES_MAX: u64 = 4 << 20;

/// A note or an answer that is not committed yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum QueuedEdit {
    Note { text: String },
    Answer { question: usize, text: String },
}

/// A file of the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueFile {
    edit: QueuedEdit,
    /// How many notes there were when its commit began.
    begun_at: Option<usize>,
}

impl QueuedEdit {
    /// The edit, if it is one that can wait.
    fn of(edit: &UserEdit) -> Option<Self> {
        match edit {
            UserEdit::Note { text } => Some(Self::Note { text: text.clone() }),
            UserEdit::Answer { question, text } => {
                Some(Self::Answer { question: *question, text: text.clone() })
            }
            UserEdit::Add { .. }
            | UserEdit::Edit { .. }
            | UserEdit::Split { .. }
            | UserEdit::Remove { .. }
            | UserEdit::Move { .. }
            | UserEdit::Allow { .. }
            | UserEdit::Approve { .. } => None,
        }
    }

    fn to_edit(&self) -> UserEdit {
        match self {
            Self::Note { text } => UserEdit::Note { text: text.clone() },
            Self::Answer { question, text } => UserEdit::Answer { question: *question, text: text.clone() },
        }
    }

    /// As an event names it: `note`, `answer 2`.
    fn name(&self) -> String {
        match self {
            Self::Note { .. } => "note".to_owned(),
            Self::Answer { question, .. } => format!("answer {question}"),
        }
    }
}

/// Keeps an edit for the runner that holds the lock.
pub(super) fn enqueue(git: &Git, edit: &UserEdit) -> Result<(), Error> {
    edit.check_texts().map_err(UserError::Edit)?;
    let edit = QueuedEdit::of(edit).ok_or(Error::Internal("this edit cannot wait"))?;
    let folder = git.paths().edit_queue();
    atomic::create_folders(git.paths().git_dir(), &folder)?;
    // Sorted by time. A process queues one edit.
    let name = format!("{:016}-{}.json", now_ms(), std::process::id());
    atomic::write(&folder.join(name), &canonical_json(&QueueFile { edit, begun_at: None }))
}

/// How many edits wait.
pub(crate) fn count(paths: &RepoPaths) -> usize {
    files(paths).len()
}

/// Everything that waits in a work tree, oldest first.
pub fn queued_edits(repo: &ReadonlyRepo) -> Result<Vec<QueuedEdit>, Error> {
    Ok(files(repo.git()?.paths()).iter().filter_map(|path| read(path).ok()).map(|file| file.edit).collect())
}

/// The files of the queue, oldest first.
fn files(paths: &RepoPaths) -> Vec<PathBuf> {
    let entries = fs::read_dir(paths.edit_queue()).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| !atomic::is_temporary_name(&entry.file_name()))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

fn read(path: &Path) -> Result<QueueFile, String> {
    let bytes = atomic::read(path, BYTES_MAX).map_err(|error| error.to_string())?.unwrap_or_default();
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// Removes what a command left that was killed while it queued an edit. It did not hold the lock, so another command may be
/// doing the same at this moment; the name of the file has the process that writes it.
fn remove_unfinished(paths: &RepoPaths) -> Result<(), Error> {
    for entry in fs::read_dir(paths.edit_queue()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let writer =
            name.to_str().and_then(|name| name.strip_suffix(".json.tmp")?.rsplit('-').next()?.parse().ok());
        if atomic::is_temporary_name(&name) && !writer.is_some_and(is_alive) {
            atomic::remove_any(&entry.path())?;
        }
    }
    Ok(())
}

/// Commits everything that waits. Returns what happened as events. An error means that nothing can be committed now, for
/// example because of changes in the work tree; what waits stays.
pub(crate) fn commit_queued(repo: &LockedRepo) -> Result<Vec<Event>, Error> {
    let git = repo.git();
    remove_unfinished(git.paths())?;
    let mut events = Vec::new();
    for path in files(git.paths()) {
        let (edit, fault) = match read(&path) {
            Ok(file) => (file.edit.name(), commit_file(git, &path, file)?),
            Err(why) => ("edit".to_owned(), Some(why)),
        };
        atomic::remove_any(&path)?;
        atomic::sync_parent(&path)?;
        events.push(Event::QueuedEdit { edit, fault });
    }
    Ok(events)
}

/// Commits the edit of a file, unless it is committed already. Returns why it was refused.
fn commit_file(git: &Git, path: &Path, mut file: QueueFile) -> Result<Option<String>, Error> {
    let notes = note_count(git)?;
    if file.begun_at.is_some_and(|begun_at| notes > begun_at) {
        return Ok(None);
    }
    let run = load_work_tree(git)?;
    file.begun_at = Some(notes);
    atomic::write(path, &canonical_json(&file))?;
    let fault = match commit_edit(git, run, &file.edit.to_edit()) {
        Ok(_) => None,
        Err(Error::Refused(error @ UserError::Edit(_))) => Some(error.to_string()),
        Err(error) => return Err(error),
    };
    failpoint::reach("queue.committed");
    Ok(fault)
}

fn note_count(git: &Git) -> Result<usize, Error> {
    let notes = read_doc(git, Doc::Notes)?.unwrap_or_default();
    Ok(UserNotes::decode(&notes).map_or(0, |notes| notes.notes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_command_left_is_removed_and_what_is_being_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        let queue = git.paths().edit_queue();
        fs::create_dir_all(&queue).unwrap();
        // No process has the largest number.
        let dead = queue.join(format!(".0000000000000001-{}.json.tmp", i32::MAX));
        let alive = queue.join(format!(".0000000000000002-{}.json.tmp", std::process::id()));
        let queued = queue.join("0000000000000003-1.json");
        for path in [&dead, &alive, &queued] {
            fs::write(path, "{").unwrap();
        }
        remove_unfinished(git.paths()).unwrap();
        assert_eq!([&dead, &alive, &queued].map(|path| path.exists()), [false, true, true]);
    }
}
