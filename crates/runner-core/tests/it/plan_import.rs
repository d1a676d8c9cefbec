//! Imports realistic plans into trees, and exports trees and imports them again.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use runner_core::model::id::NodeId;
use runner_core::model::tree::{DEPTH_MAX, NODES_MAX, Node, Tree};
use runner_core::runs::import::{
    EntryStatus, ImportOptions, ImportedPlan, PlanEntry, PlanImport, export, insert_plan, parse_plan,
};

use crate::holds;
use crate::messages;

const FILES: [&str; 7] = [
    "checklist.md",
    "sections.md",
    "bullets.md",
    "ralph.prd.json",
    "features.prd.json",
    "tasks.json",
    "tagged.json",
];

#[expect(clippy::disallowed_methods, reason = "the samples are files")]
fn sample(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/plan_samples").join(name);
    fs::read(path).unwrap()
}

fn plan(name: &str) -> ImportedPlan {
    parse_plan(&sample(name), ImportOptions { name, ..ImportOptions::default() }).unwrap()
}

fn root() -> Tree {
    let node = Node {
        id: NodeId::root(),
        order: 0,
        title: "Goal".to_owned(),
        goal: String::new(),
        acceptance: Vec::new(),
        passes: false,
        attempts: 0,
        max_attempts: 3,
        children: Vec::new(),
    };
    Tree::new(node).unwrap()
}

fn import(plan: ImportedPlan) -> PlanImport {
    PlanImport { plan, under: None, with_done: false }
}

/// An indented outline with every text.
fn outline(node: &Node, level: usize, text: &mut String) {
    let indent = "  ".repeat(level);
    writeln!(text, "{indent}{} {} {:?}", node.order, node.id, node.title).unwrap();
    if !node.goal.is_empty() {
        writeln!(text, "{indent}    goal {:?}", node.goal).unwrap();
    }
    for criterion in &node.acceptance {
        writeln!(text, "{indent}    acceptance {criterion:?}").unwrap();
    }
    node.children.iter().for_each(|child| outline(child, level + 1, text));
}

#[test]
fn realistic_plans_become_trees() {
    for name in FILES {
        let plan = plan(name);
        let mut text = format!("{} {:?}\n{:?}\n", plan.format, plan.title, plan.goal);
        for warning in &plan.warnings {
            writeln!(text, "warning, line {}: {}", warning.line, warning.text).unwrap();
        }
        let inserted = insert_plan(&root(), &import(plan), 3).unwrap();
        for skipped in &inserted.skipped {
            let status = skipped.status.as_str();
            writeln!(text, "{status}, line {}: {}", skipped.line, skipped.title).unwrap();
        }
        outline(inserted.tree.root(), 0, &mut text);
        insta::assert_snapshot!(format!("plan-{name}"), text);
    }
}

#[test]
fn imported_plan_survives_export_and_import() {
    for name in FILES {
        let first = insert_plan(&root(), &import(plan(name)), 3).unwrap().tree;
        let text = export(&first);
        let again = parse_plan(text.as_bytes(), ImportOptions::default()).unwrap();
        assert_eq!(plan_shape(&again), node_shape(first.root()), "{text}");
        insta::assert_snapshot!(format!("export-{name}"), text);
    }
}

/// What an export must keep: titles, goals, acceptance, nesting, and which tasks are done.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PlanShape {
    texts: (String, String, Vec<String>),
    is_done: bool,
    parts: Vec<PlanShape>,
}

fn node_shape(node: &Node) -> PlanShape {
    PlanShape {
        texts: (node.title.clone(), node.goal.clone(), node.acceptance.clone()),
        is_done: node.passes,
        parts: node.children.iter().map(node_shape).collect(),
    }
}

fn entry_shape(entry: &PlanEntry) -> PlanShape {
    PlanShape {
        texts: (entry.title.clone(), entry.goal.clone(), entry.acceptance.clone()),
        is_done: entry.status == EntryStatus::Done,
        parts: entry.children.iter().map(entry_shape).collect(),
    }
}

fn plan_shape(plan: &ImportedPlan) -> PlanShape {
    PlanShape {
        texts: (plan.title.clone(), plan.goal.clone(), plan.acceptance.clone()),
        is_done: !plan.entries.is_empty() && plan.entries.iter().all(|item| item.status == EntryStatus::Done),
        parts: plan.entries.iter().map(entry_shape).collect(),
    }
}

/// Texts that contain plan syntax.
fn text() -> impl Strategy<Value = String> {
    let pieces = select(
        &[
            "",
            " ",
            "\n",
            "\n\n",
            "  ",
            "\t",
            "\r\n",
            "a",
            "b c",
            "é",
            "# x",
            "## Acceptance",
            "- [ ] y",
            "- [x] z",
            "- q",
            "* ",
            "1. one",
            "12) two",
            "```",
            "````goal",
            "~~~",
            "Acceptance:",
            "acceptance criteria: x",
            "**Acceptance**",
            "<!-- c",
            "-->",
            "---",
            "***",
            "[ ] w",
            "\\",
            "`t`",
            "| a |",
            "> q",
            "=====",
            "\u{a0}",
        ][..],
    );
    prop_oneof![vec(pieces, 0..7).prop_map(|pieces| pieces.concat()), "[ -~\n]{0,20}", "[a-z ]{1,12}",]
}

fn node() -> impl Strategy<Value = Node> {
    let texts = (text(), text(), vec(text(), 0..3), any::<bool>());
    let leaf = texts.prop_map(|(title, goal, acceptance, passes)| Node {
        id: NodeId::root(),
        order: 0,
        title,
        goal,
        acceptance,
        passes,
        attempts: 0,
        max_attempts: 3,
        children: Vec::new(),
    });
    leaf.prop_recursive(4, 16, 4, |inner| {
        (inner.clone(), vec(inner, 1..4)).prop_map(|(node, children)| Node { children, ..node })
    })
}

/// Makes ids and orders unique, and lets parents pass when all their children do.
fn make_valid(node: &mut Node, count: &mut u32) {
    *count += 1;
    node.id = NodeId::new(format!("n{count}")).unwrap();
    node.order = i64::from(*count);
    node.children.iter_mut().for_each(|child| make_valid(child, count));
    if !node.children.is_empty() {
        node.passes = node.children.iter().all(|child| child.passes);
    }
}

#[test]
fn every_tree_survives_export_and_import() {
    holds((node(), vec(node(), 1..4)), |(root, children)| {
        let mut root = Node { children, ..root };
        make_valid(&mut root, &mut 0);
        let tree = Tree::new(root).unwrap();
        let text = export(&tree);
        let again = parse_plan(text.as_bytes(), ImportOptions::default());
        let shape = again.map(|plan| plan_shape(&plan)).map_err(|problems| messages(&problems));
        prop_assert_eq!(shape, Ok(node_shape(tree.root())), "{}", text);
        Ok(())
    });
}

#[test]
fn any_file_is_read_or_refused_with_a_line_number() {
    holds(vec(text(), 0..12), |lines| {
        let text = lines.join("\n");
        for name in ["x.md", "x.json", "-"] {
            if let Err(problems) =
                parse_plan(text.as_bytes(), ImportOptions { name, ..ImportOptions::default() })
            {
                let line_max = text.lines().count().max(1) + 1;
                prop_assert!(
                    problems.iter().all(|problem| (1..=line_max).contains(&problem.line)),
                    "{problems:?}"
                );
            }
        }
        Ok(())
    });
}

#[test]
fn invalid_plan_is_reported_with_line_and_reason() {
    let problems = |name: &str, text: &str| {
        messages(
            &parse_plan(text.as_bytes(), ImportOptions { name, ..ImportOptions::default() }).unwrap_err(),
        )
    };
    let no_entry = "line 1: the file has no items: write tasks as `- [ ] what to do`";
    assert_eq!(problems("a.md", "# Title\n\nwords\n"), [no_entry]);
    assert_eq!(
        problems("a.md", "- [ ] a\n- [ ]\n\n  ```\n  code\n"),
        ["line 2: the item has no text", "line 4: the code block that starts here has no end"]
    );
    let deep: String = (0..40).map(|level| format!("{}- [ ] x\n", " ".repeat(level))).collect();
    assert_eq!(problems("a.md", &deep)[0], "line 32: the items have more than 32 levels");
    assert_eq!(
        problems("p.json", "{\"userStories\": [\n{\"title\": \"a\"},\n{\"title\": 7},\n\n{\"id\": 1}]}"),
        [
            "line 3: story 2 is invalid: invalid type: integer `7`, expected a string",
            "line 5: story 3 has neither a title nor a description",
        ]
    );
    let cycle = "{\"tasks\": [\n{\"id\": 1, \"title\": \"a\", \"dependencies\": [2]},\n{\"id\": 2, \"title\": \"b\", \"dependencies\": [1]}]}";
    assert_eq!(problems("t.json", cycle), ["line 2: dependency cycle: `1` → `2` → `1`"]);
    let unknown = "{\"tasks\": [\n{\"id\": 1, \"title\": \"a\", \"dependencies\": [9]}]}";
    assert_eq!(problems("t.json", unknown), ["line 2: `1` depends on `9`, which is not in the plan"]);
    assert_eq!(
        problems("t.json", "{\"tasks\": [\n{\"id\": 1}]}"),
        ["line 2: the task is invalid: missing field `title`"]
    );
    assert_eq!(problems("t.json", "{\"tasks\": []}"), ["line 1: the list has no tasks"]);
    let tag = |tag| ImportOptions { name: "t.json", tag, ..ImportOptions::default() };
    let other = parse_plan(&sample("tagged.json"), tag(Some("other"))).unwrap_err();
    assert_eq!(messages(&other), ["line 1: there is no tag `other`; those in the file: `master`, `side`"]);
    assert_eq!(parse_plan(&sample("tagged.json"), tag(Some("side"))).unwrap().entries.len(), 1);
}

#[test]
fn section_with_only_done_tasks_is_skipped() {
    let text = b"# P\n\n## Old\n\n- [x] a\n- [x] b\n\n## New\n\n- [x] c\n- [ ] d\n";
    let plan = parse_plan(text, ImportOptions { name: "p.md", ..ImportOptions::default() }).unwrap();
    let inserted = insert_plan(&root(), &import(plan), 3).unwrap();
    let added: Vec<&str> = inserted.added.iter().map(NodeId::as_str).collect();
    assert_eq!(added, ["new", "d"]);
    let skipped: Vec<(usize, &str)> =
        inserted.skipped.iter().map(|skipped| (skipped.line, skipped.title.as_str())).collect();
    assert_eq!(skipped, [(3, "Old"), (5, "a"), (6, "b"), (10, "c")]);
}

fn read_plan(name: &str, text: &str) -> Result<ImportedPlan, Vec<String>> {
    parse_plan(text.as_bytes(), ImportOptions { name, ..ImportOptions::default() })
        .map_err(|problems| messages(&problems))
}

/// Titles as an outline, each with its acceptance criteria.
fn titles(items: &[PlanEntry]) -> String {
    let title = |item: &PlanEntry| {
        let criteria: String = item.acceptance.iter().map(|criterion| format!(" {criterion:?}")).collect();
        let parts =
            if item.children.is_empty() { String::new() } else { format!(" ({})", titles(&item.children)) };
        format!("{}{criteria}{parts}", item.title)
    };
    items.iter().map(title).collect::<Vec<_>>().join(", ")
}

#[test]
fn windows_line_ends_make_no_difference() {
    let text = "---\ntags: x\n---\n# P\n\n- [ ] a\n\n  ```goal\n  b\n   c\n  ```\n- [ ] d\n";
    let plan = read_plan("p.md", text);
    assert_eq!(plan.as_ref().map(|plan| titles(&plan.entries)), Ok("a, d".to_owned()));
    assert_eq!(read_plan("p.md", &text.replace('\n', "\r\n")), plan);
}

#[test]
fn front_matter_contains_no_tasks() {
    let plan = read_plan("p.md", "---\ntags:\n- [ ] x\n- [ ] y\n---\n- [ ] a\n").unwrap();
    assert_eq!(titles(&plan.entries), "a");
}

#[test]
fn acceptance_list_ends_at_the_next_task_or_level() {
    for (text, expected) in [
        ("- [ ] a\n  - Acceptance:\n    - p\n    - q\n  - [ ] b\n", "a \"p\" \"q\" (b)"),
        ("- [ ] a\n  - Acceptance:\n  - [ ] b\n", "a (b)"),
        ("- [ ] a\n- Acceptance:\n- [ ] b\n", "a, b"),
        ("- [ ] a\n  Acceptance:\n  - p\n    - of p\n  - q\n", "a \"p\\n- of p\" \"q\""),
        ("- [ ] a\n  Acceptance:\n  - p\n    more of p\n  - q\n", "a \"p\\nmore of p\" \"q\""),
    ] {
        assert_eq!(titles(&read_plan("p.md", text).unwrap().entries), expected, "{text}");
    }
}

#[test]
fn text_after_the_acceptance_list_belongs_to_the_goal() {
    let plan = read_plan("p.md", "- [ ] a\n  Acceptance:\n  - p\n\n  words\n").unwrap();
    assert_eq!(titles(&plan.entries), "a \"p\"");
    assert_eq!(plan.entries[0].goal, "words");
}

#[test]
fn text_after_a_goal_block_is_appended_to_the_goal() {
    let exact = "- [ ] a\n\n  ```goal\n  b\n  ```\n";
    assert_eq!(read_plan("p.md", exact).unwrap().entries[0].goal, "b");
    assert_eq!(read_plan("p.md", &format!("{exact}\n  words\n")).unwrap().entries[0].goal, "b\n\nwords");
}

#[test]
fn section_is_done_when_none_of_its_tasks_is_open() {
    for (items, expected) in [
        ("- [x] a\n- [-] b\n- [>] c\n", EntryStatus::Done),
        ("- [x] a\n- [ ] b\n", EntryStatus::Open),
        ("- [x] a\n  - [ ] b\n", EntryStatus::Open),
        ("- [ ] a\n  - [x] b\n", EntryStatus::Open),
        ("- [x] a\n  - [x] b\n", EntryStatus::Done),
    ] {
        let plan = read_plan("p.md", &format!("# P\n\n## Section\n\n{items}")).unwrap();
        assert_eq!(plan.entries[0].status, expected, "{items}");
    }
}

#[test]
fn plan_with_too_many_tasks_is_refused_with_one_error() {
    let fault = format!("line {NODES_MAX}: the file has more than {NODES_MAX} items");
    for more in [0, 3] {
        assert_eq!(read_plan("p.md", &"- a\n".repeat(NODES_MAX + more)), Err(vec![fault.clone()]));
    }
}

#[test]
fn task_list_is_found_among_other_keys() {
    for text in [
        r#"{"version": 1, "by": "me", "main": {"tasks": [{"id": 1, "title": "a"}]}}"#,
        r#"{"tasks": {"tasks": [{"id": 1, "title": "a"}]}}"#,
        r#"{"master": {"tasks": 7}, "side": {"tasks": [{"id": 1, "title": "a"}]}}"#,
    ] {
        assert_eq!(read_plan("t.json", text).map(|plan| titles(&plan.entries)), Ok("a".to_owned()), "{text}");
    }
}

#[test]
fn error_within_a_task_has_its_own_line() {
    let result = read_plan("t.json", "{\"tasks\": [\n{\"id\": 1,\n\"title\": 7}]}");
    let fault = "line 3: the task is invalid: invalid type: integer `7`, expected a string";
    assert_eq!(result, Err(vec![fault.to_owned()]));
}

#[test]
fn subtasks_may_be_as_deep_as_a_tree() {
    let nested = |levels: usize, last: &str| {
        let list = (0..levels).fold(last.to_owned(), |parts, _| {
            format!("[{{\"id\": 1, \"title\": \"a\", \"subtasks\": {parts}}}]")
        });
        read_plan("t.json", &format!("{{\"tasks\": {list}}}"))
    };
    for last in ["null", "[]"] {
        let plan = nested(DEPTH_MAX - 1, last).unwrap();
        assert!(insert_plan(&root(), &import(plan), 3).is_ok());
        let fault = format!("line 1: the tasks have more than {DEPTH_MAX} levels");
        assert_eq!(nested(DEPTH_MAX, last), Err(vec![fault]));
    }
}

#[test]
fn bare_dependency_of_a_subtask_names_a_sibling() {
    let text = r#"{"tasks": [
        {"id": 1, "title": "a", "subtasks": [
            {"id": 1, "title": "p", "dependencies": ["2"]},
            {"id": 2, "title": "q"},
            {"id": 3, "title": "r", "dependencies": ["3.1"]}]},
        {"id": 2, "title": "b", "dependencies": ["1"]},
        {"id": 3, "title": "c", "subtasks": [{"id": 1, "title": "s"}]}]}"#;
    assert_eq!(titles(&read_plan("t.json", text).unwrap().entries), "c (s), a (q, p, r), b");
}

#[test]
fn test_strategy_list_becomes_acceptance_criteria() {
    for (strategy, expected) in [
        ("- p\n* q", "a \"p\" \"q\""),
        ("1. p\n2) q", "a \"p\" \"q\""),
        ("- p", "a \"- p\""),
        ("p\n- q", "a \"p\\n- q\""),
    ] {
        let task = serde_json::json!({ "id": 1, "title": "a", "testStrategy": strategy });
        let plan = read_plan("t.json", &serde_json::json!({ "tasks": [task] }).to_string()).unwrap();
        assert_eq!(titles(&plan.entries), expected, "{strategy}");
    }
}
