//! Facts about reading that hold for every document, whichever way through it is taken.

use std::collections::BTreeMap;

use proptest::prelude::*;
use runner_core::agents::scenario::{Scenario, SessionContext};
use runner_core::model::goal::Goal;
use runner_core::model::tree::{BYTES_MAX, NODES_MAX, Tree};
use runner_core::strict::{FieldReader, nearest};
use serde_json::{Map, Value};

use crate::document_properties::{changed, tree};
use crate::holds;
use crate::told;

/// The same document with the keys of every object in the opposite order.
fn turned(document: &Value) -> Value {
    match document {
        Value::Object(fields) => {
            let turned: Map<String, Value> =
                fields.iter().rev().map(|(key, value)| (key.clone(), turned(value))).collect();
            Value::Object(turned)
        }
        Value::Array(items) => Value::Array(items.iter().map(turned).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => document.clone(),
    }
}

#[test]
fn the_order_of_the_keys_decides_nothing() {
    holds(changed(tree()), |document| {
        let (one, other) = (document.to_string(), turned(&document).to_string());
        prop_assert_eq!(Tree::decode(one.as_bytes()).ok(), Tree::decode(other.as_bytes()).ok());
        Ok(())
    });
}

#[test]
fn a_long_key_may_have_more_wrong_letters_than_a_short_one() {
    let known = ["max_attempts_default", "on_stuck"];
    assert_eq!(nearest("the_max_attempts_default", &known), Some("max_attempts_default"));
    assert_eq!(nearest("xxon_stuckxx", &known), None);
}

#[test]
fn a_missing_object_is_told_although_another_is_there() {
    let mut fields = FieldReader::of_json(r#"{"a": {}}"#).unwrap();
    assert_eq!(fields.required_object::<BTreeMap<String, bool>>("b"), None);
    assert_eq!(fields.required_object::<BTreeMap<String, bool>>("a"), Some(BTreeMap::new()));
    assert_eq!(told(&fields.finish()), ["line 1: `b` is missing"]);
}

#[test]
fn a_value_in_the_place_of_an_object_is_told_whole() {
    let mut fields =
        FieldReader::of_json(r#"{"a": "x at line 5", "b": {}, "c": {"k": "y at line 6"}}"#).unwrap();
    assert_eq!(fields.optional_object::<BTreeMap<String, bool>>("a"), None);
    assert_eq!(fields.optional_object::<BTreeMap<String, bool>>("b"), Some(BTreeMap::new()));
    assert_eq!(fields.optional_object::<BTreeMap<String, bool>>("c"), None);
    assert_eq!(
        told(&fields.finish()),
        [
            "line 1: `a` is invalid: invalid type: string \"x at line 5\", expected a map",
            "line 1: `c` is invalid: invalid type: string \"y at line 6\", expected a boolean"
        ]
    );
}

#[test]
fn only_the_key_that_was_found_at_fault_is() {
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
fn a_document_that_is_no_object_is_told_as_one() {
    let problem = FieldReader::of_json("[]").err().map(|problem| problem.to_string());
    assert_eq!(problem.as_deref(), Some("line 1: invalid type: sequence, expected an object"));
}

#[test]
fn a_point_of_the_goal_may_go_over_several_lines() {
    let text = "# Title\n\nText\nof it.\n\n## Acceptance\n\n- one\n  two\n- three\n\n  four\n";
    let summary = Goal::parse(text.as_bytes()).unwrap().summary();
    assert_eq!(summary.title, "Title");
    assert_eq!(summary.acceptance, ["one two", "three four"]);
}

#[test]
fn a_session_of_a_scenario_may_wait_for_its_mode() {
    let scenario = Scenario::decode("[[session]]\nwhen = { mode = \"repair\" }\n").unwrap();
    let is_played =
        |mode| scenario.session_for(SessionContext { iter: 1, node: "a", attempts: 0, mode }).is_some();
    assert!(is_played("repair") && !is_played("leaf"));
}

fn faults(bytes: &[u8]) -> Vec<String> {
    Tree::decode(bytes).unwrap_err().iter().map(ToString::to_string).collect()
}

/// A document with these texts in the list of the root's children.
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
fn a_document_may_have_as_many_bytes_as_are_allowed() {
    let blank = |bytes: usize| faults(&vec![b' '; bytes]);
    assert!(!blank(BYTES_MAX)[0].contains("bytes"), "{:?}", blank(BYTES_MAX));
    assert!(blank(BYTES_MAX + 1)[0].contains("67108865 bytes"), "{:?}", blank(BYTES_MAX + 1));
}

#[test]
fn of_a_long_id_only_the_beginning_is_shown() {
    let long = "é".repeat(150);
    let shown = format!("\"{}…\" is 300 bytes long", "é".repeat(100));
    let found = faults(with_children(&[leaf(&long)]).as_bytes());
    assert!(found[0].contains(&shown), "{found:?}");
    let short = faults(with_children(&[leaf("é")]).as_bytes());
    assert!(short[0].contains("\"é\""), "{short:?}");
}

#[test]
fn a_document_that_was_not_read_whole_is_not_held_to_rules_about_the_whole() {
    let twice = [leaf("same"), leaf("same")];
    let is_told = |found: &[String]| found.iter().any(|fault| fault.contains("same"));
    assert!(is_told(&faults(with_children(&twice).as_bytes())));
    let many: Vec<String> =
        twice.iter().cloned().chain((0..NODES_MAX).map(|nth| leaf(&format!("n{nth}")))).collect();
    let found = faults(with_children(&many).as_bytes());
    assert_eq!(found, ["the tree has more than 100000 nodes: remove some"]);
    let odd = leaf("odd").replacen('{', "{\"unknown\":1,", 1);
    let faulty: Vec<String> = twice.into_iter().chain(vec![odd; 10_001]).collect();
    let found = faults(with_children(&faulty).as_bytes());
    assert!(!is_told(&found) && found.last().unwrap().contains("more"), "{found:?}");
}

#[test]
fn ids_that_cannot_be_read_are_not_told_to_be_alike() {
    let odd = leaf("x").replace("\"x\"", "7");
    let found = faults(with_children(&[odd.clone(), odd]).as_bytes());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(!found.iter().any(|fault| fault.contains("is also the id")), "{found:?}");
}
