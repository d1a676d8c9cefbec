//! `runner eval report` in all formats.

use serde_json::Value;

use crate::Suite;

/// A case that always succeeds, one that always fails, and one that is always skipped.
fn mixed_suite() -> Suite {
    let suite = Suite::with_cases(&["good"]);
    suite.add("bad", "", "");
    suite.add("skipped", "requires = [\"no-such-program\"]\n", "");
    suite
}

#[test]
fn table_has_pass_rates_with_intervals_and_counts_unscored_trials_separately() {
    let suite = mixed_suite();
    suite.eval(&["run", "--run", "r", "--trials", "2"]).ok();
    let report = suite.json(&["report"]);
    assert_eq!(report["k"], 2);
    let agent = &report["agents"][0];
    assert_eq!((&agent["n"], &agent["successes"], &agent["unscored"]), (&4.into(), &2.into(), &2.into()));
    assert_eq!((&agent["pass_rate"], &agent["cases"]), (&0.5.into(), &2.into()));
    assert_eq!(agent["pass_all_k"], 0.5);
    let cases = report["cases"].as_array().unwrap();
    assert_eq!((&cases[0]["case"], &cases[0]["pass_rate"]), (&"bad".into(), &0.0.into()));
    assert_eq!((&cases[1]["case"], &cases[1]["pass_rate"]), (&"good".into(), &1.0.into()));
    let low = cases[1]["confidence_interval"]["low"].as_f64().unwrap();
    assert!(low < 0.4, "two of two is not certainty");
    assert_eq!(cases[2]["case"], "skipped");
    assert_eq!((&cases[2]["pass_rate"], &cases[2]["confidence_interval"]), (&Value::Null, &Value::Null));
    let lines = suite.eval(&["report", "table", "r@case", "--k", "3"]).ok().stdout;
    assert!(lines.contains("case=good n=2 successes=2 unscored=0 pass_rate=1.0000"), "{lines}");
    assert!(lines.contains("k=3 pass_at_k=n/a pass_all_k=n/a"), "{lines}");
    assert!(suite.eval(&["report", "table", "other"]).refused(2).contains("no results `other`"));
}

/// The mixed suite, and a case whose first attempt fails in setup, with output that looks like markup.
fn suite_with_results() -> Suite {
    let suite = mixed_suite();
    let setup = "setup = [\"sh\", \"-c\", \"test -e ../tried || { touch ../tried; echo '<script>\\\"a,b\\\"</script>'; exit 3; }\"]\n";
    suite.add("flaky", setup, "[[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n");
    suite.eval(&["run", "--run", "r", "--retry-wait", "0"]).ok();
    suite
}

#[test]
fn html_page_is_self_contained_and_escapes_all_text() {
    let suite = suite_with_results();
    let output = suite.eval(&["report", "html", "r", "--out", "r.html"]).ok();
    assert!(output.stdout.contains("r.html bytes="), "{}", output.stdout);
    assert!(output.stdout.contains("trials=4"), "{}", output.stdout);
    let page = suite.repo.read("r.html");
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script"), "{page}");
    for reference in ["http:", "https:", "src=\"", "@import", "url("] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert_eq!(page.matches("<a class=\"cell ").count(), 4, "a cell per trial");
    assert_eq!(
        page.matches("<svg role=\"img\"").count(),
        4,
        "a bar for the agent and for each case with a score"
    );
    let label = "aria-label=\"pass rate 67 %, 95 % confidence interval 21 to 94 %\"";
    assert!(page.contains(label), "{page}");
    assert!(page.contains("href=\"#bad/r.case.t01.a1\"") && page.contains("id=\"bad/r.case.t01.a1\""));
    assert!(page.contains("&quot;event&quot;:&quot;end&quot;"), "the end of the loop's log");
    assert!(page.contains("<summary>session 1: outcome: passed; guard: pass</summary>"), "{page}");
    assert!(page.contains("<h5>answer</h5><pre>{&quot;status&quot;:&quot;done&quot;"), "{page}");
    assert!(page.contains("attempt 1: <span class=\"error unscored\">error (harness)"), "{page}");
    // The rate of the scored trials with its interval, and the rate if the skipped trial had failed.
    assert!(page.contains("<td class=\"n\">67 % <span class=\"interval\">(21 % – 94 %)</span>"), "{page}");
    assert!(
        page.contains("<th>rate if lost trials failed") && page.contains("<td class=\"n\">50 %<td"),
        "{page}"
    );
    assert!(page.contains("<th>median time") && page.contains("<h2>Loops</h2>"), "{page}");
}

#[test]
fn page_draws_differences_costs_and_repeated_success() {
    let suite = Suite::new();
    for case in ["a", "b"] {
        let usage = "[[session.do]]\nreport = { input_tokens = 9, output_tokens = 1, cost_microdollars = 20000 }\n\
                     [[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n";
        suite.add(case, "", usage);
    }
    suite
        .eval(&["run", "--run", "r", "--trials", "2", "--arm", "base", "--arm", "max_attempts_default=1"])
        .ok();
    suite.eval(&["report", "html", "r", "--out", "r.html"]).ok();
    let page = suite.repo.read("r.html");
    assert_eq!(page.matches("<svg class=\"plot\"").count(), 3, "{page}");
    assert!(page.contains("case+max_attempts_default=1 against case"), "{page}");
    assert!(page.contains("href=\"#a/r.case.t01.a1\""), "the matrix links to trials");
}

/// The content of a `testcase` element.
fn test_case<'r>(report: &'r str, name: &str) -> &'r str {
    let (_, rest) = report.split_once(&format!("<testcase name=\"{name}\"")).unwrap();
    rest.split("</testcase>").next().unwrap()
}

#[test]
fn junit_report_marks_retried_trials_as_flaky() {
    let suite = suite_with_results();
    let report = suite.eval(&["report", "junit", "r"]).ok().stdout;
    let head = "<testsuite name=\"case\" tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"1\"";
    assert!(report.contains(head), "{report}");
    assert!(!report.contains("<script"), "{report}");
    let flaky = test_case(&report, "flaky.t01");
    assert!(flaky.contains("<flakyError type=\"harness\" message=\"error: setup:"), "{report}");
    assert!(!flaky.contains("<failure") && !flaky.contains("<error"), "{report}");
    let bad = test_case(&report, "bad.t01");
    assert!(bad.contains("<failure type=\"agent\" message=\"fail:"), "{bad}");
    assert!(bad.contains("file_exists-1: "), "{bad}");
    assert!(report.contains("<skipped message=\"skipped: "), "{report}");
}

#[test]
fn json_lines_and_csv_have_a_row_per_attempt() {
    let suite = suite_with_results();
    let lines = suite.eval(&["report", "jsonl", "r"]).ok().stdout;
    let mut attempts = Vec::new();
    for line in lines.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let is_last = row["last"] == true;
        attempts.push((row["case_id"].as_str().unwrap().to_owned(), is_last, row["scored"] == true));
    }
    let expected = [
        ("bad", true, true),
        ("flaky", false, false),
        ("flaky", true, true),
        ("good", true, true),
        ("skipped", true, false),
    ];
    assert_eq!(attempts, expected.map(|(case, is_last, is_scored)| (case.to_owned(), is_last, is_scored)));
    let csv = suite.eval(&["report", "csv", "r"]).ok().stdout;
    assert!(csv.starts_with("run,case_id,agent,trial,attempt,last,scored,outcome,cause,why,"), "{csv}");
    assert_eq!(csv.lines().count(), 6);
    assert!(csv.contains("r,flaky,case,1,1,false,false,error,harness,\"setup:"), "{csv}");
    assert!(csv.contains("\"\"a,b\"\""), "{csv}");
    let error = suite.eval(&["report", "table", "r", "--out", "x"]).refused(2);
    assert!(error.contains("choose another format"), "{error}");
}

#[test]
fn trajectory_has_numbered_steps() {
    let suite = suite_with_results();
    let output = suite.eval(&["report", "atif", "r", "--out", "paths"]).ok();
    assert!(output.stdout.contains("trials=4"), "{}", output.stdout);
    let trajectory: Value = serde_json::from_str(&suite.repo.read("paths/good.r.case.t01.a1.json")).unwrap();
    let steps = trajectory["steps"].as_array().unwrap();
    let sources: Vec<&str> = steps.iter().map(|step| step["source"].as_str().unwrap()).collect();
    assert_eq!((sources.first(), sources.last()), (Some(&"user"), Some(&"system")));
    assert!(steps.iter().zip(1..).all(|(step, number)| step["step_id"] == number), "{trajectory}");
    assert!(steps[0]["message"].as_str().unwrap().contains("Write done.txt"), "{trajectory}");
    assert_eq!(trajectory["extra"]["outcome"], "success");
    assert_eq!(trajectory["final_metrics"]["total_steps"], steps.len());
    let lines = suite.eval(&["report", "atif", "r"]).ok().stdout;
    assert_eq!(lines.lines().count(), 4, "one per line without --out");
    let skipped = suite.repo.read("paths/skipped.r.case.t01.a1.json");
    assert!(skipped.contains("no-such-program"), "a trial without a session has one step");
}

#[test]
fn inspect_log_has_no_score_for_unscored_trials() {
    let suite = suite_with_results();
    let log: Value = serde_json::from_str(&suite.eval(&["report", "inspect", "r"]).ok().stdout).unwrap();
    let samples = log["samples"].as_array().unwrap();
    let mut scores = Vec::new();
    for sample in samples {
        let id = sample["id"].as_str().unwrap();
        scores.push((id, sample["scores"]["checks"]["value"].as_str(), sample["error"].is_object()));
    }
    let expected = [
        ("bad", Some("I"), false),
        ("flaky", Some("C"), false),
        ("good", Some("C"), false),
        ("skipped", None, true),
    ];
    assert_eq!(scores, expected);
    assert_eq!(samples[2]["input"], "Write done.txt");
    assert_eq!(log["results"]["scores"][0]["scored_samples"], 3);
}
