//! JSON documents for the strict reader: objects whose values are decoded later, with the line of each key.

use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{DocumentFault, DocumentProblem, FieldEntry, FieldReader, UntypedValue, lines_in, read_object};
use crate::text::one_line;

impl UntypedValue for &RawValue {
    fn read<T: DeserializeOwned>(self) -> Result<T, String> {
        // Through a `Value`, so that the message has no position within the fragment.
        let value: serde_json::Value =
            serde_json::from_str(self.get()).map_err(|error| json_error_message(&error))?;
        if value.is_object() {
            return read_object();
        }
        T::deserialize(value).map_err(|error| error.to_string())
    }
}

impl<'t> FieldReader<'t, &'t RawValue> {
    /// Takes a key that must be there and holds an object or null.
    pub fn required_object<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        if self.has(key) { self.optional_object(key) } else { self.required(key) }
    }

    /// Takes a key that may be absent and holds an object or null.
    pub fn optional_object<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        let (line, value) = self.take(key)?;
        let read = serde_json::from_str::<serde_json::Value>(value.get()).and_then(T::deserialize);
        read.map_err(|error| self.report(line, key, DocumentFault::Value(one_line(&error.to_string())))).ok()
    }

    /// Opens a JSON object.
    pub fn of_json(text: &'t str) -> Result<Self, DocumentProblem> {
        let RawObject(pairs) = serde_json::from_str(text)
            .map_err(|error| DocumentProblem::syntax(error.line().max(1), json_error_message(&error)))?;
        // The pairs come in the order of the text, so each line number is counted from the one before.
        let mut line = 1;
        let mut counted = 0;
        let mut entries = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            // A raw value borrows from `text`, so the distance between the two pointers is its offset.
            let at = (value.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
            line += lines_in(text.get(counted..at).unwrap_or_default());
            counted = at;
            entries.push(FieldEntry { key, line, value: Some(value) });
        }
        Ok(Self { text, line: 1, prefix: String::new(), entries, known: Vec::new(), problems: Vec::new() })
    }
}

/// The message of a serde_json error without its position, which the caller reports separately.
pub fn json_error_message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(message, _)| message.to_owned())
}

/// The pairs of an object in the order of the text, duplicate keys included.
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
