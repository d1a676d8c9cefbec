//! Tests of the user's edits of the tree.

use super::*;
use crate::model::tree::sample::{inner, leaf, passed, tree};
use crate::runs::edit::{EditableDocs, TEXT_BYTES_MAX};

fn id(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

fn new(name: &str) -> NewNode {
    NewNode::new(id(name), name, None, &[], 3)
}

/// `b` has passed; `c` and `e` are open.
fn start() -> Tree {
    let at = |order, node| Node { order, ..node };
    let a = inner("a", vec![at(1, passed("b")), at(2, Node { attempts: 2, ..leaf("c") })]);
    tree(inner("root", vec![at(1, a), at(2, passed("d")), at(3, leaf("e")), at(4, leaf("f"))]))
}

fn apply(edit: &UserEdit) -> Result<Tree, EditError> {
    let before =
        EditableDocs { tree: start(), questions: Vec::new(), notes: Vec::new(), plan: None, approval: None };
    edit.apply(&before).map(|after| after.tree)
}

/// The children of a node with their orders: `a1 d2`.
fn children(tree: &Tree, of: &str) -> String {
    let path = tree.path_to(&id(of)).unwrap();
    let labels = path.last().unwrap().children.iter().map(|child| format!("{}{}", child.id, child.order));
    labels.collect::<Vec<_>>().join(" ")
}

fn add(under: &str, place: SiblingPosition) -> Result<Tree, EditError> {
    apply(&UserEdit::Add { under: id(under), node: new("n"), place })
}

#[test]
fn new_nodes_get_the_wanted_position_and_open_neighbours_make_room() {
    let at = |place| children(&add("root", place).unwrap(), "root");
    assert_eq!(at(SiblingPosition::Last), "a1 d2 e3 f4 n5");
    assert_eq!(at(SiblingPosition::Before(id("a"))), "n0 a1 d2 e3 f4");
    assert_eq!(at(SiblingPosition::After(id("d"))), "a1 d2 n3 e4 f5");
    assert_eq!(at(SiblingPosition::Before(id("f"))), "a1 d2 e3 n4 f5");
    assert_eq!(at(SiblingPosition::After(id("a"))), "a0 n1 d2 e3 f4", "`d` has passed, so `a` makes room");
    assert_eq!(at(SiblingPosition::Order(3)), "a1 d2 e3 n3 f4");
    assert_eq!(children(&add("e", SiblingPosition::Last).unwrap(), "e"), "n1");
}

#[test]
fn invalid_positions_are_refused() {
    assert_eq!(add("d", SiblingPosition::Last), Err(EditError::UnderPassed("root/d".to_owned())));
    assert_eq!(add("x", SiblingPosition::Last), Err(EditError::NoSuchNode(id("x"))));
    let sibling = EditError::NotASibling { sibling: id("b"), under: id("root") };
    assert_eq!(add("root", SiblingPosition::After(id("b"))), Err(sibling));
    let twice = UserEdit::Add { under: id("root"), node: new("b"), place: SiblingPosition::Last };
    assert_eq!(apply(&twice), Err(EditError::Taken(id("b"))));
    let between = tree(inner("root", vec![passed("a"), passed("b"), leaf("c")]));
    let between =
        EditableDocs { tree: between, questions: Vec::new(), notes: Vec::new(), plan: None, approval: None };
    let edit = UserEdit::Add { under: id("root"), node: new("n"), place: SiblingPosition::After(id("a")) };
    assert_eq!(edit.apply(&between), Err(EditError::NoRoom(id("a"))));
}

#[test]
fn passed_nodes_cannot_be_edited() {
    let to = NodeChanges { title: Some("x".to_owned()), ..NodeChanges::default() };
    assert_eq!(apply(&UserEdit::Edit { node: id("d"), to }), Err(EditError::Passed("root/d".to_owned())));
    let remove = |node: &str| apply(&UserEdit::Remove { node: id(node) });
    assert_eq!(remove("b"), Err(EditError::Passed("root/a/b".to_owned())));
    let below = EditError::PassedBelow { node: "root/a".to_owned(), descendant: "root/a/b".to_owned() };
    assert_eq!(remove("a"), Err(below));
    let split = UserEdit::Split { node: id("d"), into: vec![new("x"), new("y")] };
    assert_eq!(apply(&split), Err(EditError::Passed("root/d".to_owned())));
    let into = |under: &str, node: &str| {
        apply(&UserEdit::Move { node: id(node), under: id(under), place: SiblingPosition::Last })
    };
    assert_eq!(into("e", "b"), Err(EditError::Passed("root/a/b".to_owned())));
    assert_eq!(into("d", "e"), Err(EditError::UnderPassed("root/d".to_owned())));
    assert_eq!(
        apply(&UserEdit::Allow { node: id("b"), more: 1 }),
        Err(EditError::Passed("root/a/b".to_owned()))
    );
}

#[test]
fn the_root_cannot_move_and_no_node_can_move_below_itself() {
    let root = Err(EditError::Root(id("root")));
    assert_eq!(apply(&UserEdit::Remove { node: id("root") }), root);
    let into = |node: &str, under: &str| {
        apply(&UserEdit::Move { node: id(node), under: id(under), place: SiblingPosition::Last })
    };
    assert_eq!(into("root", "e"), root);
    assert_eq!(into("a", "c"), Err(EditError::UnderItself { node: "root/a".to_owned() }));
    assert_eq!(into("a", "a"), Err(EditError::UnderItself { node: "root/a".to_owned() }));
}

#[test]
fn a_node_moves_with_its_subtree() {
    let edit = UserEdit::Move { node: id("a"), under: id("e"), place: SiblingPosition::Last };
    let after = apply(&edit).unwrap();
    assert_eq!(
        (children(&after, "root"), children(&after, "a")),
        ("d2 e3 f4".to_owned(), "b1 c2".to_owned())
    );
    let first = UserEdit::Move { node: id("f"), under: id("root"), place: SiblingPosition::Before(id("a")) };
    assert_eq!(children(&apply(&first).unwrap(), "root"), "f0 a1 d2 e3");
    let here = UserEdit::Move { node: id("f"), under: id("root"), place: SiblingPosition::Order(4) };
    assert_eq!(apply(&here), Err(EditError::Nothing));
}

#[test]
fn a_parent_without_open_children_passes_or_becomes_a_leaf() {
    let after = apply(&UserEdit::Remove { node: id("c") }).unwrap();
    assert!(after.path_to(&id("a")).unwrap().last().unwrap().passes);
    let alone = EditableDocs {
        tree: tree(inner("root", vec![leaf("x")])),
        questions: Vec::new(),
        notes: Vec::new(),
        plan: None,
        approval: None,
    };
    let after = UserEdit::Remove { node: id("x") }.apply(&alone).unwrap().tree;
    assert!(after.root().is_leaf() && !after.root().passes);
}

#[test]
fn a_split_leaf_keeps_its_attempts() {
    let split = |into: Vec<NewNode>| apply(&UserEdit::Split { node: id("c"), into });
    let after = split(vec![new("x"), new("y"), new("z")]).unwrap();
    assert_eq!(children(&after, "c"), "x1 y2 z3");
    assert_eq!(after.path_to(&id("c")).unwrap().last().unwrap().attempts, 2);
    assert_eq!(split(vec![new("x")]), Err(EditError::TooFewParts));
    assert_eq!(split(vec![new("x"), new("b")]), Err(EditError::Taken(id("b"))));
    assert!(matches!(split(vec![new("x"), new("x")]), Err(EditError::Tree(_))));
    let inner = UserEdit::Split { node: id("a"), into: vec![new("x"), new("y")] };
    assert_eq!(apply(&inner), Err(EditError::NotALeaf("root/a".to_owned())));
}

#[test]
fn max_attempts_can_be_raised_but_not_below_the_used_attempts() {
    let max = |edit: &UserEdit| {
        apply(edit).map(|after| after.path_to(&id("c")).unwrap().last().unwrap().max_attempts)
    };
    assert_eq!(max(&UserEdit::Allow { node: id("c"), more: 4 }), Ok(7));
    assert_eq!(max(&UserEdit::Allow { node: id("c"), more: u32::MAX }), Ok(1_000_000));
    assert_eq!(max(&UserEdit::Allow { node: id("c"), more: 0 }), Err(EditError::Nothing));
    assert_eq!(
        max(&UserEdit::Allow { node: id("a"), more: 1 }),
        Err(EditError::NotALeaf("root/a".to_owned()))
    );
    let to = |max| UserEdit::Edit {
        node: id("c"),
        to: NodeChanges { max_attempts: Some(max), ..NodeChanges::default() },
    };
    assert_eq!(max(&to(2)), Ok(2));
    let below = EditError::BelowAttempts { node: "root/a/c".to_owned(), attempts: 2 };
    assert_eq!(max(&to(1)), Err(below));
    assert!(matches!(max(&to(2_000_000)), Err(EditError::Tree(_))));
}

#[test]
fn texts_are_not_empty_and_bounded() {
    let edit = |to| apply(&UserEdit::Edit { node: id("c"), to });
    assert_eq!(
        edit(NodeChanges { title: Some(" ".to_owned()), ..NodeChanges::default() }),
        Err(EditError::NoTitle)
    );
    let goal = |bytes: usize| NodeChanges { goal: Some("x".repeat(bytes)), ..NodeChanges::default() };
    let bytes = TEXT_BYTES_MAX + 1;
    assert_eq!(edit(goal(bytes)), Err(EditError::TooLong { bytes }));
    let longest = edit(goal(TEXT_BYTES_MAX)).unwrap();
    assert_eq!(longest.path_to(&id("c")).unwrap().last().unwrap().goal.len(), TEXT_BYTES_MAX);
    assert_eq!(edit(NodeChanges::default()), Err(EditError::Nothing));
    let note = UserEdit::Note { text: "\n".to_owned() };
    assert_eq!(apply(&note), Err(EditError::NoText));
}

#[test]
fn the_texts_of_a_new_node_are_safe_to_show() {
    let criteria = [" quick\u{202e}\n".to_owned()];
    let node =
        NewNode::new(id("n"), " Read\nit\u{7} ", Some("\n All,\u{1b}[31m\n\tat once.\n"), &criteria, 4);
    let expected = NewNode {
        id: id("n"),
        title: "Read it".to_owned(),
        goal: "All,\n\tat once.".to_owned(),
        acceptance: vec!["quick".to_owned()],
        max_attempts: 4,
    };
    assert_eq!(node, expected);
    assert_eq!(NewNode::new(id("n"), " Read\nit ", None, &[], 4).goal, "Read it");
}

/// One edit of every kind, with its node.
fn edits() -> Vec<(UserEdit, Option<NodeId>)> {
    let to = NodeChanges { acceptance: Some(vec!["x\ny".to_owned()]), ..NodeChanges::default() };
    let c = || id("c");
    let split = vec![new("x"), new("y")];
    vec![
        (
            UserEdit::Add { under: id("root"), node: new("n"), place: SiblingPosition::After(id("d")) },
            Some(id("n")),
        ),
        (UserEdit::Edit { node: c(), to }, Some(c())),
        (UserEdit::Split { node: c(), into: split }, Some(c())),
        (UserEdit::Remove { node: c() }, Some(c())),
        (UserEdit::Move { node: c(), under: id("e"), place: SiblingPosition::Order(-3) }, Some(c())),
        (UserEdit::Allow { node: c(), more: 2 }, Some(c())),
        (UserEdit::Answer { question: 2, text: "é \"so\"\nx".to_owned() }, None),
        (UserEdit::Note { text: "x".to_owned() }, None),
    ]
}

#[test]
fn edits_name_their_node() {
    for (edit, node) in edits() {
        assert_eq!(edit.node(), node.as_ref(), "{edit:?}");
    }
}

#[test]
fn edits_round_trip_through_json() {
    for (edit, _) in edits() {
        let json = serde_json::to_string(&edit).unwrap();
        assert!(!json.contains('\n'), "{json}");
        assert_eq!(serde_json::from_str::<UserEdit>(&json).unwrap(), edit, "{json}");
    }
}
