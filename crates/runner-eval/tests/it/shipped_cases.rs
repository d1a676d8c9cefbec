//! The cases in `eval/cases`.

use std::collections::BTreeSet;

use serde_json::Value;
use testkit::oracle::assert_no_processes_of;

use crate::Suite;
use crate::shipped_cases;

fn cases() -> String {
    shipped_cases().to_string_lossy().into_owned()
}

#[test]
fn every_scripted_case_ends_as_expected_and_they_cover_every_outcome() {
    let suite = Suite::new();
    let output = suite.json(&[
        "run",
        "--cases",
        &cases(),
        "--tag",
        "scripted",
        "--jobs",
        "3",
        "--retry-wait",
        "0",
        "--provider-check",
        "false",
    ]);
    assert_eq!(output["unexpected"], serde_json::json!([]), "{output}");
    assert_eq!(output["exit"], 0);
    let outcomes = output["outcomes"].as_object().unwrap();
    let outcomes: BTreeSet<&str> = outcomes.keys().map(String::as_str).collect();
    assert_eq!(outcomes, BTreeSet::from(["success", "fail", "stuck", "error", "skipped"]));
    assert!(output["trials"].as_u64().unwrap() >= 12);

    let results = suite.results();
    let causes: BTreeSet<&str> = results.iter().map(|result| result.cause.as_str()).collect();
    for cause in ["agent", "guard", "limit", "provider", "missing_tool"] {
        assert!(causes.contains(cause), "{cause}");
    }
    // Three attempts if the provider rejects the login, one at everything else.
    let mut retried: Vec<&str> = Vec::new();
    for result in results.iter().filter(|result| result.attempt > 1) {
        retried.push(&result.case);
    }
    assert_eq!(retried, ["provider-rejects-login", "provider-rejects-login"]);
    assert_no_processes_of(suite.repo.outside());
}

#[test]
fn result_has_all_files_and_the_latest_link_leads_to_its_workspace() {
    let suite = Suite::new();
    suite.eval(&["run", "adds-a-file", "--cases", &cases(), "--run", "r"]).ok();
    let folder = "eval/results/adds-a-file/r.case.t01.a1";
    for name in [
        "meta.json",
        "checks.json",
        "tree.json",
        "run_state.json",
        "inputs.json",
        "runner.start.log",
        "runner.loop.log",
    ] {
        assert!(suite.repo.path(folder).join(name).is_file(), "{name}");
    }
    let iterations = std::fs::read_dir(suite.repo.path(folder).join("iterations")).unwrap();
    assert_eq!(iterations.count(), 1);
    assert_eq!(suite.repo.read("eval/workspaces/adds-a-file_latest/greeting.txt"), "hello, world\n");
    let inputs: Value = serde_json::from_str(&suite.repo.read(&format!("{folder}/inputs.json"))).unwrap();
    for key in ["case_sha256", "fixture_sha256", "checks_sha256", "config_sha256"] {
        assert_eq!(inputs[key].as_str().unwrap().len(), 64, "{key}");
    }
    assert_eq!(inputs["runner"]["sha256"].as_str().unwrap().len(), 64);
}

/// `just eval-lint` tests every case several times.
#[test]
fn sampled_cases_of_the_suite_pass_lint() {
    let suite = Suite::new();
    let sample = [
        "honeypot-bypass",
        "fixes-a-ledger",
        "roman-numerals",
        "impossible-missing-data",
        "recovers-from-a-broken-tool",
        "recovers-from-a-flaky-guard",
        "recovers-from-a-merge",
        "recovers-from-a-wrong-plan",
    ];
    let folder = cases();
    let arguments = [&["lint", "--cases", &folder, "--jobs", "3", "--trials", "1"], &sample[..]].concat();
    let output = suite.json(&arguments);
    let failed: Vec<&Value> =
        output["cases"].as_array().unwrap().iter().filter(|case| case["ok"] != true).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(output["exit"], 0);
}

#[test]
fn every_case_of_the_suite_has_a_judge_a_solution_and_cheats() {
    let suite = Suite::new();
    let list = suite.json(&["list", "--cases", &cases(), "--tag", "suite"]);
    let listed = list["cases"].as_array().unwrap();
    assert!(listed.len() >= 30, "{}", listed.len());
    for case in listed {
        let file = std::fs::read_to_string(case["file"].as_str().unwrap()).unwrap();
        for part in ["type = \"judge\"", "solution = ", "cheats = [\"cheat.toml\""] {
            assert!(file.contains(part), "{}: {part}", case["id"]);
        }
    }
    for tag in [
        "python",
        "rust",
        "node",
        "shell",
        "long",
        "multi-file",
        "repair",
        "recovery",
        "impossible",
        "honeypot",
    ] {
        let is_tagged = |case: &Value| case["tags"].as_array().unwrap().contains(&tag.into());
        assert!(listed.iter().filter(|case| is_tagged(case)).count() >= 2, "{tag}");
    }
}

#[test]
fn lint_rejects_cases_that_are_too_easy_or_unsolvable() {
    let suite = Suite::with_cases(&["good"]);
    suite.add("too-easy", "", "");
    suite.repo.write("eval/cases/too-easy/case.toml", {
        let text = suite.repo.read("eval/cases/too-easy/case.toml");
        text.replace("type = \"file_exists\"\npath = \"done.txt\"", "type = \"git_clean\"")
    });
    suite.add("unsolvable", "", "");
    let output = suite.eval(&["lint", "--jobs", "3", "--trials", "1"]);
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    assert!(output.stdout.contains("case=good ok=true"), "{}", output.stdout);
    // Doing nothing succeeds in one case, and the solution of the other fails.
    assert!(output.stdout.contains("case=too-easy ok=false oracle=success nop=success"), "{}", output.stdout);
    assert!(output.stdout.contains("case=unsolvable ok=false oracle=\"fail:"), "{}", output.stdout);
    assert!(!suite.repo.path("eval/results").exists(), "lint records no results");
}
