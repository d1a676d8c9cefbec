//! TOML documents for the strict reader: tables, lists of tables, and tables with names that the user chooses.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::{DocumentFault, DocumentProblem, FieldEntry, FieldReader, UntypedValue, line_of, read_object};
use crate::text::one_line;

/// The keys of a TOML table.
pub type TomlTable<'t> = FieldReader<'t, Spanned<DeValue<'t>>>;

impl UntypedValue for Spanned<DeValue<'_>> {
    fn read<T: DeserializeOwned>(self) -> Result<T, String> {
        if matches!(self.get_ref(), DeValue::Table(_)) {
            return read_object();
        }
        T::deserialize(ValueDeserializer::from(self)).map_err(|error| error.message().to_owned())
    }
}

impl<'t> TomlTable<'t> {
    /// Opens a TOML document. Syntax errors are among the problems at the end.
    pub fn of_toml(text: &'t str) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut fields = Self::of_table(text, 1, String::new(), table.into_inner());
        for error in errors {
            let line = line_of(text, error.span().map_or(0, |span| span.start));
            fields.problems.push(DocumentProblem::syntax(line, error.message()));
        }
        fields
    }

    fn of_table(text: &'t str, line: usize, prefix: String, table: DeTable<'t>) -> Self {
        let mut entries = Vec::with_capacity(table.len());
        for (key, value) in table {
            let line = line_of(text, key.span().start);
            entries.push(FieldEntry { line, key: key.into_inner().into_owned(), value: Some(value) });
        }
        Self { text, line, prefix, entries, known: Vec::new(), problems: Vec::new() }
    }

    /// Takes a table and reads its keys with `read`. An absent table reads as an empty one.
    pub fn table<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Self) -> T) -> T {
        let mut table = DeTable::new();
        let mut line = self.line;
        if let Some((at, value)) = self.take(key) {
            line = at;
            table = self.expect_table(value, line, key, &format!("[{key}]")).unwrap_or_default();
        }
        self.read_table(line, key, table, read)
    }

    /// Takes a value of any type: a table with keys that the user chooses, or that another document defines.
    pub fn any_value<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        let (line, value) = self.take(key)?;
        let read = T::deserialize(ValueDeserializer::from(value));
        read.map_err(|error| self.report(line, key, DocumentFault::Value(one_line(error.message())))).ok()
    }

    /// Takes a list of tables and reads the keys of each.
    pub fn tables<T>(&mut self, key: &'static str, mut read: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let Some((line, value)) = self.take(key) else { return Vec::new() };
        let form = format!("[[{key}]]");
        let DeValue::Array(items) = value.into_inner() else {
            let message = format!("expected a list of tables, written as {form}");
            self.report(line, key, DocumentFault::Value(message));
            return Vec::new();
        };
        let mut values = Vec::new();
        for item in items {
            let line = line_of(self.text, item.span().start);
            if let Some(table) = self.expect_table(item, line, key, &form) {
                values.push(self.read_table(line, key, table, &mut read));
            }
        }
        values
    }

    /// Takes a table of tables, each under a name that the user chooses, and reads the keys of each.
    pub fn tables_by_name<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Self) -> T,
    ) -> BTreeMap<String, T> {
        let Some((line, value)) = self.take(key) else { return BTreeMap::new() };
        let table = self.expect_table(value, line, key, &format!("[{key}.name]")).unwrap_or_default();
        let mut values = BTreeMap::new();
        for (name, value) in table {
            let line = line_of(self.text, name.span().start);
            let name = name.into_inner().into_owned();
            let full_key = format!("{key}.{name}");
            if let Some(table) = self.expect_table(value, line, &full_key, &format!("[{key}.\"{name}\"]")) {
                values.insert(name, self.read_table(line, &full_key, table, &mut read));
            }
        }
        values
    }

    /// The value as a table; reports one that is not a table.
    fn expect_table(
        &mut self,
        value: Spanned<DeValue<'t>>,
        line: usize,
        key: &str,
        form: &str,
    ) -> Option<DeTable<'t>> {
        match value.into_inner() {
            DeValue::Table(table) => Some(table),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_) => {
                self.report(line, key, DocumentFault::Value(format!("expected a table, written as {form}")));
                None
            }
        }
    }

    fn read_table<T>(
        &mut self,
        line: usize,
        key: &str,
        table: DeTable<'t>,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut fields = Self::of_table(self.text, line, format!("{}{key}.", self.prefix), table);
        let value = read(&mut fields);
        self.problems.extend(fields.finish());
        value
    }
}
