//! The plan as a text that a person edits: the markdown of an export, in which every task but the root carries its id.
//!
//! Reading it back gives the tree that the user wants. Nothing is guessed: a task is the one whose id it carries, a task without
//! an id is new, and one that is missing is removed.

use std::collections::{BTreeMap, BTreeSet};

use super::import::{EntryStatus, PlanEntry, PlanError, export_root, parse_outline};
use crate::model::id::NodeId;
use crate::model::slug::fresh_id;
use crate::model::tree::{Node, Tree, path_text, user_edit_violations};

const HELP: &str = "<!--
The plan of this run. Save and close to commit it. No change, no commit.
- {#id} behind a title identifies the task; leave it out for a new task.
- Text below a title is its goal. A list below `Acceptance:` holds its
  acceptance criteria.
- Order and nesting are the plan's. Delete a task to remove it. Tasks with [x]
  have passed and cannot change.
-->
";

/// The plan as text to edit.
pub fn plan_text(tree: &Tree) -> String {
    let mut root = tree.root().clone();
    root.children.iter_mut().for_each(add_id);
    format!("{HELP}\n{}", export_root(&root))
}

fn add_id(node: &mut Node) {
    let space = if node.title.is_empty() { "" } else { " " };
    node.title = format!("{}{space}{{#{}}}", node.title, node.id);
    node.children.iter_mut().for_each(add_id);
}

/// The tree that an edited text describes, or everything that is wrong with it, with lines.
pub fn read_plan_text(text: &str, before: &Tree, max_attempts: u32) -> Result<Tree, Vec<PlanError>> {
    let plan = parse_outline(text.strip_prefix('\u{feff}').unwrap_or(text))?;
    let mut reader = TextReader::new(before, max_attempts);
    reader.claim_ids(&plan.entries);
    // A heading that groups nothing would vanish without a word.
    for warning in &plan.warnings {
        reader.error(warning.line, format!("{}: write tasks as `- [ ] what to do`", warning.text));
    }
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

/// A title with the id at its end taken off, and the space before it.
fn split_id(title: &str) -> (&str, Option<&str>) {
    let split = title.strip_suffix('}').and_then(|title| title.rsplit_once("{#"));
    match split {
        Some((title, id)) => (title.strip_suffix(' ').unwrap_or(title), Some(id)),
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
        let (text, id) = split_id(&entry.title);
        let id = match id.and_then(|id| NodeId::new(id).ok()) {
            Some(id) => id,
            None => {
                let id = fresh_id(text, |id| self.used.contains(id) || self.before.path_to(id).is_some());
                self.used.insert(id.clone());
                self.lines.insert(id.clone(), entry.line);
                id
            }
        };
        let children = self.children(&entry.children);
        let known = self.before.path_to(&id).and_then(|path| path.last().copied());
        self.check_status(entry, known);
        // Spaces at the end are no edit, and no part of a new title.
        let title = known.map(|known| known.title.as_str()).filter(|title| *title == text);
        let title = title.unwrap_or(text.trim()).to_owned();
        if title.is_empty() && known.is_none() {
            self.error(entry.line, "the task has no title");
        }
        match known {
            Some(known) => Node {
                title,
                goal: entry.goal.clone(),
                acceptance: entry.acceptance.clone(),
                children,
                ..known.clone()
            },
            None => Node {
                id,
                order: 0,
                goal: if entry.goal.is_empty() { title.clone() } else { entry.goal.clone() },
                title,
                acceptance: entry.acceptance.clone(),
                passes: false,
                attempts: 0,
                max_attempts: self.max_attempts,
                children,
            },
        }
    }

    /// Refuses boxes that disagree with the state of a task.
    fn check_status(&mut self, entry: &PlanEntry, known: Option<&Node>) {
        let has_passed = known.is_some_and(|known| known.passes);
        match (entry.status, has_passed) {
            (EntryStatus::Open, false) | (EntryStatus::Done, true) => {}
            // A parent with a new subtask is open again.
            (EntryStatus::Open, true) if !entry.children.is_empty() => {}
            (EntryStatus::Open, true) => {
                self.error(entry.line, "the task has passed and cannot be changed: write `[x]`");
            }
            (EntryStatus::Done, false) => {
                self.error(entry.line, "only the runner can mark a task as passed: write `[ ]`");
            }
            (EntryStatus::Dropped | EntryStatus::Deferred, _) => {
                self.error(entry.line, "write `[ ]`, or delete the task to remove it");
            }
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
        if root.title.trim().is_empty() && root.title != self.before.root().title {
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
    }

    #[test]
    fn a_plan_of_its_root_alone_is_edited_and_gets_tasks() {
        let alone = tree(leaf("root"));
        let text = plan_text(&alone);
        assert_eq!(read_plan_text(&text, &alone, 3).as_ref(), Ok(&alone));
        let edited = read_plan_text(&text.replace("# Title of root", "# Other"), &alone, 3).unwrap();
        assert_eq!((edited.root().title.as_str(), edited.root().is_leaf()), ("Other", true));
        let grown = read_plan_text(&format!("{text}\n- [ ] One\n- [ ] Two\n"), &alone, 3).unwrap();
        assert_eq!(plan_changes(&alone, &grown), ["added root/one", "added root/two"]);
    }

    #[test]
    fn no_text_of_any_task_is_lost() {
        let texts = [
            "",
            " ",
            "a ",
            " a",
            "a  b",
            "{#a}",
            "x {#y}",
            "- [ ] a",
            "* a",
            "1. a",
            "# a",
            "## a ##",
            "---",
            "***",
            "```",
            "```goal",
            "~~~",
            "<!-- a",
            "-->",
            "<a>",
            "[x] a",
            "Acceptance:",
            "Acceptance: b",
            "Acceptance",
            "a\nb",
            "a\n\n\nb\n",
            "\n",
            "\ta",
            "a\t",
            "\u{a0}a",
            "a\r",
            "ä→🙂",
            "title:",
            "(see below)",
            "a\\b",
            "| a |",
            "> a",
        ];
        for text in texts {
            let with_text = |id: &str, order: i64| Node {
                order,
                title: text.to_owned(),
                goal: text.to_owned(),
                acceptance: vec![text.to_owned(), "last".to_owned(), text.to_owned()],
                attempts: 2,
                max_attempts: 7,
                ..leaf(id)
            };
            let mut root = with_text("root", 0);
            root.attempts = 0;
            let mut inner = Node { attempts: 0, ..with_text("b", 2) };
            inner.children = vec![with_text("c", -4), Node { acceptance: Vec::new(), ..with_text("d", 9) }];
            root.children = vec![with_text("a", 1), inner, Node { goal: String::new(), ..with_text("e", 3) }];
            let Ok(before) = Tree::new(root) else { continue };
            let page = plan_text(&before);
            assert_eq!(read_plan_text(&page, &before, 3).as_ref(), Ok(&before), "{text:?} in\n{page}");
        }
    }

    #[test]
    fn boxes_belong_to_the_runner_and_empty_headings_are_errors() {
        let text = plan_text(&plan());
        for (from, to, found) in [
            ("- [ ] Title of e", "- [x] Title of e", "only the runner can mark a task as passed"),
            ("- [x] Title of a", "- [ ] Title of a", "has passed and cannot be changed"),
            ("- [ ] Title of e", "- [-] Title of e", "delete the task to remove it"),
            ("- [ ] Title of e", "## Notes\n\n- [ ] Title of e", ""),
        ] {
            let edited = text.replace(from, to);
            let line = edited
                .lines()
                .position(|line| line == to.lines().next().unwrap_or_default() || line.starts_with(to))
                .unwrap()
                + 1;
            match read(&edited) {
                Err(errors) => {
                    assert!(!found.is_empty() && errors[0].reason.contains(found), "{to}: {errors:?}");
                    assert_eq!(errors[0].line, line, "{to}");
                }
                Ok(after) => assert_eq!((found, plan_changes(&plan(), &after).len()), ("", 2), "{to}"),
            }
        }
        let errors = read(&format!("{text}\n## Notes\n\nRemember the milk.\n")).unwrap_err();
        assert!(errors[0].reason.contains("skipped \"Notes\""), "{errors:?}");
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
