//! Samples recorded from the test programs themselves.

use super::*;

fn report(passed: u64, failed: u64, is_missing: bool) -> Option<TestReport> {
    Some(TestReport { passed, failed, is_missing, tests: None })
}

/// A check with this command and these files.
fn check(command: &str, files: &[&str]) -> Check {
    let words: Vec<String> = command.split(' ').map(|word| format!("\"{word}\"")).collect();
    let files: Vec<String> = files.iter().map(|file| format!("\"{file}\" = \"n\"")).collect();
    let (words, files) = (words.join(", "), files.join(", "));
    let toml = format!("[[check]]\nname = \"a\"\ncommand = [{words}]\nfiles = {{ {files} }}\n");
    crate::model::checks::decode(toml.as_bytes()).unwrap().remove(0)
}

fn clean(text: &str) -> String {
    crate::text::lines(text)
}

/// What is read without the counts to compare.
fn read_text(text: &str) -> Option<TestReport> {
    read_both(text, None)
}

fn read_both(text: &str, junit: Option<&str>) -> Option<TestReport> {
    let report = read(&check("x", &[]), &clean(text), junit.map(str::as_bytes));
    report.map(|report| TestReport { tests: None, ..report })
}

/// How many tests ran and how many were skipped, as far as they can be compared.
fn counts(command: &str, text: &str) -> Option<(u64, Option<u64>)> {
    let tests = read(&check(command, &[]), &clean(text), None)?.tests?;
    Some((tests.ran, tests.skipped))
}

#[test]
fn unknown_output_is_not_read() {
    for text in ["", "all good\n", "error: something\n", "Tests are fun\n", "3 files in 2 folders\n"] {
        assert_eq!(read_text(text), None, "{text}");
    }
}

#[test]
fn known_test_programs_are_expected_to_report() {
    for command in [
        "pytest tests",
        "python3 -m unittest t",
        ".venv/bin/pytest -q",
        "uv run pytest",
        "cargo test --test a",
        "go test ./...",
        "node --test t.mjs",
        "npx vitest run",
    ] {
        assert!(is_expected(&check(command, &[])), "{command}");
    }
    for command in
        ["sh test.sh", "pytest -qq", "pytest -q -q", "cargo build", "make test", "go vet", "./pytest.sh"]
    {
        assert!(!is_expected(&check(command, &[])), "{command}");
    }
}

#[test]
fn cargo_test() {
    let green = "   Compiling a v0.1.0 (/a)\n    Finished `test` profile\n     Running unittests src/lib.rs (target/debug/deps/a-1)\n\n\
        running 2 tests\ntest one ... ok\ntest two ... ok\n\n\
        test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n   Doc-tests a\n\n\
        running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    assert_eq!(read_text(green), report(2, 0, false));
    let red = "running 3 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\n\nassertion failed\n\n\
        test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\nerror: test failed, to rerun pass `--lib`\n";
    assert_eq!(read_text(red), report(2, 1, false));
    let none = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s\n";
    assert_eq!(read_text(none), report(0, 0, false));
    let unbuilt = "error[E0432]: unresolved import `a::nested`\n --> tests/nested.rs:1:5\n\n\
        error: could not compile `a` (test \"nested\") due to 1 previous error\n";
    assert_eq!(read_text(unbuilt), report(0, 0, true));
    assert_eq!(
        read_text("error: no test target named `nested` in default-run packages\n"),
        report(0, 0, true)
    );
    let coloured = "\u{1b}[1m\u{1b}[91merror\u{1b}[0m: could not compile `a` (lib) due to 1 previous error\n";
    assert_eq!(read_text(coloured), report(0, 0, true));
}

#[test]
fn cargo_nextest() {
    let red = "    Starting 3 tests across 1 binary\n        PASS [   0.003s] a one\n        FAIL [   0.004s] a two\n────────────\n     \
        Summary [   0.005s] 3 tests run: 2 passed, 1 failed, 4 skipped\n        FAIL [   0.004s] a two\nerror: test run failed\n";
    assert_eq!(read_text(red), report(2, 1, false));
    let one = "     Summary [   0.005s] 1 test run: 1 passed, 0 skipped\n";
    assert_eq!(read_text(one), report(1, 0, false));
    let none = "     Summary [   0.000s] 0 tests run: 0 passed, 9 skipped\nerror: no tests to run\n(hint: use `--no-tests` to customize)\n";
    assert_eq!(read_text(none), report(0, 0, false));
}

#[test]
fn pytest() {
    let red = "============================= test session starts ==============================\ncollected 3 items\n\n\
        test_a.py .F.                                                           [100%]\n\n\
        =========================== short test summary info ============================\nFAILED test_a.py::test_b - assert 1 == 2\n\
        ========================= 1 failed, 2 passed in 0.03s ==========================\n";
    assert_eq!(read_text(red), report(2, 1, false));
    assert_eq!(
        read_text("...                                  [100%]\n3 passed in 0.01s\n"),
        report(3, 0, false)
    );
    let uncollected = "==================================== ERRORS ====================================\n\
        __________________________ ERROR collecting test_a.py __________________________\nImportError while importing test module '/a/test_a.py'.\n\
        E   ModuleNotFoundError: No module named 'auth'\n=========================== short test summary info ============================\n\
        ERROR test_a.py\n!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!\n\
        =============================== 1 error in 0.06s ===============================\n";
    assert_eq!(read_text(uncollected), report(0, 0, true));
    assert_eq!(
        read_text("============================ no tests ran in 0.00s =============================\n"),
        report(0, 0, false)
    );
    let no_file = "============================= test session starts =\ncollected 0 items\n\n\
        ============================ no tests ran in 0.00s =============================\nERROR: file or directory not found: test_x.py\n\n";
    assert_eq!(read_text(no_file), report(0, 0, true));
}

#[test]
fn unittest() {
    assert_eq!(read_text("..\n----\nRan 2 tests in 0.000s\n\nOK\n"), report(2, 0, false));
    assert_eq!(
        read_text("F.E\n----\nRan 3 tests in 0.001s\n\nFAILED (failures=1, errors=1)\n"),
        report(1, 2, false)
    );
    assert_eq!(read_text("\n----\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n"), report(0, 0, false));
    let unimported = "ImportError: Failed to import test module: test_x\nTraceback\nModuleNotFoundError: No module named 'x'\n\n----\n\
        Ran 1 test in 0.000s\n\nFAILED (errors=1)\n";
    assert_eq!(read_text(unimported), report(0, 0, true));
}

#[test]
fn go_test() {
    assert_eq!(read_text("ok  \texample.com/a\t0.002s\n"), report(1, 0, false));
    assert_eq!(read_text("ok  \texample.com/a\t(cached)\n"), report(1, 0, false));
    let red =
        "--- FAIL: TestNested (0.00s)\n    a_test.go:6: got 1\nFAIL\nFAIL\texample.com/a\t0.002s\nFAIL\n";
    assert_eq!(read_text(red), report(0, 1, false));
    let verbose = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n    --- PASS: TestB/x (0.00s)\nPASS\nok  \texample.com/a\t0.002s\n";
    assert_eq!(read_text(verbose), report(2, 0, false));
    let unbuilt = "# example.com/a [example.com/a.test]\n./a_test.go:6:5: undefined: Nested\nFAIL\texample.com/a [build failed]\nFAIL\n";
    assert_eq!(read_text(unbuilt), report(0, 0, true));
    assert_eq!(read_text("ok  \texample.com/a\t0.002s [no tests to run]\n"), report(0, 0, false));
    assert_eq!(read_text("?   \texample.com/a\t[no test files]\n"), report(0, 0, false));
}

#[test]
fn node_test() {
    let tap = "TAP version 13\n# Subtest: a\nok 1 - a\n1..2\n# tests 3\n# suites 0\n# pass 2\n# fail 1\n# cancelled 0\n# skipped 0\n";
    assert_eq!(read_text(tap), report(2, 1, false));
    assert_eq!(read_text("ℹ tests 0\nℹ suites 0\nℹ pass 0\nℹ fail 0\n"), report(0, 0, false));
    let missing = "Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/a/auth.mjs' imported from /a/auth.test.mjs\n# tests 1\n# pass 0\n# fail 1\n";
    assert_eq!(read_text(missing), report(0, 1, true));
}

#[test]
fn vitest_jest_and_mocha() {
    let vitest = " ❯ a.test.ts (3 tests | 1 failed) 6ms\n\n Test Files  1 failed (1)\n      Tests  1 failed | 2 passed (3)\n   Start at  10:00:00\n";
    assert_eq!(read_text(vitest), report(2, 1, false));
    assert_eq!(read_text(" Test Files  1 passed (1)\n      Tests  2 passed (2)\n"), report(2, 0, false));
    assert_eq!(read_text("\nNo test files found, exiting with code 1\n"), report(0, 0, false));
    let unresolved = "Error: Failed to resolve import \"./auth\" from \"auth.test.ts\". Does the file exist?\n Test Files  1 failed (1)\n      Tests  no tests\n";
    assert_eq!(read_text(unresolved), report(0, 0, true));
    let jest = "FAIL ./a.test.js\n\nTest Suites: 1 failed, 1 total\nTests:       1 failed, 2 passed, 3 total\nSnapshots:   0 total\n";
    assert_eq!(read_text(jest), report(2, 1, false));
    let jest_missing = "● Test suite failed to run\n\n    Cannot find module './auth' from 'auth.test.js'\n\nTest Suites: 1 failed, 1 total\nTests:       0 total\n";
    assert_eq!(read_text(jest_missing), report(0, 0, true));
    assert_eq!(read_text("No tests found, exiting with code 1\n"), report(0, 0, false));
    assert_eq!(read_text("\n  3 passing (5ms)\n  1 failing\n"), report(3, 1, false));
}

#[test]
fn a_junit_report_has_the_exact_counts() {
    let junit = "<?xml version=\"1.0\"?>\n<testsuites><testsuite name=\"a\" tests=\"4\" failures=\"1\">\n<testcase name=\"x\"/>\n\
        <testcase name=\"y\"><failure message=\"no\">&lt;error&gt;</failure></testcase><testcase name=\"z\"><skipped/></testcase>\n\
        <testcase name=\"e\"><error type=\"E\"/></testcase></testsuite></testsuites>\n";
    assert_eq!(read_both("", Some(junit)), report(1, 2, false));
    assert_eq!(read_both("1 passed in 0.01s\n", Some("no report")), report(1, 0, false));
    let unbuilt = "error: could not compile `a` (lib) due to 1 previous error\n";
    assert_eq!(read_both(unbuilt, Some("<testsuite/>")), report(0, 0, true));
}

#[test]
fn counts_that_can_be_compared() {
    for (command, text, expected) in [
        ("python3 -m unittest t", "Ran 3 tests in 0.001s\n\nFAILED (failures=1, skipped=1)\n", (2, Some(1))),
        ("python3 -m unittest t", "Ran 3 tests in 0.001s\n\nOK (skipped=2)\n", (1, Some(2))),
        ("python3 -m unittest -f t", "Ran 1 test in 0.001s\n\nFAILED (failures=1)\n", (1, None)),
        (
            "python3 -m unittest t",
            "ERROR: setUpClass (t.T)\nRan 0 tests in 0.001s\n\nFAILED (errors=1)\n",
            (0, None),
        ),
        ("pytest", "=== 1 failed, 2 passed, 1 skipped, 1 xfailed in 0.03s ===\n", (3, Some(2))),
        ("pytest", "=== 2 passed, 1 error in 0.03s ===\n", (2, None)),
        ("pytest --maxfail=1", "=== 1 failed in 0.03s ===\n", (1, None)),
        ("cargo test", "test result: ok. 2 passed; 0 failed; 3 ignored; 0 measured\n", (2, None)),
        (
            "go test -v",
            "=== RUN   TestA\n--- PASS: TestA (0.00s)\n--- SKIP: TestB (0.00s)\nok\ta\t0.1s\n",
            (1, Some(1)),
        ),
        ("node --test", "✔ a (1ms)\nℹ tests 3\nℹ pass 1\nℹ fail 1\nℹ skipped 1\nℹ todo 0\n", (2, Some(1))),
        ("vitest run", "      Tests  1 failed | 2 passed | 1 skipped (4)\n", (3, Some(1))),
        ("mocha", "  2 passing (5ms)\n  1 pending\n  1 failing\n", (3, Some(1))),
    ] {
        assert_eq!(counts(command, text), Some(expected), "{text}");
    }
    for text in [
        // Parts of a test are counted only if they fail.
        "SUBFAIL t.py::test_a\n=== 3 failed, 1 passed in 0.03s ===\n",
        "=== 1 passed, 3 subtests passed in 0.03s ===\n",
        // Without `-v`, only packages are counted.
        "ok\ta\t0.1s\n",
        "E   ModuleNotFoundError: No module named 'auth'\n=== 1 error in 0.06s ===\n",
    ] {
        assert_eq!(counts("x", text), None, "{text}");
    }
}

/// `cargo test` with a test program that ends its process with exit code 0.
const CARGO_EXIT: &str = "    Finished `test` profile\n     Running unittests src/lib.rs (target/debug/deps/a-1)\n\nrunning 1 test\n\
    test unit ... ok\n\ntest result: ok. 1 passed; 0 failed\n\n     Running tests/nested.rs (target/debug/deps/nested-1)\n\n\
    running 1 test\n   Doc-tests a\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed\n";

#[test]
fn every_test_program_of_cargo_reports() {
    let nested =
        |command: &str, text: &str| unreported(&check(command, &["p/tests/nested.rs"]), &clean(text));
    let why = |text: &str| Some(text.to_owned());
    assert_eq!(nested("cargo test", CARGO_EXIT), why("tests/nested.rs ended without a result"));
    let quiet = "running 1 test\n.\ntest result: ok. 1 passed; 0 failed\n\nrunning 1 test\n";
    assert_eq!(nested("cargo test -q", quiet), why("a test program ended without a result"));
    let verbose = "     Running `rustc --test a`\n     Running `/t/debug/deps/nested-1 -q`\nrunning 1 test\n\
        test result: ok. 1 passed; 0 failed\n";
    assert_eq!(nested("cargo test -v", verbose), None);
    let whole = CARGO_EXIT.replace("   Doc-tests", "test result: ok. 1 passed; 0 failed\n   Doc-tests");
    assert_eq!(nested("cargo test", &whole), None);
    let other = whole.replace("tests/nested.rs", "tests/other.rs");
    assert_eq!(nested("cargo test --test nested", &other), why("the tests of p/tests/nested.rs did not run"));
    assert_eq!(nested("cargo test", &other), why("the tests of p/tests/nested.rs did not run"));
    assert_eq!(nested("cargo test --test other", &other), None, "it is not asked for");
    assert_eq!(nested("cargo test --lib", &other), None, "it is not asked for");
    assert_eq!(nested("sh test.sh", &other), None);
    let own = format!("     Running tests/own.rs (target/debug/deps/own-1)\nall good\n{whole}");
    assert_eq!(nested("cargo test", &own), None, "a harness of its own");
    let silent = own.replace("tests/own.rs", "tests/nested.rs");
    assert_eq!(nested("cargo test", &silent), why("tests/nested.rs ended without a result"));
    assert_eq!(unreported(&check("cargo test", &["p/tests/it/nested.rs"]), &clean(&other)), None);
}

#[test]
fn a_file_that_reports_no_test_to_node_is_none() {
    let exit = "TAP version 13\n# Subtest: /r/t/a.test.mjs\nok 1 - /r/t/a.test.mjs\n  ---\n  duration_ms: 8.1\n  ...\n1..1\n\
        # tests 1\n# suites 0\n# pass 1\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0\n";
    assert_eq!(read_text(exit), report(0, 0, false));
    let spec = "✔ t/a.test.mjs (35.2ms)\n✔ other (0.5ms)\nℹ tests 2\nℹ pass 2\nℹ fail 0\n";
    assert_eq!(read_text(spec), report(1, 0, false));
    let of_check = check("node --test", &["t/a.test.mjs"]);
    for text in [exit, spec] {
        let why = unreported(&of_check, &clean(text));
        assert_eq!(why.as_deref(), Some("t/a.test.mjs ended without reporting a test"), "{text}");
    }
    assert_eq!(unreported(&check("node --test", &["t/b.test.mjs"]), &clean(spec)), None);
    let honest = "# Subtest: answers\nok 1 - answers\n# Subtest: reads a.js\nok 2 - reads a.js\n# tests 2\n# pass 2\n# fail 0\n";
    assert_eq!(read_text(honest), report(2, 0, false));
    let suite =
        "▶ src/a.js\n  ✔ adds (0.3ms)\n✔ src/a.js (0.9ms)\nℹ tests 1\nℹ suites 1\nℹ pass 1\nℹ fail 0\n";
    assert_eq!(read_text(suite), report(1, 0, false));
    // Old versions list a file after its tests.
    let old = "# Subtest: /r/t/a.test.mjs\n    # Subtest: answers\n    ok 1 - answers\n    1..1\nok 1 - /r/t/a.test.mjs\n\
        # tests 1\n# pass 1\n# fail 0\n";
    assert_eq!(read_text(old), report(1, 0, false));
    assert_eq!(unreported(&of_check, &clean(old)), None);
}
