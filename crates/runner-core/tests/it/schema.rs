//! Compares the schemas with the decoders.
//!
//! Only the *shape* is compared: a decoder reports no shape problem exactly if the schema (validated by the `jsonschema`
//! crate) accepts the same document. Problems that a schema cannot express do not count: duplicate ids, order, attempts over
//! their maximum, passes, the depth, node count and size of a tree, and rules between the keys of `[executor]`.

use std::sync::LazyLock;

use jsonschema::Validator;
use proptest::prelude::*;
use runner_core::config::Config;
use runner_core::model::agent_output::AgentOutput;
use runner_core::model::review::ReviewAnswer;
use runner_core::model::run_state::RunState;
use runner_core::model::tools::Tools;
use runner_core::model::tree::{Tree, TreeError};
use runner_core::schema::SchemaDocument;
use runner_core::step::{Event, IterationMeta, RecordedEvent, RecordedIteration};
use runner_core::strict::{DocumentFault, DocumentProblem, DocumentProblems};
use serde_json::{Value, json};

use crate::document_properties::{agent_output, changed, config, run_state, toml_of, tree, without_null};
use crate::holds;
use crate::messages;

/// Asserts that the recorded line of an event matches the event schema.
pub(crate) fn assert_recorded_as_described(event: &Event) {
    static EVENTS: LazyLock<Validator> = LazyLock::new(|| validator(SchemaDocument::Event));
    let line = serde_json::to_value(RecordedEvent { t_ms: 1, event }).unwrap();
    let faults: Vec<String> = EVENTS.iter_errors(&line).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{line:#}: {faults:#?}");
}

/// Asserts that the record of an iteration matches its schema.
pub(crate) fn assert_record_as_described(meta: &IterationMeta) {
    static RECORDS: LazyLock<Validator> = LazyLock::new(|| validator(SchemaDocument::Iteration));
    let record = serde_json::to_value(RecordedIteration::new(meta.clone())).unwrap();
    let faults: Vec<String> = RECORDS.iter_errors(&record).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{record:#}: {faults:#?}");
}

#[test]
fn event_schema_rejects_invalid_lines() {
    let validator = validator(SchemaDocument::Event);
    let good = json!({ "t_ms": 1, "event": "agent", "iter": 1, "seq": 1, "kind": "finished" });
    assert!(validator.is_valid(&good));
    for (key, value) in
        [("event", json!("odd")), ("kind", json!("odd")), ("t_ms", json!("now")), ("seq", json!(null))]
    {
        let mut bad = good.clone();
        bad[key] = value;
        assert!(!validator.is_valid(&bad), "{bad}");
    }
}

fn validator(document: SchemaDocument) -> Validator {
    jsonschema::validator_for(&document.schema().to_value()).unwrap()
}

fn is_tree_shape(fault: &TreeError) -> bool {
    match fault {
        TreeError::Syntax { .. }
        | TreeError::Missing(_)
        | TreeError::Unknown { .. }
        | TreeError::Twice(_)
        | TreeError::WrongKind { .. }
        | TreeError::OutOfRange { .. }
        | TreeError::BadId { .. } => true,
        TreeError::TooLarge(_)
        | TreeError::CanonicalTooLarge(_)
        | TreeError::DuplicateId { .. }
        | TreeError::TooDeep
        | TreeError::TooManyNodes
        | TreeError::Unsorted { .. }
        | TreeError::AttemptsOverMax { .. }
        | TreeError::PassesTooEarly { .. }
        | TreeError::PassesTooLate
        | TreeError::Omitted(_) => false,
    }
}

/// The messages of the shape problems that the decoder reports.
fn shape_problems(document: SchemaDocument, text: &str) -> Vec<String> {
    let shape_only = |result: Result<(), Vec<DocumentProblem>>| {
        let mut problems = result.err().unwrap_or_default();
        problems.retain(|problem| !matches!(problem.fault, DocumentFault::Rule(_)));
        messages(&problems)
    };
    match document {
        SchemaDocument::Tree => {
            let mut problems = Tree::decode(text.as_bytes()).err().unwrap_or_default();
            problems.retain(|problem| is_tree_shape(&problem.fault));
            messages(&problems)
        }
        SchemaDocument::RunState => shape_only(RunState::decode(text.as_bytes()).map(drop)),
        SchemaDocument::AgentOutput => shape_only(AgentOutput::decode(text.as_bytes()).map(drop)),
        SchemaDocument::Review => shape_only(ReviewAnswer::decode(text.as_bytes()).map(drop)),
        SchemaDocument::Config => shape_only(Config::decode(text.as_bytes()).map(drop)),
        SchemaDocument::Tools => {
            shape_only(Tools::decode(text.as_bytes()).map(drop).map_err(DocumentProblems::into_vec))
        }
        SchemaDocument::Event => vec!["events have no decoder".to_owned()],
        SchemaDocument::Iteration => vec!["records ignore what they do not know".to_owned()],
    }
}

fn check_agreement(
    document: SchemaDocument,
    validator: &Validator,
    value: &Value,
    text: &str,
) -> Result<(), TestCaseError> {
    let problems = shape_problems(document, text);
    let is_valid = validator.is_valid(value);
    prop_assert_eq!(problems.is_empty(), is_valid, "{}\nthe decoder reports {:#?}", text, problems);
    Ok(())
}

fn assert_json_agreement(document: SchemaDocument, good: impl Strategy<Value = Value>) {
    let validator = validator(document);
    holds(changed(good), |value| check_agreement(document, &validator, &value, &value.to_string()));
}

#[test]
fn tree_schema_and_decoder_agree_on_any_document() {
    assert_json_agreement(SchemaDocument::Tree, tree());
}

#[test]
fn run_state_schema_and_decoder_agree_on_any_document() {
    assert_json_agreement(SchemaDocument::RunState, run_state());
}

#[test]
fn answer_schema_and_decoder_agree_on_any_document() {
    assert_json_agreement(SchemaDocument::AgentOutput, agent_output());
}

#[test]
fn config_schema_and_decoder_agree_on_any_document() {
    let validator = validator(SchemaDocument::Config);
    holds((changed(config()), any::<bool>()), |(value, with_headers)| {
        let value = without_null(value);
        let Value::Object(file) = &value else { return Ok(()) };
        check_agreement(SchemaDocument::Config, &validator, &value, &toml_of(file, with_headers))
    });
}

/// Whether the schema and the decoder accept the document.
fn acceptance(document: SchemaDocument, value: &Value) -> (bool, bool) {
    let toml =
        value.as_object().filter(|_| document == SchemaDocument::Config).map(|file| toml_of(file, true));
    let text = toml.unwrap_or_else(|| value.to_string());
    (validator(document).is_valid(value), shape_problems(document, &text).is_empty())
}

/// A leaf as a document, with one field changed.
fn leaf(field: &str, value: Value) -> Value {
    let mut node = json!({
        "id": "root", "order": 0, "title": "", "goal": "", "acceptance": [], "passes": false, "attempts": 0,
        "max_attempts": 1, "children": [],
    });
    node[field] = value;
    json!({ "version": 1, "root": node })
}

#[test]
fn schema_and_decoder_agree_on_example_trees() {
    let long = "x".repeat(128);
    let good = [
        leaf("title", json!("日本\u{0}")),
        leaf("id", json!("...")),
        leaf("id", json!(long)),
        leaf("order", json!(1.0)),
        leaf("order", json!(-0.0)),
        leaf("order", json!(1e15)),
        leaf("order", json!(9_007_199_254_740_991_i64)),
        leaf("order", json!(-9_007_199_254_740_991_i64)),
        leaf("attempts", json!(1e2)),
        leaf("max_attempts", json!(1_000_000)),
        json!({ "root": leaf("id", json!("a"))["root"], "version": 1.0 }),
    ];
    let bad = [
        leaf("id", json!("")),
        leaf("id", json!(".")),
        leaf("id", json!("..")),
        leaf("id", json!("a\n")),
        leaf("id", json!("ä")),
        leaf("id", json!(format!("{long}x"))),
        leaf("order", json!(1.5)),
        leaf("order", json!(9_007_199_254_740_992_i64)),
        leaf("order", json!(i64::MIN)),
        leaf("order", json!(u64::MAX)),
        leaf("order", json!(1e300)),
        leaf("attempts", json!(-1)),
        leaf("attempts", json!(1_000_001)),
        leaf("max_attempts", json!(0)),
        leaf("acceptance", json!(["a", null])),
        leaf("children", json!([{}])),
        leaf("note", json!(1)),
        json!({ "version": 2, "root": leaf("id", json!("a"))["root"] }),
        json!({ "version": true, "root": leaf("id", json!("a"))["root"] }),
        json!({ "version": 1 }),
        json!([]),
        json!(null),
    ];
    for (documents, expected) in [(&good[..], true), (&bad[..], false)] {
        for value in documents {
            assert_eq!(acceptance(SchemaDocument::Tree, value), (expected, expected), "{value}");
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a flat list of examples")]
fn schema_and_decoder_agree_on_example_documents() {
    let state = |key: &str, value: Value| {
        let fresh = runner_core::model::run_state::RunState::new(None).to_bytes();
        let mut state: Value = serde_json::from_slice(&fresh).unwrap();
        state[key] = value;
        state
    };
    let repair = |mode: &str| json!({ "iter": 1, "node": "a", "mode": mode, "tries": 0, "rejected": "{", "errors": ["e"], "errors_omitted": 0 });
    use SchemaDocument::{AgentOutput, Config, RunState};
    for (document, value, expected) in [
        (AgentOutput, json!({ "status": "done", "summary": "" }), true),
        (AgentOutput, json!({ "status": "Done", "summary": "" }), false),
        (AgentOutput, json!({ "status": { "done": null }, "summary": "" }), false),
        (AgentOutput, json!({ "status": ["done"], "summary": "" }), false),
        (AgentOutput, json!({ "status": "done" }), false),
        (AgentOutput, json!({ "status": "done", "summary": "", "x": 1 }), false),
        (RunState, state("next_iter", json!(4_294_967_295_u32)), true),
        (RunState, state("next_iter", json!(1.0)), true),
        (RunState, state("next_iter", json!(0)), false),
        (RunState, state("next_iter", json!(4_294_967_296_i64)), false),
        (RunState, state("run_id", json!("a.lock.b")), true),
        (RunState, state("run_id", json!("a.lock")), false),
        (RunState, state("run_id", json!(".a")), false),
        (RunState, state("last_status", json!({ "done": null })), false),
        (RunState, state("last_guard", json!("pass")), true),
        (RunState, state("repair", repair("leaf")), true),
        (RunState, state("repair", repair("other")), false),
        (RunState, state("repair", json!({ "iter": 1 })), false),
        (RunState, state("last_outcome", json!("passed")), true),
        (RunState, state("failures_in_row", json!(-1)), false),
        (RunState, json!({}), false),
        (SchemaDocument::Tools, json!({}), true),
        (
            SchemaDocument::Tools,
            json!({ "allow": ["Read"], "deny": [], "network": false, "model": "m" }),
            true,
        ),
        (SchemaDocument::Tools, json!({ "writable": ["/var/cache"] }), true),
        (SchemaDocument::Tools, json!({ "writable": ["cache"] }), false),
        (SchemaDocument::Tools, json!({ "allow": null }), false),
        (SchemaDocument::Tools, json!({ "allow": [""] }), false),
        (SchemaDocument::Tools, json!({ "tools": [] }), false),
        (RunState, state("wait", json!({ "agent": "codex" })), false),
        (RunState, state("spent", json!(null)), false),
        (RunState, state("spent_by_leaf", json!([{ "node": "a", "tokens": -1, "microdollars": 0 }])), false),
        (Config, json!({ "budget": { "run_usd": 1000001 } }), false),
        (Config, json!({ "budget": { "run_tokens": 0 } }), false),
        (Config, json!({ "ladder": [{ "after_attempts": 0 }] }), false),
        (Config, json!({ "ladder": { "model": "m" } }), false),
        (Config, json!({ "prices": { "m": { "input": 1, "other": 2 } } }), false),
        (Config, json!({}), true),
        (Config, json!({ "max_iterations": 200.0 }), true),
        (Config, json!({ "max_iterations": 0 }), false),
        (Config, json!({ "idle_timeout_secs": 0 }), true),
        (Config, json!({ "on_stuck": { "stop": {} } }), false),
        (Config, json!({ "on_stuck": { "stop": [] } }), false),
        (Config, json!({ "guard": { "command": [] } }), false),
        (Config, json!({ "guard": { "command": [""] } }), false),
        (Config, json!({ "guard": { "command": ["just", ""] } }), true),
        (Config, json!({ "guard": [] }), false),
        (Config, json!({ "executor": { "kind": "command", "model": "m" } }), true),
        (Config, json!({ "executor": { "Kind": "codex" } }), false),
    ] {
        assert_eq!(acceptance(document, &value), (expected, expected), "{value}");
    }
}
