//! The repository that is watched: where its runs are, and their documents. Reads; decides and writes nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runner_core::config::Config;
use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::goal::Goal;
use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::object_id::CommitId;
use runner_core::model::run_state::RunState;
use runner_core::model::tree::{BYTES_MAX, Tree};
use runner_host::repo::readonly_repo::{IterationCommit, ReadonlyRepo, RunBranch};
use serde_json::Value;

use crate::api::{IterationRow, VerifyResult};
use crate::error::RequestError;
use crate::read::confined_fs::{ConfinedDir, FileVersion};
use crate::read::log_index::LogIndexes;

/// No document but the tree has a reason to be large.
const SMALL_BYTES_MAX: u64 = 16 << 20;
/// How long branches are taken to be where they were, if nobody says that they moved.
const BRANCHES_KEPT: Duration = Duration::from_secs(10);

/// The repository.
#[derive(Debug)]
pub(crate) struct RepoReader {
    pub(crate) reading: ReadonlyRepo,
    pub(crate) root: ConfinedDir,
    pub(crate) indexes: LogIndexes,
    known: Mutex<RepoCaches>,
    /// The proofs that were asked for: one at a time, and not twice for the same state of a branch.
    verdicts: Mutex<BTreeMap<RunId, (Option<CommitId>, VerifyResult)>>,
}

/// What need not be read again as long as it did not change.
#[derive(Debug, Default)]
struct RepoCaches {
    branches: Option<(Instant, Arc<Vec<RunBranch>>)>,
    commits: BTreeMap<RunId, (CommitId, Arc<Vec<IterationCommit>>)>,
    rows: BTreeMap<(RunId, IterationNumber), (FileVersion, IterationRow)>,
    trees: BTreeMap<RunId, (TreeVersion, ReadTree)>,
}

/// A tree, or what is wrong with it.
pub(crate) type ReadTree = Arc<Result<Tree, Vec<String>>>;

/// Which tree.json was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TreeVersion {
    WorkTree(FileVersion),
    Commit(CommitId),
}

/// A run, and where its documents are.
#[derive(Clone, Debug)]
pub(crate) struct RunSource {
    pub(crate) id: RunId,
    pub(crate) branch: Option<RunBranch>,
    /// Whether it is the one in the work tree.
    pub(crate) is_here: bool,
}

impl RepoReader {
    /// Opens the repository that `dir` lies in.
    pub(crate) fn open(dir: &Path) -> Result<Self, runner_host::Error> {
        Self::of(ReadonlyRepo::open(dir)?)
    }

    /// Opens what a run left in a folder that is no repository.
    pub(crate) fn open_record(folder: &Path) -> Result<Self, runner_host::Error> {
        Self::of(ReadonlyRepo::record(folder))
    }

    fn of(reading: ReadonlyRepo) -> Result<Self, runner_host::Error> {
        let root = ConfinedDir::open(reading.root()).map_err(|source| runner_host::Error::Io {
            action: "enter",
            path: reading.root().to_owned(),
            source,
        })?;
        Ok(Self {
            reading,
            root,
            indexes: LogIndexes::default(),
            known: Mutex::default(),
            verdicts: Mutex::default(),
        })
    }

    fn known(&self) -> MutexGuard<'_, RepoCaches> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder's last name.
    pub(crate) fn name(&self) -> String {
        let name = self.reading.root().file_name().unwrap_or_default();
        runner_core::text::one_line(&name.to_string_lossy())
    }

    /// Where a document is. A record has those that it holds side by side.
    fn path(&self, doc: Doc) -> &'static str {
        let path = doc.path();
        if self.reading.has_repository() { path } else { path.rsplit('/').next().unwrap_or(path) }
    }

    /// Which version of a document is there.
    pub(crate) fn stamp(&self, doc: Doc) -> Option<FileVersion> {
        self.root.stamp(self.path(doc))
    }

    /// Where the iterations of all runs are.
    pub(crate) fn iterations(&self) -> String {
        if self.reading.has_repository() {
            format!("{RUNNER_DIR}/iterations")
        } else {
            "iterations".to_owned()
        }
    }

    /// Branches moved: they are asked for again.
    pub(crate) fn forget_branches(&self) {
        self.known().branches = None;
    }

    /// The runs that have a branch, the newest first.
    pub(crate) fn branches(&self) -> Result<Arc<Vec<RunBranch>>, RequestError> {
        if let Some((when, branches)) = &self.known().branches
            && when.elapsed() < BRANCHES_KEPT
        {
            return Ok(Arc::clone(branches));
        }
        let branches = Arc::new(self.reading.runs()?);
        self.known().branches = Some((Instant::now(), Arc::clone(&branches)));
        Ok(branches)
    }

    /// The run that the work tree belongs to.
    pub(crate) fn here(&self) -> Option<RunId> {
        let bytes = self.root.read(self.path(Doc::RunState), SMALL_BYTES_MAX).ok()?;
        let state: Value = serde_json::from_slice(&bytes).ok()?;
        RunId::new(state.get("run_id")?.as_str()?).ok()
    }

    /// The run of this name; without a name the one in the work tree, or else the newest.
    pub(crate) fn run(&self, wanted: Option<&RunId>) -> Result<Option<RunSource>, RequestError> {
        let (here, branches) = (self.here(), self.branches()?);
        let id = wanted.or(here.as_ref()).or(branches.first().map(|branch| &branch.run));
        let Some(id) = id.cloned() else { return Ok(None) };
        let branch = branches.iter().find(|branch| branch.run == id).cloned();
        let run = RunSource { is_here: here.as_ref() == Some(&id), id, branch };
        let is_known = run.is_here || run.branch.is_some() || self.folder_of(&run.id).is_ok();
        match (is_known, wanted) {
            (true, _) => Ok(Some(run)),
            (false, Some(id)) => Err(RequestError::no_run(id)),
            (false, None) => Ok(None),
        }
    }

    /// The folder of a run's iterations.
    pub(crate) fn folder_of(&self, run: &RunId) -> io::Result<ConfinedDir> {
        self.root.folder(&format!("{}/{run}", self.iterations()))
    }

    /// A document of a run.
    pub(crate) fn doc(&self, run: &RunSource, doc: Doc) -> Result<Option<Vec<u8>>, RequestError> {
        let bytes_max = if doc == Doc::Tree { BYTES_MAX as u64 } else { SMALL_BYTES_MAX };
        if run.is_here {
            return match self.root.read(self.path(doc), bytes_max) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(RequestError::unreadable(doc.path(), &error)),
            };
        }
        run.branch.as_ref().map_or(Ok(None), |branch| Ok(self.reading.doc(&branch.commit, doc)?))
    }

    /// Which tree a run has now.
    fn version(&self, run: &RunSource) -> Option<TreeVersion> {
        if run.is_here {
            return self.stamp(Doc::Tree).map(TreeVersion::WorkTree);
        }
        run.branch.as_ref().map(|branch| TreeVersion::Commit(branch.commit.clone()))
    }

    /// The tree of a run, or what is wrong with it.
    pub(crate) fn tree(&self, run: &RunSource) -> Result<ReadTree, RequestError> {
        let version = self.version(run);
        if let (Some(version), Some((known, tree))) = (&version, self.known().trees.get(&run.id))
            && known == version
        {
            return Ok(Arc::clone(tree));
        }
        let bytes = self.doc(run, Doc::Tree)?.ok_or_else(|| RequestError::no_doc(Doc::Tree))?;
        let tree = Tree::decode(&bytes).map_err(|problems| {
            problems
                .iter()
                .take(100)
                .map(|problem| runner_core::text::one_line(&problem.to_string()))
                .collect()
        });
        let tree = Arc::new(tree);
        if let Some(version) = version {
            let mut known = self.known();
            // One tree a run, and not of many runs: a tree may be large.
            if known.trees.len() > 4 {
                known.trees.clear();
            }
            known.trees.insert(run.id.clone(), (version, Arc::clone(&tree)));
        }
        Ok(tree)
    }

    /// The state of a run, if it can be read.
    pub(crate) fn state(&self, run: &RunSource) -> Option<RunState> {
        let bytes = self.doc(run, Doc::RunState).ok().flatten()?;
        RunState::decode(&bytes).ok()
    }

    /// The configuration of a run, if it can be read.
    pub(crate) fn config(&self, run: &RunSource) -> Option<Config> {
        let bytes = self.doc(run, Doc::Config).ok().flatten()?;
        Config::decode(&bytes).ok()
    }

    /// The heading of a run's goal.
    pub(crate) fn goal(&self, run: &RunSource) -> String {
        let bytes = self.doc(run, Doc::Goal).ok().flatten().unwrap_or_default();
        Goal::parse(&bytes).map(|goal| goal.summary().title).unwrap_or_default()
    }

    /// The commits of a run's iterations.
    pub(crate) fn commits(&self, run: &RunSource) -> Result<Arc<Vec<IterationCommit>>, RequestError> {
        let Some(branch) = &run.branch else { return Ok(Arc::default()) };
        if let Some((tip, commits)) = self.known().commits.get(&run.id)
            && *tip == branch.commit
        {
            return Ok(Arc::clone(commits));
        }
        let commits = Arc::new(self.reading.iterations(&run.id, &branch.commit)?);
        self.known().commits.insert(run.id.clone(), (branch.commit.clone(), Arc::clone(&commits)));
        Ok(commits)
    }

    /// The verdict on a run as its branch is now.
    pub(crate) fn verdict_of(&self, run: &RunSource, make: impl FnOnce() -> VerifyResult) -> VerifyResult {
        let tip = run.branch.as_ref().map(|branch| branch.commit.clone());
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, verdict)) = verdicts.get(&run.id)
            && *of == tip
        {
            return verdict.clone();
        }
        let verdict = make();
        verdicts.insert(run.id.clone(), (tip, verdict.clone()));
        verdict
    }

    /// The row of an iteration whose meta.json is this one, made anew if it is not.
    pub(crate) fn row_of(
        &self,
        (run, iter): (&RunId, IterationNumber),
        stamp: FileVersion,
        make: impl FnOnce() -> Option<IterationRow>,
    ) -> Option<IterationRow> {
        let key = (run.clone(), iter);
        if let Some((known, row)) = self.known().rows.get(&key)
            && *known == stamp
        {
            return Some(row.clone());
        }
        let row = make()?;
        self.known().rows.insert(key, (stamp, row.clone()));
        Some(row)
    }
}
