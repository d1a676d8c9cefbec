//! Whether a run's history proves itself: asked of `runner verify`, which reads git alone, once for every state of the
//! run's branch.

use std::time::Duration;

use runner_core::text::one_line;
use serde_json::Value;
use supervise::executables::capture_sibling;

use crate::api::VerifyResult;
use crate::read::repo_reader::{RepoReader, RunSource};

/// How long the proof of a long run may take.
const WAIT_MAX: Duration = Duration::from_secs(120);
/// How much of its answer is read.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// How many findings are told.
const FINDINGS_MAX: usize = 20;

/// What the runner says of a run.
pub(crate) fn verdict(project: &RepoReader, run: &RunSource) -> VerifyResult {
    let command = format!("runner verify {}", run.id);
    let unknown = |says: &str| VerifyResult {
        verdict: "unknown".to_owned(),
        says: says.to_owned(),
        details: Vec::new(),
        command: Some(command.clone()),
    };
    if !project.reading.has_repository() {
        return VerifyResult {
            command: None,
            ..unknown("the repository is gone, and only git can prove a run")
        };
    }
    let root = project.reading.root().as_os_str().to_owned();
    let args = ["-C".into(), root, "verify".into(), run.id.as_str().into(), "--json".into()];
    let answer = capture_sibling("runner", &args, ANSWER_BYTES_MAX, WAIT_MAX);
    let answer = answer.and_then(|asked| serde_json::from_slice::<Value>(&asked.stdout).ok());
    answer
        .as_ref()
        .and_then(|answer| told(answer, &command))
        .unwrap_or_else(|| unknown("the runner beside this page gave no proof"))
}

/// The answer in words.
fn told(answer: &Value, command: &str) -> Option<VerifyResult> {
    let is_held = answer.get("verified")?.as_bool()?;
    let number = |key: &str| answer.get(key).and_then(Value::as_u64).unwrap_or_default();
    let findings = answer.get("findings").and_then(Value::as_array);
    let text =
        |finding: &Value| one_line(&finding.as_str().map_or_else(|| finding.to_string(), str::to_owned));
    let says = if is_held {
        format!("every rule held: {} iterations in {} commits", number("iterations"), number("commits"))
    } else {
        "a rule did not hold".to_owned()
    };
    Some(VerifyResult {
        verdict: if is_held { "held" } else { "broken" }.to_owned(),
        says,
        details: findings.into_iter().flatten().take(FINDINGS_MAX).map(text).collect(),
        command: Some(command.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_proof_is_told_and_anything_else_is_none() {
        let held =
            told(&json!({ "verified": true, "iterations": 6, "commits": 7, "findings": [] }), "c").unwrap();
        assert_eq!(
            (held.verdict.as_str(), held.says.as_str()),
            ("held", "every rule held: 6 iterations in 7 commits")
        );
        let broken = told(&json!({ "verified": false, "findings": ["x", { "rule": "y" }] }), "c").unwrap();
        assert_eq!((broken.verdict.as_str(), broken.details.len()), ("broken", 2));
        for other in [json!({}), json!({ "verified": "yes" }), json!([]), json!({ "error": {} })] {
            assert!(told(&other, "c").is_none(), "{other}");
        }
    }
}
