//! Whole runs with the real Codex and Claude Code, at their pinned versions, against a scripted model on this machine.
#![expect(clippy::indexing_slicing, reason = "here a fault is a failed test")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use scripted_model::{ModelScript, ScriptedModel};
use serde_json::Value;
use testkit::agents;
use testkit::oracle::{assert_sound, processes_of};
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;

pub(crate) const WHOLE_RUN: &str = include_str!("../../../../scripted-model/scripts/whole-run.toml");
const GUARD: &str = "test ! -e two.txt || grep -qx right two.txt";
pub(crate) const BOTH: [&str; 2] = ["codex", "claude"];

pub(crate) fn model_of(script: &str) -> ScriptedModel {
    ScriptedModel::start(ModelScript::parse(script).unwrap()).unwrap()
}

/// A run with an agent whose provider has this address.
pub(crate) fn setup(kind: &str, url: &str) -> RunBuilder {
    setup_with(kind, if kind == "codex" { "gpt-5.5" } else { "scripted" }, url)
}

/// The same with this model.
pub(crate) fn setup_with(kind: &str, model: &str, url: &str) -> RunBuilder {
    let program = agents::program(kind);
    let url = if kind == "codex" { format!("{url}/v1") } else { url.to_owned() };
    let keys = format!(
        "kind = \"{kind}\"\nprogram = \"{}\"\nmodel = \"{model}\"\nbase_url = \"{url}\"\nkey_env = \"OWN_KEY\"\nretries = 0",
        program.display()
    );
    RunBuilder::new(RUNNER).executor(&keys).executor_keys("").guard(GUARD)
}

/// A folder that the agents' sandboxes protect: both let commands write below `/tmp`.
pub(crate) fn agent_folder() -> &'static str {
    let folder = env!("CARGO_TARGET_TMPDIR");
    if Path::new(folder).starts_with("/tmp") { "/var/tmp" } else { folder }
}

/// A repository on disk: Codex's built-in sandbox hides /dev/shm.
pub(crate) fn started(setup: &RunBuilder) -> TestRepo {
    let folder = tempfile::tempdir_in(agent_folder()).unwrap();
    setup.start_in(TestRepo::empty_in(RUNNER, folder))
}

pub(crate) fn command(sandbox: &TestRepo, args: &[&str]) -> Command {
    let mut command = sandbox.runner_command(args);
    command.env("OWN_KEY", "sk-dummy").env("TERM", "dumb");
    command
}

pub(crate) fn ran(sandbox: &TestRepo, args: &[&str]) -> RunOutput {
    run(&mut command(sandbox, args))
}

fn whole_run(kind: &str) -> TestRepo {
    let model = model_of(WHOLE_RUN);
    let sandbox = started(&setup(kind, &model.url()));
    let ended = ran(&sandbox, &["loop"]);
    assert_eq!(
        ended.code,
        Some(0),
        "{}{}{}",
        ended.stdout,
        ended.stderr,
        sandbox.iteration_file(1, "executor.log")
    );
    assert_eq!(sandbox.outcomes(), ["decomposed", "passed", "guard_failed", "passed"]);
    assert_eq!(sandbox.runner(&["validate"]).ok().value("valid"), Some("true problems=0"));
    assert_sound(&sandbox);
    for iter in 1..=4 {
        let usage = &sandbox.meta(iter)["usage"];
        assert!(
            usage["input_tokens"].as_u64() > Some(0) && usage["output_tokens"].as_u64() > Some(0),
            "{usage}"
        );
        let events = sandbox.iteration_file(iter, "events.jsonl");
        let is_agents = |line: &&str| serde_json::from_str::<Value>(line).unwrap()["event"] == "agent";
        assert!(events.lines().filter(is_agents).count() >= 2, "{events}");
    }
    sandbox
}

#[test]
fn codex_completes_a_run() {
    whole_run("codex");
}

#[test]
fn claude_completes_a_run_and_reports_its_cost() {
    let sandbox = whole_run("claude");
    let usage = &sandbox.meta(1)["usage"];
    assert!(usage["cost_microdollars"].as_u64() > Some(0), "{usage}");
    assert!(usage.to_string().contains("reported"), "{usage}");
}

/// Runs one step with a provider that fails like this from the first request on. Returns the outcome.
fn outcome_of(kind: &str, fault: &str) -> String {
    let model = model_of(&format!("[[part]]\n[[part.step]]\nfault = [{fault}]\n"));
    let sandbox = started(&setup(kind, &model.url()));
    let step = ran(&sandbox, &["step"]);
    assert_sound(&sandbox);
    assert_eq!(sandbox.tree()["root"]["attempts"], 0, "{kind} {fault}: {}{}", step.stdout, step.stderr);
    sandbox.outcomes().concat()
}

#[test]
fn provider_failures_are_classified() {
    let context = "{ what.event = { code = 'context_length_exceeded', type = 'invalid_request_error', message = 'too long' } }";
    let limit = "{ what.http = { status = 429, body = { error = { type = 'usage_limit_reached', message = 'over', resets_at = 1900000000 } } } }";
    for (kind, fault, class) in [
        ("codex", "{ what.http.status = 401 }", "not_logged_in"),
        ("claude", "{ what.http.status = 401 }", "not_logged_in"),
        ("codex", "{ what.http.status = 429 }", "rate_limited"),
        ("claude", "{ what.http.status = 429 }", "rate_limited"),
        ("codex", "{ what.http.status = 500 }", "overloaded"),
        ("claude", "{ what.http.status = 529 }", "overloaded"),
        ("codex", "{ what = 'drop' }", "disconnected"),
        ("claude", "{ what = 'drop' }", "disconnected"),
        ("codex", context, "context_full"),
        ("codex", limit, "usage_limit"),
    ] {
        assert_eq!(outcome_of(kind, fault), class, "{kind} {fault}");
    }
}

#[test]
fn unreachable_provider_ends_the_session() {
    for kind in BOTH {
        // A port that was just closed.
        let url = model_of("[[part]]\n[[part.step]]\ndo.final = 'x'\n").url();
        let sandbox = started(&setup(kind, &url));
        ran(&sandbox, &["step"]);
        assert_eq!(sandbox.outcomes(), ["disconnected"], "{kind}");
        assert_sound(&sandbox);
    }
}

#[test]
fn silent_provider_runs_into_the_idle_timeout() {
    for kind in BOTH {
        let model = model_of("[[part]]\n[[part.step]]\nfault = [{ what = 'hang' }]\n");
        let sandbox = started(&setup(kind, &model.url()).keys("idle_timeout_secs = 4"));
        ran(&sandbox, &["step"]);
        assert_eq!(sandbox.outcomes(), ["idle_timeout"], "{kind}");
        assert_eq!(sandbox.tree()["root"]["attempts"], 0, "{kind}");
        assert_eq!(processes_of(sandbox.outside()), [""; 0], "{kind}");
        assert_sound(&sandbox);
    }
}

#[test]
fn answer_that_violates_the_schema_is_no_answer() {
    for (kind, answer) in [("codex", "'Sure, done!'"), ("claude", "{ status = 'nonsense', summary = 7 }")] {
        let model = model_of(&format!("[[part]]\n[[part.step]]\ndo.final = {answer}\n"));
        let sandbox = started(&setup(kind, &model.url()));
        ran(&sandbox, &["step"]);
        assert_eq!(
            sandbox.outcomes(),
            ["no_answer"],
            "{kind}: {}",
            sandbox.iteration_file(1, "executor.log")
        );
        assert_eq!(sandbox.tree()["root"]["attempts"], 0, "{kind}");
        assert_sound(&sandbox);
    }
}

#[test]
fn claudes_subscription_limit_reports_its_reset_time() {
    let headers = "'anthropic-ratelimit-unified-status' = 'rejected', 'anthropic-ratelimit-unified-reset' = '1900000000', \
        'anthropic-ratelimit-unified-representative-claim' = 'five_hour', 'x-should-retry' = 'false'";
    let body = "{ type = 'error', error = { type = 'rate_limit_error', message = 'over' } }";
    let model = model_of(&format!(
        "[[part]]\n[[part.step]]\nfault = [{{ what.http = {{ status = 429, headers = {{ {headers} }}, body = {body} }} }}]\n"
    ));
    let sandbox = started(&setup("claude", &model.url()));
    let config = sandbox.read(".runner/state/config.toml").replace("key_env = \"OWN_KEY\"\n", "");
    sandbox.write(".runner/state/config.toml", config);
    sandbox.runner(&["start"]).ok();
    run(command(&sandbox, &["step"]).env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-dummy")).ok();
    assert_eq!(sandbox.outcomes(), ["usage_limit"], "{}", sandbox.iteration_file(1, "executor.log"));
    assert_eq!(sandbox.meta(1)["exit"]["fault"]["resets_unix_secs"], 1_900_000_000);
    let state = sandbox.runner(&["status", "--json"]).ok().stdout;
    assert_eq!(serde_json::from_str::<Value>(&state).unwrap()["state"], "waiting");
    assert_sound(&sandbox);
}

const LEAVES_A_PROCESS: &str = "[[part]]\n[[part.step]]\n\
    do.shell = 'echo partial > partial.txt; setsid sleep 3000 & sleep 3000'\n";

/// A run whose agent runs a command that started a process in its own session.
fn in_the_middle(kind: &str) -> (TestRepo, ScriptedModel, Child) {
    let model = model_of(LEAVES_A_PROCESS);
    let sandbox = started(&setup(kind, &model.url()));
    let child = command(&sandbox, &["loop"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the command", || sandbox.path("partial.txt").exists());
    std::thread::sleep(Duration::from_millis(200));
    (sandbox, model, child)
}

/// Their commands would run for longer than this waits.
fn wait_for_the_end(sandbox: &TestRepo) {
    wait_for("the session's end", || processes_of(sandbox.outside()).is_empty());
}

fn assert_interrupted(sandbox: &TestRepo, kind: &str) {
    assert_eq!(sandbox.outcomes(), ["interrupted"], "{kind}");
    assert_eq!(sandbox.git(&["show", "HEAD:partial.txt"]), "partial", "{kind}");
    assert_sound(sandbox);
}

#[test]
fn session_processes_end_at_the_time_limit() {
    for kind in BOTH {
        let model = model_of(LEAVES_A_PROCESS);
        let sandbox = started(&setup(kind, &model.url()).keys("iteration_timeout_secs = 12"));
        assert_eq!(ran(&sandbox, &["loop"]).code, Some(4), "{kind}");
        assert_eq!(processes_of(sandbox.outside()), Vec::<String>::new(), "{kind}");
        assert_eq!(sandbox.git(&["show", "HEAD:partial.txt"]), "partial", "{kind}");
        assert_sound(&sandbox);
    }
}

#[test]
fn session_processes_end_with_the_runner() {
    for kind in BOTH {
        let (sandbox, _model, mut child) = in_the_middle(kind);
        child.kill().unwrap();
        child.wait().unwrap();
        wait_for_the_end(&sandbox);
        sandbox.runner(&["start"]).ok();
        assert_interrupted(&sandbox, kind);
    }
}

#[test]
fn session_processes_end_after_an_interrupt() {
    for kind in BOTH {
        let (sandbox, _model, mut child) = in_the_middle(kind);
        run(sandbox.command("kill").args(["-INT".to_owned(), child.id().to_string()])).ok();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{kind}");
        wait_for_the_end(&sandbox);
        assert_interrupted(&sandbox, kind);
    }
}

#[test]
fn usage_of_a_killed_claude_session_is_read_from_its_output() {
    let (sandbox, _model, mut child) = in_the_middle("claude");
    child.kill().unwrap();
    child.wait().unwrap();
    sandbox.runner(&["start"]).ok();
    let usage = &sandbox.meta(1)["usage"];
    assert_eq!(usage["input_tokens"], 1000, "{usage}");
    let state: Value = serde_json::from_str(&sandbox.read(".runner/state/run_state.json")).unwrap();
    assert!(state["spent"]["tokens"].as_u64() >= Some(1000), "{}", state["spent"]);
    assert_interrupted(&sandbox, "claude");
}

#[test]
fn agents_run_nothing_that_the_repository_plants_for_them() {
    let trap = "sh -c 'touch sprung'";
    let claude = format!(
        r#"{{"hooks": {{"PreToolUse": [{{"matcher": "*", "hooks": [{{"type": "command", "command": "{trap}"}}]}}],
            "SessionStart": [{{"hooks": [{{"type": "command", "command": "{trap}"}}]}}]}}}}"#
    );
    let codex =
        "notify = [\"touch\", \"sprung\"]\n[mcp_servers.odd]\ncommand = \"touch\"\nargs = [\"sprung\"]\n";
    for kind in BOTH {
        let model = model_of(WHOLE_RUN);
        let setup = setup(kind, &model.url())
            .file(".claude/settings.json", &claude)
            .file(".codex/config.toml", codex);
        let sandbox = started(&setup);
        ran(&sandbox, &["step"]);
        assert_eq!(sandbox.outcomes(), ["decomposed"], "{kind}");
        assert!(!sandbox.path("sprung").exists(), "{kind}");
    }
}
