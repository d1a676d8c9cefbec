//! Reads one repository: its runs, their documents and their commits. What has not changed is read once.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use runner_core::config::Config;
use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::checks::TaskChecks;
use runner_core::model::goal::Goal;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use runner_core::model::object_id::CommitId;
use runner_core::model::run_state::RunState;
use runner_core::model::tree::{BYTES_MAX, Tree};
use runner_host::clock::now_ms;
use runner_host::repo::readonly_repo::{
    CommittedFile, IterationCommit, ReadonlyRepo, RunBranch, WorkTreeRun,
};
use serde_json::Value;

use crate::api::{RunFiles, VerifyResult};
use crate::error::RequestError;
use crate::read::cache::VersionedCache;
use crate::read::confined_fs::{ConfinedDir, FileVersion, FolderVersion};
use crate::read::files::FileChange;
use crate::read::iterations::{self, IterationRecord};
use crate::read::log_index::LogIndexes;
use crate::read::row_cache::RowCache;

/// The largest document that is read, apart from the tree.
const SMALL_BYTES_MAX: u64 = 16 << 20;
/// For how many seconds branches are cached, unless the watcher reports that they moved.
const BRANCHES_SECS_MAX: u64 = 10;
/// How many problems of a tree are listed.
const PROBLEMS_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct RepoReader {
    pub(crate) repo: ReadonlyRepo,
    pub(crate) root: ConfinedDir,
    pub(crate) indexes: LogIndexes,
    caches: RepoCaches,
    opened: Instant,
    /// Counts how often the watcher reported that branches moved.
    branches_moved: AtomicU64,
    /// Held while a run is verified: one at a time.
    verifying: Mutex<()>,
}

/// The version of the branches: how often they moved, and the time, in steps of [`BRANCHES_SECS_MAX`].
type BranchesVersion = (u64, u64);

/// The documents of runs, by their versions.
#[derive(Debug)]
struct DocumentCaches {
    trees: VersionedCache<RunId, DocVersion, ReadTree>,
    states: VersionedCache<RunId, DocVersion, Option<Arc<RunState>>>,
    configs: VersionedCache<RunId, DocVersion, Option<Arc<Config>>>,
    goals: VersionedCache<RunId, DocVersion, String>,
    /// By the tip of the run's branch: checks count from the commit in which they appear.
    checks: VersionedCache<RunId, CommitId, RunChecks>,
}

#[derive(Debug)]
struct RepoCaches {
    branches: VersionedCache<(), BranchesVersion, Arc<Vec<RunBranch>>>,
    /// By the tip of the run's branch.
    commits: VersionedCache<RunId, CommitId, Arc<Vec<IterationCommit>>>,
    /// By the version of meta.json.
    records: VersionedCache<(RunId, IterationNumber), FileVersion, IterationRecord>,
    documents: DocumentCaches,
    /// The run that is checked out, by the version of run_state.json.
    here: VersionedCache<(), FileVersion, Option<RunId>>,
    rows: RowCache,
    /// The iterations with a folder, by the version of the run's folder.
    folders: VersionedCache<RunId, FolderVersion, Arc<BTreeSet<IterationNumber>>>,
    /// By the commit of the iteration, which never changes.
    changes: VersionedCache<CommitId, (), Arc<Vec<FileChange>>>,
    /// The files of the commit that a running session started from.
    files: VersionedCache<(), CommitId, Arc<Vec<CommittedFile>>>,
    results: ResultCaches,
}

/// What was derived from the whole history of a run, by the tip of its branch.
#[derive(Debug)]
struct ResultCaches {
    verified: VersionedCache<RunId, Option<CommitId>, VerifyResult>,
    files: VersionedCache<RunId, CommitId, RunFiles>,
}

impl Default for RepoCaches {
    fn default() -> Self {
        Self {
            branches: VersionedCache::new(1),
            commits: VersionedCache::new(64),
            records: VersionedCache::new(100_000),
            // A tree may be large.
            documents: DocumentCaches {
                trees: VersionedCache::new(2),
                states: VersionedCache::new(64),
                configs: VersionedCache::new(64),
                goals: VersionedCache::new(64),
                checks: VersionedCache::new(8),
            },
            here: VersionedCache::new(1),
            rows: RowCache::default(),
            folders: VersionedCache::new(16),
            changes: VersionedCache::new(20_000),
            files: VersionedCache::new(1),
            results: ResultCaches { verified: VersionedCache::new(1_000), files: VersionedCache::new(2) },
        }
    }
}

/// The valid checks of a run's tasks.
pub(crate) type RunChecks = Arc<BTreeMap<NodeId, TaskChecks>>;

/// A tree, or its problems.
pub(crate) type ReadTree = Arc<Result<Tree, Vec<String>>>;

/// Where a document was read, and which version of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DocVersion {
    WorkTree(FileVersion),
    Commit(CommitId),
}

/// A run, and where its documents are.
#[derive(Clone, Debug)]
pub(crate) struct RunSource {
    pub(crate) id: RunId,
    pub(crate) branch: Option<RunBranch>,
    /// Whether it is checked out here.
    pub(crate) is_here: bool,
}

impl RepoReader {
    /// Opens the repository that contains `dir`.
    pub(crate) fn open(dir: &Path) -> Result<Self, runner_host::Error> {
        Self::new(ReadonlyRepo::open(dir)?)
    }

    /// Opens the files that a run left in a folder that is not a repository.
    pub(crate) fn open_record(folder: &Path) -> Result<Self, runner_host::Error> {
        Self::new(ReadonlyRepo::record(folder))
    }

    fn new(repo: ReadonlyRepo) -> Result<Self, runner_host::Error> {
        let root = ConfinedDir::open(repo.root()).map_err(|source| runner_host::Error::Io {
            action: "enter",
            path: repo.root().to_owned(),
            source,
        })?;
        Ok(Self {
            repo,
            root,
            indexes: LogIndexes::default(),
            caches: RepoCaches::default(),
            opened: Instant::now(),
            branches_moved: AtomicU64::default(),
            verifying: Mutex::default(),
        })
    }

    /// The name of the repository's folder.
    pub(crate) fn name(&self) -> String {
        let name = self.repo.root().file_name().unwrap_or_default();
        runner_core::text::one_line(&name.to_string_lossy())
    }

    /// The path of a document. A record has its documents side by side in one folder.
    fn path(&self, doc: Doc) -> &'static str {
        let path = doc.path();
        if self.repo.has_repository() { path } else { path.rsplit('/').next().unwrap_or(path) }
    }

    /// The version of a document in the work tree, if it exists.
    pub(crate) fn stamp(&self, doc: Doc) -> Option<FileVersion> {
        self.root.stamp(self.path(doc))
    }

    /// The folder of the iterations of all runs.
    pub(crate) fn iterations(&self) -> String {
        if self.repo.has_repository() { format!("{RUNNER_DIR}/iterations") } else { "iterations".to_owned() }
    }

    /// Makes the next request read the branches again.
    pub(crate) fn forget_branches(&self) {
        self.branches_moved.fetch_add(1, Ordering::Relaxed);
    }

    /// The runs that have a branch, newest first.
    pub(crate) fn branches(&self) -> Result<Arc<Vec<RunBranch>>, RequestError> {
        let moved = self.branches_moved.load(Ordering::Relaxed);
        let version = (moved, self.opened.elapsed().as_secs() / BRANCHES_SECS_MAX);
        self.caches.branches.get_or_read((), version, || Ok(Arc::new(self.repo.runs()?)))
    }

    /// The run that is checked out here.
    pub(crate) fn here(&self) -> Option<RunId> {
        self.named_run().filter(|run| self.repo.is_checked_out(run))
    }

    /// The run that run_state.json names, whatever branch is checked out.
    fn named_run(&self) -> Option<RunId> {
        let version = self.stamp(Doc::RunState)?;
        let read = || {
            let bytes = self.root.read(self.path(Doc::RunState), SMALL_BYTES_MAX).map_err(|_| ())?;
            let state: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            Ok::<_, ()>(state.get("run_id").and_then(Value::as_str).and_then(|id| RunId::new(id).ok()))
        };
        self.caches.here.get_or_read((), version, read).ok().flatten()
    }

    /// The run with this id; without an id, the one that `runner status` shows.
    pub(crate) fn run(&self, wanted: Option<&RunId>) -> Result<Option<RunSource>, RequestError> {
        let here = self.here();
        let branches = self.branches()?;
        let elsewhere = || {
            let work_tree =
                WorkTreeRun { named: self.named_run(), has_goal: self.is_goal_written().is_some() };
            work_tree.elsewhere(&branches).map(|branch| branch.run.clone())
        };
        let Some(id) = wanted.cloned().or_else(|| here.clone()).or_else(elsewhere) else { return Ok(None) };
        let branch = branches.iter().find(|branch| branch.run == id).cloned();
        let run = RunSource { is_here: here.as_ref() == Some(&id), id, branch };
        let is_known = run.is_here || run.branch.is_some() || self.run_folder(&run.id).is_ok();
        match (is_known, wanted) {
            (true, _) => Ok(Some(run)),
            (false, Some(id)) => Err(RequestError::no_run(id)),
            (false, None) => Ok(None),
        }
    }

    /// The folder of a run's iterations.
    pub(crate) fn run_folder(&self, run: &RunId) -> io::Result<ConfinedDir> {
        self.root.folder(&format!("{}/{run}", self.iterations()))
    }

    /// The iterations of a run that have a folder. Thousands of names are listed again only if one was added or removed.
    pub(crate) fn iteration_folders(&self, run: &RunId) -> Arc<BTreeSet<IterationNumber>> {
        let Ok(folder) = self.run_folder(run) else { return Arc::default() };
        let list = || -> io::Result<Arc<BTreeSet<IterationNumber>>> {
            let numbers = folder.names()?.iter().filter_map(|name| iterations::folder_number(name)).collect();
            Ok(Arc::new(numbers))
        };
        let settled = folder.version().ok().filter(|version| version.is_settled(now_ms() / 1000));
        let listed = match settled {
            Some(version) => self.caches.folders.get_or_read(run.clone(), version, list),
            None => list(),
        };
        listed.unwrap_or_default()
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
        run.branch.as_ref().map_or(Ok(None), |branch| Ok(self.repo.doc(&branch.commit, doc)?))
    }

    fn doc_version(&self, run: &RunSource, doc: Doc) -> Option<DocVersion> {
        if run.is_here {
            return self.stamp(doc).map(DocVersion::WorkTree);
        }
        run.branch.as_ref().map(|branch| DocVersion::Commit(branch.commit.clone()))
    }

    /// The tree of a run, or its problems.
    pub(crate) fn tree(&self, run: &RunSource) -> Result<ReadTree, RequestError> {
        let read = || -> Result<ReadTree, RequestError> {
            let bytes = self.doc(run, Doc::Tree)?.ok_or_else(|| RequestError::no_doc(Doc::Tree))?;
            let one_line =
                |problem: &dyn std::fmt::Display| runner_core::text::one_line(&problem.to_string());
            let tree = Tree::decode(&bytes).map_err(|problems| {
                problems.iter().take(PROBLEMS_MAX).map(|problem| one_line(problem)).collect()
            });
            Ok(Arc::new(tree))
        };
        match self.doc_version(run, Doc::Tree) {
            Some(version) => self.caches.documents.trees.get_or_read(run.id.clone(), version, read),
            None => read(),
        }
    }

    /// A document, parsed, read once for each version of it.
    fn parsed<T: Clone + Default>(
        &self,
        run: &RunSource,
        doc: Doc,
        cache: &VersionedCache<RunId, DocVersion, T>,
        parse: impl FnOnce(&[u8]) -> T,
    ) -> T {
        let Some(version) = self.doc_version(run, doc) else { return T::default() };
        let read = || self.doc(run, doc).map(|bytes| parse(&bytes.unwrap_or_default()));
        cache.get_or_read(run.id.clone(), version, read).unwrap_or_default()
    }

    /// The state of a run, if it is valid.
    pub(crate) fn state(&self, run: &RunSource) -> Option<Arc<RunState>> {
        self.parsed(run, Doc::RunState, &self.caches.documents.states, |bytes| {
            RunState::decode(bytes).ok().map(Arc::new)
        })
    }

    /// The configuration of a run, if it is valid.
    pub(crate) fn config(&self, run: &RunSource) -> Option<Arc<Config>> {
        self.parsed(run, Doc::Config, &self.caches.documents.configs, |bytes| {
            Config::decode(bytes).ok().map(Arc::new)
        })
    }

    /// The checks of a run's tasks; none if they cannot be read.
    pub(crate) fn checks(&self, run: &RunSource, tree: &Tree) -> RunChecks {
        let Some(branch) = &run.branch else { return RunChecks::default() };
        let read = || self.repo.checks(&branch.commit, tree).map(Arc::new);
        let cache = &self.caches.documents.checks;
        cache.get_or_read(run.id.clone(), branch.commit.clone(), read).unwrap_or_default()
    }

    /// The heading of a run's goal.
    pub(crate) fn goal(&self, run: &RunSource) -> String {
        self.parsed(run, Doc::Goal, &self.caches.documents.goals, |bytes| {
            Goal::parse(bytes).map(|goal| goal.summary().title).unwrap_or_default()
        })
    }

    /// Whether GOAL.md in the work tree still holds the template; `None` if there is no GOAL.md.
    pub(crate) fn is_goal_written(&self) -> Option<bool> {
        let bytes = self.root.read(self.path(Doc::Goal), SMALL_BYTES_MAX).ok()?;
        Some(Goal::parse(&bytes).is_ok_and(|goal| goal.is_written()))
    }

    /// The rows of a run's iterations that were read before.
    pub(crate) fn row_cache(&self) -> &RowCache {
        &self.caches.rows
    }

    /// The files that an iteration's commit changed.
    pub(crate) fn cached_changes(
        &self,
        commit: &CommitId,
        read: impl FnOnce() -> Result<Vec<FileChange>, RequestError>,
    ) -> Result<Arc<Vec<FileChange>>, RequestError> {
        self.caches.changes.get_or_read(commit.clone(), (), || Ok(Arc::new(read()?)))
    }

    /// The regular files of a commit, by path.
    pub(crate) fn files_at(&self, commit: &CommitId) -> Result<Arc<Vec<CommittedFile>>, RequestError> {
        let read = || {
            let mut files = self.repo.files_at(commit)?;
            files.sort_by(|one, other| one.path.cmp(&other.path));
            Ok(Arc::new(files))
        };
        self.caches.files.get_or_read((), commit.clone(), read)
    }

    /// The commits of a run's iterations, oldest first.
    pub(crate) fn commits(&self, run: &RunSource) -> Result<Arc<Vec<IterationCommit>>, RequestError> {
        let Some(branch) = &run.branch else { return Ok(Arc::default()) };
        let read = || Ok(Arc::new(self.repo.iterations(&run.id, &branch.commit)?));
        self.caches.commits.get_or_read(run.id.clone(), branch.commit.clone(), read)
    }

    /// The result of verifying a run at the current tip of its branch.
    pub(crate) fn verify_result(
        &self,
        run: &RunSource,
        verify: impl FnOnce() -> VerifyResult,
    ) -> VerifyResult {
        let tip = run.branch.as_ref().map(|branch| branch.commit.clone());
        let _turn = self.verifying.lock().unwrap_or_else(PoisonError::into_inner);
        let verified: Result<_, std::convert::Infallible> =
            self.caches.results.verified.get_or_read(run.id.clone(), tip, || Ok(verify()));
        match verified {
            Ok(result) => result,
            Err(never) => match never {},
        }
    }

    /// The result of verifying a run at the current tip of its branch, if it is known already.
    pub(crate) fn known_verify_result(&self, run: &RunSource) -> Option<VerifyResult> {
        let tip = run.branch.as_ref().map(|branch| branch.commit.clone());
        self.caches.results.verified.known(&run.id, &tip)
    }

    /// The files of a run at the current tip of its branch.
    pub(crate) fn cached_run_files(
        &self,
        run: &RunSource,
        read: impl FnOnce() -> Result<RunFiles, RequestError>,
    ) -> Result<RunFiles, RequestError> {
        // Without a branch, no version shows that nothing changed.
        let Some(branch) = &run.branch else { return read() };
        self.caches.results.files.get_or_read(run.id.clone(), branch.commit.clone(), read)
    }

    /// The files of a run at the current tip of its branch, if they are known already.
    pub(crate) fn known_run_files(&self, run: &RunSource) -> Option<RunFiles> {
        self.caches.results.files.known(&run.id, &run.branch.as_ref()?.commit)
    }

    /// The record of an iteration with this version of meta.json.
    pub(crate) fn cached_record(
        &self,
        run: &RunSource,
        iter: IterationNumber,
        meta: FileVersion,
        read: impl FnOnce() -> Option<IterationRecord>,
    ) -> Option<IterationRecord> {
        let key = (run.id.clone(), iter);
        self.caches.records.get_or_read(key, meta, || read().ok_or(())).ok()
    }
}
