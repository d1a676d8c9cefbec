//! `runner start`: read everything, let the core compose the run's documents, commit them, move there.

use std::fs;
use std::path::Path;

use runner_core::config::Config;
use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::goal::Goal;
use runner_core::model::id::RunId;
use runner_core::model::tree::Tree;
use runner_core::runs::identity::{self, IdentityError};
use runner_core::runs::import::{ImportedTree, PlanImport};
use runner_core::runs::start::{self, DocSet, DocumentSources, StartDocuments, StartOptions};
use runner_core::step::Event;

use crate::error::{Error, UserError};
use crate::failpoint;
use crate::fs::atomic;
use crate::git::{EntryMode, Git, Head, IndexEntry, OLDEST, RepoStatus, TreeEntry, path_of};
use crate::iteration::{Recovered, RepoWorld, recover};
use crate::repo::journal::PublishEntry;
use crate::repo::paths::RUNNER_LOCAL;
use crate::repo::publish;
use crate::view::inspect::{docs_at_commit, read_docs, show_paths, tools_faults};

/// What `runner start` did.
#[derive(Debug)]
pub struct StartResult {
    /// The run.
    pub run: RunId,
    /// The tip of its branch.
    pub commit: String,
    /// How it came about.
    pub kind: StartKind,
    /// Whether the goal is still the template.
    pub goal_unwritten: bool,
    /// Other runs in this repository.
    pub other_runs: Vec<RunId>,
    /// What an earlier, interrupted start had left.
    pub recovered: Option<Recovered>,
    /// What became of a plan that was to be taken in.
    pub imported: Option<ImportedTree>,
}

/// How a start came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartKind {
    /// A new run.
    New,
    /// A run that was there, with changes by the user that were committed.
    Updated,
    /// A run that was there, as it was.
    Resumed,
}

/// Begins or resumes the run that GOAL.md names.
pub fn start(dir: &Path, wish: &StartOptions) -> Result<StartResult, Error> {
    let mut nobody = |_: &Event| {};
    let mut workshop = RepoWorld::open(dir, &mut nobody, Box::new(|| false))?;
    let recovered = recover(&mut workshop)?;
    let (mut git, _lock) = workshop.into_parts();
    check_version(&git)?;
    let docs = read_docs(&git)?;
    allow_configured_filters(&mut git, &docs)?;
    let status = clean_status(&git)?;
    let (base, _) = position(&status.head)?;

    let branches = git.runner_branches()?;
    if branches.iter().any(|(branch, _)| branch == "runner") {
        return Err(UserError::BranchInTheWay.into());
    }
    let runs: Vec<RunId> = branches.iter().filter_map(|(branch, _)| RunId::of_branch(branch)).collect();
    let goal = start::goal_file(&docs, wish)?;
    let named = Goal::parse(&goal).map_err(start::StartError::from)?.id().cloned();
    let run = named.or_else(|| identity::generate(base, &runs)).ok_or(UserError::NoCommit)?;
    let old_tip = branches.into_iter().find(|(branch, _)| *branch == run.branch()).map(|(_, tip)| tip);

    if wish.plan.is_some() {
        refuse_import(&run, &status, old_tip.is_some())?;
    }

    let scene = StartContext {
        git: &git,
        status: &status,
        docs: &docs,
        run: &run,
        base,
        old_tip: old_tip.as_deref(),
    };
    let composed = scene.compose(&goal, wish)?;
    refuse_bad_tools(&git, &composed)?;
    let new_tip = scene.commit(&composed, wish)?;
    scene.go_to(&new_tip)?;
    let how = match &old_tip {
        None => StartKind::New,
        Some(tip) if *tip == new_tip => StartKind::Resumed,
        Some(_) => StartKind::Updated,
    };
    let other_runs = runs.into_iter().filter(|other| *other != run).collect();
    let StartDocuments { goal_unwritten, imported: grafted, .. } = composed;
    Ok(StartResult {
        run,
        commit: new_tip,
        kind: how,
        goal_unwritten,
        other_runs,
        recovered,
        imported: grafted,
    })
}

/// Takes a plan into the tree of the run that stands here: a start whose only change is the new nodes.
pub fn import(dir: &Path, plan: PlanImport) -> Result<StartResult, Error> {
    start(dir, &StartOptions { plan: Some(plan), ..StartOptions::default() })
}

/// A plan goes into a run that stands, with nothing of the user's to be taken in at the same time: the commit then says
/// all of what it does.
fn refuse_import(run: &RunId, status: &RepoStatus, exists: bool) -> Result<(), Error> {
    if !exists {
        return Err(UserError::Identity(IdentityError::NoRun).into());
    }
    if status.head.branch() != Some(&run.branch()) {
        let branch = status.head.branch().map(str::to_owned);
        return Err(UserError::Identity(IdentityError::WrongBranch { run: run.clone(), branch }).into());
    }
    if !status.inside.is_empty() {
        let (paths, more) = show_paths(&status.inside);
        return Err(UserError::RunnerChanged { paths, more }.into());
    }
    Ok(())
}

/// Tells now what would end the run at the first leaf that it concerns.
fn refuse_bad_tools(git: &Git, composed: &StartDocuments) -> Result<(), Error> {
    let tree = composed.docs.get(&Doc::Tree).and_then(|bytes| Tree::decode(bytes).ok());
    let config = composed.docs.get(&Doc::Config).and_then(|bytes| Config::decode(bytes).ok());
    let faults = tools_faults(git, tree.as_ref(), config.as_ref())?;
    if faults.is_empty() { Ok(()) } else { Err(UserError::Tools { faults }.into()) }
}

pub(crate) fn check_version(git: &Git) -> Result<(), Error> {
    let (version, found) = git.version()?;
    if version < OLDEST {
        return Err(UserError::OldGit { found }.into());
    }
    Ok(())
}

/// Lets the filters run that the configuration names. One that cannot be read is told later, with its faults.
pub(crate) fn allow_configured_filters(git: &mut Git, docs: &DocSet) -> Result<(), Error> {
    let config = docs.get(&Doc::Config).and_then(|bytes| Config::decode(bytes).ok());
    git.allow_filters(&config.unwrap_or_default().git.filters)
}

/// The repository's state, if it is one that a run can start from.
pub(crate) fn clean_status(git: &Git) -> Result<RepoStatus, Error> {
    if let Some(operation) = git.operation() {
        return Err(UserError::Busy(operation).into());
    }
    let status = git.status()?;
    if status.head == Head::Unborn {
        return Err(UserError::NoCommit.into());
    }
    if !status.outside.is_empty() {
        let (paths, more) = show_paths(&status.outside);
        return Err(UserError::Dirty { paths, more }.into());
    }
    Ok(status)
}

pub(crate) fn position(head: &Head) -> Result<(&str, Option<&str>), Error> {
    head.commit().map(|commit| (commit, head.branch())).ok_or_else(|| UserError::NoCommit.into())
}

/// Everything that was read, once.
struct StartContext<'a> {
    git: &'a Git,
    status: &'a RepoStatus,
    docs: &'a DocSet,
    run: &'a RunId,
    /// HEAD's commit.
    base: &'a str,
    old_tip: Option<&'a str>,
}

impl StartContext<'_> {
    fn on_branch(&self) -> bool {
        self.status.head.branch() == Some(&self.run.branch())
    }

    fn compose(&self, goal: &[u8], wish: &StartOptions) -> Result<StartDocuments, Error> {
        let head = docs_at_commit(self.git, self.base)?;
        let tip = match self.old_tip {
            Some(tip) if tip == self.base => Some(head.clone()),
            Some(tip) => Some(docs_at_commit(self.git, tip)?),
            None => None,
        };
        let sources =
            DocumentSources { work: self.docs, head: &head, tip: tip.as_ref(), on_branch: self.on_branch() };
        Ok(start::compose(self.run, goal, sources, wish)?)
    }

    /// Stores the commit that the run goes on from. Where nothing changed, that is the branch's tip itself.
    fn commit(&self, composed: &StartDocuments, wish: &StartOptions) -> Result<String, Error> {
        let parent = self.old_tip.unwrap_or(self.base);
        let index = self.git.paths().private_index("commit");
        self.git.read_into_index(&index, parent)?;
        let mut edits = self.other_files()?;
        let contents: Vec<&[u8]> = composed.docs.values().map(Vec::as_slice).collect();
        let objects = self.git.store_blobs(&contents)?;
        edits.extend(composed.docs.keys().zip(objects).map(|(doc, object)| {
            IndexEntry::Put(TreeEntry { mode: EntryMode::File, object, path: doc.path().into() })
        }));
        self.git.edit_index(&index, &edits)?;
        let tree = self.git.write_tree(&index)?;
        atomic::remove_file(&index)?;
        let own_commits = match self.old_tip {
            Some(tip) => self.git.own_commits(self.run.as_str(), tip)?,
            None => 0,
        };
        if self.old_tip.is_some() && own_commits == 0 && self.git.tree_of(parent)? == tree {
            return Ok(parent.to_owned());
        }
        let added = composed.imported.as_ref().map(|grafted| grafted.added.len());
        let imported = wish.plan.as_ref().map(PlanImport::format).zip(added);
        let message = start::message(self.run, own_commits, imported);
        let commit = self.git.store_commit(&tree, parent, &message)?;
        failpoint::reach("start.commit");
        Ok(commit)
    }

    /// What the user changed in `.runner/` besides the documents: templates, sidecars, files of their own.
    fn other_files(&self) -> Result<Vec<IndexEntry>, Error> {
        let unknown = self.git.unknown_files(RUNNER_DIR, &RUNNER_LOCAL)?;
        let changed = self.status.inside.iter().filter(|path| !path.ends_with(b"/")).cloned();
        let mut paths: Vec<Vec<u8>> = unknown.into_iter().chain(changed).collect();
        paths.retain(|path| Doc::at(path).is_none());
        paths.sort();
        paths.dedup();
        let (mut contents, mut kept, mut edits) = (Vec::new(), Vec::new(), Vec::new());
        for path in paths {
            let place = self.git.root().join(path_of(&path));
            match atomic::read(&place, OWN_FILE_BYTES_MAX)? {
                Some(bytes) => {
                    kept.push((path, mode_of(&place)));
                    contents.push(bytes);
                }
                None => edits.push(IndexEntry::Remove(path)),
            }
        }
        let contents: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
        let objects = self.git.store_blobs(&contents)?;
        edits.extend(
            kept.into_iter()
                .zip(objects)
                .map(|((path, mode), object)| IndexEntry::Put(TreeEntry { mode, object, path })),
        );
        Ok(edits)
    }

    fn go_to(&self, new_tip: &str) -> Result<(), Error> {
        let branch = self.run.branch();
        let unchanged = self.on_branch() && self.old_tip == Some(new_tip);
        if unchanged && self.status.inside.is_empty() {
            return Ok(());
        }
        if !self.on_branch()
            && self.old_tip.is_some()
            && let Some(worktree) = self.git.worktree_holding(&branch)?
        {
            return Err(UserError::HeldElsewhere { branch, worktree }.into());
        }
        let moving = PublishEntry {
            run: self.run.to_string(),
            branch,
            old_tip: self.old_tip.map(str::to_owned),
            new_tip: new_tip.to_owned(),
            from: self.base.to_owned(),
        };
        publish::carry_out(self.git, &moving)
    }
}

/// A file of the user's own in `.runner/` may be large, but not without end.
const OWN_FILE_BYTES_MAX: u64 = 64 << 20;

fn mode_of(path: &Path) -> EntryMode {
    use std::os::unix::fs::PermissionsExt;
    let executable = fs::symlink_metadata(path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0);
    if executable { EntryMode::Executable } else { EntryMode::File }
}
