//! The protection that guards of real projects get.

mod checks;

use super::*;
use crate::config::CommandArgv;

fn repo(files: &[(&'static str, &'static str)]) -> BTreeMap<String, Vec<u8>> {
    files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

fn found(command: &[&str], files: &[(&'static str, &'static str)]) -> Protection {
    derived(&guard(command), &repo(files))
}

fn words(command: &[&str]) -> CommandArgv {
    CommandArgv::new(command.iter().map(|word| (*word).to_owned()).collect()).unwrap()
}

fn guard(command: &[&str]) -> GuardConfig {
    GuardConfig { command: words(command), ..GuardConfig::default() }
}

/// The existing files that are protected.
fn existing(command: &[&str], files: &[(&'static str, &'static str)]) -> Vec<String> {
    let found = found(command, files);
    let is_there = |path: &String| files.iter().any(|(name, _)| name == path);
    found.files.into_iter().filter(is_there).collect()
}

fn missing(command: &[&str], files: &[(&'static str, &'static str)]) -> Vec<String> {
    found(command, files).missing.iter().map(|path| path.as_str().to_owned()).collect()
}

#[test]
fn a_justfile_brings_its_imports_modules_scripts_and_environment() {
    let files = [
        (
            "justfile",
            "import 'ci.just'\nmod x\nset dotenv-load\nset shell := ['./sh', '-c']\nother:\n  python3 app.py\n",
        ),
        ("ci.just", "ci: lint\n  just x::t\n  make -s check\nlint:\n  sh scripts/lint.sh src/a.c\n"),
        ("x.just", "t:\n  python3 -m unittest -q t\n"),
        ("t.py", ""),
        ("sh", ""),
        ("scripts/lint.sh", "#!/bin/sh\n. ./lib.sh\n./bin/tool \"$1\"\n"),
        ("lib.sh", ""),
        ("bin/tool", ""),
        ("Makefile", "include more.mk\ncheck:\n\tbash ci.sh\n"),
        ("more.mk", ""),
        ("ci.sh", ""),
        ("app.py", ""),
        ("src/a.c", ""),
    ];
    assert_eq!(
        existing(&["just", "ci"], &files),
        [
            "Makefile",
            "bin/tool",
            "ci.just",
            "ci.sh",
            "justfile",
            "lib.sh",
            "more.mk",
            "scripts/lint.sh",
            "sh",
            "t.py",
            "x.just"
        ],
        "neither the source nor what other recipes run"
    );
    let missing = missing(&["just", "ci"], &files);
    assert_eq!(
        missing,
        [".env", ".justfile", "GNUmakefile", "Justfile", "check", "makefile", "unittest", "unittest.py"]
    );
}

#[test]
fn without_a_justfile_an_agent_may_create_one() {
    let found = found(&["just", "ci"], &[]);
    assert_eq!(found.files, [".justfile", "Justfile", "justfile"]);
    assert_eq!((found.missing, found.entries), (vec![], vec![]));
}

#[test]
fn scripts_of_a_package_are_followed_from_script_to_script() {
    let package = r#"{"scripts": {"test": "npm run lint && jest --config ci/jest.js", "lint": "node tools/lint.js src", "dev": "node app.js"}}"#;
    let files =
        [("package.json", package), ("tools/lint.js", ""), ("app.js", ""), ("ci/jest.js", ""), ("src", "")];
    let npm = found(&["npm", "test"], &files);
    let entries: Vec<String> = npm.entries.iter().map(ToString::to_string).collect();
    assert_eq!(
        entries,
        [
            "package.json#jest",
            "package.json#scripts.lint",
            "package.json#scripts.postlint",
            "package.json#scripts.posttest",
            "package.json#scripts.prelint",
            "package.json#scripts.pretest",
            "package.json#scripts.test",
        ]
    );
    assert!(npm.entries.iter().all(|entry| entry.pinned));
    assert_eq!(existing(&["npm", "test"], &files), ["ci/jest.js", "tools/lint.js"]);
    assert!(missing(&["npm", "test"], &files).contains(&".npmrc".to_owned()));
    for command in [["yarn", "test"], ["pnpm", "test"], ["npm", "t"]] {
        assert_eq!(found(&command, &files).entries, npm.entries, "{command:?}");
    }
    let run = found(&["bun", "run", "lint"], &files).entries;
    assert_eq!(
        run.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["package.json#scripts.lint", "package.json#scripts.postlint", "package.json#scripts.prelint"]
    );
}

#[test]
fn in_a_new_package_the_script_is_protected_from_its_first_pass_on() {
    let found = found(&["npm", "test"], &[]);
    assert!(found.entries.iter().all(|entry| !entry.pinned));
    assert_eq!(found.missing, []);
}

#[test]
fn a_script_is_protected_by_its_own_path() {
    for command in [
        &["./ci.sh"][..],
        &["bash", "-eu", "ci.sh"],
        &["python3", "ci.sh"],
        &["env", "A=1", "sh", "ci.sh"],
        &["sh", "-c", "cd . && ./ci.sh x"],
    ] {
        assert_eq!(existing(command, &[("ci.sh", "")]), ["ci.sh"], "{command:?}");
    }
    assert_eq!(found(&["./ci.sh"], &[]).files, ["ci.sh"], "an agent may create it");
    assert_eq!(found(&["python3", "ci.py"], &[]).files, [""; 0]);
    assert_eq!(found(&["/usr/bin/true"], &[]).files, [""; 0]);
    assert_eq!(found(&["sh", "-c", "../outside.sh; $X"], &[("outside.sh", "")]).files, [""; 0]);
    assert_eq!(existing(&["sh", "-c", "cd sub && sh x.sh"], &[("sub/x.sh", ""), ("x.sh", "")]), ["sub/x.sh"]);
}

#[test]
fn test_programs_bring_their_configuration_and_not_their_tests() {
    let files = [("Cargo.toml", ""), (".cargo/config.toml", ""), ("tests/it.rs", ""), ("src/lib.rs", "")];
    assert_eq!(existing(&["cargo", "test"], &files), [".cargo/config.toml"]);
    assert!(missing(&["cargo", "test"], &files).contains(&"rust-toolchain.toml".to_owned()));
    assert_eq!(missing(&["cargo", "test"], &[]), [""; 0], "a new project may choose its toolchain");
    let python = [("pyproject.toml", ""), ("tests/test_a.py", ""), ("conftest.py", ""), ("tox.ini", "")];
    let pytest = found(&["uv", "run", "pytest", "-q"], &python);
    assert_eq!(
        pytest.entries.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["pyproject.toml#tool.pytest"]
    );
    assert_eq!(existing(&["python3", "-m", "pytest"], &python), ["tox.ini"]);
    assert_eq!(existing(&["pytest", "tests/test_a.py::test_x"], &python), ["tests/test_a.py", "tox.ini"]);
}

#[test]
fn files_that_name_each_other_end() {
    let files = [
        ("justfile", "import 'justfile'\nci:\n  just ci\n  sh a.sh\n"),
        ("a.sh", "sh a.sh; ./b.sh"),
        ("b.sh", "sh a.sh; make"),
        ("Makefile", "include Makefile\nall: all\n\tmake all\n\tnpm test\n"),
        ("package.json", r#"{"scripts": {"test": "npm test; npm run test"}}"#),
    ];
    assert_eq!(existing(&["just", "ci"], &files), ["Makefile", "a.sh", "b.sh", "justfile"]);
}

#[test]
fn a_list_in_the_configuration_wins() {
    let repo = repo(&[("justfile", "import 'a'")]);
    let mut guard = GuardConfig { protected: Some(vec!["x/**".to_owned()]), ..GuardConfig::default() };
    assert_eq!(protection(&guard, &repo).files, ["x/**"]);
    guard.protected = Some(Vec::new());
    let none = protection(&guard, &repo);
    assert_eq!(none, Protection { guard_sha256: none.guard_sha256, ..Protection::default() });
    guard.protected = None;
    assert_eq!(protection(&guard, &repo).files, [".justfile", "Justfile", "a", "justfile"]);
}

#[test]
fn a_guard_is_another_one_if_its_keys_files_or_entries_change() {
    let npm = GuardConfig {
        command: CommandArgv::new(vec!["npm".into(), "test".into()]).unwrap(),
        ..GuardConfig::default()
    };
    let package = |test: &str, version: &str| {
        let text = format!("{{\"version\": \"{version}\", \"scripts\": {{\"test\": \"{test}\"}}}}");
        protection(&npm, &BTreeMap::from([("package.json".to_owned(), text.into_bytes())])).guard_sha256
    };
    assert_eq!(package("vitest", "1"), package("vitest", "2"));
    assert_ne!(package("vitest", "1"), package("true", "1"));
    let just = GuardConfig::default();
    let recipe =
        |text: &'static str| protection(&just, &repo(&[("justfile", text), ("src/a", "x")])).guard_sha256;
    assert_eq!(recipe("ci:\n  a\n"), recipe("ci:\n  a\n"));
    assert_ne!(recipe("ci:\n  a\n"), recipe("ci:\n  b\n"));
    let offline = GuardConfig { network: false, ..just.clone() };
    assert_ne!(protection(&offline, &repo(&[])).guard_sha256, protection(&just, &repo(&[])).guard_sha256);
    let lenient = GuardConfig { final_check: false, baseline: false, ..just.clone() };
    assert_eq!(protection(&lenient, &repo(&[])).guard_sha256, protection(&just, &repo(&[])).guard_sha256);
}

#[test]
fn a_name_with_pattern_characters_matches_itself_alone() {
    assert_eq!(escaped("a[1]*?\\b"), "a\\[1]\\*\\?\\\\b");
}

#[test]
fn names_that_a_program_looks_for_itself_must_stay_missing() {
    let unittest = missing(
        &["python3", "-m", "unittest", "-q", "t"],
        &[("t.py", "import product\n"), ("product.py", "")],
    );
    for name in ["unittest.py", "unittest"] {
        assert!(unittest.contains(&name.to_owned()), "{name}: {unittest:?}");
    }
    let script =
        [("ci.py", "import json, os.path\nfrom sys import exit\nimport product\n"), ("product.py", "")];
    let names = missing(&["python3", "ci.py"], &script);
    assert!(names.contains(&"json.py".to_owned()) && !names.contains(&"calendar.py".to_owned()), "{names:?}");
    assert_eq!(existing(&["python3", "ci.py"], &script), ["ci.py"], "not the work");
    let go = found(&["go", "test", "./..."], &[("go.mod", "")]);
    assert_eq!((go.files, go.missing.len()), (vec!["go.work".to_owned()], 1));
    let pytest = found(&["pytest"], &[("setup.py", "")]);
    assert!(pytest.missing.iter().any(|path| path.as_str() == "pytest.ini"));
    assert!(pytest.entries.iter().all(|entry| entry.pinned));
    assert_eq!(found(&["pytest"], &[]).missing, []);
}

#[test]
fn a_helper_of_the_guard_is_followed() {
    let files = [("ci/run.py", "import helper, sys\n"), ("ci/helper.py", "import shutil\n"), ("app.py", "")];
    assert_eq!(existing(&["python3", "ci/run.py"], &files), ["ci/helper.py", "ci/run.py"]);
    assert!(missing(&["python3", "ci/run.py"], &files).contains(&"ci/shutil.py".to_owned()));
}

#[test]
fn files_in_the_place_of_targets_and_includes_must_stay_missing() {
    let makefile = "include $(wildcard mk/*.mk) rules/*.mk\n.PHONY: lint\ncheck: lint test.stamp src/a.c\n\ttrue\nlint:\n\ttrue\n\
        test.stamp: t.sh\n\tsh t.sh\nother:\n\ttrue\ntests:\n\ttrue\n";
    let files = [("Makefile", makefile), ("mk/a.mk", ""), ("t.sh", ""), ("src/a.c", ""), ("tests/a.c", "")];
    let found = missing(&["make", "check"], &files);
    assert_eq!(found, ["GNUmakefile", "check", "makefile", "mk/*.mk", "rules/*.mk", "test.stamp"]);
    assert!(self::found(&["make", "check"], &files).files.contains(&"mk/*.mk".to_owned()));
    assert!(!missing(&["make", "tests"], &files).contains(&"tests".to_owned()), "a folder");
}

#[test]
fn programs_and_workspaces_of_a_package_are_protected() {
    let root = r#"{"workspaces": ["p", "q/*"], "scripts": {"test": "tool && npm test -ws -s && eslint ."}}"#;
    let files = [
        ("package.json", root),
        ("p/package.json", r#"{"scripts": {"test": "true"}}"#),
        ("node_modules/.bin/tool", ""),
    ];
    let npm = found(&["npm", "test"], &files);
    assert!(npm.files.contains(&"node_modules/.bin/tool".to_owned()));
    let missing: Vec<&str> = npm.missing.iter().map(RepoPath::as_str).collect();
    assert!(missing.contains(&"node_modules/.bin/eslint") && !missing.contains(&"node_modules/.bin/tool"));
    assert!(
        npm.entries.iter().any(|entry| entry.to_string() == "p/package.json#scripts.test" && entry.pinned)
    );
    let npx = found(&["npx", "vitest", "run"], &[("package.json", "{}")]);
    assert!(npx.missing.iter().any(|path| path.as_str() == "node_modules/.bin/vitest"));
}

#[test]
fn idioms_of_scripts_are_followed() {
    for script in [
        ". \"$(dirname \"$0\")/lib/check.sh\"",
        "cd \"$(dirname \"$0\")/..\"\n. ./ci/lib/check.sh",
        "HERE=\"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\"\nsource \"$HERE/lib/check.sh\"",
        "ROOT=$(git rev-parse --show-toplevel)\nbash ${ROOT}/ci/lib/check.sh",
        "LIB=ci/lib\nfor name in other check; do sh $LIB/$name.sh; done",
    ] {
        let script: &'static str = script;
        let files = [("ci/run.sh", script), ("ci/lib/check.sh", "")];
        assert_eq!(existing(&["sh", "ci/run.sh"], &files), ["ci/lib/check.sh", "ci/run.sh"], "{script}");
    }
    let optional = [("ci.sh", "[ -f ci.env ] && . ./ci.env\n")];
    assert_eq!(missing(&["sh", "ci.sh"], &optional), ["ci.env"]);
    let tests = found(&["sh", "ci.sh"], &[("ci.sh", "for t in tests/*.sh; do sh \"$t\"; done\n")]);
    assert_eq!((tests.files, tests.missing), (vec!["ci.sh".to_owned(), "tests/*.sh".to_owned()], vec![]));
}
