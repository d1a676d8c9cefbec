//! JSON with the line number of each value.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::PlanError;
use crate::strict::json_error_message;
use crate::text::offset_in;

/// A value of a document, not decoded yet, with its line.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonPart<'t> {
    pub(super) line: usize,
    raw: &'t RawValue,
}

/// The top-level value of a document.
#[derive(Clone, Debug)]
pub(super) enum TopLevel<'t> {
    Object(BTreeMap<String, JsonPart<'t>>),
    Array(Vec<JsonPart<'t>>),
    Other,
}

/// Parses the top-level value.
pub(super) fn top_level(text: &str) -> Result<TopLevel<'_>, PlanError> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
        PlanError::new(error.line().max(1), format!("the file is not JSON: {}", json_error_message(&error)))
    })?;
    let whole = JsonPart::within(text, raw);
    Ok(match raw.get().as_bytes().first() {
        Some(b'{') => TopLevel::Object(whole.object(text)?),
        Some(b'[') => TopLevel::Array(whole.array(text)?),
        Some(_) | None => TopLevel::Other,
    })
}

impl<'t> JsonPart<'t> {
    pub(super) fn within(text: &str, raw: &'t RawValue) -> Self {
        Self { line: line_of(text, raw.get()), raw }
    }

    /// Decodes the value. `what` names it in an error message.
    pub(super) fn decode<T: Deserialize<'t>>(&self, what: &str) -> Result<T, PlanError> {
        serde_json::from_str(self.raw.get()).map_err(|error| {
            let line = self.line + error.line().saturating_sub(1);
            PlanError::new(line, format!("{what} is invalid: {}", json_error_message(&error)))
        })
    }

    /// The values of an object by key. `text` is the whole document.
    pub(super) fn object(&self, text: &str) -> Result<BTreeMap<String, JsonPart<'t>>, PlanError> {
        let values: BTreeMap<String, &RawValue> = self.decode("the object")?;
        Ok(values.into_iter().map(|(key, raw)| (key, JsonPart::within(text, raw))).collect())
    }

    /// The values of a list.
    pub(super) fn array(&self, text: &str) -> Result<Vec<JsonPart<'t>>, PlanError> {
        let values: Vec<&RawValue> = self.decode("the list")?;
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

fn tail<'t>(text: &'t str, part: &str) -> &'t str {
    text.get(offset_in(text, part)..).unwrap_or_default()
}

fn newlines_before(text: &str, part: &str) -> usize {
    let before = text.as_bytes().get(..offset_in(text, part)).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count()
}

fn line_of(text: &str, part: &str) -> usize {
    1 + newlines_before(text, part)
}
