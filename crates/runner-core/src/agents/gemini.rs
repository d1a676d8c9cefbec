//! gemini (`gemini -o stream-json`), a preset. It exits with 145 when not logged in, and retries silently for a long
//! time when the provider fails.

use serde_json::{Value, json};

use super::event::{AgentEvent, AgentEventKind};
use super::launch::{CommandLine, LaunchRequest, SetupFile};
use super::preset::{add_model, add_settings_file, insert, set_key, use_own_home};
use super::preset_session::{CallEnd, PresetSession, TokenCount, add_usage, fail, finish, message, single};
use super::provider_error::classify_by_status;
use super::spec::{AgentSpec, MovableFolder, OutputFormat, PresetLogin, ReportedUsage, Surroundings};
use super::transcript::{FailureInfo, LineParser, ParsedSession};
use super::truncate::{self, some_text, text};

pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "gemini",
    program: "gemini",
    package: "@google/gemini-cli",
    npm_program: ".bin/gemini",
    tested_versions: &["0.61.0"],
    surroundings: SURROUNDINGS,
    native: None,
    complete,
    reports: ReportedUsage::Tokens,
    output: OutputFormat {
        parser: || Box::new(GeminiParser::default()),
        classify: classify_by_status,
        ends_with_event: false,
    },
};

const SURROUNDINGS: Surroundings = Surroundings { login: LOGIN, node_min: Some(20), ..Surroundings::NONE };

/// It finds a folder `.gemini` in the folder that the variable names.
const LOGIN: PresetLogin = PresetLogin {
    key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    variables: &[
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_GENAI_USE_GCA",
        "GOOGLE_GENAI_USE_VERTEXAI",
    ],
    folder: Some(MovableFolder { variable: "GEMINI_CLI_HOME", in_home: "" }),
    files: &[".gemini/oauth_creds.json", ".gemini/gemini-credentials.json"],
    file_text: None,
    renewed_files: &[
        ".gemini/oauth_creds.json",
        ".gemini/google_accounts.json",
        ".gemini/gemini-credentials.json",
    ],
    read_files: &[SETTINGS, VARIABLES],
    command: "gemini",
};

/// The user's settings, which say how they log in.
const SETTINGS: &str = ".gemini/settings.json";
/// The user's file of variables, which may hold the key.
const VARIABLES: &str = ".gemini/.env";

const WEB_TOOLS: [&str; 2] = ["google_web_search", "web_fetch"];

/// In a folder that is not trusted it reads no GEMINI.md, settings, skills and variables of the repository, and asks before each
/// tool. This rule answers; the sandbox confines the tools.
const POLICY: &str =
    "[[rule]]\ntoolName = \"*\"\ndecision = \"allow\"\npriority = 999\nallowRedirection = true\n";

fn complete(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let mut settings = json!({
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": { "enableAutoUpdate": false },
        "skills": { "enabled": false },
        "hooksConfig": { "enabled": false },
        "advanced": { "ignoreLocalEnv": true },
        "experimental": { "enableAgents": false },
    });
    line.args(["-p", "", "-o", "stream-json"]);
    // Lists without an entry that exists: no extension, no MCP server.
    line.args(["--extensions", "none", "--allowed-mcp-server-names", "none"]);
    line.set("GEMINI_RESTRICTED_MODE", "true");
    let policy = request.context.settings_dir.join("gemini-policy.toml");
    line.arg("--policy");
    line.arg(&policy);
    line.files.push(SetupFile { path: policy, text: POLICY.to_owned(), is_program: false });
    add_model(line, "-m", request);
    // Without this, it refuses to start in a folder that is not trusted.
    let mut security = json!({ "folderTrust": { "enabled": false } });
    if let Some(base_url) = &request.executor.base_url {
        insert(&mut security, "auth", json!({ "selectedType": "gemini-api-key" }));
        line.set("GOOGLE_GEMINI_BASE_URL", base_url);
        set_key(line, "GEMINI_API_KEY", request);
    } else {
        if let Some(kind) = login_kind(request) {
            insert(&mut security, "auth", json!({ "selectedType": kind }));
        }
        add_login_variables(line, request);
    }
    insert(&mut settings, "security", security);
    if request.has_no_web() {
        insert(&mut settings, "tools", json!({ "exclude": WEB_TOOLS }));
    }
    // Its own home: no GEMINI.md, settings, extensions and sub-agents of the user. A file of system-wide settings would be
    // skipped where others may write to a folder above it.
    use_own_home(line, request, &LOGIN);
    add_settings_file(line, request, &format!("home/{SETTINGS}"), &settings);
}

/// How the user logs in, by their settings.
fn login_kind(request: &LaunchRequest<'_>) -> Option<String> {
    let settings: Value = serde_json::from_str(request.login_file(SETTINGS)?).ok()?;
    settings.pointer("/security/auth/selectedType")?.as_str().map(str::to_owned)
}

/// Sets the keys and project names of the user's file of variables, and nothing else of it. A variable that is set comes first.
fn add_login_variables(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    for (name, value) in request.login_file(VARIABLES).into_iter().flat_map(str::lines).filter_map(assignment)
    {
        let is_of_login = LOGIN.key_variables.iter().chain(LOGIN.variables).any(|known| *known == name);
        if is_of_login && request.user_variable(name).is_none() {
            line.set(name, value);
        }
    }
}

/// Name and value of a line `NAME=value`, which may have `export` before it and quotes around the value.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let (name, value) = text.strip_prefix("export ").unwrap_or(text).split_once('=')?;
    let value = value.trim();
    let quoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    Some((name.trim(), quoted.unwrap_or(value)))
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
        cache_write: None,
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
