//! Reading a repository without changing anything: no lock, no write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use runner_core::config::Config;
use runner_core::layout::{Doc, NODES_DIR, RUNNER_DIR, tools_path};
use runner_core::model::goal::{Goal, GoalError};
use runner_core::model::id::{NodeId, RunId};
use runner_core::model::run_state::RunState;
use runner_core::model::tools::Tools;
use runner_core::model::tree::{BYTES_MAX, Tree, TreeProblem};
use runner_core::runs::identity::{IdentityError, IdentityInputs};
use runner_core::runs::start::DocSet;
use runner_core::strict::DocumentProblem;
use runner_core::text::one_line;

use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::{Git, Head, lossy};
use crate::iteration::RecoveryNote;
use crate::iteration::iteration_dir::now_ms;
use crate::ops::pause;
use crate::repo::journal;
use crate::repo::paths::RUNNER_FOLDERS;

/// No document but the tree has a reason to be large.
const SMALL_BYTES_MAX: u64 = 16 << 20;

/// Reads the documents as they lie in the work tree. Each is a plain file in a real folder, or not there.
pub(crate) fn read_docs(git: &Git) -> Result<DocSet, Error> {
    let (docs, refused) = read_what_can_be_read(git)?;
    refused.into_iter().next().map_or(Ok(docs), |refusal| Err(refusal.into()))
}

/// The same, with the refusals beside what could be read.
fn read_what_can_be_read(git: &Git) -> Result<(DocSet, Vec<UserError>), Error> {
    let (mut docs, mut refused) = (DocSet::new(), Vec::new());
    for folder in RUNNER_FOLDERS {
        match atomic::is_folder(&git.root().join(folder)) {
            Ok(_) => {}
            Err(Error::Refused(refusal)) => return Ok((docs, vec![refusal])),
            Err(error) => return Err(error),
        }
    }
    for doc in Doc::ALL {
        let max = if doc == Doc::Tree { BYTES_MAX as u64 } else { SMALL_BYTES_MAX };
        match atomic::read(&git.paths().doc(doc), max) {
            Ok(Some(bytes)) => drop(docs.insert(doc, bytes)),
            Ok(None) => {}
            Err(Error::Refused(refusal)) => refused.push(refusal),
            Err(error) => return Err(error),
        }
    }
    Ok((docs, refused))
}

/// The documents as a commit has them.
pub(crate) fn docs_of(git: &Git, commit: &str) -> Result<DocSet, Error> {
    let files = git.files_of(commit, RUNNER_DIR)?;
    let known: Vec<(Doc, &str)> =
        files.iter().filter_map(|file| Doc::at(&file.path).map(|doc| (doc, file.object.as_str()))).collect();
    let objects: Vec<&str> = known.iter().map(|(_, object)| *object).collect();
    Ok(known.iter().map(|(doc, _)| *doc).zip(git.blobs(&objects)?).collect())
}

/// Paths for people: the first ten, and how many more there are.
pub(crate) fn show_paths(paths: &[Vec<u8>]) -> (Vec<String>, usize) {
    let shown: Vec<String> = paths.iter().take(10).map(|path| one_line(&lossy(path))).collect();
    let more = paths.len() - shown.len();
    (shown, more)
}

/// A document that is there, or not, or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadedDoc<T, P> {
    Missing,
    Invalid(P),
    Valid(T),
}

impl<T, P> LoadedDoc<T, P> {
    fn of(bytes: Option<&Vec<u8>>, decode: impl FnOnce(&[u8]) -> Result<T, P>) -> Self {
        match bytes.map(|bytes| decode(bytes)) {
            None => Self::Missing,
            Some(Ok(value)) => Self::Valid(value),
            Some(Err(problems)) => Self::Invalid(problems),
        }
    }

    /// The value, if there is one.
    pub fn valid(&self) -> Option<&T> {
        match self {
            Self::Valid(value) => Some(value),
            Self::Missing | Self::Invalid(_) => None,
        }
    }
}

/// Everything that the reading commands show.
#[derive(Debug)]
pub struct Inspection {
    /// The work tree's root.
    pub root: PathBuf,
    /// Where HEAD is.
    pub head: Head,
    /// Changed paths outside `.runner/`, for people.
    pub dirty: (Vec<String>, usize),
    /// Whether the user changed something in `.runner/` that no start has taken in.
    pub runner_changed: bool,
    /// Whether a start or an iteration was interrupted.
    pub interrupted: bool,
    /// Whether the run is paused, or will be after the iteration that is being made.
    pub is_paused: bool,
    /// What was last finished after a crash.
    pub recovery: Option<RecoveryNote>,
    /// What stands where documents should, and is none.
    pub refused: Vec<UserError>,
    /// The documents that are missing.
    pub missing: Vec<Doc>,
    /// GOAL.md.
    pub goal: LoadedDoc<GoalView, GoalError>,
    /// config.toml.
    pub config: LoadedDoc<Config, Vec<DocumentProblem>>,
    /// run_state.json.
    pub state: LoadedDoc<RunState, Vec<DocumentProblem>>,
    /// tree.json.
    pub tree: LoadedDoc<Tree, Vec<TreeProblem>>,
    /// What is wrong with the files that say what agents may use.
    pub tools: Vec<String>,
    /// How much of the wait that is on record is left: when it ends, and in how many milliseconds.
    pub waiting: Option<(u64, u64)>,
}

/// What the reading commands need of GOAL.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalView {
    /// The id in its front matter.
    pub id: Option<RunId>,
    /// Its heading.
    pub title: String,
    /// Whether it is more than the template.
    pub is_written: bool,
}

/// Looks at the repository that `dir` lies in.
pub fn inspect(dir: &Path) -> Result<Inspection, Error> {
    let mut git = Git::open(dir)?;
    if git.root().join(RUNNER_DIR).symlink_metadata().is_err() {
        return Err(UserError::NotSetUp(git.root().to_owned()).into());
    }
    let (docs, refused) = read_what_can_be_read(&git)?;
    let config = LoadedDoc::of(docs.get(&Doc::Config), Config::decode);
    let filters = config.valid().map(|config| config.git.filters.clone()).unwrap_or_default();
    git.allow_filters(&filters)?;
    let status = git.status()?;
    let state = LoadedDoc::of(docs.get(&Doc::RunState), RunState::decode);
    let wait = state.valid().and_then(|state: &RunState| state.wait.as_ref());
    let waiting = wait.and_then(|wait| {
        let since_ms = git.last_iteration_time().ok()?.saturating_mul(1000);
        let left_ms = wait.left_ms(since_ms, now_ms());
        (left_ms > 0).then_some((wait.end_ms(since_ms), left_ms))
    });
    let tree = LoadedDoc::of(docs.get(&Doc::Tree), Tree::decode);
    Ok(Inspection {
        root: git.root().to_owned(),
        dirty: show_paths(&status.outside),
        runner_changed: !status.inside.is_empty(),
        interrupted: journal::pending(&git.paths().journal())?.is_some(),
        is_paused: pause::is_paused(git.paths()),
        recovery: RecoveryNote::read(&git),
        refused,
        missing: Doc::ALL.into_iter().filter(|doc| !docs.contains_key(doc)).collect(),
        goal: LoadedDoc::of(docs.get(&Doc::Goal), read_goal),
        state,
        waiting,
        tools: tools_faults(&git, tree.valid(), config.valid())?,
        tree,
        config,
        head: status.head,
    })
}

/// Every fault in every tools.json, with its file; those that no tree or configuration is needed for in any case.
pub(crate) fn tools_faults(
    git: &Git,
    tree: Option<&Tree>,
    config: Option<&Config>,
) -> Result<Vec<String>, Error> {
    let entries = std::fs::read_dir(git.root().join(NODES_DIR)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let (mut faults, mut files) = (Vec::new(), BTreeMap::new());
    for node in names.iter().filter_map(|name| NodeId::new(name.as_str()).ok()) {
        let path = tools_path(&node);
        let bytes = match atomic::read(&git.root().join(&path), SMALL_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(Error::Refused(refusal)) => {
                faults.push(refusal.to_string());
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

/// The tree alone, for commands that need nothing else.
pub fn read_tree(dir: &Path) -> Result<LoadedDoc<Tree, Vec<TreeProblem>>, Error> {
    let git = Git::open(dir)?;
    if !atomic::is_folder(&git.root().join(RUNNER_DIR))? {
        return Err(UserError::NotSetUp(git.root().to_owned()).into());
    }
    let bytes = atomic::read(&git.paths().doc(Doc::Tree), BYTES_MAX as u64)?;
    if bytes.is_none() {
        return Err(UserError::MissingDoc(Doc::Tree).into());
    }
    Ok(LoadedDoc::of(bytes.as_ref(), Tree::decode))
}

fn read_goal(bytes: &[u8]) -> Result<GoalView, GoalError> {
    let goal = Goal::parse(bytes)?;
    Ok(GoalView { id: goal.id().cloned(), title: goal.summary().title, is_written: goal.is_written() })
}

impl Inspection {
    /// What identity is read from. Documents that cannot be read name no run.
    fn standing(&self) -> IdentityInputs<'_> {
        IdentityInputs {
            branch: self.head.branch(),
            has_gitignore: !self.missing.contains(&Doc::Gitignore),
            state_id: self.state.valid().and_then(|state| state.run_id.as_ref()),
            goal_id: self.goal.valid().and_then(|goal| goal.id.as_ref()),
        }
    }

    /// What keeps the run from going on, as far as identity goes. Before the first start nothing does.
    pub fn identity_faults(&self) -> Vec<IdentityError> {
        let standing = self.standing();
        if standing.is_unstarted() { Vec::new() } else { standing.faults() }
    }

    /// The run that stands here, if identity is whole.
    pub fn run(&self) -> Option<&RunId> {
        let standing = self.standing();
        standing.state_id.filter(|_| standing.faults().is_empty())
    }
}
