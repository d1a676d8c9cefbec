//! Strict reading of the small documents: every fault is found, each with its line and key.
//!
//! A document is opened as [`Fields`]; its keys are taken one by one; what is left over at the end is unknown.
//! The task tree has a decoder of its own, because its faults are told by node and not by line.

pub(crate) mod bytes_or_text;
mod canonical;
mod int;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

pub use canonical::canonical_json;
pub use int::{BoundedInt, SAFE_INTEGER_MAX, whole_number};

use crate::text::one_line;

/// One fault in a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DocumentProblem {
    /// The line it stands in, from 1.
    pub line: usize,
    /// The key, with the tables above it (`executor.kind`); empty for the document as a whole.
    pub key: String,
    /// What is wrong with it.
    #[serde(serialize_with = "as_text")]
    pub fault: DocumentFault,
}

fn as_text<S: serde::Serializer>(fault: &DocumentFault, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(fault)
}

/// What can be wrong with a key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DocumentFault {
    /// The text is not of its language at all.
    #[error("{0}")]
    Syntax(String),
    /// A key that the document does not have.
    #[error("is not a known key{}", did_you_mean(.0.as_deref()))]
    Unknown(Option<&'static str>),
    /// A key that must be there.
    #[error("is missing")]
    Missing,
    /// The same key a second time.
    #[error("stands here a second time: keep one of the two")]
    Twice,
    /// A value of the wrong kind or out of its range.
    #[error("{0}")]
    Value(String),
    /// Values that are each good and do not go together.
    #[error("{0}")]
    Rule(String),
}

fn did_you_mean(known: Option<&str>) -> String {
    known.map(|known| format!("; did you mean `{known}`?")).unwrap_or_default()
}

impl fmt::Display for DocumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "`{}` ", self.key.escape_debug())?;
            if matches!(self.fault, DocumentFault::Value(_)) {
                f.write_str("cannot be read: ")?;
            }
        }
        write!(f, "{}", self.fault)
    }
}

/// The known key that a wrong one was most likely meant to be.
pub fn nearest<'k>(wrong: &str, known: &[&'k str]) -> Option<&'k str> {
    // The distance costs as much memory as both lengths multiplied, and what is far too long is no near miss.
    let longest = known.iter().map(|known| known.len()).max()?;
    let wrong = Some(wrong).filter(|wrong| wrong.len() <= 2 * longest)?;
    let distance = |candidate: &str| strsim::damerau_levenshtein(wrong, candidate);
    let best = known.iter().copied().min_by_key(|candidate| distance(candidate))?;
    (distance(best) <= 1 + best.len() / 4).then_some(best)
}

/// A value that has not been read yet.
pub trait UntypedValue {
    /// Reads it as a `T`, or says in words why it is none.
    fn read<T: DeserializeOwned>(self) -> Result<T, String>;
}

impl UntypedValue for &RawValue {
    fn read<T: DeserializeOwned>(self) -> Result<T, String> {
        // By way of a `Value`, so that the message does not name a place within the fragment.
        let value: serde_json::Value = serde_json::from_str(self.get()).map_err(|e| json_fault(&e))?;
        if value.is_object() {
            return read_object();
        }
        T::deserialize(value).map_err(|e| e.to_string())
    }
}

impl UntypedValue for Spanned<DeValue<'_>> {
    fn read<T: DeserializeOwned>(self) -> Result<T, String> {
        if matches!(self.get_ref(), DeValue::Table(_)) {
            return read_object();
        }
        T::deserialize(ValueDeserializer::from(self)).map_err(|e| e.message().to_owned())
    }
}

/// An object where a single value should stand: it always fails, with what was expected instead. No key is read
/// from an object, but serde's enums would take `{"done": null}` for `"done"`.
struct ObjectWhereScalarExpected;

impl<'de> Deserializer<'de> for ObjectWhereScalarExpected {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        Err(serde::de::Error::invalid_type(Unexpected::Map, &visitor))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

fn read_object<T: DeserializeOwned>() -> Result<T, String> {
    T::deserialize(ObjectWhereScalarExpected).map_err(|e| e.to_string())
}

struct FieldEntry<V> {
    key: String,
    line: usize,
    value: Option<V>,
}

/// The keys of one object or table, to be taken one by one.
pub struct FieldReader<'t, V> {
    text: &'t str,
    line: usize,
    prefix: String,
    entries: Vec<FieldEntry<V>>,
    known: Vec<&'static str>,
    problems: Vec<DocumentProblem>,
}

impl<V: UntypedValue> FieldReader<'_, V> {
    /// Takes a key that may be absent.
    pub fn optional<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        let (line, value) = self.take(key)?;
        match value.read() {
            Ok(value) => Some(value),
            Err(why) => {
                self.report(line, key, DocumentFault::Value(one_line(&why)));
                None
            }
        }
    }

    /// Takes a key that must be there.
    pub fn required<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        if !self.entries.iter().any(|entry| entry.key == key) {
            self.report(self.line, key, DocumentFault::Missing);
        }
        self.optional(key)
    }

    /// Whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// Notes that a key's value breaks a rule that concerns other keys too.
    pub fn broken(&mut self, key: &'static str, rule: impl Into<String>) {
        let line = self.entries.iter().find(|entry| entry.key == key).map_or(self.line, |entry| entry.line);
        self.report(line, key, DocumentFault::Rule(rule.into()));
    }

    /// Whether a key was already found at fault.
    pub fn is_at_fault(&self, key: &str) -> bool {
        self.problems.iter().any(|problem| problem.key.strip_prefix(self.prefix.as_str()) == Some(key))
    }

    /// Every fault found, in the order of the lines; keys that were never asked for are among them.
    pub fn finish(mut self) -> Vec<DocumentProblem> {
        let mut seen = BTreeSet::new();
        for FieldEntry { key, line, .. } in std::mem::take(&mut self.entries) {
            if seen.contains(&key) {
                self.report(line, &key, DocumentFault::Twice);
            } else if !self.known.iter().any(|known| *known == key) {
                self.report(line, &key, DocumentFault::Unknown(nearest(&key, &self.known)));
            }
            seen.insert(key);
        }
        self.problems.sort_by_key(|problem| problem.line);
        self.problems
    }

    fn take(&mut self, key: &'static str) -> Option<(usize, V)> {
        self.known.push(key);
        let entry = self.entries.iter_mut().find(|entry| entry.key == key)?;
        let line = entry.line;
        entry.value.take().map(|value| (line, value))
    }

    fn report(&mut self, line: usize, key: &str, fault: DocumentFault) {
        self.problems.push(DocumentProblem { line, key: format!("{}{key}", self.prefix), fault });
    }
}

impl<'t> FieldReader<'t, Spanned<DeValue<'t>>> {
    /// Opens a TOML document; what is wrong with its syntax is among the problems at the end.
    pub fn of_toml(text: &'t str) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        let problem = |error: toml::de::Error| DocumentProblem {
            line: line_of(text, error.span().map_or(0, |span| span.start)),
            key: String::new(),
            fault: DocumentFault::Syntax(error.message().to_owned()),
        };
        let problems = errors.into_iter().map(problem).collect();
        Self { problems, ..Self::of_table(text, 1, String::new(), table.into_inner()) }
    }

    fn of_table(text: &'t str, line: usize, prefix: String, table: DeTable<'t>) -> Self {
        let entries = table
            .into_iter()
            .map(|(key, value)| FieldEntry {
                line: line_of(text, key.span().start),
                key: key.into_inner().into_owned(),
                value: Some(value),
            })
            .collect();
        Self { text, line, prefix, entries, known: Vec::new(), problems: Vec::new() }
    }

    /// Takes a table and reads its keys with `read`; an absent table reads as an empty one.
    pub fn table<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Self) -> T) -> T {
        let mut table = DeTable::new();
        let mut line = self.line;
        if let Some((at, value)) = self.take(key) {
            line = at;
            table = self.table_of(value, (at, key), &format!("[{key}]")).unwrap_or_default();
        }
        self.read_table((line, key), table, read)
    }

    /// Takes a value of any form: for a table whose keys are the user's own, or another document's.
    pub fn anything<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        let (line, value) = self.take(key)?;
        let read = T::deserialize(ValueDeserializer::from(value));
        read.map_err(|error| self.report(line, key, DocumentFault::Value(one_line(error.message())))).ok()
    }

    /// Takes a list of tables and reads the keys of each.
    pub fn tables<T>(&mut self, key: &'static str, mut read: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let Some((at, value)) = self.take(key) else { return Vec::new() };
        let form = format!("[[{key}]]");
        let DeValue::Array(items) = value.into_inner() else {
            self.report(
                at,
                key,
                DocumentFault::Value(format!("expected a list of tables, written as {form}")),
            );
            return Vec::new();
        };
        let mut values = Vec::new();
        for item in items {
            let line = line_of(self.text, item.span().start);
            if let Some(table) = self.table_of(item, (line, key), &form) {
                values.push(self.read_table((line, key), table, &mut read));
            }
        }
        values
    }

    /// Takes a table of tables, each under a name of the user's choice, and reads the keys of each.
    pub fn tables_by_name<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Self) -> T,
    ) -> BTreeMap<String, T> {
        let Some((at, value)) = self.take(key) else { return BTreeMap::new() };
        let table = self.table_of(value, (at, key), &format!("[{key}.name]")).unwrap_or_default();
        let mut values = BTreeMap::new();
        for (name, value) in table {
            let line = line_of(self.text, name.span().start);
            let name = name.into_inner().into_owned();
            let full = format!("{key}.{name}");
            if let Some(table) = self.table_of(value, (line, &full), &format!("[{key}.\"{name}\"]")) {
                let value = self.read_table((line, &full), table, &mut read);
                values.insert(name, value);
            }
        }
        values
    }

    /// The table that a value is, or a fault.
    fn table_of(
        &mut self,
        value: Spanned<DeValue<'t>>,
        (line, key): (usize, &str),
        form: &str,
    ) -> Option<DeTable<'t>> {
        match value.into_inner() {
            DeValue::Table(found) => Some(found),
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
        (line, key): (usize, &str),
        table: DeTable<'t>,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut fields = Self::of_table(self.text, line, format!("{}{key}.", self.prefix), table);
        let value = read(&mut fields);
        self.problems.extend(fields.finish());
        value
    }
}

/// Reads a word as one of an enum's. Serde itself would take `{"done": null}` for `"done"`.
pub(crate) fn word<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    let word = serde::de::IntoDeserializer::<serde::de::value::Error>::into_deserializer(text);
    T::deserialize(word).map_err(serde::de::Error::custom)
}

/// The same, where there may be none.
pub(crate) fn word_or_null<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let text = serde::de::IntoDeserializer::<D::Error>::into_deserializer(text);
    word(text).map(Some)
}

impl<'t> FieldReader<'t, &'t RawValue> {
    /// Takes a key that must be there and holds an object, or null.
    pub fn required_object<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        if self.has(key) { self.optional_object(key) } else { self.required(key) }
    }

    /// Takes a key that may be absent and holds an object, or null.
    pub fn optional_object<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        let (line, value) = self.take(key)?;
        let read = serde_json::from_str::<serde_json::Value>(value.get()).and_then(T::deserialize);
        read.map_err(|error| self.report(line, key, DocumentFault::Value(one_line(&error.to_string())))).ok()
    }

    /// Opens a JSON object, or says why the text is none.
    pub fn of_json(text: &'t str) -> Result<Self, DocumentProblem> {
        let RawObject(pairs) = serde_json::from_str(text).map_err(|error| DocumentProblem {
            line: error.line().max(1),
            key: String::new(),
            fault: DocumentFault::Syntax(json_fault(&error)),
        })?;
        // The pairs come in the order of the text, so that each line is counted on from the one before.
        let (mut line, mut counted) = (1, 0);
        let mut entries = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            // A raw value borrows from `text`, so the distance between the two is its place.
            let at = (value.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
            line += lines_in(text.as_bytes().get(counted..at).unwrap_or_default());
            counted = at;
            entries.push(FieldEntry { key, line, value: Some(value) });
        }
        Ok(Self { text, line: 1, prefix: String::new(), entries, known: Vec::new(), problems: Vec::new() })
    }
}

/// What serde_json says of a fault, without the place, which the caller tells in its own way.
pub fn json_fault(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}

/// The text of a document's bytes. What is no UTF-8 at all is told by its kind, since the next step differs.
pub fn text_of(bytes: &[u8]) -> Result<&str, DocumentProblem> {
    let whole = |fault: &str| DocumentProblem {
        line: 1,
        key: String::new(),
        fault: DocumentFault::Syntax(fault.to_owned()),
    };
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return Err(whole("begins with a byte order mark: save it as UTF-8 without one"));
    }
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
        return Err(whole("is UTF-16: save it as UTF-8"));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        DocumentProblem { line: 1 + lines_in(good), ..whole("is not UTF-8: save it as UTF-8") }
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + lines_in(text.as_bytes().get(..offset).unwrap_or_default())
}

fn lines_in(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// An object's pairs as they stand, a key that stands twice included.
struct RawObject<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for RawObject<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = RawObject<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(RawObject(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_miss_is_told_and_a_far_one_is_not() {
        let known = ["max_iterations", "max_attempts_default", "on_stuck"];
        assert_eq!(nearest("max_iteration", &known), Some("max_iterations"));
        assert_eq!(nearest("onstuck", &known), Some("on_stuck"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(nearest("x", &[]), None);
    }

    #[test]
    fn every_fault_of_a_document_is_told_with_its_line() {
        let text = "{\n \"a\": \"x\",\n \"b\": 7,\n \"b\": 8,\n \"bb\": null}";
        let mut fields = FieldReader::of_json(text).unwrap();
        assert_eq!(fields.required::<BoundedInt<0, 5>>("a"), None);
        assert_eq!(fields.required::<BoundedInt<0, 9>>("b"), BoundedInt::new(7));
        assert_eq!(fields.required::<bool>("c"), None);
        let told: Vec<String> = fields.finish().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "line 1: `c` is missing",
                "line 2: `a` cannot be read: invalid type: string \"x\", expected a whole number from 0 to 5",
                "line 4: `b` stands here a second time: keep one of the two",
                "line 5: `bb` is not a known key; did you mean `b`?",
            ]
        );
    }

    #[test]
    fn a_table_of_the_users_own_keys_is_taken_whole() {
        let mut fields = FieldReader::of_toml("[env]\nX = \"1\"\n[odd]\nZ = 3\n");
        assert_eq!(fields.anything("env"), Some(BTreeMap::from([("X".to_owned(), "1".to_owned())])));
        assert_eq!(fields.anything::<BTreeMap<String, String>>("odd"), None);
        let told: Vec<String> = fields.finish().iter().map(ToString::to_string).collect();
        assert_eq!(told, ["line 3: `odd` cannot be read: invalid type: integer `3`, expected a string"]);
    }

    #[test]
    fn bytes_that_are_no_plain_utf8_are_told_apart() {
        assert_eq!(text_of(b"{}"), Ok("{}"));
        for (bytes, line, word) in [
            (&b"\xEF\xBB\xBF{}"[..], 1, "byte order mark"),
            (b"\xFF\xFE{\0", 1, "UTF-16"),
            (b"\xFE\xFF\0{", 1, "UTF-16"),
            (b"{\n\n\xC3\x28", 3, "not UTF-8"),
        ] {
            let problem = text_of(bytes).unwrap_err();
            assert_eq!(problem.line, line);
            assert!(problem.to_string().contains(word), "{problem}");
        }
    }
}
