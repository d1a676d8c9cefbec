//! grok (`grok --output-format streaming-messages-json`), a preset that prints Claude Code's format. It exits with 1 when
//! something failed.

use std::path::PathBuf;

use super::claude::parser::{CacheTokens, ClaudeParser};
use super::launch::{CommandLine, LaunchRequest, SetupFile};
use super::preset::{add_model, set_key};
use super::provider_error::classify_by_status;
use super::spec::{AgentSpec, OutputFormat, ReportedUsage, Surroundings};

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
const DENIED: &str = "ask_user_question,monitor,scheduler_create,scheduler_delete,scheduler_list,workflow,send_feedback,\
    image_gen,image_edit,image_to_video,reference_to_video";

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

/// It loads plugins and variables of Claude Code whatever its settings say.
const SURROUNDINGS: Surroundings = Surroundings {
    hidden_in_home: &[".agents", ".claude", ".cursor"],
    login_files: &[".grok/auth.json"],
    state_dirs: &[".grok"],
    ..Surroundings::NONE
};

/// The variable that names its home, and the one that names the file with the login.
const HOME_VARIABLE: &str = "GROK_HOME";
const LOGIN_VARIABLE: &str = "GROK_AUTH_PATH";

/// Skills that other agents share.
const CONFIG: &str = "[skills]\nignore = [\"~/.agents\", \"~/.claude\", \"~/.cursor\"]\n";

fn complete(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    line.args(["--prompt-file", "/dev/stdin", "--output-format", "streaming-messages-json"]);
    line.args(["--permission-mode", "bypassPermissions", "--disallowed-tools", DENIED]);
    line.args(["--no-plan", "--no-subagents"]);
    add_model(line, "-m", request);
    for name in OFF {
        line.set(name, "0");
    }
    use_own_home(line, request);
    line.set("GROK_TELEMETRY_ENABLED", "false");
    line.set("GROK_DISABLE_AUTOUPDATER", "1");
    if let Some(base_url) = &request.executor.base_url {
        line.set("GROK_XAI_API_BASE_URL", base_url);
        line.set("GROK_MODELS_BASE_URL", base_url);
        set_key(line, "XAI_API_KEY", request);
    }
}

/// A home of the session's own, without the user's instructions, skills and MCP servers. The login stays where it is: it is renewed
/// by replacing its file.
fn use_own_home(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let home = request.context.settings_dir.join("home");
    let path = |name: &str| request.user_variable(name).map(PathBuf::from);
    let users = path(HOME_VARIABLE).or_else(|| path("HOME").map(|folder| folder.join(".grok")));
    let login = path(LOGIN_VARIABLE).or_else(|| users.map(|users| users.join("auth.json")));
    if let Some(login) = login.filter(|_| request.executor.base_url.is_none()) {
        line.set(LOGIN_VARIABLE, login);
    }
    let config = SetupFile { path: home.join("config.toml"), text: CONFIG.to_owned(), is_program: false };
    line.files.push(config);
    line.set(HOME_VARIABLE, home);
}
