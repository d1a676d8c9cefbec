//! Reads everything that the read-only commands show (`status`, `tree`, `validate`, …), without a lock and without writing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use runner_core::config::{Config, OnStuck};
use runner_core::layout::{Doc, NODES_DIR, RUNNER_DIR, tools_path};
use runner_core::model::goal::{Goal, GoalError};
use runner_core::model::id::{NodeId, RunId};
use runner_core::model::object_id::{BranchName, CommitId};
use runner_core::model::run_state::RunState;
use runner_core::model::tools::Tools;
use runner_core::model::tree::{BYTES_MAX, Tree, TreeProblem};
use runner_core::runs::identity::{IdentityError, IdentityInputs};
use runner_core::strict::DocumentProblem;

use crate::clock::now_ms;
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::fs::lookup;
use crate::git::{Git, Head};
use crate::repo::documents::{SMALL_BYTES_MAX, first_paths, read_docs_and_errors};
use crate::repo::journal::{self, JournalState};
use crate::repo::readonly_repo::{ReadonlyRepo, lock_holder};
use crate::repo::recovery::RecoveryNote;

/// The result of reading a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadedDoc<T, P> {
    Missing,
    Invalid(P),
    Valid(T),
}

impl<T, P> LoadedDoc<T, P> {
    fn load(bytes: Option<&Vec<u8>>, decode: impl FnOnce(&[u8]) -> Result<T, P>) -> Self {
        match bytes.map(|bytes| decode(bytes)) {
            None => Self::Missing,
            Some(Ok(value)) => Self::Valid(value),
            Some(Err(problems)) => Self::Invalid(problems),
        }
    }

    pub fn valid(&self) -> Option<&T> {
        match self {
            Self::Valid(value) => Some(value),
            Self::Missing | Self::Invalid(_) => None,
        }
    }
}

/// Everything that the read-only commands show.
#[derive(Debug)]
pub struct Inspection {
    /// The root of the work tree.
    pub root: PathBuf,
    pub head: Head,
    /// The first changed paths outside of `.runner/`, and the number of the others.
    pub dirty: (Vec<String>, usize),
    /// Whether `.runner/` has changes that `runner start` has not committed.
    pub runner_changed: bool,
    /// Whether a crash left an operation in the journal.
    pub interrupted: bool,
    /// Whether the run is paused, or will be after the current iteration.
    pub is_paused: bool,
    /// Whether the user asked the loop to stop after the current iteration.
    pub is_stopping: bool,
    /// What the last recovery finished.
    pub recovery: Option<RecoveryNote>,
    /// When the recorded wait ends, in Unix milliseconds, and how many milliseconds are left.
    pub waiting: Option<(u64, u64)>,
    pub docs: InspectedDocs,
}

/// The documents under `.runner/`, as they are in the work tree.
#[derive(Debug)]
pub struct InspectedDocs {
    /// Errors of documents that are not regular files or are too large.
    pub refused: Vec<UserError>,
    pub missing: Vec<Doc>,
    pub goal: LoadedDoc<GoalView, GoalError>,
    pub config: LoadedDoc<Config, Vec<DocumentProblem>>,
    pub state: LoadedDoc<RunState, Vec<DocumentProblem>>,
    pub tree: LoadedDoc<Tree, Vec<TreeProblem>>,
    /// Faults in the tools.json files.
    pub tools: Vec<String>,
}

/// The parts of GOAL.md that the read-only commands show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalView {
    /// The run id in its front matter.
    pub id: Option<RunId>,
    pub title: String,
    /// Whether it differs from the template.
    pub is_written: bool,
}

/// Inspects a repository with `.runner/`.
pub fn inspect(repo: &ReadonlyRepo) -> Result<Inspection, Error> {
    let git = repo.git()?;
    if git.root().join(RUNNER_DIR).symlink_metadata().is_err() {
        return Err(UserError::NotSetUp(git.root().to_owned()).into());
    }
    inspect_checkout(git)
}

/// The same for a repository with runs, local or fetched, where another branch is checked out that has no `.runner/`.
pub fn inspect_with_runs(repo: &ReadonlyRepo) -> Result<Inspection, Error> {
    match inspect(repo) {
        Err(Error::Refused(UserError::NotSetUp(_))) if !repo.runs()?.is_empty() => {
            inspect_checkout(repo.git()?)
        }
        inspected => inspected,
    }
}

fn inspect_checkout(git: &Git) -> Result<Inspection, Error> {
    let (docs, refused) = read_docs_and_errors(git)?;
    let config = LoadedDoc::load(docs.get(&Doc::Config), Config::decode);
    let filters = config.valid().map(|config| config.git.filters.clone()).unwrap_or_default();
    git.allow_filters(&filters)?;
    let status = git.status()?;
    let state = LoadedDoc::load(docs.get(&Doc::RunState), RunState::decode);
    let wait = state.valid().and_then(|state: &RunState| state.wait.as_ref());
    let waiting = wait.and_then(|wait| {
        let since_ms = git.last_iteration_time().ok()?.saturating_mul(1000);
        let left_ms = wait.left_ms(since_ms, now_ms());
        (left_ms > 0).then_some((wait.end_ms(since_ms), left_ms))
    });
    let tree = LoadedDoc::load(docs.get(&Doc::Tree), Tree::decode);
    Ok(Inspection {
        root: git.root().to_owned(),
        dirty: first_paths(&status.outside),
        runner_changed: !status.inside.is_empty(),
        interrupted: is_interrupted(git)?,
        is_paused: git.paths().is_paused(),
        is_stopping: git.paths().is_stop_requested(),
        recovery: RecoveryNote::read(git),
        waiting,
        head: status.head,
        docs: InspectedDocs {
            refused,
            missing: Doc::ALL.into_iter().filter(|doc| !docs.contains_key(doc)).collect(),
            goal: LoadedDoc::load(docs.get(&Doc::Goal), read_goal),
            tools: tools_faults(git, tree.valid(), config.valid())?,
            state,
            tree,
            config,
        },
    })
}

/// Whether the journal has an operation that nobody works on. A runner that lives has one during every iteration.
fn is_interrupted(git: &Git) -> Result<bool, Error> {
    Ok(lock_holder(git).is_none() && journal::read(&git.paths().journal())? != JournalState::Empty)
}

/// The faults of every tools.json, with its path. Without a tree and a configuration, only those of each file by itself.
pub(crate) fn tools_faults(
    git: &Git,
    tree: Option<&Tree>,
    config: Option<&Config>,
) -> Result<Vec<String>, Error> {
    let entries = lookup::entries(&git.root().join(NODES_DIR))?.into_iter();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let mut faults = Vec::new();
    let mut files = BTreeMap::new();
    for node in names.iter().filter_map(|name| NodeId::new(name.as_str()).ok()) {
        let path = tools_path(&node);
        let bytes = match atomic::read(&git.root().join(&path), SMALL_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(Error::Refused(error)) => {
                faults.push(error.to_string());
                None
            }
            Err(error) => return Err(error),
        };
        match bytes.map(|bytes| Tools::decode(&bytes)) {
            Some(Ok(tools)) => drop(files.insert(node, tools)),
            Some(Err(problems)) => {
                faults.extend(problems.iter().map(|problem| format!("`{path}`: {problem}")));
            }
            None => {}
        }
    }
    if let (Some(tree), Some(config)) = (tree, config) {
        faults.extend(
            runner_core::model::tools::tools_errors(tree, &files, config).iter().map(ToString::to_string),
        );
    }
    Ok(faults)
}

/// The policy for stuck tasks, which decides the next task; the default if the configuration cannot be read.
pub fn read_on_stuck(repo: &ReadonlyRepo) -> Result<OnStuck, Error> {
    let bytes = match run_elsewhere(repo)? {
        Some(commit) => repo.doc(&commit, Doc::Config)?,
        None => atomic::read(&repo.root().join(Doc::Config.path()), SMALL_BYTES_MAX)?,
    };
    let config = bytes.and_then(|bytes| Config::decode(&bytes).ok());
    Ok(config.map_or(OnStuck::Stop, |config| config.on_stuck))
}

/// The last commit of the newest run, if the work tree has neither a plan nor a goal.
pub(crate) fn run_elsewhere(repo: &ReadonlyRepo) -> Result<Option<CommitId>, Error> {
    if [Doc::Tree, Doc::Goal].iter().any(|doc| repo.root().join(doc.path()).exists()) {
        return Ok(None);
    }
    Ok(repo.runs()?.into_iter().next().map(|run| run.commit))
}

/// Reads only the tree: that of the work tree, or of the newest run if its branch is not checked out.
pub fn read_tree(repo: &ReadonlyRepo) -> Result<LoadedDoc<Tree, Vec<TreeProblem>>, Error> {
    if let Some(commit) = run_elsewhere(repo)? {
        return Ok(LoadedDoc::load(repo.doc(&commit, Doc::Tree)?.as_ref(), Tree::decode));
    }
    let git = repo.git()?;
    if !atomic::is_folder(&git.root().join(RUNNER_DIR))? {
        return Err(UserError::NotSetUp(git.root().to_owned()).into());
    }
    let bytes = atomic::read(&git.paths().doc(Doc::Tree), BYTES_MAX as u64)?;
    if bytes.is_none() {
        return Err(UserError::MissingDoc(Doc::Tree).into());
    }
    Ok(LoadedDoc::load(bytes.as_ref(), Tree::decode))
}

fn read_goal(bytes: &[u8]) -> Result<GoalView, GoalError> {
    let goal = Goal::parse(bytes)?;
    Ok(GoalView { id: goal.id().cloned(), title: goal.summary().title, is_written: goal.is_written() })
}

impl Inspection {
    /// Documents that are missing or invalid contribute no run id.
    fn identity_inputs(&self) -> IdentityInputs<'_> {
        IdentityInputs {
            branch: self.head.branch().map(BranchName::as_str),
            has_gitignore: !self.docs.missing.contains(&Doc::Gitignore),
            state_id: self.docs.state.valid().and_then(|state| state.run_id.as_ref()),
            goal_id: self.docs.goal.valid().and_then(|goal| goal.id.as_ref()),
        }
    }

    /// Why branch, goal and state do not agree on one run. Empty before the first start.
    pub fn identity_faults(&self) -> Vec<IdentityError> {
        let inputs = self.identity_inputs();
        if inputs.is_unstarted() { Vec::new() } else { inputs.errors() }
    }

    /// The current run, if branch, goal and state agree on it.
    pub fn run(&self) -> Option<&RunId> {
        let inputs = self.identity_inputs();
        inputs.state_id.filter(|_| inputs.errors().is_empty())
    }
}
