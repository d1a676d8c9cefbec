//! opencode (`opencode run --format json`), a preset. When not logged in it exits with 1 and prints an `error` event;
//! when the provider fails it retries silently without end.

use serde_json::{Value, json};

use super::event::AgentEvent;
use super::launch::{CommandLine, LaunchRequest};
use super::preset::{PROVIDER, add_model, insert};
use super::preset_session::{
    CallEnd, PresetSession, TokenCount, add_usage, fail, finish, message, reasoning,
};
use super::provider_error::classify_by_status;
use super::spec::{AgentSpec, OutputFormat, PresetLogin, ReportedUsage, Surroundings};
use super::tool_event;
use super::transcript::{FailureInfo, LineParser, ParsedSession};
use super::truncate::{self, number, some_text, text};

pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "opencode",
    program: "opencode",
    package: "opencode-ai",
    npm_program: "opencode-*/bin/opencode",
    tested_versions: &["1.18.33"],
    surroundings: Surroundings {
        login: LOGIN,
        state_dirs: &[".local/share/opencode", ".local/state/opencode", ".cache/opencode"],
        ..Surroundings::NONE
    },
    native: None,
    complete,
    reports: ReportedUsage::TokensAndCost,
    output: OutputFormat {
        parser: || Box::new(OpencodeParser::default()),
        classify: classify_by_status,
        ends_with_event: false,
    },
};

/// With the keys of the providers that most people use. Others are passed with `env_inherit`.
const LOGIN: PresetLogin = PresetLogin {
    key_variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"],
    files: &[".local/share/opencode/auth.json"],
    renewed_files: &[".local/share/opencode/auth.json"],
    command: "opencode auth login",
    ..PresetLogin::NONE
};

fn complete(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    complete_as("OPENCODE", line, request);
}

const WEB_TOOLS: [&str; 2] = ["webfetch", "websearch"];

/// The command line of opencode, or of a program that was made from it and has its variables under another prefix.
pub(super) fn complete_as(prefix: &str, line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let executor = request.executor;
    let mut permission = json!({ "*": "allow" });
    for tool in WEB_TOOLS.iter().filter(|_| request.has_no_web()) {
        insert(&mut permission, tool, json!("deny"));
    }
    let mut settings = json!({
        "autoupdate": false, "share": "disabled", "compaction": { "auto": false }, "permission": permission,
    });
    line.args(["run", "--format", "json"]);
    let mut switch_on =
        |names: &[&str]| names.iter().for_each(|name| line.set(&format!("{prefix}_{name}"), "1"));
    switch_on(&[
        "DISABLE_AUTOUPDATE",
        "DISABLE_AUTOCOMPACT",
        "DISABLE_LSP_DOWNLOAD",
        "DISABLE_CLAUDE_CODE",
        "DISABLE_EXTERNAL_SKILLS",
        "DISABLE_PROJECT_CONFIG",
        "PURE",
    ]);
    match (&executor.base_url, &executor.model) {
        (Some(base_url), Some(model)) => {
            switch_on(&["DISABLE_MODELS_FETCH", "DISABLE_DEFAULT_PLUGINS"]);
            let key = executor.key_env.as_ref().map(|name| format!("{{env:{name}}}")).unwrap_or_default();
            let provider = json!({
                "npm": "@ai-sdk/openai-compatible",
                "options": { "baseURL": base_url, "apiKey": key },
                "models": { model: { "tool_call": true } },
            });
            insert(&mut settings, "provider", json!({ PROVIDER: provider }));
            line.args(["-m", &format!("{PROVIDER}/{model}")]);
        }
        (None | Some(_), _) => add_model(line, "-m", request),
    }
    line.set(&format!("{prefix}_CONFIG_CONTENT"), settings.to_string());
    // Instructions, skills, agents and MCP servers of the user are in this folder, and the login is not.
    let folder = request.context.settings_dir.join("config");
    line.set("XDG_CONFIG_HOME", &folder);
    line.folders.push(folder);
}

#[derive(Debug, Default)]
pub(super) struct OpencodeParser(PresetSession);

impl LineParser for OpencodeParser {
    fn parse_line(&mut self, line: &Value, session: &mut ParsedSession) -> Vec<AgentEvent> {
        let part = line.get("part").unwrap_or(&Value::Null);
        match text(line, "type") {
            "step_start" => self.0.announce(some_text(line, "sessionID"), None, session),
            "text" => message(text(part, "text")),
            "reasoning" => reasoning(text(part, "text")),
            "tool_use" => vec![tool_use(part)],
            "step_finish" => step_finish(part, session),
            "error" => fail(error(line), session),
            _ => vec![AgentEvent::unknown(line)],
        }
    }
}

/// A call comes in one line, when it has ended.
fn tool_use(part: &Value) -> AgentEvent {
    let state = part.get("state").unwrap_or(&Value::Null);
    let end = CallEnd {
        is_failed: text(state, "status") == "error",
        exit: state.pointer("/metadata/exit").and_then(Value::as_i64),
    };
    let result = state.get("output").or_else(|| state.get("error")).and_then(Value::as_str);
    let call = tool_event::started(text(part, "tool"), state.get("input").unwrap_or(&Value::Null));
    let kind = tool_event::ended(call, end.state(), end.exit, result.unwrap_or_default());
    AgentEvent { id: some_text(part, "callID"), parent: None, kind }
}

fn step_finish(part: &Value, session: &mut ParsedSession) -> Vec<AgentEvent> {
    let tokens = |path: &str| part.pointer(&format!("/tokens/{path}")).and_then(Value::as_u64).unwrap_or(0);
    let cached_input = tokens("cache/read");
    let count = TokenCount {
        input: tokens("input") + cached_input + tokens("cache/write"),
        cached_input,
        cache_write: Some(tokens("cache/write")),
        output: tokens("output") + tokens("reasoning"),
    };
    add_usage(session, count, part.get("cost"));
    if text(part, "reason") == "stop" { finish(session) } else { Vec::new() }
}

fn error(line: &Value) -> FailureInfo {
    let error = line.get("error").unwrap_or(line);
    let data = error.get("data").unwrap_or(error);
    let message = some_text(data, "message").unwrap_or_else(|| truncate::name(text(error, "name")));
    FailureInfo::with_status(message, number(data, "statusCode"))
}
