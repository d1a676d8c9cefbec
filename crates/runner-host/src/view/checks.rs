//! The checks of tasks, as people see them: read from the work tree, without a lock.

use std::collections::BTreeMap;

use runner_core::checks::coverage::{Coverage, coverage};
use runner_core::layout::{Doc, NODES_DIR, checks_path, node_folder};
use runner_core::model::checks::{
    Check, CheckFileName, CheckFilePath, ChecksFault, RedKind, RedRule, TaskChecks,
};
use runner_core::model::digest::Sha256;
use runner_core::model::heldout::HeldoutCheck;
use runner_core::model::id::NodeId;
use runner_core::model::object_id::CommitId;
use runner_core::model::run_state::RunState;
use runner_core::model::tree::{Node, Tree};
use runner_core::runs::start::{StartError, decode_run_state};

use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::fs::lookup;
use crate::git::Git;
use crate::iteration::laid_files::blocked_destinations;
use crate::iteration::step_inputs::checks_at;
use crate::repo::documents::read_doc;
use crate::repo::readonly_repo::ReadonlyRepo;
use crate::view::inspect::run_elsewhere;

/// The most bytes of a checks.toml, and of a check file.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The checks of every task that has valid ones.
pub(crate) fn task_checks(git: &Git, tree: &Tree) -> Result<BTreeMap<NodeId, TaskChecks>, Error> {
    let mut checks = BTreeMap::new();
    for node in nodes_with_checks(git, tree)? {
        if let Some(Ok(found)) = read_checks(git, &node)? {
            checks.insert(node, found);
        }
    }
    Ok(checks)
}

/// The valid checks in the work tree, whether their nodes are in the plan or not.
pub(crate) fn checks_in_work_tree(git: &Git) -> Result<BTreeMap<NodeId, TaskChecks>, Error> {
    let mut checks = BTreeMap::new();
    for node in node_folders(git)? {
        if let Some(Ok(found)) = read_checks(git, &node)? {
            checks.insert(node, found);
        }
    }
    Ok(checks)
}

/// The valid checks in a commit, whether their nodes are in its plan or not.
pub(crate) fn checks_at_commit(git: &Git, commit: &CommitId) -> Result<BTreeMap<NodeId, TaskChecks>, Error> {
    let mut files: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for entry in git.files_of(commit, &format!("{NODES_DIR}/"))? {
        if CheckFilePath::parse(&entry.path).is_some() {
            let bytes = git.blobs(&[&entry.object])?.into_iter().next().unwrap_or_default();
            files.insert(entry.path, bytes);
        }
    }
    let mut checks = BTreeMap::new();
    for (path, toml) in &files {
        let Some(file) = CheckFilePath::parse(path).filter(CheckFilePath::is_checks_toml) else { continue };
        let folder = node_folder(&file.node);
        let digest_of = |name: &CheckFileName| {
            files.get(format!("{folder}/{name}").as_bytes()).map(|bytes| Sha256::of(bytes))
        };
        if let Ok(found) = TaskChecks::read(toml, digest_of) {
            checks.insert(file.node, found);
        }
    }
    Ok(checks)
}

/// The faults of all checks of tasks. A destination must be free only where the checks are new: later, an agent may have created
/// a file there, which the frozen one replaces.
pub(crate) fn check_faults(
    git: &Git,
    head: &CommitId,
    tree: &Tree,
    protected: &[String],
) -> Result<Vec<String>, Error> {
    let mut faults = Vec::new();
    for node in nodes_with_checks(git, tree)? {
        let path = checks_path(&node);
        let leaf = tree.path_to(&node).unwrap_or_default();
        let acceptance = leaf.last().map_or(0, |node| node.acceptance.len());
        let passes = leaf.last().is_some_and(|node| node.passes);
        let checks = match read_checks(git, &node)? {
            Some(Ok(checks)) => checks,
            Some(Err(problems)) => {
                faults.extend(problems.iter().map(|problem| format!("`{path}`: {problem}")));
                continue;
            }
            None => continue,
        };
        let wrong = checks.point_faults(acceptance);
        faults.extend(wrong.iter().map(|fault| format!("`{path}`: {fault}")));
        let toml = atomic::read(&git.root().join(&path), FILE_BYTES_MAX)?;
        let is_new = Some(git.file_at(head, &path)?) != toml;
        if is_new && !passes {
            let paths: Vec<&str> = checks.files().map(|(path, _)| path.as_str()).collect();
            let blocked = blocked_destinations(git, protected, &paths)?;
            faults.extend(blocked.iter().map(|(to, why)| format!("`{path}`: `{to}` {}", why.why())));
        }
    }
    Ok(faults)
}

/// How much of the acceptance a commit proves; none if its documents cannot be decoded.
pub fn coverage_at(repo: &ReadonlyRepo, commit: &CommitId) -> Result<Option<Coverage>, Error> {
    let git = repo.git()?;
    let tree = Tree::decode(&git.file_at(commit, Doc::Tree.path())?);
    let state = RunState::decode(&git.file_at(commit, Doc::RunState.path())?);
    let (Ok(tree), Ok(state)) = (tree, state) else { return Ok(None) };
    let mut checks = BTreeMap::new();
    for entry in git.files_of(commit, &format!("{NODES_DIR}/"))? {
        let Some(file) = CheckFilePath::parse(&entry.path).filter(CheckFilePath::is_checks_toml) else {
            continue;
        };
        // Checks that cannot be decoded decide nothing.
        if let Ok(Some(found)) = checks_at(git, commit, &file.node) {
            checks.insert(file.node, found);
        }
    }
    Ok(Some(coverage(&tree, &checks, &state)))
}

/// The tasks of a tree with a checks.toml, sorted.
fn nodes_with_checks(git: &Git, tree: &Tree) -> Result<Vec<NodeId>, Error> {
    let mut nodes = node_folders(git)?;
    nodes.retain(|node| tree.path_to(node).is_some());
    Ok(nodes)
}

/// The nodes that have a checks.toml in the work tree, in the plan or not, sorted.
pub(crate) fn checked_nodes(git: &Git) -> Result<Vec<NodeId>, Error> {
    let mut nodes = node_folders(git)?;
    nodes.retain(|node| git.root().join(checks_path(node)).is_file());
    Ok(nodes)
}

/// The nodes that have a folder, sorted.
fn node_folders(git: &Git) -> Result<Vec<NodeId>, Error> {
    let entries = lookup::entries(&git.root().join(NODES_DIR))?.into_iter();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut nodes: Vec<NodeId> = names.filter_map(|name| NodeId::new(name.as_str()).ok()).collect();
    nodes.sort();
    Ok(nodes)
}

/// The checks of a task; none if it has no checks.toml.
fn read_checks(git: &Git, node: &NodeId) -> Result<Option<Result<TaskChecks, Vec<ChecksFault>>>, Error> {
    let Some(toml) = atomic::read(&git.root().join(checks_path(node)), FILE_BYTES_MAX)? else {
        return Ok(None);
    };
    let folder = git.root().join(node_folder(node));
    let digest_of = |file: &CheckFileName| {
        let bytes = atomic::read(&folder.join(file.as_str()), FILE_BYTES_MAX).ok().flatten()?;
        Some(Sha256::of(&bytes))
    };
    Ok(Some(TaskChecks::read(&toml, digest_of)))
}

/// One check of a task, with what is on record about it.
#[derive(Clone, Debug)]
pub struct CheckView {
    /// The path of its task: `root/api/login`.
    pub task: String,
    pub check: Check,
    pub digest: Sha256,
    /// How it ended before the work, if it ran.
    pub red: Option<RedKind>,
    pub state: CheckState,
}

/// What became of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckState {
    /// Its task has not been worked on: its files are not in the repository yet.
    HeldBack,
    /// It failed before the work, and its task is open.
    Red,
    /// It had to fail before the work and did not: its success proves nothing.
    Vacuous,
    Green,
}

impl CheckState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HeldBack => "held back",
            Self::Red => "red",
            Self::Vacuous => "vacuous",
            Self::Green => "green",
        }
    }

    /// The state of a check, from its task, the red that it needs, and the red that is on record.
    pub fn of(passes: bool, rule: RedRule, red: Option<RedKind>) -> Self {
        let is_vacuous = rule == RedRule::Required && red.is_some_and(|red| !red.is_proof());
        match (is_vacuous, passes, red) {
            (true, _, _) => Self::Vacuous,
            (false, true, _) => Self::Green,
            (false, false, Some(_)) => Self::Red,
            (false, false, None) => Self::HeldBack,
        }
    }
}

/// A held-out check, with what is public about it.
#[derive(Clone, Debug)]
pub struct HeldoutView {
    pub task: NodeId,
    pub check: HeldoutCheck,
    pub digest: Sha256,
    pub state: CheckState,
}

impl HeldoutView {
    /// The held-out checks of a run.
    pub fn all(tree: &Tree, state: &RunState) -> Vec<Self> {
        let mut views = Vec::new();
        for task in &state.heldout {
            let path = tree.path_to(&task.node).unwrap_or_default();
            let passes = path.last().is_some_and(|node| node.passes);
            views.extend(task.checks.iter().map(|check| Self {
                task: task.node.clone(),
                check: check.clone(),
                digest: task.digest,
                state: CheckState::of(passes, check.required, check.red),
            }));
        }
        views
    }
}

/// All checks of the run in a work tree, and how much of the acceptance they prove.
#[derive(Clone, Debug)]
pub struct ChecksView {
    /// In the order of the plan.
    pub checks: Vec<CheckView>,
    /// The held-out checks, sorted by task.
    pub heldout: Vec<HeldoutView>,
    pub coverage: Coverage,
}

/// Reads the checks of the run in a work tree, or of the newest run if its branch is not checked out. Takes no lock.
pub fn checks_view(repo: &ReadonlyRepo) -> Result<ChecksView, Error> {
    let git = repo.git()?;
    let commit = run_elsewhere(repo)?;
    let read = |doc: Doc| {
        let bytes = match &commit {
            Some(commit) => repo.doc(commit, doc)?,
            None => read_doc(git, doc)?,
        };
        bytes.ok_or_else(|| Error::from(UserError::MissingDoc(doc)))
    };
    let tree = Tree::decode(&read(Doc::Tree)?).map_err(StartError::Tree)?;
    let state = decode_run_state(&read(Doc::RunState)?)?;
    let all = match &commit {
        Some(commit) => repo.checks(commit, &tree)?,
        None => task_checks(git, &tree)?,
    };
    let mut checks = Vec::new();
    collect(tree.root(), "", &all, &state, &mut checks);
    let heldout = HeldoutView::all(&tree, &state);
    Ok(ChecksView { checks, heldout, coverage: coverage(&tree, &all, &state) })
}

fn collect(
    node: &Node,
    above: &str,
    all: &BTreeMap<NodeId, TaskChecks>,
    state: &RunState,
    checks: &mut Vec<CheckView>,
) {
    let task = if above.is_empty() { node.id.to_string() } else { format!("{above}/{}", node.id) };
    if let Some(task_checks) = all.get(&node.id) {
        let proof = state.proof_of(&node.id).filter(|proof| proof.digest == task_checks.digest);
        for check in &task_checks.checks {
            let red = proof.and_then(|proof| proof.red_of(&check.name));
            checks.push(CheckView {
                task: task.clone(),
                check: check.clone(),
                digest: task_checks.digest,
                red,
                state: CheckState::of(node.passes, check.red, red),
            });
        }
    }
    node.children.iter().for_each(|child| collect(child, &task, all, state, checks));
}
