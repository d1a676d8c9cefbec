//! The generated page about events, docs/reference/events.md: made from the schema, so that it lists every event and field.

use serde_json::Value;

use super::event::Event;
use crate::schema::SchemaDocument;

impl Event {
    /// The table of events, as Markdown.
    pub fn reference() -> String {
        let schema = serde_json::to_value(SchemaDocument::Event.schema()).unwrap_or_default();
        let events = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
        let mut table = String::from("| event | when | fields |\n| --- | --- | --- |\n");
        for event in events {
            let properties = event.get("properties").and_then(Value::as_object);
            let name = properties.and_then(|properties| properties.get("event")?.get("const")?.as_str());
            let description = event.get("description").and_then(Value::as_str).unwrap_or_default();
            let mut fields: Vec<String> = properties
                .into_iter()
                .flat_map(|properties| properties.keys())
                .filter(|field| *field != "event")
                .map(|field| format!("`{field}`"))
                .collect();
            // An agent's own event is flattened into this one.
            if event.get("oneOf").is_some() || event.get("anyOf").is_some() {
                fields.push("and those of the agent's event, by `kind`".to_owned());
            }
            let name = name.unwrap_or_default();
            let description = description.replace('\n', " ").trim_end_matches('.').replace('|', "\\|");
            table.push_str(&format!("| `{name}` | {description} | {} |\n", fields.join(", ")));
        }
        table
    }
}
