//! The output of `go test`.

use super::{TestCounts, TestReport};

const MISSING: [&str; 5] = [
    "[build failed]",
    "[setup failed]",
    "no required module provides package",
    "cannot find package",
    "matched no packages",
];

pub(super) fn read(text: &str) -> Option<TestReport> {
    let mut report = TestReport::default();
    let mut is_recognised = false;
    let mut packages = 0;
    let mut skipped = 0_u64;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let words: Vec<&str> = line.split_whitespace().collect();
        if trimmed.starts_with("--- FAIL: ") {
            is_recognised = true;
            report.add(0, 1);
        } else if trimmed.starts_with("--- SKIP: ") {
            skipped = skipped.saturating_add(1);
        } else if trimmed.starts_with("--- PASS: ") {
            is_recognised = true;
            report.add(1, 0);
        } else if matches!(words.as_slice(), ["ok", _, time, ..] if time.ends_with('s') || *time == "(cached)")
        {
            is_recognised = true;
            packages += u64::from(!line.contains("[no tests to run]"));
        } else if words.first() == Some(&"?") && line.contains("[no test files]") {
            is_recognised = true;
        } else if line.starts_with("FAIL\t") || MISSING.iter().any(|word| line.contains(word)) {
            is_recognised = true;
            report.is_missing |= MISSING.iter().any(|word| line.contains(word));
        }
    }
    if text.contains("=== RUN") {
        let ran = report.passed.saturating_add(report.failed);
        report.tests = Some(TestCounts { ran, skipped: Some(skipped) });
    }
    if report.passed == 0 {
        // Without `-v`, the tests of a package that succeeds are not listed.
        report.passed = packages;
    }
    is_recognised.then_some(report)
}
