//! The output of `cargo test` and `cargo nextest`.

use super::{TestCounts, TestReport, number_before};
use crate::model::checks::{Check, CheckPath};

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
    // A run ends after the first test program that fails, so that ignored tests cannot be compared.
    report.tests = Some(TestCounts { ran: report.passed.saturating_add(report.failed), skipped: None });
    is_recognised.then_some(report)
}

/// A test program that began and has no result, or a test file of the check whose test program did not begin. A product can end
/// the process with exit code 0, and Cargo.toml can name another file.
pub(super) fn unreported(check: &Check, text: &str) -> Option<String> {
    let words = check.command.words();
    let is_cargo_test = words.iter().any(|word| word == "test" || word == "t")
        && words.iter().any(|word| word.rsplit('/').next() == Some("cargo"));
    if !is_cargo_test {
        return None;
    }
    let mut programs: Vec<TestProgram<'_>> = Vec::new();
    let mut is_quiet = true;
    for line in text.lines().map(str::trim) {
        if let Some(name) = started_program(line).or_else(|| line.strip_prefix("Doc-tests ")) {
            is_quiet = false;
            programs.push(TestProgram { name, has_begun: false, has_result: false });
        } else if is_beginning(line) {
            match programs.last_mut().filter(|_| !is_quiet) {
                Some(program) => program.has_begun = true,
                // Quiet runs do not name the program.
                None => {
                    programs.push(TestProgram { name: "a test program", has_begun: true, has_result: false });
                }
            }
        } else if let (true, Some(program)) = (line.starts_with("test result: "), programs.last_mut()) {
            program.has_result = true;
        }
    }
    let targets = || check.files.keys().filter_map(target_of);
    // A program with a harness of its own reports in its own way, unless it is the check's.
    let is_silent = |program: &&TestProgram<'_>| {
        let is_of_check = || targets().any(|target| target.is_at(program.name));
        !program.has_result && (program.has_begun || is_of_check())
    };
    if let Some(program) = programs.iter().find(is_silent) {
        return Some(format!("{} ended without a result", program.name));
    }
    let is_missing = |file: &&CheckPath| {
        target_of(file).is_some_and(|target| {
            is_asked_for(words, target.name) && !programs.iter().any(|program| target.is_at(program.name))
        })
    };
    let missing = check.files.keys().find(is_missing).filter(|_| !is_quiet)?;
    Some(format!("the tests of {missing} did not run"))
}

/// A test program that Cargo started.
struct TestProgram<'t> {
    name: &'t str,
    /// Whether it printed how many tests it runs.
    has_begun: bool,
    has_result: bool,
}

/// `Running tests/a.rs (target/debug/deps/a-1)`, or with the command line of the program in a verbose run.
fn started_program(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("Running ")?;
    if let Some(command) = rest.strip_prefix('`') {
        let program = command.split([' ', '`']).next()?;
        return program.contains("/deps/").then_some(program);
    }
    let (source, _) = rest.rsplit_once(" (")?;
    Some(source)
}

/// Whether a test program begins with this line: `running 3 tests`.
fn is_beginning(line: &str) -> bool {
    let number = line.strip_prefix("running ").and_then(|rest| rest.split_once(' '));
    number.is_some_and(|(number, rest)| number.parse::<u64>().is_ok() && matches!(rest, "test" | "tests"))
}

/// The test program that Cargo builds from a file of a check.
struct TestTarget<'a> {
    name: &'a str,
    file: &'a str,
}

/// Only files directly in `tests`, and `tests/NAME/main.rs`, are programs of their own.
fn target_of(file: &CheckPath) -> Option<TestTarget<'_>> {
    let file = file.as_str();
    let parts: Vec<&str> = file.split('/').collect();
    let name = match parts.as_slice() {
        [.., "tests", file] => file.strip_suffix(".rs")?,
        [.., "tests", name, "main.rs"] => name,
        _ => return None,
    };
    Some(TestTarget { name, file })
}

impl TestTarget<'_> {
    /// Whether a line about a program that began is about this one. The path is relative to its package.
    fn is_at(&self, program: &str) -> bool {
        if let Some((_, built)) = program.rsplit_once("/deps/") {
            let name = built.rsplit_once('-').map_or(built, |(name, _)| name);
            return name.replace('-', "_") == self.name.replace('-', "_");
        }
        self.file == program || self.file.ends_with(&format!("/{program}"))
    }
}

/// Whether a command runs a test program of this name.
fn is_asked_for(words: &[String], name: &str) -> bool {
    let mut named = Vec::new();
    for (nth, word) in words.iter().enumerate() {
        if word == "--" {
            break;
        }
        if word == "--test" {
            named.extend(words.get(nth + 1).map(String::as_str));
        }
        named.extend(word.strip_prefix("--test="));
    }
    let is_other = |word: &String| {
        ["--lib", "--bins", "--bin", "--doc", "--example", "--examples", "--bench", "--benches"]
            .contains(&word.as_str())
    };
    if named.is_empty() { !words.iter().any(is_other) } else { named.contains(&name) }
}

/// `Summary [   0.012s] 3 tests run: 2 passed, 1 failed, 0 skipped`.
fn is_nextest_summary(line: &str) -> bool {
    line.starts_with("Summary [") && (line.contains("tests run:") || line.contains("test run:"))
}
