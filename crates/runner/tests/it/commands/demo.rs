//! `runner demo`, the first command that new users try.

use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::fixtures::on_terminal;

#[test]
fn demo_completes_and_verifies() {
    let sandbox = TestRepo::empty(RUNNER);
    let output = run(sandbox.runner_command(&["demo"]).env("TMPDIR", sandbox.outside())).ok();
    let root = output.value("repository").unwrap();
    let outcomes = sandbox.runner(&["-C", root, "log"]).ok().stdout;
    for outcome in ["decomposed", "passed", "checks_failed"] {
        assert!(outcomes.contains(&format!("outcome={outcome}")), "{outcomes}");
    }
    for line in ["verdict=verified", "acceptance=\"4 of 4 points proven\"", "scene=#5", "rerun=6 "] {
        assert!(output.stdout.contains(line), "{line}: {}", output.stdout);
    }
    assert!(!output.stdout.contains("warning") && output.stderr.is_empty(), "{}", output.stderr);
    let proof = sandbox.runner(&["-C", root, "verify"]).ok().stdout;
    assert!(proof.contains("verdict=verified"), "{proof}");
}

/// On a terminal of 80 columns no line is wider, and a terminal that cannot move the cursor gets no control codes.
#[test]
fn demo_fits_every_terminal() {
    let sandbox = TestRepo::empty(RUNNER);
    let wide =
        on_terminal(&sandbox, 80, &format!("demo --dir {}", sandbox.outside().join("a").display())).ok();
    let first = wide.stdout.lines().next().unwrap_or_default();
    assert!(first.starts_with("A scripted agent builds a small program."), "{first}");
    for line in wide.stdout.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for words in ["COMPLETE: all 3 tasks passed", "verified", "#0006 guard re-run: passed"] {
        assert!(wide.stdout.contains(words), "{words}: {}", wide.stdout);
    }
    let mut dumb = sandbox.command("script");
    let line = format!("{RUNNER} demo --dir {}", sandbox.outside().join("b").display());
    let dumb = run(dumb.args(["-qec", &line, "/dev/null"]).env("TERM", "dumb")).ok();
    assert!(!dumb.stdout.contains('\u{1b}'), "{:?}", dumb.stdout);
}
