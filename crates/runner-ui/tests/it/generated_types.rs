//! Generates `ui/src/lib/types.ts`: the API's types, and the labels that the page shares with the terminal.

use std::path::Path;

use runner_core::labels::{Label, NodeState, Tone};
use runner_core::model::checks::CheckName;
use runner_core::model::cost::BudgetLimit;
use runner_core::model::id::NodeId;
use runner_core::run_status::LifecycleState;
use runner_core::step::{Interruption, Outcome, StopReason};
use runner_ui::api::ApiTypes;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

const FILE: &str = "../../ui/src/lib/types.ts";

/// The TypeScript type of a schema.
fn type_of(schema: &Value) -> String {
    let Some(schema) = schema.as_object() else { return "unknown".to_owned() };
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ");
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(options) = schema.get(key).and_then(Value::as_array) {
            return options.iter().map(type_of).collect::<Vec<_>>().join(" | ");
        }
    }
    match schema.get("type") {
        Some(Value::Array(types)) => {
            let single = |name: &Value| {
                let mut schema = schema.clone();
                schema.insert("type".to_owned(), name.clone());
                type_of(&Value::Object(schema))
            };
            types.iter().map(single).collect::<Vec<_>>().join(" | ")
        }
        Some(Value::String(name)) => single_type(name, schema),
        _ => "unknown".to_owned(),
    }
}

fn single_type(name: &str, schema: &Map<String, Value>) -> String {
    match name {
        "string" => "string".to_owned(),
        "integer" | "number" => "number".to_owned(),
        "boolean" => "boolean".to_owned(),
        "null" => "null".to_owned(),
        "array" => {
            let item = schema.get("items").map_or_else(|| "unknown".to_owned(), type_of);
            if item.contains(' ') { format!("({item})[]") } else { format!("{item}[]") }
        }
        _ => match values(schema) {
            Some(values) => format!("Record<string, {}>", type_of(values)),
            None => format!("{{ {} }}", fields(schema).join("; ")),
        },
    }
}

/// The schema of the values of an object whose keys are arbitrary strings or numbers.
fn values(schema: &Map<String, Value>) -> Option<&Value> {
    let numbered =
        schema.get("patternProperties").and_then(Value::as_object).and_then(|all| all.values().next());
    numbered.or_else(|| schema.get("additionalProperties").filter(|values| values.is_object()))
}

fn fields(schema: &Map<String, Value>) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, schema)| format!("{name}: {}", type_of(schema))).collect()
}

fn comment(schema: &Value, indent: &str) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = text.replace('\n', " ");
    if text.is_empty() { String::new() } else { format!("{indent}/** {text} */\n") }
}

fn generated() -> String {
    let schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<ApiTypes>();
    let schema: Value = schema.into();
    let mut text = String::from(
        "// Generated from crates/runner-ui/src/api.rs and crates/runner-core/src/labels.rs by `just generate`.\n",
    );
    for (name, schema) in schema["$defs"].as_object().expect("types") {
        text.push('\n');
        text.push_str(&comment(schema, ""));
        let is_interface = schema.get("properties").is_some();
        if !is_interface {
            text.push_str(&format!("export type {name} = {};\n", type_of(schema)));
            continue;
        }
        text.push_str(&format!("export interface {name} {{\n"));
        for (field, schema) in schema["properties"].as_object().expect("fields") {
            text.push_str(&comment(schema, "  "));
            text.push_str(&format!("  {field}: {};\n", type_of(schema)));
        }
        text.push_str("}\n");
    }
    text + &label_tables()
}

fn label_tables() -> String {
    let tones: Vec<String> = Tone::ALL.into_iter().map(|tone| format!("{:?}", tone.as_str())).collect();
    let mut text = format!("\nexport type Tone = {};\n", tones.join(" | "));
    text.push_str("\nexport interface Label {\n  text: string;\n  glyph: string;\n  tone: Tone;\n}\n");
    text += &label_table(
        "STATE_LABELS: Record<LifecycleState, Label>",
        LifecycleState::ALL.map(|state| (state.as_str(), state.label())),
    );
    text += &label_table(
        "STOP_LABELS: Record<StopReason[\"reason\"], Label>",
        stop_reasons().iter().map(|stop| (stop.as_str(), stop.label())),
    );
    text += &label_table(
        "NODE_LABELS: Record<NodeState, Label>",
        NodeState::ALL.map(|state| (state.as_str(), state.label())),
    );
    text.push_str("\n/** The outcomes that this version knows. */");
    text += &label_table(
        "OUTCOME_LABELS: Record<string, Label>",
        Outcome::ALL.map(|outcome| (outcome.as_str(), outcome.label())),
    );
    text
}

fn label_table<'n>(declaration: &str, labels: impl IntoIterator<Item = (&'n str, Label)>) -> String {
    let mut text = format!("\nexport const {declaration} = {{\n");
    for (name, label) in labels {
        let (glyph, tone) = (label.symbol.glyph(), label.tone.as_str());
        text.push_str(&format!(
            "  {name}: {{ text: {:?}, glyph: {glyph:?}, tone: {tone:?} }},\n",
            label.text
        ));
    }
    text + "};\n"
}

/// Every stop reason that a runner of this version has.
fn stop_reasons() -> Vec<StopReason> {
    vec![
        StopReason::Complete,
        StopReason::Stuck { node: NodeId::root() },
        StopReason::NotReproducible { exit: "1".to_owned() },
        StopReason::Regressed { node: NodeId::root(), check: CheckName::new("x").unwrap(), broken_by: None },
        StopReason::MaxIterations { max: 1 },
        StopReason::LoopIterations { max: 1 },
        StopReason::LoopBudget { limit: BudgetLimit::RunUsd, spent: Some(1), max: 1 },
        StopReason::Budget { limit: BudgetLimit::RunUsd, node: None, spent: 1, max: 1 },
        StopReason::Stalled { iterations: 12 },
        StopReason::TimeLimit { outcome: Outcome::TimedOut },
        StopReason::Failures { outcome: Outcome::NoAnswer, in_row: 3 },
        StopReason::NeedsUser { outcome: Outcome::NotLoggedIn },
        StopReason::VacuousChecks { node: NodeId::root(), checks: Vec::new() },
        StopReason::NotApproved,
        StopReason::Interrupted { by: Interruption::Int },
        StopReason::UserStop,
    ]
}

#[test]
fn page_types_file_is_generated() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let text = generated();
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "{FILE} is stale: run `just generate`");
}
