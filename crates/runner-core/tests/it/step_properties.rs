//! Properties of `interpret`, `merge` and `settle` over generated trees and agents that may write anything.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use runner_core::config::Config;
use runner_core::model::id::{NodeId, RunId};
use runner_core::model::object_id::TreeId;
use runner_core::model::run_state::RunState;
use runner_core::model::tree::{AgentTree, Node, Tree};
use runner_core::model::user_notes::UserNotes;
use runner_core::step::{
    Attempt, AttemptCharge, ChangeScope, Evidence, FileChanges, GuardExit, GuardRun, Job, LeftFile, Memory,
    NextStep, NodeFiles, Outcome, SessionExit, Snapshot, Transition, Usage, interpret, merge, plan, settle,
};
use runner_core::step::{GuardPlace, PlanningChanges, SessionRequest};

use crate::count_from_env;

/// One node of a tree in list form: its parent is an earlier node.
#[derive(Clone, Debug)]
struct NodeDraft {
    parent: usize,
    order: i64,
    words: u8,
    passes: bool,
    attempts: u32,
    max_attempts: u32,
}

fn draft() -> impl Strategy<Value = NodeDraft> {
    (any::<prop::sample::Index>(), -3..3_i64, 0..3_u8, any::<bool>(), 0..4_u32, 1..6_u32).prop_map(
        |(parent, order, words, passes, attempts, max_attempts)| NodeDraft {
            parent: parent.index(64),
            order,
            words,
            passes,
            attempts,
            max_attempts,
        },
    )
}

/// Builds a tree from drafts; a node's id is its index.
fn tree_from(drafts: &[NodeDraft]) -> Node {
    fn build(index: usize, drafts: &[NodeDraft], parents: &[usize]) -> Node {
        let NodeDraft { order, words, passes, attempts, max_attempts, .. } = drafts[index];
        let children = (index + 1..drafts.len()).filter(|child| parents[*child] == index);
        Node {
            id: NodeId::new(format!("n{index}")).unwrap(),
            order,
            title: "t".repeat(usize::from(words)),
            goal: "g".repeat(usize::from(words)),
            acceptance: vec![String::new(); usize::from(words)],
            passes,
            attempts,
            max_attempts,
            children: children.map(|child| build(child, drafts, parents)).collect(),
        }
    }
    let parents: Vec<usize> = drafts.iter().enumerate().map(|(at, draft)| draft.parent % at.max(1)).collect();
    build(0, drafts, &parents)
}

/// Makes a tree valid: sorts siblings, limits attempts, derives the parents' `passes`.
fn make_valid(mut node: Node) -> Node {
    node.children = node.children.into_iter().map(make_valid).collect();
    node.children.sort_by(|one, other| (one.order, &one.id).cmp(&(other.order, &other.id)));
    node.attempts = node.attempts.min(node.max_attempts);
    if !node.children.is_empty() {
        node.passes = node.children.iter().all(|child| child.passes);
    }
    node
}

fn bytes(root: &Node) -> Vec<u8> {
    serde_json::json!({ "version": 1, "root": root }).to_string().into_bytes()
}

/// The runner's tree and an agent's version of it, with nodes changed in any way, added and removed.
fn case() -> impl Strategy<Value = (Tree, Node)> {
    let drafts = prop::collection::vec(draft(), 1..24);
    let edits = prop::collection::vec((any::<prop::sample::Index>(), draft()), 0..5);
    let more = prop::collection::vec(draft(), 0..3);
    (drafts, edits, more, any::<bool>()).prop_map(|(drafts, edits, more, truncate)| {
        let before = Tree::new(make_valid(tree_from(&drafts))).unwrap();
        let mut after = drafts.clone();
        // The runner's fields, except for what the edits change.
        for (at, draft) in after.iter_mut().enumerate() {
            let node =
                before.path_to(&NodeId::new(format!("n{at}")).unwrap()).unwrap().pop().unwrap().clone();
            draft.passes = node.passes;
            draft.attempts = node.attempts;
        }
        for (at, edit) in edits {
            let at = at.index(after.len());
            after[at] = edit;
        }
        if truncate && after.len() > 2 {
            after.pop();
        }
        after.extend(more);
        (before, tree_from(&after))
    })
}

fn snapshot(tree: Tree) -> Snapshot {
    let run_id = RunId::new("p").unwrap();
    Snapshot {
        run_id: run_id.clone(),
        goal: "goal".to_owned(),
        config: Config::default(),
        tree,
        state: RunState::new(Some(run_id)),
        notes: UserNotes::default(),
        memory: Memory::default(),
        node_files: NodeFiles::default(),
        templates: BTreeMap::new(),
        user_commits: 0,
    }
}

fn attempt(status: &str, tree: Vec<u8>) -> Attempt {
    Attempt {
        exit: SessionExit::Finished { code: 0 },
        answer: LeftFile::Bytes(format!(r#"{{"status": "{status}", "summary": "s"}}"#).into_bytes()),
        tree: LeftFile::Bytes(tree),
        work: ChangeScope::Execute,
        changes: FileChanges { work_files: 1, runner_files: 0 },
        protected: Vec::new(),
        memory: Vec::new(),
        planning: PlanningChanges::default(),
        keys: Default::default(),
        usage: Usage::default(),
        new_checks: BTreeMap::new(),
        processes_left: 0,
    }
}

/// One iteration, or none if no leaf is open.
fn iterate(before: &Tree, status: &str, tree: Vec<u8>, guard_succeeds: bool) -> Option<(Job, Transition)> {
    let snapshot = snapshot(before.clone());
    let NextStep::Work(job) = plan(&snapshot, SessionRequest::Next).unwrap() else { return None };
    let claim = interpret(&snapshot, &job, attempt(status, tree));
    let exit = GuardExit::Code(i32::from(!guard_succeeds));
    let verdict = match claim.wants_guard(&job) {
        true => GuardRun::Ended { exit, output: Vec::new(), place: GuardPlace::in_place(TreeId::none()) },
        false => GuardRun::Skipped,
    };
    let transition = settle(&snapshot, &job, &claim, &Evidence::of_guard(verdict.clone()));
    Some((*job, transition))
}

fn nodes(root: &Node) -> Vec<&Node> {
    std::iter::once(root).chain(root.children.iter().flat_map(nodes)).collect()
}

fn status() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["done", "retry", "decomposed"])
}

/// Always the same cases, so that a test fails everywhere or nowhere.
const SEED: RngSeed = RngSeed::Fixed(3);

fn cases() -> ProptestConfig {
    let cases = count_from_env("RUNNER_PROPERTY_CASES", 1000);
    ProptestConfig { cases, failure_persistence: None, rng_seed: SEED, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn agents_cannot_change_the_runners_fields(
        (before, agent) in case(), status in status(), guard_succeeds in any::<bool>()
    ) {
        let Some((job, transition)) = iterate(&before, status, bytes(&agent), guard_succeeds) else { return Ok(()) };
        prop_assert_eq!(&Tree::decode(transition.tree.bytes()).unwrap(), &transition.tree);
        let default = u32::try_from(Config::default().max_attempts_default.get()).unwrap();
        let mut changed = Vec::new();
        for node in nodes(transition.tree.root()) {
            match before.path_to(&node.id).and_then(|path| path.last().copied()) {
                Some(old) => {
                    prop_assert!((old.attempts..=old.max_attempts).contains(&node.attempts));
                    prop_assert_eq!(node.max_attempts, old.max_attempts);
                    let passed = node.is_leaf() && node.passes != old.passes;
                    if passed || node.attempts != old.attempts {
                        changed.push(node.id.clone());
                    }
                }
                None => prop_assert!(!node.passes && node.attempts == 0 && node.max_attempts <= default),
            }
        }
        let counts = transition.meta.charge == AttemptCharge::Charged || transition.outcome == Outcome::Passed;
        prop_assert_eq!(changed, counts.then(|| job.target.node().unwrap().clone()).into_iter().collect::<Vec<_>>());
        prop_assert!(transition.outcome != Outcome::Passed || guard_succeeds && status == "done");
    }

    #[test]
    fn passed_nodes_never_change((before, agent) in case(), status in status()) {
        let Some((_, transition)) = iterate(&before, status, bytes(&agent), true) else { return Ok(()) };
        for node in nodes(before.root()).into_iter().filter(|node| node.passes) {
            let path = transition.tree.path_to(&node.id);
            prop_assert_eq!(path.as_ref().and_then(|path| path.last().copied()), Some(node));
            let parent = |path: Option<Vec<&Node>>| path.and_then(|path| path.iter().rev().nth(1).map(|n| n.id.clone()));
            prop_assert_eq!(parent(path), parent(before.path_to(&node.id)));
        }
    }

    #[test]
    fn merge_is_idempotent((before, agent) in case()) {
        let config = Config::default();
        let agent = AgentTree::decode(&bytes(&agent)).unwrap();
        let once = merge(&before, &agent, &config, None).unwrap();
        let again = AgentTree::decode(once.bytes()).unwrap();
        prop_assert_eq!(merge(&before, &again, &config, None).unwrap(), once);
    }

    #[test]
    fn order_of_children_in_the_file_makes_no_difference((before, agent) in case(), status in status()) {
        fn reversed(mut node: Node) -> Node {
            node.children = node.children.into_iter().rev().map(reversed).collect();
            node
        }
        let one = iterate(&before, status, bytes(&agent), true).map(|(_, one)| (one.message, one.tree, one.state.node_history));
        let other = iterate(&before, status, bytes(&reversed(agent)), true);
        prop_assert_eq!(one, other.map(|(_, other)| (other.message, other.tree, other.state.node_history)));
    }

    #[test]
    fn corrupt_tree_keeps_the_old_tree_and_gives_stable_errors(
        (before, agent) in case(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()
    ) {
        let mut corrupt = bytes(&agent);
        let at = at.index(corrupt.len());
        if cut { corrupt.truncate(at) } else { corrupt[at] = byte }
        let Some((job, transition)) = iterate(&before, "done", corrupt.clone(), false) else { return Ok(()) };
        if transition.outcome == Outcome::InvalidTree {
            let repair = transition.state.repair.as_ref().unwrap();
            prop_assert!(!repair.errors.is_empty());
            let mut restored = transition.tree.root().clone();
            let node = job.target.node().unwrap();
            fn uncharge(node: &mut Node, id: &NodeId) {
                if node.id == *id { node.attempts -= 1 }
                node.children.iter_mut().for_each(|child| uncharge(child, id));
            }
            uncharge(&mut restored, node);
            prop_assert_eq!(&restored, before.root());
        }
        let again = iterate(&before, "done", corrupt, false).unwrap().1;
        prop_assert_eq!(again, transition);
    }
}
