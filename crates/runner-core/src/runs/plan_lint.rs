//! What is wrong with a plan before a long run, as far as a program can tell without an agent.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::checks::coverage::{PointState, point_states};
use crate::config::Config;
use crate::model::checks::{Check, CheckEnd, CheckExit, CheckName, CheckRed, RedKind, RedRule, TaskChecks};
use crate::model::heldout::HeldoutTask;
use crate::model::id::NodeId;
use crate::model::run_state::RunState;
use crate::model::tree::{Node, Tree, path_text};
use crate::text::one_line;

/// A task with more acceptance criteria does not fit into one session.
pub const CRITERIA_MAX: usize = 12;

/// One problem of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanProblem {
    /// The path of the task.
    pub task: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckName>,
    pub kind: PlanProblemKind,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanProblemKind {
    /// A task without a criterion for when it is done.
    Empty,
    TooLarge,
    SharedDestination,
    /// A required check that succeeds before the work.
    Green,
    /// A check that could not start, timed out, ran no tests, or is not the same twice.
    Broken,
    /// A check that stubs satisfy.
    Stub,
}

impl PlanProblemKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLarge => "too_large",
            Self::SharedDestination => "shared_destination",
            Self::Green => "green",
            Self::Broken => "broken",
            Self::Stub => "stub",
        }
    }
}

/// A check of which it is not known whether stubs satisfy it: all that it names exists already, or it does not see the stubs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UntriedCheck {
    /// The path of the task.
    pub task: String,
    pub check: CheckName,
}

/// An acceptance criterion that no check decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProsePoint {
    pub task: String,
    /// The number of the criterion in its task, from 1.
    pub point: usize,
    pub text: String,
}

/// The open tasks of a plan with checks, with their paths: leaves, and parents whose checks run when all their parts passed.
pub fn checked_tasks<'t>(tree: &'t Tree, checks: &BTreeMap<NodeId, TaskChecks>) -> Vec<(String, &'t Node)> {
    let mut tasks = nodes(tree);
    tasks.retain(|(_, node)| !node.passes && checks.contains_key(&node.id));
    tasks
}

/// The open leaves of a plan with their paths, in the order of the work.
pub fn open_leaves(tree: &Tree) -> Vec<(String, &Node)> {
    let mut leaves = nodes(tree);
    leaves.retain(|(_, node)| node.is_leaf() && !node.passes);
    leaves
}

/// All tasks with their paths, in the order of the work.
fn nodes(tree: &Tree) -> Vec<(String, &Node)> {
    fn collect<'t>(node: &'t Node, tree: &Tree, found: &mut Vec<(String, &'t Node)>) {
        let path = tree.path_to(&node.id).unwrap_or_default();
        found.push((path_text(&path), node));
        node.children.iter().for_each(|child| collect(child, tree, found));
    }
    let mut found = Vec::new();
    collect(tree.root(), tree, &mut found);
    found
}

/// What the documents alone show.
pub fn static_problems(
    tree: &Tree,
    checks: &BTreeMap<NodeId, TaskChecks>,
    state: &RunState,
    config: &Config,
) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    let goal_bytes_max = usize::try_from(config.prompt_budget_bytes.as_u32() / 4).unwrap_or(usize::MAX);
    for (task, leaf) in open_leaves(tree) {
        let mut report =
            |kind, text: String| problems.push(PlanProblem { task: task.clone(), check: None, kind, text });
        let has_checks = checks.get(&leaf.id).is_some_and(|checks| !checks.checks.is_empty())
            || state.heldout_of(&leaf.id).is_some();
        if leaf.acceptance.is_empty() && !has_checks {
            report(PlanProblemKind::Empty, "has neither acceptance criteria nor checks".to_owned());
        }
        if leaf.acceptance.len() > CRITERIA_MAX {
            let count = leaf.acceptance.len();
            report(
                PlanProblemKind::TooLarge,
                format!("has {count} acceptance criteria (at most {CRITERIA_MAX}): split it"),
            );
        }
        if leaf.goal.len() > goal_bytes_max {
            let bytes = leaf.goal.len();
            let text = format!(
                "its goal has {bytes} bytes, a quarter of the prompt is {goal_bytes_max}: shorten or split it"
            );
            report(PlanProblemKind::TooLarge, text);
        }
    }
    problems.extend(shared_destinations(tree, checks));
    problems.extend(growth_problems(tree, config));
    problems
}

/// Open tasks that put a check file where another task has one.
fn shared_destinations(tree: &Tree, checks: &BTreeMap<NodeId, TaskChecks>) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    // The files of passed tasks are in the repository already.
    let mut tasks = nodes(tree);
    tasks.sort_by_key(|(_, node)| !node.passes);
    for (task, node) in tasks {
        for (path, _) in checks.get(&node.id).into_iter().flat_map(TaskChecks::files) {
            let path = path.as_str().to_owned();
            match owners.get(&path) {
                Some(other) if *other != task && !node.passes => problems.push(PlanProblem {
                    task: task.clone(),
                    check: None,
                    kind: PlanProblemKind::SharedDestination,
                    text: format!("puts a check file at `{path}`, where {other} has one"),
                }),
                Some(_) => {}
                None => drop(owners.insert(path, task.clone())),
            }
        }
    }
    problems
}

/// Sizes of the tree beyond the limits for agents.
fn growth_problems(tree: &Tree, config: &Config) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    let max = |limit: i64| usize::try_from(limit).unwrap_or(usize::MAX);
    let mut report = |task: String, text: String| {
        problems.push(PlanProblem { task, check: None, kind: PlanProblemKind::TooLarge, text });
    };
    let nodes = tree.node_count();
    let nodes_max = max(config.limits.max_nodes.get());
    if nodes > nodes_max {
        report(
            tree.root().id.to_string(),
            format!("the plan has {nodes} tasks, but `max_nodes` is {nodes_max}"),
        );
    }
    let children_max = max(config.limits.max_children.get());
    let depth_max = max(config.limits.max_depth.get());
    let mut open = vec![(tree.root(), tree.root().id.to_string(), 1)];
    while let Some((node, path, level)) = open.pop() {
        let count = node.children.len();
        if count > children_max {
            report(path.clone(), format!("has {count} subtasks, but `max_children` is {children_max}"));
        }
        if level > depth_max {
            report(path.clone(), format!("is on level {level}, but `max_depth` is {depth_max}"));
        }
        let children = node.children.iter().rev();
        open.extend(children.map(|child| (child, format!("{path}/{}", child.id), level + 1)));
    }
    problems
}

/// The required checks of a task that do not fail for a reason that counts.
pub fn red_problems(
    task: &str,
    checks: &TaskChecks,
    ends: &BTreeMap<CheckName, CheckEnd>,
) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    for check in checks.checks.iter().filter(|check| check.red == RedRule::Required) {
        let Some(end) = ends.get(&check.name) else { continue };
        let (kind, text) = match end.red {
            RedKind::Failed | RedKind::Absent => continue,
            RedKind::Green => (
                PlanProblemKind::Green,
                "succeeds before the work: make it test what is missing, or set red = \"any\"".to_owned(),
            ),
            RedKind::Broken => (PlanProblemKind::Broken, broken_text(check, end.exit)),
        };
        problems.push(PlanProblem { task: task.to_owned(), check: Some(check.name.clone()), kind, text });
    }
    problems
}

/// The required held-out checks of a task that do not fail for a reason that counts. What they printed is beside them.
pub fn heldout_problems(task: &str, heldout: &HeldoutTask) -> Vec<PlanProblem> {
    let unproven = heldout.unproven().into_iter();
    let problem = |red: CheckRed| {
        let (kind, text) = match red.red {
            RedKind::Green => (PlanProblemKind::Green, "is held out and succeeds before the work"),
            RedKind::Broken | RedKind::Failed | RedKind::Absent => {
                (PlanProblemKind::Broken, "is held out and could not run, or not twice the same: see its log")
            }
        };
        PlanProblem { task: task.to_owned(), check: Some(red.name), kind, text: text.to_owned() }
    };
    unproven.map(problem).collect()
}

/// The open tasks with held-out checks, with their paths.
pub fn heldout_tasks<'s>(tree: &Tree, state: &'s RunState) -> Vec<(String, &'s HeldoutTask)> {
    let open = nodes(tree).into_iter().filter(|(_, node)| !node.passes);
    open.filter_map(|(path, node)| Some((path, state.heldout_of(&node.id)?))).collect()
}

/// Why a run of a check counts as none.
fn broken_text(check: &Check, exit: CheckExit) -> String {
    match exit {
        CheckExit::TimedOut => {
            format!("did not end within {} seconds (timeout_secs)", check.timeout_secs.get())
        }
        CheckExit::NotStarted => "could not be started: is its program installed?".to_owned(),
        CheckExit::Signal(signal) => format!("was killed by signal {signal}"),
        CheckExit::NoTests => "ran no tests".to_owned(),
        CheckExit::Code(126) => "could not be executed (exit code 126): is its file executable?".to_owned(),
        CheckExit::Code(code) => {
            format!("ran no tests, or failed in another way when it ran again (exit code {code})")
        }
        CheckExit::TestsFailed => "failed in another way when it ran again".to_owned(),
        CheckExit::TestsMissing => "exited with code 0, but did not report all of its tests".to_owned(),
    }
}

/// The acceptance criteria of open leaves that no check decides.
pub fn prose_points(tree: &Tree, checks: &BTreeMap<NodeId, TaskChecks>, state: &RunState) -> Vec<ProsePoint> {
    let mut prose = Vec::new();
    for (task, leaf) in open_leaves(tree) {
        let states = point_states(leaf, checks.get(&leaf.id), state);
        let undecided = states.iter().zip(&leaf.acceptance).enumerate();
        for (index, (_, text)) in undecided.filter(|(_, (state, _))| **state == PointState::Prose) {
            prose.push(ProsePoint { task: task.clone(), point: index + 1, text: one_line(text) });
        }
    }
    prose
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::checks::RedFacts;
    use crate::model::digest::Sha256;
    use crate::model::tree::sample::{leaf, passed, tree};

    fn checks(toml: &str) -> TaskChecks {
        TaskChecks::read(toml.as_bytes(), |_| Some(Sha256::of(b""))).unwrap()
    }

    #[test]
    fn empty_large_and_conflicting_tasks_are_problems_and_passed_ones_are_not() {
        let id = |text: &str| NodeId::new(text).unwrap();
        let with = |name: &str, acceptance: usize| Node {
            acceptance: (0..acceptance).map(|point| point.to_string()).collect(),
            ..leaf(name)
        };
        let mut root = leaf("root");
        root.children = vec![with("a", 1), with("b", 0), with("c", 13), with("d", 1), passed("p")];
        for (order, child) in (1..).zip(&mut root.children) {
            child.order = order;
        }
        let toml = "[[check]]\nname = \"c\"\ncommand = [\"x\"]\nfiles = { \"t/x\" = \"x\" }\n";
        let of = BTreeMap::from([(id("a"), checks(toml)), (id("d"), checks(toml))]);
        let problems = static_problems(&tree(root.clone()), &of, &RunState::new(None), &Config::default());
        let found: Vec<(&str, PlanProblemKind)> =
            problems.iter().map(|problem| (problem.task.as_str(), problem.kind)).collect();
        assert_eq!(
            found,
            [
                ("root/b", PlanProblemKind::Empty),
                ("root/c", PlanProblemKind::TooLarge),
                ("root/d", PlanProblemKind::SharedDestination),
            ]
        );
        let prose = prose_points(&tree(root.clone()), &of, &RunState::new(None));
        assert_eq!(prose.len(), 13, "only `c` has criteria that no check decides");
        let heldout =
            |node| HeldoutTask::new(id(node), &checks("[[check]]\nname = \"h\"\ncommand = [\"x\"]\n"));
        let state =
            RunState { heldout: vec![heldout("b"), heldout("c"), heldout("p")], ..RunState::new(None) };
        let tree = tree(root);
        assert_eq!(prose_points(&tree, &of, &state), []);
        let problems = static_problems(&tree, &of, &state, &Config::default());
        assert!(problems.iter().all(|problem| problem.kind != PlanProblemKind::Empty), "{problems:?}");
        let tasks: Vec<String> = heldout_tasks(&tree, &state).into_iter().map(|(path, _)| path).collect();
        assert_eq!(tasks, ["root/b", "root/c"]);
    }

    #[test]
    fn only_required_checks_must_be_red() {
        let toml = "[[check]]\nname = \"a\"\ncommand = [\"x\"]\n[[check]]\nname = \"b\"\ncommand = [\"x\"]\nred = \"any\"\n";
        let task = checks(toml);
        let problems = |red, exit| {
            let names = ["a", "b"].map(|name| CheckName::new(name).unwrap());
            let end = CheckEnd { red, exit, facts: RedFacts::default() };
            red_problems("root", &task, &names.map(|name| (name, end.clone())).into())
        };
        let kinds =
            |red| problems(red, CheckExit::Code(1)).iter().map(|problem| problem.kind).collect::<Vec<_>>();
        assert_eq!(kinds(RedKind::Failed), []);
        assert_eq!(kinds(RedKind::Absent), []);
        assert_eq!(kinds(RedKind::Green), [PlanProblemKind::Green]);
        assert_eq!(kinds(RedKind::Broken), [PlanProblemKind::Broken]);
        for (exit, reason) in [
            (CheckExit::TimedOut, "did not end within 600 seconds"),
            (CheckExit::NotStarted, "could not be started"),
            (CheckExit::Signal(9), "killed by signal 9"),
            (CheckExit::NoTests, "ran no tests"),
            (CheckExit::Code(126), "could not be executed"),
            (CheckExit::Code(1), "when it ran again (exit code 1)"),
        ] {
            let text = problems(RedKind::Broken, exit)[0].text.clone();
            assert!(text.contains(reason), "{text}");
        }
    }

    #[test]
    fn parents_have_checks_too_and_a_passed_task_keeps_its_destination() {
        let id = |text: &str| NodeId::new(text).unwrap();
        let toml = "[[check]]\nname = \"c\"\ncommand = [\"x\"]\nfiles = { \"t/x\" = \"x\" }\n";
        let mut root = leaf("root");
        let mut inner = leaf("inner");
        inner.children = vec![leaf("a")];
        root.children = vec![inner, Node { order: 2, ..passed("p") }];
        let tree = tree(root);
        let of = BTreeMap::from([
            (id("p"), checks(toml)),
            (id("inner"), checks(toml)),
            (id("root"), checks(toml)),
        ]);
        let tasks: Vec<String> = checked_tasks(&tree, &of).into_iter().map(|(path, _)| path).collect();
        assert_eq!(tasks, ["root", "root/inner"]);
        let shared: Vec<String> =
            shared_destinations(&tree, &of).into_iter().map(|problem| problem.text).collect();
        assert_eq!(shared, ["puts a check file at `t/x`, where root/p has one"; 2]);
    }
}
