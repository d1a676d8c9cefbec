//! The plan as a text that a person edits: the markdown of an export, in which every task but the root carries its id.
//!
//! Reading it back gives the tree that the user wants. Nothing is guessed: a task is the one whose id it carries, a task without
//! an id is new, and one that is missing is removed.

use std::collections::{BTreeMap, BTreeSet};

use super::import::{ImportOptions, PlanEntry, PlanError, PlanFormat, export, parse_plan};
use crate::model::id::NodeId;
use crate::model::slug::fresh_id;
use crate::model::tree::{Node, Tree, path_text, user_edit_violations};

const HELP: &str = "<!--
The plan of this run. Save and close to commit it; without a change, nothing is committed.
- {#id} behind a title says which task it is. Leave it out for a new task.
- Text below a title is its goal; a list below `Acceptance:` holds its acceptance criteria.
- Order and nesting are the plan's. Tasks with [x] have passed and cannot change.
-->
";

/// The plan as text to edit.
pub fn plan_text(tree: &Tree) -> String {
    let mut root = tree.root().clone();
    root.children.iter_mut().for_each(add_id);
    match Tree::new(root) {
        Ok(with_ids) => format!("{HELP}\n{}", export(&with_ids)),
        // A title at its limit leaves no room for an id; then the user edits tree.json itself.
        Err(_) => format!("{HELP}\n{}", export(tree)),
    }
}

fn add_id(node: &mut Node) {
    node.title = format!("{} {{#{}}}", node.title, node.id).trim_start().to_owned();
    node.children.iter_mut().for_each(add_id);
}

/// The tree that an edited text describes, or everything that is wrong with it, with lines.
pub fn read_plan_text(text: &str, before: &Tree, max_attempts: u32) -> Result<Tree, Vec<PlanError>> {
    let options = ImportOptions { format: Some(PlanFormat::Markdown), ..ImportOptions::default() };
    let plan = parse_plan(text.as_bytes(), options);
    let plan = match plan {
        Ok(plan) => plan,
        // A plan with its root alone has no list.
        Err(errors) if before.root().is_leaf() && text == plan_text(before) => {
            drop(errors);
            return Ok(before.clone());
        }
        Err(errors) => return Err(errors),
    };
    let mut reader = TextReader::new(before, max_attempts);
    reader.claim_ids(&plan.entries);
    let old = before.root();
    let root = Node {
        title: plan.title.clone(),
        goal: plan.goal.clone(),
        acceptance: plan.acceptance.clone(),
        children: reader.children(&plan.entries),
        ..old.clone()
    };
    reader.finish(root)
}

/// A title with the id at its end taken off.
fn split_id(title: &str) -> (&str, Option<&str>) {
    let split = title.strip_suffix('}').and_then(|title| title.rsplit_once("{#"));
    match split {
        Some((title, id)) => (title.trim_end(), Some(id)),
        None => (title, None),
    }
}

struct TextReader<'t> {
    before: &'t Tree,
    max_attempts: u32,
    /// The line of each task that the text names.
    lines: BTreeMap<NodeId, usize>,
    used: BTreeSet<NodeId>,
    errors: Vec<PlanError>,
}

impl<'t> TextReader<'t> {
    fn new(before: &'t Tree, max_attempts: u32) -> Self {
        let used = BTreeSet::from([before.root().id.clone()]);
        Self { before, max_attempts, lines: BTreeMap::new(), used, errors: Vec::new() }
    }

    /// Reads all ids first, so that no new task gets one of them.
    fn claim_ids(&mut self, entries: &[PlanEntry]) {
        for entry in entries {
            if let (_, Some(text)) = split_id(&entry.title) {
                match NodeId::new(text) {
                    Ok(id) if !self.used.insert(id.clone()) => {
                        self.error(
                            entry.line,
                            format!("the id `{id}` is used twice: leave it out for a new task"),
                        );
                    }
                    Ok(id) => drop(self.lines.insert(id, entry.line)),
                    Err(error) => self.error(entry.line, error.to_string()),
                }
            }
            self.claim_ids(&entry.children);
        }
    }

    fn error(&mut self, line: usize, reason: impl Into<String>) {
        self.errors.push(PlanError { line, reason: reason.into() });
    }

    fn children(&mut self, entries: &[PlanEntry]) -> Vec<Node> {
        let mut nodes: Vec<Node> = entries.iter().map(|entry| self.node(entry)).collect();
        self.set_orders(&mut nodes);
        nodes
    }

    fn node(&mut self, entry: &PlanEntry) -> Node {
        let (title, id) = split_id(&entry.title);
        if title.is_empty() {
            self.error(entry.line, "the task has no title");
        }
        let id = match id.and_then(|id| NodeId::new(id).ok()) {
            Some(id) => id,
            None => {
                let id = fresh_id(title, |id| self.used.contains(id) || self.before.path_to(id).is_some());
                self.used.insert(id.clone());
                self.lines.insert(id.clone(), entry.line);
                id
            }
        };
        let children = self.children(&entry.children);
        let path = self.before.path_to(&id).unwrap_or_default();
        match path.last() {
            Some(known) => Node {
                title: title.to_owned(),
                goal: entry.goal.clone(),
                acceptance: entry.acceptance.clone(),
                children,
                ..(*known).clone()
            },
            None => Node {
                id,
                order: 0,
                title: title.to_owned(),
                goal: if entry.goal.is_empty() { title.to_owned() } else { entry.goal.clone() },
                acceptance: entry.acceptance.clone(),
                passes: false,
                attempts: 0,
                max_attempts: self.max_attempts,
                children,
            },
        }
    }

    /// Gives siblings orders in the sequence of the text. A task keeps its order wherever the sequence allows it.
    fn set_orders(&mut self, nodes: &mut [Node]) {
        let mut last: Option<(i64, NodeId)> = None;
        for node in nodes {
            let is_known = self.before.path_to(&node.id).is_some();
            let fits = last
                .as_ref()
                .is_none_or(|(order, id)| (*order, id.as_str()) < (node.order, node.id.as_str()));
            if !(is_known && fits) {
                if node.passes {
                    let line = self.lines.get(&node.id).copied().unwrap_or(1);
                    self.error(
                        line,
                        format!("`{}` has passed and must keep its place among its siblings", node.id),
                    );
                }
                node.order = last.as_ref().map_or(1, |(order, _)| order.saturating_add(1));
            }
            last = Some((node.order, node.id.clone()));
        }
    }

    fn finish(mut self, mut root: Node) -> Result<Tree, Vec<PlanError>> {
        root.derive_passes();
        if root.title.trim().is_empty() {
            self.error(1, "the plan has no title: its first heading is the root's title");
        }
        if self.errors.is_empty() {
            match Tree::new(root) {
                Ok(after) => {
                    for fault in user_edit_violations(self.before, &after) {
                        let line = self.line_of(&fault.node);
                        self.errors.push(PlanError { line, reason: fault.to_string() });
                    }
                    if self.errors.is_empty() {
                        return Ok(after);
                    }
                }
                Err(problems) => {
                    for problem in problems {
                        let line = self.line_of(&problem.node);
                        self.errors.push(PlanError { line, reason: problem.to_string() });
                    }
                }
            }
        }
        self.errors.sort_by_key(|error| error.line);
        Err(self.errors)
    }

    /// The line of the node at the end of a path; of its nearest ancestor that the text still has, if it is gone.
    fn line_of(&self, path: &str) -> usize {
        let ids = path.rsplit('/').filter_map(|id| NodeId::new(id).ok());
        ids.filter_map(|id| self.lines.get(&id).copied()).next().unwrap_or(1)
    }
}

/// What an edit of the plan did, for people: one line each.
pub fn plan_changes(before: &Tree, after: &Tree) -> Vec<String> {
    let mut old = BTreeMap::new();
    let mut new = BTreeMap::new();
    collect(before.root(), None, &mut old);
    collect(after.root(), None, &mut new);
    let path = |tree: &Tree, id: &NodeId| tree.path_to(id).map(|path| path_text(&path)).unwrap_or_default();
    let mut changes = Vec::new();
    for (id, (parent, node)) in &new {
        match old.get(id) {
            None => changes.push(format!("added {}", path(after, id))),
            Some((_, was))
                if was.title != node.title || was.goal != node.goal || was.acceptance != node.acceptance =>
            {
                changes.push(format!("edited {}", path(after, id)));
            }
            Some((old_parent, was)) if old_parent != parent || was.order != node.order => {
                changes.push(format!("moved {}", path(after, id)));
            }
            Some(_) => {}
        }
    }
    let removed = old.keys().filter(|id| !new.contains_key(*id));
    changes.extend(removed.map(|id| format!("removed {}", path(before, id))));
    changes
}

fn collect<'t>(
    node: &'t Node,
    parent: Option<&'t NodeId>,
    nodes: &mut BTreeMap<&'t NodeId, (Option<&'t NodeId>, &'t Node)>,
) {
    nodes.insert(&node.id, (parent, node));
    node.children.iter().for_each(|child| collect(child, Some(&node.id), nodes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tree::sample::{leaf, passed, tree};

    fn plan() -> Tree {
        let mut root = leaf("root");
        root.title = "Port it".to_owned();
        let mut b = Node { order: 2, ..leaf("b") };
        b.title = "Read # {#x}".to_owned();
        b.acceptance = vec!["one".to_owned(), "- two".to_owned()];
        b.children = vec![leaf("c"), Node { order: 2, ..leaf("d") }];
        root.children =
            vec![passed("a"), b, Node { order: 7, goal: "```\nfenced\n".to_owned(), ..leaf("e") }];
        tree(root)
    }

    fn read(text: &str) -> Result<Tree, Vec<PlanError>> {
        read_plan_text(text, &plan(), 3)
    }

    #[test]
    fn a_text_without_a_change_is_the_same_tree() {
        let text = plan_text(&plan());
        assert_eq!(read(&text), Ok(plan()), "{text}");
        let alone = tree(leaf("root"));
        assert_eq!(read_plan_text(&plan_text(&alone), &alone, 3), Ok(alone));
    }

    #[test]
    fn tasks_are_edited_added_moved_and_removed() {
        let text = plan_text(&plan()).replace("- [ ] Title of c {#c}", "- [ ] Changed {#c}")
            + "- [ ] Brand new\n\n  Its goal.\n";
        let after = read(&text).unwrap();
        assert_eq!(plan_changes(&plan(), &after), ["added root/brand-new", "edited root/b/c"]);
        let new = after.root().children.last().unwrap();
        assert_eq!(
            (new.id.as_str(), new.order, new.goal.as_str(), new.max_attempts),
            ("brand-new", 8, "Its goal.", 3)
        );

        let without_e: String =
            plan_text(&plan()).split("- [ ] Title of e").next().unwrap_or_default().to_owned();
        assert_eq!(plan_changes(&plan(), &read(&without_e).unwrap()), ["removed root/e"]);
        let reordered = without_e + "- [ ] First {#first}\n";
        assert_eq!(plan_changes(&plan(), &read(&reordered).unwrap()), ["added root/first", "removed root/e"]);
    }

    #[test]
    fn everything_wrong_is_reported_at_once_with_lines() {
        let text = plan_text(&plan());
        let errors =
            |text: &str| read(text).unwrap_err().iter().map(|error| error.reason.clone()).collect::<Vec<_>>();
        let passed_changed = errors(&text.replace("- [x] Title of a {#a}", "- [x] A {#a}"));
        assert!(passed_changed[0].contains("has passed and cannot be changed"), "{passed_changed:?}");
        let removed = errors(&text.replace("- [x] Title of a {#a}\n", ""));
        assert!(removed[0].contains("has passed and cannot be removed"), "{removed:?}");
        let twice = format!("{text}- [ ] x {{#e}}\n- [ ] y {{#a b}}\n");
        let found = read(&twice).unwrap_err();
        assert_eq!(found.len(), 2, "{found:?}");
        let line = |needle: &str| twice.lines().position(|line| line.contains(needle)).unwrap() + 1;
        assert_eq!(
            found.iter().map(|error| error.line).collect::<Vec<_>>(),
            [line("x {#e}"), line("{#a b}")]
        );
        let moved = format!("{}- [x] Title of a {{#a}}\n", text.replace("- [x] Title of a {#a}\n", ""));
        assert!(errors(&moved)[0].contains("must keep its place"), "{:?}", errors(&moved));
    }
}
