//! One session each of the real opencode, gemini, qwen, copilot and pi, at their pinned versions, against a scripted
//! model on this machine. They are large and not part of the normal tests: `just agents-test` installs and runs them.
#![expect(clippy::indexing_slicing, reason = "here a fault is a failed test")]

use testkit::agents;
use testkit::oracle::{assert_sound, processes_of};
use testkit::run_builder::RunBuilder;
use testkit::test_repo::run;

use crate::RUNNER;
use crate::agents::real::{command, model_of, started};

const SCRIPT: &str = r#"
[[part]]
[[part.step]]
do.shell = '''echo hello > hello.txt; printf '{"status": "done", "summary": "wrote it"}' > "$RUNNER_OUTPUT"'''
[[part.step]]
do.final = "I wrote it."
"#;

/// Whether the program reports its usage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReportedUsage {
    Tokens,
    Nothing,
}

/// Runs a session that works inside the sandbox, whose output is parsed, and that leaves no processes behind.
fn works(preset: &str, model: &str, path: &str, reported: ReportedUsage) {
    let program = agents::program(preset);
    let server = model_of(SCRIPT);
    let keys = format!(
        "kind = \"command\"\npreset = \"{preset}\"\nprogram = \"{}\"\nmodel = \"{model}\"\nbase_url = \"{}{path}\"\n\
         key_env = \"OWN_KEY\"\nsandbox = \"require\"",
        program.display(),
        server.url()
    );
    let setup = RunBuilder::new(RUNNER).executor(&keys).executor_keys("").guard("grep -qx hello hello.txt");
    let sandbox = started(&setup.keys("iteration_timeout_secs = 110"));
    let step = run(&mut command(&sandbox, &["step"]));
    let log = format!(
        "{}\n{}",
        sandbox.iteration_file(1, "executor.log"),
        sandbox.iteration_file(1, "executor.err.log")
    );
    assert_eq!(sandbox.outcomes(), ["passed"], "{}{}{log}", step.stdout, step.stderr);
    let meta = sandbox.meta(1);
    assert_eq!(meta["sandbox"], "bubblewrap");
    assert_eq!(
        meta["usage"]["input_tokens"].as_u64() >= Some(1000),
        reported == ReportedUsage::Tokens,
        "{}",
        meta["usage"]
    );
    let events = sandbox.iteration_file(1, "events.jsonl");
    for kind in ["session", "command", "message", "finished"] {
        assert!(events.contains(&format!("\"kind\":\"{kind}\"")), "{kind}: {events}");
    }
    assert!(!events.contains("\"kind\":\"unknown\""), "{events}");
    assert_eq!(processes_of(sandbox.outside()), [""; 0]);
    assert_sound(&sandbox);
}

#[test]
fn opencode_works() {
    works("opencode", "scripted", "/v1", ReportedUsage::Tokens);
}

#[test]
fn gemini_works() {
    works("gemini", "gemini-2.5-flash", "", ReportedUsage::Tokens);
}

#[test]
fn qwen_works() {
    works("qwen", "scripted", "/v1", ReportedUsage::Tokens);
}

#[test]
fn copilot_works() {
    works("copilot", "scripted", "/v1", ReportedUsage::Nothing);
}

#[test]
fn pi_works() {
    works("pi", "scripted", "/v1", ReportedUsage::Tokens);
}
