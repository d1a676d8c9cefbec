//! `runner conformance`: what it tells of the scripted agent, of real ones and of none.
#![expect(clippy::indexing_slicing, reason = "here a fault is a failed test")]

use serde_json::Value;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;
use crate::agents::real::{BOTH, model_of, ran, setup, started};

/// What a good agent does with the three tasks.
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
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    let of = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    told["rows"].as_array().unwrap().iter().map(|row| (of(row, "session"), of(row, "verdict"))).collect()
}

#[test]
fn the_scripted_agent_conforms_however_it_is_started() {
    let sandbox = TestRepo::empty(RUNNER);
    let told = sandbox.runner(&["conformance", "--json", "--agent", "command"]);
    assert_eq!(told.code, Some(0), "{}{}", told.stdout, told.stderr);
    let rows = rows(&told);
    assert!(rows.len() == 19 && rows.iter().all(|(_, verdict)| verdict == "ok"), "{rows:?}");
    let plain = sandbox.runner(&["conformance"]).ok();
    assert!(
        plain.stdout.starts_with("session=honest expected=passed found=passed verdict=ok\n"),
        "{}",
        plain.stdout
    );
    assert!(plain.stdout.ends_with("agent=script rows=19 bad=0\n"), "{}", plain.stdout);
}

#[test]
fn a_real_agent_is_asked_for_nothing_without_leave() {
    let sandbox = TestRepo::empty(RUNNER);
    let refused = sandbox.runner(&["conformance", "--agent", "codex"]).refused(2);
    for words in ["use your login and cost", "the same with --yes", "--agent script"] {
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn the_real_agents_conform() {
    for kind in BOTH {
        let model = model_of(GOOD);
        let sandbox = started(&setup(kind, &model.url()));
        let told = ran(&sandbox, &["conformance", "--json", "--yes", "--limit", "8"]);
        assert_eq!(told.code, Some(0), "{kind}: {}{}", told.stdout, told.stderr);
        let rows = rows(&told);
        let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["program", "work", "usage", "split", "stop", "end"], "{kind}");
        assert!(rows.iter().all(|(_, verdict)| verdict == "ok"), "{kind}: {}", told.stdout);
    }
}

#[test]
fn an_agent_that_does_not_conform_is_found_out_and_its_work_is_kept_to_look_at() {
    // It says done whatever it is asked for.
    let agent = r#"printf '{"status": "done", "summary": "sure"}' > "$RUNNER_OUTPUT""#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let mut command = sandbox.runner_command(&["conformance", "--json", "--yes"]);
    let told = run(command.env("TMPDIR", sandbox.outside()));
    assert_eq!(told.code, Some(1), "{}{}", told.stdout, told.stderr);
    let bad: Vec<String> =
        rows(&told).into_iter().filter(|(_, verdict)| verdict == "problem").map(|(name, _)| name).collect();
    assert_eq!(bad, ["work", "split", "stop"]);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert!(std::path::Path::new(told["kept"].as_str().unwrap()).join("work/.git").is_dir());
    assert!(told["rows"].to_string().contains("budgets of tokens or money cannot hold"));
}

#[test]
fn an_agent_that_is_not_there_is_told_with_what_installs_it() {
    let sandbox = RunBuilder::new(RUNNER).no_agent().start();
    let told = run(sandbox.runner_command(&["conformance", "--yes"]).env("TMPDIR", sandbox.outside()));
    assert_eq!(told.code, Some(1), "{}{}", told.stdout, told.stderr);
    assert!(
        told.stdout.contains(
            "session=program expected=found found=\"`no-such-agent` is not on PATH\" verdict=problem"
        )
    );
}
