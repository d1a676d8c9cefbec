//! `runner fork`: a new run on top of an iteration of another one.

use std::path::Path;

use runner_core::layout::Doc;
use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::run_state::RunState;
use runner_core::runs::fork;
use runner_core::runs::start::{DocSet, StartError};
use runner_core::step::Event;

use crate::error::{Error, UserError};
use crate::failpoint;
use crate::fs::atomic;
use crate::git::{EntryMode, Git, IndexEntry, TreeEntry};
use crate::iteration::{Recovered, RepoWorld, recover};
use crate::ops::start::{allow_configured_filters, check_version, clean_status, position};
use crate::repo::journal::PublishEntry;
use crate::repo::publish;
use crate::view::inspect::{docs_at_commit, read_docs, show_paths};

/// The iteration that a fork goes on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkBase {
    /// Its run.
    pub run: RunId,
    /// Its number.
    pub iter: IterationNumber,
    /// Its commit.
    pub commit: String,
}

/// What `runner fork` did.
#[derive(Debug)]
pub struct ForkResult {
    /// The new run.
    pub run: RunId,
    /// Its first commit.
    pub commit: String,
    /// What it goes on from.
    pub from: ForkBase,
    /// What an earlier, interrupted command had left.
    pub recovered: Option<Recovered>,
}

/// Makes a new run from an iteration and goes there. Branches that are there stay as they are.
pub fn fork(dir: &Path, from: ForkBase, name: Option<RunId>) -> Result<ForkResult, Error> {
    let mut nobody = |_: &Event| {};
    let mut workshop = RepoWorld::open(dir, &mut nobody, Box::new(|| false))?;
    let recovered = recover(&mut workshop)?;
    let (mut git, _lock) = workshop.into_parts();
    check_version(&git)?;
    let docs = read_docs(&git)?;
    allow_configured_filters(&mut git, &docs)?;
    let status = clean_status(&git)?;
    if !status.inside.is_empty() {
        let (paths, more) = show_paths(&status.inside);
        return Err(UserError::Dirty { paths, more }.into());
    }
    let (here, _) = position(&status.head)?;
    let branches = git.runner_branches()?;
    if branches.iter().any(|(branch, _)| branch == "runner") {
        return Err(UserError::BranchInTheWay.into());
    }
    let taken: Vec<RunId> = branches.iter().filter_map(|(branch, _)| RunId::of_branch(branch)).collect();
    let run = match name {
        Some(name) if taken.contains(&name) => return Err(UserError::RunExists(name).into()),
        Some(name) => name,
        None => fork::generate(&from.run, from.iter, &taken).ok_or(UserError::NoCommit)?,
    };
    let commit = commit(&git, &from, &run)?;
    let moving = PublishEntry {
        run: run.to_string(),
        branch: run.branch(),
        old_tip: None,
        new_tip: commit.clone(),
        from: here.to_owned(),
    };
    publish::carry_out(&git, &moving)?;
    Ok(ForkResult { run, commit, from, recovered })
}

/// Stores the fork's first commit.
fn commit(git: &Git, from: &ForkBase, run: &RunId) -> Result<String, Error> {
    let docs = changed_docs(&docs_at_commit(git, &from.commit)?, run)?;
    let index = git.paths().private_index("commit");
    git.read_into_index(&index, &from.commit)?;
    let contents: Vec<&[u8]> = docs.values().map(Vec::as_slice).collect();
    let objects = git.store_blobs(&contents)?;
    let put = |(doc, object): (&Doc, String)| {
        IndexEntry::Put(TreeEntry { mode: EntryMode::File, object, path: doc.path().into() })
    };
    let edits: Vec<IndexEntry> = docs.keys().zip(objects).map(put).collect();
    git.edit_index(&index, &edits)?;
    let tree = git.write_tree(&index)?;
    atomic::remove_file(&index)?;
    let commit = git.store_commit(&tree, &from.commit, &fork::message(run, &from.run, from.iter))?;
    failpoint::reach("fork.commit");
    Ok(commit)
}

fn changed_docs(docs: &DocSet, run: &RunId) -> Result<DocSet, Error> {
    let missing = |doc| Error::from(UserError::MissingDoc(doc));
    let goal = docs.get(&Doc::Goal).ok_or_else(|| missing(Doc::Goal))?;
    let state = docs.get(&Doc::RunState).ok_or_else(|| missing(Doc::RunState))?;
    let state = RunState::decode(state).map_err(StartError::RunState)?;
    Ok(fork::documents(run, goal, &state).map_err(StartError::from)?)
}
