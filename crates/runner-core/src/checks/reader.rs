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
use crate::text::lines;

/// What the output of a test program says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestReport {
    pub passed: u64,
    pub failed: u64,
    /// Whether the tests could not run because something does not build, or a symbol or a file is missing.
    pub is_missing: bool,
}

impl TestReport {
    /// Whether no test ran, although nothing is missing.
    pub fn runs_nothing(self) -> bool {
        self.passed == 0 && self.failed == 0 && !self.is_missing
    }

    fn add(&mut self, passed: u64, failed: u64) {
        self.passed = self.passed.saturating_add(passed);
        self.failed = self.failed.saturating_add(failed);
    }
}

/// Reads what a check printed, and the JUnit report that it wrote. The counts of a JUnit report are exact and come first.
pub fn read(output: &[u8], junit: Option<&[u8]>) -> Option<TestReport> {
    let text = lines(&String::from_utf8_lossy(output));
    let readers = [cargo::read, python::read, go::read, javascript::read];
    let printed = readers.iter().find_map(|read| read(&text));
    let counted = junit.and_then(|bytes| junit::read(&String::from_utf8_lossy(bytes)));
    match (counted, printed) {
        (Some(counted), printed) => Some(TestReport {
            is_missing: counted.is_missing || printed.is_some_and(|printed| printed.is_missing),
            ..counted
        }),
        (None, printed) => printed,
    }
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
pub fn is_expected(check: &Check) -> bool {
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
