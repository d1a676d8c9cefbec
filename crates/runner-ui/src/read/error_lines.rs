//! Which lines of a log tell of a fault. One table for the banner, the log's first error and its jumps.

/// What such a line holds, by the programs that write it.
const HOLDS: &[&str] = &[
    // Rust's compiler and tests.
    "error[E",
    " panicked at ",
    "... FAILED",
    "test result: FAILED",
    // TypeScript, Python, Java and others name what was thrown.
    ": error TS",
    "AssertionError",
    "Traceback (most recent call last)",
    "Exception in thread",
    // make, npm, just.
    "*** [",
    "npm ERR!",
    "Segmentation fault",
];

/// What such a line begins with, behind white space.
const BEGINS: &[&str] = &[
    "error:", "Error:", "ERROR:", "ERROR ", "fatal:", "FAILED", "FAIL ", "FAIL:", "FAIL\t", "--- FAIL",
    "not ok ", "panic:", "E   ", "✗ ", "✘ ", "× ",
];

/// What follows the place in a file that compilers begin their lines with.
const BEHIND_PLACE: &[&str] = &[": error:", ": fatal error:"];

/// Whether a line, without its colours, tells of a fault.
pub(crate) fn tells_of_failure(line: &str) -> bool {
    let text = line.trim_start();
    BEGINS.iter().any(|word| text.starts_with(word))
        || HOLDS.iter().any(|word| text.contains(word))
        || BEHIND_PLACE.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_common_programs_are_known() {
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
            assert!(tells_of_failure(line), "{line}");
        }
    }

    #[test]
    fn what_only_speaks_of_errors_is_no_fault() {
        for line in [
            "test errors::are_told ... ok",
            "running 3 tests",
            "0 errors, 0 warnings",
            "warning: unused variable: `error`",
            "test result: ok. 3 passed; 0 failed",
            "",
        ] {
            assert!(!tells_of_failure(line), "{line}");
        }
    }
}
