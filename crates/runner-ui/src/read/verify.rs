//! Verifies a run for the page by running `runner verify`, which reads git alone; once for every tip of the run's branch.

use std::time::Duration;

use runner_core::format::counted;
use runner_core::text::one_line;
use runner_core::verify::Rule;
use serde_json::Value;
use supervise::executables::capture_sibling;

use crate::api::{VerifyFinding, VerifyResult, VerifyVerdict};
use crate::read::repo_reader::{RepoReader, RunSource};

/// How long `runner verify` may take on a long run.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How much of its output is read.
const OUTPUT_BYTES_MAX: u64 = 4 << 20;
/// How many findings are listed.
const FINDINGS_MAX: usize = 50;

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
        findings: Vec::new(),
        violations: 0,
        commits: 0,
        iterations: 0,
        unchecked: Vec::new(),
        command,
    }
}

/// The result in the JSON that `runner verify` prints; `None` for any other JSON.
fn parse_report(report: &Value, command: &str) -> Option<VerifyResult> {
    let verdict = report.get("verdict")?.as_str()?;
    let list = |key: &str| report.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let findings = list("findings");
    let (commits, violations) = (list("commits").len(), findings.len());
    let iterations = report.get("iterations").and_then(Value::as_u64).unwrap_or_default();
    let extent = || {
        let iterations = counted(iterations, "iteration", "iterations");
        format!("{iterations}, {}", counted(commits, "commit", "commits"))
    };
    let (verdict, summary) = match verdict {
        "verified" => (VerifyVerdict::Verified, format!("verified: {}, no violations", extent())),
        "partial" => {
            let summary =
                format!("partly verified: {}, no violations, but not everything could be checked", extent());
            (VerifyVerdict::Partial, summary)
        }
        "violated" => {
            let first = findings.first().and_then(|finding| finding.get("commit")?.as_str());
            let first = first.map(|commit| format!(", the first in {}", short(commit))).unwrap_or_default();
            let violations = counted(violations, "violation", "violations");
            (VerifyVerdict::Violated, format!("verification failed: {violations}{first}"))
        }
        _ => return None,
    };
    Some(VerifyResult {
        verdict,
        summary,
        findings: findings.iter().take(FINDINGS_MAX).map(finding_view).collect(),
        violations,
        commits,
        iterations,
        unchecked: list("unchecked").iter().filter_map(Value::as_str).map(one_line).collect(),
        command: Some(command.to_owned()),
    })
}

fn short(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}

fn finding_view(finding: &Value) -> VerifyFinding {
    let text = |key: &str| one_line(finding.get(key).and_then(Value::as_str).unwrap_or_default());
    let rule = text("rule");
    let requirement = Rule::ALL.iter().find(|known| known.as_str() == rule);
    let iter = finding.get("iter").and_then(|iter| match iter {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    });
    VerifyFinding {
        requirement: requirement.map_or_else(String::new, |rule| rule.description().to_owned()),
        rule,
        commit: text("commit"),
        iter: iter.and_then(|iter| u32::try_from(iter).ok()),
        expected: text("expected"),
        found: text("found"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn commits_are_counted_as_the_report_lists_them() {
        let report =
            json!({ "verdict": "verified", "iterations": 6, "commits": [{}, {}, {}], "findings": [] });
        let verified = parse_report(&report, "c").unwrap();
        assert_eq!((verified.verdict, verified.commits), (VerifyVerdict::Verified, 3));
        assert_eq!(verified.summary, "verified: 6 iterations, 3 commits, no violations");
    }

    #[test]
    fn a_finding_has_its_rule_in_words() {
        let commit = "3185e9a".repeat(5);
        let finding = json!({
            "rule": "passed_changed", "commit": commit, "iter": "0004", "expected": "a\n", "found": "b",
        });
        let report = json!({ "verdict": "violated", "findings": [finding, { "rule": "of_a_newer_runner" }] });
        let violated = parse_report(&report, "c").unwrap();
        assert_eq!((violated.verdict, violated.violations), (VerifyVerdict::Violated, 2));
        assert_eq!(violated.summary, "verification failed: 2 violations, the first in 3185e9a");
        let first = violated.findings.first().unwrap();
        assert_eq!((first.iter, first.expected.as_str(), first.found.as_str()), (Some(4), "a", "b"));
        assert_eq!(first.requirement, Rule::PassedChanged.description());
        assert_eq!(violated.findings.last().unwrap().requirement, "");
    }

    #[test]
    fn only_a_report_of_runner_verify_is_a_result() {
        for other in [json!({}), json!({ "verdict": "yes" }), json!([]), json!({ "error": {} })] {
            assert!(parse_report(&other, "c").is_none(), "{other}");
        }
    }
}
