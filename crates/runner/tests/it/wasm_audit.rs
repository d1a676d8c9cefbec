//! The audit that exported pages contain, compiled to WebAssembly, against `runner verify`: both must come to the same. This
//! also shows that the committed module is not older than the rules.

use std::path::{Path, PathBuf};
use std::process::Command;

use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;
use runner_host::repo::readonly_repo::ReadonlyRepo;
use serde_json::{Value, json};
use testkit::test_repo::{TestRepo, run};

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
        let text = |key: &str| verified[key].as_str().unwrap_or_else(|| panic!("{name}: {verified:#}"));
        let run = RunId::new(text("run_id")).unwrap();
        let tip = CommitId::new(text("tip")).unwrap();
        let bundle = repo.bundle(&run, &tip).unwrap_or_else(|error| panic!("{name}: {error}")).unwrap();
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
