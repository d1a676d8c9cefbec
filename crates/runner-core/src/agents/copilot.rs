//! copilot (`copilot --output-format json`), a preset. It exits with 1 after a few retries, whatever failed.

use serde_json::Value;

use super::event::{AgentEvent, AgentEventKind};
use super::launch::{CommandLine, LaunchRequest};
use super::preset::{add_settings_file, set_key, use_own_home};
use super::preset_session::{CallEnd, PresetSession, fail, finish, message, reasoning, single};
use super::provider_error::classify_by_status;
use super::spec::{
    AgentSpec, MovableFolder, OutputFormat, PresetLogin, ReportedUsage, SHELL_STARTUP_FILES, Surroundings,
};
use super::transcript::{FailureInfo, LineParser, ParsedSession};
use super::truncate::{self, number, some_text, text};

pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "copilot",
    program: "copilot",
    package: "@github/copilot",
    npm_program: "@github/copilot-*/copilot",
    tested_versions: &["1.0.102"],
    surroundings: Surroundings {
        login: LOGIN,
        state_dirs: &[".cache/copilot"],
        // It runs commands in login shells.
        hidden_in_home: &SHELL_STARTUP_FILES,
        ..Surroundings::NONE
    },
    native: None,
    complete,
    reports: ReportedUsage::Nothing,
    output: OutputFormat {
        parser: || Box::new(CopilotParser::default()),
        classify: classify_by_status,
        ends_with_event: false,
    },
};

const LOGIN: PresetLogin = PresetLogin {
    key_variables: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
    variables: &["GH_HOST"],
    folder: Some(MovableFolder { variable: "COPILOT_HOME", in_home: ".copilot" }),
    files: &[CONFIG],
    file_text: Some("oggedInUser"),
    read_files: &[CONFIG],
    command: "copilot login",
    ..PresetLogin::NONE
};

/// The file with the login, among other settings.
const CONFIG: &str = ".copilot/config.json";

/// The keys of that file that are the login.
const LOGIN_KEYS: [&str; 6] = [
    "copilotTokens",
    "copilot_tokens",
    "lastLoggedInUser",
    "last_logged_in_user",
    "loggedInUsers",
    "logged_in_users",
];

/// The descriptions of these tools list the skills and sub-agents of home and repository.
const EXCLUDED_TOOLS: [&str; 5] = ["skill", "task", "list_agents", "read_agent", "write_agent"];
const WEB_TOOLS: [&str; 2] = ["web_fetch", "web_search"];

fn complete(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    line.args(["--allow-all-tools", "--output-format", "json", "--disable-builtin-mcps", "--no-auto-update"]);
    line.args(["--no-custom-instructions", "--no-ask-user", "--no-remote"]);
    let web = WEB_TOOLS.into_iter().filter(|_| request.has_no_web());
    line.args(["--excluded-tools", &EXCLUDED_TOOLS.into_iter().chain(web).collect::<Vec<_>>().join(",")]);
    line.set("COPILOT_AUTO_UPDATE", "false");
    use_own_home(line, request, &LOGIN);
    if let Some(login) = login(request) {
        add_settings_file(line, request, "home/config.json", &login);
    }
    if let Some(model) = &request.executor.model {
        line.set("COPILOT_MODEL", model);
    }
    if let Some(base_url) = &request.executor.base_url {
        line.set("COPILOT_OFFLINE", "true");
        line.set("COPILOT_PROVIDER_BASE_URL", base_url);
        set_key(line, "COPILOT_PROVIDER_API_KEY", request);
    }
}

/// The login without the other settings of its file, which has lines of comments. A provider of the configuration needs none.
fn login(request: &LaunchRequest<'_>) -> Option<Value> {
    let text = request.login_file(CONFIG).filter(|_| request.executor.base_url.is_none())?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let Value::Object(mut config) = serde_json::from_str(&lines.concat()).ok()? else { return None };
    config.retain(|key, _| LOGIN_KEYS.contains(&key.as_str()));
    Some(Value::Object(config))
}

#[derive(Debug, Default)]
struct CopilotParser {
    shared: PresetSession,
    /// The last failure; it counts if the session ends with a failing exit code.
    failure: Option<FailureInfo>,
}

impl LineParser for CopilotParser {
    fn parse_line(&mut self, line: &Value, session: &mut ParsedSession) -> Vec<AgentEvent> {
        let data = line.get("data").unwrap_or(&Value::Null);
        let kind = text(line, "type");
        match kind {
            "session.tools_updated" => self.shared.announce(None, some_text(data, "model"), session),
            "assistant.message" if text(data, "content").is_empty() => Vec::new(),
            "assistant.message" => message(text(data, "content")),
            "assistant.reasoning" => reasoning(text(data, "content")),
            "tool.execution_start" => {
                let input = data.get("arguments").unwrap_or(&Value::Null);
                vec![self.shared.calls.start(some_text(data, "toolCallId"), text(data, "toolName"), input)]
            }
            "tool.execution_complete" => {
                let end = CallEnd {
                    is_failed: data.get("success").and_then(Value::as_bool) == Some(false),
                    exit: data.pointer("/shellExecution/exitCode").and_then(Value::as_i64),
                };
                let result = data.pointer("/result/content").and_then(Value::as_str).unwrap_or_default();
                self.shared.end_call(some_text(data, "toolCallId").as_deref(), end, result, line)
            }
            "session.error" => {
                let text = truncate::name(text(data, "message"));
                self.failure = Some(FailureInfo::with_status(text.clone(), number(data, "statusCode")));
                single(AgentEventKind::Warning { text })
            }
            "result" => {
                session.identity.session_id = some_text(line, "sessionId");
                if number(line, "exitCode") == Some(0) {
                    return finish(session);
                }
                fail(self.failure.take().unwrap_or_default(), session)
            }
            _ if is_progress(kind) => Vec::new(),
            _ => vec![AgentEvent::unknown(line)],
        }
    }
}

/// Parts of messages that come whole later, and news about the program itself.
fn is_progress(kind: &str) -> bool {
    ["session.", "assistant.", "model.", "tool.", "user."].iter().any(|prefix| kind.starts_with(prefix))
}
