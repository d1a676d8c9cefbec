//! The JSON Schemas of the documents, generated from their types.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use crate::config::Config;
use crate::model::agent_output::AgentOutput;
use crate::model::review::ReviewAnswer;
use crate::model::run_state::RunState;
use crate::model::tools::Tools;
use crate::model::tree::TreeDocument;
use crate::step::{RecordedEvent, RecordedIteration};
use crate::strict::canonical_json;

/// The documents that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaDocument {
    Tree,
    RunState,
    /// The answer of an agent.
    AgentOutput,
    /// The answer of a reviewer.
    Review,
    Config,
    Tools,
    /// A line of `events.jsonl`. Newer runners may add keys.
    Event,
    /// The record of one iteration, `meta.json`. Newer runners may add keys.
    Iteration,
}

impl SchemaDocument {
    pub const ALL: [Self; 8] = [
        Self::Tree,
        Self::RunState,
        Self::AgentOutput,
        Self::Review,
        Self::Config,
        Self::Tools,
        Self::Event,
        Self::Iteration,
    ];

    /// The file name in `schemas/`.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Tree => "tree.schema.json",
            Self::RunState => "run_state.schema.json",
            Self::AgentOutput => "agent_output.schema.json",
            Self::Review => "review.schema.json",
            Self::Config => "config.schema.json",
            Self::Tools => "tools.schema.json",
            Self::Event => "event.schema.json",
            Self::Iteration => "meta.schema.json",
        }
    }

    /// The schema, in JSON Schema 2020-12.
    pub fn schema(self) -> Schema {
        fn of<T: JsonSchema>(settings: SchemaSettings) -> Schema {
            settings.into_generator().into_root_schema_for::<T>()
        }
        let settings = SchemaSettings::draft2020_12();
        match self {
            Self::Tree => of::<TreeDocument<'_>>(settings),
            // Every key is written; one without a value is null.
            Self::RunState => of::<RunState>(settings.for_serialize()),
            Self::AgentOutput => of::<AgentOutput>(settings),
            Self::Review => of::<ReviewAnswer>(settings),
            Self::Config => of::<Config>(settings),
            Self::Tools => of::<Tools>(settings),
            Self::Event => of::<RecordedEvent>(settings.for_serialize()),
            Self::Iteration => of::<RecordedIteration>(settings.for_serialize()),
        }
    }

    /// The schema's file content.
    pub fn schema_bytes(self) -> Vec<u8> {
        canonical_json(&self.schema())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn schema(document: SchemaDocument) -> Value {
        serde_json::from_slice(&document.schema_bytes()).unwrap()
    }

    #[test]
    fn every_schema_is_2020_12_and_rejects_unknown_keys() {
        for document in SchemaDocument::ALL {
            let schema = schema(document);
            assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
            let is_strict = !matches!(document, SchemaDocument::Event | SchemaDocument::Iteration);
            assert_eq!(schema["additionalProperties"] == false, is_strict, "{document:?}");
            assert!(schema["description"].is_string(), "{document:?}");
            assert!(document.schema_bytes().ends_with(b"}\n"));
        }
    }

    #[test]
    fn file_names_are_fixed() {
        let names = SchemaDocument::ALL.map(SchemaDocument::file_name);
        assert_eq!(
            names,
            [
                "tree.schema.json",
                "run_state.schema.json",
                "agent_output.schema.json",
                "review.schema.json",
                "config.schema.json",
                "tools.schema.json",
                "event.schema.json",
                "meta.schema.json"
            ]
        );
    }

    #[test]
    fn required_keys_are_required() {
        let required = |document: SchemaDocument| schema(document)["required"].as_array().map(Vec::len);
        assert_eq!(required(SchemaDocument::Tree), Some(2));
        assert_eq!(required(SchemaDocument::RunState), Some(19));
        assert_eq!(required(SchemaDocument::AgentOutput), Some(2));
        assert_eq!(required(SchemaDocument::Config), None);
        assert_eq!(
            schema(SchemaDocument::Tree)["$defs"]["Node"]["required"].as_array().map(Vec::len),
            Some(9)
        );
    }
}
