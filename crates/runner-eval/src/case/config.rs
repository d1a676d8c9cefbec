//! The `[config]` table of a case: overrides of the runner's configuration, checked by the runner's own rules.

use std::collections::BTreeMap;

use runner_core::config::Config as RunnerConfig;
use runner_core::strict::DocumentProblem;
use serde::{Serialize, Serializer};
use toml::de::{DeTable, DeValue};
use toml::{Table as TomlTable, Value};

use super::Table;

/// Keys and values as the case has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseConfig(TomlTable);

impl Serialize for CaseConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&toml_text(&self.0))
    }
}

impl CaseConfig {
    pub(super) fn take(fields: &mut Table<'_>) -> Self {
        Self(fields.any_value("config").unwrap_or_default())
    }

    /// What the runner would say about it, told where it stands in the case.
    pub(super) fn problems(&self, lines: &BTreeMap<String, usize>) -> Vec<DocumentProblem> {
        let Err(problems) = RunnerConfig::decode(toml_text(&self.0).as_bytes()) else { return Vec::new() };
        let at_its_place = |problem: DocumentProblem| {
            let key = format!("config.{}", problem.key);
            let line = lines.get(&key).or_else(|| lines.get("config")).copied().unwrap_or(1);
            DocumentProblem { line, key, ..problem }
        };
        problems.into_iter().map(at_its_place).collect()
    }

    /// The scenario that it names, if its agent is a scripted one.
    pub fn scenario(&self) -> Option<&str> {
        self.executor()?.get("scenario")?.as_str()
    }

    /// The kind of agent that it names.
    pub fn kind(&self) -> Option<&str> {
        self.executor()?.get("kind")?.as_str()
    }

    fn executor(&self) -> Option<&TomlTable> {
        self.0.get("executor")?.as_table()
    }

    /// The table itself.
    pub fn table(&self) -> &TomlTable {
        &self.0
    }
}

/// The line of every key, with the tables above it.
pub(super) fn key_lines(text: &str) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    let (table, _) = DeTable::parse_recoverable(text);
    note_lines(table.get_ref(), "", text, &mut lines);
    lines
}

fn note_lines(table: &DeTable<'_>, prefix: &str, text: &str, lines: &mut BTreeMap<String, usize>) {
    for (key, value) in table {
        let before = text.as_bytes().get(..key.span().start).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let name = format!("{prefix}{}", key.get_ref());
        lines.insert(name.clone(), line);
        if let DeValue::Table(inner) = value.get_ref() {
            note_lines(inner, &format!("{name}."), text, lines);
        }
    }
}

/// A table as a TOML document: one line a key, tables within as inline ones.
pub fn toml_text(table: &TomlTable) -> String {
    let mut text = String::new();
    for (key, value) in table {
        text.push_str(&format!("{} = {}\n", quoted(key), inline(value)));
    }
    text
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(is) => is.to_string(),
        Value::Datetime(moment) => moment.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let pairs = table.iter().map(|(key, value)| format!("{} = {}", quoted(key), inline(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A text in quotes. JSON's escapes are TOML's, but for one character.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_written_so_that_it_reads_the_same() {
        let text = "a = 1\nb = \"x\\ny\\u007f\"\nc = [1.0, 2.5]\n[d]\ne = true\n[d.\"f g\"]\nh = []\n";
        let table: TomlTable = text.parse().unwrap();
        assert_eq!(toml_text(&table).parse::<TomlTable>().unwrap(), table);
    }

    #[test]
    fn every_key_has_its_line() {
        let lines = key_lines("a = 1\n[b]\n\nc.d = 2\n");
        assert_eq!(
            lines.into_iter().collect::<Vec<_>>(),
            [("a".to_owned(), 1), ("b".to_owned(), 2), ("b.c".to_owned(), 4), ("b.c.d".to_owned(), 4)]
        );
    }
}
