//! What a run proves, as in-toto statements: one test result for every pass, and one verification summary for the run. Other
//! tools read these without knowing the runner. A statement has no date, so that the same run gives the same bytes.

use serde_json::{Value, json};

use crate::checks::coverage::Coverage;
use crate::commit_message::{MessageParts, Trailer};
use crate::model::checks::CheckRecord;
use crate::model::digest::Sha256;
use crate::model::heldout::{HeldoutRecord, HeldoutResult};
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::object_id::CommitId;
use crate::model::review::ReviewRecord;
use crate::verify::Verdict;

const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const TEST_RESULT: &str = "https://in-toto.io/attestation/test-result/v0.1";
const VERIFICATION_SUMMARY: &str = "https://slsa.dev/verification_summary/v1";
/// The type of a statement inside an envelope.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const VERIFIER: &str = "https://runner.dev/verify/v1";

/// A pass to attest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttestedPass<'a> {
    pub run: &'a RunId,
    pub iter: IterationNumber,
    pub node: &'a NodeId,
    pub commit: &'a CommitId,
    /// The guard's command at that commit.
    pub guard: &'a [String],
    /// The message of the commit, whose trailers have the rest.
    pub message: &'a MessageParts<'a>,
}

/// The result of verifying a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttestedRun<'a> {
    pub run: &'a RunId,
    pub tip: &'a CommitId,
    pub verdict: Verdict,
    /// The tasks that passed.
    pub passed: &'a [NodeId],
    pub coverage: Coverage,
    /// The version of the runner that verified.
    pub version: &'a str,
}

/// A commit as the subject of a statement.
fn subject(run: &RunId, commit: &CommitId) -> Value {
    json!([{ "name": format!("git+branch:{}", run.branch()), "digest": { "gitCommit": commit.as_str() } }])
}

/// The statement that a task passed on a commit: its guard, its checks and its held-out checks succeeded.
pub fn test_result(pass: &AttestedPass<'_>) -> Value {
    let AttestedPass { run, iter, node, guard, message, .. } = pass;
    let place = |trailer| message.value(trailer);
    let mut configuration = vec![json!({
        "name": "guard",
        "annotations": {
            "command": guard,
            "exit": place(Trailer::GuardExit),
            "room": place(Trailer::Room),
            "candidate": place(Trailer::Candidate),
        },
    })];
    let mut passed = vec![json!(node)];
    let checks = message.values(Trailer::Check).filter_map(CheckRecord::parse);
    for CheckRecord { name, red, exit, digest } in checks {
        passed.extend(exit.filter(|exit| exit.is_green()).map(|_| json!(format!("{node}/{name}"))));
        let annotations = json!({ "kind": "check", "red": red, "exit": exit });
        configuration.push(descriptor(&format!("{node}/{name}"), digest, &annotations));
    }
    for HeldoutRecord { node, name, red, result, digest } in
        message.values(Trailer::Heldout).filter_map(HeldoutRecord::parse)
    {
        let has_passed = result == Some(HeldoutResult::Pass);
        passed.extend(has_passed.then(|| json!(format!("{node}/{name}"))));
        let annotations = json!({ "kind": "held-out check", "red": red, "result": result });
        configuration.push(descriptor(&format!("{node}/{name}"), digest, &annotations));
    }
    if let Some(ReviewRecord { result, round, digest }) =
        message.value(Trailer::Review).and_then(ReviewRecord::parse)
    {
        let annotations = json!({ "kind": "review", "result": result, "round": round });
        configuration.push(descriptor("review", digest, &annotations));
    }
    let notes: Vec<&str> = message.values(Trailer::Annotation).collect();
    json!({
        "_type": STATEMENT,
        "subject": subject(run, pass.commit),
        "predicateType": TEST_RESULT,
        "predicate": {
            "result": "PASSED",
            "configuration": configuration,
            "passedTests": passed,
            "annotations": { "run": run, "iteration": iter, "notes": notes },
        },
    })
}

/// What took part in a pass, with the digest that its commit records.
fn descriptor(name: &str, digest: Sha256, annotations: &Value) -> Value {
    json!({ "name": name, "digest": { "sha256": digest }, "annotations": annotations })
}

/// The statement that the run's history follows the rules.
pub fn verification_summary(run: &AttestedRun<'_>) -> Value {
    let result = match run.verdict {
        Verdict::Verified => "PASSED",
        Verdict::Violated | Verdict::Partial => "FAILED",
    };
    json!({
        "_type": STATEMENT,
        "subject": subject(run.run, run.tip),
        "predicateType": VERIFICATION_SUMMARY,
        "predicate": {
            "verifier": { "id": VERIFIER, "version": { "runner": run.version } },
            "resourceUri": format!("git+branch:{}", run.run.branch()),
            "policy": { "uri": format!("{VERIFIER}/rules") },
            "verificationResult": result,
            "verifiedLevels": [],
            "annotations": { "verdict": run.verdict, "passed": run.passed, "acceptance": run.coverage },
        },
    })
}

/// The bytes that a signature of a payload covers, as DSSE defines them: type and payload with their lengths, so that neither
/// can be taken for a part of the other.
pub fn signed_bytes(payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len()).into_bytes();
    bytes.extend(payload);
    bytes
}

pub fn envelope(payload: &[u8], signature: &[u8], key: &str) -> Value {
    json!({
        "payloadType": PAYLOAD_TYPE,
        "payload": base64(payload),
        "signatures": [{ "keyid": key, "sig": base64(signature) }],
    })
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Standard base64 with padding.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for (nth, shift) in [18_u32, 12, 6, 0].into_iter().enumerate() {
            let digit = usize::try_from((bits >> shift) & 63).unwrap_or_default();
            let letter = ALPHABET.get(digit).copied().unwrap_or(b'=');
            text.push(if nth <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
            ("\u{ff}?", "w78/"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn a_signature_covers_type_and_lengths() {
        assert_eq!(signed_bytes(b"{}"), b"DSSEv1 28 application/vnd.in-toto+json 2 {}");
    }

    #[test]
    fn only_a_verified_run_passed() {
        let run = RunId::new("x").unwrap();
        let tip = CommitId::new("0123456789012345678901234567890123456789").unwrap();
        let summary = |verdict| {
            let coverage = Coverage::default();
            let attested = AttestedRun { run: &run, tip: &tip, verdict, passed: &[], coverage, version: "1" };
            verification_summary(&attested)["predicate"]["verificationResult"].clone()
        };
        assert_eq!(summary(Verdict::Verified), "PASSED");
        assert_eq!(
            (summary(Verdict::Partial), summary(Verdict::Violated)),
            ("FAILED".into(), "FAILED".into())
        );
    }
}
