//! `runner plan`: lint, edit, import and export.

use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::assert_proved;
use crate::commands::log_show_diff::on_wide_terminal;
use crate::ready;
use crate::started;

const LIST: &str = "# Plan

- [x] Think
- [ ] Store it
  One table.

  Acceptance:
  - it is read back
  - [ ] Schema
  - [ ] Reader
- [ ] Show it
";

fn subject_and_trailers(sandbox: &TestRepo) -> String {
    sandbox.git(&["log", "-1", "--format=%B"])
}

/// Everything an import could change.
fn state(sandbox: &TestRepo) -> (Vec<String>, String, String) {
    let status = sandbox.git(&["status", "--porcelain", "-uall"]);
    (sandbox.branches(), status, sandbox.read(".runner/state/tree.json"))
}

#[test]
fn imported_plan_is_one_commit_that_verifies_and_runs() {
    let sandbox = RunBuilder::new(RUNNER).file("PLAN.md", LIST).start();
    let before = state(&sandbox);
    let dry = sandbox.runner(&["plan", "import", "PLAN.md", "--dry-run"]).ok().stdout;
    assert!(dry.ends_with("format=markdown under=root nodes=4 skipped=1 dry_run=true\n"), "{dry}");
    assert!(dry.contains("skipped=Think line=3 status=done\n"), "{dry}");
    assert_eq!(state(&sandbox), before, "a dry run writes nothing");

    let output = sandbox.runner(&["plan", "import", "PLAN.md"]).ok().stdout;
    let tip = sandbox.git(&["rev-parse", "HEAD"]);
    assert!(output.contains(&format!("nodes=4 skipped=1 dry_run=false commit={tip}\n")), "{output}");
    assert_eq!(
        subject_and_trailers(&sandbox),
        "chore(loop): start run demo\n\nRunner-Plan-Import: markdown 4"
    );
    assert_eq!(sandbox.git(&["status", "--porcelain", "-uall"]), "");
    assert_eq!(sandbox.git(&["diff", "--name-only", "HEAD~1"]), ".runner/state/tree.json");
    let tree = sandbox.tree();
    let store = &tree["root"]["children"][0];
    assert_eq!((&store["title"], &store["goal"]), (&"Store it".into(), &"One table.".into()));
    assert_eq!(store["acceptance"][0], "it is read back");
    assert_eq!(store["children"][1]["id"], "reader");
    assert_proved(&sandbox);

    sandbox.runner(&["step"]).ok();
    assert!(sandbox.runner(&["log"]).ok().stdout.contains("outcome=passed node=schema"));
    let again =
        sandbox.runner(&["plan", "import", "PLAN.md", "--under", "root/show-it", "--include-done"]).ok();
    assert!(again.stdout.contains("added=think\nadded=store-it-2\nadded=schema-2\n"), "{}", again.stdout);
    assert!(again.stdout.contains("nodes=5 skipped=0"), "{}", again.stdout);
    sandbox.runner(&["loop"]).ok();
    assert_proved(&sandbox);
    let refused = sandbox.runner(&["plan", "import", "PLAN.md"]).refused(2);
    assert!(refused.contains("`root` has passed"), "{refused}");
}

#[test]
fn import_orders_by_dependencies_and_reports_the_format() {
    let sandbox = started();
    let tasks = r#"{"tasks": [
        {"id": 1, "title": "Last", "dependencies": [2]},
        {"id": 2, "title": "First", "subtasks": [{"id": 1, "title": "B", "dependencies": [2]}, {"id": 2, "title": "A"}]}
    ]}"#;
    std::fs::write(sandbox.outside().join("tasks.json"), tasks).unwrap();
    let output = sandbox.runner(&["plan", "import", "../tasks.json", "--json"]).ok().stdout;
    let output: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(output["format"], "task-master");
    assert_eq!(output["added"], serde_json::json!(["task-2", "task-2.2", "task-2.1", "task-1"]));
    let stories = r#"[{"title": "Second", "priority": 2}, {"title": "First", "priority": 1}]"#;
    let mut piped = sandbox.command("sh");
    piped.args(["-c", &format!("printf '%s' '{stories}' | {RUNNER} plan import - --under task-1")]);
    let output = run(&mut piped).ok().stdout;
    assert!(output.starts_with("added=first\nadded=second\nformat=prd under=task-1 nodes=2"), "{output}");
    assert_proved(&sandbox);
}

#[test]
fn invalid_plan_is_reported_and_nothing_is_written() {
    let sandbox = started();
    let before = state(&sandbox);
    let refused = |name: &str, text: &str, words: &[&str], args: &[&str]| {
        let path = sandbox.outside().join(name);
        std::fs::write(&path, text).unwrap();
        let output = sandbox.runner(&[&["plan", "import", path.to_str().unwrap()], args].concat()).refused(2);
        assert!(words.iter().all(|word| output.contains(word)), "{output}");
        assert!(output.contains("hint: "), "{output}");
        assert_eq!(state(&sandbox), before, "{output}");
    };
    refused("a.md", "no list\n", &["a.md:1: the file has no items"], &[]);
    refused("b.md", "- [ ] a\n\n```\n", &["b.md:3: the code block that starts here has no end"], &[]);
    refused("c.json", "{\"tasks\": [\n{\"id\": 1, \"title\": 2}]}", &["c.json:2: the task is invalid"], &[]);
    let round = "{\"tasks\": [\n{\"id\": 1, \"title\": \"a\", \"dependencies\": [2]}, {\"id\": 2, \"title\": \"b\", \"dependencies\": [1]}]}";
    refused("d.json", round, &["d.json:2: dependency cycle: `1` → `2` → `1`"], &[]);
    refused("e.json", "{\n,}", &["e.json:2: the file is not JSON"], &[]);
    refused("f.md", "- [x] a\n", &["nothing to import", "--include-done"], &[]);
    refused("f.md", "- [x] a\n", &["nothing to import"], &["--dry-run"]);
    refused("g.md", "- [ ] a\n", &["there is no task `nope`"], &["--under", "nope"]);
    assert!(
        sandbox.runner(&["plan", "import", "nowhere.md"]).refused(2).contains("cannot read `nowhere.md`")
    );
}

#[test]
fn import_is_refused_with_other_uncommitted_changes() {
    let sandbox = ready();
    std::fs::write(sandbox.outside().join("p.md"), "- [ ] a\n").unwrap();
    let refused = sandbox.runner(&["plan", "import", "../p.md"]).refused(2);
    assert!(refused.contains("(run 'runner start')"), "{refused}");
    sandbox.runner(&["start"]).ok();
    let config = sandbox.read(".runner/state/config.toml");
    sandbox.write(".runner/state/config.toml", config.replace("= 200", "= 77"));
    let refused = sandbox.runner(&["plan", "import", "../p.md"]).refused(2);
    assert!(refused.contains("commit the changes with 'runner start'"), "{refused}");
    sandbox.runner(&["start"]).ok();
    sandbox.write("mine", "1");
    assert!(sandbox.runner(&["plan", "import", "../p.md"]).refused(2).contains("uncommitted changes"));
    sandbox.commit_all("mine");
    sandbox.runner(&["plan", "import", "../p.md"]).ok();
    let message = subject_and_trailers(&sandbox);
    assert!(message.ends_with("Runner-User-Commits: 1\nRunner-Plan-Import: markdown 1"), "{message}");
    assert_proved(&sandbox);
    sandbox.git(&["checkout", "-q", "-b", "elsewhere"]);
    assert!(sandbox.runner(&["plan", "import", "../p.md"]).refused(2).contains("is on branch"));
}

#[test]
fn forged_import_is_detected() {
    let sandbox = started();
    std::fs::write(sandbox.outside().join("p.md"), "- [ ] a\n- [ ] b\n").unwrap();
    sandbox.runner(&["plan", "import", "../p.md"]).ok();
    let message = subject_and_trailers(&sandbox);
    for (from, to) in [("markdown 2", "markdown 3"), ("markdown 2", "paper 2"), ("markdown 2", "markdown")] {
        sandbox.git(&["commit", "-q", "--amend", "-m", &message.replace(from, to)]);
        let output = sandbox.runner(&["verify"]);
        assert_eq!(output.code, Some(1), "{to}");
        assert!(output.stdout.contains("violation=edit_scope"), "{to}: {}", output.stdout);
    }
}

#[test]
fn next_command_finishes_an_import_after_a_crash() {
    for point in ["start.commit", "publish.journal", "publish.branch", "publish.documents", "publish.index"] {
        let sandbox = started();
        std::fs::write(sandbox.outside().join("p.md"), "- [ ] a\n").unwrap();
        let import = ["plan", "import", "../p.md"];
        let ran = run(sandbox.runner_command(&import).env("RUNNER_TEST_CRASH_AT", point));
        assert_eq!(ran.code, None, "{point} was not reached");
        sandbox.runner(&["start"]).ok();
        let is_there = sandbox.read(".runner/state/tree.json").contains("\"id\": \"a\"");
        assert_eq!(is_there, point != "start.commit", "{point}");
        assert_eq!(sandbox.git(&["status", "--porcelain", "-uall"]), "", "{point}");
        assert_proved(&sandbox);
    }
}

#[test]
fn import_shows_the_tree_on_a_terminal() {
    let sandbox = started();
    sandbox.write("PLAN.md", format!("{LIST}\n## Notes\n\nNothing.\n"));
    sandbox.commit_all("a plan");
    insta::assert_snapshot!(
        "plan_dry_run_90",
        on_wide_terminal(&sandbox, "plan import PLAN.md --dry-run", 0)
    );
    insta::assert_snapshot!("plan_import_90", on_wide_terminal(&sandbox, "plan import PLAN.md", 0));
    insta::assert_snapshot!(
        "plan_refused_90",
        on_wide_terminal(&sandbox, "plan import PLAN.md --tag x --format prd", 2)
    );
}

#[test]
fn exported_plan_imports_as_the_same_plan() {
    let sandbox = started();
    std::fs::write(sandbox.outside().join("p.md"), LIST).unwrap();
    sandbox.runner(&["plan", "import", "../p.md"]).ok();
    let text = sandbox.runner(&["plan", "export"]).ok().stdout;
    assert!(text.starts_with("# Port it\n") && text.contains("\n- [ ] Store it\n"), "{text}");
    let file = sandbox.outside().join("out.md");
    let name = file.to_str().unwrap();
    sandbox.runner(&["plan", "export", "--out", name]).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    assert!(sandbox.runner(&["plan", "export", "--out", name]).refused(2).contains("--force"));
    sandbox.runner(&["plan", "export", "-o", name, "--force"]).ok();

    let other = started();
    other.runner(&["plan", "import", name]).ok();
    assert_eq!(other.runner(&["plan", "export"]).ok().stdout, text);
    let json = other.runner(&["plan", "export", "--json"]).ok().stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["text"], &json["nodes"]), (&text.into(), &5.into()));
}

/// A run with one task for each kind of check.
fn checked() -> TestRepo {
    let sandbox = RunBuilder::new(RUNNER).agent("echo 1 > out.txt; answer done").start();
    sandbox.runner(&["node", "split", "root", "--into", "a", "--into", "b", "--into", "c"]).ok();
    for node in ["a", "b", "c"] {
        sandbox
            .runner(&["node", "edit", node, "--acceptance", "it is", "--acceptance", "it looks good"])
            .ok();
    }
    let check = |node: &str, command: &str| {
        let args = ["node", "check", "add", node, "--name", "made", "--covers", "1", "--command", command];
        sandbox.runner(&args).ok();
    };
    check("a", "sh -c 'test -e out.txt'");
    check("b", "grep -q 1 out.txt");
    check("c", "test -d src");
    sandbox
}

#[test]
fn lint_runs_the_checks_and_lists_prose_and_changes_nothing() {
    let sandbox = checked();
    let before = state(&sandbox);
    let sound = sandbox.runner(&["plan", "lint"]).ok().stdout;
    assert!(sound.contains("prose=\"it looks good\" task=root/a point=2\n"), "{sound}");
    assert!(sound.contains("tasks=3 checks=3 problems=0 acceptance=\"0 of 6 points proven"), "{sound}");
    assert_eq!(state(&sandbox), before);
    let stubs = sandbox.runner(&["plan", "lint", "--mutants"]);
    assert_eq!(stubs.code, Some(2));
    assert!(stubs.stdout.contains("problem=stub task=root/a check=made"), "{}", stubs.stdout);
    assert!(
        !stubs.stdout.contains("task=root/b check"),
        "a check that reads the file is stronger: {}",
        stubs.stdout
    );
    assert_eq!(state(&sandbox), before, "stubs are never in the work tree");
    assert!(!sandbox.path("out.txt").exists());
}

#[test]
fn lint_reports_every_problem_at_once() {
    let sandbox = checked();
    sandbox.runner(&["node", "add", "root", "--title", "Empty"]).ok();
    let check = |name: &str, command: &str| {
        sandbox.runner(&["node", "check", "add", "c", "--name", name, "--command", command]).ok();
    };
    check("vacuous", "true");
    check("missing", "no-such-program");
    let found = sandbox.runner(&["plan", "lint"]);
    assert_eq!(found.code, Some(2), "{}", found.stdout);
    for problem in [
        "problem=empty task=root/empty",
        "problem=green task=root/c check=vacuous",
        "problem=broken task=root/c check=missing",
    ] {
        assert!(found.stdout.contains(problem), "{problem}: {}", found.stdout);
    }
    let json: serde_json::Value =
        serde_json::from_str(&sandbox.runner(&["plan", "lint", "--json"]).stdout).unwrap();
    assert_eq!((&json["schema"], &json["exit"]), (&"runner.plan_lint/1".into(), &2.into()));
}

#[test]
fn lint_estimates_from_tasks_that_passed_here() {
    let agent = "echo '{\"usage\": {\"cost_microdollars\": 1000000}}' > \"$RUNNER_REPORT\"; echo \"$RUNNER_NODE_ID\" > out; answer done";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let parts = ["a", "b", "c", "d", "e", "f", "g"].map(|part| ["--into", part]).concat();
    sandbox.runner(&[&["node", "split", "root"][..], &parts].concat()).ok();
    sandbox.runner(&["loop", "--max-iterations", "5"]);
    let json: serde_json::Value =
        serde_json::from_str(&sandbox.runner(&["plan", "lint", "--json"]).stdout).unwrap();
    assert_eq!(
        (&json["estimate"]["samples"], &json["estimate"]["tasks"]),
        (&5.into(), &2.into()),
        "{json:#}"
    );
    assert_eq!(json["estimate"]["microdollars"]["p50"], 2_000_000, "{json:#}");
}

/// Runs `plan edit` with this sed script as the editor.
fn edit(sandbox: &TestRepo, sed: &str) -> testkit::test_repo::RunOutput {
    run(sandbox.runner_command(&["plan", "edit"]).env_remove("VISUAL").env("EDITOR", format!("sed -i {sed}")))
}

#[test]
fn an_edit_of_the_plan_is_one_commit_and_none_without_a_change() {
    let sandbox = checked();
    let before = state(&sandbox);
    let same = edit(&sandbox, "-e ''").ok().stdout;
    assert_eq!(same, "changes=0\n");
    assert_eq!(state(&sandbox), before);
    let changed = edit(&sandbox, "-e 's/] a {#a}/] Better {#a}/' -e '$a - [ ] New one'").ok().stdout;
    assert!(changed.starts_with("change=\"edited root/a\"\n"), "{changed}");
    assert!(changed.contains("change=\"added root/new-one\"\nchanges=2 commit="), "{changed}");
    assert_eq!(sandbox.git(&["diff", "--name-only", "HEAD~1"]), ".runner/state/tree.json");
    assert_eq!(sandbox.tree()["root"]["children"][0]["title"], "Better");
    sandbox.runner(&["loop"]).ok();
    assert_proved(&sandbox);
}

#[test]
fn a_refused_edit_names_every_line_and_keeps_the_text() {
    let sandbox = checked();
    sandbox.runner(&["step"]).ok();
    let before = state(&sandbox);
    let refused = edit(&sandbox, "-e 's/] a {#a}/] A {#a}/' -e '$a - [ ] Twice {#b}'").refused(2);
    assert!(refused.contains("the id `b` is used twice"), "{refused}");
    let kept = refused.split("--file ").nth(1).and_then(|rest| rest.split('\'').next()).unwrap().to_owned();
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(text.contains("- [ ] Twice {#b}"), "{text}");
    std::fs::write(&kept, text.replace("- [ ] Twice {#b}\n", "")).unwrap();
    let refused = sandbox.runner(&["plan", "edit", "--file", &kept]).refused(2);
    assert!(refused.contains("has passed and cannot be changed"), "{refused}");
    assert_eq!(state(&sandbox), before);
    std::fs::write(&kept, text.replace("- [ ] Twice {#b}\n", "").replace("] A {#a}", "] a {#a}")).unwrap();
    assert_eq!(sandbox.runner(&["plan", "edit", "--file", &kept]).ok().stdout, "changes=0\n");
    let failing = run(sandbox.runner_command(&["plan", "edit"]).env("VISUAL", "false")).refused(2);
    assert!(failing.contains("`false` ended with"), "{failing}");
    std::fs::remove_file(&kept).unwrap();
}

#[test]
fn plans_of_other_tools_are_imported_and_exported() {
    for (name, text, added) in [
        (
            "tasks.md",
            "# T\n\n## Phase 1\n\n- [ ] T001 [P] One\n- [ ] T002 Two\n",
            "format=spec-kit under=root nodes=3",
        ),
        ("openspec/changes/x/tasks.md", "## 1. Do\n- [ ] 1.1 One\n", "format=open-spec under=root nodes=2"),
        (".kiro/specs/x/tasks.md", "- [ ] 1. One\n  - [ ] 1.1 Two\n", "format=kiro under=root nodes=2"),
        (
            "issues.json",
            "[{\"number\": 1, \"title\": \"One\", \"body\": \"- [ ] it is\", \"labels\": [], \"state\": \"OPEN\"}]",
            "format=github under=root nodes=1",
        ),
        ("issues.jsonl", "{\"id\": \"bd-1\", \"title\": \"One\"}\n", "format=beads under=root nodes=1"),
    ] {
        let sandbox = RunBuilder::new(RUNNER).file(name, text).start();
        let imported = sandbox.runner(&["plan", "import", name]).ok().stdout;
        assert!(imported.contains(added), "{name}: {imported}");
        let exported = sandbox.runner(&["plan", "export"]).ok().stdout;
        let again = RunBuilder::new(RUNNER).start();
        std::fs::write(again.outside().join("PLAN.md"), &exported).unwrap();
        again.runner(&["plan", "import", "../PLAN.md", "--format", "markdown"]).ok();
        assert_eq!(again.runner(&["plan", "export"]).ok().stdout, exported, "{name}: the round trip");
        assert_proved(&sandbox);
    }
}
