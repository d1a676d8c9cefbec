//! Verifies a run for the page by running `runner verify`, which reads git alone; once for every tip of the run's branch.

use std::time::Duration;

use runner_core::text::one_line;
use serde_json::Value;
use supervise::executables::capture_sibling;

use crate::api::{VerifyResult, VerifyVerdict};
use crate::read::repo_reader::{RepoReader, RunSource};

/// How long `runner verify` may take on a long run.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How much of its output is read.
const OUTPUT_BYTES_MAX: u64 = 4 << 20;
/// How many findings are listed.
const FINDINGS_MAX: usize = 20;

pub(crate) fn verify(project: &RepoReader, run: &RunSource) -> VerifyResult {
    let command = format!("runner verify {}", run.id);
    if !project.repo.has_repository() {
        return unknown("the repository is missing, and only git can prove a run", None);
    }
    let root = project.repo.root().as_os_str().to_owned();
    let args = ["-C".into(), root, "verify".into(), run.id.as_str().into(), "--json".into()];
    let output = capture_sibling("runner", &args, OUTPUT_BYTES_MAX, TIMEOUT);
    let report: Option<Value> = output.and_then(|output| serde_json::from_slice(&output.stdout).ok());
    let result = report.as_ref().and_then(|report| parse_report(report, &command));
    result.unwrap_or_else(|| unknown("`runner verify` is missing or failed", Some(command)))
}

fn unknown(summary: &str, command: Option<String>) -> VerifyResult {
    VerifyResult {
        verdict: VerifyVerdict::Unknown,
        summary: summary.to_owned(),
        details: Vec::new(),
        command,
    }
}

/// The result in the JSON that `runner verify` prints; `None` for any other JSON.
fn parse_report(report: &Value, command: &str) -> Option<VerifyResult> {
    let is_verified = report.get("verified")?.as_bool()?;
    let number = |key: &str| report.get(key).and_then(Value::as_u64).unwrap_or_default();
    let findings = report.get("findings").and_then(Value::as_array).into_iter().flatten();
    let text =
        |finding: &Value| one_line(&finding.as_str().map_or_else(|| finding.to_string(), str::to_owned));
    let details = findings.take(FINDINGS_MAX).map(text).collect();
    let (verdict, summary) = if is_verified {
        let (iterations, commits) = (number("iterations"), number("commits"));
        let summary = format!("every rule held: {iterations} iterations in {commits} commits");
        (VerifyVerdict::Verified, summary)
    } else {
        (VerifyVerdict::Violated, "a rule was violated".to_owned())
    };
    Some(VerifyResult { verdict, summary, details, command: Some(command.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_report_of_runner_verify_is_a_result() {
        let report = json!({ "verified": true, "iterations": 6, "commits": 7, "findings": [] });
        let verified = parse_report(&report, "c").unwrap();
        assert_eq!(verified.verdict, VerifyVerdict::Verified);
        assert_eq!(verified.summary, "every rule held: 6 iterations in 7 commits");
        let report = json!({ "verified": false, "findings": ["x", { "rule": "y" }] });
        let violated = parse_report(&report, "c").unwrap();
        assert_eq!((violated.verdict, violated.details.len()), (VerifyVerdict::Violated, 2));
        for other in [json!({}), json!({ "verified": "yes" }), json!([]), json!({ "error": {} })] {
            assert!(parse_report(&other, "c").is_none(), "{other}");
        }
    }
}
