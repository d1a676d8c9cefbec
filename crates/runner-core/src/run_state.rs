//! Where a run stands: `run_state.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent_output::Status;
use crate::document::{Fields, Problem, canonical_json, text_of};
use crate::id::{Iteration, RunId};

/// What the guard said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum GuardResult {
    Pass,
    Fail,
    Skipped,
}

/// The run's own book-keeping; progress itself is in the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunState {
    /// The run this state belongs to; null before the first `runner start`.
    pub run_id: Option<RunId>,
    /// The number that the next iteration gets.
    pub next_iter: Iteration,
    /// What the last agent claimed.
    pub last_status: Option<Status>,
    /// What it said about it.
    pub last_summary: Option<String>,
    /// What the guard said of its work.
    pub last_guard: Option<GuardResult>,
}

impl RunState {
    /// The state before a run's first iteration.
    pub fn new(run_id: Option<RunId>) -> Self {
        Self { run_id, next_iter: Iteration::FIRST, last_status: None, last_summary: None, last_guard: None }
    }

    /// Reads the document strictly; every fault in it is told.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<Problem>> {
        let text = text_of(bytes).map_err(|problem| vec![problem])?;
        let mut fields = Fields::of_json(text).map_err(|problem| vec![problem])?;
        let run_id = fields.required("run_id");
        let next_iter = fields.required("next_iter");
        let last_status = fields.required("last_status");
        let last_summary = fields.required("last_summary");
        let last_guard = fields.required("last_guard");
        let problems = fields.finish();
        match (run_id, next_iter, last_status, last_summary, last_guard) {
            (Some(run_id), Some(next_iter), Some(last_status), Some(last_summary), Some(last_guard))
                if problems.is_empty() =>
            {
                Ok(Self { run_id, next_iter, last_status, last_summary, last_guard })
            }
            _ => Err(problems),
        }
    }

    /// The one written form.
    pub fn to_bytes(&self) -> Vec<u8> {
        canonical_json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let fresh = RunState::new(None);
        let told = RunState {
            run_id: Some(RunId::new("x").unwrap()),
            next_iter: Iteration::new(7).unwrap(),
            last_status: Some(Status::Done),
            last_summary: Some("say \"é\"\n".to_owned()),
            last_guard: Some(GuardResult::Fail),
        };
        for state in [fresh, told] {
            assert_eq!(RunState::decode(&state.to_bytes()), Ok(state));
        }
    }

    #[test]
    fn every_key_is_there_and_no_other() {
        let told = |text: &str| {
            RunState::decode(text.as_bytes()).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(told("{}").len(), 5);
        assert_eq!(
            told(
                "{\"run_id\": \"a b\",\n\"next_iter\": 0,\n\"last_status\": null,\n\"last_summary\": null,\n\"last_gard\": null}"
            ),
            [
                "line 1: `run_id` cannot be read: \"a b\" contains ' '; only letters, digits, `.`, `_` and `-` are allowed",
                "line 1: `last_guard` is missing",
                "line 2: `next_iter` cannot be read: invalid value: integer `0`, expected a whole number from 1 to 4294967295",
                "line 5: `last_gard` is not a known key; did you mean `last_guard`?",
            ]
        );
    }
}
