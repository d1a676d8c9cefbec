//! The configuration: `config.toml`, decoded strictly.
//!
//! These structs are the only place that describes a key. The file that `runner init` writes, the reference in the
//! documents and the JSON Schema are generated from their names, comments, bounds and defaults.

mod budget;
mod checks;
mod default_prices;
mod executor;
mod hooks;
mod keys;
mod ladder;
mod limits;
mod logs;
mod notify;
mod proof;
mod reference;
mod review;
mod room;
mod session_inputs;
mod telemetry;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use budget::{Budget, Prices, TokenLimit, TokenPrice, Usd};
pub use checks::{ChecksConfig, VacuousPolicy};
pub use default_prices::DEFAULT_PRICES_DATE;
pub use executor::{Executor, ExecutorKind, ReasoningEffort, Retries, SandboxMode, Tokens};
pub use hooks::{HookSeconds, HooksConfig};
pub use keys::{ConfigKey, KeyEdit, SetKeyError, edit_keys, value_text};
pub use ladder::{OnUsageLimit, Rung};
pub use limits::{AcceptConfig, LimitsConfig, OnTimeout, UnchangedPolicy};
pub use logs::LogsConfig;
pub use notify::{NotifyConfig, NotifyEvent, NotifySeconds, NotifyUrl, is_address};
pub use proof::{ProofConfig, SignPolicy};
pub use review::ReviewConfig;
pub use room::{IgnoredFiles, RoomMode};
pub use session_inputs::{McpServer, McpTransport, NetworkAccess};
pub use telemetry::TelemetryConfig;

use crate::strict::{BoundedInt, DocumentProblem, FieldReader, TomlTable, decode_utf8};

/// The size of a log: 4 KiB to 10 GiB.
pub type LogBytes = BoundedInt<4_096, 10_737_418_240>;
/// Seconds, up to a week.
pub type Seconds = BoundedInt<1, 604_800>;
/// Seconds, up to a week; 0 disables the limit.
pub type SecondsOrOff = BoundedInt<0, 604_800>;

/// How the runner works in this repository. Changes take effect with the next `runner start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct Config {
    /// Most iterations of one run, over all invocations.
    pub max_iterations: BoundedInt<1, 1_000_000>,
    /// Attempts of a new task.
    pub max_attempts_default: BoundedInt<1, 1_000_000>,
    /// Time limit for one iteration, agent and guard together.
    pub iteration_timeout_secs: Seconds,
    /// Time limit for an agent without output and without changes to files; 0 disables it.
    pub idle_timeout_secs: SecondsOrOff,
    /// Largest prompt; beyond this size, sections are shortened and then omitted, in a fixed order.
    pub prompt_budget_bytes: BoundedInt<8_192, 1_000_000>,
    /// How much of the agent's output to keep per stream: the beginning and the end.
    pub executor_output_limit_bytes: LogBytes,
    /// How much of the guard's output to keep: the beginning and the end.
    pub guard_output_limit_bytes: LogBytes,
    /// What to do when a task has no attempts left: "stop", "replan" to give an agent one iteration to rewrite or split the
    /// task first, or "skip" to go on with the next open task.
    pub on_stuck: OnStuck,
    /// What to do when an iteration reaches a time limit: "stop", or "retry" to go on with another session, at most three in
    /// a row on one task.
    pub on_timeout: OnTimeout,
    /// What to do when an agent reaches its usage limit: "wait" until the limit resets, or "next" to use the next agent of
    /// the ladder, and wait only when all agents have reached their limits.
    pub on_usage_limit: OnUsageLimit,
    /// Longest wait for a usage limit to reset, whatever time the agent reports; then try the agent again.
    pub usage_wait_max_secs: Seconds,
    /// The agent that does the work.
    pub executor: Executor,
    /// The command that must succeed for a task to pass (your tests/CI).
    pub guard: GuardConfig,
    /// The acceptance commands of tasks.
    pub checks: ChecksConfig,
    /// What agents may do to the plan.
    pub plan: PlanConfig,
    /// How the runner works with git.
    pub git: GitConfig,
    /// Commands that run after certain events, for notifications.
    pub hooks: HooksConfig,
    /// Where the runner sends messages about the run.
    pub notify: NotifyConfig,
    /// Where the runner sends traces of its iterations.
    pub telemetry: TelemetryConfig,
    /// How long to keep the logs of iterations.
    pub logs: LogsConfig,
    /// Limits on what the run may use.
    pub budget: Budget,
    /// Limits on a run that makes no progress, and on how far agents may split tasks.
    pub limits: LimitsConfig,
    /// When an answer is accepted.
    pub accept: AcceptConfig,
    /// A second agent that reviews work before its task passes. Without this table, there is no review.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ReviewConfig")]
    pub review: Option<ReviewConfig>,
    /// How the result of a run is signed.
    pub proof: ProofConfig,
    /// Further agents, in order: each is used after N failed attempts at a task.
    pub ladder: Vec<Rung>,
    /// Prices per million tokens in US dollars, by model (or by kind, for an agent without a configured model). Used when
    /// an agent reports tokens but no cost.
    #[schemars(extend("examples" = ["gpt-6.1-sol"]))]
    pub prices: Prices,
}

/// What to do when a task is stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum OnStuck {
    Stop,
    Replan,
    Skip,
}

/// A program and its arguments. The program is not empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct CommandArgv(
    #[schemars(length(min = 1), extend("prefixItems" = [{ "type": "string", "minLength": 1 }]))] Vec<String>,
);

impl CommandArgv {
    /// The argv, if it has a program.
    pub fn new(words: Vec<String>) -> Option<Self> {
        words.first().is_some_and(|program| !program.is_empty()).then_some(Self(words))
    }

    /// The program and its arguments.
    pub fn words(&self) -> &[String] {
        &self.0
    }

    pub fn program(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }
}

impl<'de> Deserialize<'de> for CommandArgv {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = Vec::<String>::deserialize(deserializer)?;
        Self::new(words).ok_or_else(|| serde::de::Error::custom("expected a program and its arguments"))
    }
}

/// The guard: your test command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct GuardConfig {
    /// Program and arguments; exit code 0 means success.
    pub command: CommandArgv,
    /// Files that the guard relies on, relative to the repository; `*` matches any part of a name, `**` any folders. Without
    /// this key, `runner start` derives them from the command: justfiles, makefiles and scripts with what they include and
    /// run, scripts of package.json, and the configuration of test programs. A list here replaces all of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["justfile", "ci/**"]]))]
    pub protected: Option<Vec<String>>,
    /// What to do with an agent's changes to protected files: "restore" the files, "reject" the session, or "flag" the
    /// changes and accept them.
    pub protect: ProtectPolicy,
    /// Run the guard once before the first session of a run, and record the result: it shows what already failed before
    /// any agent ran. It runs once more after you changed the guard. Turn it off if the guard takes very long.
    pub baseline: bool,
    /// Run the guard once more after all tasks passed, in a clean checkout of the last commit. The run is complete only if it
    /// succeeds there too.
    pub final_check: bool,
    /// Where the guard runs. "auto": in a room, which is a checkout of exactly the files to commit, in a sandbox; in the work
    /// tree where bubblewrap does not work. "require": only in a room. "in-place": always in the work tree.
    pub room: RoomMode,
    /// Which ignored files the guard finds in the room: those that it made there itself ("room"), copies of those in the
    /// work tree ("worktree"), or "none".
    pub ignored: IgnoredFiles,
    /// Ignored files and folders of yours that the guard needs, such as ".venv". They are copied once, before the first
    /// session of a run, or the next one after you added them here; what is missing then is in no room.
    pub keep: Vec<String>,
    /// A command that prepares a new room, such as ["npm", "ci"].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<CommandArgv>,
    /// Files whose change makes the setup run again. Without any, the lock files of the common package managers count.
    pub setup_inputs: Vec<String>,
    /// Whether the guard may use the network.
    pub network: bool,
    /// Sockets of services that the guard may use in the room, such as "/run/docker.sock".
    pub sockets: Vec<String>,
    /// Programs that the guard's result depends on, such as "cargo" or "go version". `runner start` records their versions, beside
    /// the lock files, and `runner verify --rerun` names what differs. A single word is run with `--version`.
    pub tools: Vec<String>,
    /// The folder of held-out checks, which nothing that runs for an agent may read: a copy of `heldout` in `[checks]`.
    #[serde(skip)]
    pub hidden: Option<String>,
}

/// What to do with changes to protected files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ProtectPolicy {
    Restore,
    Reject,
    Flag,
}

/// Rules for changes to the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct PlanConfig {
    /// What to do when an agent removes open tasks: "refuse" it, or "record" it and accept.
    pub removal: RemovalPolicy,
    /// Whether a run waits for your consent: "off", or "required": no session begins until `runner plan approve` recorded it
    /// for the plan as it is.
    pub approval: ApprovalPolicy,
}

/// Whether the user must approve a plan before the first session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ApprovalPolicy {
    Off,
    Required,
}

/// What to do when an agent removes nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum RemovalPolicy {
    Refuse,
    Record,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct GitConfig {
    /// Filter drivers (such as "lfs") from this repository's git configuration that the runner may run. Filters from your
    /// personal configuration need no entry.
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
            on_timeout: OnTimeout::Stop,
            on_usage_limit: OnUsageLimit::Wait,
            usage_wait_max_secs: BoundedInt::fixed::<604_800>(),
            executor: Executor::default(),
            guard: GuardConfig {
                command: CommandArgv(words(&["just", "ci"])),
                protected: None,
                protect: ProtectPolicy::Restore,
                baseline: true,
                final_check: true,
                room: RoomMode::Auto,
                ignored: IgnoredFiles::Room,
                keep: Vec::new(),
                setup: None,
                setup_inputs: Vec::new(),
                network: true,
                sockets: Vec::new(),
                tools: Vec::new(),
                hidden: None,
            },
            checks: ChecksConfig::default(),
            plan: PlanConfig { removal: RemovalPolicy::Refuse, approval: ApprovalPolicy::Off },
            git: GitConfig { filters: Vec::new() },
            hooks: HooksConfig::default(),
            notify: NotifyConfig::default(),
            telemetry: TelemetryConfig::default(),
            logs: LogsConfig::default(),
            budget: Budget::default(),
            limits: LimitsConfig::default(),
            accept: AcceptConfig::default(),
            review: None,
            proof: ProofConfig::default(),
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

/// Reads keys of a table into the fields of the same name. A key that is absent or invalid leaves the field unchanged.
macro_rules! read_keys {
    ($table:ident, $target:ident: $($key:ident),+) => {
        $(if let Some(value) = $table.optional(stringify!($key)) {
            $target.$key = value;
        })+
    };
}

/// The same for fields of type `Option`.
macro_rules! read_optional_keys {
    ($table:ident, $target:ident: $($key:ident),+) => {
        $(if let Some(value) = $table.optional(stringify!($key)) {
            $target.$key = Some(value);
        })+
    };
}

use {read_keys, read_optional_keys};

impl Config {
    /// Every agent that a run may start: the worker, those of the ladder, and the reviewer.
    pub fn agents(&self) -> impl Iterator<Item = &Executor> + Clone {
        let ladder = self.ladder.iter().map(|rung| &rung.executor);
        let reviewer = self.review.iter().map(|review| &review.executor);
        std::iter::once(&self.executor).chain(ladder).chain(reviewer)
    }

    /// Decodes the file strictly: reports every unknown key, invalid value and violated rule with its line.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<DocumentProblem>> {
        let text = decode_utf8(bytes).map_err(|problem| vec![problem])?;
        let mut config = Self::default();
        let mut file = FieldReader::of_toml(text);
        read_keys!(file, config: max_iterations, max_attempts_default, iteration_timeout_secs, idle_timeout_secs);
        read_keys!(file, config: prompt_budget_bytes, executor_output_limit_bytes, guard_output_limit_bytes);
        read_keys!(file, config: on_stuck, on_timeout, on_usage_limit, usage_wait_max_secs);
        config.executor = file.table("executor", |table| Executor::take(table, config.executor));
        config.guard = file.table("guard", |table| GuardConfig::take(table, config.guard));
        config.checks = file.table("checks", ChecksConfig::take);
        config.guard.hidden = config.checks.heldout.clone();
        config.plan = file.table("plan", |table| PlanConfig::take(table, config.plan));
        config.git = file.table("git", |table| GitConfig::take(table, config.git));
        config.hooks = file.table("hooks", HooksConfig::take);
        config.notify = file.table("notify", NotifyConfig::take);
        config.telemetry = file.table("telemetry", TelemetryConfig::take);
        config.logs = file.table("logs", LogsConfig::take);
        config.budget = file.table("budget", Budget::take);
        config.limits = file.table("limits", LimitsConfig::take);
        config.accept = file.table("accept", AcceptConfig::take);
        config.review = file
            .has("review")
            .then(|| file.table("review", |table| ReviewConfig::take(table, &config.executor)));
        config.proof = file.table("proof", ProofConfig::take);
        config.ladder = file.tables("ladder", |table| Rung::take(table, &config.executor));
        config.prices = file.tables_by_name("prices", TokenPrice::take);
        let problems = file.finish();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }
}

impl GuardConfig {
    fn take(table: &mut TomlTable<'_>, mut guard: Self) -> Self {
        read_keys!(table, guard: command, protect, baseline, final_check);
        read_keys!(table, guard: room, ignored, keep, setup_inputs, network, sockets, tools);
        read_optional_keys!(table, guard: protected, setup);
        guard
    }
}

impl PlanConfig {
    fn take(table: &mut TomlTable<'_>, mut plan: Self) -> Self {
        read_keys!(table, plan: removal, approval);
        plan
    }
}

impl GitConfig {
    fn take(table: &mut TomlTable<'_>, mut git: Self) -> Self {
        read_keys!(table, git: filters);
        git
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        Config::decode(text.as_bytes()).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_empty_file_has_the_defaults_of_the_contract() {
        let config = Config::decode(b"").unwrap();
        assert_eq!(config, Config::default());
        assert_eq!((config.max_iterations.get(), config.max_attempts_default.get()), (200, 3));
        assert_eq!((config.iteration_timeout_secs.get(), config.idle_timeout_secs.get()), (1800, 600));
        assert_eq!(config.prompt_budget_bytes.get(), 40_000);
        assert_eq!(config.executor_output_limit_bytes.get(), 52_428_800);
        assert_eq!(config.guard_output_limit_bytes.get(), 10_485_760);
        assert_eq!(config.guard.command.words(), ["just", "ci"]);
        assert_eq!(config.guard.protected, None);
        assert_eq!((Executor::default(), GuardConfig::default()), (config.executor, config.guard));
        assert_eq!((PlanConfig::default(), GitConfig::default()), (config.plan, config.git));
    }

    #[test]
    fn every_key_is_read() {
        let text = "max_iterations = 1\nmax_attempts_default = 2\niteration_timeout_secs = 3\nidle_timeout_secs = 0\n\
            prompt_budget_bytes = 8192\nexecutor_output_limit_bytes = 4097\nguard_output_limit_bytes = 4098\n\
            on_stuck = \"replan\"\non_usage_limit = \"next\"\nusage_wait_max_secs = 60\n[executor]\nkind = \"claude\"\nmodel = \"m\"\nsandbox = \"require\"\n\
            writable = [\"~/x\"]\n[guard]\ncommand = [\"make\", \"x\"]\n\
            protected = []\nprotect = \"reject\"\n[plan]\nremoval = \"record\"\n[git]\nfilters = [\"lfs\"]\n";
        let config = Config::decode(text.as_bytes()).unwrap();
        assert_eq!((config.max_iterations.get(), config.max_attempts_default.get()), (1, 2));
        assert_eq!((config.iteration_timeout_secs.get(), config.idle_timeout_secs.get()), (3, 0));
        assert_eq!(config.prompt_budget_bytes.get(), 8192);
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
        assert_eq!((config.guard.command.program(), config.guard.protected), ("make", Some(Vec::new())));
        assert_eq!(
            (config.guard.protect, config.plan.removal),
            (ProtectPolicy::Reject, RemovalPolicy::Record)
        );
        assert_eq!(config.git.filters, ["lfs"]);
    }

    #[test]
    fn every_problem_is_reported_with_its_line() {
        assert_eq!(
            problems(
                "max_iteration = 1\non_stuck = \"halt\"\n\n[guard]\ncommand = []\nprotcet = 1\n[plam]\n"
            ),
            [
                "line 1: `max_iteration` is not a known key; did you mean `max_iterations`?",
                "line 2: `on_stuck` is invalid: unknown variant `halt`, expected one of `stop`, `replan`, `skip`",
                "line 5: `guard.command` is invalid: expected a program and its arguments",
                "line 6: `guard.protcet` is not a known key; did you mean `protect`?",
                "line 7: `plam` is not a known key; did you mean `plan`?",
            ]
        );
        assert_eq!(problems("git = 1\n"), ["line 1: `git` is invalid: expected a table, written as [git]"]);
        assert_eq!(problems("\n[[git]]\n"), ["line 2: `git` is invalid: expected a table, written as [git]"]);
        assert_eq!(problems("max_iterations = 1979-05-27\n").len(), 1);
        assert!(problems("\n= 1\n").first().is_some_and(|first| first.starts_with("line 2: ")));
        assert_eq!(problems("a = 1\na = 2\n").len(), 2);
    }

    #[test]
    fn an_argv_has_a_program() {
        assert_eq!(CommandArgv::new(vec![]), None);
        assert_eq!(CommandArgv::new(vec![String::new(), "x".to_owned()]), None);
        let argv = CommandArgv::new(vec!["a".to_owned(), String::new()]).unwrap();
        assert_eq!((argv.program(), argv.words().len()), ("a", 2));
    }
}
