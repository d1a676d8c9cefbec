//! The answer of a reviewer, and what is on record about reviews.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run_state::count;
use crate::model::cost::{Amount, SessionCost, amount, number};
use crate::model::digest::Sha256;
use crate::model::id::NodeId;
use crate::step::{CostSource, Ordinal};
use crate::strict::{DocumentProblem, FieldReader, canonical_json, decode_utf8, word};
use crate::text::{head, lines, one_line};

/// How many reasons of a review are kept, and how many bytes of each.
const REASONS_MAX: usize = 20;
const REASON_BYTES_MAX: usize = 1000;

/// What a reviewer decides. It may only refuse: an `accept` never makes a task pass by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ReviewVerdict {
    Accept,
    Refuse,
}

/// The answer of one review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReviewAnswer {
    /// `accept`: the work does what the task requires. `refuse`: it does not.
    pub verdict: ReviewVerdict,
    /// What is wrong with the work, one problem each; at least one with `refuse`. The next session sees them.
    pub reasons: Vec<String>,
}

impl ReviewAnswer {
    /// Decodes the answer strictly; reports every problem.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<DocumentProblem>> {
        let text = decode_utf8(bytes).map_err(|problem| vec![problem])?;
        let mut fields = FieldReader::of_json(text).map_err(|problem| vec![problem])?;
        let verdict = fields.required("verdict");
        let reasons: Option<Vec<String>> = fields.required("reasons");
        let has_reason = reasons.iter().flatten().any(|reason| !reason.trim().is_empty());
        if verdict == Some(ReviewVerdict::Refuse) && reasons.is_some() && !has_reason {
            fields.report_rule("reasons", "is empty: a refusal needs a reason");
        }
        let problems = fields.finish();
        match (verdict, reasons) {
            (Some(verdict), Some(reasons)) if problems.is_empty() => Ok(Self { verdict, reasons }),
            _ => Err(problems),
        }
    }
}

/// What came of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ReviewResult {
    Accepted,
    Refused,
    /// The reviewer gave no answer that counts.
    Failed,
}

impl ReviewResult {
    const ALL: [Self; 3] = [Self::Accepted, Self::Refused, Self::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// What the run state remembers about reviews.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewState {
    /// The review of the last iteration, if there was one.
    #[serde(deserialize_with = "Option::deserialize")]
    pub last: Option<RecordedReview>,
    /// How often the reviewer refused the work on open tasks, sorted by node id.
    pub refusals: Vec<TaskRefusals>,
}

impl ReviewState {
    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How often the reviewer refused the work on a task.
    pub fn refusals_of(&self, node: &NodeId) -> u32 {
        self.refusals.iter().find(|refusals| refusals.node == *node).map_or(0, |refusals| refusals.count)
    }
}

/// How often the reviewer refused the work on a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRefusals {
    pub node: NodeId,
    #[schemars(range(min = 0, max = u32::MAX))]
    #[serde(deserialize_with = "count")]
    pub count: u32,
}

/// A review as the state of its run has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedReview {
    /// The reviewer, by kind and model.
    pub agent: String,
    /// Which review of the task it was, of how many that may refuse.
    pub round: Ordinal,
    #[serde(deserialize_with = "word")]
    pub result: ReviewResult,
    /// What the reviewer found, or why it gave no answer.
    pub reasons: Vec<String>,
    /// What the review used; null if the reviewer did not report it.
    #[serde(deserialize_with = "Option::deserialize")]
    pub tokens: Option<Amount>,
    /// What that cost, in millionths of a dollar; null if unknown.
    #[serde(deserialize_with = "Option::deserialize")]
    pub microdollars: Option<Amount>,
    /// Who computed the cost.
    #[serde(deserialize_with = "word")]
    pub cost_source: CostSource,
}

impl RecordedReview {
    /// What the review cost.
    pub fn cost(&self) -> SessionCost {
        SessionCost {
            tokens: self.tokens.map(number),
            microdollars: self.microdollars.map(number),
            basis: self.cost_source,
        }
    }

    /// Sets what the review cost.
    pub(crate) fn with_cost(self, cost: SessionCost) -> Self {
        Self {
            tokens: cost.tokens.map(amount),
            microdollars: cost.microdollars.map(amount),
            cost_source: cost.basis,
            ..self
        }
    }

    /// `refused 1/2 by claude: no test`, for people.
    pub fn text(&self) -> String {
        let reasons: Vec<String> = self.reasons.iter().map(|reason| one_line(reason)).collect();
        let colon = if reasons.is_empty() { "" } else { ": " };
        let (Ordinal { nth, of }, agent) = (self.round, one_line(&self.agent));
        format!("{} {nth}/{of} by {agent}{colon}{}", self.result.as_str(), reasons.join("; "))
    }

    /// What the commit records about the review.
    pub(crate) fn record(&self) -> ReviewRecord {
        let digest = Sha256::of(&canonical_json(self));
        ReviewRecord { result: self.result, round: self.round, digest }
    }
}

/// What a commit records about a review. `Display` gives the value of its trailer: `refused 1/2 <digest of the review>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReviewRecord {
    pub(crate) result: ReviewResult,
    pub(crate) round: Ordinal,
    pub(crate) digest: Sha256,
}

impl ReviewRecord {
    /// Parses what `Display` writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [result, round, digest] = words.as_slice() else { return None };
        let (nth, of) = round.split_once('/')?;
        Some(Self {
            result: ReviewResult::ALL.into_iter().find(|known| known.as_str() == *result)?,
            round: Ordinal { nth: nth.parse().ok()?, of: of.parse().ok()? },
            digest: Sha256::parse(digest)?,
        })
    }
}

impl fmt::Display for ReviewRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { result, round: Ordinal { nth, of }, digest } = self;
        write!(f, "{} {nth}/{of} {digest}", result.as_str())
    }
}

/// Reasons without control characters and empty ones, and bounded.
pub(crate) fn bounded_reasons(reasons: &[String]) -> Vec<String> {
    let clean = reasons.iter().map(|reason| lines(reason).trim().to_owned());
    let kept = clean.filter(|reason| !reason.is_empty()).take(REASONS_MAX);
    kept.map(|reason| head(&reason, REASON_BYTES_MAX).trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_strictly() {
        let answer = ReviewAnswer::decode(br#"{"reasons": ["no test"], "verdict": "refuse"}"#);
        let reasons = vec!["no test".to_owned()];
        assert_eq!(answer, Ok(ReviewAnswer { verdict: ReviewVerdict::Refuse, reasons }));
        assert!(ReviewAnswer::decode(br#"{"verdict": "accept", "reasons": []}"#).is_ok());
        for (bytes, count) in [
            (&br#"{"verdict": "refuse", "reasons": []}"#[..], 1),
            (br#"{"verdict": "refuse", "reasons": [" "]}"#, 1),
            (br#"{"verdict": "pass", "reasons": "x", "score": 9}"#, 3),
            (br#"{"verdict": "accept"}"#, 1),
            (br#"{"verdict": "accept", "reasons": []} accept"#, 1),
            (b"accept", 1),
            (b"", 1),
        ] {
            let problems = ReviewAnswer::decode(bytes).unwrap_err();
            assert_eq!(problems.len(), count, "{problems:?}");
        }
    }

    #[test]
    fn a_record_is_parsed_as_it_was_written() {
        for result in ReviewResult::ALL {
            let record = ReviewRecord { result, round: Ordinal { nth: 1, of: 2 }, digest: Sha256::of(b"x") };
            assert_eq!(ReviewRecord::parse(&record.to_string()), Some(record));
            assert_eq!(ReviewRecord::parse(&format!("{record} 1")), None);
        }
        assert_eq!(ReviewRecord::parse("passed 1/2 x"), None);
    }

    #[test]
    fn bounding_reasons_again_changes_nothing() {
        let long = format!("{} {}", "é".repeat(499), "x".repeat(900));
        let many: Vec<String> = (0..40).map(|nth| format!("{nth}\u{1b}[31m {long}\n")).collect();
        let once = bounded_reasons(&many);
        assert_eq!(once.len(), REASONS_MAX);
        assert!(once.iter().all(|reason| reason.len() <= REASON_BYTES_MAX && !reason.contains('\u{1b}')));
        assert_eq!(bounded_reasons(&once), once);
        assert_eq!(bounded_reasons(&[" ".to_owned(), "a".to_owned()]), ["a"]);
    }
}
