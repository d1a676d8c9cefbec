//! Facts about reading that hold for every document, whichever way through it is taken.

use std::collections::BTreeMap;

use proptest::prelude::*;
use runner_core::document::{Fields, nearest};
use runner_core::goal::Goal;
use runner_core::scenario::{Scenario, Situation};
use runner_core::tree::Tree;
use serde_json::{Map, Value};

use crate::documents::{changed, tree};
use crate::{holds, told};

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
    let mut fields = Fields::of_json(r#"{"a": {}}"#).unwrap();
    assert_eq!(fields.required_object::<BTreeMap<String, bool>>("b"), None);
    assert_eq!(fields.required_object::<BTreeMap<String, bool>>("a"), Some(BTreeMap::new()));
    assert_eq!(told(&fields.finish()), ["line 1: `b` is missing"]);
}

#[test]
fn a_document_that_is_no_object_is_told_as_one() {
    let problem = Fields::of_json("[]").err().map(|problem| problem.to_string());
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
        |mode| scenario.session_for(Situation { iter: 1, node: "a", attempts: 0, mode }).is_some();
    assert!(is_played("repair") && !is_played("leaf"));
}
