//! Codex (`codex exec --json`), a native agent with a sandbox of its own.

mod failure;
mod launch;
mod parser;

use super::spec::{
    AgentLogin, AgentProvider, AgentSandbox, AgentSpec, NativeAgent, NativeFeatures, OutputFormat,
    ProviderRoute, ReportedUsage, Surroundings, ToolControl, ToolSwitch,
};
use crate::config::{ExecutorKind, ReasoningEffort};

pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "codex",
    program: "codex",
    package: "@openai/codex",
    npm_program: "@openai/codex-*/vendor/*/bin/codex",
    tested_versions: &["0.169.0"],
    surroundings: Surroundings::NONE,
    native: Some(NATIVE),
    complete: launch::complete,
    reports: ReportedUsage::Tokens,
    output: OutputFormat {
        parser: || Box::new(parser::CodexParser),
        classify: failure::classify,
        ends_with_event: true,
    },
};

const NATIVE: NativeAgent = NativeAgent {
    kind: ExecutorKind::Codex,
    title: "Codex",
    login: AgentLogin {
        command: "codex login",
        key_variables: &["CODEX_API_KEY", "OPENAI_API_KEY"],
        home_variable: "CODEX_HOME",
        home_dir: ".codex",
        file: "auth.json",
    },
    provider: AgentProvider {
        variable: None,
        path: "/v1",
        routes: &[
            // A login with a ChatGPT account has an address of its own.
            ProviderRoute {
                header: Some("chatgpt-account-id"),
                url: "https://chatgpt.com/backend-api/codex",
            },
            ProviderRoute { header: None, url: "https://api.openai.com/v1" },
        ],
    },
    variables: &[],
    sandbox: AgentSandbox::BuiltIn,
    features: NativeFeatures {
        efforts: &[
            ReasoningEffort::Minimal,
            ReasoningEffort::Low,
            ReasoningEffort::Medium,
            ReasoningEffort::High,
            ReasoningEffort::Xhigh,
        ],
        tool_control: ToolControl::Switches(&SWITCHES),
        has_context_budget: true,
        // Codex's own provider has a fixed number of retries.
        retries_need_base_url: true,
        reports_version: false,
    },
};

/// The tools that can be switched off. Codex needs the others.
const SWITCHES: [ToolSwitch; 3] = [
    ToolSwitch { tool: "shell", off: ["--disable", "shell_tool"] },
    ToolSwitch { tool: "web_search", off: WEB_SEARCH_OFF },
    ToolSwitch { tool: "view_image", off: ["--disable", "view_image"] },
];

const WEB_SEARCH_OFF: [&str; 2] = ["-c", "web_search=\"disabled\""];
