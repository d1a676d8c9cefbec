//! gemini (`gemini -o stream-json`), a preset. It exits with 145 when not logged in, and retries silently for a long
//! time when the provider fails.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::event::{AgentEvent, AgentEventKind};
use super::launch::{CommandLine, LaunchRequest, SetupFile, SetupLink};
use super::preset::{add_model, add_settings_file, insert, set_key};
use super::preset_session::{CallEnd, PresetSession, TokenCount, add_usage, fail, finish, message, single};
use super::provider_error::classify_by_status;
use super::spec::{AgentSpec, OutputFormat, ReportedUsage, Surroundings};
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

const SURROUNDINGS: Surroundings = Surroundings {
    node_min: Some(20),
    login_settings: Some(".gemini/settings.json"),
    login_files: &[
        ".gemini/settings.json",
        ".gemini/.env",
        ".gemini/oauth_creds.json",
        ".gemini/google_accounts.json",
        ".gemini/gemini-credentials.json",
    ],
    state_dirs: &[".gemini"],
    ..Surroundings::NONE
};

/// Its folder in the home.
const FOLDER: &str = ".gemini";

/// The files of a login in that folder.
const LOGIN_FILES: [&str; 3] = ["oauth_creds.json", "google_accounts.json", "gemini-credentials.json"];

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
        link_login(line, request);
    }
    insert(&mut settings, "security", security);
    // Its own home: no GEMINI.md, settings, extensions and sub-agents of the user. A file of system-wide settings would be
    // skipped where others may write to a folder above it.
    add_settings_file(line, request, &format!("home/{FOLDER}/settings.json"), &settings);
    line.set("GEMINI_CLI_HOME", request.context.settings_dir.join("home"));
}

/// How the user logs in, by their settings.
fn login_kind(request: &LaunchRequest<'_>) -> Option<String> {
    let settings: Value = serde_json::from_str(request.context.user.login_settings?).ok()?;
    settings.pointer("/security/auth/selectedType")?.as_str().map(str::to_owned)
}

/// Links the user's login into the session's home. Of the variables in `.env`, it takes only keys and project names.
fn link_login(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let path = |name: &str| request.user_variable(name).map(PathBuf::from);
    let Some(users) = path("GEMINI_CLI_HOME").or_else(|| path("HOME")) else { return };
    let home = request.context.settings_dir.join("home");
    let links = LOGIN_FILES.map(|file| (home.join(FOLDER).join(file), users.join(FOLDER).join(file)));
    let env = (home.join(".env"), users.join(FOLDER).join(".env"));
    line.links.extend(links.into_iter().chain([env]).map(|(path, target)| SetupLink { path, target }));
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
