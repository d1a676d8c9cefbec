//! Whole runs with the real Codex and Claude Code as worker and as reviewer: a check from red to green, and a review that
//! refuses once.

use serde_json::Value;
use testkit::agents;
use testkit::oracle::assert_sound;

use super::real::{model_of, ran, setup, started};

const REVIEWED_RUN: &str = include_str!("../../../../scripted-model/scripts/reviewed-run.toml");

fn reviewed_run(kind: &str) {
    let model = model_of(REVIEWED_RUN);
    let (url, name) =
        if kind == "codex" { (format!("{}/v1", model.url()), "gpt-5.5") } else { (model.url(), "scripted") };
    let program = agents::program(kind);
    let table = format!(
        "[review]\nkind = \"{kind}\"\nprogram = \"{}\"\nmodel = \"{name}\"\nbase_url = \"{url}\"\nkey_env = \"OWN_KEY\"\n\
         retries = 0\n",
        program.display()
    );
    let builder = setup(kind, &model.url()).guard("true").config_tables(&table);
    let repo = started(&builder.guard_keys("room = \"require\"\nbaseline = true\nfinal_check = true"));
    let ended = ran(&repo, &["loop"]);
    let log = repo.iteration_file(2, "review.log");
    assert_eq!(ended.code, Some(0), "{}{}{log}", ended.stdout, ended.stderr);
    assert_eq!(repo.outcomes(), ["decomposed", "review_refused", "passed"], "{log}");
    let records = repo.git(&["log", "--format=%(trailers:key=Runner-Check,valueonly)"]);
    assert!(records.contains("greets failed 0 "), "the check went from red to green: {records}");
    let reviews = repo.git(&["log", "--format=%(trailers:key=Runner-Review,valueonly)"]);
    assert!(reviews.contains("refused 1/2 ") && reviews.contains("accepted 2/2 "), "{reviews}");
    let rooms =
        repo.git(&["log", "--format=%(trailers:key=Runner-Room,valueonly,separator=)", "runner/demo"]);
    let rooms: Vec<&str> = rooms.lines().filter(|room| !room.is_empty()).collect();
    assert!(rooms.len() >= 4, "the baseline, two guards and the final check: {rooms:?}");
    assert!(rooms.iter().all(|room| room.starts_with("bubblewrap ")), "{rooms:?}");
    assert_eq!(repo.git(&["show", "HEAD:one.txt"]), "hello please");
    assert!(!repo.path("sneaky.txt").exists(), "the reviewer cannot write");
    let meta = repo.meta(2);
    assert!(meta.pointer("/review/tokens").and_then(Value::as_u64) > Some(0), "{meta}");
    assert_sound(&repo);
}

#[test]
fn codex_works_and_reviews() {
    reviewed_run("codex");
}

#[test]
fn claude_works_and_reviews() {
    reviewed_run("claude");
}
