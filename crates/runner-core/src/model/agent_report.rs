//! The report of an agent: the optional file in `RUNNER_REPORT`.
//!
//! With it, a program that the runner does not know can report its tokens, its cost and a failure of its provider. It is
//! decoded strictly; an invalid report is ignored.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::step::{ProviderError, Usage};
use crate::strict::{DocumentFault, DocumentProblem, canonical_json, json_error_message};

/// Usage and failure of a session, as its program reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentReport {
    /// What the session used.
    pub usage: Usage,
    /// How its provider failed.
    pub fault: Option<ProviderError>,
}

impl AgentReport {
    pub fn decode(bytes: &[u8]) -> Result<Self, DocumentProblem> {
        let syntax = |error: serde_json::Error| {
            DocumentProblem::syntax(error.line().max(1), json_error_message(&error))
        };
        // Through a map: serde would accept a list as an object with the same number of fields.
        let pairs: Map<String, Value> = serde_json::from_slice(bytes).map_err(syntax)?;
        if let Some(usage) = pairs.get("usage").filter(|usage| !usage.is_object()) {
            let fault = DocumentFault::Value(format!("expected an object, found {usage}"));
            return Err(DocumentProblem { line: 1, key: "usage".to_owned(), fault });
        }
        Self::deserialize(Value::Object(pairs)).map_err(syntax)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        canonical_json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_round_trip_and_invalid_ones_are_rejected() {
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
