//! Runs of releases, kept as git bundles: each stopped in the middle. This version verifies and finishes them.
//!
//! `just record-release` adds the one of the current version.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

const SCENARIO: &str = r#"
[[session]]
when = { node = "root" }
answer = { status = "decomposed", summary = "two steps" }
[[session.do]]
add_children = { node = "root", children = [{ id = "one" }, { id = "two" }] }

[[session]]
when = { node = "one", attempts = 0 }
answer = { status = "retry", summary = "not yet" }

[[session]]
answer = { status = "done", summary = "wrote a line" }
[[session.do]]
append = { path = "work.txt", text = "a line\n" }
[[session.do]]
append = { path = ".runner/state/assumptions.md", text = "- lines are enough\n" }
"#;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/releases")
}

/// A run with everything that its branch can hold: tasks, a check, a note, memory, a failed attempt and a pass.
fn record(bundle: &Path) {
    let repo = TestRepo::with_commit(RUNNER);
    repo.write("scenario.toml", SCENARIO);
    repo.write("check.sh", "test ! -e broken\n");
    repo.commit_all("A project");
    repo.runner(&["init"]).ok();
    repo.runner(&["config", "set", "executor.kind=script", "executor.scenario=scenario.toml"]).ok();
    repo.runner(&["config", "set", "guard.command", "sh", "check.sh"]).ok();
    repo.write(
        ".runner/GOAL.md",
        "---\nid: kept\n---\n# Write two lines\n\n## Acceptance\n\n- there are two lines\n",
    );
    repo.runner(&["start"]).ok();
    assert_eq!(repo.runner(&["loop", "--max-iterations", "1"]).code, Some(4));
    repo.write("../check", "grep -q line work.txt\n");
    let check = ["node", "check", "add", "two", "--name", "lines", "--command", "sh lines.sh"];
    repo.runner(&[&check[..], &["--file", "lines.sh=../check"]].concat()).ok();
    repo.runner(&["note", "keep it short"]).ok();
    assert_eq!(repo.runner(&["loop", "--max-iterations", "2"]).code, Some(4));
    repo.git(&["bundle", "create", "-q", bundle.to_str().unwrap(), "--branches"]);
}

/// Verifies, finishes and verifies again the run in a bundle, in a clone.
fn finish(bundle: &Path) {
    let repo = TestRepo::with_commit(RUNNER);
    let clone = repo.outside().join("clone");
    let name = bundle.display().to_string();
    repo.git(&["clone", "-q", "--branch", "runner/kept", &name, clone.to_str().unwrap()]);
    let command = |args: &[&str]| run(repo.command(RUNNER).current_dir(&clone).args(args));
    for args in [&["verify"][..], &["loop"], &["verify", "--rerun"]] {
        let output = command(args);
        assert_eq!(output.code, Some(0), "{name}: {args:?}: {}{}", output.stdout, output.stderr);
    }
    let status = command(&["status", "--json"]).ok().stdout;
    assert!(status.contains("\"complete\""), "{name}: {status}");
}

#[test]
fn runs_of_every_release_are_verified_and_finished() {
    let mut count = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        finish(&entry.unwrap().path());
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn this_release_can_be_recorded() {
    let repo = TestRepo::with_commit(RUNNER);
    let bundle = repo.outside().join("this.bundle");
    record(&bundle);
    finish(&bundle);
    if std::env::var_os("RECORD_RELEASE").is_some() {
        fs::copy(&bundle, folder().join(format!("{}.bundle", env!("CARGO_PKG_VERSION")))).unwrap();
    }
}
