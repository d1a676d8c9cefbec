//! The `[executor]` table: which agent does the work, and how to start it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CommandArgv, McpServer, NetworkAccess, read_keys, read_optional_keys};
use crate::agents::{
    ACP_OUTPUT, AGENTS, AgentSpec, NativeAgent, NativeFeatures, OutputFormat, Preset, agent_of_kind,
};
use crate::strict::{BoundedInt, TomlTable};

/// The size of a context in tokens.
pub type Tokens = BoundedInt<1_000, 100_000_000>;
/// How often a failed request is sent again.
pub type Retries = BoundedInt<0, 100>;

/// The agent that does the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct Executor {
    /// The agent: "codex", "claude", "acp" (any program that speaks the Agent Client Protocol), "command" (any program or a
    /// preset) or "script" (a scripted scenario).
    #[schemars(extend("examples" = ["claude"]))]
    pub kind: ExecutorKind,
    /// Model, for "codex", "claude" and presets [default: the agent's default].
    #[schemars(extend("examples" = ["gpt-6.1-sol"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Reasoning effort, for "codex" ("minimal" to "xhigh") and "claude" ("low" to "max") [default: the agent's default].
    #[schemars(with = "Option<ReasoningEffort>", extend("examples" = ["high"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
    /// Path of the agent's program, for "codex", "claude" and presets [default: looked up on the PATH].
    #[schemars(extend("examples" = ["/opt/agents/codex"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// End a session when its context exceeds this many tokens, for "codex" [default: 90% of the model's context].
    #[schemars(with = "Option<Tokens>", extend("examples" = [150_000]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_budget_tokens: Option<Tokens>,
    /// URL of another provider, such as a gateway or a local model, for "codex", "claude" and presets [default: the
    /// agent's provider].
    #[schemars(extend("examples" = ["http://127.0.0.1:8080/v1"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Name of the environment variable that holds the key for `base_url`.
    #[schemars(extend("examples" = ["MY_GATEWAY_KEY"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// How often the agent retries a failed request, for "claude", and for "codex" with `base_url` [default: the agent's
    /// default].
    #[schemars(with = "Option<Retries>", extend("examples" = [4]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Extra environment variables to pass to the agent and its commands, for "codex", "claude" and presets; `*` at the
    /// end matches any suffix.
    pub env_inherit: Vec<String>,
    /// Program and arguments, for "command" and "acp".
    #[schemars(extend("examples" = [["my-agent", "--quiet"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandArgv>,
    /// A program that the runner knows how to start, for "command"; use it instead of `command`.
    #[schemars(with = "Option<Preset>", extend("examples" = ["opencode"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Scenario file, for "script".
    #[schemars(extend("examples" = ["demo.toml"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Whether to keep the agent from writing outside the repository: "auto" uses Codex's built-in sandbox, and
    /// bubblewrap (on macOS: Seatbelt) for other agents where it works; "require" refuses to run a session without a
    /// sandbox; "podman" runs the agent in a container of `image`, for "command"; "off" allows the agent to write wherever
    /// you can.
    pub sandbox: SandboxMode,
    /// The image with the agent's program, for `sandbox = "podman"`, such as that of your devcontainer.
    #[schemars(extend("examples" = ["localhost/my-devcontainer:latest"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Folders outside the repository that the agent may write to, such as caches: absolute paths, or paths in your home
    /// (`~/…`).
    #[schemars(extend("examples" = [["~/.my-agent"]]), inner(pattern(r"^(/|~/)")))]
    pub writable: Vec<String>,
    /// What the commands of "codex", "claude" and presets may reach: "none", except for presets; "registries", so that
    /// package managers can install dependencies, which also makes their caches writable; or "full" [default: "none" for
    /// codex, the network but no caches for others].
    #[schemars(with = "Option<NetworkAccess>", extend("examples" = ["registries"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkAccess>,
    /// MCP servers for "codex" and "claude", each as "NAME=PROGRAM ARGUMENTS" or "NAME=URL". They run outside the sandbox.
    #[schemars(extend("examples" = [["docs=docs-server --stdio"]]))]
    pub mcp: Vec<String>,
    /// Files with the repository's own instructions for agents. The first that exists when the run starts is part of every
    /// prompt; with none ([]), no file is.
    pub instructions: Vec<String>,
    /// Record every request of the agent and its answer in the iteration's folder (`requests.jsonl`), without keys, through
    /// a recorder on this machine. For "codex", "claude", and presets with `base_url`; needs `curl`.
    pub record: bool,
    /// Folder of a recorded run, such as `.runner/iterations/RUN`: the agent gets the answers recorded there in place of
    /// its provider's, and works offline.
    #[schemars(extend("examples" = ["../recorded-run"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
}

/// When agents run in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SandboxMode {
    Auto,
    Require,
    Podman,
    Off,
}

/// The ways to start an agent. A native agent (see [`AGENTS`]) has a kind of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ExecutorKind {
    Codex,
    Claude,
    Acp,
    Command,
    Script,
}

impl ExecutorKind {
    /// The kind's name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Acp => "acp",
            Self::Command => "command",
            Self::Script => "script",
        }
    }
}

/// How hard a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ReasoningEffort {
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl ReasoningEffort {
    /// The effort's name, which is the same for all agents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl Default for Executor {
    fn default() -> Self {
        Self {
            kind: ExecutorKind::Codex,
            model: None,
            effort: None,
            program: None,
            context_budget_tokens: None,
            base_url: None,
            key_env: None,
            retries: None,
            env_inherit: Vec::new(),
            command: None,
            preset: None,
            scenario: None,
            sandbox: SandboxMode::Auto,
            image: None,
            writable: Vec::new(),
            network: None,
            mcp: Vec::new(),
            instructions: ["AGENTS.md", "CLAUDE.md"].map(str::to_owned).into(),
            record: false,
            replay: None,
        }
    }
}

impl Executor {
    /// The agent of the registry that this table starts; none for an arbitrary command and for a script.
    pub fn agent(&self) -> Option<&'static AgentSpec> {
        match self.kind {
            ExecutorKind::Command => self.preset.map(Preset::agent),
            ExecutorKind::Codex | ExecutorKind::Claude | ExecutorKind::Acp | ExecutorKind::Script => {
                agent_of_kind(self.kind)
            }
        }
    }

    /// How to read what the agent prints; none for an arbitrary command and for a script.
    pub fn output_format(&self) -> Option<&'static OutputFormat> {
        match self.kind {
            ExecutorKind::Acp => Some(&ACP_OUTPUT),
            ExecutorKind::Codex | ExecutorKind::Claude | ExecutorKind::Command | ExecutorKind::Script => {
                self.agent().map(|agent| &agent.output)
            }
        }
    }

    /// An executor for an agent of the registry, with default settings.
    pub fn for_agent(agent: &'static AgentSpec) -> Self {
        match agent.native() {
            Some(native) => Self { kind: native.kind, ..Self::default() },
            None => Self { kind: ExecutorKind::Command, preset: Preset::of(agent), ..Self::default() },
        }
    }

    /// The keys of the table as TOML, without its header.
    pub fn table(&self) -> String {
        // Strings, numbers and lists of strings are the same in JSON and TOML.
        let keys = serde_json::to_value(self).unwrap_or_default();
        let keys = keys.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        keys.map(|(key, value)| format!("{key} = {value}\n")).collect()
    }
}

/// Which executors may have a key.
#[derive(Clone, Copy, Debug)]
enum KeyOwner {
    Kind(ExecutorKind),
    /// Any program that the configuration names.
    Program,
    /// Native agents with this feature.
    Native(fn(&NativeFeatures) -> bool),
    NativeAndPresets,
}

impl KeyOwner {
    fn accepts(self, executor: &Executor) -> bool {
        match self {
            Self::Kind(kind) => executor.kind == kind,
            Self::Program => matches!(executor.kind, ExecutorKind::Command | ExecutorKind::Acp),
            Self::Native(has_feature) => {
                executor.native().is_some_and(|native| has_feature(&native.features))
            }
            Self::NativeAndPresets => executor.agent().is_some(),
        }
    }

    /// The owners, as `"codex" and "claude"`.
    fn names(self) -> String {
        let native = |has_feature: fn(&NativeFeatures) -> bool| -> Vec<String> {
            let agents = AGENTS.into_iter().filter_map(AgentSpec::native);
            let owners = agents.filter(|native| has_feature(&native.features));
            owners.map(|native| format!("\"{}\"", native.kind.as_str())).collect()
        };
        match self {
            Self::Kind(kind) => format!("kind \"{}\"", kind.as_str()),
            Self::Program => "kind \"command\" and \"acp\"".to_owned(),
            Self::Native(has_feature) => format!("kind {}", native(has_feature).join(" and ")),
            Self::NativeAndPresets => format!("kind {} and for presets", native(|_| true).join(" and ")),
        }
    }
}

impl Executor {
    pub(super) fn take(table: &mut TomlTable<'_>, default: Self) -> Self {
        let mut executor = default;
        read_keys!(table, executor: kind, env_inherit, sandbox, writable, mcp, instructions, record);
        read_optional_keys!(table, executor: model, effort, program, context_budget_tokens, base_url, key_env, retries);
        read_optional_keys!(table, executor: command, preset, scenario, image, network, replay);
        // With an unknown kind or preset it is not clear which other keys are valid.
        if !table.has_problem("kind") && !table.has_problem("preset") {
            executor.check_owners(table);
            executor.check_dependencies(table);
        }
        executor.check_values(table);
        executor
    }

    fn native(&self) -> Option<&'static NativeAgent> {
        self.agent().and_then(AgentSpec::native)
    }

    /// Reports keys that this kind of executor does not have.
    fn check_owners(&self, table: &mut TomlTable<'_>) {
        let any_native = KeyOwner::Native(|_| true);
        let has_context_budget = KeyOwner::Native(|features| features.has_context_budget);
        let command = KeyOwner::Kind(ExecutorKind::Command);
        let script = KeyOwner::Kind(ExecutorKind::Script);
        let keys = [
            ("model", KeyOwner::NativeAndPresets, self.model.is_some()),
            ("effort", any_native, self.effort.is_some()),
            ("program", KeyOwner::NativeAndPresets, self.program.is_some()),
            ("context_budget_tokens", has_context_budget, self.context_budget_tokens.is_some()),
            ("base_url", KeyOwner::NativeAndPresets, self.base_url.is_some()),
            ("key_env", KeyOwner::NativeAndPresets, self.key_env.is_some()),
            ("retries", any_native, self.retries.is_some()),
            ("env_inherit", KeyOwner::NativeAndPresets, !self.env_inherit.is_empty()),
            ("network", KeyOwner::NativeAndPresets, self.network.is_some()),
            ("mcp", any_native, !self.mcp.is_empty()),
            ("record", KeyOwner::NativeAndPresets, self.record),
            ("replay", KeyOwner::NativeAndPresets, self.replay.is_some()),
            ("command", KeyOwner::Program, self.command.is_some()),
            ("preset", command, self.preset.is_some()),
            ("scenario", script, self.scenario.is_some()),
        ];
        for (key, owner, is_present) in keys {
            if is_present && !owner.accepts(self) {
                let rule = format!("is only valid for {}: remove it or change `kind`", owner.names());
                table.report_rule(key, rule);
            }
        }
    }

    /// Reports keys whose value needs another key, or excludes it.
    fn check_dependencies(&self, table: &mut TomlTable<'_>) {
        let is_command = self.kind == ExecutorKind::Command;
        if is_command && self.command.is_none() && self.preset.is_none() && !table.has_problem("command") {
            table.report_rule("kind", "is \"command\": add `command` or `preset`");
        }
        if self.kind == ExecutorKind::Acp && self.command.is_none() && !table.has_problem("command") {
            table.report_rule("kind", "is \"acp\": add `command`");
        }
        if self.command.is_some() && self.preset.is_some() {
            table.report_rule("preset", "cannot be used together with `command`: remove one of them");
        }
        let lacks_scenario = self.scenario.is_none() && !table.has_problem("scenario");
        if self.kind == ExecutorKind::Script && lacks_scenario {
            table.report_rule("kind", "is \"script\": add `scenario`");
        }
        if self.preset.is_some() && self.base_url.is_some() && self.model.is_none() {
            table.report_rule("base_url", "needs `model`: a preset cannot query a provider for its models");
        }
        if self.network == Some(NetworkAccess::None) && self.sandbox == SandboxMode::Off {
            table.report_rule("network", "needs a sandbox: remove it, or `sandbox = \"off\"`");
        }
        if self.network == Some(NetworkAccess::None) && self.preset.is_some() {
            let rule = "is \"none\", with which a preset could not reach its provider, because all of it runs in the \
                        sandbox: use \"registries\" or \"full\"";
            table.report_rule("network", rule);
        }
        self.check_container(table);
        self.check_recorder(table);
        if let Some(native) = self.native() {
            self.check_native_keys(native, table);
        }
    }

    /// A container holds the whole agent, and its image must have the agent's program.
    fn check_container(&self, table: &mut TomlTable<'_>) {
        let is_container = self.sandbox == SandboxMode::Podman;
        if is_container && self.kind != ExecutorKind::Command {
            let rule =
                "is \"podman\", which is only valid for kind \"command\": use \"auto\" or change `kind`";
            table.report_rule("sandbox", rule);
        }
        match (&self.image, is_container) {
            (None, true) if !table.has_problem("image") => {
                table.report_rule("sandbox", "is \"podman\": add `image`");
            }
            (Some(_), false) => {
                table.report_rule("image", "needs `sandbox = \"podman\"`: add it, or remove this key");
            }
            (None | Some(_), _) => {}
        }
    }

    /// The recorder is on this machine, between the agent and a provider that is known.
    fn check_recorder(&self, table: &mut TomlTable<'_>) {
        let keys = [("record", self.record), ("replay", self.replay.is_some())];
        for (key, _) in keys.into_iter().filter(|(_, is_set)| *is_set) {
            if self.preset.is_some() && self.base_url.is_none() {
                table.report_rule(key, "needs `base_url`: the provider of a preset is not known");
            }
            if self.sandbox == SandboxMode::Podman {
                table.report_rule(key, "does not work with `sandbox = \"podman\"`: remove one of them");
            }
        }
    }

    fn check_native_keys(&self, native: &NativeAgent, table: &mut TomlTable<'_>) {
        if native.features.retries_need_base_url && self.retries.is_some() && self.base_url.is_none() {
            let rule = format!("needs `base_url`: the retries of {}'s own provider are fixed", native.title);
            table.report_rule("retries", rule);
        }
        if let Some(effort) = self.effort.filter(|effort| !native.features.efforts.contains(effort)) {
            let supported: Vec<&str> = native.features.efforts.iter().map(|effort| effort.as_str()).collect();
            let rule = format!(
                "is \"{}\", which {} does not support: use {}",
                effort.as_str(),
                native.title,
                supported.join(", ")
            );
            table.report_rule("effort", rule);
        }
    }

    /// Reports values that are invalid for every kind.
    fn check_values(&self, table: &mut TomlTable<'_>) {
        let is_url = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        if self.base_url.as_ref().is_some_and(|url| !is_url(url)) {
            table.report_rule("base_url", "must start with http:// or https://");
        }
        if self.key_env.as_deref().is_some_and(|name| !is_variable(name)) {
            table.report_rule("key_env", "must be the name of an environment variable, not the key itself");
        }
        let is_pattern = |name: &String| is_variable(name.strip_suffix('*').unwrap_or(name));
        if !self.env_inherit.iter().all(is_pattern) {
            table.report_rule(
                "env_inherit",
                "must contain variable names; `*` is allowed at the end of a name",
            );
        }
        if !self.writable.iter().all(|path| path.starts_with('/') || path.starts_with("~/")) {
            table.report_rule("writable", "must contain folders that start with `/` or `~/`");
        }
        if !self.mcp.iter().all(|entry| McpServer::parse(entry).is_some()) {
            table.report_rule(
                "mcp",
                "must contain entries like \"docs=docs-server --stdio\" or \"docs=https://…\"",
            );
        }
        if !self.instructions.iter().all(|file| is_repository_path(file)) {
            table.report_rule("instructions", "must contain files of the repository, relative to its root");
        }
        for (key, text) in [
            ("model", &self.model),
            ("program", &self.program),
            ("scenario", &self.scenario),
            ("image", &self.image),
            ("replay", &self.replay),
        ] {
            if text.as_ref().is_some_and(String::is_empty) {
                table.report_rule(key, "is empty: set a value or remove the key");
            }
        }
    }
}

/// Whether this is a relative path that stays in the repository.
fn is_repository_path(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('/') && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn is_variable(name: &str) -> bool {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests;
