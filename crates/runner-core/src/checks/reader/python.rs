//! The output of pytest and unittest.

use super::{TestCounts, TestReport, last_number, number_before};

const MISSING: [&str; 5] = [
    "ERROR: file or directory not found",
    "ERROR: not found:",
    "ModuleNotFoundError:",
    "ImportError:",
    "ImportError while loading conftest",
];

pub(super) fn read(text: &str) -> Option<TestReport> {
    let mut report = pytest(text).or_else(|| unittest(text))?;
    // A test that fails with an import error of its own has failed; one that cannot be collected is missing something.
    let names_missing = text.lines().any(|line| {
        let line = line.strip_prefix("E ").unwrap_or(line).trim_start();
        MISSING.iter().any(|start| line.starts_with(start))
    });
    if names_missing && report.failed == 0 {
        report.is_missing = true;
    }
    Some(report)
}

/// `=== 1 failed, 2 passed in 0.12s ===`, or the same without frame with `-q`.
fn pytest(text: &str) -> Option<TestReport> {
    let is_summary = |line: &&str| {
        let line = line.trim_matches(['=', ' ']);
        let ends_with_time = line
            .rsplit_once(" in ")
            .is_some_and(|(_, time)| time.starts_with(|c: char| c.is_ascii_digit()) && time.contains('s'));
        let is_counted =
            ["passed", "failed", "error", "errors", "skipped", "deselected", "no tests ran"].iter();
        ends_with_time && is_counted.into_iter().any(|word| line.contains(word))
    };
    let summary = text.lines().rev().find(is_summary);
    if text.contains("ERROR: file or directory not found") {
        return Some(TestReport { is_missing: true, ..TestReport::default() });
    }
    let summary = summary?;
    let count = |word: &str| number_before(summary, word).unwrap_or_default();
    let (passed, failed) = (count("passed"), count("failed"));
    // A test that could not be set up, or that ended the run, hides how many there are.
    let is_whole = count("error") == 0 && count("errors") == 0 && !text.contains("!!!!");
    let skipped = count("skipped").saturating_add(count("xfailed"));
    let ran = passed.saturating_add(failed).saturating_add(count("xpassed"));
    // Parts of a test are counted only if they fail.
    let has_parts = summary.contains("subtests") || text.contains("SUBFAIL");
    let tests = (!has_parts).then(|| TestCounts { ran, skipped: is_whole.then_some(skipped) });
    Some(TestReport { passed, failed, is_missing: false, tests })
}

/// `Ran 3 tests in 0.001s`, then `OK` or `FAILED (failures=1, errors=1)`.
fn unittest(text: &str) -> Option<TestReport> {
    let ran = text.lines().rev().find(|line| line.starts_with("Ran ") && line.contains(" in "))?;
    let ran = number_before(ran, "test").or_else(|| number_before(ran, "tests"))?;
    let ended = text.lines().rev().find(|line| line.starts_with("FAILED (") || line.starts_with("OK ("));
    let count = |key: &str| {
        let value = ended.and_then(|line| line.split_once(key))?.1;
        last_number(value.split([',', ')']).next()?)
    };
    let failures = count("failures=").unwrap_or_default();
    let errors = count("errors=").unwrap_or_default();
    // A module that cannot be imported is one test with an error.
    let is_import_error = text.contains("ImportError: Failed to import test module");
    let failed = if is_import_error { failures } else { failures.saturating_add(errors) };
    let bad = failures.saturating_add(errors);
    let skipped = count("skipped=").unwrap_or_default();
    let is_whole = !text.contains("ERROR: setUp");
    let tests = TestCounts { ran: ran.saturating_sub(skipped), skipped: is_whole.then_some(skipped) };
    Some(TestReport {
        passed: ran.saturating_sub(bad),
        failed,
        is_missing: is_import_error,
        tests: Some(tests),
    })
}
