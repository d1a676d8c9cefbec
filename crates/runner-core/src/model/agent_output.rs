//! The answer of an agent at the end of its session: a status and a summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::strict::{DocumentProblem, FieldReader, decode_utf8};

/// What the agent claims. The runner decides what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum AgentStatus {
    Done,
    Retry,
    Decomposed,
}

impl AgentStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Retry => "retry",
            Self::Decomposed => "decomposed",
        }
    }
}

/// The answer of one agent session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentOutput {
    /// `done`: the node's goal is met. `retry`: it is not, and another session should continue. `decomposed`: the node got
    /// children instead.
    pub status: AgentStatus,
    /// What was done, what was learned, what is left. The next session sees only this.
    pub summary: String,
}

impl AgentOutput {
    /// Decodes the answer strictly; reports every problem.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<DocumentProblem>> {
        let text = decode_utf8(bytes).map_err(|problem| vec![problem])?;
        let mut fields = FieldReader::of_json(text).map_err(|problem| vec![problem])?;
        let status = fields.required("status");
        let summary: Option<String> = fields.required("summary");
        if summary.as_ref().is_some_and(|summary| summary.trim().is_empty()) {
            fields.report_rule("summary", "is empty: it is all that the next session sees");
        }
        let problems = fields.finish();
        match (status, summary) {
            (Some(status), Some(summary)) if problems.is_empty() => Ok(Self { status, summary }),
            _ => Err(problems),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_status_and_a_summary() {
        let output = AgentOutput::decode(br#"{"summary": "s", "status": "decomposed"}"#);
        assert_eq!(output, Ok(AgentOutput { status: AgentStatus::Decomposed, summary: "s".to_owned() }));
    }

    #[test]
    fn every_problem_of_an_answer_is_reported() {
        for (bytes, count) in [
            (&br#"{"status": "finished", "note": 1}"#[..], 3),
            (br#"{"status": "done", "summary": null}"#, 1),
            (br#"{"status": "done", "summary": "s", "status": "retry"}"#, 1),
            (br#"{"status": "done", "summary": "s"} {}"#, 1),
            (br#"{"status": "done", "summary": " \n"}"#, 1),
            (br#"["done"]"#, 1),
            (b"", 1),
            (b"\xFF\xFE", 1),
        ] {
            let problems = AgentOutput::decode(bytes).unwrap_err();
            assert_eq!(problems.len(), count, "{problems:?}");
        }
    }
}
