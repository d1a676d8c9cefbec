//! qwen (`qwen -o stream-json`), a preset that prints Claude Code's format. It exits with 0 even when not logged in, and
//! retries silently for a long time when the provider fails.

use super::claude::parser::{CacheTokens, ClaudeParser};
use super::launch::{CommandLine, LaunchRequest};
use super::preset::{add_model, set_key};
use super::provider_error::classify_by_status;
use super::spec::{AgentSpec, OutputFormat, ReportedUsage};

pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "qwen",
    program: "qwen",
    package: "@qwen-code/qwen-code",
    npm_program: ".bin/qwen",
    tested_versions: &["0.24.4"],
    state_dirs: &[".qwen"],
    native: None,
    complete,
    reports: ReportedUsage::Tokens,
    output: OutputFormat {
        parser: || Box::new(ClaudeParser::new(CacheTokens::Included)),
        classify: classify_by_status,
        ends_with_event: false,
    },
};

fn complete(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    // Safe mode: no context files, hooks, extensions, skills and MCP servers.
    line.args(["-y", "-o", "stream-json", "--chat-recording", "false", "--safe-mode"]);
    add_model(line, "-m", request);
    if let Some(base_url) = &request.executor.base_url {
        line.args(["--auth-type", "openai", "--openai-base-url", base_url]);
        set_key(line, "OPENAI_API_KEY", request);
    }
}
