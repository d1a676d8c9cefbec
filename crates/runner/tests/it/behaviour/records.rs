//! The records of iterations under `.runner/iterations`: what they hold, and what sessions cannot do to them unnoticed.

use runner_core::schema::SchemaDocument;
use serde_json::Value;
use testkit::oracle::assert_sound;
use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::TestRepo;

use crate::RUNNER;

fn record(iter: u32, name: &str) -> String {
    format!(".runner/iterations/{RUN}/{iter:04}/{name}")
}

/// Asserts that a document has exactly the keys that the schema has, as far as they are required.
fn assert_described(document: &Value) {
    let schema = SchemaDocument::Iteration.schema().to_value();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let described = keys(schema.get("properties").unwrap());
    for key in keys(document) {
        assert!(described.contains(&key), "meta.json has `{key}`, which the schema does not describe");
    }
    for key in schema.get("required").unwrap().as_array().unwrap() {
        assert!(document.get(key.as_str().unwrap()).is_some(), "meta.json lacks {key}");
    }
}

#[test]
fn record_of_every_outcome_is_as_its_schema_says() {
    let agent = r#"case "$RUNNER_ITER" in
        0001) split ;;
        0002) answer retry ;;
        0003) echo '{' > "$RUNNER_TREE"; answer done ;;
        0004) answer done ;;
        0005) exit 1 ;;
        0006) printf '{"fault": {"fault": "context_full", "why": "w"}, "usage": {"input_tokens": 5}}' > "$RUNNER_REPORT"; exit 1 ;;
        0007) git -C . commit -q --allow-empty -m mine; echo 1 > work; answer done ;;
        *) answer done ;;
    esac"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    sandbox.runner(&["loop", "--max-iterations", "8"]);
    let outcomes = sandbox.outcomes();
    assert!(outcomes.len() >= 7, "{outcomes:?}");
    for iter in 1..=u32::try_from(outcomes.len()).unwrap() {
        let meta = sandbox.meta(iter);
        assert_described(&meta);
        assert_eq!(meta["commit_after"].as_str().map(str::len), Some(40), "{meta}");
    }
}

#[test]
fn answer_that_an_agent_puts_beside_its_logs_is_not_kept() {
    let plant = format!(
        "printf '{{\"status\": \"done\", \"summary\": \"forged\"}}' > {}; exit 1",
        record(1, "output.json")
    );
    let sandbox = RunBuilder::new(RUNNER).agent(&plant).start();
    sandbox.runner(&["step"]);
    assert_eq!(sandbox.outcomes(), ["no_answer"]);
    assert!(!sandbox.path(&record(1, "output.json")).exists(), "it would look like the real one");
    assert_sound(&sandbox);
}

/// Runs two iterations; the second does this to the record of the first.
fn after_tampering(script: &str) -> (TestRepo, String) {
    let agent = format!(
        "if test $RUNNER_ITER = 0001; then answer retry; else {script}; echo 1 > work; answer done; fi"
    );
    let sandbox = RunBuilder::new(RUNNER).agent(&agent).start();
    let output = sandbox.runner(&["loop"]).ok().stdout;
    (sandbox, output)
}

#[test]
fn session_that_changes_an_earlier_record_is_noticed() {
    for (script, action) in [
        (format!("echo x >> {}", record(1, "meta.json")), "ignored_changed"),
        (format!("rm {}", record(1, "output.json")), "ignored_deleted"),
        (format!("rm -r .runner/iterations/{RUN}/0001"), "ignored_deleted"),
    ] {
        let (sandbox, output) = after_tampering(&script);
        let notices = sandbox.meta(2)["file_notices"].to_string();
        assert!(notices.contains(action), "{script}: {notices}");
        assert!(notices.contains("the record of an earlier iteration"), "{script}: {notices}");
        assert!(output.contains("event=file_noticed"), "{script}: {output}");
        assert_sound(&sandbox);
    }
    let (sandbox, _) = after_tampering("cat .runner/iterations/*/0001/* > /dev/null");
    assert_eq!(sandbox.meta(2)["file_notices"], serde_json::json!([]), "reading is no change");
}

#[test]
fn answer_without_a_summary_does_not_pass_a_task() {
    let agent = r#"echo 1 > work; case "$RUNNER_ITER" in
        0001) printf '{"status": "done", "summary": " "}' > "$RUNNER_OUTPUT" ;;
        *) answer done "made work" ;;
    esac"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes().last().map(String::as_str), Some("passed"));
    assert_ne!(sandbox.outcomes()[0], "passed");
    assert!(sandbox.meta(1)["findings"].to_string().contains("summary"), "{}", sandbox.meta(1)["findings"]);
    assert_sound(&sandbox);
}
