//! Readers for the output of test programs: how many tests ran and failed, and whether what they test is missing.
//!
//! A reader recognises the output of its program and returns `None` for any other. What no reader recognises is decided by its
//! exit code alone.

mod cargo;
mod go;
mod javascript;
mod junit;
mod python;
#[cfg(test)]
mod tests;

use crate::model::checks::Check;

/// What the output of a test program says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TestReport {
    pub passed: u64,
    pub failed: u64,
    /// Whether the tests could not run because something does not build, or a symbol or a file is missing.
    pub is_missing: bool,
    /// What can be compared with another run; none where the program does not list all tests.
    pub tests: Option<TestCounts>,
}

/// Counts of tests that can be compared with those of another run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TestCounts {
    /// How many ran to their end. A run that stopped early has fewer than there are.
    pub ran: u64,
    /// How many were skipped; none if the run may not have reached all of them.
    pub skipped: Option<u64>,
}

impl TestReport {
    /// Whether no test ran, although nothing is missing.
    pub(super) fn runs_nothing(self) -> bool {
        self.passed == 0 && self.failed == 0 && !self.is_missing
    }

    fn add(&mut self, passed: u64, failed: u64) {
        self.passed = self.passed.saturating_add(passed);
        self.failed = self.failed.saturating_add(failed);
    }
}

/// Reads what a check printed, as clean lines, and the JUnit report that it wrote. The counts of a JUnit report are exact and come
/// first.
pub(super) fn read(check: &Check, text: &str, junit: Option<&[u8]>) -> Option<TestReport> {
    let readers = [cargo::read, python::read, go::read, javascript::read];
    let printed = readers.iter().find_map(|read| read(text));
    let counted = junit.and_then(|bytes| junit::read(&String::from_utf8_lossy(bytes)));
    let mut report = match (counted, printed) {
        (Some(counted), printed) => TestReport {
            is_missing: counted.is_missing || printed.is_some_and(|printed| printed.is_missing),
            ..counted
        },
        (None, printed) => printed?,
    };
    if report.is_missing {
        report.tests = None;
    }
    if let Some(tests) = report.tests.as_mut().filter(|_| stops_early(check)) {
        tests.skipped = None;
    }
    Some(report)
}

/// Options of test programs that end a run at the first failure.
const STOPPING: [&str; 8] =
    ["-x", "-f", "-b", "--exitfirst", "--failfast", "--fail-fast", "--maxfail", "--bail"];

fn stops_early(check: &Check) -> bool {
    let words = check.command.words().iter().map(|word| word.split('=').next().unwrap_or(word));
    words.into_iter().any(|word| STOPPING.contains(&word))
}

/// A test program, or a file of the check, that began and did not report its result.
pub(super) fn unreported(check: &Check, text: &str) -> Option<String> {
    cargo::unreported(check, text).or_else(|| javascript::unreported(check, text))
}

/// Test programs that report what they ran whenever they end by themselves, as the words of their command lines.
const REPORTING: [&[&str]; 12] = [
    &["pytest"],
    &["py.test"],
    &["-m", "pytest"],
    &["-m", "unittest"],
    &["cargo", "test"],
    &["cargo", "nextest"],
    &["cargo", "t"],
    &["go", "test"],
    &["node", "--test"],
    &["vitest"],
    &["jest"],
    &["mocha"],
];

/// Whether a success of this check comes with a report of a test program.
pub(super) fn is_expected(check: &Check) -> bool {
    let words: Vec<&str> =
        check.command.words().iter().map(|word| word.rsplit('/').next().unwrap_or(word)).collect();
    // With two `-q`, pytest reports nothing.
    let is_silent = words.contains(&"-qq") || words.iter().filter(|word| **word == "-q").count() > 1;
    let is_reporting =
        REPORTING.iter().any(|program| words.windows(program.len()).any(|part| part == *program));
    check.junit.is_some() || is_reporting && !is_silent
}

/// The number that a text ends with.
fn last_number(text: &str) -> Option<u64> {
    let digits = text.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// The number before a word: 3 in `1 passed, 3 failed` for `failed`.
fn number_before(line: &str, word: &str) -> Option<u64> {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(word) {
        let is_word = !after.starts_with(|c: char| c.is_alphanumeric());
        if let Some(number) = last_number(before).filter(|_| is_word && before.ends_with(' ')) {
            return Some(number);
        }
        rest = after;
    }
    None
}
