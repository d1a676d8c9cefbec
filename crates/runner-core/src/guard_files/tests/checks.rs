//! The protection that checks of tasks add.

use super::*;
use crate::model::id::{NodeId, RunId};
use crate::model::protection::CheckStage;
use crate::model::run_state::RunState;
use crate::model::tree::Tree;
use crate::model::tree::sample::{leaf, tree};

const CHECKS: &str = ".runner/nodes/root/checks.toml";

/// A run whose root has one check, and what is protected for it.
fn follow(toml: &str, files: &[(&'static str, &'static str)], tree: &Tree) -> Option<DerivedProtection> {
    let mut repo = repo(files);
    repo.insert(CHECKS.to_owned(), toml.as_bytes().to_vec());
    let state =
        RunState { protection: Some(Protection::default()), ..RunState::new(Some(RunId::new("r").unwrap())) };
    let nodes = [NodeId::root()];
    RunChecks { guard: &GuardConfig::default(), state: &state, tree, nodes: &nodes }.follow(&repo)
}

fn of_command(command: &[&str], files: &[(&'static str, &'static str)]) -> DerivedProtection {
    let toml = format!("[[check]]\nname = \"c\"\ncommand = {command:?}\n");
    follow(&toml, files, &tree(leaf("root"))).unwrap()
}

fn pinned(command: &[&str], files: &[(&'static str, &'static str)]) -> Vec<String> {
    of_command(command, files).pinned.iter().map(|path| path.as_str().to_owned()).collect()
}

#[test]
fn scripts_recipes_and_package_scripts_of_a_check_are_pinned() {
    let script = [("scripts/check.sh", ". tests/lib.sh\n./app\n"), ("tests/lib.sh", ""), ("app", "")];
    assert_eq!(pinned(&["sh", "scripts/check.sh"], &script), ["scripts/check.sh", "tests/lib.sh"]);
    let makefile = [("Makefile", "nested:\n\tsh e2e/run.sh\n"), ("e2e/run.sh", "")];
    assert_eq!(pinned(&["make", "-s", "nested"], &makefile), ["Makefile", "e2e/run.sh"]);
    let package = [("package.json", r#"{"scripts": {"e2e": "test -e ok"}}"#)];
    let entries = of_command(&["npm", "run", "e2e"], &package).protection.checks.entries;
    let names: Vec<String> = entries.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        ["package.json#scripts.e2e", "package.json#scripts.poste2e", "package.json#scripts.pree2e"]
    );
    assert!(entries.iter().all(|entry| entry.pinned));
}

#[test]
fn the_work_itself_is_not_protected() {
    for command in [
        &["python3", "cli.py", "--version"][..],
        &["sh", "-c", "./cli.py World | grep -q Hello"],
        &["./checkout/cli.py"],
    ] {
        let files = [("cli.py", "#!/usr/bin/env python3\n"), ("checkout/cli.py", "")];
        assert_eq!(pinned(command, &files), [""; 0], "{command:?}");
    }
}

#[test]
fn what_a_task_must_write_is_protected_from_its_pass_on() {
    let missing = of_command(&["sh", "scripts/check.sh"], &[]);
    assert_eq!(
        (missing.pinned, missing.protection.checks.files),
        (vec![], vec!["scripts/check.sh".to_owned()])
    );
    let makefile = [("Makefile", "all:\n\ttrue\n"), ("justfile", "all:\n  true\n")];
    assert_eq!(pinned(&["make", "nested"], &makefile), [""; 0], "the target is the task");
    assert_eq!(pinned(&["just", "nested"], &makefile), [""; 0]);
    let package = [("package.json", r#"{"scripts": {"dev": "vite"}}"#)];
    let entries = of_command(&["npm", "run", "e2e"], &package).protection.checks.entries;
    assert!(!entries.is_empty() && entries.iter().all(|entry| !entry.pinned));
    let tests = [("tests/test_a.py", "def test_old(): pass\n")];
    assert_eq!(pinned(&["pytest", "tests/test_a.py::test_new"], &tests), [""; 0]);
    assert_eq!(pinned(&["pytest", "tests/test_a.py", "-k", "new or old"], &tests), [""; 0]);
    assert_eq!(pinned(&["python3", "-m", "unittest", "tests.test_a.T.test_new"], &tests), [""; 0]);
    assert_eq!(pinned(&["pytest", "tests/test_a.py", "-k", "test_old"], &tests), ["tests/test_a.py"]);
    assert_eq!(pinned(&["pytest", "tests/test_a.py::test_old"], &tests), ["tests/test_a.py"]);
}

#[test]
fn check_files_are_left_to_their_destinations() {
    let toml =
        "[[check]]\nname = \"c\"\ncommand = [\"sh\", \"t/check.sh\"]\nfiles = { \"t/check.sh\" = \"n\" }\n";
    let derived = follow(toml, &[], &tree(leaf("root"))).unwrap();
    assert_eq!((derived.protection.checks.files, derived.pinned), (vec![], vec![]));
}

#[test]
fn checks_are_followed_again_when_their_task_has_passed_and_not_before() {
    let files = [("Makefile", "nested:\n\ttrue\n")];
    let toml = "[[check]]\nname = \"c\"\ncommand = [\"make\", \"nested\"]\n";
    let open = tree(leaf("root"));
    let DerivedProtection { protection, .. } = follow(toml, &files, &open).unwrap();
    assert_eq!(protection.checks.tasks, BTreeMap::from([(NodeId::root(), CheckStage::Open)]));
    let whole = protection.clone().whole();
    assert_eq!((whole.files.len(), whole.missing.len()), (4, 3));
    let state = RunState { protection: Some(protection), ..RunState::new(None) };
    let nodes = [NodeId::root()];
    let guard = GuardConfig::default();
    assert!(!RunChecks { guard: &guard, state: &state, tree: &open, nodes: &nodes }.has_unfollowed());
    let mut root = leaf("root");
    root.passes = true;
    let passed = tree(root);
    assert!(RunChecks { guard: &guard, state: &state, tree: &passed, nodes: &nodes }.has_unfollowed());
    let listed = GuardConfig { protected: Some(Vec::new()), ..GuardConfig::default() };
    assert!(!RunChecks { guard: &listed, state: &state, tree: &passed, nodes: &nodes }.has_unfollowed());
}

#[test]
fn the_setup_is_protected_like_the_guard() {
    let setup = |command: &[&str], files: &[(&'static str, &'static str)]| {
        let guard = GuardConfig { setup: Some(words(command)), ..guard(&["true"]) };
        derived(&guard, &repo(files))
    };
    assert_eq!(setup(&["sh", "scripts/setup.sh"], &[("scripts/setup.sh", "")]).files, ["scripts/setup.sh"]);
    let install = setup(&["npm", "ci"], &[("package.json", "{}")]).entries;
    let names: Vec<String> = install.iter().map(ToString::to_string).collect();
    assert!(names.contains(&"package.json#scripts.postinstall".to_owned()), "{names:?}");
    assert!(install.iter().all(|entry| entry.pinned));
}
