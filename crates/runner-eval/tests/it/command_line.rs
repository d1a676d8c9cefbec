//! Behaviour of the commands: help, errors, JSON events, retries, budget, regrade.

use std::fs;

use serde_json::Value;
use testkit::test_repo::run;

use crate::Suite;

#[test]
fn every_command_has_help_with_an_example() {
    let suite = Suite::new();
    for arguments in [
        &["list"][..],
        &["run"],
        &["lint"],
        &["clean"],
        &["plan"],
        &["merge"],
        &["submit", "slurm"],
        &["submit", "k8s"],
        &["regrade"],
        &["results"],
        &["report"],
        &["compare"],
        &["gate"],
    ] {
        let mut command = suite.repo.runner_command(arguments);
        let output = run(command.arg("--help")).ok();
        assert!(output.stdout.contains("Examples:\n  runner eval "), "{arguments:?}: {}", output.stdout);
    }
}

#[test]
fn invalid_case_is_reported_with_lines_and_suggestions() {
    let suite = Suite::with_cases(&["good"]);
    suite.repo.write(
        "eval/cases/bad.toml",
        "[case]\nid = \"bad\"\ngaol = \"g\"\n[[checks]]\ntype = \"git_clean\"\n",
    );
    let error = suite.eval(&["run"]).refused(2);
    assert!(error.contains("line 3: `case.gaol` is not a known key; did you mean `goal`?"), "{error}");
    assert!(error.contains("line 1: `case.goal` is missing"), "{error}");
    let mut command = suite.repo.runner_command(&["run", "--json"]);
    let error: Value = serde_json::from_str(&run(&mut command).stderr).unwrap();
    assert_eq!((&error["code"], &error["exit"]), (&"case".into(), &2.into()));
}

#[test]
fn invalid_arguments_are_reported_with_a_suggestion() {
    let suite = Suite::with_cases(&["alpha"]);
    for (arguments, hint) in [
        (&["run", "alphax"][..], "did you mean `alpha`?"),
        (&["run", "--agent", "cheat"], "none of these agents can run"),
        (&["run", "alpha", "--agent", "cheat"], "`cheats` under [case]"),
        (&["run", "--agent", "codexx"], "the agents are codex, claude"),
        (&["run", "--partition", "half"], "slice:M/N or hash:M/N"),
        (&["run", "--run", "a/b"], "only letters, digits"),
        (&["run", "--run", "_runs"], "must not begin with"),
        (&["run", "--retry-wait=-1"], "--retry-wait must not be negative"),
    ] {
        let error = suite.eval(arguments).refused(2);
        assert!(error.contains(hint), "{arguments:?}: {error}");
    }
}

#[test]
fn json_output_is_one_event_per_line_and_ends_with_a_summary() {
    let suite = Suite::with_cases(&["a", "b"]);
    let output = suite.eval(&["run", "--json", "--trials", "2"]).ok();
    let events: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&events[0]["event"], &events[0]["trials"]), (&"start".into(), &4.into()));
    assert_eq!(events.iter().filter(|event| event["event"] == "trial").count(), 4);
    let end = events.last().unwrap();
    assert_eq!((&end["event"], &end["stop_reason"]), (&"end".into(), &"complete".into()));
    assert_eq!(end["outcomes"], serde_json::json!({ "success": 4 }));
}

#[test]
fn unexpected_outcome_fails_the_command() {
    let suite = Suite::new();
    suite.add("wrong", "expect = \"stuck\"\n", "");
    let output = suite.eval(&["run"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("unexpected=wrong:fail"), "{}", output.stdout);
}

#[test]
fn lost_trial_is_retried_and_every_attempt_is_kept() {
    let suite = Suite::new();
    // The setup succeeds the second time.
    let setup = "setup = [\"sh\", \"-c\", \"test -e ../tried || { touch ../tried; exit 3; }\"]\n";
    suite.add("flaky", setup, "[[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n");
    suite.eval(&["run", "--run", "r", "--retry-wait", "0"]).ok();
    let results = suite.results();
    let attempts: Vec<(u64, &str, &str)> =
        results.iter().map(|result| (result.attempt, &*result.outcome, &*result.cause)).collect();
    assert_eq!(attempts, [(1, "error", "harness"), (2, "success", "none")]);
    let first = suite.repo.read("eval/results/flaky/r.case.t01.a1/meta.json");
    assert!(first.contains("setup: `sh -c"), "{first}");
}

#[test]
fn budget_stops_new_trials_and_a_larger_one_continues_the_run() {
    let suite = Suite::new();
    for name in ["a", "b", "c"] {
        suite.add(name, "", "[[session.do]]\nreport = { input_tokens = 10, cost_microdollars = 600000 }\n[[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n");
    }
    let output = suite.eval(&["run", "--budget-usd", "1"]);
    assert_eq!(output.code, Some(4), "{}", output.stdout);
    let end = "stop_reason=budget trials=3 already_done=0 results=2";
    assert!(output.stdout.contains(end), "{}", output.stdout);
    let output = suite.eval(&["run", "--budget-usd", "5"]).ok();
    assert!(output.stdout.contains("already_done=2 results=3"), "{}", output.stdout);
    let results = suite.json(&["results"]);
    assert_eq!(
        results["results"][0]["cost"],
        serde_json::json!({ "microdollars": 600_000, "source": "reported" })
    );
    assert_eq!(results["results"][0]["tokens"], 10);
}

#[test]
fn regrade_runs_changed_checks_on_recorded_workspaces() {
    let suite = Suite::with_cases(&["one", "two"]);
    suite.eval(&["run", "--run", "r"]).ok();
    let same = suite.eval(&["regrade", "--run", "r"]).ok();
    assert!(same.stdout.starts_with("run=r graded=2 changed=0 skipped=0"), "{}", same.stdout);
    let case = suite.repo.read("eval/cases/one/case.toml");
    suite.repo.write("eval/cases/one/case.toml", case.replace("path = \"done.txt\"", "path = \"other.txt\""));
    let regrade = suite.json(&["regrade", "--run", "r"]);
    assert_eq!(regrade["changed"].as_array().unwrap().len(), 1, "{regrade}");
    let changed = &regrade["changed"][0];
    assert_eq!((&changed["before"], &changed["after"]), (&"success".into(), &"fail".into()));
    assert_eq!(
        changed["checks"][0],
        serde_json::json!({ "name": "file_exists-1", "before": "passed", "after": "failed" })
    );
    assert_eq!(suite.results().len(), 2, "regrade changes no result");
    suite.eval(&["regrade", "--run", "r", "--record"]).ok();
    assert_eq!(suite.outcomes(), ["one success", "one fail", "two success"], "both judgements are kept");
    let report = suite.json(&["report", "table", "r"]);
    assert_eq!(report["agents"][0]["pass_rate"], 0.5, "the new judgement counts: {report}");
    let again = suite.eval(&["regrade", "--run", "r", "--record"]).ok();
    assert!(again.stdout.starts_with("run=r graded=2 changed=0"), "{}", again.stdout);
    suite.eval(&["merge", "--run", "r"]).ok();
    suite.eval(&["clean", "--run", "r"]).ok();
    let skipped = suite.eval(&["regrade", "--run", "r"]).ok();
    assert!(skipped.stdout.contains("skipped=2"), "{}", skipped.stdout);
    assert!(skipped.stdout.contains("the workspace was removed"), "{}", skipped.stdout);
    suite.eval(&["clean", "--run", "r", "--all"]).ok();
    assert_eq!(suite.results().len(), 0);
}

#[test]
fn clean_without_a_run_removes_all_workspaces_and_keeps_results() {
    let suite = Suite::with_cases(&["one"]);
    suite.eval(&["run", "--run", "r"]).ok();
    suite.eval(&["clean"]).ok();
    assert_eq!(fs::read_dir(suite.repo.path("eval/workspaces")).unwrap().count(), 0);
    assert_eq!(suite.results().len(), 1);
}

#[test]
fn sample_is_the_same_for_the_same_seed() {
    let suite = Suite::with_cases(&["a", "b", "c", "d", "e", "f"]);
    let list = |seed: &str| suite.eval(&["list", "--sample", "3", "--seed", seed]).ok().stdout;
    assert_eq!(list("1").lines().count(), 3);
    assert_eq!(list("1"), list("1"));
    assert!((2..12).any(|seed| list(&seed.to_string()) != list("1")));
}
