//! `runner plan`: import and export.

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
pub(crate) fn state(sandbox: &TestRepo) -> (Vec<String>, String, String) {
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
    let refused = sandbox.runner(&["plan", "import", "PLAN.md", "--under", "schema"]).refused(2);
    assert!(refused.contains("schema` has passed"), "{refused}");
    // A complete plan whose root has parts takes further ones.
    sandbox.runner(&["plan", "import", "PLAN.md"]).ok();
    assert_eq!(sandbox.runner(&["status"]).ok().value("state"), Some("stopped"));
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
fn import_names_the_run_that_is_not_checked_out() {
    let sandbox = RunBuilder::new(RUNNER).start();
    std::fs::write(sandbox.outside().join("p.md"), "- [ ] a\n").unwrap();
    sandbox.git(&["switch", "-q", "main"]);
    let refused = sandbox.runner(&["plan", "import", "../p.md"]).refused(2);
    assert!(refused.contains("the current branch is `main`"), "{refused}");
    assert!(refused.contains("to continue run `demo`: runner switch demo"), "{refused}");
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
