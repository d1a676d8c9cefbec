//! gemini (`gemini -o stream-json`), a preset. It exits with 145 when not logged in, and retries silently for a long
//! time when the provider fails.

use serde_json::{Value, json};

use super::event::{AgentEvent, AgentEventKind};
use super::launch::{CommandLine, LaunchRequest};
use super::preset::{add_model, add_settings_file, insert, set_key};
use super::preset_session::{CallEnd, PresetSession, TokenCount, add_usage, fail, finish, message, single};
use super::provider_error::classify_by_status;
use super::spec::{AgentSpec, OutputFormat, ReportedUsage};
use super::transcript::{FailureInfo, LineParser, ParsedSession};
use super::truncate::{self, some_text, text};

pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "gemini",
    program: "gemini",
    package: "@google/gemini-cli",
    npm_program: ".bin/gemini",
    tested_versions: &["0.61.0"],
    state_dirs: &[".gemini"],
    native: None,
    complete,
    reports: ReportedUsage::Tokens,
    output: OutputFormat {
        parser: || Box::new(GeminiParser::default()),
        classify: classify_by_status,
        ends_with_event: false,
    },
};

/// The name of a file that no project has.
const NO_CONTEXT_FILE: &str = "no-such-context-file";

fn complete(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let mut settings = json!({
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": { "enableAutoUpdate": false },
        "context": { "fileName": [NO_CONTEXT_FILE] },
        "skills": { "enabled": false },
        "hooksConfig": { "enabled": false },
        "advanced": { "ignoreLocalEnv": true },
        "experimental": { "enableAgents": false },
    });
    line.args(["-p", "", "--skip-trust", "--approval-mode", "yolo", "-o", "stream-json"]);
    // Lists without an entry that exists: no extension, no MCP server.
    line.args(["--extensions", "none", "--allowed-mcp-server-names", "none"]);
    add_model(line, "-m", request);
    if let Some(base_url) = &request.executor.base_url {
        insert(&mut settings, "security", json!({ "auth": { "selectedType": "gemini-api-key" } }));
        line.set("GOOGLE_GEMINI_BASE_URL", base_url);
        set_key(line, "GEMINI_API_KEY", request);
    }
    let path = add_settings_file(line, request, "gemini.json", &settings);
    line.set("GEMINI_CLI_SYSTEM_SETTINGS_PATH", path);
}

#[derive(Debug, Default)]
struct GeminiParser(PresetSession);

impl LineParser for GeminiParser {
    fn parse_line(&mut self, line: &Value, session: &mut ParsedSession) -> Vec<AgentEvent> {
        match text(line, "type") {
            "init" => self.0.announce(some_text(line, "session_id"), some_text(line, "model"), session),
            "message" if text(line, "role") == "user" => Vec::new(),
            "message" => message(text(line, "content")),
            "tool_use" => {
                let input = line.get("parameters").unwrap_or(&Value::Null);
                vec![self.0.calls.start(some_text(line, "tool_id"), text(line, "tool_name"), input)]
            }
            "tool_result" => {
                let end = CallEnd::of_success(text(line, "status") == "success");
                self.0.end_call(some_text(line, "tool_id").as_deref(), end, text(line, "output"), line)
            }
            "error" => single(AgentEventKind::Warning { text: truncate::message(text(line, "message")) }),
            "result" => result(line, session),
            _ => vec![AgentEvent::unknown(line)],
        }
    }
}

fn result(line: &Value, session: &mut ParsedSession) -> Vec<AgentEvent> {
    let tokens = |key: &str| line.pointer(&format!("/stats/{key}")).and_then(Value::as_u64).unwrap_or(0);
    let count = TokenCount {
        input: tokens("input_tokens"),
        cached_input: tokens("cached"),
        output: tokens("output_tokens"),
    };
    add_usage(session, count, None);
    if text(line, "status") == "success" {
        return finish(session);
    }
    let message = line.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
    fail(FailureInfo::with_status(truncate::name(message), embedded_status(message)), session)
}

/// The HTTP status in gemini's error message, which holds the provider's response as JSON in brackets.
fn embedded_status(message: &str) -> Option<u64> {
    let response = message.strip_prefix("[API Error: ")?.strip_suffix(']')?;
    let response: Value = serde_json::from_str(response).ok()?;
    response.pointer("/error/code")?.as_u64()
}
