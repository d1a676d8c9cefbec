//! `runner start`: reads everything, lets the core compose the run's documents, commits them and switches to them.

use std::collections::btree_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};

use runner_core::config::{Config, McpServer, NetworkAccess};
use runner_core::detect::ConfigRequest;
use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::goal::Goal;
use runner_core::model::id::RunId;
use runner_core::model::instructions::PinnedInstructions;
use runner_core::model::object_id::{BranchName, CommitId, TreeId};
use runner_core::model::protection::Protection;
use runner_core::model::run_state::RunState;
use runner_core::model::tree::Tree;
use runner_core::runs::identity::{self, IdentityInputs};
use runner_core::runs::import::{ImportedTree, PlanImport};
use runner_core::runs::plan_digest::plan_digest;
use runner_core::runs::start::{
    self, ApprovedPlan, DocSet, DocumentSources, LastRunnerCommit, PlanRewrite, StartDocuments, StartError,
    StartOptions,
};

use super::base_branch::base_branch_of;
use super::detect::propose_in;
use super::environment::environment;
use crate::agent::sandbox::configured_folders;
use crate::error::{Error, UserError};
use crate::failpoint;
use crate::fs::atomic;
use crate::fs::lookup;
use crate::git::{EntryMode, Git, Head, IndexEntry, LocalBranch, OLDEST, RepoStatus, TreeEntry, path_of};
use crate::iteration::laid_files::patterns_for_destinations;
use crate::iteration::load::identity_error;
use crate::paths::RUNNER_LOCAL;
use crate::repo::commit_files::CommitFiles;
use crate::repo::commit_scope::check_scope;
use crate::repo::documents::{
    docs_at_commit, read_docs, refuse_changed_documents, refuse_dirty, refuse_hidden, store_docs,
};
use crate::repo::exclude_file::ignore_local_files;
use crate::repo::heldout_folder::HeldoutFolder;
use crate::repo::journal::PublishEntry;
use crate::repo::locked_repo::LockedRepo;
use crate::repo::publish;
use crate::repo::recovery::Recovered;
use crate::room::KeptStore;
use crate::view::checks::{check_faults, checks_at_commit, checks_in_work_tree};
use crate::view::inspect::tools_faults;

/// What `runner start` did.
#[derive(Debug)]
pub struct StartResult {
    pub run: RunId,
    /// The tip of the run's branch.
    pub commit: CommitId,
    pub kind: StartKind,
    /// Whether GOAL.md is still the template.
    pub goal_unwritten: bool,
    pub other_runs: Vec<RunId>,
    /// What the run protects from its agents.
    pub protection: Protection,
    /// Whether the goal changed, and the plan still holds the old one.
    pub has_stale_root: bool,
    /// What enters the sessions of the run besides the prompt.
    pub inputs: SessionInputs,
    /// What an interrupted command had left.
    pub recovered: Option<Recovered>,
    /// The result of a plan import.
    pub imported: Option<ImportedTree>,
}

/// What a session gets by choice, for the user to see at the start.
#[derive(Clone, Debug)]
pub struct SessionInputs {
    pub instructions: Option<PinnedInstructions>,
    /// What the agent's commands can reach.
    pub network: NetworkAccess,
    /// The same in words.
    pub network_note: &'static str,
    /// The names of the MCP servers.
    pub mcp: Vec<String>,
    /// The folders outside the repository that a session may write to.
    pub writable: Vec<PathBuf>,
}

impl SessionInputs {
    fn of(git: &Git, composed: &StartDocuments) -> Self {
        let config = composed.docs.get(&Doc::Config).and_then(|bytes| Config::decode(bytes).ok());
        let executor = config.unwrap_or_default().executor;
        let servers = executor.mcp.iter().filter_map(|entry| McpServer::parse(entry));
        Self {
            instructions: composed.instructions.clone(),
            network: executor.effective_network(),
            network_note: executor.network_note(),
            mcp: servers.map(|server| server.name.to_owned()).collect(),
            writable: configured_folders(git.root(), &executor),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartKind {
    New,
    /// An existing run, with changes by the user that were committed.
    Updated,
    /// An existing run without changes.
    Resumed,
}

/// Starts or resumes the run that GOAL.md names.
pub fn start(dir: &Path, options: &StartOptions) -> Result<StartResult, Error> {
    let mut repo = LockedRepo::open(dir)?;
    let recovered = repo.take_recovered();
    let git = repo.git();
    refuse_old_git(git)?;
    let mut docs = read_docs(git)?;
    let status = clean_status(git)?;
    let head = status.head.commit().ok_or(UserError::NoCommit)?;
    let branches = git.runner_branches()?;
    let runs = runs_with_branches(&branches)?;
    let goal = match start::goal_file(&docs, options) {
        Err(StartError::RunComplete { goal }) => return Err(complete_run_error(git, &status.head, goal)?),
        goal => goal?,
    };
    let run = run_id(&goal, head, &runs)?;
    refuse_branches_below(&branches, &run)?;
    let old_tip = branches.into_iter().find(|branch| branch.name == run.branch()).map(|branch| branch.tip);
    if options.plan.is_some() || options.rewrite.is_some() {
        refuse_import(git, &run, &status, old_tip.is_some())?;
    }

    if old_tip.is_none() {
        propose_missing_config(git, &mut docs, options)?;
    }
    let user_commits = old_tip.as_ref().map_or(Ok(0), |tip| git.user_commits_since(&run, tip))?;
    let context = StartContext {
        git,
        status: &status,
        docs: &docs,
        run: &run,
        head,
        old_tip: old_tip.as_ref(),
        user_commits,
    };
    let mut composed = context.compose(&goal, options)?;
    context.add_surroundings(&mut composed)?;
    refuse_bad_tools(git, &composed)?;
    refuse_bad_checks(git, head, &composed)?;
    let new_tip = context.store_commit(&composed, options)?;
    context.publish(&new_tip)?;
    context.keep_files(&composed, &runs)?;
    ignore_local_files(git);
    let kind = match &old_tip {
        None => StartKind::New,
        Some(tip) if *tip == new_tip => StartKind::Resumed,
        Some(_) => StartKind::Updated,
    };
    let other_runs = runs.into_iter().filter(|other| *other != run).collect();
    let inputs = SessionInputs::of(git, &composed);
    let StartDocuments { goal_unwritten, protection, has_stale_root, imported, .. } = composed;
    Ok(StartResult {
        run,
        commit: new_tip,
        kind,
        goal_unwritten,
        other_runs,
        protection,
        has_stale_root,
        inputs,
        recovered,
        imported,
    })
}

/// The id in the goal, or a new one.
fn run_id(goal: &[u8], head: &CommitId, runs: &[RunId]) -> Result<RunId, Error> {
    let named = Goal::parse(goal).map_err(StartError::from)?.id().cloned();
    let run = named.or_else(|| identity::generate(head.as_str(), runs));
    run.ok_or(Error::Internal("no run id could be generated"))
}

/// Gives a new run its configuration, if the work tree has none: the one that the caller chose, that of the newest run, or a
/// detected one.
fn propose_missing_config(git: &Git, docs: &mut DocSet, options: &StartOptions) -> Result<(), Error> {
    if let Some(config) = &options.config {
        docs.insert(Doc::Config, config.clone().into_bytes());
    } else if let Entry::Vacant(missing) = docs.entry(Doc::Config) {
        let proposal = propose_in(git, &ConfigRequest::default())?;
        missing.insert(proposal.proposed.text.into_bytes());
    }
    Ok(())
}

/// Imports a plan into the current run's tree: a start whose only change is the new nodes.
pub fn import(dir: &Path, plan: PlanImport) -> Result<StartResult, Error> {
    start(dir, &StartOptions { plan: Some(plan), ..StartOptions::default() })
}

/// Replaces the current run's plan by an edited one: a start whose only change is the tree.
pub fn rewrite_plan(dir: &Path, rewrite: PlanRewrite) -> Result<StartResult, Error> {
    start(dir, &StartOptions { rewrite: Some(rewrite), ..StartOptions::default() })
}

/// The error of a start that gives a complete run another goal, with the branch that a new run can start from.
fn complete_run_error(git: &Git, head: &Head, goal: String) -> Result<Error, Error> {
    let run = head.branch().and_then(|branch| RunId::of_branch(branch.as_str()));
    let base = match (run, head.commit()) {
        (Some(run), Some(tip)) => Some(base_branch_of(git, &run, tip)?.unwrap_or("YOUR-BRANCH".to_owned())),
        _ => None,
    };
    Ok(UserError::RunComplete { goal, base }.into())
}

/// Refuses to import a plan into a run that is not checked out, or together with other changes of the user's: the commit
/// must contain the import alone.
fn refuse_import(git: &Git, run: &RunId, status: &RepoStatus, exists: bool) -> Result<(), Error> {
    let run = exists.then_some(run);
    let branch = status.head.branch().map(BranchName::as_str);
    let identity = IdentityInputs { branch, has_gitignore: true, state_id: run, goal_id: run };
    if let Some(error) = identity.errors().into_iter().next() {
        return Err(identity_error(git, error).into());
    }
    Ok(refuse_changed_documents(&status.inside)?)
}

/// Reports invalid tools.json files now, because they would stop the run at the first leaf that they concern.
fn refuse_bad_tools(git: &Git, composed: &StartDocuments) -> Result<(), Error> {
    let tree = composed.docs.get(&Doc::Tree).and_then(|bytes| Tree::decode(bytes).ok());
    let config = composed.docs.get(&Doc::Config).and_then(|bytes| Config::decode(bytes).ok());
    let faults = tools_faults(git, tree.as_ref(), config.as_ref())?;
    if faults.is_empty() { Ok(()) } else { Err(UserError::Tools { faults }.into()) }
}

/// Reports invalid checks now, because they would stop the run at the task that they belong to.
fn refuse_bad_checks(git: &Git, head: &CommitId, composed: &StartDocuments) -> Result<(), Error> {
    let tree = composed.docs.get(&Doc::Tree).and_then(|bytes| Tree::decode(bytes).ok());
    let config = composed.docs.get(&Doc::Config).and_then(|bytes| Config::decode(bytes).ok());
    let (Some(tree), Some(config)) = (tree, config) else { return Ok(()) };
    let protected = patterns_for_destinations(&composed.protection, &config.guard);
    let faults = check_faults(git, head, &tree, &protected)?;
    if faults.is_empty() { Ok(()) } else { Err(UserError::Checks { faults }.into()) }
}

pub(crate) fn refuse_old_git(git: &Git) -> Result<(), Error> {
    let (version, found) = git.version()?;
    if version < OLDEST {
        return Err(UserError::OldGit { found }.into());
    }
    Ok(())
}

/// The runs that have a branch here. Refuses a branch `runner`, beside which git cannot store `runner/<id>`.
pub(crate) fn runs_with_branches(branches: &[LocalBranch]) -> Result<Vec<RunId>, UserError> {
    if branches.iter().any(|branch| branch.name.as_str() == "runner") {
        return Err(UserError::BranchInTheWay {
            existing: "runner".to_owned(),
            wanted: "runner/<id>".to_owned(),
        });
    }
    Ok(branches.iter().filter_map(|branch| RunId::of_branch(branch.name.as_str())).collect())
}

/// Refuses a branch such as `runner/<id>/sub`, beside which git cannot store `runner/<id>`.
pub(crate) fn refuse_branches_below(branches: &[LocalBranch], run: &RunId) -> Result<(), UserError> {
    let wanted = run.branch().to_string();
    let below = format!("{wanted}/");
    match branches.iter().find(|branch| branch.name.as_str().starts_with(&below)) {
        Some(branch) => Err(UserError::BranchInTheWay { existing: branch.name.to_string(), wanted }),
        None => Ok(()),
    }
}

/// The repository's status, if a run can start from it.
pub(crate) fn clean_status(git: &Git) -> Result<RepoStatus, Error> {
    if let Some(operation) = git.operation() {
        return Err(UserError::Busy(operation).into());
    }
    let status = git.status()?;
    if status.head == Head::Unborn {
        return Err(UserError::NoCommit.into());
    }
    refuse_dirty(&status.outside)?;
    refuse_hidden(git)?;
    Ok(status)
}

/// Everything that a start reads, once.
struct StartContext<'a> {
    git: &'a Git,
    status: &'a RepoStatus,
    docs: &'a DocSet,
    run: &'a RunId,
    head: &'a CommitId,
    /// The tip of the run's branch, if it exists.
    old_tip: Option<&'a CommitId>,
    /// How many commits of the user's own follow the runner's last one.
    user_commits: u32,
}

impl StartContext<'_> {
    fn is_on_branch(&self) -> bool {
        self.status.head.branch() == Some(&self.run.branch())
    }

    fn compose(&self, goal: &[u8], options: &StartOptions) -> Result<StartDocuments, Error> {
        let head = docs_at_commit(self.git, self.head)?;
        let tip = match self.old_tip {
            Some(tip) if tip == self.head => Some(head.clone()),
            Some(tip) => Some(docs_at_commit(self.git, tip)?),
            None => None,
        };
        let last = self.last_runner_commit(tip.as_ref())?;
        let sources = DocumentSources {
            work: self.docs,
            head: &head,
            tip: tip.as_ref(),
            on_branch: self.is_on_branch(),
            last: last.as_ref(),
        };
        let files = CommitFiles::open(self.git, self.old_tip.unwrap_or(self.head))?;
        let composed = start::compose(self.run, goal, sources, &files, options)?;
        files.finish()?;
        Ok(composed)
    }

    /// What the runner's last commit has; none for a new run.
    fn last_runner_commit(&self, tip_docs: Option<&DocSet>) -> Result<Option<LastRunnerCommit>, Error> {
        let (Some(tip), Some(tip_docs)) = (self.old_tip, tip_docs) else { return Ok(None) };
        let commit = self.git.last_runner_commit(self.run, tip)?.unwrap_or_else(|| tip.clone());
        let docs = docs_at_commit(self.git, &commit)?;
        let state = tip_docs.get(&Doc::RunState).and_then(|bytes| RunState::decode(bytes).ok());
        let tree = docs.get(&Doc::Tree).and_then(|bytes| Tree::decode(bytes).ok());
        let is_approved = state.is_some_and(|state| state.plan_approval.is_some());
        let approved = match tree.filter(|_| is_approved) {
            Some(tree) => Some(ApprovedPlan {
                digest: plan_digest(&tree, &checks_at_commit(self.git, &commit)?),
                checks: if self.is_on_branch() {
                    checks_in_work_tree(self.git)?
                } else {
                    checks_at_commit(self.git, tip)?
                },
            }),
            None => None,
        };
        let goal = docs.get(&Doc::Goal).cloned().unwrap_or_default();
        Ok(Some(LastRunnerCommit { goal, user_commits: self.user_commits, approved }))
    }

    /// Adds what the run depends on outside of the repository: held-out checks, and the environment.
    fn add_surroundings(&self, composed: &mut StartDocuments) -> Result<(), Error> {
        let config = composed.docs.get(&Doc::Config).and_then(|bytes| Config::decode(bytes).ok());
        let Some(config) = config else { return Ok(()) };
        let heldout = match &config.checks.heldout {
            Some(name) => HeldoutFolder::open(self.git, name)?.tasks()?,
            None => Vec::new(),
        };
        let environment = environment(self.git, self.old_tip.unwrap_or(self.head), &config.guard)?;
        Ok(start::with_surroundings(composed, heldout, environment)?)
    }

    /// Asks for copies of the files that the configuration keeps, and removes those of runs that have no branch any more.
    fn keep_files(&self, composed: &StartDocuments, others: &[RunId]) -> Result<(), Error> {
        let config = composed.docs.get(&Doc::Config).and_then(|bytes| Config::decode(bytes).ok());
        let kept = KeptStore::of_run(self.git, self.run);
        if self.old_tip.is_none() {
            kept.forget()?;
        }
        kept.begin(self.git, &config.unwrap_or_default().guard.keep)?;
        for entry in lookup::entries(&self.git.paths().all_kept())? {
            let name = entry.file_name();
            if !others.iter().chain([self.run]).any(|run| name == run.as_str()) {
                atomic::remove_any(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Stores the commit that the run continues from. If nothing changed, that is the branch's tip.
    fn store_commit(&self, composed: &StartDocuments, options: &StartOptions) -> Result<CommitId, Error> {
        let parent = self.old_tip.unwrap_or(self.head);
        let index = self.git.paths().private_index("commit");
        self.git.read_into_index(&index, parent)?;
        let mut edits = self.other_files()?;
        edits.extend(store_docs(self.git, &composed.docs)?);
        self.git.edit_index(&index, &edits)?;
        let tree = self.git.write_tree(&index)?;
        if self.old_tip.is_some() && self.user_commits == 0 && self.git.tree_of(parent)? == tree {
            atomic::remove_file(&index)?;
            return Ok(parent.clone());
        }
        let tree = self.tree_without_checks(composed, &index, tree)?;
        let message = if self.old_tip.is_none() {
            let branch = options.base.as_ref().or(self.status.head.branch());
            let base = branch.filter(|branch| RunId::of_branch(branch.as_str()).is_none());
            start::first_message(self.run, base)
        } else {
            let added = composed.imported.as_ref().map(|imported| imported.added.len());
            let imported = options.plan.as_ref().map(PlanImport::format).zip(added);
            start::message(self.run, self.user_commits, imported)
        };
        let commit = self.git.store_commit(&tree, parent, &message)?;
        check_scope(self.git, parent, &commit)?;
        failpoint::reach("start.commit");
        Ok(commit)
    }

    /// The tree of a start that is committed: what checks depend on is found again from its files.
    fn tree_without_checks(
        &self,
        composed: &StartDocuments,
        index: &Path,
        tree: TreeId,
    ) -> Result<TreeId, Error> {
        let Some(state) = composed.docs.get(&Doc::RunState) else { return Ok(tree) };
        let docs = DocSet::from([(Doc::RunState, start::without_checks(state)?)]);
        self.git.edit_index(index, &store_docs(self.git, &docs)?)?;
        let tree = self.git.write_tree(index)?;
        atomic::remove_file(index)?;
        Ok(tree)
    }

    /// The user's changes in `.runner/` besides the documents: templates, node files, files of their own.
    fn other_files(&self) -> Result<Vec<IndexEntry>, Error> {
        let untracked = self.git.untracked_files(RUNNER_DIR, &RUNNER_LOCAL)?;
        let changed = self.status.inside.iter().filter(|path| !path.ends_with(b"/")).cloned();
        let mut paths: Vec<Vec<u8>> = untracked.into_iter().chain(changed).collect();
        paths.retain(|path| Doc::at(path).is_none());
        paths.sort();
        paths.dedup();
        let mut edits = Vec::new();
        for path in paths {
            let file = self.git.root().join(path_of(&path));
            let Some(bytes) = atomic::read(&file, USER_FILE_BYTES_MAX)? else {
                edits.push(IndexEntry::Remove(path));
                continue;
            };
            let object = self.git.store_blob(&bytes)?;
            edits.push(IndexEntry::Put(TreeEntry { mode: mode_of(&file), object, path }));
        }
        Ok(edits)
    }

    fn publish(&self, new_tip: &CommitId) -> Result<(), Error> {
        let branch = self.run.branch();
        let is_unchanged = self.is_on_branch() && self.old_tip == Some(new_tip);
        if is_unchanged && self.status.inside.is_empty() {
            return Ok(());
        }
        if !self.is_on_branch()
            && self.old_tip.is_some()
            && let Some(worktree) = self.git.worktree_holding(&branch)?
        {
            return Err(UserError::HeldElsewhere { branch: branch.to_string(), worktree }.into());
        }
        self.git.refuse_blocked_branch(&branch, self.old_tip, new_tip)?;
        let entry = PublishEntry {
            run: self.run.clone(),
            old_tip: self.old_tip.cloned(),
            new_tip: new_tip.clone(),
            from: self.head.clone(),
        };
        publish::publish_by_checkout(self.git, &entry)
    }
}

/// The limit for a file of the user's in `.runner/`.
const USER_FILE_BYTES_MAX: u64 = 64 << 20;

fn mode_of(path: &Path) -> EntryMode {
    use std::os::unix::fs::PermissionsExt;
    let metadata = fs::symlink_metadata(path);
    let is_executable = metadata.is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0);
    if is_executable { EntryMode::Executable } else { EntryMode::File }
}
