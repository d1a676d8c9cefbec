//! The output of `node --test`, Vitest, Jest and Mocha.

use super::{TestReport, last_number, number_before};

const MISSING: [&str; 6] = [
    "Cannot find module",
    "Cannot find package",
    "ERR_MODULE_NOT_FOUND",
    "Failed to resolve import",
    "Could not find '",
    "does not provide an export named",
];
const NO_TESTS: [&str; 2] = ["No test files found", "No tests found"];

pub(super) fn read(text: &str) -> Option<TestReport> {
    let counted = node(text).or_else(|| vitest_or_jest(text)).or_else(|| mocha(text));
    let is_missing = MISSING.iter().any(|word| text.contains(word));
    let has_none = text.lines().any(|line| NO_TESTS.iter().any(|start| line.trim_start().starts_with(start)));
    match counted {
        Some(report) => Some(TestReport { is_missing, ..report }),
        None if has_none || is_missing => Some(TestReport { is_missing, ..TestReport::default() }),
        None => None,
    }
}

/// `# pass 2` and `# fail 1` of the TAP reporter, `ℹ pass 2` of the other one.
fn node(text: &str) -> Option<TestReport> {
    let count = |key: &str| {
        text.lines().rev().find_map(|line| {
            let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
            rest.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok()
        })
    };
    Some(TestReport { passed: count("pass")?, failed: count("fail")?, is_missing: false })
}

/// `Tests  1 failed | 2 passed (3)` of Vitest, `Tests:       1 failed, 2 passed, 3 total` of Jest.
fn vitest_or_jest(text: &str) -> Option<TestReport> {
    let is_summary = |line: &&str| {
        let line = line.trim_start();
        let rest = line.strip_prefix("Tests:").or_else(|| line.strip_prefix("Tests "));
        rest.is_some_and(|rest| {
            ["failed", "passed", "total", "skipped", "no tests"].iter().any(|word| rest.contains(word))
        })
    };
    let line = text.lines().rev().find(is_summary)?;
    let count = |word: &str| number_before(line, word).unwrap_or_default();
    Some(TestReport { passed: count("passed"), failed: count("failed"), is_missing: false })
}

/// `2 passing (5ms)` and `1 failing`.
fn mocha(text: &str) -> Option<TestReport> {
    let count = |word: &str| {
        let line = text.lines().rev().map(str::trim).find(|line| {
            line.split_once(' ').is_some_and(|(number, rest)| {
                number.parse::<u64>().is_ok() && (rest == word || rest.starts_with(&format!("{word} (")))
            })
        })?;
        last_number(line.split(' ').next()?)
    };
    let passed = count("passing")?;
    Some(TestReport { passed, failed: count("failing").unwrap_or_default(), is_missing: false })
}
