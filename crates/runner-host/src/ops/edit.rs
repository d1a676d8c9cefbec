//! User edits of a run (`runner node`, `answer`, `note`): loaded under the lock, decided by the core, committed.

use std::path::Path;

use runner_core::config::Config;
use runner_core::layout::RUNNER_DIR;
use runner_core::model::digest::Sha256;
use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;
use runner_core::model::run_state::RunState;
use runner_core::model::tree::Tree;
use runner_core::runs::edit::{self, EditError, EditableDocs, Question, UserEdit};
use runner_core::runs::plan_digest::plan_digest;
use runner_core::step::{LoadedRun, Snapshot};

use super::edit_queue;
use crate::agent::command::SESSION_MARKER;
use crate::error::{Error, UserError};
use crate::failpoint;
use crate::fs::atomic;
use crate::git::Git;
use crate::iteration::load::load_work_tree;
use crate::repo::documents::{commit_docs, questions_in, questions_of};
use crate::repo::journal::PublishEntry;
use crate::repo::locked_repo::LockedRepo;
use crate::repo::publish;
use crate::repo::readonly_repo::ReadonlyRepo;
use crate::repo::recovery::Recovered;
use crate::view::checks::task_checks;
use crate::view::inspect::run_elsewhere;

/// A locked run that is about to be edited.
pub struct EditSession {
    repo: LockedRepo,
    run: LoadedRun,
}

/// The digest of a plan, and the one that the user approved.
#[derive(Clone, Copy, Debug)]
pub struct PlanDigests {
    pub current: Sha256,
    pub approved: Option<Sha256>,
}

/// An edit that is in git.
#[derive(Debug)]
pub struct CommittedEdit {
    pub run: RunId,
    pub commit: CommitId,
    /// The documents after the edit.
    pub after: EditableDocs,
    /// What an interrupted command had left.
    pub recovered: Option<Recovered>,
}

impl EditSession {
    /// Locks the repository, finishes what a crash left, and loads the run. Refuses whatever a step would refuse.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let repo = LockedRepo::open(dir)?;
        // Edits take effect in the order in which the user made them.
        edit_queue::commit_queued(&repo)?;
        let run = load_work_tree(repo.git())?;
        Ok(Self { repo, run })
    }

    pub fn tree(&self) -> &Tree {
        &self.run.snapshot.tree
    }

    pub fn config(&self) -> &Config {
        &self.run.snapshot.config
    }

    /// The digest of the plan, for an approval, and the one that is approved.
    pub fn plan(&self) -> Result<PlanDigests, Error> {
        let current = current_plan(self.repo.git(), self.tree())?;
        Ok(PlanDigests { current, approved: self.run.snapshot.state.plan_approval })
    }

    /// Commits the edit, or refuses it and changes nothing.
    pub fn commit(mut self, edit: &UserEdit) -> Result<CommittedEdit, Error> {
        let recovered = self.repo.take_recovered();
        let committed = commit_edit(self.repo.git(), self.run, edit)?;
        Ok(CommittedEdit { recovered, ..committed })
    }
}

/// Commits an edit to a run that was loaded under the lock, or refuses it and changes nothing.
pub(super) fn commit_edit(git: &Git, run: LoadedRun, edit: &UserEdit) -> Result<CommittedEdit, Error> {
    let LoadedRun { commit: parent, snapshot, .. } = run;
    let is_approval = matches!(edit, UserEdit::Approve { .. });
    let plan = if is_approval { Some(current_plan(git, &snapshot.tree)?) } else { None };
    let after = edit.apply(&editable_docs(&snapshot, plan)).map_err(UserError::Edit)?;
    let state = RunState {
        plan_approval: after.approval,
        final_check: snapshot.state.final_check_after(snapshot.user_commits),
        ..snapshot.state
    };
    let docs = edit.changed_docs(&after, &state);
    let run = snapshot.run_id;
    let message = edit::message(&run, edit, &after, &state, snapshot.user_commits);
    let index = git.paths().private_index("commit");
    let commit = commit_docs(git, &index, &parent, &docs, &message)?;
    atomic::remove_file(&index)?;
    failpoint::reach("edit.commit");
    publish::publish_by_checkout(git, &PublishEntry::next_commit(&run, &parent, &commit))?;
    Ok(CommittedEdit { run, commit, after, recovered: None })
}

/// What became of a note or an answer.
#[derive(Debug)]
pub enum RecordedNote {
    Committed(Box<CommittedEdit>),
    /// A runner holds the lock: it commits the edit before its next session.
    Queued,
}

/// Records a note or an answer: at once, or through the runner that works on the run. A session cannot do it: what the
/// prompt shows as the user's must be the user's.
pub fn record_note(dir: &Path, edit: &UserEdit) -> Result<RecordedNote, Error> {
    let locked = match EditSession::open(dir).and_then(|session| session.commit(edit)) {
        Err(error @ Error::Locked { .. }) => error,
        result => return Ok(RecordedNote::Committed(Box::new(result?))),
    };
    if std::env::var_os(SESSION_MARKER).is_some() {
        return Err(locked);
    }
    let git = Git::open(dir)?;
    if let UserEdit::Answer { question, .. } = edit {
        let count = questions_in(&git)?.len();
        if !(1..=count).contains(question) {
            let error = EditError::NoSuchQuestion { wanted: *question, count };
            return Err(UserError::Edit(error).into());
        }
    }
    edit_queue::enqueue(&git, edit)?;
    // The runner may have looked for the last time before the edit was there.
    let _ = EditSession::open(dir);
    Ok(RecordedNote::Queued)
}

/// The digest of the plan in the work tree.
fn current_plan(git: &Git, tree: &Tree) -> Result<Sha256, Error> {
    Ok(plan_digest(tree, &task_checks(git, tree)?))
}

fn editable_docs(snapshot: &Snapshot, plan: Option<Sha256>) -> EditableDocs {
    EditableDocs {
        tree: snapshot.tree.clone(),
        questions: snapshot.memory.questions.clone().into_bytes(),
        notes: snapshot.notes.to_bytes(),
        plan,
        approval: snapshot.state.plan_approval,
    }
}

/// The questions of agents in this work tree, or of the newest run if its branch is not checked out, with their answers. Takes
/// no lock.
pub fn questions(repo: &ReadonlyRepo) -> Result<Vec<Question>, Error> {
    if let Some(commit) = run_elsewhere(repo)? {
        return questions_of(|doc| repo.doc(&commit, doc));
    }
    let git = repo.git()?;
    if !atomic::is_folder(&git.root().join(RUNNER_DIR))? {
        return Err(UserError::NotSetUp(git.root().to_owned()).into());
    }
    questions_in(git)
}
