//! What releases wrote, kept as files: this version reads and continues it.
//!
//! Of each release there is a run that stopped in the middle (`VERSION.bundle`), the folder of one that was killed while it
//! committed, with its journal and its logs (`VERSION.crashed.tar.gz`), and results of an evaluation (`VERSION.results.tar.gz`).
//! `just record-release` adds those of the current version.

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

/// A started run with everything that its branch can hold: tasks, a check, a note, memory, a failed attempt and a pass.
fn recorded_run() -> TestRepo {
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
    repo
}

/// Packs a folder beside the work tree, or the work tree.
fn pack(repo: &TestRepo, folder: &str, file: &Path) {
    run(repo.command("tar").arg("-czf").arg(file).args(["-C", "..", folder])).ok();
}

/// Records what this version writes, as files with this beginning.
fn record(prefix: &Path) {
    let file = |ending: &str| PathBuf::from(format!("{}.{ending}", prefix.display()));
    let repo = recorded_run();
    repo.git(&["bundle", "create", "-q", file("bundle").to_str().unwrap(), "--branches"]);
    let killed = run(repo.runner_command(&["loop"]).env("RUNNER_TEST_CRASH_AT", "publish.journal"));
    assert_eq!(killed.code, None, "{}", killed.stderr);
    assert!(repo.path(".git/runner/journal.json").exists());
    // The room is made again when it is missing.
    run(repo.command("sh").args(["-c", "chmod -R u+w .git/runner/room; rm -rf .git/runner/room .git/hooks"]))
        .ok();
    pack(&repo, "work", &file("crashed.tar.gz"));

    let lab = TestRepo::with_commit(RUNNER);
    lab.write("eval/cases/writes/case.toml", CASE);
    lab.write("eval/cases/writes/agent.toml", SOLUTION);
    lab.runner(&["eval", "run", "--run", "kept", "--runner", RUNNER]).ok();
    run(lab.command("mv").args(["eval/results", "../results"])).ok();
    pack(&lab, "results", &file("results.tar.gz"));
}

const CASE: &str = r#"
[case]
id = "writes"
goal = "Write done.txt"
solution = "agent.toml"
[config.executor]
kind = "script"
scenario = "agent.toml"
[config.guard]
command = ["true"]
[[checks]]
type = "file_exists"
path = "done.txt"
"#;

const SOLUTION: &str = r#"
[[session]]
answer = { status = "done", summary = "wrote it" }
[[session.do]]
write = { path = "done.txt", text = "done" }
"#;

/// The exit codes of `verify` that a run of this release may have. Prompts of other templates cannot be derived again, so a run
/// of an earlier release may be `partial`.
fn verdicts(version: &str) -> &'static [i32] {
    if version == env!("CARGO_PKG_VERSION") { &[0] } else { &[0, 5] }
}

/// Verifies, finishes and verifies again the run in a bundle, in a clone.
fn finish(bundle: &Path, version: &str) {
    let repo = TestRepo::with_commit(RUNNER);
    let clone = repo.outside().join("clone");
    repo.git(&["clone", "-q", "--branch", "runner/kept", bundle.to_str().unwrap(), clone.to_str().unwrap()]);
    assert_completes(&repo.at(clone), version);
}

fn assert_completes(repo: &TestRepo, version: &str) {
    let expect = |args: &[&str], codes: &[i32]| {
        let output = repo.runner(args);
        let is_expected = output.code.is_some_and(|code| codes.contains(&code));
        assert!(is_expected, "{version}: {args:?}: {}{}", output.stdout, output.stderr);
        output
    };
    expect(&["verify"], verdicts(version));
    expect(&["loop"], &[0]);
    expect(&["verify", "--rerun"], verdicts(version));
    let status = expect(&["status", "--json"], &[0]).stdout;
    assert!(status.contains("\"complete\""), "{version}: {status}");
}

/// Recovers a run that a release left in the middle of a commit, reads its logs, and finishes it.
fn recover(archive: &Path, version: &str) {
    let repo = TestRepo::empty(RUNNER);
    run(repo.command("tar").arg("-xzf").arg(archive).args(["-C", ".."])).ok();
    for args in [&["log"][..], &["log", "3"], &["show", "3"], &["log", "2", "--errors"], &["status"]] {
        repo.runner(args).ok();
    }
    let recovered = repo.runner(&["loop", "--max-iterations", "1"]);
    assert!(repo.subjects("runner/kept").len() >= 7, "{version}: {}{}", recovered.stdout, recovered.stderr);
    assert!(!repo.path(".git/runner/journal.json").exists(), "{version}: the journal is finished");
    assert_completes(&repo, version);
}

/// Reports results of a release, and compares them with themselves under another name.
fn report(archive: &Path, version: &str) {
    let repo = TestRepo::with_commit(RUNNER);
    run(repo.command("mkdir").arg("eval")).ok();
    run(repo.command("tar").arg("-xzf").arg(archive).args(["-C", "eval"])).ok();
    let report = repo.runner(&["eval", "report", "--json"]).ok().stdout;
    assert!(report.contains("\"writes\""), "{version}: {report}");
    let results = repo.runner(&["eval", "results", "--json"]).ok().stdout;
    assert!(results.contains("\"success\""), "{version}: {results}");
    let other = repo.outside().join("other");
    run(repo.command("cp").args(["-a", "eval/results"]).arg(&other)).ok();
    let compared = repo.runner(&["eval", "compare", "kept", other.to_str().unwrap()]);
    assert!(matches!(compared.code, Some(0 | 2)), "{version}: {}{}", compared.stdout, compared.stderr);
}

/// The recordings with this ending, with their versions.
fn recordings(folder: &Path, ending: &str) -> Vec<(PathBuf, String)> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let versions = names.filter_map(|name| Some(name.strip_suffix(ending)?.trim_end_matches('.').to_owned()));
    versions.map(|version| (folder.join(format!("{version}.{ending}")), version)).collect()
}

fn assert_compatible(folder: &Path) {
    for (ending, check) in
        [("bundle", finish as fn(&Path, &str)), ("crashed.tar.gz", recover), ("results.tar.gz", report)]
    {
        let recordings = recordings(folder, ending);
        assert!(!recordings.is_empty(), "no {ending}: run 'just record-release'");
        recordings.iter().for_each(|(path, version)| check(path, version));
    }
}

#[test]
fn what_every_release_wrote_is_read_and_continued() {
    assert_compatible(&folder());
}

#[test]
fn this_release_can_be_recorded() {
    let repo = TestRepo::with_commit(RUNNER);
    let recorded = repo.outside().join("recorded");
    fs::create_dir(&recorded).unwrap();
    record(&recorded.join(env!("CARGO_PKG_VERSION")));
    assert_compatible(&recorded);
    if std::env::var_os("RECORD_RELEASE").is_some() {
        for entry in fs::read_dir(recorded).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder().join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn a_run_of_other_rules_is_refused_with_the_version_to_use() {
    let repo = recorded_run();
    let state = repo.read(".runner/state/run_state.json");
    let other = state.replace("\"semantics\": 1", "\"semantics\": 2, \"unheard_of\": true");
    assert_ne!(other, state);
    repo.write(".runner/state/run_state.json", &other);
    repo.commit_all("by a later version");
    for args in [&["loop"][..], &["step"], &["start"]] {
        let output = repo.runner(&[args, &["--json"]].concat());
        let text = format!("{}{}", output.stdout, output.stderr);
        assert_eq!(output.code, Some(2), "{args:?}: {text}");
        assert!(
            text.contains("\"other_semantics\"") && text.contains("version 2 of the rules"),
            "{args:?}: {text}"
        );
        assert!(!text.contains("restore it"), "{args:?}: {text}");
    }
    assert_eq!(repo.read(".runner/state/run_state.json"), other, "nothing is changed");
}

#[test]
fn the_versions_of_the_rules_are_documented() {
    let page = fs::read_to_string(folder().join("../../../../docs/compatibility.md")).unwrap();
    let row = format!("| {} |", runner_core::model::run_state::SEMANTICS);
    assert!(page.contains(&row), "docs/compatibility.md has no row for the current rules");
}
