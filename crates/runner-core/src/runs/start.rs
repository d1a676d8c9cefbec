//! What `runner start` decides: which run it is, and what the run's documents are.
//!
//! Nothing is written here. The host reads the work tree, HEAD and the run's branch into [`DocSet`]s, asks
//! [`compose`] what the documents should be, and commits exactly that.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::commit_message::{CommitKind, CommitMessage, Trailer};
use crate::config::Config;
use crate::layout::{Doc, DocOwner, complete_gitignore};
use crate::model::goal::{Goal, GoalError, GoalSummary};
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::run_state::RunState;
use crate::model::tree::{Node, Tree, TreeProblem, UserEditError, user_edit_faults};
use crate::runs::import::{ImportedTree, InsertError, PlanFormat, PlanImport, insert_plan};
use crate::strict::DocumentProblem;

/// Documents by name; one that is not there has no entry.
pub type DocSet = BTreeMap<Doc, Vec<u8>>;

/// What the user asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartOptions {
    /// A goal given on the command line.
    pub goal: Option<String>,
    /// Carry the open nodes of the old tree over into a new run.
    pub keep_plan: bool,
    /// A plan to take into the tree.
    pub plan: Option<PlanImport>,
}

/// Where the documents come from.
#[derive(Clone, Copy, Debug)]
pub struct DocumentSources<'a> {
    /// As they lie in the work tree.
    pub work: &'a DocSet,
    /// As HEAD has them.
    pub head: &'a DocSet,
    /// As the tip of the run's branch has them, where the branch exists.
    pub tip: Option<&'a DocSet>,
    /// Whether HEAD is on the run's branch.
    pub on_branch: bool,
}

/// Why a run cannot be started.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StartError {
    /// GOAL.md cannot be understood.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// A goal was given, but the file already holds another one.
    #[error("GOAL.md already holds a goal")]
    GoalTaken,
    /// A goal of nothing but white space.
    #[error("the goal is empty")]
    GoalEmpty,
    /// config.toml cannot be read.
    #[error("config.toml has {} fault{}", .0.len(), if .0.len() == 1 { "" } else { "s" })]
    Config(Vec<DocumentProblem>),
    /// tree.json cannot be read.
    #[error("tree.json has {} fault{}", .0.len(), if .0.len() == 1 { "" } else { "s" })]
    Tree(Vec<TreeProblem>),
    /// run_state.json of the run's branch cannot be read.
    #[error("run_state.json has {} fault{}", .0.len(), if .0.len() == 1 { "" } else { "s" })]
    RunState(Vec<DocumentProblem>),
    /// The user's edit of the tree breaks rules.
    #[error("the edit of tree.json breaks {} rule{}", .0.len(), if .0.len() == 1 { "" } else { "s" })]
    TreeEdit(Vec<UserEditError>),
    /// A plan cannot go into the tree.
    #[error(transparent)]
    Plan(#[from] InsertError),
    /// Changes that would be overwritten by the run's own files.
    #[error("files changed here would be overwritten by those of the run's branch")]
    WouldLose(Vec<Doc>),
}

/// The documents of a run that is about to start or resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartDocuments {
    /// Every document, whole.
    pub docs: DocSet,
    /// Whether the goal is still the template, or empty.
    pub goal_unwritten: bool,
    /// What became of a plan that was to be taken in.
    pub imported: Option<ImportedTree>,
}

/// The tree that `runner init` writes, before there is a goal to seed it from.
pub fn unseeded_tree() -> Tree {
    let goal = GoalSummary {
        title: "Goal".to_owned(),
        goal: "Reach the goal in .runner/GOAL.md.".to_owned(),
        acceptance: Vec::new(),
    };
    seeded_tree(NodeId::root(), goal, &Config::default(), Vec::new())
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
        max_attempts: max_attempts(config),
        children,
    };
    #[expect(clippy::expect_used, reason = "the children come from a valid tree, open and without attempts")]
    Tree::new(root).expect("a seeded tree is valid")
}

/// The goal file to start from: the user's, or the template with the goal from the command line.
pub fn goal_file(work: &DocSet, wish: &StartOptions) -> Result<Vec<u8>, StartError> {
    let existing = work.get(&Doc::Goal);
    let Some(text) = wish.goal.as_deref() else {
        return Ok(existing.cloned().unwrap_or_else(|| Doc::Goal.scaffold()));
    };
    if text.trim().is_empty() {
        return Err(StartError::GoalEmpty);
    }
    let text = text.trim_end();
    let Some(existing) = existing else { return Ok(format!("{text}\n").into()) };
    let goal = Goal::parse(existing)?;
    if goal.is_written() && goal.body().trim() != text.trim() {
        return Err(StartError::GoalTaken);
    }
    if goal.is_written() {
        return Ok(existing.clone());
    }
    let front = existing.len() - goal.body().len();
    let mut bytes = existing.get(..front).unwrap_or_default().to_vec();
    bytes.extend(format!("{text}\n").bytes());
    Ok(bytes)
}

/// What the documents of run `id` are, given the goal file and everything that lies about.
pub fn compose(
    id: &RunId,
    goal: &[u8],
    sources: DocumentSources<'_>,
    wish: &StartOptions,
) -> Result<StartDocuments, StartError> {
    let goal_bytes = choose_goal(goal, sources)?;
    let goal = Goal::parse(&goal_bytes)?;
    let config_bytes = choose(Doc::Config, sources).unwrap_or_else(|| Doc::Config.scaffold());
    let config = Config::decode(&config_bytes).map_err(StartError::Config)?;
    refuse_loss(sources)?;
    let tree = choose_tree(&goal, &config, sources, wish)?;
    let grafted =
        wish.plan.as_ref().map(|plan| insert_plan(&tree, plan, max_attempts(&config))).transpose()?;
    let tree = grafted.as_ref().map_or(&tree, |grafted| &grafted.tree);

    let mut docs = DocSet::new();
    for doc in Doc::ALL {
        let bytes = match doc {
            Doc::Goal => goal.with_id(id).into_bytes(),
            Doc::Config => config_bytes.clone(),
            Doc::Gitignore => complete_gitignore(&choose(doc, sources).unwrap_or_default()),
            Doc::Tree => tree.bytes().to_vec(),
            Doc::RunState => choose_run_state(id, sources)?.to_bytes(),
            Doc::TreeSchema | Doc::OutputSchema | Doc::ToolsSchema => doc.scaffold(),
            Doc::Assumptions | Doc::Questions | Doc::Feedback | Doc::Improvements => {
                choose(doc, sources).unwrap_or_else(|| doc.scaffold())
            }
        };
        docs.insert(doc, bytes);
    }
    Ok(StartDocuments { docs, goal_unwritten: !goal.is_written(), imported: grafted })
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

/// Whether HEAD is elsewhere and the run's own files are about to be brought in.
fn is_switch(sources: DocumentSources<'_>) -> Option<&DocSet> {
    sources.tip.filter(|_| !sources.on_branch)
}

/// Whether the work tree's version is the user's doing: neither what HEAD has nor what `init` writes.
fn is_changed(doc: Doc, sources: DocumentSources<'_>) -> bool {
    let work = sources.work.get(&doc);
    work.is_some() && work != sources.head.get(&doc) && work != Some(&doc.scaffold())
}

/// The version of a document to go on with.
fn choose(doc: Doc, sources: DocumentSources<'_>) -> Option<Vec<u8>> {
    let Some(tip) = is_switch(sources) else { return sources.work.get(&doc).cloned() };
    let carried = doc.owner() == DocOwner::User && is_changed(doc, sources);
    if carried { sources.work.get(&doc).cloned() } else { tip.get(&doc).or(sources.work.get(&doc)).cloned() }
}

/// The goal to go on with. A change of nothing but the id means "go to that run", not "change its goal".
fn choose_goal(goal: &[u8], sources: DocumentSources<'_>) -> Result<Vec<u8>, StartError> {
    let Some(there) = is_switch(sources).and_then(|tip| tip.get(&Doc::Goal)) else {
        return Ok(goal.to_vec());
    };
    let here = Goal::parse(goal)?;
    let body_at_head = sources.head.get(&Doc::Goal).and_then(|head| Goal::parse(head).ok().map(|g| g.body()));
    let carried = here.is_written() && body_at_head != Some(here.body());
    Ok(if carried { goal.to_vec() } else { there.clone() })
}

/// Refuses a switch of branches that would throw away what the user changed in files that are not carried over.
fn refuse_loss(sources: DocumentSources<'_>) -> Result<(), StartError> {
    let Some(tip) = is_switch(sources) else { return Ok(()) };
    let schemas = [Doc::TreeSchema, Doc::OutputSchema, Doc::ToolsSchema];
    let lost: Vec<Doc> = Doc::ALL
        .into_iter()
        .filter(|doc| doc.owner() != DocOwner::User && !schemas.contains(doc) && is_changed(*doc, sources))
        .filter(|doc| sources.work.get(doc) != tip.get(doc))
        .collect();
    if lost.is_empty() { Ok(()) } else { Err(StartError::WouldLose(lost)) }
}

fn choose_tree(
    goal: &Goal<'_>,
    config: &Config,
    sources: DocumentSources<'_>,
    wish: &StartOptions,
) -> Result<Tree, StartError> {
    let work = sources.work.get(&Doc::Tree);
    if let Some(committed) = sources.tip.and_then(|tip| tip.get(&Doc::Tree)) {
        let before = Tree::decode(committed).map_err(StartError::Tree)?;
        let Some(edited) = work.filter(|edited| sources.on_branch && *edited != committed) else {
            return Ok(if is_untouched_seed(&before, sources) { seed(goal, config) } else { before });
        };
        let after = Tree::decode(edited).map_err(StartError::Tree)?;
        let faults = user_edit_faults(&before, &after);
        return if faults.is_empty() { Ok(after) } else { Err(StartError::TreeEdit(faults)) };
    }
    let of_old_run = sources.work.get(&Doc::RunState).and_then(|state| RunState::decode(state).ok());
    let of_old_run = of_old_run.is_some_and(|state| state.run_id.is_some());
    let plan = work.filter(|tree| **tree != Doc::Tree.scaffold() && (wish.keep_plan || !of_old_run));
    let Some(plan) = plan else { return Ok(seed(goal, config)) };
    let plan = Tree::decode(plan).map_err(StartError::Tree)?;
    if of_old_run {
        let id = plan.root().id.clone();
        return Ok(seeded_tree(id, goal.summary(), config, open_part(plan.root())));
    }
    let faults = user_edit_faults(&unseeded_tree(), &plan);
    if faults.is_empty() { Ok(plan) } else { Err(StartError::TreeEdit(faults)) }
}

fn seed(goal: &Goal<'_>, config: &Config) -> Tree {
    seeded_tree(NodeId::root(), goal.summary(), config, Vec::new())
}

/// Whether a run has done nothing yet and its tree is still what its goal gave: then a new goal gives a new tree.
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

/// The open nodes below a node, as new work.
fn open_part(node: &Node) -> Vec<Node> {
    let open = node.children.iter().filter(|child| !child.passes);
    open.map(|child| Node { attempts: 0, children: open_part(child), ..child.clone() }).collect()
}

fn choose_run_state(id: &RunId, sources: DocumentSources<'_>) -> Result<RunState, StartError> {
    let committed = sources.tip.and_then(|tip| tip.get(&Doc::RunState));
    let state = committed.map(|bytes| RunState::decode(bytes)).transpose().map_err(StartError::RunState)?;
    Ok(state
        .filter(|state| state.run_id.as_ref() == Some(id))
        .unwrap_or_else(|| RunState::new(Some(id.clone()))))
}
