//! JUnit reports: XML in which every test is a `testcase`, with a `failure` or an `error` in it if it did not succeed.

use super::{TestCounts, TestReport};

pub(super) fn read(text: &str) -> Option<TestReport> {
    if !text.contains("<testsuite") {
        return None;
    }
    let cases = elements(text, "testcase");
    let failed = elements(text, "failure").saturating_add(elements(text, "error"));
    let skipped = elements(text, "skipped");
    let passed = cases.saturating_sub(failed).saturating_sub(skipped);
    let tests = TestCounts { ran: cases.saturating_sub(skipped), skipped: Some(skipped) };
    Some(TestReport { passed, failed, is_missing: false, tests: Some(tests) })
}

/// How often an element begins.
fn elements(text: &str, name: &str) -> u64 {
    let begins = text.split('<').filter(|part| {
        part.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_whitespace() || c == '>' || c == '/'))
    });
    begins.fold(0, |count, _| count + 1)
}
