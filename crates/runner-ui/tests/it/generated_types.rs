//! The page's types are made from the server's.

use std::path::Path;

use runner_ui::api::{ApiTypes, outcome_words};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

const FILE: &str = "../../ui/src/lib/types.ts";

/// A schema as a type of TypeScript.
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
            let one = |name: &Value| {
                let mut schema = schema.clone();
                schema.insert("type".to_owned(), name.clone());
                type_of(&Value::Object(schema))
            };
            types.iter().map(one).collect::<Vec<_>>().join(" | ")
        }
        Some(Value::String(name)) => simple(name, schema),
        _ => "unknown".to_owned(),
    }
}

fn simple(name: &str, schema: &Map<String, Value>) -> String {
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

/// What an object holds whose keys are any text, or any number.
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
    let mut text =
        String::from("// Made from crates/runner-ui/src/api.rs: `just generate` writes it anew.\n");
    for (name, schema) in schema["$defs"].as_object().expect("types") {
        text.push('\n');
        text.push_str(&comment(schema, ""));
        let is_plain = schema.get("properties").is_some();
        if !is_plain {
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
    let words: Vec<String> = outcome_words().iter().map(|word| format!("  \"{word}\",\n")).collect();
    text.push_str("\n/** How an iteration can end, as far as this version knows. */\n");
    text.push_str(&format!("export const OUTCOMES = [\n{}] as const;\n", words.concat()));
    text
}

#[test]
fn the_file_of_the_pages_types_is_generated() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let text = generated();
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "{FILE} is stale: run `just generate`");
}
