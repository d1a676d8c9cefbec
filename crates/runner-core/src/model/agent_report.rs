//! What an agent may say of itself beside its answer: the file in `RUNNER_REPORT`.
//!
//! It is how a program that the runner knows nothing about tells its tokens, its cost, and that its provider failed
//! it. It is read strictly; what cannot be read was not said.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::step::{ProviderError, Usage};
use crate::strict::{DocumentFault, DocumentProblem, canonical_json, json_error_message};

/// The report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentReport {
    /// What the session used.
    pub usage: Usage,
    /// How its provider failed it, if it did.
    pub fault: Option<ProviderError>,
}

impl AgentReport {
    /// Reads a report.
    pub fn decode(bytes: &[u8]) -> Result<Self, DocumentProblem> {
        let told = |error: serde_json::Error| DocumentProblem {
            line: error.line().max(1),
            key: String::new(),
            fault: DocumentFault::Syntax(json_error_message(&error)),
        };
        // By way of a map: serde would take a list for an object of the same length.
        let pairs: Map<String, Value> = serde_json::from_slice(bytes).map_err(told)?;
        if let Some(usage) = pairs.get("usage").filter(|usage| !usage.is_object()) {
            let fault = DocumentFault::Value(format!("expected an object, found {usage}"));
            return Err(DocumentProblem { line: 1, key: "usage".to_owned(), fault });
        }
        Self::deserialize(Value::Object(pairs)).map_err(told)
    }

    /// The written form.
    pub fn to_bytes(&self) -> Vec<u8> {
        canonical_json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_nothing_else() {
        let report = AgentReport {
            usage: Usage { input_tokens: Some(3), ..Usage::default() },
            fault: Some(ProviderError::UsageLimit { resets_unix_secs: Some(9) }),
        };
        assert_eq!(AgentReport::decode(&report.to_bytes()), Ok(report));
        assert_eq!(AgentReport::decode(b"{}"), Ok(AgentReport::default()));
        let by_hand = br#"{"usage": {"output_tokens": 2}, "fault": {"fault": "overloaded"}}"#;
        assert_eq!(AgentReport::decode(by_hand).unwrap().fault, Some(ProviderError::Overloaded));
        for bad in [
            "",
            "[]",
            r#"{"tokens": 1}"#,
            r#"{"usage": []}"#,
            r#"{"usage": {"tokens": 1}}"#,
            r#"{"fault": {"fault": "x"}}"#,
        ] {
            assert!(AgentReport::decode(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
