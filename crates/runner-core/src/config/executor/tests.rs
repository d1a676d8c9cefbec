//! Tests of the `[executor]` table.

use super::*;
use crate::config::Config;

fn problems(executor: &str) -> Vec<String> {
    let text = format!("[executor]\n{executor}\n");
    Config::decode(text.as_bytes()).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn a_table_round_trips_through_toml() {
    for keys in [
        "kind = \"codex\"\nmodel = \"m\"\neffort = \"high\"\nbase_url = \"http://127.0.0.1:1\"\nretries = 0",
        "kind = \"command\"\ncommand = [\"a\", \"b c\"]\nsandbox = \"require\"\nwritable = [\"~/x\"]",
        "kind = \"command\"\npreset = \"pi\"",
    ] {
        let read = |keys: &str| Config::decode(format!("[executor]\n{keys}\n").as_bytes()).unwrap().executor;
        assert_eq!(read(&read(keys).table()), read(keys), "{keys}");
    }
}

#[test]
fn each_kind_accepts_its_own_keys() {
    for good in [
        "kind = \"codex\"\nmodel = \"m\"\neffort = \"minimal\"\ncontext_budget_tokens = 150000",
        "kind = \"codex\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_env = \"K_1\"\nretries = 0",
        "kind = \"claude\"\neffort = \"max\"\nretries = 2\nenv_inherit = [\"NPM_TOKEN\", \"MY_*\"]",
        "kind = \"claude\"\nprogram = \"/opt/claude\"",
        "kind = \"codex\"\nnetwork = \"registries\"\nmcp = [\"docs=docs-server --stdio\"]\ninstructions = [\"a/B.md\"]",
        "kind = \"command\"\ncommand = [\"a\"]\ninstructions = []",
        "kind = \"command\"\ncommand = [\"a\"]",
        "kind = \"command\"\npreset = \"opencode\"\nmodel = \"m\"\nprogram = \"x\"",
        "kind = \"command\"\npreset = \"qwen\"\nenv_inherit = [\"MY_*\"]\nnetwork = \"registries\"",
        "kind = \"command\"\npreset = \"qwen\"\nnetwork = \"full\"",
        "kind = \"script\"\nscenario = \"s\"",
    ] {
        assert_eq!(problems(good), [""; 0], "{good}");
    }
}

#[test]
fn keys_of_another_kind_are_reported() {
    for (bad, problem) in [
        ("kind = \"command\"", "line 2: `executor.kind` is \"command\": add `command` or `preset`"),
        ("kind = \"script\"", "line 2: `executor.kind` is \"script\": add `scenario`"),
        (
            "scenario = \"s\"",
            "line 2: `executor.scenario` is only valid for kind \"script\": remove it or change `kind`",
        ),
        (
            "kind = \"script\"\nscenario = \"s\"\nmodel = \"m\"",
            "line 4: `executor.model` is only valid for kind \"codex\" and \"claude\" and for presets: remove \
             it or change `kind`",
        ),
        (
            "kind = \"command\"\ncommand = [\"a\"]\nmodel = \"m\"",
            "line 4: `executor.model` is only valid for kind \"codex\" and \"claude\" and for presets: remove \
             it or change `kind`",
        ),
        (
            "kind = \"command\"\ncommand = \"a b\"",
            "line 3: `executor.command` is invalid: invalid type: string \"a b\", expected a sequence",
        ),
        (
            "kind = \"comand\"\ncommand = [\"a\"]",
            "line 2: `executor.kind` is invalid: unknown variant `comand`, expected one of `codex`, `claude`, \
             `acp`, `command`, `script`",
        ),
        (
            "kind = \"claude\"\ncontext_budget_tokens = 5000",
            "line 3: `executor.context_budget_tokens` is only valid for kind \"codex\": remove it or change `kind`",
        ),
        (
            "kind = \"command\"\ncommand = [\"a\"]\npreset = \"pi\"",
            "line 4: `executor.preset` cannot be used together with `command`: remove one of them",
        ),
        (
            "kind = \"command\"\npreset = \"aider\"",
            "line 3: `executor.preset` is invalid: unknown preset `aider`, expected one of `opencode`, `gemini`, \
             `qwen`, `copilot`, `pi`, `kilo`, `grok`",
        ),
    ] {
        assert_eq!(problems(bad), [problem], "{bad}");
    }
}

#[test]
fn invalid_values_are_reported() {
    for (bad, problem) in [
        (
            "kind = \"command\"\npreset = \"pi\"\nbase_url = \"http://x\"",
            "line 4: `executor.base_url` needs `model`: a preset cannot query a provider for its models",
        ),
        (
            "effort = \"max\"",
            "line 2: `executor.effort` is \"max\", which Codex does not support: use minimal, low, medium, high, xhigh",
        ),
        (
            "retries = 3",
            "line 2: `executor.retries` needs `base_url`: the retries of Codex's own provider are fixed",
        ),
        ("base_url = \"gateway\"", "line 2: `executor.base_url` must start with http:// or https://"),
        (
            "key_env = \"sk-abc\"",
            "line 2: `executor.key_env` must be the name of an environment variable, not the key itself",
        ),
        (
            "env_inherit = [\"*\"]",
            "line 2: `executor.env_inherit` must contain variable names; `*` is allowed at the end of a name",
        ),
        (
            "writable = [\"/x\", \"y\"]",
            "line 2: `executor.writable` must contain folders that start with `/` or `~/`",
        ),
        ("model = \"\"", "line 2: `executor.model` is empty: set a value or remove the key"),
        ("modle = \"x\"", "line 2: `executor.modle` is not a known key; did you mean `model`?"),
    ] {
        assert_eq!(problems(bad), [problem], "{bad}");
    }
}

#[test]
fn recorder_needs_a_known_provider_on_this_machine() {
    let preset = "kind = \"command\"\npreset = \"opencode\"";
    for (bad, problem) in [
        (
            "kind = \"script\"\nscenario = \"a\"\nrecord = true".to_owned(),
            "line 4: `executor.record` is only valid for kind \"codex\" and \"claude\" and for presets: remove it or change `kind`",
        ),
        (
            format!("{preset}\nrecord = true"),
            "line 4: `executor.record` needs `base_url`: the provider of a preset is not known",
        ),
        (
            format!("{preset}\nreplay = \"a\""),
            "line 4: `executor.replay` needs `base_url`: the provider of a preset is not known",
        ),
        ("replay = \"\"".to_owned(), "line 2: `executor.replay` is empty: set a value or remove the key"),
    ] {
        assert_eq!(problems(&bad), [problem], "{bad}");
    }
    let container = "model = \"m\"\nbase_url = \"http://127.0.0.1:1\"\nsandbox = \"podman\"\nimage = \"i\"\nrecord = true";
    let problem = "line 8: `executor.record` does not work with `sandbox = \"podman\"`: remove one of them";
    assert_eq!(problems(&format!("{preset}\n{container}")), [problem]);
}

#[test]
fn names_are_those_of_the_configuration() {
    for kind in [ExecutorKind::Codex, ExecutorKind::Claude, ExecutorKind::Command, ExecutorKind::Script] {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
    for effort in [
        ReasoningEffort::Minimal,
        ReasoningEffort::Low,
        ReasoningEffort::Medium,
        ReasoningEffort::High,
        ReasoningEffort::Xhigh,
        ReasoningEffort::Max,
    ] {
        assert_eq!(serde_json::to_value(effort).unwrap(), effort.as_str());
    }
}

#[test]
fn every_agent_of_the_registry_can_be_configured() {
    for agent in AGENTS {
        let text = format!("[executor]\n{}", Executor::for_agent(agent).table());
        let executor = Config::decode(text.as_bytes()).unwrap().executor;
        assert_eq!(executor.agent(), Some(agent), "{}", agent.name);
    }
}

#[test]
fn what_enters_a_session_by_choice_is_checked() {
    for (bad, problem) in [
        (
            "kind = \"command\"\ncommand = [\"a\"]\nnetwork = \"full\"",
            "line 4: `executor.network` is only valid for kind \"codex\" and \"claude\" and for presets: remove it or change \
             `kind`",
        ),
        (
            "kind = \"command\"\npreset = \"pi\"\nnetwork = \"none\"",
            "line 4: `executor.network` is \"none\", with which a preset could not reach its provider, because all of it \
             runs in the sandbox: use \"registries\" or \"full\"",
        ),
        (
            "kind = \"command\"\ncommand = [\"a\"]\nenv_inherit = [\"A\"]",
            "line 4: `executor.env_inherit` is only valid for kind \"codex\" and \"claude\" and for presets: remove it or \
             change `kind`",
        ),
        (
            "network = \"none\"\nsandbox = \"off\"",
            "line 2: `executor.network` needs a sandbox: remove it, or `sandbox = \"off\"`",
        ),
        (
            "mcp = [\"docs\"]",
            "line 2: `executor.mcp` must contain entries like \"docs=docs-server --stdio\" or \"docs=https://…\"",
        ),
        (
            "instructions = [\"../AGENTS.md\"]",
            "line 2: `executor.instructions` must contain files of the repository, relative to its root",
        ),
    ] {
        assert_eq!(problems(bad), [problem], "{bad}");
    }
}
