//! The cases of this repository.

use std::collections::BTreeSet;

use serde_json::Value;
use testkit::oracle::assert_nothing_of;

use crate::Suite;
use crate::shipped_cases;

fn cases() -> String {
    shipped_cases().to_string_lossy().into_owned()
}

#[test]
fn every_scripted_case_ends_as_its_file_says_and_every_outcome_is_among_them() {
    let suite = Suite::new();
    let told =
        suite.json(&["run", "--cases", &cases(), "--tag", "scripted", "--jobs", "3", "--retry-wait", "0"]);
    assert_eq!(told["unexpected"], serde_json::json!([]), "{told}");
    assert_eq!(told["exit"], 0);
    let outcomes = told["outcomes"].as_object().unwrap();
    let seen: BTreeSet<&str> = outcomes.keys().map(String::as_str).collect();
    assert_eq!(seen, BTreeSet::from(["success", "fail", "stuck", "error", "skipped"]));
    assert!(told["units"].as_u64().unwrap() >= 12);

    let results = suite.results();
    let causes: BTreeSet<&str> = results.iter().map(|(.., cause)| cause.as_str()).collect();
    for cause in ["agent", "guard", "limit", "provider", "missing_tool"] {
        assert!(causes.contains(cause), "{cause}");
    }
    // Three attempts at what the provider turned away, and one at everything else.
    let many: Vec<&str> =
        results.iter().filter(|(_, _, attempt, ..)| *attempt > 1).map(|(case, ..)| case.as_str()).collect();
    assert_eq!(many, ["provider-turns-away", "provider-turns-away"]);
    assert_nothing_of(suite.sandbox.outside());
}

#[test]
fn a_result_has_the_files_of_the_contract_and_a_link_leads_to_its_workspace() {
    let suite = Suite::new();
    suite.eval(&["run", "adds-a-file", "--cases", &cases(), "--run", "r"]).ok();
    let folder = "eval/results/adds-a-file/r.case.t01.a1";
    for name in [
        "meta.json",
        "checks.json",
        "tree.json",
        "run_state.json",
        "lock.json",
        "runner.start.log",
        "runner.loop.log",
    ] {
        assert!(suite.sandbox.path(folder).join(name).is_file(), "{name}");
    }
    let iterations: Vec<_> =
        std::fs::read_dir(suite.sandbox.path(folder).join("iterations")).unwrap().collect();
    assert_eq!(iterations.len(), 1);
    assert_eq!(suite.sandbox.read("eval/workspaces/adds-a-file_latest/greeting.txt"), "hello, world\n");
    let lock: Value = serde_json::from_str(&suite.sandbox.read(&format!("{folder}/lock.json"))).unwrap();
    for key in ["case_sha256", "fixture_sha256", "checks_sha256", "config_sha256"] {
        assert_eq!(lock[key].as_str().unwrap().len(), 64, "{key}");
    }
    assert_eq!(lock["runner"]["sha256"].as_str().unwrap().len(), 64);
}

#[test]
fn every_shipped_case_is_sound() {
    let suite = Suite::new();
    let told = suite.json(&["lint", "--cases", &cases(), "--jobs", "3"]);
    let unsound: Vec<&Value> =
        told["cases"].as_array().unwrap().iter().filter(|case| case["sound"] != true).collect();
    assert!(unsound.is_empty(), "{unsound:#?}");
    assert_eq!(told["exit"], 0);
    let real = suite.json(&["list", "--cases", &cases(), "--tag", "real"]);
    assert!(real["cases"].as_array().unwrap().len() >= 3);
}

#[test]
fn a_case_that_says_too_much_or_too_little_is_unsound() {
    let suite = Suite::of(&["good"]);
    suite.add("idle", "", "");
    suite.sandbox.write("eval/cases/idle/case.toml", {
        let text = suite.sandbox.read("eval/cases/idle/case.toml");
        text.replace("type = \"file_exists\"\npath = \"done.txt\"", "type = \"git_clean\"")
    });
    suite.add("hopeless", "", "");
    let ran = suite.eval(&["lint", "--jobs", "3"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stdout.contains("case=good sound=true"), "{}", ran.stdout);
    // Doing nothing succeeds in the one, and the solution does not in the other.
    assert!(ran.stdout.contains("case=idle sound=false oracle=success nop=success"), "{}", ran.stdout);
    assert!(ran.stdout.contains("case=hopeless sound=false oracle=\"fail:"), "{}", ran.stdout);
    assert!(!suite.sandbox.path("eval/results").exists(), "what is only tried is no result");
}
