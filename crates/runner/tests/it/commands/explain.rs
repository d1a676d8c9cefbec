//! `runner explain`: every code that a user can meet has an explanation.

use runner_core::step::Outcome;
use runner_core::verify::Rule;
use testkit::test_repo::TestRepo;

use crate::RUNNER;

#[test]
fn the_code_of_an_error_can_be_explained() {
    let repo = TestRepo::with_commit(RUNNER);
    let error = repo.runner(&["log", "--json", "--run", "nowhere"]).refused(2);
    let document: serde_json::Value = serde_json::from_str(&error).unwrap();
    let code = document["code"].as_str().unwrap();
    let page = repo.runner(&["explain", code]).ok();
    assert!(page.stdout.starts_with(&format!("code={code} kind=error text=\"")), "{}", page.stdout);
}

#[test]
fn outcomes_rules_and_stop_reasons_are_explained() {
    let repo = TestRepo::with_commit(RUNNER);
    let list = repo.runner(&["explain", "--json"]).ok();
    let list: serde_json::Value = serde_json::from_str(&list.stdout).unwrap();
    let is_listed = |kind: &str, code: &str| {
        let codes = list["codes"].as_array().unwrap();
        codes.iter().any(|entry| entry["kind"] == kind && entry["code"] == code)
    };
    for outcome in Outcome::ALL {
        assert!(is_listed("outcome of an iteration", outcome.as_str()), "{outcome}");
    }
    for rule in Rule::ALL {
        assert!(is_listed("rule of 'runner verify'", rule.as_str()), "{rule}");
    }
    let reasons = stop_reasons();
    assert!(reasons.len() > 10, "{reasons:?}");
    for reason in reasons {
        assert!(is_listed("stop reason", &reason), "{reason}");
    }
}

/// The names of all stop reasons, from the schema that is generated from their type.
fn stop_reasons() -> Vec<String> {
    let schema = include_str!("../../../../../schemas/event.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let variants = schema.pointer("/$defs/StopReason/oneOf").and_then(serde_json::Value::as_array).unwrap();
    let name = |variant: &serde_json::Value| {
        variant.pointer("/properties/reason/const").and_then(serde_json::Value::as_str).unwrap().to_owned()
    };
    variants.iter().map(name).collect()
}

#[test]
fn an_unknown_code_is_refused_with_the_nearest_one() {
    let repo = TestRepo::with_commit(RUNNER);
    let error = repo.runner(&["explain", "dirtyy"]).refused(2);
    assert!(error.contains("did you mean `dirty`?"), "{error}");
}
