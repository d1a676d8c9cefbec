//! grok (`grok --output-format streaming-messages-json`), a preset that prints Claude Code's format. It exits with 1 when
//! something failed.

use super::claude::parser::{CacheTokens, ClaudeParser};
use super::launch::{CommandLine, LaunchRequest, SetupFile};
use super::preset::{add_model, set_key, use_own_home};
use super::provider_error::classify_by_status;
use super::spec::{AgentSpec, MovableFolder, OutputFormat, PresetLogin, ReportedUsage, Surroundings};

pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "grok",
    program: "grok",
    package: "@xai-official/grok",
    npm_program: ".bin/grok",
    tested_versions: &["1.0.41"],
    surroundings: SURROUNDINGS,
    native: None,
    complete,
    reports: ReportedUsage::Tokens,
    output: OutputFormat {
        parser: || Box::new(ClaudeParser::new(CacheTokens::Separate)),
        classify: classify_by_status,
        ends_with_event: false,
    },
};

/// Tools that ask the user, wait, outlive the session, or make pictures.
const DENIED: [&str; 11] = [
    "ask_user_question",
    "monitor",
    "scheduler_create",
    "scheduler_delete",
    "scheduler_list",
    "workflow",
    "send_feedback",
    "image_gen",
    "image_edit",
    "image_to_video",
    "reference_to_video",
];
const WEB_TOOLS: [&str; 2] = ["web_fetch", "web_search"];

/// What it would load from the settings of other agents, and from earlier sessions.
const OFF: [&str; 12] = [
    "GROK_MEMORY",
    "GROK_WORKFLOWS",
    "GROK_CLAUDE_AGENTS_ENABLED",
    "GROK_CLAUDE_HOOKS_ENABLED",
    "GROK_CLAUDE_MCPS_ENABLED",
    "GROK_CLAUDE_RULES_ENABLED",
    "GROK_CLAUDE_SKILLS_ENABLED",
    "GROK_CURSOR_AGENTS_ENABLED",
    "GROK_CURSOR_HOOKS_ENABLED",
    "GROK_CURSOR_MCPS_ENABLED",
    "GROK_CURSOR_RULES_ENABLED",
    "GROK_CURSOR_SKILLS_ENABLED",
];

/// It loads plugins and variables of Claude Code whatever its settings say, and reads the start-up files of the shell for its commands.
const SURROUNDINGS: Surroundings = Surroundings {
    login: LOGIN,
    hidden_in_home: &[".agents", ".claude", ".cursor", ".bash_profile", ".bash_login", ".profile", ".bashrc"],
    ..Surroundings::NONE
};

const LOGIN: PresetLogin = PresetLogin {
    key_variables: &["XAI_API_KEY"],
    folder: Some(MovableFolder { variable: "GROK_HOME", in_home: ".grok" }),
    files: &[".grok/auth.json"],
    renewed_files: &[".grok/auth.json"],
    command: "grok login",
    ..PresetLogin::NONE
};

/// Skills that other agents share.
const CONFIG: &str = "[skills]\nignore = [\"~/.agents\", \"~/.claude\", \"~/.cursor\"]\n";

fn complete(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    line.args(["--prompt-file", "/dev/stdin", "--output-format", "streaming-messages-json"]);
    let web = WEB_TOOLS.into_iter().filter(|_| request.has_no_web());
    let denied: Vec<&str> = DENIED.into_iter().chain(web).collect();
    line.args(["--permission-mode", "bypassPermissions", "--disallowed-tools", &denied.join(",")]);
    line.args(["--no-plan", "--no-subagents"]);
    add_model(line, "-m", request);
    for name in OFF {
        line.set(name, "0");
    }
    let home = use_own_home(line, request, &LOGIN);
    let config = SetupFile { path: home.join("config.toml"), text: CONFIG.to_owned(), is_program: false };
    line.files.push(config);
    line.set("GROK_TELEMETRY_ENABLED", "false");
    line.set("GROK_DISABLE_AUTOUPDATER", "1");
    if let Some(base_url) = &request.executor.base_url {
        line.set("GROK_XAI_API_BASE_URL", base_url);
        line.set("GROK_MODELS_BASE_URL", base_url);
        set_key(line, "XAI_API_KEY", request);
    }
}
