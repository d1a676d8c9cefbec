//! `runner conformance` with the scripted agent, real agents and a missing one.
#![expect(clippy::indexing_slicing, reason = "here a fault is a failed test")]

use serde_json::Value;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;
use crate::agents::real::{BOTH, model_of, ran, setup, started};

/// A conforming agent's behaviour in the three tasks.
const GOOD: &str = r#"
[[part]]
when = ["Write one file"]
[[part.step]]
do.shell = "echo hello > hello.txt"
[[part.step]]
do.final = { status = "done", summary = "wrote it" }

[[part]]
when = ["Split this goal"]
[[part.step]]
do.shell = '''
python3 - <<'PLAN'
import json
path = ".runner/state/tree.json"
tree = json.load(open(path))
def child(name, order):
    return {"id": name, "order": order, "title": name, "goal": name, "acceptance": [], "passes": False, "attempts": 0,
            "max_attempts": 3, "children": []}
tree["root"]["children"] = [child("first", 1), child("second", 2)]
json.dump(tree, open(path, "w"))
PLAN
'''
[[part.step]]
do.final = { status = "decomposed", summary = "two" }

[[part]]
when = ["Wait for a command"]
[[part.step]]
do.shell = "sleep 600"
"#;

fn rows(ran: &RunOutput) -> Vec<(String, String)> {
    let output: Value = serde_json::from_str(&ran.stdout).unwrap();
    let of = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    output["checks"].as_array().unwrap().iter().map(|row| (of(row, "session"), of(row, "verdict"))).collect()
}

#[test]
fn scripted_agent_conforms_as_script_and_as_command() {
    let sandbox = TestRepo::empty(RUNNER);
    let output = sandbox.runner(&["conformance", "--json", "--agent", "command"]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    let rows = rows(&output);
    assert!(rows.len() == 28 && rows.iter().all(|(_, verdict)| verdict == "ok"), "{rows:?}");
    let plain = sandbox.runner(&["conformance"]).ok();
    assert!(
        plain.stdout.starts_with("session=honest expected=passed actual=passed verdict=ok\n"),
        "{}",
        plain.stdout
    );
    assert!(plain.stdout.ends_with("agent=script checks=28 problems=0\n"), "{}", plain.stdout);
}

#[test]
fn real_agent_runs_only_with_yes() {
    let sandbox = TestRepo::empty(RUNNER);
    let refused = sandbox.runner(&["conformance", "--agent", "codex"]).refused(2);
    for words in ["use your login and cost", "confirm with --yes", "--agent script"] {
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn real_agents_conform() {
    for kind in BOTH {
        let model = model_of(GOOD);
        let sandbox = started(&setup(kind, &model.url()));
        let output = ran(&sandbox, &["conformance", "--json", "--yes", "--timeout-secs", "8"]);
        assert_eq!(output.code, Some(0), "{kind}: {}{}", output.stdout, output.stderr);
        let rows = rows(&output);
        let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["program", "work", "usage", "split", "stop", "end"], "{kind}");
        assert!(rows.iter().all(|(_, verdict)| verdict == "ok"), "{kind}: {}", output.stdout);
    }
}

#[test]
fn nonconforming_agent_is_reported_and_its_repositories_kept() {
    // It answers `done` to every task.
    let agent = r#"printf '{"status": "done", "summary": "sure"}' > "$RUNNER_OUTPUT""#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let mut command = sandbox.runner_command(&["conformance", "--json", "--yes"]);
    let output = run(command.env("TMPDIR", sandbox.outside()));
    assert_eq!(output.code, Some(1), "{}{}", output.stdout, output.stderr);
    let bad: Vec<String> =
        rows(&output).into_iter().filter(|(_, verdict)| verdict == "problem").map(|(name, _)| name).collect();
    assert_eq!(bad, ["work", "split", "stop"]);
    let output: Value = serde_json::from_str(&output.stdout).unwrap();
    assert!(std::path::Path::new(output["kept"].as_str().unwrap()).join("work/.git").is_dir());
    assert!(output["checks"].to_string().contains("budgets of tokens or money cannot be enforced"));
}

#[test]
fn missing_agent_is_reported_with_its_install_command() {
    let sandbox = RunBuilder::new(RUNNER).missing_agent().start();
    let output = run(sandbox.runner_command(&["conformance", "--yes"]).env("TMPDIR", sandbox.outside()));
    assert_eq!(output.code, Some(1), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains(
        "session=program expected=found actual=\"`no-such-agent` is not on PATH\" verdict=problem"
    ));
}
