//! Claude Code (`claude -p --output-format stream-json`), a native agent whose commands the runner sandboxes.

mod failure;
mod launch;
pub(super) mod parser;

pub use launch::can_launch_commands_through;

use super::spec::{
    AgentLogin, AgentProvider, AgentSandbox, AgentSpec, NativeAgent, NativeFeatures, OutputFormat,
    ProviderRoute, ReportedUsage, Surroundings, ToolControl,
};
use crate::config::{ExecutorKind, ReasoningEffort};

pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "claude",
    program: "claude",
    package: "@anthropic-ai/claude-code",
    npm_program: "@anthropic-ai/claude-code-*/claude",
    tested_versions: &["2.1.326", "2.1.327"],
    surroundings: Surroundings::NONE,
    native: Some(NATIVE),
    complete: launch::complete,
    reports: ReportedUsage::TokensAndCost,
    output: OutputFormat {
        parser: || Box::new(parser::ClaudeParser::new(parser::CacheTokens::Separate)),
        classify: failure::classify,
        ends_with_event: true,
    },
};

const NATIVE: NativeAgent = NativeAgent {
    kind: ExecutorKind::Claude,
    title: "Claude Code",
    login: AgentLogin {
        command: "claude auth login",
        key_variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        home_variable: "CLAUDE_CONFIG_DIR",
        home_dir: ".claude",
        file: ".credentials.json",
    },
    provider: AgentProvider {
        variable: Some("ANTHROPIC_BASE_URL"),
        path: "",
        routes: &[ProviderRoute { header: None, url: "https://api.anthropic.com" }],
    },
    variables: &["ANTHROPIC_BASE_URL"],
    sandbox: AgentSandbox::AroundCommands,
    features: NativeFeatures {
        efforts: &[
            ReasoningEffort::Low,
            ReasoningEffort::Medium,
            ReasoningEffort::High,
            ReasoningEffort::Xhigh,
            ReasoningEffort::Max,
        ],
        tool_control: ToolControl::ByName,
        has_context_budget: false,
        retries_need_base_url: false,
        reports_version: true,
    },
};
