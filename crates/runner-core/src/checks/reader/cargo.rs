//! The output of `cargo test` and `cargo nextest`.

use super::{TestReport, number_before};

/// What cargo prints when tests cannot be built, or do not exist.
const MISSING: [&str; 6] = [
    "error: could not compile",
    "error: no test target named",
    "error: no test target matches",
    "error: no example target named",
    "error: package ID specification",
    "error: no bin target named",
];

pub(super) fn read(text: &str) -> Option<TestReport> {
    let mut report = TestReport::default();
    let mut is_recognised = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("test result: ") {
            is_recognised = true;
            report.add(
                number_before(line, "passed").unwrap_or_default(),
                number_before(line, "failed").unwrap_or_default(),
            );
        } else if is_nextest_summary(line) {
            is_recognised = true;
            let failed = ["failed", "timed out", "exec failed"].map(|word| number_before(line, word));
            report.add(number_before(line, "passed").unwrap_or_default(), failed.into_iter().flatten().sum());
        } else if line == "error: no tests to run" {
            is_recognised = true;
        } else if MISSING.iter().any(|start| line.starts_with(start)) {
            is_recognised = true;
            report.is_missing = true;
        }
    }
    is_recognised.then_some(report)
}

/// `Summary [   0.012s] 3 tests run: 2 passed, 1 failed, 0 skipped`.
fn is_nextest_summary(line: &str) -> bool {
    line.starts_with("Summary [") && (line.contains("tests run:") || line.contains("test run:"))
}
