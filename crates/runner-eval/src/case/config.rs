//! The `[config]` table of a case: overrides of the runner's configuration, validated by the runner's own rules.

use std::collections::BTreeMap;

use runner_core::config::Config as RunnerConfig;
use runner_core::strict::DocumentProblem;
use serde::{Serialize, Serializer};
use toml::de::{DeTable, DeValue};
use toml::{Table as TomlTable, Value};

use super::CaseTable;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseConfig(TomlTable);

impl Serialize for CaseConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&toml_text(&self.0))
    }
}

impl CaseConfig {
    pub(super) fn read(fields: &mut CaseTable<'_>) -> Self {
        Self(fields.any_value("config").unwrap_or_default())
    }

    /// What the runner's decoder reports, with keys and lines of the case file.
    pub(super) fn problems(&self, lines: &BTreeMap<String, usize>) -> Vec<DocumentProblem> {
        let Err(problems) = RunnerConfig::decode(toml_text(&self.0).as_bytes()) else { return Vec::new() };
        let in_case_file = |problem: DocumentProblem| {
            let key = format!("config.{}", problem.key);
            let line = lines.get(&key).or_else(|| lines.get("config")).copied().unwrap_or(1);
            DocumentProblem { line, key, ..problem }
        };
        problems.into_iter().map(in_case_file).collect()
    }

    /// The scenario file of a scripted agent.
    pub fn scenario(&self) -> Option<&str> {
        self.executor()?.get("scenario")?.as_str()
    }

    pub fn kind(&self) -> Option<&str> {
        self.executor()?.get("kind")?.as_str()
    }

    fn executor(&self) -> Option<&TomlTable> {
        self.0.get("executor")?.as_table()
    }

    pub fn table(&self) -> &TomlTable {
        &self.0
    }
}

/// The line of every key, by its full name (`config.executor.kind`).
pub(super) fn key_lines(text: &str) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    let (table, _) = DeTable::parse_recoverable(text);
    collect_key_lines(table.get_ref(), "", text, &mut lines);
    lines
}

fn collect_key_lines(table: &DeTable<'_>, prefix: &str, text: &str, lines: &mut BTreeMap<String, usize>) {
    for (key, value) in table {
        let before = text.as_bytes().get(..key.span().start).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let name = format!("{prefix}{}", key.get_ref());
        lines.insert(name.clone(), line);
        if let DeValue::Table(inner) = value.get_ref() {
            collect_key_lines(inner, &format!("{name}."), text, lines);
        }
    }
}

/// A table as a TOML document: one line per key, inner tables inline.
pub fn toml_text(table: &TomlTable) -> String {
    let mut text = String::new();
    for (key, value) in table {
        text.push_str(&format!("{} = {}\n", quoted(key), inline(value)));
    }
    text
}

/// A value as it is written in a TOML document.
pub fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(flag) => flag.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let pairs = table.iter().map(|(key, value)| format!("{} = {}", quoted(key), inline(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A quoted TOML string. JSON uses the same escapes, except for DEL.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_table_decodes_to_the_same_table() {
        let text = "a = 1\nb = \"x\\ny\\u007f\"\nc = [1.0, 2.5]\n[d]\ne = true\n[d.\"f g\"]\nh = []\n";
        let table: TomlTable = text.parse().unwrap();
        assert_eq!(toml_text(&table).parse::<TomlTable>().unwrap(), table);
    }

    #[test]
    fn key_lines_include_nested_keys() {
        let lines = key_lines("a = 1\n[b]\n\nc.d = 2\n");
        assert_eq!(
            lines.into_iter().collect::<Vec<_>>(),
            [("a".to_owned(), 1), ("b".to_owned(), 2), ("b.c".to_owned(), 4), ("b.c.d".to_owned(), 4)]
        );
    }
}
