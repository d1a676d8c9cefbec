//! qwen (`qwen -o stream-json`), a preset that prints Claude Code's format. It exits with 0 even when not logged in, and
//! retries silently for a long time when the provider fails.

use std::collections::BTreeSet;
use std::ffi::OsString;

use serde_json::{Value, json};

use super::claude::parser::{CacheTokens, ClaudeParser};
use super::launch::{CommandLine, LaunchRequest};
use super::preset::{add_model, add_settings_file, insert, set_key, use_own_home};
use super::provider_error::classify_by_status;
use super::spec::{AgentSpec, MovableFolder, OutputFormat, PresetLogin, ReportedUsage, Surroundings};

pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "qwen",
    program: "qwen",
    package: "@qwen-code/qwen-code",
    npm_program: ".bin/qwen",
    tested_versions: &["0.24.4"],
    surroundings: Surroundings { login: LOGIN, node_min: Some(20), ..Surroundings::NONE },
    native: None,
    complete,
    reports: ReportedUsage::Tokens,
    output: OutputFormat {
        parser: || Box::new(ClaudeParser::new(CacheTokens::Included)),
        classify: classify_by_status,
        ends_with_event: false,
    },
};

const LOGIN: PresetLogin = PresetLogin {
    key_variables: &["OPENAI_API_KEY", "DASHSCOPE_API_KEY"],
    variables: &["OPENAI_BASE_URL", "OPENAI_MODEL"],
    folder: Some(MovableFolder { variable: "QWEN_HOME", in_home: ".qwen" }),
    files: &[".qwen/oauth_creds.json"],
    renewed_files: &[".qwen/oauth_creds.json"],
    read_files: &[SETTINGS],
    command: "qwen",
    ..PresetLogin::NONE
};

/// The user's settings, which say how they log in.
const SETTINGS: &str = ".qwen/settings.json";

/// The tools that a session may use without a question.
const TOOLS: &str = "agent,edit,get_goal,glob,grep_search,list_directory,notebook_edit,read_file,read_many_files,\
    run_shell_command,skill,todo_write,tool_call,tool_search,update_goal,write_file";
const WEB_TOOLS: &str = "web_fetch,web_search";

fn complete(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    // Safe mode: no context files, hooks, extensions, skills and MCP servers.
    line.args(["-o", "stream-json", "--chat-recording", "false", "--safe-mode"]);
    if request.has_no_web() {
        line.args(["--allowed-tools", TOOLS, "--exclude-tools", WEB_TOOLS]);
    } else {
        line.args(["--allowed-tools", &format!("{TOOLS},{WEB_TOOLS}")]);
    }
    use_own_home(line, request, &LOGIN);
    // In a folder that is not trusted, it reads no variables from files of the repository. No folder is.
    let mut security = json!({ "folderTrust": { "enabled": true } });
    let mut settings = json!({});
    if let Some(users) = users_settings(request) {
        for key in ["model", "modelProviders"] {
            users.get(key).into_iter().for_each(|value| insert(&mut settings, key, value.clone()));
        }
        users
            .pointer("/security/auth")
            .into_iter()
            .for_each(|auth| insert(&mut security, "auth", auth.clone()));
        add_keys(line, request, &users);
    }
    insert(&mut settings, "security", security);
    let path = add_settings_file(line, request, "qwen.json", &settings);
    line.set("QWEN_CODE_SYSTEM_SETTINGS_PATH", path);
    let trusted = add_settings_file(line, request, "qwen-trusted.json", &json!({}));
    line.set("QWEN_CODE_TRUSTED_FOLDERS_PATH", trusted);
    add_model(line, "-m", request);
    if let Some(base_url) = &request.executor.base_url {
        line.args(["--auth-type", "openai", "--openai-base-url", base_url]);
        set_key(line, "OPENAI_API_KEY", request);
    }
}

/// The user's settings, unless the configuration names another provider.
fn users_settings(request: &LaunchRequest<'_>) -> Option<Value> {
    let text = request.login_file(SETTINGS).filter(|_| request.executor.base_url.is_none())?;
    serde_json::from_str(text).ok()
}

/// Sets the keys of the providers in the user's settings, from their environment or the settings, and no other variable.
fn add_keys(line: &mut CommandLine, request: &LaunchRequest<'_>, users: &Value) {
    let providers = users.get("modelProviders").and_then(Value::as_object).into_iter().flatten();
    let models = providers.flat_map(|(_, models)| models.as_array().into_iter().flatten());
    let names =
        models.filter_map(|model| model.get("envKey")?.as_str()).chain(LOGIN.key_variables.iter().copied());
    for name in names.collect::<BTreeSet<_>>() {
        let in_settings = || users.get("env")?.get(name)?.as_str().map(OsString::from);
        if let Some(value) = request.user_variable(name).cloned().or_else(in_settings) {
            line.set(name, value);
        }
    }
}
