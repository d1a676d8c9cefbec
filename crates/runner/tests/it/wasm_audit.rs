//! The audit that exported pages contain, compiled to WebAssembly, against `runner verify`: both must come to the same. This
//! also shows that the committed module is not older than the rules.
#![expect(clippy::indexing_slicing, reason = "here a fault is a failed test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use audit_bundle::BundleAudit;
use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;
use runner_host::repo::readonly_repo::ReadonlyRepo;
use serde_json::{Value, json};
use testkit::run_builder::{BRANCH, RUN, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

/// A run to audit twice.
pub(crate) struct AuditCase {
    name: String,
    bundle: Vec<u8>,
    verified: Value,
}

impl AuditCase {
    /// A run and what `runner verify --json` printed about it.
    pub(crate) fn new(sandbox: &TestRepo, name: &str, verified: Value) -> Self {
        let repo = ReadonlyRepo::open(sandbox.root()).unwrap();
        let text = |key: &str| verified[key].as_str().unwrap_or_default();
        assert!(verified["verdict"].is_string(), "{name}: {verified:#}");
        let run = RunId::new(text("run_id")).unwrap();
        let tip = CommitId::new(text("tip")).unwrap();
        let bundle = repo.bundle(&run, &tip).unwrap().unwrap();
        Self { name: name.to_owned(), bundle: bundle.bytes, verified }
    }
}

fn module_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../audit-bundle/wasm").join(name)
}

/// Runs the committed module in Node and returns its reports.
pub(crate) fn wasm_reports(folder: &Path, bundles: &[&[u8]]) -> Vec<Value> {
    let mut command = Command::new("node");
    command.arg(module_file("run-audit.mjs"));
    for (nth, bundle) in bundles.iter().enumerate() {
        let file = folder.join(format!("{nth}.objects"));
        std::fs::write(&file, bundle).unwrap();
        command.arg(file);
    }
    let printed = run(&mut command).ok().stdout;
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Asserts that the module reports for every case what `runner verify` reports.
pub(crate) fn assert_same_audits(cases: &[AuditCase]) {
    let folder = tempfile::tempdir().unwrap();
    let bundles: Vec<&[u8]> = cases.iter().map(|case| case.bundle.as_slice()).collect();
    let reports = wasm_reports(folder.path(), &bundles);
    assert_eq!(reports.len(), cases.len());
    let mut wrong = Vec::new();
    for (AuditCase { name, verified, .. }, mut report) in cases.iter().zip(reports) {
        for finding in report["findings"].as_array_mut().unwrap() {
            assert!(finding.as_object_mut().unwrap().remove("requirement").is_some());
        }
        let expected = json!({
            "verdict": verified["verdict"], "findings": verified["findings"], "unchecked": verified["unchecked"],
            "commits": verified["commits"].as_array().unwrap().len(), "iterations": verified["iterations"],
            "passed": verified["passed"], "complete": verified["complete"],
        });
        let found = json!({
            "verdict": report["verdict"], "findings": report["findings"], "unchecked": report["unchecked"],
            "commits": report["commits"], "iterations": report["iterations"].as_array().unwrap().len(),
            "passed": report["passed"], "complete": report["complete"],
        });
        if expected != found {
            wrong.push(format!("{name}: `runner verify` {expected:#}\nthe module {found:#}"));
        }
    }
    let advice = "if a rule or a format changed, run: just wasm-build";
    assert!(wrong.is_empty(), "{} of {}; {advice}\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn verified(sandbox: &TestRepo, run: &str) -> Value {
    serde_json::from_str(&sandbox.runner(&["verify", run, "--json"]).stdout).unwrap()
}

/// Splits, fails the guard once, and passes both tasks.
const AGENT: &str = r#"
case "$RUNNER_ITER" in
0001) split ;;
0002) answer done "not yet" ;;
*) echo "$RUNNER_ITER" > ok; answer done ;;
esac
"#;

fn builder() -> RunBuilder {
    RunBuilder::new(RUNNER).agent(AGENT).guard("test -e ok")
}

fn looped(builder: &RunBuilder) -> TestRepo {
    let sandbox = builder.start();
    sandbox.runner(&["loop"]).ok();
    sandbox
}

#[test]
fn forks_own_commits_links_and_other_hashes_are_audited_alike() {
    let mut cases = Vec::new();
    let fork = looped(&builder());
    fork.runner(&["fork", "2", "--id", "second"]).ok();
    fork.runner(&["loop"]).ok();
    cases.push(AuditCase::new(&fork, "a fork", verified(&fork, "second")));

    let own = builder().start();
    own.runner(&["loop", "--max-iterations", "2"]);
    own.write("notes/deep/of mine.txt", "mine");
    own.commit_all("docs: notes of mine");
    own.runner(&["loop"]).ok();
    own.git(&["commit", "-q", "--allow-empty", "-m", "one that nothing counts"]);
    cases.push(AuditCase::new(&own, "own commits", verified(&own, RUN)));

    let derived = builder()
        .derive_protection()
        .file("package.json", r#"{"scripts": {"test": "sh guard.sh", "other": "true"}}"#)
        .file("scripts/nested/helper.sh", "true\n");
    let derived = derived.guard("sh helper.sh; test -e ok").start();
    std::os::unix::fs::symlink("linked/nested/helper.sh", derived.path("helper.sh")).unwrap();
    std::os::unix::fs::symlink("scripts", derived.path("linked")).unwrap();
    derived.commit_all("chore: links");
    derived.runner(&["start"]).ok();
    assert!(derived.read(".runner/state/run_state.json").contains("helper.sh"), "the link is protected");
    derived.runner(&["loop"]).ok();
    cases.push(AuditCase::new(&derived, "derived protection and links", verified(&derived, RUN)));

    let patterns =
        builder().protected("**/*.sh\", \"docs/[a-c]*").file("docs/b.md", "b").file("a/x.sh", "true");
    let patterns = looped(&patterns);
    cases.push(AuditCase::new(&patterns, "patterns", verified(&patterns, RUN)));

    let long = TestRepo::empty(RUNNER);
    long.git(&["init", "-q", "-b", "main", "--object-format=sha256"]);
    let long = builder().start_in(long);
    long.runner(&["loop"]).ok();
    cases.push(AuditCase::new(&long, "SHA-256", verified(&long, RUN)));

    for case in &cases {
        let commits = case.verified["commits"].as_array().unwrap().len();
        assert!(commits >= 4, "{}: {:#}", case.name, case.verified);
    }
    assert_same_audits(&cases);
}

/// The verdict and the first finding or note of the module for a bundle.
fn outcome(bundle: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let report = wasm_reports(folder.path(), &[bundle]).remove(0);
    let first = report["findings"][0]["found"].as_str().or(report["unchecked"][0].as_str());
    format!("{} {}", report["verdict"].as_str().unwrap(), first.unwrap_or_default())
}

#[test]
fn a_bundle_with_a_changed_or_missing_object_is_not_verified() {
    let sandbox = looped(&builder());
    let AuditCase { bundle, .. } = AuditCase::new(&sandbox, "sound", verified(&sandbox, RUN));
    assert_eq!(outcome(&bundle), "verified ");
    // Single bytes of messages, documents and folders, at many places.
    let head = bundle.windows(5).position(|part| part == b"tree ").unwrap();
    let mut outcomes = std::collections::BTreeSet::new();
    for nth in 0..12 {
        let mut changed = bundle.clone();
        let at = head + 60 + (bundle.len() - head - 60) * nth / 12;
        changed[at] ^= 1;
        let Some(report) = BundleAudit::open(changed).and_then(BundleAudit::run) else { continue };
        outcomes.insert(report.verdict.as_str());
        // A byte of a difference that is copied from elsewhere can be the same byte.
        assert_ne!(report.verdict.as_str(), "verified", "byte {at}");
    }
    assert!(outcomes.contains("violated"), "{outcomes:?}");
}

#[test]
fn an_object_with_a_key_is_left_out_and_the_audit_says_so() {
    let token = format!("gh{}", "p_CANARY2a1B2c3D4e5F6g7H8i9J0k1L2m3N4");
    let sandbox = builder().file(".runner/prompts/leaf.md", format!("{token}\n")).start();
    sandbox.runner(&["loop", "--max-iterations", "1"]);
    let case = AuditCase::new(&sandbox, "a key", verified(&sandbox, RUN));
    assert!(!case.bundle.windows(6).any(|part| part == b"CANARY"), "the key is not in the bundle");
    let found = outcome(&case.bundle);
    assert!(
        found.starts_with("partial everything from ") && found.ends_with("contains a key and was left out"),
        "{found}"
    );
}

#[test]
fn a_shallow_clone_gives_a_bundle_that_is_verified_in_part() {
    let sandbox = looped(&builder());
    let clone = sandbox.outside().join("shallow");
    let url = format!("file://{}", sandbox.root().display());
    sandbox.git(&["clone", "-q", "--depth", "3", "--branch", BRANCH, &url, clone.to_str().unwrap()]);
    let tip = CommitId::new(sandbox.git(&["rev-parse", BRANCH])).unwrap();
    let bundle =
        ReadonlyRepo::open(&clone).unwrap().bundle(&RunId::new(RUN).unwrap(), &tip).unwrap().unwrap();
    let found = outcome(&bundle.bytes);
    assert!(
        found.starts_with("partial everything up to ") && found.ends_with(", where the commits end"),
        "{found}"
    );
}
