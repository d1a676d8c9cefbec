//! A case for real agents with the real Codex and Claude Code, at their pinned versions, against a scripted model on this
//! machine.

use std::path::Path;

use scripted_model::{ModelScript, ScriptedModel};
use serde_json::Value;
use testkit::agents;
use testkit::oracle::assert_nothing_of;
use testkit::test_repo::run;

use crate::Suite;
use crate::shipped_cases;

const CASE: &str = "counts-lines";

/// A model that writes the program of the case's own solution, and says that it is done.
fn model() -> ScriptedModel {
    let solution = std::fs::read_to_string(shipped_cases().join(CASE).join("solution.toml")).unwrap();
    let solution: toml::Table = solution.parse().unwrap();
    let write = &solution["session"][0]["do"][0]["write"];
    let (path, text) = (write["path"].as_str().unwrap(), write["text"].as_str().unwrap());
    // JSON's strings are TOML's.
    let shell = Value::from(format!("cat > {path} <<'PROGRAM'\n{text}\nPROGRAM\n"));
    let script = format!(
        "[[part]]\n[[part.step]]\ndo.shell = {shell}\n[[part.step]]\ndo.final = {{ status = 'done', summary = 'it counts' }}\n"
    );
    ScriptedModel::start(ModelScript::parse(&script).unwrap()).unwrap()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The case succeeds with an agent whose program and provider are named in it, and its result says what was used.
fn succeeds_with(kind: &str) -> Value {
    let (model, suite) = (model(), Suite::on_disk());
    let case = suite.sandbox.path(&format!("eval/cases/{CASE}"));
    copy(&shipped_cases().join(CASE), &case);
    let (url, name) =
        if kind == "codex" { (format!("{}/v1", model.url()), "gpt-5.5") } else { (model.url(), "scripted") };
    let executor = format!(
        "\n[config.executor]\nkind = \"{kind}\"\nprogram = \"{}\"\nmodel = \"{name}\"\nbase_url = \"{url}\"\n\
         key_env = \"OWN_KEY\"\nretries = 0\n",
        agents::program(kind).display()
    );
    let text = std::fs::read_to_string(case.join("case.toml")).unwrap();
    std::fs::write(case.join("case.toml"), text + &executor).unwrap();
    let mut command = suite.command(&["run", "--agent", kind, "--run", "real", "--json"]);
    let ran = run(command.env("OWN_KEY", "sk-dummy").env("TERM", "dumb"));
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(suite.results(), [(CASE.to_owned(), 1, 1, "success".to_owned(), "none".to_owned())]);
    assert_nothing_of(suite.sandbox.outside());
    let meta = suite.sandbox.read(&format!("eval/results/{CASE}/real.{kind}.t01.a1/meta.json"));
    let meta: Value = serde_json::from_str(&meta).unwrap();
    assert_eq!((&meta["agent"], &meta["iterations"]), (&kind.into(), &1.into()), "{meta}");
    assert!(meta["tokens"].as_u64() > Some(0), "{meta}");
    meta
}

#[test]
fn a_real_case_succeeds_with_codex() {
    succeeds_with("codex");
}

#[test]
fn a_real_case_succeeds_with_claude_and_its_cost_is_on_record() {
    let meta = succeeds_with("claude");
    assert!(meta["cost"]["microdollars"].as_u64() > Some(0), "{meta}");
}
