//! Properties of judging, merging and settling, over generated trees and agents that may write anything.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use runner_core::config::Config;
use runner_core::model::id::{NodeId, RunId};
use runner_core::model::run_state::RunState;
use runner_core::model::tree::{AgentTree, Node, Tree};
use runner_core::step::{
    Attempt, AttemptCharge, ChangeScope, GuardExit, GuardRun, Job, LeftFile, Memory, NextStep, Outcome,
    SessionExit, Snapshot, Transition, Usage, interpret, merge, plan, settle,
};

use crate::fewer;

/// A tree as a list: each node hangs on an earlier one.
#[derive(Clone, Debug)]
struct Draft {
    parent: usize,
    order: i64,
    words: u8,
    passes: bool,
    attempts: u32,
    max_attempts: u32,
}

fn draft() -> impl Strategy<Value = Draft> {
    (any::<prop::sample::Index>(), -3..3_i64, 0..3_u8, any::<bool>(), 0..4_u32, 1..6_u32).prop_map(
        |(parent, order, words, passes, attempts, max_attempts)| Draft {
            parent: parent.index(64),
            order,
            words,
            passes,
            attempts,
            max_attempts,
        },
    )
}

/// Grows nodes from drafts; `first` numbers the ids of the nodes below the root.
fn grow(drafts: &[Draft]) -> Node {
    fn build(at: usize, drafts: &[Draft], parents: &[usize]) -> Node {
        let Draft { order, words, passes, attempts, max_attempts, .. } = drafts[at];
        let below = (at + 1..drafts.len()).filter(|child| parents[*child] == at);
        Node {
            id: NodeId::new(format!("n{at}")).unwrap(),
            order,
            title: "t".repeat(usize::from(words)),
            goal: "g".repeat(usize::from(words)),
            acceptance: vec![String::new(); usize::from(words)],
            passes,
            attempts,
            max_attempts,
            children: below.map(|child| build(child, drafts, parents)).collect(),
        }
    }
    let parents: Vec<usize> = drafts.iter().enumerate().map(|(at, draft)| draft.parent % at.max(1)).collect();
    build(0, drafts, &parents)
}

/// What the runner could have written: sorted, counted, derived.
fn lawful(mut node: Node) -> Node {
    node.children = node.children.into_iter().map(lawful).collect();
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

/// The runner's tree, and what an agent made of it: some nodes changed in any way, some new, some gone.
fn case() -> impl Strategy<Value = (Tree, Node)> {
    let drafts = prop::collection::vec(draft(), 1..24);
    let edits = prop::collection::vec((any::<prop::sample::Index>(), draft()), 0..5);
    let more = prop::collection::vec(draft(), 0..3);
    (drafts, edits, more, any::<bool>()).prop_map(|(drafts, edits, more, truncate)| {
        let before = Tree::new(lawful(grow(&drafts))).unwrap();
        let mut after = drafts.clone();
        // The same fields as the runner wrote, but for what the edits change.
        for (at, draft) in after.iter_mut().enumerate() {
            let node =
                before.path_to(&NodeId::new(format!("n{at}")).unwrap()).unwrap().pop().unwrap().clone();
            (draft.passes, draft.attempts) = (node.passes, node.attempts);
        }
        for (at, edit) in edits {
            let at = at.index(after.len());
            after[at] = edit;
        }
        if truncate && after.len() > 2 {
            after.pop();
        }
        after.extend(more);
        (before, grow(&after))
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
        memory: Memory::default(),
        node_contexts: BTreeMap::new(),
        tools: BTreeMap::new(),
        artifacts: BTreeMap::new(),
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
        protected: Vec::new(),
        usage: Usage::default(),
        processes_left: 0,
    }
}

/// One iteration, if there is a leaf to work on.
fn iterate(before: &Tree, status: &str, tree: Vec<u8>, green: bool) -> Option<(Job, Transition)> {
    let snapshot = snapshot(before.clone());
    let NextStep::Work(job) = plan(&snapshot).unwrap() else { return None };
    let claim = interpret(&snapshot, &job, attempt(status, tree));
    let exit = GuardExit::Code(i32::from(!green));
    let verdict = match claim.wants_guard(&job) {
        true => GuardRun::Ended { exit, output: Vec::new() },
        false => GuardRun::Skipped,
    };
    let transition = settle(&snapshot, &job, &claim, &verdict);
    Some((*job, transition))
}

fn nodes(root: &Node) -> Vec<&Node> {
    std::iter::once(root).chain(root.children.iter().flat_map(nodes)).collect()
}

fn status() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["done", "retry", "decomposed"])
}

/// Always the same cases, so that a test fails for everyone or for no one.
const SEED: RngSeed = RngSeed::Fixed(3);

fn cases() -> ProptestConfig {
    let cases = fewer("RUNNER_PROPERTY_CASES", 1000);
    ProptestConfig { cases, failure_persistence: None, rng_seed: SEED, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn whatever_an_agent_writes_the_runners_fields_are_the_runners(
        (before, agent) in case(), status in status(), green in any::<bool>()
    ) {
        let Some((job, transition)) = iterate(&before, status, bytes(&agent), green) else { return Ok(()) };
        prop_assert_eq!(&Tree::decode(transition.tree.bytes()).unwrap(), &transition.tree);
        let default = u32::try_from(Config::default().max_attempts_default.get()).unwrap();
        let mut changed = Vec::new();
        for node in nodes(transition.tree.root()) {
            match before.path_to(&node.id).and_then(|path| path.last().copied()) {
                Some(was) => {
                    prop_assert!((was.attempts..=was.max_attempts).contains(&node.attempts));
                    prop_assert_eq!(node.max_attempts, was.max_attempts);
                    let passed = node.is_leaf() && node.passes != was.passes;
                    if passed || node.attempts != was.attempts {
                        changed.push(node.id.clone());
                    }
                }
                None => prop_assert!(!node.passes && node.attempts == 0 && node.max_attempts <= default),
            }
        }
        let counts = transition.meta.charge == AttemptCharge::Charged || transition.outcome == Outcome::Passed;
        prop_assert_eq!(changed, counts.then(|| job.target.node().unwrap().clone()).into_iter().collect::<Vec<_>>());
        prop_assert!(transition.outcome != Outcome::Passed || green && status == "done");
    }

    #[test]
    fn what_passed_never_changes((before, agent) in case(), status in status()) {
        let Some((_, transition)) = iterate(&before, status, bytes(&agent), true) else { return Ok(()) };
        for node in nodes(before.root()).into_iter().filter(|node| node.passes) {
            let path = transition.tree.path_to(&node.id);
            prop_assert_eq!(path.as_ref().and_then(|path| path.last().copied()), Some(node));
            let parent = |path: Option<Vec<&Node>>| path.and_then(|path| path.iter().rev().nth(1).map(|n| n.id.clone()));
            prop_assert_eq!(parent(path), parent(before.path_to(&node.id)));
        }
    }

    #[test]
    fn merging_twice_is_merging_once((before, agent) in case()) {
        let config = Config::default();
        let agent = AgentTree::decode(&bytes(&agent)).unwrap();
        let once = merge(&before, &agent, &config).unwrap();
        let again = AgentTree::decode(once.bytes()).unwrap();
        prop_assert_eq!(merge(&before, &again, &config).unwrap(), once);
    }

    #[test]
    fn the_order_in_which_children_are_written_means_nothing((before, agent) in case(), status in status()) {
        fn reversed(mut node: Node) -> Node {
            node.children = node.children.into_iter().rev().map(reversed).collect();
            node
        }
        let one = iterate(&before, status, bytes(&agent), true).map(|(_, one)| (one.message, one.tree, one.state.node_history));
        let other = iterate(&before, status, bytes(&reversed(agent)), true);
        prop_assert_eq!(one, other.map(|(_, other)| (other.message, other.tree, other.state.node_history)));
    }

    #[test]
    fn a_hostile_tree_gives_the_tree_before_and_a_stable_list_of_errors(
        (before, agent) in case(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()
    ) {
        let mut hostile = bytes(&agent);
        let at = at.index(hostile.len());
        if cut { hostile.truncate(at) } else { hostile[at] = byte }
        let Some((job, transition)) = iterate(&before, "done", hostile.clone(), false) else { return Ok(()) };
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
        let again = iterate(&before, "done", hostile, false).unwrap().1;
        prop_assert_eq!(again, transition);
    }
}
