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
    assert!(tasks[0]["evidence"].as_str().unwrap().starts_with("#2 passed, 1 file changed, commit "));
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
