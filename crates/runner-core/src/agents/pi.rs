//! pi (`pi --mode json`), a preset. It always exits with 0; a failed message has the `stopReason` `error`.

use serde_json::{Value, json};

use super::event::{AgentEvent, AgentEventKind};
use super::launch::{CommandLine, LaunchRequest};
use super::preset::{PROVIDER, add_model, add_settings_file, use_own_home};
use super::preset_session::{
    CallEnd, PresetSession, TokenCount, add_usage, fail, finish, message, reasoning, single,
};
use super::provider_error::classify_by_status;
use super::spec::{AgentSpec, MovableFolder, OutputFormat, PresetLogin, ReportedUsage, Surroundings};
use super::transcript::{FailureInfo, LineParser, ParsedSession};
use super::truncate::{self, number, some_text, text};

pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "pi",
    program: "pi",
    package: "@earendil-works/pi-coding-agent",
    npm_program: ".bin/pi",
    tested_versions: &["0.87.1"],
    surroundings: Surroundings { login: LOGIN, node_min: Some(22), ..Surroundings::NONE },
    native: None,
    complete,
    reports: ReportedUsage::TokensAndCost,
    output: OutputFormat {
        parser: || Box::new(PiParser::default()),
        classify: classify_by_status,
        ends_with_event: false,
    },
};

const LOGIN: PresetLogin = PresetLogin {
    key_variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"],
    folder: Some(MovableFolder { variable: "PI_CODING_AGENT_DIR", in_home: ".pi/agent" }),
    files: &[".pi/agent/auth.json"],
    renewed_files: &[".pi/agent/auth.json"],
    command: "pi",
    ..PresetLogin::NONE
};

fn complete(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let executor = request.executor;
    line.args(["-p", "--mode", "json", "--no-session"]);
    line.args(["--no-context-files", "--no-skills", "--no-extensions", "--no-prompt-templates"]);
    // In place of the files that would be appended to the system prompt.
    line.args(["--append-system-prompt", ""]);
    line.set("PI_TELEMETRY", "0");
    use_own_home(line, request, &LOGIN);
    let Some(base_url) = &executor.base_url else { return add_model(line, "--model", request) };
    let models: Vec<Value> = executor.model.iter().map(|model| json!({ "id": model })).collect();
    let provider = json!({
        "baseUrl": base_url,
        "api": "openai-completions",
        "apiKey": executor.key_env.clone().unwrap_or_default(),
        "models": models,
    });
    line.args(["--offline", "--provider", PROVIDER]);
    add_model(line, "--model", request);
    line.set("PI_OFFLINE", "1");
    add_settings_file(line, request, "home/models.json", &json!({ "providers": { PROVIDER: provider } }));
}

#[derive(Debug, Default)]
struct PiParser {
    shared: PresetSession,
    /// The failure of the last message; none if that message succeeded.
    failure: Option<FailureInfo>,
}

impl LineParser for PiParser {
    fn parse_line(&mut self, line: &Value, session: &mut ParsedSession) -> Vec<AgentEvent> {
        match text(line, "type") {
            "session" => self.shared.announce(some_text(line, "id"), None, session),
            "message_end" => self.message_end(line.get("message").unwrap_or(&Value::Null), session),
            "tool_execution_start" => {
                let input = line.get("args").unwrap_or(&Value::Null);
                vec![self.shared.calls.start(some_text(line, "toolCallId"), text(line, "toolName"), input)]
            }
            "tool_execution_end" => {
                let is_error = line.get("isError").and_then(Value::as_bool) == Some(true);
                let blocks = line.pointer("/result/content").and_then(Value::as_array).into_iter().flatten();
                let result: Vec<&str> = blocks.map(|block| text(block, "text")).collect();
                let id = some_text(line, "toolCallId");
                self.shared.end_call(id.as_deref(), CallEnd::of_success(!is_error), &result.join("\n"), line)
            }
            "auto_retry_start" => single(AgentEventKind::Retry {
                text: truncate::name(text(line, "errorMessage")),
                attempt: number(line, "attempt"),
                of: number(line, "maxAttempts"),
                wait_ms: number(line, "delayMs"),
            }),
            "agent_end" => match self.failure.take() {
                Some(failure) => fail(failure, session),
                None => finish(session),
            },
            // Parts of messages and calls that come whole later.
            "agent_start"
            | "turn_start"
            | "turn_end"
            | "message_start"
            | "message_update"
            | "tool_execution_update"
            | "auto_retry_end"
            | "agent_settled" => Vec::new(),
            _ => vec![AgentEvent::unknown(line)],
        }
    }
}

impl PiParser {
    fn message_end(&mut self, line: &Value, session: &mut ParsedSession) -> Vec<AgentEvent> {
        if text(line, "role") != "assistant" {
            return Vec::new();
        }
        session.identity.model = some_text(line, "model");
        let tokens = |key: &str| line.pointer(&format!("/usage/{key}")).and_then(Value::as_u64).unwrap_or(0);
        let count = TokenCount {
            input: tokens("input") + tokens("cacheRead") + tokens("cacheWrite"),
            cached_input: tokens("cacheRead"),
            cache_write: Some(tokens("cacheWrite")),
            output: tokens("output"),
        };
        add_usage(session, count, line.pointer("/usage/cost/total"));
        self.failure = (text(line, "stopReason") == "error").then(|| failure(text(line, "errorMessage")));
        let mut events = Vec::new();
        for block in line.get("content").and_then(Value::as_array).into_iter().flatten() {
            match text(block, "type") {
                "text" => events.extend(message(text(block, "text"))),
                "thinking" => events.extend(reasoning(text(block, "thinking"))),
                _ => {}
            }
        }
        events
    }
}

/// The message starts with the HTTP status, if there is one.
fn failure(message: &str) -> FailureInfo {
    let status = message.split_whitespace().next().and_then(|word| word.parse().ok());
    FailureInfo::with_status(truncate::name(message), status)
}
