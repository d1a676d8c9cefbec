//! Strict decoding of the small documents: reports every problem, each with its line and key.
//!
//! A document is opened as a [`FieldReader`], which hands out its keys one by one; keys that are left over are unknown.
//! The task tree has its own decoder, because its errors name a node instead of a line.

pub mod bytes_or_text;
mod canonical;
mod inline_schema;
mod int;
mod json;
mod toml;

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeOwned, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

pub use self::toml::TomlTable;
pub use canonical::canonical_json;
pub(crate) use inline_schema::inline_schema;
pub use int::{BoundedInt, SAFE_INTEGER_MAX, whole_number};
pub use json::json_error_message;

use crate::text::one_line;

/// One problem in a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DocumentProblem {
    /// The line, from 1.
    pub line: usize,
    /// The key, with the tables above it (`executor.kind`); empty for the document as a whole.
    pub key: String,
    #[serde(serialize_with = "as_text")]
    pub fault: DocumentFault,
}

impl DocumentProblem {
    /// A problem of the whole document: it cannot be parsed.
    pub(crate) fn syntax(line: usize, message: impl Into<String>) -> Self {
        Self { line, key: String::new(), fault: DocumentFault::Syntax(message.into()) }
    }
}

fn as_text<S: serde::Serializer>(fault: &DocumentFault, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(fault)
}

/// The problems of an invalid document; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentProblems {
    first: DocumentProblem,
    rest: Vec<DocumentProblem>,
}

impl DocumentProblems {
    /// `Ok` with the value if there are no problems.
    fn check<T>(value: T, problems: Vec<DocumentProblem>) -> Result<T, Self> {
        let mut problems = problems.into_iter();
        match problems.next() {
            Some(first) => Err(Self { first, rest: problems.collect() }),
            None => Ok(value),
        }
    }

    pub fn first(&self) -> &DocumentProblem {
        &self.first
    }

    /// Every problem, in the order of the lines.
    pub fn iter(&self) -> impl Iterator<Item = &DocumentProblem> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// Every problem, in the order of the lines.
    pub fn into_vec(self) -> Vec<DocumentProblem> {
        let mut problems = vec![self.first];
        problems.extend(self.rest);
        problems
    }
}

impl From<DocumentProblem> for DocumentProblems {
    fn from(first: DocumentProblem) -> Self {
        Self { first, rest: Vec::new() }
    }
}

/// What can be wrong with a key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DocumentFault {
    /// The text is not valid JSON or TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key that the document does not have, with the nearest one that it has.
    #[error("is not a known key{}", did_you_mean(.0.as_deref()))]
    Unknown(Option<&'static str>),
    /// A required key is not there.
    #[error("is missing")]
    Missing,
    /// A key appears again.
    #[error("is a duplicate: remove one of the two")]
    Twice,
    /// A value has the wrong type or is out of range.
    #[error("{0}")]
    Value(String),
    /// A value does not fit the other keys.
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
                f.write_str("is invalid: ")?;
            }
        }
        write!(f, "{}", self.fault)
    }
}

/// The known key that a misspelled one most likely means.
pub fn nearest<'k>(wrong: &str, known: &[&'k str]) -> Option<&'k str> {
    // The distance needs memory for the product of both lengths, and a much longer text is not a misspelling.
    let longest = known.iter().map(|known| known.len()).max()?;
    if wrong.len() > 2 * longest {
        return None;
    }
    let distance = |candidate: &str| strsim::damerau_levenshtein(wrong, candidate);
    let best = known.iter().copied().min_by_key(|candidate| distance(candidate))?;
    (distance(best) <= 1 + best.len() / 4).then_some(best)
}

/// A value whose type is not known yet.
pub trait UntypedValue {
    /// Decodes it as a `T`. The error is a message without a position.
    fn read<T: DeserializeOwned>(self) -> Result<T, String>;
}

/// A deserializer for an object where a scalar is expected. It always fails, with what was expected:
/// serde's enums would accept `{"done": null}` as `"done"`.
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
        if !self.has(key) {
            self.report(self.line, key, DocumentFault::Missing);
        }
        self.optional(key)
    }

    /// Whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// Reports that a key's value does not fit the other keys.
    pub fn report_rule(&mut self, key: &'static str, rule: impl Into<String>) {
        let line = self.entries.iter().find(|entry| entry.key == key).map_or(self.line, |entry| entry.line);
        self.report(line, key, DocumentFault::Rule(rule.into()));
    }

    /// Whether a problem of this key was already reported.
    pub fn has_problem(&self, key: &str) -> bool {
        self.problems.iter().any(|problem| problem.key.strip_prefix(self.prefix.as_str()) == Some(key))
    }

    /// All problems in the order of the lines, including unknown keys: those that were never taken.
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

    /// The value, if the document has no problems.
    pub fn finish_with<T>(self, value: T) -> Result<T, DocumentProblems> {
        DocumentProblems::check(value, self.finish())
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

/// Decodes a text as a variant of an enum. Serde itself would accept `{"done": null}` as `"done"`.
pub(crate) fn word<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    let word = serde::de::IntoDeserializer::<serde::de::value::Error>::into_deserializer(text);
    T::deserialize(word).map_err(serde::de::Error::custom)
}

/// The same for a text or null.
pub(crate) fn word_or_null<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let text = serde::de::IntoDeserializer::<D::Error>::into_deserializer(text);
    word(text).map(Some)
}

/// The text of a document. Each encoding other than UTF-8 has its own message, because the fix differs.
pub fn decode_utf8(bytes: &[u8]) -> Result<&str, DocumentProblem> {
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return Err(DocumentProblem::syntax(
            1,
            "starts with a byte order mark: save it as UTF-8 without one",
        ));
    }
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
        return Err(DocumentProblem::syntax(1, "is UTF-16: save it as UTF-8"));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = 1 + lines_in(std::str::from_utf8(valid).unwrap_or_default());
        DocumentProblem::syntax(line, "is not UTF-8: save it as UTF-8")
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + lines_in(text.get(..offset).unwrap_or_default())
}

/// Searches a word at a time, also where this crate is not optimized.
fn lines_in(text: &str) -> usize {
    text.matches('\n').count()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn nearest_suggests_only_near_misses() {
        let known = ["max_iterations", "max_attempts_default", "on_stuck"];
        assert_eq!(nearest("max_iteration", &known), Some("max_iterations"));
        assert_eq!(nearest("onstuck", &known), Some("on_stuck"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(nearest("x", &[]), None);
    }

    #[test]
    fn every_problem_is_reported_with_its_line() {
        let text = "{\n \"a\": \"x\",\n \"b\": 7,\n \"b\": 8,\n \"bb\": null}";
        let mut fields = FieldReader::of_json(text).unwrap();
        assert_eq!(fields.required::<BoundedInt<0, 5>>("a"), None);
        assert_eq!(fields.required::<BoundedInt<0, 9>>("b"), BoundedInt::new(7));
        assert_eq!(fields.required::<bool>("c"), None);
        let problems: Vec<String> = fields.finish().iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "line 1: `c` is missing",
                "line 2: `a` is invalid: invalid type: string \"x\", expected an integer from 0 to 5",
                "line 4: `b` is a duplicate: remove one of the two",
                "line 5: `bb` is not a known key; did you mean `b`?",
            ]
        );
    }

    #[test]
    fn a_table_with_arbitrary_keys_is_taken_whole() {
        let mut fields = FieldReader::of_toml("[env]\nX = \"1\"\n[odd]\nZ = 3\n");
        assert_eq!(fields.any_value("env"), Some(BTreeMap::from([("X".to_owned(), "1".to_owned())])));
        assert_eq!(fields.any_value::<BTreeMap<String, String>>("odd"), None);
        let problems: Vec<String> = fields.finish().iter().map(ToString::to_string).collect();
        assert_eq!(problems, ["line 3: `odd` is invalid: invalid type: integer `3`, expected a string"]);
    }

    #[test]
    fn each_encoding_other_than_utf8_has_its_own_message() {
        assert_eq!(decode_utf8(b"{}"), Ok("{}"));
        for (bytes, line, word) in [
            (&b"\xEF\xBB\xBF{}"[..], 1, "byte order mark"),
            (b"\xFF\xFE{\0", 1, "UTF-16"),
            (b"\xFE\xFF\0{", 1, "UTF-16"),
            (b"{\n\n\xC3\x28", 3, "not UTF-8"),
        ] {
            let problem = decode_utf8(bytes).unwrap_err();
            assert_eq!(problem.line, line);
            assert!(problem.to_string().contains(word), "{problem}");
        }
    }
}
