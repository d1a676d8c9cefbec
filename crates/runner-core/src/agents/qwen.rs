//! qwen (`qwen -o stream-json`), a preset that prints Claude Code's format. It exits with 0 even when not logged in, and
//! retries silently for a long time when the provider fails.

use serde_json::json;

use super::claude::parser::{CacheTokens, ClaudeParser};
use super::launch::{CommandLine, LaunchRequest};
use super::preset::{add_model, add_settings_file, set_key};
use super::provider_error::classify_by_status;
use super::spec::{AgentSpec, OutputFormat, ReportedUsage, Surroundings};

pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "qwen",
    program: "qwen",
    package: "@qwen-code/qwen-code",
    npm_program: ".bin/qwen",
    tested_versions: &["0.24.4"],
    surroundings: Surroundings {
        state_dirs: &[".qwen"],
        login_files: &[".qwen/oauth_creds.json", ".qwen/settings.json", ".qwen/.env"],
        node_min: Some(20),
        ..Surroundings::NONE
    },
    native: None,
    complete,
    reports: ReportedUsage::Tokens,
    output: OutputFormat {
        parser: || Box::new(ClaudeParser::new(CacheTokens::Included)),
        classify: classify_by_status,
        ends_with_event: false,
    },
};

/// The tools that a session may use without a question.
const TOOLS: &str = "agent,edit,get_goal,glob,grep_search,list_directory,notebook_edit,read_file,read_many_files,\
    run_shell_command,skill,todo_write,tool_call,tool_search,update_goal,web_fetch,web_search,write_file";

fn complete(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    // Safe mode: no context files, hooks, extensions, skills and MCP servers.
    line.args(["-o", "stream-json", "--chat-recording", "false", "--safe-mode", "--allowed-tools", TOOLS]);
    // In a folder that is not trusted, it reads no variables from files of the repository. No folder is.
    let settings = json!({ "security": { "folderTrust": { "enabled": true } } });
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
