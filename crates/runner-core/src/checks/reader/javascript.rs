//! The output of `node --test`, Vitest, Jest and Mocha.

use super::{TestCounts, TestReport, last_number, number_before};
use crate::model::checks::{Check, CheckPath};

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

/// `# pass 2` and `# fail 1` of the TAP reporter, `ℹ pass 2` of the other one. A file that reports no test is listed like one, as
/// passed if its process exits with 0: it is none.
fn node(text: &str) -> Option<TestReport> {
    let count = |key: &str| {
        text.lines().rev().find_map(|line| {
            let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
            rest.strip_prefix(key)?.strip_prefix(' ')?.trim().parse::<u64>().ok()
        })
    };
    let files = file_results(text);
    // A test may be named after a file, too, but hardly after its path.
    let is_path = |file: &&FileResult<'_>| file.name.contains('/');
    let of_files = |is_ok: bool| {
        files.iter().filter(is_path).filter(|file| file.is_ok == is_ok).fold(0, |sum, _| sum + 1)
    };
    let failed = count("fail")?;
    let passed = count("pass")?.saturating_sub(of_files(true));
    let skipped = count("skipped").unwrap_or_default().saturating_add(count("todo").unwrap_or_default());
    let ran = passed.saturating_add(failed.saturating_sub(of_files(false)));
    let tests = TestCounts { ran, skipped: (of_files(false) == 0).then_some(skipped) };
    Some(TestReport { passed, failed, is_missing: false, tests: Some(tests) })
}

/// A file of the check that ended without reporting a test.
pub(super) fn unreported(check: &Check, text: &str) -> Option<String> {
    let files = file_results(text);
    let is_bare = |file: &&CheckPath| {
        files.iter().any(|result| {
            let name = result.name.strip_prefix("./").unwrap_or(result.name);
            result.is_ok && (name == file.as_str() || name.ends_with(&format!("/{file}")))
        })
    };
    check.files.keys().find(is_bare).map(|file| format!("{file} ended without reporting a test"))
}

/// The result of a file that has no test in it.
struct FileResult<'a> {
    name: &'a str,
    is_ok: bool,
}

const EXTENSIONS: [&str; 8] = [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"];

/// The results of `node --test` that are named after a file and have no tests in them. A suite may be named after one, and old
/// versions list the tests of a file before it.
fn file_results(text: &str) -> Vec<FileResult<'_>> {
    let mut results = Vec::new();
    let mut has_tests = false;
    for line in text.lines() {
        let nested = line.trim_start();
        if nested.len() < line.len() {
            has_tests |= ["ok ", "not ok ", "✔ ", "✖ "].iter().any(|sign| nested.starts_with(sign));
            continue;
        }
        let Some((name, is_ok)) = result_of(line) else { continue };
        let is_file = EXTENSIONS.iter().any(|end| name.ends_with(end));
        if is_file && !has_tests {
            results.push(FileResult { name, is_ok });
        }
        has_tests = false;
    }
    results
}

/// `ok 1 - name`, `not ok 2 - name # SKIP`, `✔ name (1.2ms)`, `✖ name (1.2ms)`.
fn result_of(line: &str) -> Option<(&str, bool)> {
    for (sign, is_ok) in [("✔ ", true), ("✖ ", false)] {
        if let Some(rest) = line.strip_prefix(sign) {
            return Some((rest.rsplit_once(" (").map_or(rest, |(name, _)| name), is_ok));
        }
    }
    let (rest, is_ok) = match line.strip_prefix("not ok ") {
        Some(rest) => (rest, false),
        None => (line.strip_prefix("ok ")?, true),
    };
    let (number, name) = rest.split_once(" - ")?;
    number.parse::<u64>().ok()?;
    Some((name.split(" # ").next().unwrap_or(name), is_ok))
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
    let (passed, failed) = (count("passed"), count("failed"));
    let is_whole = !text.contains("Test suite failed to run") && !text.contains("Failed Suites");
    let skipped = count("skipped").saturating_add(count("todo"));
    let tests = TestCounts { ran: passed.saturating_add(failed), skipped: is_whole.then_some(skipped) };
    Some(TestReport { passed, failed, is_missing: false, tests: Some(tests) })
}

/// `2 passing (5ms)`, `1 pending` and `1 failing`.
fn mocha(text: &str) -> Option<TestReport> {
    let count = |word: &str| {
        let line = text.lines().rev().map(str::trim).find(|line| {
            line.split_once(' ').is_some_and(|(number, rest)| {
                number.parse::<u64>().is_ok() && (rest == word || rest.starts_with(&format!("{word} (")))
            })
        })?;
        last_number(line.split(' ').next()?)
    };
    let (passed, failed) = (count("passing")?, count("failing").unwrap_or_default());
    // A hook that fails ends the tests around it.
    let is_whole = !text.contains("\" hook");
    let skipped = count("pending").unwrap_or_default();
    let tests = TestCounts { ran: passed.saturating_add(failed), skipped: is_whole.then_some(skipped) };
    Some(TestReport { passed, failed, is_missing: false, tests: Some(tests) })
}
