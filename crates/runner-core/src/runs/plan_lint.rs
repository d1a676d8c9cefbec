//! What is wrong with a plan before the night, as far as a program can tell without an agent.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::checks::coverage::{PointState, point_states};
use crate::config::Config;
use crate::model::checks::{CheckName, RedKind, RedRule, TaskChecks, TaskProof};
use crate::model::id::NodeId;
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
    /// A task that says nothing about when it is done.
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

/// An acceptance criterion that no check decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProsePoint {
    pub task: String,
    /// From 1.
    pub point: usize,
    pub text: String,
}

/// The open leaves of a plan with their paths, in the order of the work.
pub fn open_leaves(tree: &Tree) -> Vec<(String, &Node)> {
    let mut leaves = Vec::new();
    collect(tree.root(), tree, &mut leaves);
    leaves
}

fn collect<'t>(node: &'t Node, tree: &Tree, leaves: &mut Vec<(String, &'t Node)>) {
    if node.is_leaf() && !node.passes {
        let path = tree.path_to(&node.id).unwrap_or_default();
        leaves.push((path_text(&path), node));
    }
    node.children.iter().for_each(|child| collect(child, tree, leaves));
}

/// What the documents alone show.
pub fn static_problems(
    tree: &Tree,
    checks: &BTreeMap<NodeId, TaskChecks>,
    config: &Config,
) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    let goal_bytes_max = usize::try_from(config.prompt_budget_bytes.as_u32() / 4).unwrap_or(usize::MAX);
    for (task, leaf) in open_leaves(tree) {
        let mut report =
            |kind, text: String| problems.push(PlanProblem { task: task.clone(), check: None, kind, text });
        let has_checks = checks.get(&leaf.id).is_some_and(|checks| !checks.checks.is_empty());
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
        let destinations = checks.get(&leaf.id).into_iter().flat_map(TaskChecks::files);
        for (path, _) in destinations {
            let path = path.as_str().to_owned();
            match owners.get(&path) {
                Some(other) if *other != task => report(
                    PlanProblemKind::SharedDestination,
                    format!("its check file goes to `{path}`, like one of {other}"),
                ),
                Some(_) => {}
                None => drop(owners.insert(path, task.clone())),
            }
        }
    }
    problems.extend(growth_problems(tree, config));
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
pub fn red_problems(task: &str, checks: &TaskChecks, proof: &TaskProof) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    for check in checks.checks.iter().filter(|check| check.red == RedRule::Required) {
        let (kind, text) = match proof.red_of(&check.name).unwrap_or(RedKind::Broken) {
            RedKind::Failed | RedKind::Absent => continue,
            RedKind::Green => (
                PlanProblemKind::Green,
                "succeeds before the work: it proves nothing; make it test what is missing, or set red = \"any\"",
            ),
            RedKind::Broken => (
                PlanProblemKind::Broken,
                "is broken: it could not start, timed out, ran no tests, or is not the same twice",
            ),
        };
        problems.push(PlanProblem {
            task: task.to_owned(),
            check: Some(check.name.clone()),
            kind,
            text: text.to_owned(),
        });
    }
    problems
}

/// The acceptance criteria of open leaves that no check decides.
pub fn prose_points(tree: &Tree, checks: &BTreeMap<NodeId, TaskChecks>) -> Vec<ProsePoint> {
    let mut prose = Vec::new();
    for (task, leaf) in open_leaves(tree) {
        let states = point_states(leaf, checks.get(&leaf.id), None);
        let undecided = states.iter().zip(&leaf.acceptance).enumerate();
        for (index, (_, text)) in undecided.filter(|(_, (state, _))| **state == PointState::Prose) {
            prose.push(ProsePoint { task: task.clone(), point: index + 1, text: one_line(text) });
        }
    }
    prose
}

/// The words of a check's command that name paths which a stub could fill: relative, inside the repository, and with a slash or
/// an extension. Scripts of `sh -c` are split into words too.
pub fn stub_paths(command: &[String]) -> Vec<String> {
    let is_separator = |c: char| c.is_whitespace() || "\"'`$(){}[];|&<>=,:*?!".contains(c);
    let mut paths = Vec::new();
    for word in command.iter().flat_map(|argument| argument.split(is_separator)) {
        let word = word.strip_prefix("./").unwrap_or(word);
        let name = word.rsplit('/').next().unwrap_or_default();
        let has_extension =
            name.rsplit_once('.').is_some_and(|(stem, extension)| !stem.is_empty() && !extension.is_empty());
        let is_path = (word.contains('/') || has_extension) && !name.is_empty();
        let is_inside = !word.starts_with(['/', '-', '~', '.'])
            && word.split('/').all(|part| !part.is_empty() && part != ".." && part != ".");
        if is_path && is_inside && !paths.iter().any(|known| known == word) {
            paths.push(word.to_owned());
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let problems = static_problems(&tree(root.clone()), &of, &Config::default());
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
        let prose = prose_points(&tree(root), &of);
        assert_eq!(prose.len(), 13, "only `c` has criteria that no check decides");
    }

    #[test]
    fn only_required_checks_must_be_red() {
        let toml = "[[check]]\nname = \"a\"\ncommand = [\"x\"]\n[[check]]\nname = \"b\"\ncommand = [\"x\"]\nred = \"any\"\n";
        let task = checks(toml);
        let red = |red| {
            let checks = ["a", "b"]
                .map(|name| crate::model::checks::CheckRed { name: CheckName::new(name).unwrap(), red });
            TaskProof { node: NodeId::root(), digest: task.digest, checks: checks.to_vec() }
        };
        let kinds = |kind| {
            red_problems("root", &task, &red(kind)).iter().map(|problem| problem.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(RedKind::Failed), []);
        assert_eq!(kinds(RedKind::Absent), []);
        assert_eq!(kinds(RedKind::Green), [PlanProblemKind::Green]);
        assert_eq!(kinds(RedKind::Broken), [PlanProblemKind::Broken]);
    }

    #[test]
    fn stub_paths_are_files_inside_the_repository() {
        let words =
            |command: &[&str]| stub_paths(&command.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert_eq!(
            words(&["sh", "-c", "test -f out/a.txt && ./run.sh --x=b.py"]),
            ["out/a.txt", "run.sh", "b.py"]
        );
        assert_eq!(words(&["cargo", "test", "--test", "empty"]), Vec::<String>::new());
        assert_eq!(words(&["cat", "/etc/passwd", "../x.txt", ".hidden", "a/../b.c"]), Vec::<String>::new());
    }
}
