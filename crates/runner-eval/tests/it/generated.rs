//! The file that is made from the command line, and what else is.

use testkit::generated::assert_generated;

use crate::Suite;

#[test]
fn the_reference_of_the_evaluation_is_generated() {
    assert_generated("docs/reference/eval-cli.md", runner_eval::args::reference().as_bytes());
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let suite = Suite::new();
    let script = suite.eval(&["completions", "bash"]).ok().stdout;
    assert!(script.contains("default runner-eval\n") && script.contains("regrade"), "{script}");
    assert!(suite.eval(&["man"]).ok().stdout.contains("runner\\-eval"));
    let pages = suite.sandbox.path("pages");
    std::fs::create_dir(&pages).unwrap();
    suite.eval(&["man", "--dir", &pages.display().to_string()]).ok();
    assert!(pages.join("runner-eval-gate.1").is_file());
    assert!(suite.eval(&["man", "--dir", "nowhere"]).refused(1).contains("nowhere"));
}
