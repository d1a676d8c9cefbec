//! One session each of the real opencode, gemini, qwen, copilot and pi, at their pinned versions, against a scripted
//! model on this machine. They are large, so they are no part of the check: `just agents-test` installs and runs them.
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

/// Whether the program says what it used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tells {
    Tokens,
    Nothing,
}

/// A session that does its work inside the sandbox, is understood, and leaves nothing behind.
fn works(preset: &str, model: &str, path: &str, tells: Tells) {
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
    let log = format!("{}\n{}", sandbox.logged(1, "executor.log"), sandbox.logged(1, "executor.err.log"));
    assert_eq!(sandbox.outcomes(), ["passed"], "{}{}{log}", step.stdout, step.stderr);
    let meta = sandbox.meta(1);
    assert_eq!(meta["sandbox"], "bubblewrap");
    assert_eq!(
        meta["usage"]["input_tokens"].as_u64() >= Some(1000),
        tells == Tells::Tokens,
        "{}",
        meta["usage"]
    );
    let events = sandbox.logged(1, "events.jsonl");
    for kind in ["session", "command", "message", "finished"] {
        assert!(events.contains(&format!("\"kind\":\"{kind}\"")), "{kind}: {events}");
    }
    assert!(!events.contains("\"kind\":\"unknown\""), "{events}");
    assert_eq!(processes_of(sandbox.outside()), [""; 0]);
    assert_sound(&sandbox);
}

#[test]
fn opencode_works() {
    works("opencode", "scripted", "/v1", Tells::Tokens);
}

#[test]
fn gemini_works() {
    works("gemini", "gemini-2.5-flash", "", Tells::Tokens);
}

#[test]
fn qwen_works() {
    works("qwen", "scripted", "/v1", Tells::Tokens);
}

#[test]
fn copilot_works() {
    works("copilot", "scripted", "/v1", Tells::Nothing);
}

#[test]
fn pi_works() {
    works("pi", "scripted", "/v1", Tells::Tokens);
}
