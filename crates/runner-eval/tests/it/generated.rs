//! What is generated from the command line: the reference, completions, manual pages.

use testkit::generated::assert_generated;

use crate::Suite;

#[test]
fn eval_cli_reference_is_generated() {
    assert_generated("docs/reference/eval-cli.md", runner_eval::args::reference().as_bytes());
}

#[test]
fn completions_and_manual_pages_cover_every_command() {
    let suite = Suite::new();
    let script = suite.eval(&["completions", "bash"]).ok().stdout;
    assert!(script.contains("-F _runner_eval runner-eval\n"), "{script}");
    assert!(suite.eval(&["__complete", "re"]).ok().stdout.contains("regrade"));
    assert!(suite.eval(&["man"]).ok().stdout.contains("runner\\-eval"));
    let pages = suite.repo.path("pages");
    std::fs::create_dir(&pages).unwrap();
    suite.eval(&["man", "--dir", &pages.display().to_string()]).ok();
    assert!(pages.join("runner-eval-gate.1").is_file());
    assert!(suite.eval(&["man", "--dir", "nowhere"]).refused(1).contains("nowhere"));
}
