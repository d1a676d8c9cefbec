//! `runner plan lint` and `runner plan edit`.

use testkit::run_builder::RunBuilder;
use testkit::test_repo::{RunOutput, TestRepo, run};

use super::plan::state;
use crate::RUNNER;
use crate::assert_proved;
use crate::fixtures::on_terminal;

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
    assert!(stubs.stdout.contains("untried=made task=root/c\n"), "a folder has no stub: {}", stubs.stdout);
    assert!(!stubs.stdout.contains("untried=made task=root/b"), "{}", stubs.stdout);
    assert_eq!(state(&sandbox), before, "stubs are never in the work tree");
    assert!(!sandbox.path("out.txt").exists());
}

/// What a check imports is stubbed like what it names.
#[test]
fn lint_tries_checks_on_stubs_of_the_modules_that_they_import() {
    let sandbox = RunBuilder::new(RUNNER).file("present.py", "").start();
    let parts = ["python", "strict", "script", "target", "present"];
    let into = parts.map(|part| ["--into", part]).concat();
    sandbox.runner(&[&["node", "split", "root"][..], &into].concat()).ok();
    let check = |node: &str, command: &str, file: Option<(&str, &str)>| {
        let files = file.map_or(String::new(), |(path, text)| {
            sandbox.write(&format!(".runner/nodes/{node}/file"), text);
            format!("files = {{ \"{path}\" = \"file\" }}\n")
        });
        sandbox.write(
            &format!(".runner/nodes/{node}/checks.toml"),
            format!("[[check]]\nname = \"c\"\ncommand = {command}\n{files}"),
        );
    };
    let test = "import json\nimport app.core\nfrom tool import run\nrun(app.core.parse(json.dumps(1)))\n";
    check("python", r#"["python3", "t/p.py"]"#, Some(("t/p.py", test)));
    check("strict", r#"["python3", "-c", "import app; assert app.answer() == 42"]"#, None);
    let script = "import { parse } from '../lib/parse.mjs';\nparse('1');\n";
    check("script", r#"["node", "t/s.mjs"]"#, Some(("t/s.mjs", script)));
    check("target", r#"["cargo", "test", "--test", "nested"]"#, None);
    check("present", r#"["python3", "-c", "import present; present.main()"]"#, None);
    sandbox.runner(&["start"]).ok();
    let found = sandbox.runner(&["plan", "lint", "--mutants"]);
    assert_eq!(found.code, Some(2), "{}{}", found.stdout, found.stderr);
    for line in [
        "problem=stub task=root/python check=c text=\"succeeds on stubs: code that does nothing at app/core.py, src/app/core.py, t/app/core.py, tool.py, src/tool.py, t/tool.py\"",
        "problem=stub task=root/script check=c text=\"succeeds on stubs: code that does nothing at lib/parse.mjs\"",
        "untried=c task=root/present",
    ] {
        assert!(found.stdout.lines().any(|found| found == line), "{line}: {}", found.stdout);
    }
    assert!(!found.stdout.contains("root/strict"), "it fails on stubs, as it should: {}", found.stdout);
    assert!(!found.stdout.contains("untried=c task=root/target"), "{}", found.stdout);
    let shown = on_terminal(&sandbox, 90, "plan lint --mutants").stdout;
    assert!(shown.contains("not tried on stubs: root/present: check `c`"), "{shown}");
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
fn lint_says_why_a_check_is_broken_and_where_destinations_collide() {
    let sandbox = RunBuilder::new(RUNNER).start();
    sandbox.runner(&["node", "split", "root", "--into", "a", "--into", "b"]).ok();
    let toml = |name: &str, rest: &str| format!("[[check]]\nname = \"{name}\"\n{rest}");
    sandbox.write(".runner/nodes/a/t.sh", "exit 1\n");
    sandbox.write(".runner/nodes/b/t.sh", "exit 1\n");
    let files = "command = [\"sh\", \"t/t.sh\"]\nfiles = { \"t/t.sh\" = \"t.sh\" }\n";
    sandbox.write(
        ".runner/nodes/a/checks.toml",
        toml("slow", "command = [\"sleep\", \"60\"]\ntimeout_secs = 1\n") + &toml("shared", files),
    );
    sandbox.write(".runner/nodes/b/checks.toml", toml("shared", files));
    // A parent's checks run when its parts passed; they must fail now as well.
    sandbox.write(".runner/nodes/root/checks.toml", toml("whole", "command = [\"true\"]\n"));
    sandbox.runner(&["start"]).ok();
    let found = sandbox.runner(&["plan", "lint"]);
    assert_eq!(found.code, Some(2), "{}{}", found.stdout, found.stderr);
    for problem in [
        "problem=broken task=root/a check=slow text=\"did not end within 1 seconds (timeout_secs)\"",
        "problem=shared_destination task=root/b text=\"puts a check file at `t/t.sh`, where root/a has one\"",
        "problem=green task=root check=whole",
    ] {
        assert!(found.stdout.contains(problem), "{problem}: {}", found.stdout);
    }
    assert_eq!(sandbox.runner(&["plan", "lint"]).stdout, found.stdout, "the same every time");
}

#[test]
fn lint_reports_sizes_beyond_the_limits() {
    let sandbox = RunBuilder::new(RUNNER).config_tables("[limits]\nmax_children = 2\n").start();
    sandbox.runner(&["node", "split", "root", "--into", "a", "--into", "b", "--into", "c"]).ok();
    let criteria: Vec<String> = (1..=13).map(|n| format!("point {n}")).collect();
    let edit = criteria.iter().flat_map(|text| ["--acceptance", text]);
    sandbox.runner(&["node", "edit", "a"].into_iter().chain(edit).collect::<Vec<_>>()).ok();
    let found = sandbox.runner(&["plan", "lint"]);
    assert_eq!(found.code, Some(2));
    for problem in [
        "problem=too_large task=root/a text=\"has 13 acceptance criteria",
        "problem=too_large task=root text=\"has 3 subtasks, but `max_children` is 2\"",
        "problem=empty task=root/b",
    ] {
        assert!(found.stdout.contains(problem), "{problem}: {}", found.stdout);
    }
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
fn edit(sandbox: &TestRepo, sed: &str) -> RunOutput {
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
    sandbox.runner(&["step"]).ok();
    assert_proved(&sandbox);
}

#[test]
fn an_edit_keeps_ids_attempts_and_checks() {
    let sandbox = RunBuilder::new(RUNNER).agent("answer retry").start();
    sandbox.runner(&["node", "split", "root", "--into", "a", "--into", "b"]).ok();
    sandbox.runner(&["node", "edit", "a", "--acceptance", "one", "--acceptance", "two"]).ok();
    sandbox.runner(&["node", "check", "add", "a", "--name", "x", "--covers", "2", "--command", "false"]).ok();
    sandbox.runner(&["node", "allow", "a", "4"]).ok();
    sandbox.runner(&["step"]).ok();
    let checks = sandbox.read(".runner/nodes/a/checks.toml");
    // `a` gets another title and goes behind `b`, whose text stays.
    let script = "-e '/] a {#a}/,/] b {#b}/{/] b {#b}/!d}' -e '$a - [ ] Later {#a}\\n\\n  Acceptance:\\n\\n  - one\\n  - two'";
    let changed = edit(&sandbox, script).ok().stdout;
    assert!(changed.contains("change=\"edited root/a\""), "{changed}");
    let tree = sandbox.tree();
    let moved = &tree["root"]["children"][1];
    assert_eq!((&moved["id"], &moved["title"]), (&"a".into(), &"Later".into()), "{tree:#}");
    assert_eq!((&moved["attempts"], &moved["max_attempts"]), (&1.into(), &7.into()));
    assert_eq!(sandbox.read(".runner/nodes/a/checks.toml"), checks);
    // A check must not lose the criterion that it decides.
    let refused = edit(&sandbox, "-e '/- two/d'").refused(2);
    assert!(refused.contains("checks.toml") && refused.contains("plan edit --file "), "{refused}");
    let kept = refused.split("--file ").nth(1).and_then(|rest| rest.split('\'').next()).unwrap().to_owned();
    assert!(!std::fs::read_to_string(&kept).unwrap().contains("- two"));
    std::fs::remove_file(&kept).unwrap();
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
