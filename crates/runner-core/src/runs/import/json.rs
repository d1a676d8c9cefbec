//! Reading JSON with the line of everything that is in it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::PlanError;

/// A part of a document, still as text, with the line it begins on.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonPart<'t> {
    pub(super) line: usize,
    raw: &'t RawValue,
}

/// The outermost value of a document.
#[derive(Clone, Debug)]
pub(super) enum TopLevel<'t> {
    Object(BTreeMap<String, JsonPart<'t>>),
    Array(Vec<JsonPart<'t>>),
    Other,
}

/// Reads the outermost value; what is no JSON at all is told with its line.
pub(super) fn top(text: &str) -> Result<TopLevel<'_>, PlanError> {
    let raw: &RawValue = serde_json::from_str(text)
        .map_err(|error| PlanError::new(error.line().max(1), format!("no JSON: {}", reason(&error))))?;
    let whole = JsonPart::within(text, raw);
    Ok(match raw.get().as_bytes().first() {
        Some(b'{') => TopLevel::Object(whole.object(text)?),
        Some(b'[') => TopLevel::Array(whole.array(text)?),
        Some(_) | None => TopLevel::Other,
    })
}

impl<'t> JsonPart<'t> {
    /// A part of a document.
    pub(super) fn within(text: &str, raw: &'t RawValue) -> Self {
        Self { line: line_of(text, raw.get()), raw }
    }

    /// The value as a type of its own.
    pub(super) fn read<T: Deserialize<'t>>(&self, what: &str) -> Result<T, PlanError> {
        serde_json::from_str(self.raw.get()).map_err(|error| {
            let line = self.line + error.line().saturating_sub(1);
            PlanError::new(line, format!("{what} cannot be read: {}", reason(&error)))
        })
    }

    /// The values of an object by key. `text` is the document that this is a part of.
    pub(super) fn object(&self, text: &str) -> Result<BTreeMap<String, JsonPart<'t>>, PlanError> {
        let values: BTreeMap<String, &RawValue> = self.read("the object")?;
        Ok(values.into_iter().map(|(key, raw)| (key, JsonPart::within(text, raw))).collect())
    }

    /// The values of a list.
    pub(super) fn array(&self, text: &str) -> Result<Vec<JsonPart<'t>>, PlanError> {
        let values: Vec<&RawValue> = self.read("the list")?;
        let mut line = self.line;
        let mut from = self.raw.get();
        Ok(values
            .into_iter()
            .map(|raw| {
                line += newlines_before(from, raw.get());
                from = tail(text, raw.get());
                JsonPart { line, raw }
            })
            .collect())
    }

    pub(super) fn is_object(&self) -> bool {
        self.raw.get().starts_with('{')
    }

    pub(super) fn is_array(&self) -> bool {
        self.raw.get().starts_with('[')
    }
}

/// How far into a text a part of it begins. The reader borrows, so a part lies within its text.
fn offset(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

fn tail<'t>(text: &'t str, part: &str) -> &'t str {
    text.get(offset(text, part)..).unwrap_or_default()
}

fn newlines_before(text: &str, part: &str) -> usize {
    let before = text.as_bytes().get(..offset(text, part)).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count()
}

fn line_of(text: &str, part: &str) -> usize {
    1 + newlines_before(text, part)
}

/// What serde says, without the place, which is told apart.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}
