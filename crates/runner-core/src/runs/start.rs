//! The decisions of `runner start`: the documents of the run that starts or resumes.
//!
//! This module writes nothing. The host reads the work tree, HEAD and the run's branch into [`DocSet`]s, calls [`compose`], and
//! commits exactly its result.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::commit_message::{CommitKind, CommitMessage, Trailer};
use crate::config::Config;
use crate::guard_files::{self, RepoFiles};
use crate::layout::{Doc, DocOwner, complete_gitignore};
use crate::model::checks::TaskChecks;
use crate::model::digest::Sha256;
use crate::model::environment::Environment;
use crate::model::goal::{Goal, GoalError, GoalSummary};
use crate::model::heldout::{self, HeldoutTask};
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::instructions::PinnedInstructions;
use crate::model::object_id::BranchName;
use crate::model::protection::Protection;
use crate::model::run_state::{RunState, SEMANTICS};
use crate::model::tree::{Node, Tree, TreeProblem, UserEditError, user_edit_violations};
use crate::model::user_notes::UserNotes;
use crate::runs::import::{ImportedTree, InsertError, PlanFormat, PlanImport, insert_plan};
use crate::runs::plan_digest::plan_digest;
use crate::strict::DocumentProblem;

/// Documents by name; a missing one has no entry.
pub type DocSet = BTreeMap<Doc, Vec<u8>>;

/// The options of `runner start`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartOptions {
    /// A goal given on the command line.
    pub goal: Option<String>,
    /// Carry the open nodes of the old tree over into a new run.
    pub keep_plan: bool,
    /// A plan to import into the tree.
    pub plan: Option<PlanImport>,
    /// The tree that an edit of the whole plan results in.
    pub rewrite: Option<PlanRewrite>,
    /// The goal of a new run, which replaces the goal of the run before it.
    pub new_goal: Option<String>,
    /// The id of a new run.
    pub id: Option<RunId>,
    /// The text of config.toml for a new run.
    pub config: Option<String>,
    /// The branch that a run in a work tree of its own starts from.
    pub base: Option<BranchName>,
}

/// An edit of the whole plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRewrite {
    /// The tree that the user edited.
    pub before: Tree,
    pub after: Tree,
}

/// The versions of the documents to choose from.
#[derive(Clone, Copy, Debug)]
pub struct DocumentSources<'a> {
    /// In the work tree.
    pub work: &'a DocSet,
    pub head: &'a DocSet,
    /// At the tip of the run's branch, if the branch exists.
    pub tip: Option<&'a DocSet>,
    /// Whether HEAD is on the run's branch.
    pub on_branch: bool,
    /// The runner's last commit on the run's branch. Commits of the user's own may follow it.
    pub last: Option<&'a LastRunnerCommit>,
}

/// The plan in the runner's last commit of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRunnerCommit {
    /// GOAL.md.
    pub goal: Vec<u8>,
    /// How many commits of the user's own follow it.
    pub user_commits: u32,
    /// The approved plan, if the plan of the run's branch is approved.
    pub approved: Option<ApprovedPlan>,
}

/// What decides whether an approval outlives a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedPlan {
    /// The digest of the plan in the runner's last commit.
    pub digest: Sha256,
    /// The checks that the start leaves.
    pub checks: BTreeMap<NodeId, TaskChecks>,
}

/// Why a run cannot be started.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StartError {
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// A goal was given, but the file already has another one.
    #[error("GOAL.md already has a goal")]
    GoalTaken,
    /// A goal was given, but the run here is complete; it stays with its own goal.
    #[error("the run here is complete and keeps its goal")]
    RunComplete { goal: String },
    #[error("the goal is empty")]
    GoalEmpty,
    #[error("config.toml has {}", count(.0.len(), "error"))]
    Config(Vec<DocumentProblem>),
    #[error("tree.json has {}", count(.0.len(), "error"))]
    Tree(Vec<TreeProblem>),
    /// run_state.json on the run's branch is invalid.
    #[error("run_state.json has {}", count(.0.len(), "error"))]
    RunState(Vec<DocumentProblem>),
    /// Another version of the rules made the run.
    #[error("version {found} of the rules made this run, and this runner has version {SEMANTICS}")]
    Semantics { found: u32 },
    #[error("notes.json has {}", count(.0.len(), "error"))]
    Notes(Vec<DocumentProblem>),
    #[error("the edit of tree.json violates {}", count(.0.len(), "rule"))]
    TreeEdit(Vec<UserEditError>),
    #[error(transparent)]
    Plan(#[from] InsertError),
    /// The plan is not the one that the user edited.
    #[error("the plan changed while you edited it")]
    PlanMoved,
    /// Local changes that the switch to the run's branch would overwrite.
    #[error("local changes would be overwritten by the files of the run's branch")]
    WouldLose(Vec<Doc>),
}

/// The documents of a run that is about to start or resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartDocuments {
    pub docs: DocSet,
    /// Whether the goal is still empty or the template.
    pub goal_unwritten: bool,
    /// What the run protects from its agents.
    pub protection: Protection,
    /// Whether the goal changed, and the root of the plan still has the old one.
    pub has_stale_root: bool,
    /// The repository's own instructions for agents.
    pub instructions: Option<PinnedInstructions>,
    /// The result of a plan's import.
    pub imported: Option<ImportedTree>,
}

/// The tree that `runner init` writes, before there is a goal.
pub fn unseeded_tree() -> Tree {
    let goal = GoalSummary {
        title: "Goal".to_owned(),
        goal: "Reach the goal in .runner/GOAL.md.".to_owned(),
        acceptance: Vec::new(),
    };
    seeded_tree(NodeId::root(), goal, &Config::default(), Vec::new())
}

/// `1 error`, `2 errors`.
fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn seeded_tree(id: NodeId, goal: GoalSummary, config: &Config, children: Vec<Node>) -> Tree {
    let root = Node {
        id,
        order: 0,
        title: goal.title,
        goal: goal.goal,
        acceptance: goal.acceptance,
        passes: false,
        attempts: 0,
        max_attempts: config.max_attempts_default.as_u32(),
        children,
    };
    #[expect(clippy::expect_used, reason = "the children come from a valid tree, open and without attempts")]
    Tree::new(root).expect("a seeded tree is valid")
}

/// The goal file to start from: the user's, or the template with the goal from the command line.
pub fn goal_file(work: &DocSet, options: &StartOptions) -> Result<Vec<u8>, StartError> {
    if let (Some(goal), Some(id)) = (&options.new_goal, &options.id) {
        return Ok(format!("---\nid: {id}\n---\n\n{}\n", goal.trim_end()).into_bytes());
    }
    let existing = work.get(&Doc::Goal);
    let Some(text) = options.goal.as_deref() else {
        return Ok(existing.cloned().unwrap_or_else(|| Doc::Goal.scaffold()));
    };
    if text.trim().is_empty() {
        return Err(StartError::GoalEmpty);
    }
    let text = text.trim_end();
    let Some(existing) = existing else { return Ok(format!("{text}\n").into()) };
    let goal = Goal::parse(existing)?;
    if goal.is_written() && goal.body().trim() == text.trim() {
        return Ok(existing.clone());
    }
    if goal.is_written() {
        let tree = work.get(&Doc::Tree).and_then(|tree| Tree::decode(tree).ok());
        let root = tree.as_ref().map(Tree::root);
        if root.is_some_and(|root| root.passes) {
            return Err(StartError::RunComplete { goal: text.to_owned() });
        }
        // The root is still the whole plan, so it follows the goal.
        if !root.is_some_and(|root| root.is_leaf() && has_goal(root, &goal.summary())) {
            return Err(StartError::GoalTaken);
        }
    }
    let front = existing.len() - goal.body().len();
    let mut bytes = existing.get(..front).unwrap_or_default().to_vec();
    bytes.extend(format!("{text}\n").bytes());
    Ok(bytes)
}

/// The documents of run `id`, from the goal file and the existing documents. `repo` has the files of the commit that the run
/// starts from.
pub fn compose(
    id: &RunId,
    goal: &[u8],
    sources: DocumentSources<'_>,
    repo: &dyn RepoFiles,
    options: &StartOptions,
) -> Result<StartDocuments, StartError> {
    let goal_bytes = choose_goal(goal, sources)?;
    let goal = Goal::parse(&goal_bytes)?;
    let config_bytes = choose(Doc::Config, sources).unwrap_or_else(|| Doc::Config.scaffold());
    let config = Config::decode(&config_bytes).map_err(StartError::Config)?;
    refuse_loss(sources)?;
    let tree = choose_tree(&goal, &config, sources, options)?;
    let imported = match &options.plan {
        Some(plan) => Some(insert_plan(&tree, plan, config.max_attempts_default.as_u32())?),
        None => None,
    };
    let tree = match &options.rewrite {
        Some(rewrite) => rewritten(&tree, rewrite)?,
        None => imported.as_ref().map_or(&tree, |imported| &imported.tree),
    };
    let protection = guard_files::protection(&config.guard, repo);
    let instructions = PinnedInstructions::of(&config.executor.instructions, repo);

    let mut docs = DocSet::new();
    for doc in Doc::ALL {
        let bytes = match doc {
            Doc::Goal => goal.with_id(id).into_bytes(),
            Doc::Config => config_bytes.clone(),
            Doc::Gitignore => complete_gitignore(&choose(doc, sources).unwrap_or_default()),
            Doc::Tree => tree.bytes().to_vec(),
            Doc::RunState => {
                let state = choose_run_state(id, sources)?;
                let plan_approval = state.plan_approval.filter(|_| is_still_approved(tree, sources));
                let is_same_guard = state.has_guard_of(&protection);
                let baseline = state.baseline.clone().filter(|_| is_same_guard);
                let user_commits = sources.last.map_or(0, |last| last.user_commits);
                let final_check = state.final_check_after(user_commits).filter(|_| is_same_guard);
                // A start that changes nothing keeps what checks depend on; any other follows them again.
                let checks = state.protection.as_ref().map(|known| known.checks.clone()).unwrap_or_default();
                RunState {
                    protection: Some(Protection { checks, ..protection.clone() }),
                    baseline,
                    final_check,
                    plan_approval,
                    instructions: instructions.clone(),
                    ..state
                }
                .to_bytes()
            }
            Doc::Gitattributes | Doc::TreeSchema | Doc::OutputSchema | Doc::ToolsSchema => doc.scaffold(),
            Doc::Notes => choose_notes(sources)?.to_bytes(),
            Doc::Assumptions | Doc::Questions | Doc::Feedback | Doc::Improvements => {
                choose(doc, sources).unwrap_or_else(|| doc.scaffold())
            }
        };
        docs.insert(doc, bytes);
    }
    let has_stale_root = has_stale_root(&goal, tree, sources);
    let goal_unwritten = !goal.is_written();
    Ok(StartDocuments { docs, goal_unwritten, protection, has_stale_root, instructions, imported })
}

/// Adds what a start finds outside of the repository: held-out checks, and the environment.
pub fn with_surroundings(
    composed: &mut StartDocuments,
    heldout: Vec<HeldoutTask>,
    environment: Environment,
) -> Result<(), StartError> {
    if let Some(bytes) = composed.docs.get_mut(&Doc::RunState) {
        let state = decode_run_state(bytes)?;
        let heldout = heldout::frozen(&state.heldout, heldout);
        *bytes = RunState { heldout, environment, ..state }.to_bytes();
    }
    Ok(())
}

/// The state of a start that is committed: what checks depend on is found again, with the files of that commit.
pub fn without_checks(state: &[u8]) -> Result<Vec<u8>, StartError> {
    let state = decode_run_state(state)?;
    let protection = state.protection.map(|known| Protection { checks: Default::default(), ..known });
    Ok(RunState { protection, ..state }.to_bytes())
}

/// The tree of an edit, if the plan is still the one that the user edited.
fn rewritten<'r>(tree: &Tree, rewrite: &'r PlanRewrite) -> Result<&'r Tree, StartError> {
    if *tree != rewrite.before {
        return Err(StartError::PlanMoved);
    }
    let violations = user_edit_violations(tree, &rewrite.after);
    if violations.is_empty() { Ok(&rewrite.after) } else { Err(StartError::TreeEdit(violations)) }
}

/// How many attempts a new node has.
pub fn max_attempts(config: &Config) -> u32 {
    u32::try_from(config.max_attempts_default.get()).unwrap_or(1)
}

/// The message of a start's commit: how many of the user's own commits precede it, and the format and size of an imported
/// plan.
pub fn message(run: &RunId, user_commits: u32, imported: Option<(PlanFormat, usize)>) -> String {
    let message = CommitMessage::new(CommitKind::Start { run_id: run.clone() }).user_commits(user_commits);
    match imported {
        Some((format, nodes)) => message.trailer(Trailer::PlanImport, format!("{format} {nodes}")),
        None => message,
    }
    .to_string()
}

/// The message of a run's first commit, with the branch that it starts from.
pub fn first_message(run: &RunId, base: Option<&BranchName>) -> String {
    let message = CommitMessage::new(CommitKind::Start { run_id: run.clone() });
    match base {
        Some(base) => message.trailer(Trailer::Base, base),
        None => message,
    }
    .to_string()
}

/// The documents of the run's branch, if the start switches to it.
fn switch_target(sources: DocumentSources<'_>) -> Option<&DocSet> {
    sources.tip.filter(|_| !sources.on_branch)
}

/// Whether the user changed a document in the work tree: it is neither HEAD's version nor what `init` writes.
fn is_changed(doc: Doc, sources: DocumentSources<'_>) -> bool {
    let work = sources.work.get(&doc);
    work.is_some() && work != sources.head.get(&doc) && work != Some(&doc.scaffold())
}

/// The version of a document to continue with.
fn choose(doc: Doc, sources: DocumentSources<'_>) -> Option<Vec<u8>> {
    let Some(tip) = switch_target(sources) else { return sources.work.get(&doc).cloned() };
    let is_carried_over = doc.owner() == DocOwner::User && is_changed(doc, sources);
    if is_carried_over {
        sources.work.get(&doc).cloned()
    } else {
        tip.get(&doc).or(sources.work.get(&doc)).cloned()
    }
}

/// The goal to continue with. If only its id changed, the user wants to switch to that run, not to change its goal.
fn choose_goal(goal: &[u8], sources: DocumentSources<'_>) -> Result<Vec<u8>, StartError> {
    let Some(committed) = switch_target(sources).and_then(|tip| tip.get(&Doc::Goal)) else {
        return Ok(goal.to_vec());
    };
    let local = Goal::parse(goal)?;
    let body_at_head = sources.head.get(&Doc::Goal).and_then(|head| Goal::parse(head).ok().map(|g| g.body()));
    let is_changed = local.is_written() && body_at_head != Some(local.body());
    Ok(if is_changed { goal.to_vec() } else { committed.clone() })
}

/// Refuses a switch of branches that would lose the user's changes to files that are not carried over.
fn refuse_loss(sources: DocumentSources<'_>) -> Result<(), StartError> {
    let Some(tip) = switch_target(sources) else { return Ok(()) };
    let lost: Vec<Doc> = Doc::ALL
        .into_iter()
        .filter(|doc| doc.owner() != DocOwner::User && !doc.is_fixed() && is_changed(*doc, sources))
        .filter(|doc| sources.work.get(doc) != tip.get(doc))
        .collect();
    if lost.is_empty() { Ok(()) } else { Err(StartError::WouldLose(lost)) }
}

fn choose_tree(
    goal: &Goal<'_>,
    config: &Config,
    sources: DocumentSources<'_>,
    options: &StartOptions,
) -> Result<Tree, StartError> {
    let work = sources.work.get(&Doc::Tree);
    if let Some(committed) = sources.tip.and_then(|tip| tip.get(&Doc::Tree)) {
        let before = Tree::decode(committed).map_err(StartError::Tree)?;
        let Some(edited) = work.filter(|edited| sources.on_branch && *edited != committed) else {
            return Ok(if is_untouched_seed(&before, sources) {
                seed(goal, config)
            } else {
                reseeded(before, goal, sources)
            });
        };
        let after = Tree::decode_and_sort(edited).map_err(StartError::Tree)?;
        let violations = user_edit_violations(&before, &after);
        return if violations.is_empty() { Ok(after) } else { Err(StartError::TreeEdit(violations)) };
    }
    let state = sources.work.get(&Doc::RunState).and_then(|state| RunState::decode(state).ok());
    let is_of_old_run = state.is_some_and(|state| state.run_id.is_some());
    let plan = work.filter(|tree| **tree != Doc::Tree.scaffold() && (options.keep_plan || !is_of_old_run));
    let Some(plan) = plan else { return Ok(seed(goal, config)) };
    let plan = Tree::decode_and_sort(plan).map_err(StartError::Tree)?;
    if is_of_old_run {
        let id = plan.root().id.clone();
        return Ok(seeded_tree(id, goal.summary(), config, open_part(plan.root())));
    }
    let violations = user_edit_violations(&unseeded_tree(), &plan);
    if violations.is_empty() { Ok(plan) } else { Err(StartError::TreeEdit(violations)) }
}

fn seed(goal: &Goal<'_>, config: &Config) -> Tree {
    seeded_tree(NodeId::root(), goal.summary(), config, Vec::new())
}

/// The goal that the plan was made for. The user may have committed another one since.
fn committed_goal(sources: DocumentSources<'_>) -> Option<GoalSummary> {
    let at_tip = || sources.tip?.get(&Doc::Goal).map(Vec::as_slice);
    let bytes = sources.last.map(|last| last.goal.as_slice()).or_else(at_tip)?;
    Goal::parse(bytes).ok().map(|goal| goal.summary())
}

fn has_goal(root: &Node, goal: &GoalSummary) -> bool {
    root.title == goal.title && root.goal == goal.goal && root.acceptance == goal.acceptance
}

/// The tree with the new goal in its root, if the root is still an open leaf with the old one. Its attempts stay.
fn reseeded(before: Tree, goal: &Goal<'_>, sources: DocumentSources<'_>) -> Tree {
    let root = before.root();
    let is_seed = committed_goal(sources).is_some_and(|old| has_goal(root, &old));
    if !is_seed || !root.is_leaf() || root.passes {
        return before;
    }
    let GoalSummary { title, goal, acceptance } = goal.summary();
    Tree::new(Node { title, goal, acceptance, ..root.clone() }).unwrap_or(before)
}

fn has_stale_root(goal: &Goal<'_>, tree: &Tree, sources: DocumentSources<'_>) -> bool {
    let new = goal.summary();
    let is_changed = committed_goal(sources).is_some_and(|old| old != new);
    is_changed && !tree.root().passes && !has_goal(tree.root(), &new)
}

/// Whether a run has no iteration yet and its tree is still the one from its goal: then a new goal gives a new tree.
fn is_untouched_seed(tree: &Tree, sources: DocumentSources<'_>) -> bool {
    let committed = |doc| sources.tip.and_then(|tip| tip.get(&doc));
    let state = committed(Doc::RunState).and_then(|bytes| RunState::decode(bytes).ok());
    let goal = committed(Doc::Goal).and_then(|bytes| Goal::parse(bytes).ok());
    let config = committed(Doc::Config).and_then(|bytes| Config::decode(bytes).ok());
    match (state, goal, config) {
        (Some(state), Some(goal), Some(config)) => {
            state.next_iter == IterationNumber::FIRST && *tree == seed(&goal, &config)
        }
        _ => false,
    }
}

/// Whether the plan is still the one that the runner's last commit has.
fn is_still_approved(tree: &Tree, sources: DocumentSources<'_>) -> bool {
    let approved = sources.last.and_then(|last| last.approved.as_ref());
    approved.is_some_and(|approved| plan_digest(tree, &approved.checks) == approved.digest)
}

/// The open descendants of a node, with their attempts reset.
fn open_part(node: &Node) -> Vec<Node> {
    let open = node.children.iter().filter(|child| !child.passes);
    open.map(|child| Node { attempts: 0, children: open_part(child), ..child.clone() }).collect()
}

/// The user's notes: those of the run, with what the user changed by hand.
fn choose_notes(sources: DocumentSources<'_>) -> Result<UserNotes, StartError> {
    UserNotes::decode(&choose(Doc::Notes, sources).unwrap_or_default()).map_err(StartError::Notes)
}

/// Decodes run_state.json. A document of other rules has its own error, whatever else this version does not know in it.
pub fn decode_run_state(bytes: &[u8]) -> Result<RunState, StartError> {
    RunState::decode(bytes).map_err(|problems| match RunState::semantics_of(bytes) {
        Some(found) if found != SEMANTICS => StartError::Semantics { found },
        Some(_) | None => StartError::RunState(problems),
    })
}

fn choose_run_state(id: &RunId, sources: DocumentSources<'_>) -> Result<RunState, StartError> {
    let committed = sources.tip.and_then(|tip| tip.get(&Doc::RunState));
    let state = committed.map(|bytes| decode_run_state(bytes)).transpose()?;
    Ok(state
        .filter(|state| state.run_id.as_ref() == Some(id))
        .unwrap_or_else(|| RunState::new(Some(id.clone()))))
}
