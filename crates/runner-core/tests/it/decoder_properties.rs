//! Properties of the decoders, and their error messages at limits.

use std::collections::BTreeMap;

use proptest::prelude::*;
use runner_core::agents::scenario::{Scenario, SessionContext};
use runner_core::model::goal::Goal;
use runner_core::model::tree::{BYTES_MAX, NODES_MAX, Tree};
use runner_core::strict::{FieldReader, nearest};
use serde_json::{Map, Value};

use crate::document_properties::{changed, tree};
use crate::holds;
use crate::messages;

/// The same document with the keys of every object reversed.
fn reversed(document: &Value) -> Value {
    match document {
        Value::Object(fields) => {
            let pairs: Map<String, Value> =
                fields.iter().rev().map(|(key, value)| (key.clone(), reversed(value))).collect();
            Value::Object(pairs)
        }
        Value::Array(items) => Value::Array(items.iter().map(reversed).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => document.clone(),
    }
}

#[test]
fn key_order_does_not_change_the_decoded_tree() {
    holds(changed(tree()), |document| {
        let expected = Tree::decode(document.to_string().as_bytes()).ok();
        prop_assert_eq!(Tree::decode(reversed(&document).to_string().as_bytes()).ok(), expected);
        Ok(())
    });
}

#[test]
fn longer_keys_tolerate_more_typos() {
    let known = ["max_attempts_default", "on_stuck"];
    assert_eq!(nearest("the_max_attempts_default", &known), Some("max_attempts_default"));
    assert_eq!(nearest("xxon_stuckxx", &known), None);
}

#[test]
fn missing_object_is_reported_although_another_exists() {
    let mut fields = FieldReader::of_json(r#"{"a": {}}"#).unwrap();
    assert_eq!(fields.required_object::<BTreeMap<String, bool>>("b"), None);
    assert_eq!(fields.required_object::<BTreeMap<String, bool>>("a"), Some(BTreeMap::new()));
    assert_eq!(messages(&fields.finish()), ["line 1: `b` is missing"]);
}

#[test]
fn value_instead_of_an_object_is_reported_in_full() {
    let mut fields =
        FieldReader::of_json(r#"{"a": "x at line 5", "b": {}, "c": {"k": "y at line 6"}}"#).unwrap();
    assert_eq!(fields.optional_object::<BTreeMap<String, bool>>("a"), None);
    assert_eq!(fields.optional_object::<BTreeMap<String, bool>>("b"), Some(BTreeMap::new()));
    assert_eq!(fields.optional_object::<BTreeMap<String, bool>>("c"), None);
    assert_eq!(
        messages(&fields.finish()),
        [
            "line 1: `a` is invalid: invalid type: string \"x at line 5\", expected a map",
            "line 1: `c` is invalid: invalid type: string \"y at line 6\", expected a boolean"
        ]
    );
}

#[test]
fn only_the_invalid_key_has_a_problem() {
    let mut fields = FieldReader::of_toml("a = 1\n[t]\na = \"x\"\nb = 1\n");
    let faults = fields.table("t", |table| {
        let before = table.has_problem("a");
        assert_eq!((table.optional::<u8>("a"), table.optional::<u8>("b")), (None, Some(1)));
        (before, table.has_problem("a"), table.has_problem("b"))
    });
    assert_eq!(faults, (false, true, false));
    assert!(!fields.has_problem("a"), "another key of the same name");
}

#[test]
fn document_that_is_not_an_object_is_reported() {
    let problem = FieldReader::of_json("[]").err().map(|problem| problem.to_string());
    assert_eq!(problem.as_deref(), Some("line 1: invalid type: sequence, expected an object"));
}

#[test]
fn acceptance_criterion_of_the_goal_may_span_lines() {
    let text = "# Title\n\nText\nof it.\n\n## Acceptance\n\n- one\n  two\n- three\n\n  four\n";
    let summary = Goal::parse(text.as_bytes()).unwrap().summary();
    assert_eq!(summary.title, "Title");
    assert_eq!(summary.acceptance, ["one two", "three four"]);
}

#[test]
fn scenario_session_can_match_a_mode() {
    let scenario = Scenario::decode("[[session]]\nwhen = { mode = \"repair\" }\n").unwrap();
    let matches_mode =
        |mode| scenario.session_for(SessionContext { iter: 1, node: "a", attempts: 0, mode }).is_some();
    assert!(matches_mode("repair") && !matches_mode("leaf"));
}

fn tree_problems(bytes: &[u8]) -> Vec<String> {
    Tree::decode(bytes).unwrap_err().iter().map(ToString::to_string).collect()
}

/// A document whose root has these children, as JSON texts.
fn with_children(children: &[String]) -> String {
    let root = leaf("root").replace("\"children\":[]", &format!("\"children\":[{}]", children.join(",")));
    format!("{{\"version\":1,\"root\":{root}}}")
}

fn leaf(id: &str) -> String {
    format!(
        "{{\"id\":\"{id}\",\"order\":0,\"title\":\"\",\"goal\":\"\",\"acceptance\":[],\"passes\":false,\
         \"attempts\":0,\"max_attempts\":1,\"children\":[]}}"
    )
}

#[test]
fn document_of_the_maximum_size_is_read() {
    let blank = |bytes: usize| tree_problems(&vec![b' '; bytes]);
    assert!(!blank(BYTES_MAX)[0].contains("bytes"), "{:?}", blank(BYTES_MAX));
    assert!(blank(BYTES_MAX + 1)[0].contains("67108865 bytes"), "{:?}", blank(BYTES_MAX + 1));
}

#[test]
fn long_id_is_truncated_in_messages() {
    let long = "é".repeat(150);
    let expected = format!("\"{}…\" is 300 bytes long", "é".repeat(100));
    let problems = tree_problems(with_children(&[leaf(&long)]).as_bytes());
    assert!(problems[0].contains(&expected), "{problems:?}");
    let short = tree_problems(with_children(&[leaf("é")]).as_bytes());
    assert!(short[0].contains("\"é\""), "{short:?}");
}

#[test]
fn uniqueness_is_not_checked_in_a_document_that_was_not_read_completely() {
    let twice = [leaf("same"), leaf("same")];
    let mentions_id = |problems: &[String]| problems.iter().any(|problem| problem.contains("same"));
    assert!(mentions_id(&tree_problems(with_children(&twice).as_bytes())));
    let many: Vec<String> =
        twice.iter().cloned().chain((0..NODES_MAX).map(|nth| leaf(&format!("n{nth}")))).collect();
    let problems = tree_problems(with_children(&many).as_bytes());
    assert_eq!(problems, ["the tree has more than 100000 nodes: remove some"]);
    let odd = leaf("odd").replacen('{', "{\"unknown\":1,", 1);
    let invalid: Vec<String> = twice.into_iter().chain(vec![odd; 10_001]).collect();
    let problems = tree_problems(with_children(&invalid).as_bytes());
    assert!(!mentions_id(&problems) && problems.last().unwrap().contains("more"), "{problems:?}");
}

#[test]
fn unreadable_ids_are_not_reported_as_duplicates() {
    let odd = leaf("x").replace("\"x\"", "7");
    let problems = tree_problems(with_children(&[odd.clone(), odd]).as_bytes());
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(!problems.iter().any(|problem| problem.contains("is also the id")), "{problems:?}");
}
