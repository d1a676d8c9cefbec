//! Edits that a person makes to a run by a command: read under the lock, decided by the core, committed like a start.

use std::path::Path;

use runner_core::config::Config;
use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::id::RunId;
use runner_core::model::tree::Tree;
use runner_core::runs::edit::{self, EditableDocs, Question, UserEdit};
use runner_core::step::{Event, Snapshot, World};

use crate::error::{Error, UserError};
use crate::failpoint;
use crate::fs::atomic;
use crate::fs::lock::Lock;
use crate::git::{EntryMode, Git, IndexEntry, TreeEntry};
use crate::iteration::{Recovered, RepoWorld, recover};
use crate::repo::journal::PublishEntry;
use crate::repo::publish;
use crate::view::inspect::read_docs;

/// A run that nobody else works on while this lives.
pub struct EditSession {
    git: Git,
    _lock: Option<Lock>,
    snapshot: Snapshot,
    head: String,
    recovered: Option<Recovered>,
}

/// An edit that is in git.
#[derive(Debug)]
pub struct CommittedEdit {
    /// The run.
    pub run: RunId,
    /// The commit.
    pub commit: String,
    /// The documents after it.
    pub after: EditableDocs,
    /// What an earlier, interrupted command had left.
    pub recovered: Option<Recovered>,
}

impl EditSession {
    /// Takes the lock, finishes what a crash left, and reads the run. Refuses what a step would refuse.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let mut nobody = |_: &Event| {};
        let mut workshop = RepoWorld::open(dir, &mut nobody, Box::new(|| false))?;
        let recovered = recover(&mut workshop)?;
        let snapshot = workshop.load()?;
        let head = workshop.head().ok_or(UserError::NoCommit)?;
        let (git, lock) = workshop.into_parts();
        Ok(Self { git, _lock: lock, snapshot, head, recovered })
    }

    pub fn tree(&self) -> &Tree {
        &self.snapshot.tree
    }

    pub fn config(&self) -> &Config {
        &self.snapshot.config
    }

    /// Makes the edit and commits it, or refuses it and changes nothing.
    pub fn commit(self, edit: &UserEdit) -> Result<CommittedEdit, Error> {
        let before = EditableDocs {
            tree: self.snapshot.tree.clone(),
            questions: self.snapshot.memory.questions.clone().into_bytes(),
            feedback: self.snapshot.memory.feedback.clone().into_bytes(),
        };
        let after = edit.apply(&before).map_err(UserError::Edit)?;
        let (doc, bytes) = edit.written(&after);
        let run = self.snapshot.run_id.clone();
        let message = edit::message(&run, edit, &after, &self.snapshot.state, self.snapshot.user_commits);
        let index = self.git.paths().private_index("commit");
        let commit = commit_doc(&self.git, &index, &self.head, (doc, &bytes), &message)?;
        atomic::remove_file(&index)?;
        failpoint::reach("steer.commit");
        go_to(&self.git, &run, (&self.head, &commit))?;
        Ok(CommittedEdit { run, commit, after, recovered: self.recovered })
    }
}

/// What agents asked in the run here, and what was answered. Takes no lock.
pub fn questions(dir: &Path) -> Result<Vec<Question>, Error> {
    let git = Git::open(dir)?;
    if !atomic::is_folder(&git.root().join(RUNNER_DIR))? {
        return Err(UserError::NotSetUp(git.root().to_owned()).into());
    }
    let file = read_docs(&git)?.remove(&Doc::Questions).unwrap_or_default();
    Ok(edit::questions(&String::from_utf8_lossy(&file)))
}

/// Stores a commit with one document changed. The index describes it then.
pub(crate) fn commit_doc(
    git: &Git,
    index: &Path,
    parent: &str,
    (doc, bytes): (Doc, &[u8]),
    message: &str,
) -> Result<String, Error> {
    git.read_into_index(index, parent)?;
    let object = git.store_blobs(&[bytes])?.pop().unwrap_or_default();
    let entry = TreeEntry { mode: EntryMode::File, object, path: doc.path().into() };
    git.edit_index(index, &[IndexEntry::Put(entry)])?;
    let tree = git.write_tree(index)?;
    git.store_commit(&tree, parent, message)
}

/// Takes the repository there, with a journal around it.
pub(crate) fn go_to(git: &Git, run: &RunId, (from, to): (&str, &str)) -> Result<(), Error> {
    let moving = PublishEntry {
        run: run.to_string(),
        branch: run.branch(),
        old_tip: Some(from.to_owned()),
        new_tip: to.to_owned(),
        from: from.to_owned(),
    };
    publish::carry_out(git, &moving)
}
