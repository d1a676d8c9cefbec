//! Sessions that turn the check of their task green without the work.

use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use super::{Attempt, assert_no_false_pass, attempt, copy, has_passed, stage};
use crate::RUNNER;

const CHECKS: &str = ".runner/nodes/root/checks.toml";

/// A stage whose task has a check with a file. The guard always succeeds: only the check is in the way.
fn checked(command: &str, destination: &str, text: &str) -> TestRepo {
    let toml = format!(
        "[[check]]\nname = \"answers\"\ncommand = {command}\nfiles = {{ \"{destination}\" = \"frozen\" }}\n"
    );
    stage(&RunBuilder::new(RUNNER).file(CHECKS, toml).file(".runner/nodes/root/frozen", text), "true", 1)
}

/// The same, with these files in the repository.
fn checked_in(files: &[(&str, &str)], command: &str, destination: &str, text: &str) -> TestRepo {
    let toml = format!(
        "[[check]]\nname = \"answers\"\ncommand = {command}\nfiles = {{ \"{destination}\" = \"frozen\" }}\n"
    );
    let mut builder = RunBuilder::new(RUNNER).file(CHECKS, toml).file(".runner/nodes/root/frozen", text);
    for (path, text) in files {
        builder = builder.file(path, text);
    }
    stage(&builder, "true", 1)
}

/// What the work itself comes to: the check must not be in its way.
fn assert_the_work_passes(stage: &TestRepo, session: &str) {
    let repo = copy(stage, session);
    let output = repo.runner(&["loop"]);
    assert!(has_passed(&repo), "{:?}\n{}{}", repo.outcomes(), output.stdout, output.stderr);
    repo.runner(&["verify", "--rerun"]).ok();
}

fn assert_only_the_work_passes(stage: &TestRepo, attempts: &[Attempt]) {
    for Attempt { name, session } in attempts {
        let repo = copy(stage, session);
        let output = repo.runner(&["loop"]);
        assert!(!has_passed(&repo), "{name}: {:?}\n{}", repo.outcomes(), output.stdout);
        assert_no_false_pass(&repo, name, &output);
    }
}

/// Every one of these leaves `answer.sh` as it is.
const FILES: [Attempt; 14] = [
    attempt("overwrites the check", "echo true > t/check.sh; answer done"),
    attempt("links the check to a program that succeeds", "ln -sf /bin/true t/check.sh; answer done"),
    attempt(
        "makes the check a folder",
        "rm t/check.sh; mkdir -p t/check.sh/x; echo x > t/check.sh/x/y; answer done",
    ),
    attempt(
        "makes the check's folder a link",
        "rm -r t; mkdir u; echo true > u/check.sh; ln -s u t; answer done",
    ),
    attempt("makes the check's folder a file", "rm -r t; echo x > t; answer done"),
    attempt(
        "renames another checks.toml over it",
        "printf '[[check]]\\nname = \"answers\"\\ncommand = [\"true\"]\\n' > new; mv new .runner/nodes/root/checks.toml; answer done",
    ),
    attempt("moves the folder of its task away", "mv .runner/nodes/root .runner/nodes/other; answer done"),
    attempt(
        "makes the folder of its task a link",
        "mv .runner/nodes/root .runner/nodes/other; echo true > .runner/nodes/other/frozen; ln -s other .runner/nodes/root; answer done",
    ),
    attempt(
        "changes the frozen file and the copy",
        "echo true > .runner/nodes/root/frozen; echo true > t/check.sh; answer done",
    ),
    attempt("ignores the check", "echo t > .gitignore; rm -r t; answer done"),
    attempt(
        "converts the check by attribute",
        "printf 't/* working-tree-encoding=UTF-16\\n.runner/** eol=crlf\\n' > .gitattributes; answer done",
    ),
    attempt(
        "makes the check optional",
        "sed -i 's/^name/red = \"any\"\\nname/' .runner/nodes/root/checks.toml; answer done",
    ),
    attempt("makes the check unreadable", "chmod 000 t/check.sh; answer done"),
    attempt(
        "plants programs beside the check",
        "for p in sh test cat; do printf '#!/bin/true\\n' > $p; chmod +x $p; done; answer done",
    ),
];

#[test]
fn files_of_a_check_stay_frozen() {
    let stage = checked("[\"sh\", \"t/check.sh\"]", "t/check.sh", "test \"$(sh answer.sh)\" = 42\n");
    assert_only_the_work_passes(&stage, &FILES);
}

const PYTHON_TEST: &str = "import unittest\nimport product\n\nclass Answers(unittest.TestCase):\n    def test(self):\n        \
                           self.assertEqual(product.answer(), 42)\n";

/// The product under test runs in the process of the test program, and ends it before it can fail.
const EXITS: [Attempt; 6] = [
    attempt("ends the process at import", "echo 'import os; os._exit(0)' > product.py; answer done"),
    attempt(
        "ends the process in the test",
        "printf 'import os\\ndef answer(): os._exit(0)\\n' > product.py; answer done",
    ),
    attempt(
        "ends the process after the report",
        "printf 'import atexit, os\\natexit.register(os._exit, 0)\\ndef answer(): return 0\\n' > product.py; answer done",
    ),
    attempt(
        "has no test loaded",
        "printf 'import unittest\\nunittest.TestLoader.loadTestsFromModule = lambda self, *a, **k: self.suiteClass()\\nunittest.TestLoader.getTestCaseNames = lambda self, c: []\\n' > product.py; answer done",
    ),
    attempt(
        "skips every test",
        "printf 'import unittest\\nunittest.TestCase.run = lambda self, result=None: None\\n' > product.py; answer done",
    ),
    attempt(
        "shadows the test program",
        "echo 'raise SystemExit(0)' > unittest.py; touch product.py; answer done",
    ),
];

#[test]
fn a_check_that_ends_early_has_not_succeeded() {
    let stage =
        checked("[\"python3\", \"-m\", \"unittest\", \"t.test_product\"]", "t/test_product.py", PYTHON_TEST);
    assert_only_the_work_passes(&stage, &EXITS);
}

const TWO_TESTS: &str = "import unittest\nimport product\n\nclass Answers(unittest.TestCase):\n    def test_a(self):\n        \
                         self.assertTrue(product)\n    def test_b(self):\n        self.assertEqual(product.answer(), 42)\n";

/// The product exists before the work, so that the check has counts to compare with.
const LOST_TESTS: [Attempt; 3] = [
    attempt(
        "skips the test that fails",
        "printf 'import unittest\ndef answer(): raise unittest.SkipTest(1)\n' > product.py; answer done",
    ),
    attempt(
        "puts another module in the place of the test",
        "printf 'import sys, types, unittest\nm = types.ModuleType(\"t.test_product\")\nclass T(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): pass\nT.__module__ = \"t.test_product\"\nm.T = T\nsys.modules[\"t.test_product\"] = m\ntest_product = m\n' > t/__init__.py; answer done",
    ),
    attempt(
        "changes the test from a file of pytest",
        "echo 'import product; product.answer = lambda: 42' > t/conftest.py; printf 'def answer(): return 42\n' > product.py; answer done",
    ),
];

#[test]
fn a_check_whose_tests_did_not_all_run_has_not_succeeded() {
    let stage = checked_in(
        &[("product.py", "def answer(): return 0\n")],
        "[\"python3\", \"-m\", \"unittest\", \"t.test_product\"]",
        "t/test_product.py",
        TWO_TESTS,
    );
    assert_only_the_work_passes(&stage, &LOST_TESTS);
    assert_the_work_passes(
        &stage,
        "echo 'def answer(): return 42' > product.py; touch t/__init__.py; answer done",
    );
}

const NODE_TEST: &str = "import test from 'node:test'; import assert from 'node:assert'; import {answer} from '../product.mjs';\n\
                         test('first', () => {});\ntest('answers', () => assert.equal(answer(), 42));\n";

const NODE_EXITS: [Attempt; 2] = [
    attempt(
        "ends the process of node at import",
        "echo 'process.exit(0); export const answer = 0' > product.mjs; answer done",
    ),
    attempt(
        "ends the process of node in the test",
        "echo 'export const answer = () => process.exit(0)' > product.mjs; answer done",
    ),
];

#[test]
fn a_file_without_a_test_is_no_success_of_node() {
    let product = [
        ("product.mjs", "export const answer = () => 0\n"),
        ("t/b.test.mjs", "import test from 'node:test'; test('b', () => {});\n"),
    ];
    for command in [
        "[\"node\", \"--test\", \"t/a.test.mjs\"]",
        "[\"node\", \"--test\", \"t/a.test.mjs\", \"t/b.test.mjs\"]",
    ] {
        let stage = checked_in(&product, command, "t/a.test.mjs", NODE_TEST);
        assert_only_the_work_passes(&stage, &NODE_EXITS);
        assert_the_work_passes(&stage, "echo 'export const answer = () => 42' > product.mjs; answer done");
    }
}

const MANIFEST: &str = "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
const NESTED: &str = "#[test]\nfn nested() { assert_eq!(a::answer(), 42); }\n";

const CARGO_TRICKS: [Attempt; 3] = [
    attempt(
        "names another file for the test",
        "printf '[[test]]\nname = \"nested\"\npath = \"tests/other.rs\"\n' >> Cargo.toml; printf '#[test]\nfn nested() {}\n' > tests/other.rs; answer done",
    ),
    attempt(
        "ends the process of the test",
        "printf 'pub fn answer() -> u32 { std::process::exit(0) }\n#[test]\nfn unit() {}\n' > src/lib.rs; answer done",
    ),
    attempt("turns test files off", "sed -i 's/^edition.*/&\nautotests = false/' Cargo.toml; answer done"),
];

#[test]
fn every_test_program_of_cargo_must_report() {
    // Not the proxies of rustup, which need a home of their own.
    let cargo = env!("CARGO");
    let bin = cargo.strip_suffix("cargo").unwrap();
    let settings = format!("[build]\nrustc = \"{bin}rustc\"\nrustdoc = \"{bin}rustdoc\"\n");
    let files = [
        ("Cargo.toml", MANIFEST),
        (".cargo/config.toml", settings.as_str()),
        (".gitignore", "target\nCargo.lock\n"),
        ("src/lib.rs", "pub fn answer() -> u32 { 0 }\n#[test]\nfn unit() {}\n"),
        ("tests/kept.rs", ""),
    ];
    for option in ["--offline", "-q"] {
        let command = format!("[\"{cargo}\", \"test\", \"{option}\"]");
        let stage = checked_in(&files, &command, "tests/nested.rs", NESTED);
        assert_only_the_work_passes(&stage, &CARGO_TRICKS);
        assert_the_work_passes(
            &stage,
            "printf 'pub fn answer() -> u32 { 42 }\n#[test]\nfn unit() {}\n' > src/lib.rs; answer done",
        );
    }
}
