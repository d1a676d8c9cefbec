//! Loading a run: checks that an iteration may begin, and builds the snapshot that the core decides by.

use runner_core::config::Config;
use runner_core::guard_files::RunChecks;
use runner_core::layout::{Doc, NODES_DIR};
use runner_core::model::checks::CheckFilePath;
use runner_core::model::goal::Goal;
use runner_core::model::id::{NodeId, RunId};
use runner_core::model::object_id::{BranchName, CommitId};
use runner_core::model::tree::Tree;
use runner_core::model::user_notes::UserNotes;
use runner_core::runs::identity::{IdentityError, IdentityInputs};
use runner_core::runs::start::{DocSet, StartError, decode_run_state};
use runner_core::step::{LoadedRun, SessionRequest, Snapshot, SnapshotInputs};

use super::known_state::KnownState;
use super::step_inputs::StepInputs;
use crate::error::{Error, UserError};
use crate::git::{Git, RepoStatus};
use crate::repo::commit_files::{followed_at, unstarted_changes};
use crate::repo::documents::{first_paths, refuse_changed_documents, refuse_dirty, refuse_hidden};
use crate::repo::readonly_repo::ReadonlyRepo;
use crate::view::checks::checked_nodes;
use crate::view::run_folder::other_worktree;

/// Loads the run in the work tree, for a command that needs it once and runs no session.
pub(crate) fn load_work_tree(git: &Git) -> Result<LoadedRun, Error> {
    read_work_tree(git, &mut None)
}

/// Loads the run in the work tree for a session, the guard or checks. A known state that is still current saves the scan of the
/// work tree; one that is not is dropped.
pub(super) fn load_with_known(git: &Git, known: &mut Option<KnownState>) -> Result<LoadedRun, Error> {
    let mut run = read_work_tree(git, known)?;
    let before = run.snapshot.protection().files;
    follow_checks(git, &mut run, &checked_nodes(git)?)?;
    if run.snapshot.protection().files != before
        && let Some(known) = known
    {
        known.protected = None;
    }
    Ok(run)
}

fn read_work_tree(git: &Git, known: &mut Option<KnownState>) -> Result<LoadedRun, Error> {
    let inputs = StepInputs::of_work_tree(git)?;
    *known = known.take().filter(|known| known.is_current(git, &inputs.docs));
    let status = match &known {
        Some(known) => RepoStatus::clean(known.head.clone()),
        None => git.status()?,
    };
    check(git, &inputs.docs, &status)?;
    if known.is_none() {
        refuse_hidden(git)?;
    }
    let commit = status.head.commit().ok_or(UserError::NoCommit)?;
    let run = build(git, commit.clone(), &inputs, known.as_ref())?;
    refuse_unstarted(git, &run)?;
    Ok(run)
}

/// Loads the run as a commit has it. Recovery uses it, so nothing about the work tree is checked.
pub(crate) fn load_commit(git: &Git, commit: &CommitId) -> Result<LoadedRun, Error> {
    let mut run = build(git, commit.clone(), &StepInputs::of_commit(git, commit)?, None)?;
    let files = git.files_of(commit, &format!("{NODES_DIR}/"))?;
    let nodes = files.iter().filter_map(|file| CheckFilePath::parse(&file.path));
    let nodes: Vec<NodeId> = nodes.filter(CheckFilePath::is_checks_toml).map(|file| file.node).collect();
    follow_checks(git, &mut run, &nodes)?;
    Ok(run)
}

/// Protects what the commands of checks depend on that are newer than the list, with the files of the commit that the session
/// begins from.
fn follow_checks(git: &Git, run: &mut LoadedRun, nodes: &[NodeId]) -> Result<(), Error> {
    let Snapshot { config, state, tree, .. } = &run.snapshot;
    let checks = RunChecks { guard: &config.guard, state, tree, nodes };
    let derived = if checks.has_unfollowed() { followed_at(git, &run.commit, checks)? } else { None };
    if let Some(derived) = derived {
        run.snapshot.state = run.snapshot.state.clone().with_protection(derived);
    }
    Ok(())
}

/// Refuses, in the contract's order, a repository in which no iteration may begin.
fn check(git: &Git, docs: &DocSet, status: &RepoStatus) -> Result<(), Error> {
    let state = match docs.get(&Doc::RunState).map(|bytes| decode_run_state(bytes)) {
        Some(Err(error @ StartError::Semantics { .. })) => return Err(error.into()),
        decoded => decoded.and_then(Result::ok),
    };
    let goal = docs.get(&Doc::Goal).and_then(|bytes| Goal::parse(bytes).ok());
    let identity = IdentityInputs {
        branch: status.head.branch().map(BranchName::as_str),
        has_gitignore: docs.contains_key(&Doc::Gitignore),
        state_id: state.as_ref().and_then(|state| state.run_id.as_ref()),
        goal_id: goal.as_ref().and_then(Goal::id),
    };
    let first_fault = identity.errors().into_iter().next();
    if let Some(fault @ IdentityError::ProtectedBranch(_)) = first_fault {
        return Err(identity_error(git, fault).into());
    }
    refuse_dirty(&status.outside)?;
    if let Some(fault) = first_fault {
        return Err(identity_error(git, fault).into());
    }
    refuse_changed_documents(&status.inside)?;
    git.operation().map_or(Ok(()), |operation| Err(UserError::Busy(operation).into()))
}

/// The error for a branch that does not belong to the run, with the run that the user may have meant.
pub(crate) fn identity_error(git: &Git, error: IdentityError) -> UserError {
    let newest = newest_run(git);
    let meant = error.run().or(newest.as_ref());
    let worktree = meant.and_then(|run| other_worktree(git.root(), run));
    UserError::Identity { error, newest, worktree }
}

/// The newest run with a branch here; none if the branches cannot be listed, which is not what the user asked about.
fn newest_run(git: &Git) -> Option<RunId> {
    let runs = ReadonlyRepo::open(git.root()).and_then(|repo| repo.runs()).unwrap_or_default();
    runs.into_iter().next().map(|branch| branch.run)
}

/// Refuses commits of the user's that change guard, configuration or another file of the run: the rules of a run are those of
/// its last start.
fn refuse_unstarted(git: &Git, run: &LoadedRun) -> Result<(), Error> {
    if run.snapshot.user_commits == 0 {
        return Ok(());
    }
    let Some(last) = git.last_runner_commit(&run.snapshot.run_id, &run.commit)? else { return Ok(()) };
    let changes = unstarted_changes(git, &last, &run.commit, &run.snapshot.protection())?;
    if changes.is_empty() {
        return Ok(());
    }
    let (paths, more) = first_paths(&changes.into_iter().collect::<Vec<_>>());
    Err(UserError::UnstartedChange { paths, more }.into())
}

fn build(
    git: &Git,
    commit: CommitId,
    inputs: &StepInputs<'_>,
    known: Option<&KnownState>,
) -> Result<LoadedRun, Error> {
    let docs = &inputs.docs;
    let state = decode_run_state(required(docs, Doc::RunState)?)?;
    let tree = match known {
        Some(known) => known.tree.clone(),
        None => Tree::decode(required(docs, Doc::Tree)?).map_err(StartError::Tree)?,
    };
    let run_id = state.run_id.clone().ok_or(UserError::MissingDoc(Doc::RunState))?;
    let user_commits = match known {
        // The runner made the commit, so the user has none on top of it.
        Some(_) => 0,
        None => git.user_commits_since(&run_id, &commit)?,
    };
    let config = Config::decode(required(docs, Doc::Config)?).map_err(StartError::Config)?;
    UserNotes::decode(docs.get(&Doc::Notes).map(Vec::as_slice).unwrap_or_default())
        .map_err(StartError::Notes)?;
    let goal = Goal::parse(required(docs, Doc::Goal)?).map_err(StartError::from)?.body().to_owned();
    let snapshot = SnapshotInputs { run_id, goal, config, tree, state, user_commits };
    let snapshot = Snapshot::build(snapshot, inputs)?;
    Ok(LoadedRun { commit, snapshot, request: SessionRequest::Next, loop_budget: Default::default() })
}

fn required(docs: &DocSet, doc: Doc) -> Result<&[u8], UserError> {
    docs.get(&doc).map(Vec::as_slice).ok_or(UserError::MissingDoc(doc))
}
