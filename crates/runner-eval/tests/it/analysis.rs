//! What results say: reports, comparisons, the gate.

use crate::Suite;

/// A case that always ends well, one that never does, and one that cannot be tried here.
fn mixed() -> Suite {
    let suite = Suite::of(&["good"]);
    suite.add("bad", "", "");
    suite.add("nowhere", "requires = [\"no-such-program\"]\n", "");
    suite
}

#[test]
fn a_report_tells_rates_with_intervals_and_leaves_out_what_says_nothing() {
    let suite = mixed();
    suite.eval(&["run", "--run", "r", "--trials", "2"]).ok();
    let told = suite.json(&["report"]);
    let agent = &told["agents"][0];
    assert_eq!(
        (&told["k"], &agent["n"], &agent["successes"], &agent["left_out"]),
        (&2.into(), &4.into(), &2.into(), &2.into())
    );
    assert_eq!(
        (&agent["rate"], &agent["cases"], &agent["pass_all_k"]),
        (&0.5.into(), &2.into(), &0.5.into())
    );
    let cases = told["cases"].as_array().unwrap();
    assert_eq!((&cases[0]["case"], &cases[0]["rate"]), (&"bad".into(), &0.0.into()));
    assert_eq!((&cases[1]["case"], &cases[1]["rate"]), (&"good".into(), &1.0.into()));
    assert!(cases[1]["interval"]["low"].as_f64().unwrap() < 0.4, "two of two is not certainty");
    assert_eq!(
        (&cases[2]["case"], &cases[2]["rate"], &cases[2]["interval"]),
        (&"nowhere".into(), &().into(), &().into())
    );
    let more = suite.eval(&["report", "table", "r@case", "--k", "3"]).ok();
    assert!(more.stdout.contains("case=good n=2 successes=2 left_out=0 rate=1.0000"), "{}", more.stdout);
    assert!(more.stdout.contains("k=3 pass_at_k=n/a pass_all_k=n/a"), "{}", more.stdout);
    assert!(suite.eval(&["report", "table", "other"]).refused(2).contains("there are no results `other`"));
}

/// Twelve cases, run as they are in `main`, and again as `branch` after their agents were changed.
fn before_and_after(after: &str) -> Suite {
    let names: Vec<String> = (1..=12).map(|at| format!("c{at:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let suite = Suite::of(&names);
    // The agent is not part of the case here: it is named from outside, as a solution and as nothing.
    suite.eval(&["run", "--run", "main", "--agent", "oracle", "--jobs", "2"]).ok();
    suite.eval(&["run", "--run", "branch", "--agent", after, "--jobs", "2"]);
    suite
}

#[test]
fn an_agent_that_got_worse_is_a_regression_and_plainly_so() {
    let suite = before_and_after("nop");
    let told = suite.json(&["compare", "main", "branch"]);
    let found = &told["difference"];
    assert_eq!((&found["mean"], &found["wins"], &found["losses"]), (&(-1.0).into(), &0.into(), &12.into()));
    assert_eq!((&found["exact"], &found["p_value"]), (&true.into(), &(2.0 / 4096.0).into()));
    assert!(told["words"].as_str().unwrap().contains("does not include zero"), "{told}");
    let gate = suite.eval(&["gate", "main", "branch"]);
    assert_eq!(gate.code, Some(7), "{}", gate.stdout);
    assert!(gate.stdout.starts_with("verdict=regression base=main new=branch"), "{}", gate.stdout);
    let better = suite.eval(&["gate", "branch", "main"]).ok();
    assert!(better.stdout.starts_with("verdict=pass"), "{}", better.stdout);
    let none = suite.eval(&["gate", "main", "nowhere"]).refused(2);
    assert!(none.contains("there are no results `nowhere`"), "{none}");
    suite.eval(&["gate", "main", "branch", "--margin", "2"]).refused(2);
    assert_eq!(suite.json(&["gate", "main", "branch"])["exit"], 7);
}

#[test]
fn a_gate_that_cannot_tell_says_so_with_codes_of_its_own() {
    let suite = before_and_after("oracle");
    let same = suite.eval(&["gate", "main", "branch"]);
    assert_eq!(same.code, Some(5), "{}", same.stdout);
    assert!(
        same.stdout.starts_with("verdict=inconclusive") && same.stdout.contains("includes zero"),
        "{}",
        same.stdout
    );
    suite.eval(&["gate", "main", "branch", "--margin", "0.3"]).ok();
    let few = suite.eval(&["gate", "main", "branch", "--margin", "0.3", "--min-n", "13"]);
    assert_eq!(few.code, Some(5));
    assert!(few.stdout.contains("--min-n asks for 13"), "{}", few.stdout);

    let trial = suite.sandbox.path("eval/results/c03/branch.oracle.t01.a1");
    std::fs::remove_dir_all(trial).unwrap();
    let gap = suite.eval(&["gate", "main", "branch", "--margin", "0.3"]);
    assert_eq!(gap.code, Some(6), "{}", gap.stdout);
    assert!(gap.stdout.contains("1 planned trials of `branch` have no result"), "{}", gap.stdout);
    assert!(gap.stdout.contains("no score in the new results: c03"), "{}", gap.stdout);
    assert!(suite.eval(&["gate", "main", "branch", "--margin", "5"]).refused(2).contains("from 0 to 1"));
    assert!(suite.eval(&["gate", "main"]).refused(2).contains("NEW"));

    let aa = suite.json(&["gate", "main", "--aa"]);
    assert_eq!(aa["n"], 12);
    assert!(aa["false_alarms"].as_f64().unwrap() <= 0.05, "{aa}");
    assert!(aa["power"][2]["seen"].as_f64() > aa["power"][0]["seen"].as_f64(), "{aa}");
}

#[test]
fn a_case_that_was_changed_in_between_is_not_compared() {
    let suite = Suite::of(&["a", "b"]);
    suite.eval(&["run", "--run", "main"]).ok();
    let case = suite.sandbox.read("eval/cases/a/case.toml");
    suite.sandbox.write("eval/cases/a/case.toml", case.replace("Write done.txt", "Write done.txt, please"));
    suite.eval(&["run", "--run", "branch"]).ok();
    let told = suite.json(&["compare", "main", "branch"]);
    assert_eq!((&told["n"], &told["paired"]["changed"]), (&1.into(), &serde_json::json!(["a"])));
    let gate = suite.eval(&["gate", "main", "branch", "--min-n", "1"]);
    assert_eq!(gate.code, Some(6));
    assert!(gate.stdout.contains("changed between the results: a"), "{}", gate.stdout);
}

/// A case that the evaluation spoils once, in words that would be markup; one that fails; one that cannot be tried.
fn for_reports() -> Suite {
    let suite = mixed();
    let setup = "setup = [\"sh\", \"-c\", \"test -e ../tried || { touch ../tried; echo '<script>\\\"a,b\\\"</script>'; exit 3; }\"]\n";
    suite.add("flaky", setup, "[[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n");
    suite.eval(&["run", "--run", "r", "--retry-wait", "0"]).ok();
    suite
}

#[test]
fn the_page_holds_everything_itself_and_nothing_in_it_is_markup_of_others() {
    let suite = for_reports();
    let told = suite.eval(&["report", "html", "r", "--out", "r.html"]).ok();
    assert!(told.stdout.contains("r.html bytes=") && told.stdout.contains("trials=4"), "{}", told.stdout);
    let page = suite.sandbox.read("r.html");
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script"), "{page}");
    for outside in ["http:", "https:", "src=\"", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("<a class=\"cell ").count(), 4, "a cell for each trial");
    assert_eq!(
        page.matches("<svg role=\"img\"").count(),
        4,
        "a bar for the agent and for each case with a score"
    );
    assert!(page.contains("aria-label=\"67 %, 95 %: 21 to 94\""), "{page}");
    assert!(page.contains("href=\"#bad/r.case.t01.a1\"") && page.contains("id=\"bad/r.case.t01.a1\""));
    assert!(page.contains("&quot;event&quot;:&quot;end&quot;"), "the end of the loop's log");
    assert!(page.contains("<summary>session 1: outcome: passed; guard: pass</summary>"), "{page}");
    assert!(page.contains("<h5>answer</h5><pre>{&quot;status&quot;:&quot;done&quot;"), "{page}");
    assert!(page.contains("attempt 1: <span class=\"error unscored\">error (harness)"), "{page}");
}

#[test]
fn a_trial_that_needed_more_than_one_attempt_is_marked_as_flaky() {
    let suite = for_reports();
    let report = suite.eval(&["report", "junit", "r"]).ok().stdout;
    assert!(
        report.contains("<testsuite name=\"case\" tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"1\""),
        "{report}"
    );
    let flaky =
        report.split("<testcase name=\"flaky.t01\"").nth(1).unwrap().split("</testcase>").next().unwrap();
    assert!(flaky.contains("<flakyError type=\"harness\" message=\"error: setup:"), "{report}");
    assert!(
        !flaky.contains("<failure") && !flaky.contains("<error") && !report.contains("<script"),
        "{report}"
    );
    let bad = report.split("<testcase name=\"bad.t01\"").nth(1).unwrap().split("</testcase>").next().unwrap();
    assert!(
        bad.contains("<failure type=\"agent\" message=\"fail:") && bad.contains("file_exists-1: "),
        "{bad}"
    );
    assert!(report.contains("<skipped message=\"skipped: "), "{report}");
}

#[test]
fn every_attempt_is_a_line_in_json_and_in_csv() {
    let suite = for_reports();
    let lines = suite.eval(&["report", "jsonl", "r"]).ok().stdout;
    let rows: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row["case_id"].as_str().unwrap(), row["last"] == true, row["scored"] == true))
        .collect();
    let wanted = [
        ("bad", true, true),
        ("flaky", false, false),
        ("flaky", true, true),
        ("good", true, true),
        ("nowhere", true, false),
    ];
    assert_eq!(told, wanted);
    let csv = suite.eval(&["report", "csv", "r"]).ok().stdout;
    assert!(csv.starts_with("run,case_id,agent,trial,attempt,last,scored,outcome,cause,why,"), "{csv}");
    assert_eq!(csv.lines().count(), 6);
    assert!(
        csv.contains("r,flaky,case,1,1,false,false,error,harness,\"setup:") && csv.contains("\"\"a,b\"\""),
        "{csv}"
    );
    assert!(
        suite.eval(&["report", "table", "r", "--out", "x"]).refused(2).contains("html, junit, jsonl, csv")
    );
}

#[test]
fn a_trial_is_a_trajectory_with_numbered_steps() {
    let suite = for_reports();
    let told = suite.eval(&["report", "atif", "r", "--out", "paths"]).ok();
    assert!(told.stdout.contains("trials=4"), "{}", told.stdout);
    let path: serde_json::Value =
        serde_json::from_str(&suite.sandbox.read("paths/good.r.case.t01.a1.json")).unwrap();
    let steps = path["steps"].as_array().unwrap();
    let sources: Vec<&str> = steps.iter().map(|step| step["source"].as_str().unwrap()).collect();
    assert_eq!((sources.first(), sources.last()), (Some(&"user"), Some(&"system")));
    assert!(steps.iter().zip(1..).all(|(step, nth)| step["step_id"] == nth), "{path}");
    assert!(steps[0]["message"].as_str().unwrap().contains("Write done.txt"), "{path}");
    assert_eq!(
        (&path["extra"]["outcome"], &path["final_metrics"]["total_steps"]),
        (&"success".into(), &steps.len().into())
    );
    let lines = suite.eval(&["report", "atif", "r"]).ok().stdout;
    assert_eq!(lines.lines().count(), 4, "one a line without a folder");
    assert!(
        suite.sandbox.read("paths/nowhere.r.case.t01.a1.json").contains("no-such-program"),
        "no session, one step"
    );
}

#[test]
fn a_log_for_inspect_has_no_score_for_what_says_nothing() {
    let suite = for_reports();
    let log: serde_json::Value =
        serde_json::from_str(&suite.eval(&["report", "inspect", "r"]).ok().stdout).unwrap();
    let samples = log["samples"].as_array().unwrap();
    let told: Vec<_> = samples
        .iter()
        .map(|one| {
            (one["id"].as_str().unwrap(), one["scores"]["checks"]["value"].as_str(), one["error"].is_object())
        })
        .collect();
    let wanted = [
        ("bad", Some("I"), false),
        ("flaky", Some("C"), false),
        ("good", Some("C"), false),
        ("nowhere", None, true),
    ];
    assert_eq!(told, wanted);
    assert_eq!(samples[2]["input"], "Write done.txt");
    assert_eq!(log["results"]["scores"][0]["scored_samples"], 3);
}
