//! The `[executor]` table: which agent does the work, and how it is started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CommandArgv, Table};
use crate::agents::Preset;
use crate::strict::BoundedInt;

/// Tokens of a context.
pub type Tokens = BoundedInt<1_000, 100_000_000>;
/// How often a request is sent again.
pub type Retries = BoundedInt<0, 100>;

/// The agent program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct Executor {
    /// "codex", "claude", "command" (any program) or "script" (a scenario played back).
    #[schemars(extend("examples" = ["claude"]))]
    pub kind: ExecutorKind,
    /// The model to ask for, with kind "codex" or "claude" or with a preset; without it the agent's own default.
    #[schemars(extend("examples" = ["gpt-5.5"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How much the model thinks, with kind "codex" ("minimal" to "xhigh") or "claude" ("low" to "max").
    #[schemars(with = "Option<ReasoningEffort>", extend("examples" = ["high"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
    /// Where the agent's program is, with kind "codex" or "claude" or with a preset; without it the PATH says so.
    #[schemars(extend("examples" = ["/opt/agents/codex"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// A session whose context grows beyond so many tokens is ended, with kind "codex"; without it at nine tenths of
    /// what the model can hold.
    #[schemars(with = "Option<Tokens>", extend("examples" = [150_000]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_budget_tokens: Option<Tokens>,
    /// Another provider than the agent's own: a gateway or a model on this machine, with kind "codex" or "claude" or
    /// with a preset.
    #[schemars(extend("examples" = ["http://127.0.0.1:8080/v1"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The variable of yours that holds the key for `base_url`.
    #[schemars(extend("examples" = ["MY_GATEWAY_KEY"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// How often the agent itself sends a failed request again; with kind "codex" only beside `base_url`.
    #[schemars(with = "Option<Retries>", extend("examples" = [4]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Variables of yours that an agent of kind "codex" or "claude" and its commands see besides the usual ones; a
    /// star at the end of a name stands for any rest.
    pub env_inherit: Vec<String>,
    /// The program and its arguments, with kind "command".
    #[schemars(extend("examples" = [["my-agent", "--quiet"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandArgv>,
    /// A program that the runner knows how to start, with kind "command" in the place of `command`.
    #[schemars(with = "Option<Preset>", extend("examples" = ["opencode"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// The scenario file, with kind "script".
    #[schemars(extend("examples" = ["demo.toml"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// What keeps an agent from writing outside the repository: "auto" uses Codex's own sandbox, and bubblewrap for the
    /// others where it works, "require" starts no session without it, "off" lets the agent write wherever you can.
    pub sandbox: SandboxMode,
    /// Folders outside the repository that the agent may write to all the same, by absolute path or from your home
    /// folder (`~/…`): where it keeps its own state, or a build keeps its caches.
    #[schemars(extend("examples" = [["~/.my-agent"]]), inner(pattern(r"^(/|~/)")))]
    pub writable: Vec<String>,
}

/// When agents run in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SandboxMode {
    Auto,
    Require,
    Off,
}

/// The adapters that start an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ExecutorKind {
    Codex,
    Claude,
    Command,
    Script,
}

impl ExecutorKind {
    /// The kind as the configuration has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Command => "command",
            Self::Script => "script",
        }
    }
}

/// How much a model thinks.
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
    /// The effort as agents know it.
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
            writable: Vec::new(),
        }
    }
}

impl Executor {
    /// The table as the configuration has it, without its head.
    pub fn table(&self) -> String {
        // Text, numbers and lists of text are the same in JSON and TOML.
        let keys = serde_json::to_value(self).unwrap_or_default();
        let keys = keys.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        keys.map(|(key, value)| format!("{key} = {value}\n")).collect()
    }
}

/// Whom a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyOwner {
    /// These kinds.
    Kinds(&'static [ExecutorKind]),
    /// These kinds, and presets.
    KindsAndPresets(&'static [ExecutorKind]),
}

impl KeyOwner {
    fn takes(self, executor: &Executor) -> bool {
        match self {
            Self::Kinds(kinds) => kinds.contains(&executor.kind),
            Self::KindsAndPresets(kinds) => {
                kinds.contains(&executor.kind)
                    || executor.kind == ExecutorKind::Command && executor.preset.is_some()
            }
        }
    }

    fn name(self) -> String {
        let (kinds, presets) = match self {
            Self::Kinds(kinds) => (kinds, ""),
            Self::KindsAndPresets(kinds) => (kinds, " and to presets"),
        };
        match kinds {
            [kind] => format!("kind \"{}\" alone{presets}", kind.as_str()),
            _ => {
                let names: Vec<String> = kinds.iter().map(|kind| format!("\"{}\"", kind.as_str())).collect();
                format!("the kinds {}{presets}", names.join(" and "))
            }
        }
    }
}

const AGENTS: &[ExecutorKind] = &[ExecutorKind::Codex, ExecutorKind::Claude];

impl Executor {
    pub(super) fn take(table: &mut Table<'_>, usual: Self) -> Self {
        let executor = Self {
            kind: table.optional("kind").unwrap_or(usual.kind),
            model: table.optional("model").or(usual.model),
            effort: table.optional("effort").or(usual.effort),
            program: table.optional("program").or(usual.program),
            context_budget_tokens: table.optional("context_budget_tokens").or(usual.context_budget_tokens),
            base_url: table.optional("base_url").or(usual.base_url),
            key_env: table.optional("key_env").or(usual.key_env),
            retries: table.optional("retries").or(usual.retries),
            env_inherit: table.optional("env_inherit").unwrap_or(usual.env_inherit),
            command: table.optional("command").or(usual.command),
            preset: table.optional("preset").or(usual.preset),
            scenario: table.optional("scenario").or(usual.scenario),
            sandbox: table.optional("sandbox").unwrap_or(usual.sandbox),
            writable: table.optional("writable").unwrap_or(usual.writable),
        };
        if !table.is_at_fault("kind") && !table.is_at_fault("preset") {
            // Otherwise it is not known what the other keys go with.
            executor.check_owners(table);
            executor.check_needs(table);
        }
        executor.check_values(table);
        executor
    }

    /// Every key belongs to some kinds.
    fn check_owners(&self, table: &mut Table<'_>) {
        let keys = [
            ("model", KeyOwner::KindsAndPresets(AGENTS), self.model.is_some()),
            ("effort", KeyOwner::Kinds(AGENTS), self.effort.is_some()),
            ("program", KeyOwner::KindsAndPresets(AGENTS), self.program.is_some()),
            (
                "context_budget_tokens",
                KeyOwner::Kinds(&[ExecutorKind::Codex]),
                self.context_budget_tokens.is_some(),
            ),
            ("base_url", KeyOwner::KindsAndPresets(AGENTS), self.base_url.is_some()),
            ("key_env", KeyOwner::KindsAndPresets(AGENTS), self.key_env.is_some()),
            ("retries", KeyOwner::Kinds(AGENTS), self.retries.is_some()),
            ("env_inherit", KeyOwner::Kinds(AGENTS), !self.env_inherit.is_empty()),
            ("command", KeyOwner::Kinds(&[ExecutorKind::Command]), self.command.is_some()),
            ("preset", KeyOwner::Kinds(&[ExecutorKind::Command]), self.preset.is_some()),
            ("scenario", KeyOwner::Kinds(&[ExecutorKind::Script]), self.scenario.is_some()),
        ];
        for (key, owner, present) in keys {
            if present && !owner.takes(self) {
                table.broken(key, format!("belongs to {}: remove it or change `kind`", owner.name()));
            }
        }
    }

    /// Some keys need others.
    fn check_needs(&self, table: &mut Table<'_>) {
        let is_command = self.kind == ExecutorKind::Command;
        if is_command && self.command.is_none() && self.preset.is_none() && !table.is_at_fault("command") {
            table.broken("kind", "is \"command\", which needs `command` or `preset` beside it");
        }
        if self.command.is_some() && self.preset.is_some() {
            table.broken("preset", "stands beside `command`: remove one of them");
        }
        let lacks_scenario = self.scenario.is_none() && !table.is_at_fault("scenario");
        if self.kind == ExecutorKind::Script && lacks_scenario {
            table.broken("kind", "is \"script\", which needs `scenario` beside it");
        }
        if self.kind == ExecutorKind::Codex && self.retries.is_some() && self.base_url.is_none() {
            table.broken("retries", "needs `base_url` beside it: Codex's own provider has its own");
        }
        if self.preset.is_some() && self.base_url.is_some() && self.model.is_none() {
            table.broken("base_url", "needs `model` beside it: a preset cannot ask which models there are");
        }
        let odd = match self.kind {
            ExecutorKind::Codex => Some(ReasoningEffort::Max),
            ExecutorKind::Claude => Some(ReasoningEffort::Minimal),
            ExecutorKind::Command | ExecutorKind::Script => None,
        };
        if let Some(effort) = self.effort.filter(|effort| Some(*effort) == odd) {
            let (kind, word) = (self.kind.as_str(), effort.as_str());
            table.broken("effort", format!("is \"{word}\", which agents of kind \"{kind}\" do not know"));
        }
    }

    /// What a value must look like whatever it goes with.
    fn check_values(&self, table: &mut Table<'_>) {
        let is_url = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        if self.base_url.as_ref().is_some_and(|url| !is_url(url)) {
            table.broken("base_url", "must begin with http:// or https://");
        }
        if self.key_env.as_deref().is_some_and(|name| !is_variable(name)) {
            table.broken("key_env", "must be the name of a variable, not a key itself");
        }
        let is_pattern = |name: &String| is_variable(name.strip_suffix('*').unwrap_or(name));
        if !self.env_inherit.iter().all(is_pattern) {
            table.broken("env_inherit", "must hold names of variables, with or without a star at the end");
        }
        if !self.writable.iter().all(|path| path.starts_with('/') || path.starts_with("~/")) {
            table.broken("writable", "names a folder that begins with neither `/` nor `~/`");
        }
        let is_empty = |text: &Option<String>| text.as_ref().is_some_and(String::is_empty);
        for (key, text) in [("model", &self.model), ("program", &self.program), ("scenario", &self.scenario)]
        {
            if is_empty(text) {
                table.broken(key, "is empty: remove it or say something");
            }
        }
    }
}

fn is_variable(name: &str) -> bool {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn told(executor: &str) -> Vec<String> {
        let text = format!("[executor]\n{executor}\n");
        Config::decode(text.as_bytes()).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_table_can_be_written_and_read_again() {
        for keys in [
            "kind = \"codex\"\nmodel = \"m\"\neffort = \"high\"\nbase_url = \"http://127.0.0.1:1\"\nretries = 0",
            "kind = \"command\"\ncommand = [\"a\", \"b c\"]\nsandbox = \"require\"\nwritable = [\"~/x\"]",
            "kind = \"command\"\npreset = \"pi\"",
        ] {
            let read =
                |keys: &str| Config::decode(format!("[executor]\n{keys}\n").as_bytes()).unwrap().executor;
            assert_eq!(read(&read(keys).table()), read(keys), "{keys}");
        }
    }

    #[test]
    fn an_agent_has_what_its_kind_needs_and_no_more() {
        for good in [
            "kind = \"codex\"\nmodel = \"m\"\neffort = \"minimal\"\ncontext_budget_tokens = 150000",
            "kind = \"codex\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_env = \"K_1\"\nretries = 0",
            "kind = \"claude\"\neffort = \"max\"\nretries = 2\nenv_inherit = [\"NPM_TOKEN\", \"MY_*\"]",
            "kind = \"claude\"\nprogram = \"/opt/claude\"",
            "kind = \"command\"\ncommand = [\"a\"]",
            "kind = \"command\"\npreset = \"opencode\"\nmodel = \"m\"\nprogram = \"x\"",
            "kind = \"script\"\nscenario = \"s\"",
        ] {
            assert_eq!(told(good), [""; 0], "{good}");
        }
    }

    #[test]
    fn a_key_without_its_kind_is_told() {
        for (bad, fault) in [
            (
                "kind = \"command\"",
                "line 2: `executor.kind` is \"command\", which needs `command` or `preset` beside it",
            ),
            ("kind = \"script\"", "line 2: `executor.kind` is \"script\", which needs `scenario` beside it"),
            (
                "scenario = \"s\"",
                "line 2: `executor.scenario` belongs to kind \"script\" alone: remove it or change `kind`",
            ),
            (
                "kind = \"script\"\nscenario = \"s\"\nmodel = \"m\"",
                "line 4: `executor.model` belongs to the kinds \"codex\" and \"claude\" and to presets: remove it or \
                 change `kind`",
            ),
            (
                "kind = \"command\"\ncommand = [\"a\"]\nmodel = \"m\"",
                "line 4: `executor.model` belongs to the kinds \"codex\" and \"claude\" and to presets: remove it or \
                 change `kind`",
            ),
            (
                "kind = \"command\"\ncommand = \"a b\"",
                "line 3: `executor.command` cannot be read: invalid type: string \"a b\", expected a sequence",
            ),
            (
                "kind = \"comand\"\ncommand = [\"a\"]",
                "line 2: `executor.kind` cannot be read: unknown variant `comand`, expected one of `codex`, `claude`, \
                 `command`, `script`",
            ),
            (
                "kind = \"claude\"\ncontext_budget_tokens = 5000",
                "line 3: `executor.context_budget_tokens` belongs to kind \"codex\" alone: remove it or change `kind`",
            ),
            (
                "kind = \"command\"\ncommand = [\"a\"]\npreset = \"pi\"",
                "line 4: `executor.preset` stands beside `command`: remove one of them",
            ),
            (
                "kind = \"command\"\npreset = \"aider\"",
                "line 3: `executor.preset` cannot be read: unknown variant `aider`, expected one of `opencode`, `gemini`, \
                 `qwen`, `copilot`, `pi`",
            ),
        ] {
            assert_eq!(told(bad), [fault], "{bad}");
        }
    }

    #[test]
    fn a_value_that_cannot_be_meant_is_told() {
        for (bad, fault) in [
            (
                "kind = \"command\"\npreset = \"pi\"\nbase_url = \"http://x\"",
                "line 4: `executor.base_url` needs `model` beside it: a preset cannot ask which models there are",
            ),
            (
                "effort = \"max\"",
                "line 2: `executor.effort` is \"max\", which agents of kind \"codex\" do not know",
            ),
            (
                "retries = 3",
                "line 2: `executor.retries` needs `base_url` beside it: Codex's own provider has its own",
            ),
            ("base_url = \"gateway\"", "line 2: `executor.base_url` must begin with http:// or https://"),
            (
                "key_env = \"sk-abc\"",
                "line 2: `executor.key_env` must be the name of a variable, not a key itself",
            ),
            (
                "env_inherit = [\"*\"]",
                "line 2: `executor.env_inherit` must hold names of variables, with or without a star at the end",
            ),
            (
                "writable = [\"/x\", \"y\"]",
                "line 2: `executor.writable` names a folder that begins with neither `/` nor `~/`",
            ),
            ("model = \"\"", "line 2: `executor.model` is empty: remove it or say something"),
            ("modle = \"x\"", "line 2: `executor.modle` is not a known key; did you mean `model`?"),
        ] {
            assert_eq!(told(bad), [fault], "{bad}");
        }
    }

    #[test]
    fn a_kind_and_an_effort_have_one_name() {
        for kind in [ExecutorKind::Codex, ExecutorKind::Claude, ExecutorKind::Command, ExecutorKind::Script] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        for effort in [
            ReasoningEffort::Minimal,
            ReasoningEffort::Low,
            ReasoningEffort::Medium,
            ReasoningEffort::High,
            ReasoningEffort::Xhigh,
            ReasoningEffort::Max,
        ] {
            assert_eq!(serde_json::to_value(effort).unwrap(), effort.as_str());
        }
    }
}
