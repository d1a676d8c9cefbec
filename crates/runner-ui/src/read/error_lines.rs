//! Finds the lines of a log that report an error: one table for the stop banner, the log's first error and the jumps.

/// What an error line contains, by the programs that write it.
const CONTAINS: &[&str] = &[
    // Rust's compiler and tests.
    "error[E",
    " panicked at ",
    "... FAILED",
    "test result: FAILED",
    // TypeScript, Python, Java and others print the exception.
    ": error TS",
    "AssertionError",
    "Traceback (most recent call last)",
    "Exception in thread",
    // make, npm, just.
    "*** [",
    "npm ERR!",
    "Segmentation fault",
];

/// What an error line starts with, after white space.
const STARTS_WITH: &[&str] = &[
    "error:", "Error:", "ERROR:", "ERROR ", "fatal:", "FAILED", "FAIL ", "FAIL:", "FAIL\t", "--- FAIL",
    "not ok ", "panic:", "E   ", "✗ ", "✘ ", "× ",
];

/// What follows the file and line number in a compiler's error.
const AFTER_LOCATION: &[&str] = &[": error:", ": fatal error:"];

/// Whether a line, without escape sequences, reports an error.
pub(crate) fn is_error_line(line: &str) -> bool {
    let text = line.trim_start();
    STARTS_WITH.iter().any(|word| text.starts_with(word))
        || CONTAINS.iter().any(|word| text.contains(word))
        || AFTER_LOCATION.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_common_programs_are_recognized() {
        for line in [
            "error[E0425]: cannot find value `x` in this scope",
            "error: could not compile `x`",
            "thread 'limit::tests::retry' (71) panicked at src/limit.rs:88:9:",
            "test limit::tests::retry_after ... FAILED",
            "src/a.ts(3,5): error TS2322: Type 'x' is not assignable",
            "E   AssertionError: assert 1 == 2",
            "FAILED tests/test_a.py::test_b - assert 1 == 2",
            "--- FAIL: TestX (0.00s)",
            "  ✗ renders the page",
            "not ok 3 - adds",
            "main.c:3:1: error: expected ';'",
            "make: *** [Makefile:3: all] Error 1",
            "fatal: not a git repository",
            "FAILED  tests/from_roman.sh",
        ] {
            assert!(is_error_line(line), "{line}");
        }
    }

    #[test]
    fn lines_that_only_mention_errors_are_not_errors() {
        for line in [
            "test errors::are_reported ... ok",
            "running 3 tests",
            "0 errors, 0 warnings",
            "warning: unused variable: `error`",
            "test result: ok. 3 passed; 0 failed",
            "",
        ] {
            assert!(!is_error_line(line), "{line}");
        }
    }
}
