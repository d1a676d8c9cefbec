//! How the commands behave.

use std::fs;

use serde_json::Value;
use testkit::test_repo::run;

use crate::Suite;

#[test]
fn every_command_has_help_with_an_example() {
    let suite = Suite::new();
    for words in [
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
        let mut command = suite.sandbox.runner_command(words);
        let ran = run(command.arg("--help")).ok();
        assert!(ran.stdout.contains("Examples:\n  runner eval "), "{words:?}: {}", ran.stdout);
    }
}

#[test]
fn a_case_that_cannot_be_read_is_told_with_line_and_suggestion() {
    let suite = Suite::of(&["good"]);
    suite.sandbox.write(
        "eval/cases/bad.toml",
        "[case]\nid = \"bad\"\ngaol = \"g\"\n[[checks]]\ntype = \"git_clean\"\n",
    );
    let told = suite.eval(&["list"]).refused(2);
    assert!(told.contains("line 3: `case.gaol` is not a known key; did you mean `goal`?"), "{told}");
    assert!(told.contains("line 1: `case.goal` is missing"), "{told}");
    let mut command = suite.sandbox.runner_command(&["list", "--json"]);
    let error: Value = serde_json::from_str(&run(&mut command).stderr).unwrap();
    assert_eq!((&error["code"], &error["exit"]), (&"case".into(), &2.into()));
}

#[test]
fn a_wrong_word_is_told_with_the_right_one() {
    let suite = Suite::of(&["alpha"]);
    assert!(suite.eval(&["run", "alphax"]).refused(2).contains("did you mean `alpha`?"));
    assert!(suite.eval(&["run", "--agent", "cheat"]).refused(2).contains("none of these cases"));
    assert!(suite.eval(&["run", "alpha", "--agent", "cheat"]).refused(2).contains("`cheat` under [case]"));
    assert!(suite.eval(&["run", "--agent", "codexx"]).refused(2).contains("there are codex, claude"));
    assert!(suite.eval(&["run", "--partition", "half"]).refused(2).contains("slice:M/N or hash:M/N"));
}

#[test]
fn json_is_one_line_an_event_and_the_last_one_tells_the_end() {
    let suite = Suite::of(&["a", "b"]);
    let ran = suite.eval(&["run", "--json", "--trials", "2"]).ok();
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&events[0]["event"], &events[0]["units"]), (&"begin".into(), &4.into()));
    assert_eq!(events.iter().filter(|event| event["event"] == "ended").count(), 4);
    assert_eq!(events.last().unwrap()["outcomes"], serde_json::json!({ "success": 4 }));
}

#[test]
fn a_case_that_does_not_end_as_its_file_says_fails_the_command() {
    let suite = Suite::new();
    suite.add("wrong", "expect = \"stuck\"\n", "");
    let ran = suite.eval(&["run"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("unexpected=wrong:fail"), "{}", ran.stdout);
}

#[test]
fn what_the_evaluation_spoiled_is_tried_again_and_every_attempt_is_kept() {
    let suite = Suite::new();
    // The setup works the second time.
    let setup = "setup = [\"sh\", \"-c\", \"test -e ../tried || { touch ../tried; exit 3; }\"]\n";
    suite.add("flaky", setup, "[[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n");
    suite.eval(&["run", "--retry-wait", "0"]).ok();
    let ended: Vec<(u64, String, String)> = suite
        .results()
        .into_iter()
        .map(|(_, _, attempt, outcome, cause)| (attempt, outcome, cause))
        .collect();
    let line = |attempt, outcome: &str, cause: &str| (attempt, outcome.to_owned(), cause.to_owned());
    assert_eq!(ended, [line(1, "error", "harness"), line(2, "success", "none")]);
    let spoiled = suite.sandbox.read(&format!(
        "eval/results/flaky/{}/meta.json",
        first_name(&suite.sandbox.path("eval/results/flaky"))
    ));
    assert!(spoiled.contains("setup: `sh -c"), "{spoiled}");
}

fn first_name(folder: &std::path::Path) -> String {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names.remove(0)
}

#[test]
fn a_spent_budget_begins_nothing_more_and_more_of_it_goes_on() {
    let suite = Suite::new();
    for name in ["a", "b", "c"] {
        suite.add(name, "", "[[session.do]]\nreport = { input_tokens = 10, cost_microdollars = 600000 }\n[[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n");
    }
    let ran = suite.eval(&["run", "--budget-usd", "1"]);
    assert_eq!(ran.code, Some(4), "{}", ran.stdout);
    assert!(ran.stdout.contains("ending=budget units=3 had=0 results=2"), "{}", ran.stdout);
    let ran = suite.eval(&["run", "--budget-usd", "5"]).ok();
    assert!(ran.stdout.contains("had=2 results=3"), "{}", ran.stdout);
    let told = suite.json(&["results"]);
    assert_eq!(
        told["results"][0]["cost"],
        serde_json::json!({ "microdollars": 600_000, "basis": "reported" })
    );
    assert_eq!(told["results"][0]["tokens"], 10);
}

#[test]
fn changed_checks_are_run_on_recorded_workspaces_and_show_what_flips() {
    let suite = Suite::of(&["one", "two"]);
    suite.eval(&["run", "--run", "r"]).ok();
    let same = suite.eval(&["regrade", "--run", "r"]).ok();
    assert!(same.stdout.starts_with("run=r graded=2 flips=0 left_out=0"), "{}", same.stdout);
    let case = suite.sandbox.read("eval/cases/one/case.toml");
    suite
        .sandbox
        .write("eval/cases/one/case.toml", case.replace("path = \"done.txt\"", "path = \"other.txt\""));
    let told = suite.json(&["regrade", "--run", "r"]);
    assert_eq!(told["flips"].as_array().unwrap().len(), 1, "{told}");
    let flip = &told["flips"][0];
    assert_eq!((&flip["before"], &flip["after"]), (&"success".into(), &"fail".into()));
    assert_eq!(
        flip["checks"][0],
        serde_json::json!({ "name": "file_exists-1", "before": "passes", "after": "fails" })
    );
    assert_eq!(suite.results().len(), 2, "nothing on record is changed");
    suite.eval(&["clean", "--run", "r"]).ok();
    let gone = suite.eval(&["regrade", "--run", "r"]).ok();
    assert!(
        gone.stdout.contains("left_out=2") && gone.stdout.contains("its workspace is gone"),
        "{}",
        gone.stdout
    );
    suite.eval(&["clean", "--run", "r", "--all"]).ok();
    assert_eq!(suite.results().len(), 0);
}

#[test]
fn a_sample_is_the_same_for_the_same_seed() {
    let suite = Suite::of(&["a", "b", "c", "d", "e", "f"]);
    let list = |seed: &str| suite.eval(&["list", "--sample", "3", "--seed", seed]).ok().stdout;
    assert_eq!(list("1").lines().count(), 3);
    assert_eq!(list("1"), list("1"));
    assert!((2..12).any(|seed| list(&seed.to_string()) != list("1")));
}
