//! `runner eval compare` and `runner eval gate`.

use crate::Suite;

/// Twelve cases, run as `main` with their solution and as `branch` with another agent.
fn main_and_branch(branch_agent: &str) -> Suite {
    let names: Vec<String> = (1..=12).map(|number| format!("c{number:02}")).collect();
    let suite = Suite::with_cases(&names.iter().map(String::as_str).collect::<Vec<_>>());
    suite.eval(&["run", "--run", "main", "--agent", "oracle", "--jobs", "2"]).ok();
    suite.eval(&["run", "--run", "branch", "--agent", branch_agent, "--jobs", "2"]);
    suite
}

#[test]
fn worse_agent_is_a_regression() {
    let suite = main_and_branch("nop");
    let comparison = suite.json(&["compare", "main", "branch"]);
    let difference = &comparison["difference"];
    assert_eq!(difference["mean"], -1.0);
    assert_eq!((&difference["wins"], &difference["losses"]), (&0.into(), &12.into()));
    assert_eq!((&difference["exact"], &difference["p_value"]), (&true.into(), &(2.0 / 4096.0).into()));
    assert!(comparison["summary"].as_str().unwrap().contains("worse"), "{comparison}");
    let gate = suite.eval(&["gate", "main", "branch"]);
    assert_eq!(gate.code, Some(7), "{}", gate.stdout);
    assert!(
        gate.stdout.starts_with("verdict=regression worst_case=regression base=main new=branch"),
        "{}",
        gate.stdout
    );
    let better = suite.eval(&["gate", "branch", "main"]).ok();
    assert!(better.stdout.starts_with("verdict=pass"), "{}", better.stdout);
    let error = suite.eval(&["gate", "main", "nowhere"]).refused(2);
    assert!(error.contains("no results `nowhere`"), "{error}");
    suite.eval(&["gate", "main", "branch", "--margin", "2"]).refused(2);
    assert_eq!(suite.json(&["gate", "main", "branch"])["exit"], 7);
}

#[test]
fn inconclusive_and_incomplete_have_their_own_exit_codes() {
    let suite = main_and_branch("oracle");
    let same = suite.eval(&["gate", "main", "branch"]);
    assert_eq!(same.code, Some(5), "{}", same.stdout);
    assert!(same.stdout.starts_with("verdict=inconclusive"), "{}", same.stdout);
    assert!(same.stdout.contains("neither a difference"), "{}", same.stdout);
    suite.eval(&["gate", "main", "branch", "--margin", "0.5"]).ok();
    let few = suite.eval(&["gate", "main", "branch", "--margin", "0.5", "--min-cases", "13"]);
    assert_eq!(few.code, Some(5));
    assert!(few.stdout.contains("fewer than --min-cases 13"), "{}", few.stdout);

    std::fs::remove_dir_all(suite.repo.path("eval/results/c03/branch.oracle.t01.a1")).unwrap();
    let incomplete = suite.eval(&["gate", "main", "branch", "--margin", "0.5"]);
    assert_eq!(incomplete.code, Some(6), "{}", incomplete.stdout);
    assert!(
        incomplete.stdout.contains("1 planned trials of `branch` have no result"),
        "{}",
        incomplete.stdout
    );
    assert!(incomplete.stdout.contains("no score in the new results: c03"), "{}", incomplete.stdout);
    assert!(suite.eval(&["gate", "main", "branch", "--margin", "5"]).refused(2).contains("from 0 to 1"));
    assert!(suite.eval(&["gate", "main"]).refused(2).contains("NEW"));

    let aa = suite.json(&["gate", "main", "--aa"]);
    assert_eq!(aa["n"], 12);
    assert!(aa["false_alarm_rate"].as_f64().unwrap() <= 0.05, "{aa}");
    assert!(aa["power"][2]["detected"].as_f64() > aa["power"][0]["detected"].as_f64(), "{aa}");
}

#[test]
fn changed_case_is_not_compared() {
    let suite = Suite::with_cases(&["a", "b"]);
    suite.eval(&["run", "--run", "main"]).ok();
    let case = suite.repo.read("eval/cases/a/case.toml");
    suite.repo.write("eval/cases/a/case.toml", case.replace("Write done.txt", "Write done.txt, please"));
    suite.eval(&["run", "--run", "branch"]).ok();
    let comparison = suite.json(&["compare", "main", "branch"]);
    assert_eq!(comparison["n"], 1);
    assert_eq!(comparison["paired"]["changed"], serde_json::json!(["a"]));
    let gate = suite.eval(&["gate", "main", "branch", "--min-cases", "1"]);
    assert_eq!(gate.code, Some(6));
    assert!(gate.stdout.contains("changed between the results: a"), "{}", gate.stdout);
}
