//! The documentation of the configuration, generated from the schema: the file that `runner init` writes, and the reference
//! page.

use serde_json::{Map, Value};

use super::Config;

/// One key, or a table of keys, as the schema describes it.
pub(super) struct ReferenceEntry {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) schema: Value,
    pub(super) default: Option<Value>,
    pub(super) keys: Vec<ReferenceEntry>,
    pub(super) form: KeyForm,
}

/// How a key is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyForm {
    /// A key, or a table of keys.
    Table,
    /// A table that is absent by default.
    OptionalTable,
    /// A list of tables, `[[ladder]]`, empty by default.
    List,
    /// A table of tables with names that the user chooses.
    Named,
}

impl KeyForm {
    /// Whether the keys can be set one by one.
    pub(super) fn is_table(self) -> bool {
        matches!(self, Self::Table | Self::OptionalTable)
    }
}

impl Config {
    /// A file with every key, its description and its default. It decodes to the defaults.
    pub fn documented_file() -> String {
        let mut file = String::from(
            "# Configuration of the runner in this repository.\n\
             # Every key is listed with its default. Changes take effect with the next `runner start`.\n",
        );
        let (tables, keys): (Vec<_>, Vec<_>) =
            entries().into_iter().partition(|entry| !entry.keys.is_empty());
        for key in &keys {
            push_key(&mut file, key);
        }
        for table in &tables {
            file.push('\n');
            push_comment(&mut file, &table.description);
            file.push_str(&header(table));
            for key in &table.keys {
                if table.form == KeyForm::Table {
                    push_key(&mut file, key);
                } else {
                    push_example(&mut file, key);
                }
            }
        }
        file
    }

    /// The reference of all keys, as Markdown.
    pub fn reference() -> String {
        let mut page = String::from("| key | default | allowed | meaning |\n| --- | --- | --- | --- |\n");
        for entry in entries() {
            if entry.keys.is_empty() {
                push_row(&mut page, &entry.name, &entry);
            }
            for key in &entry.keys {
                let middle = if entry.form == KeyForm::Named { ".<name>" } else { "" };
                push_row(&mut page, &format!("{}{middle}.{}", entry.name, key.name), key);
            }
        }
        page
    }
}

pub(super) fn entries() -> Vec<ReferenceEntry> {
    let schema = schemars::schema_for!(Config).to_value();
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    entries_of(&schema, &schema, &defaults)
}

fn entries_of(document: &Value, object: &Value, defaults: &Value) -> Vec<ReferenceEntry> {
    let properties = object.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flat_map(Map::iter);
    properties.map(|(name, schema)| entry_of(document, name, schema, defaults)).collect()
}

fn entry_of(document: &Value, name: &str, schema: &Value, defaults: &Value) -> ReferenceEntry {
    let default = defaults.get(name);
    let definition = |schema: &Value| document.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?);
    let definition_under = |key: &str| schema.get(key).and_then(definition);
    let (form, inner) = match (definition_under("items"), definition_under("additionalProperties")) {
        (Some(item), _) => (KeyForm::List, Some(item)),
        (None, Some(value)) => (KeyForm::Named, Some(value)),
        (None, None) => match definition(schema) {
            Some(table) if default.is_none() => (KeyForm::OptionalTable, Some(table)),
            table => (KeyForm::Table, table),
        },
    };
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    // The keys of a table that is absent by default have no defaults.
    let below = default.filter(|_| form == KeyForm::Table).unwrap_or(&Value::Null);
    ReferenceEntry {
        name: name.to_owned(),
        description: description.split_whitespace().collect::<Vec<_>>().join(" "),
        schema: schema.clone(),
        default: default.cloned(),
        keys: inner.map(|inner| entries_of(document, inner, below)).unwrap_or_default(),
        form,
    }
}

fn push_key(file: &mut String, key: &ReferenceEntry) {
    file.push('\n');
    push_comment(file, &key.description);
    let line = match &key.default {
        Some(default) => format!("{} = {}\n", key.name, toml_text(default)),
        None => format!("# {} = {}\n", key.name, toml_text(&example_of(key))),
    };
    file.push_str(&line);
}

/// The header of a table; commented out if the table is absent by default.
fn header(table: &ReferenceEntry) -> String {
    match table.form {
        KeyForm::Table => format!("[{}]\n", table.name),
        KeyForm::OptionalTable => format!("# [{}]\n", table.name),
        KeyForm::List => format!("# [[{}]]\n", table.name),
        KeyForm::Named => format!("# [{}.{}]\n", table.name, toml_text(&example_of(table))),
    }
}

/// A key of a table that is commented out.
fn push_example(file: &mut String, key: &ReferenceEntry) {
    file.push_str(&format!("# {} = {}\n", key.name, toml_text(&example_of(key))));
}

fn example_of(key: &ReferenceEntry) -> Value {
    key.schema.pointer("/examples/0").or(key.schema.get("default")).cloned().unwrap_or_default()
}

/// The text as comment lines of at most 100 characters.
fn push_comment(file: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split(' ') {
        if line.len() + 1 + word.len() > 100 {
            file.push_str(&line);
            file.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    file.push_str(&line);
    file.push('\n');
}

/// A value of the configuration as TOML. Scalars are the same in TOML and JSON.
pub(super) fn toml_text(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(toml_text).collect::<Vec<_>>().join(", ")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

fn push_row(page: &mut String, name: &str, key: &ReferenceEntry) {
    let default = key.default.as_ref().map(|value| format!("`{}`", toml_text(value)));
    let default = default.unwrap_or_else(|| "none".to_owned());
    let row = format!("| `{name}` | {default} | {} | {} |\n", allowed(&key.schema), key.description);
    page.push_str(&row);
}

pub(super) fn allowed(schema: &Value) -> String {
    let bound = |name: &str| schema.get(name).map(ToString::to_string);
    if let (Some(min), Some(max)) = (bound("minimum"), bound("maximum")) {
        return format!("{min} to {max}");
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        let values = values.iter().filter(|value| !value.is_null());
        return values.map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    }
    let type_name = schema.get("type").map(ToString::to_string).unwrap_or_default();
    if type_name.contains("array") {
        "a list of strings".to_owned()
    } else if type_name.contains("boolean") {
        "`true`, `false`".to_owned()
    } else {
        "a string".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_file_has_every_key_and_decodes_to_the_defaults() {
        let file = Config::documented_file();
        assert_eq!(Config::decode(file.as_bytes()), Ok(Config::default()));
        for entry in entries() {
            assert!(!entry.description.is_empty(), "{} has no description", entry.name);
            for key in entry.keys {
                assert!(file.contains(&format!("{} = ", key.name)), "{} is missing", key.name);
                assert!(!key.description.is_empty(), "{} has no description", key.name);
            }
        }
        assert!(file.lines().all(|line| line.len() <= 100), "a line is too long");
    }
}
