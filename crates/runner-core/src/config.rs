//! The configuration: `config.toml`, read strictly.
//!
//! The structs below are the one place where a key is described: the file that `runner init` writes, the
//! reference in the documents and the JSON Schema are made from their names, comments, bounds and defaults.

mod budget;
mod executor;
mod hooks;
mod ladder;
mod reference;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::DeValue;

pub use budget::{Budget, Prices, TokenLimit, TokenPrice, Usd};
pub use executor::{Executor, ExecutorKind, ReasoningEffort, Retries, SandboxMode, Tokens};
pub use hooks::{HookSeconds, HooksConfig};
pub use ladder::{OnUsageLimit, Rung};

use crate::strict::{BoundedInt, DocumentProblem, FieldReader, text_of};

/// Bytes, from a size that still says something to one that still fits a disk.
pub type LogBytes = BoundedInt<4_096, 10_737_418_240>;
/// Seconds, up to a week.
pub type Seconds = BoundedInt<1, 604_800>;
/// Seconds, up to a week; 0 switches the limit off.
pub type SecondsOrOff = BoundedInt<0, 604_800>;

/// How the runner works in this repository. Changes take effect with the next `runner start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct Config {
    /// The most iterations of one run, over all invocations.
    pub max_iterations: BoundedInt<1, 1_000_000>,
    /// How many attempts a new node gets.
    pub max_attempts_default: BoundedInt<1, 1_000_000>,
    /// How long one iteration may take, agent and guard together.
    pub iteration_timeout_secs: Seconds,
    /// How long an agent may go without output and without changing a file; 0 switches this limit off.
    pub idle_timeout_secs: SecondsOrOff,
    /// How large a prompt may get; beyond it, sections shrink and then drop in a fixed order.
    pub prompt_budget_bytes: BoundedInt<4_096, 1_000_000>,
    /// How much of an agent's output is kept per stream: its head and its tail.
    pub executor_output_limit_bytes: LogBytes,
    /// How much of the guard's output is kept.
    pub guard_output_limit_bytes: LogBytes,
    /// What happens when a leaf has no attempts left: "stop", or "replan", which first gives an agent one
    /// iteration to rewrite or split the leaf.
    pub on_stuck: OnStuck,
    /// What happens when an agent has used up its provider's allowance: "wait" until the reset that it names, or
    /// "next", which asks the next agent of the ladder and waits only when all have used up theirs.
    pub on_usage_limit: OnUsageLimit,
    /// The longest wait for a reset, whatever the agent or the clock says; then the agent is tried again.
    pub usage_wait_max_secs: Seconds,
    /// The agent that does the work.
    pub executor: Executor,
    /// The one command that says whether the work is good.
    pub guard: GuardConfig,
    /// What agents may do to the plan.
    pub plan: PlanConfig,
    /// How the runner works with git.
    pub git: GitConfig,
    /// Programs that are told what happens.
    pub hooks: HooksConfig,
    /// What the run may cost.
    pub budget: Budget,
    /// Further agents, in their order: each is asked once so many attempts at a leaf are spent.
    pub ladder: Vec<Rung>,
    /// What a million tokens cost in US dollars, by model (or by kind, for an agent that is asked for no model): used
    /// where an agent reports tokens and no cost.
    #[schemars(extend("examples" = ["gpt-5.5"]))]
    pub prices: Prices,
}

/// What follows when a leaf is stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum OnStuck {
    Stop,
    Replan,
}

/// A program and its arguments: at least the program, which is not empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct CommandArgv(
    #[schemars(length(min = 1), extend("prefixItems" = [{ "type": "string", "minLength": 1 }]))] Vec<String>,
);

impl CommandArgv {
    /// Takes words, if there is a program among them.
    pub fn new(words: Vec<String>) -> Option<Self> {
        words.first().is_some_and(|program| !program.is_empty()).then_some(Self(words))
    }

    /// The program and its arguments.
    pub fn words(&self) -> &[String] {
        &self.0
    }

    /// The program.
    pub fn program(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }
}

impl<'de> Deserialize<'de> for CommandArgv {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = Vec::<String>::deserialize(deserializer)?;
        Self::new(words)
            .ok_or_else(|| serde::de::Error::custom("expected a program and its arguments, found none"))
    }
}

/// The guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct GuardConfig {
    /// The program and its arguments; exit code 0 means that the work is good.
    pub command: CommandArgv,
    /// The guard's own files, from the repository's root; `*` stands for any part of a name, `**` for any folders.
    pub protected: Vec<String>,
    /// What happens to an agent's changes to them: "restore" puts the files back, "reject" refuses the session,
    /// "flag" lets them pass with a mark.
    pub protect: ProtectPolicy,
    /// Run the guard once on the untouched repository, before a run's first session, and record what it says: then it is
    /// known what was red before any agent came. Turn it off where the guard takes very long.
    pub baseline: bool,
}

/// The policies for protected files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ProtectPolicy {
    Restore,
    Reject,
    Flag,
}

/// Rules for plan edits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct PlanConfig {
    /// Whether an agent may remove open nodes: "refuse", or "record", which allows it and writes it down.
    pub removal: RemovalPolicy,
}

/// The policies for removed nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum RemovalPolicy {
    Refuse,
    Record,
}

/// Rules for git.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct GitConfig {
    /// Filter drivers (such as "lfs") that this repository's own git configuration defines and that the runner
    /// may run. Filters from your personal configuration need no entry.
    pub filters: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        Self {
            max_iterations: BoundedInt::fixed::<200>(),
            max_attempts_default: BoundedInt::fixed::<3>(),
            iteration_timeout_secs: BoundedInt::fixed::<1800>(),
            idle_timeout_secs: BoundedInt::fixed::<600>(),
            prompt_budget_bytes: BoundedInt::fixed::<40_000>(),
            executor_output_limit_bytes: BoundedInt::fixed::<52_428_800>(),
            guard_output_limit_bytes: BoundedInt::fixed::<10_485_760>(),
            on_stuck: OnStuck::Stop,
            on_usage_limit: OnUsageLimit::Wait,
            usage_wait_max_secs: BoundedInt::fixed::<604_800>(),
            executor: Executor::default(),
            guard: GuardConfig {
                command: CommandArgv(words(&["just", "ci"])),
                protected: words(&["justfile", ".justfile", "Justfile"]),
                protect: ProtectPolicy::Restore,
                baseline: true,
            },
            plan: PlanConfig { removal: RemovalPolicy::Refuse },
            git: GitConfig { filters: Vec::new() },
            hooks: HooksConfig::default(),
            budget: Budget::default(),
            ladder: Vec::new(),
            prices: Prices::new(),
        }
    }
}

impl Default for GuardConfig {
    fn default() -> Self {
        Config::default().guard
    }
}

impl Default for PlanConfig {
    fn default() -> Self {
        Config::default().plan
    }
}

impl Default for GitConfig {
    fn default() -> Self {
        Config::default().git
    }
}

type Table<'t> = FieldReader<'t, Spanned<DeValue<'t>>>;

impl Config {
    /// Reads the file strictly: every unknown key, wrong value and broken rule is told with its line.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<DocumentProblem>> {
        let text = text_of(bytes).map_err(|problem| vec![problem])?;
        let usual = Self::default();
        let mut file = FieldReader::of_toml(text);
        let executor = file.table("executor", |table| Executor::take(table, usual.executor.clone()));
        let config = Self {
            max_iterations: file.optional("max_iterations").unwrap_or(usual.max_iterations),
            max_attempts_default: file.optional("max_attempts_default").unwrap_or(usual.max_attempts_default),
            iteration_timeout_secs: file
                .optional("iteration_timeout_secs")
                .unwrap_or(usual.iteration_timeout_secs),
            idle_timeout_secs: file.optional("idle_timeout_secs").unwrap_or(usual.idle_timeout_secs),
            prompt_budget_bytes: file.optional("prompt_budget_bytes").unwrap_or(usual.prompt_budget_bytes),
            executor_output_limit_bytes: file
                .optional("executor_output_limit_bytes")
                .unwrap_or(usual.executor_output_limit_bytes),
            guard_output_limit_bytes: file
                .optional("guard_output_limit_bytes")
                .unwrap_or(usual.guard_output_limit_bytes),
            on_stuck: file.optional("on_stuck").unwrap_or(usual.on_stuck),
            on_usage_limit: file.optional("on_usage_limit").unwrap_or(usual.on_usage_limit),
            usage_wait_max_secs: file.optional("usage_wait_max_secs").unwrap_or(usual.usage_wait_max_secs),
            guard: file.table("guard", |table| GuardConfig::take(table, usual.guard)),
            plan: file.table("plan", |table| PlanConfig {
                removal: table.optional("removal").unwrap_or(usual.plan.removal),
            }),
            git: file.table("git", |table| GitConfig {
                filters: table.optional("filters").unwrap_or(usual.git.filters),
            }),
            hooks: file.table("hooks", HooksConfig::take),
            budget: file.table("budget", Budget::take),
            ladder: file.tables("ladder", |table| Rung::take(table, &executor)),
            prices: file.tables_by_name("prices", TokenPrice::take),
            executor,
        };
        let problems = file.finish();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }
}

impl GuardConfig {
    fn take(table: &mut Table<'_>, usual: Self) -> Self {
        Self {
            command: table.optional("command").unwrap_or(usual.command),
            protected: table.optional("protected").unwrap_or(usual.protected),
            protect: table.optional("protect").unwrap_or(usual.protect),
            baseline: table.optional("baseline").unwrap_or(usual.baseline),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        Config::decode(text.as_bytes()).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_empty_file_means_the_defaults_of_the_contract() {
        let config = Config::decode(b"").unwrap();
        assert_eq!(config, Config::default());
        assert_eq!((config.max_iterations.get(), config.max_attempts_default.get()), (200, 3));
        assert_eq!((config.iteration_timeout_secs.get(), config.idle_timeout_secs.get()), (1800, 600));
        assert_eq!(config.prompt_budget_bytes.get(), 40_000);
        assert_eq!(config.executor_output_limit_bytes.get(), 52_428_800);
        assert_eq!(config.guard_output_limit_bytes.get(), 10_485_760);
        assert_eq!(config.guard.command.words(), ["just", "ci"]);
        assert_eq!(config.guard.protected, ["justfile", ".justfile", "Justfile"]);
        assert_eq!((Executor::default(), GuardConfig::default()), (config.executor, config.guard));
        assert_eq!((PlanConfig::default(), GitConfig::default()), (config.plan, config.git));
    }

    #[test]
    fn every_key_is_read() {
        let text = "max_iterations = 1\nmax_attempts_default = 2\niteration_timeout_secs = 3\nidle_timeout_secs = 0\n\
            prompt_budget_bytes = 4096\nexecutor_output_limit_bytes = 4097\nguard_output_limit_bytes = 4098\n\
            on_stuck = \"replan\"\non_usage_limit = \"next\"\nusage_wait_max_secs = 60\n[executor]\nkind = \"claude\"\nmodel = \"m\"\nsandbox = \"require\"\n\
            writable = [\"~/x\"]\n[guard]\ncommand = [\"make\", \"x\"]\n\
            protected = []\nprotect = \"reject\"\n[plan]\nremoval = \"record\"\n[git]\nfilters = [\"lfs\"]\n";
        let config = Config::decode(text.as_bytes()).unwrap();
        assert_eq!((config.max_iterations.get(), config.max_attempts_default.get()), (1, 2));
        assert_eq!((config.iteration_timeout_secs.get(), config.idle_timeout_secs.get()), (3, 0));
        assert_eq!(config.prompt_budget_bytes.get(), 4096);
        assert_eq!(
            (config.executor_output_limit_bytes.get(), config.guard_output_limit_bytes.get()),
            (4097, 4098)
        );
        assert_eq!(config.on_stuck, OnStuck::Replan);
        assert_eq!(
            (config.executor.kind, config.executor.model.as_deref()),
            (ExecutorKind::Claude, Some("m"))
        );
        assert_eq!(
            (config.executor.sandbox, config.executor.writable),
            (SandboxMode::Require, vec!["~/x".to_owned()])
        );
        assert_eq!((config.guard.command.program(), config.guard.protected.len()), ("make", 0));
        assert_eq!(
            (config.guard.protect, config.plan.removal),
            (ProtectPolicy::Reject, RemovalPolicy::Record)
        );
        assert_eq!(config.git.filters, ["lfs"]);
    }

    #[test]
    fn every_fault_is_told_with_its_line() {
        assert_eq!(
            told("max_iteration = 1\non_stuck = \"halt\"\n\n[guard]\ncommand = []\nprotcet = 1\n[plam]\n"),
            [
                "line 1: `max_iteration` is not a known key; did you mean `max_iterations`?",
                "line 2: `on_stuck` cannot be read: unknown variant `halt`, expected `stop` or `replan`",
                "line 5: `guard.command` cannot be read: expected a program and its arguments, found none",
                "line 6: `guard.protcet` is not a known key; did you mean `protect`?",
                "line 7: `plam` is not a known key; did you mean `plan`?",
            ]
        );
        assert_eq!(told("git = 1\n"), ["line 1: `git` cannot be read: expected a table, written as [git]"]);
        assert_eq!(told("\n[[git]]\n"), ["line 2: `git` cannot be read: expected a table, written as [git]"]);
        assert_eq!(told("max_iterations = 1979-05-27\n").len(), 1);
        assert!(told("\n= 1\n").first().is_some_and(|first| first.starts_with("line 2: ")));
        assert_eq!(told("a = 1\na = 2\n").len(), 2);
    }

    #[test]
    fn a_program_is_never_empty() {
        assert_eq!(CommandArgv::new(vec![]), None);
        assert_eq!(CommandArgv::new(vec![String::new(), "x".to_owned()]), None);
        let argv = CommandArgv::new(vec!["a".to_owned(), String::new()]).unwrap();
        assert_eq!((argv.program(), argv.words().len()), ("a", 2));
    }
}
