//! `runner report`

use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use crate::RUNNER;
use crate::fixtures::{json, on_terminal};

/// A run with a passed, a stuck and an open task, and a question.
fn mixed() -> TestRepo {
    let agent = r#"case "$RUNNER_NODE_ID" in
        root) split ;;
        a) echo a > a.txt; printf -- '- Is it *right*?\n' >> .runner/state/questions.md; answer done "made <b>a</b>" ;;
        *) answer retry "not yet" ;;
    esac"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    assert_eq!(sandbox.runner(&["loop"]).code, Some(3));
    sandbox
}

#[test]
fn report_has_tasks_evidence_questions_and_what_to_do_next() {
    let sandbox = mixed();
    let document = json(&sandbox.runner(&["report", "--json"]).ok());
    let status = json(&sandbox.runner(&["status", "--json"]).ok());
    for key in ["state", "headline", "next"] {
        assert_eq!(document[key], status[key], "{key}: the same as `runner status`");
    }
    let tasks = document["tasks"].as_array().unwrap();
    let states: Vec<_> =
        tasks.iter().map(|task| (task["id"].as_str().unwrap(), task["state"].as_str().unwrap())).collect();
    assert_eq!(states, [("a", "passed"), ("b", "stuck")]);
    assert!(tasks[0]["evidence"][0].as_str().unwrap().starts_with("#2 passed, 1 file changed, commit "));
    assert_eq!(tasks[1]["attempts"], "3 of 3 attempts used");
    assert_eq!(document["questions"][0]["text"], "Is it *right*?");
    let lines = sandbox.runner(&["report"]).ok().stdout;
    assert!(lines.contains("task=a state=passed title=a summary=\"made <b>a</b>\""), "{lines}");
    assert!(lines.contains("next=\"runner node allow b\""), "{lines}");
}

#[test]
fn markdown_and_html_escape_what_agents_wrote() {
    let sandbox = mixed();
    let markdown = sandbox.runner(&["report", "--markdown"]).ok().stdout;
    assert!(
        markdown.starts_with("# Port it\n\n**STOPPED: `")
            || markdown.starts_with("# Port it\n\n**STOPPED: \\`"),
        "{markdown}"
    );
    assert!(markdown.contains("- [x] **a (passed)** `a`\n  - made \\<b\\>a\\</b\\>\n"), "{markdown}");
    let html = sandbox.runner(&["report", "--html"]).ok().stdout;
    assert!(html.starts_with("<!doctype html>") && html.contains("made &lt;b&gt;a&lt;/b&gt;"), "{html}");
    assert!(!html.contains("<b>a</b>"), "{html}");
}

#[test]
fn terminal_report_fits_80_columns_and_other_runs_can_be_read() {
    let sandbox = mixed();
    let shown = on_terminal(&sandbox, 80, "report --no-pager").stdout;
    assert!(
        shown.contains("STOPPED: `b` failed 3 of 3 attempts") && shown.contains("Open questions"),
        "{shown}"
    );
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    sandbox.git(&["switch", "-q", "main"]);
    let other = json(&sandbox.runner(&["report", "demo", "--json"]).ok());
    assert_eq!((other["state"].as_str(), other["run_id"].as_str()), (Some("stopped"), Some("demo")));
    assert!(sandbox.runner(&["report", "nothing"]).refused(2).contains("no such run"));
}

/// A reviewer that refuses the first work on a task.
const REVIEWER: &str = r#"
if [ "$RUNNER_ITER" = 0002 ]; then printf '{"verdict": "refuse", "reasons": ["no test for *empty* input"]}' > "$RUNNER_OUTPUT"
else printf '{"verdict": "accept", "reasons": []}' > "$RUNNER_OUTPUT"; fi"#;

#[test]
fn reviews_skipped_tasks_and_questions_are_in_report_and_status() {
    let agent = r#"case "$RUNNER_NODE_ID" in
        root) split ;;
        a) echo $RUNNER_ITER >> a.txt; grep -q port .runner/state/questions.md || printf -- '- Which port?\n\n- Which host?\n' >> .runner/state/questions.md; answer done "made a" ;;
        *) answer retry "the port is taken" ;;
    esac"#;
    let review = "[review]\nkind = \"command\"\ncommand = [\"sh\", \"reviewer.sh\"]\nsandbox = \"off\"\n";
    let builder = RunBuilder::new(RUNNER).agent(agent).file("reviewer.sh", REVIEWER).config_tables(review);
    let sandbox = builder.keys("on_stuck = \"skip\"\nmax_attempts_default = 3").start();
    assert_eq!(sandbox.runner(&["loop"]).code, Some(3));
    sandbox.runner(&["answer", "1", "8080"]).ok();
    let document = json(&sandbox.runner(&["report", "--json"]).ok());
    let reviews: Vec<_> = document["tasks"][0]["reviews"].as_array().unwrap().clone();
    assert_eq!(reviews.len(), 2, "{reviews:?}");
    assert!(
        reviews[0].as_str().unwrap().contains("refused 1/2")
            && reviews[1].as_str().unwrap().contains("accepted")
    );
    assert_eq!(document["tasks"][1]["skipped"], true);
    assert_eq!(document["questions"][0]["answers"][0], "8080");
    let shown = on_terminal(&sandbox, 80, "report --no-pager").stdout;
    for text in [
        "reviews    1 accepted, 1 refused",
        "Stuck tasks",
        "b (stuck, skipped, 3 of 3 attempts used)",
        "the port is taken",
        "Passed tasks",
        "review of #2: refused 1/2 by",
        "note on #4: the session changed nothing",
        "no test for *empty*",
        "Open questions\n  2. Which host?",
        "Answered questions\n  1. Which port?\n     your answer: 8080",
        "runner answer 2 \"…\"",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let at = |text: &str| shown.find(text).unwrap();
    assert!(at("Stuck tasks") < at("Passed tasks"), "what needs a person comes first");
    let status = on_terminal(&sandbox, 80, "status").stdout;
    for text in [
        "stuck      1 task without attempts left, skipped: b",
        "questions  1 open question: runner questions --open",
    ] {
        assert!(status.contains(text), "{text}: {status}");
    }
    // A clone has no logs, but the same reviews.
    let clone = sandbox.outside().join("clone");
    sandbox.git(&["clone", "-q", "--branch", "runner/demo", ".", clone.to_str().unwrap()]);
    let cloned = json(&sandbox.runner(&["-C", clone.to_str().unwrap(), "report", "--json"]).ok());
    assert_eq!(cloned["tasks"][0]["reviews"], document["tasks"][0]["reviews"]);
}

#[test]
fn html_report_is_one_page_that_loads_nothing() {
    let html = mixed().runner(&["report", "--html"]).ok().stdout;
    for text in [
        "<p class=\"state fail\">STOPPED: `b` failed 3 of 3 attempts</p>",
        "<article class=\"pass\">",
        "prefers-color-scheme: dark",
        "name=\"viewport\"",
        "runner node allow b <span># allow more attempts</span>",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
    for text in ["<script", "http://", "https://", "url(", "src="] {
        assert!(!html.contains(text), "{text}: {html}");
    }
}
