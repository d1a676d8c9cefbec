//! Keys in text that comes in pieces, such as the deltas of a streamed answer: a key may begin in one and end in another.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{REDACTED, Redactor};

/// Members that distinguish streams of text which arrive mixed: the blocks, items and choices of an answer.
const STREAM_MEMBERS: [&str; 5] = ["index", "output_index", "content_index", "item_id", "summary_index"];

impl Redactor {
    /// Redacts texts that belong together, one after the other. Of a key in several, the first gets the replacement.
    pub fn redact_pieces(&self, pieces: &mut [&mut String]) {
        let joined: String = pieces.iter().map(|piece| piece.as_str()).collect();
        let keys: Vec<_> = self.keys(joined.as_bytes()).collect();
        if keys.is_empty() {
            return;
        }
        let mut begin = 0;
        for piece in pieces {
            let (from, to) = (begin, begin + piece.len());
            let mut text = String::new();
            let mut at = from;
            for key in keys.iter().filter(|key| key.start < to && key.end > from) {
                text.push_str(joined.get(at..key.start.max(at)).unwrap_or_default());
                if key.start >= from {
                    text.push_str(REDACTED);
                }
                at = key.end.min(to);
            }
            text.push_str(joined.get(at..to).unwrap_or_default());
            **piece = text;
            begin = to;
        }
    }

    /// Redacts the events of a stream: all strings at the same place in one after the other, and then each on its own.
    pub fn redact_events(&self, events: &mut [Value]) {
        let mut streams: BTreeMap<String, Vec<&mut String>> = BTreeMap::new();
        for event in events {
            let name = stream_name(event);
            collect(event, name, &mut streams);
        }
        for mut pieces in streams.into_values() {
            self.redact_pieces(&mut pieces);
            for piece in pieces {
                *piece = self.redact_text(piece);
            }
        }
    }
}

fn stream_name(event: &Value) -> String {
    let members =
        STREAM_MEMBERS.iter().filter_map(|name| event.get(name).map(|value| format!("{name}={value} ")));
    members.collect()
}

/// Adds the strings of a value to the streams of their places.
fn collect<'v>(value: &'v mut Value, place: String, streams: &mut BTreeMap<String, Vec<&'v mut String>>) {
    match value {
        Value::String(text) => streams.entry(place).or_default().push(text),
        Value::Array(items) => {
            for (nth, item) in items.iter_mut().enumerate() {
                collect(item, format!("{place}/{nth}"), streams);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                collect(member, format!("{place}/{name}"), streams);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
