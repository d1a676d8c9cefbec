//! A case: the goal, the initial files, the limits and the checks that decide about a trial. Read strictly from TOML; with
//! all its files it becomes a [`suite::LoadedCase`].

mod check;
mod config;
pub(crate) mod suite;

use std::collections::BTreeMap;

use runner_core::strict::{BoundedInt, DocumentFault, DocumentProblem, FieldReader, decode_utf8};
use serde::Serialize;
use toml::Spanned;
use toml::de::DeValue;

pub use check::{Check, CheckCommand, CheckKind, ExpectedOutput};
pub use config::{CaseConfig, inline, toml_text};

use crate::plan::run_name::check_name;
use crate::result::TrialOutcome;

/// A table of a case file that is being read.
pub(crate) type CaseTable<'t> = FieldReader<'t, Spanned<DeValue<'t>>>;

type WallSecs = BoundedInt<1, 604_800>;
type IterationLimit = BoundedInt<1, 1_000_000>;
type TokenLimit = BoundedInt<1, 9_007_199_254_740_991>;

/// At most a terabyte.
type MegaBytes = BoundedInt<16, 1_048_576>;
type ProcessLimit = BoundedInt<8, 1_000_000>;

const DEFAULT_WALL_SECS: u32 = 3_600;
const DEFAULT_MEMORY_MB: u32 = 8_192;
const DEFAULT_PROCESSES: u32 = 1_024;
const DEFAULT_DISK_MB: u32 = 8_192;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Case {
    /// Also the name of the folder of its results.
    pub id: String,
    pub goal: String,
    pub tags: Vec<String>,
    /// The outcome that the case's own agent must have; set in cases that test the runner rather than agents.
    pub expect: Option<TrialOutcome>,
    /// Initial files of the repository: a folder, or a git bundle (`*.bundle`).
    pub fixture: Option<String>,
    /// A file that becomes the repository's justfile.
    pub justfile: Option<String>,
    /// Runs in the repository before its first commit.
    pub setup: Option<CheckCommand>,
    /// Runs in the repository after everything else.
    pub teardown: Option<CheckCommand>,
    /// A folder with the tasks and checks that the run starts with.
    pub plan: Option<String>,
    /// A folder of held-out checks of the run (`[checks] heldout`), which no session can read.
    pub heldout: Option<String>,
    /// A folder of files that are copied into the checked copy after the loop and all its processes have ended.
    pub hidden: Option<String>,
    /// A scenario that must succeed.
    pub solution: Option<String>,
    /// Scenarios that must not succeed.
    pub cheats: Vec<String>,
    /// Programs without which the case is skipped.
    pub requires: Vec<String>,
    pub limits: TrialLimits,
    pub environment: CaseEnvironment,
    /// Overrides of the runner's default configuration.
    pub config: CaseConfig,
    /// Variables for setup, loop, checks and teardown.
    pub env: BTreeMap<String, String>,
    pub checks: Vec<Check>,
}

/// Limits of `runner loop` in a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialLimits {
    pub wall_secs: u32,
    pub iterations: Option<i64>,
    pub tokens: Option<i64>,
    pub usd: Option<f64>,
    /// Of all processes of the trial together, in MB.
    pub memory_mb: u32,
    pub processes: u32,
    /// Of all files that the trial may write, in MB.
    pub disk_mb: u32,
}

/// What the programs of a trial run in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseEnvironment {
    /// A folder that is the root file system; without it, that of this machine.
    pub rootfs: Option<String>,
    /// Whether the loop may use the network. Checks never may.
    pub network: bool,
}

impl Default for CaseEnvironment {
    fn default() -> Self {
        Self { rootfs: None, network: true }
    }
}

impl Default for TrialLimits {
    fn default() -> Self {
        Self {
            wall_secs: DEFAULT_WALL_SECS,
            iterations: None,
            tokens: None,
            usd: None,
            memory_mb: DEFAULT_MEMORY_MB,
            processes: DEFAULT_PROCESSES,
            disk_mb: DEFAULT_DISK_MB,
        }
    }
}

impl Case {
    /// Reads a case strictly and reports every problem with its line.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<DocumentProblem>> {
        let text = decode_utf8(bytes).map_err(|problem| vec![problem])?;
        let mut fields = FieldReader::of_toml(text);
        let mut case = fields.table("case", read_case);
        case.limits = fields.table("limits", read_limits);
        case.environment = fields.table("environment", read_environment);
        case.config = CaseConfig::read(&mut fields);
        case.env = fields.any_value("env").unwrap_or_default();
        case.checks = fields.tables("checks", Check::read);
        let lines = config::key_lines(text);
        let mut problems = fields.finish();
        problems.extend(case.config.problems(&lines));
        problems.extend(case.rule_violations(&lines));
        problems.sort_by_key(|problem| problem.line);
        if !problems.is_empty() {
            return Err(problems);
        }
        case.name_checks();
        Ok(case)
    }

    /// Rules that involve more than the type of one key.
    fn rule_violations(&self, lines: &BTreeMap<String, usize>) -> Vec<DocumentProblem> {
        let mut problems = Vec::new();
        let mut add = |key: &str, rule: String| {
            let line = lines.get(key).copied().unwrap_or(1);
            problems.push(DocumentProblem { line, key: key.to_owned(), fault: DocumentFault::Rule(rule) });
        };
        if !self.id.is_empty() {
            if let Err(error) = check_name(&self.id) {
                add("case.id", error.to_string());
            }
            if self.id.ends_with("_latest") {
                add("case.id", "must not end in `_latest`".to_owned());
            }
        }
        if self.checks.is_empty() {
            add("checks", "is empty: a case needs at least one [[checks]]".to_owned());
        } else if self.checks.iter().all(|check| check.trap) {
            add(
                "checks",
                "has only traps: a case needs a check that shows that the work is right".to_owned(),
            );
        }
        for name in self.env.keys() {
            let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if name.is_empty() || !is_word || name.starts_with("GIT_") {
                add(&format!("env.{name}"), "is not a variable that a case may set".to_owned());
            }
        }
        problems
    }

    /// Names unnamed checks after their type and position.
    fn name_checks(&mut self) {
        for (check, number) in self.checks.iter_mut().zip(1..) {
            if check.name.is_empty() {
                check.name = format!("{}-{number}", check.kind.as_str());
            }
        }
    }

    /// Whether a check proves that work cheated.
    pub fn has_trap(&self) -> bool {
        self.checks.iter().any(|check| check.trap)
    }

    /// Paths that the case names, relative to its file.
    pub fn attachments(&self) -> Vec<&str> {
        let paths = [&self.fixture, &self.justfile, &self.plan, &self.heldout, &self.hidden]
            .into_iter()
            .flatten()
            .map(String::as_str);
        paths.chain(self.answers()).chain(self.config.scenario()).collect()
    }

    /// The scenarios of the solution and of the cheats, which no trial of another agent depends on.
    pub fn answers(&self) -> Vec<&str> {
        self.solution.iter().chain(&self.cheats).map(String::as_str).collect()
    }
}

fn read_case(table: &mut CaseTable<'_>) -> Case {
    Case {
        id: table.required("id").unwrap_or_default(),
        goal: table.required("goal").unwrap_or_default(),
        tags: table.optional("tags").unwrap_or_default(),
        expect: table.optional("expect"),
        fixture: table.optional("fixture"),
        justfile: table.optional("justfile"),
        setup: CheckCommand::read_argv(table, "setup"),
        teardown: CheckCommand::read_argv(table, "teardown"),
        plan: table.optional("plan"),
        heldout: table.optional("heldout"),
        hidden: table.optional("hidden"),
        solution: table.optional("solution"),
        cheats: table.optional("cheats").unwrap_or_default(),
        requires: table.optional("requires").unwrap_or_default(),
        limits: TrialLimits::default(),
        environment: CaseEnvironment::default(),
        config: CaseConfig::default(),
        env: BTreeMap::new(),
        checks: Vec::new(),
    }
}

fn read_environment(table: &mut CaseTable<'_>) -> CaseEnvironment {
    CaseEnvironment { rootfs: table.optional("rootfs"), network: table.optional("network").unwrap_or(true) }
}

fn read_limits(table: &mut CaseTable<'_>) -> TrialLimits {
    let wall: Option<WallSecs> = table.optional("wall_secs");
    let iterations: Option<IterationLimit> = table.optional("iterations");
    let tokens: Option<TokenLimit> = table.optional("tokens");
    let usd: Option<f64> = table.optional("usd");
    let memory: Option<MegaBytes> = table.optional("memory_mb");
    let processes: Option<ProcessLimit> = table.optional("processes");
    let disk: Option<MegaBytes> = table.optional("disk_mb");
    if usd.is_some_and(|usd| !(0.0..=1_000_000.0).contains(&usd)) {
        table.report_rule("usd", "must be from 0 to 1000000");
    }
    TrialLimits {
        wall_secs: wall.map_or(DEFAULT_WALL_SECS, BoundedInt::as_u32),
        iterations: iterations.map(BoundedInt::get),
        tokens: tokens.map(BoundedInt::get),
        usd,
        memory_mb: memory.map_or(DEFAULT_MEMORY_MB, BoundedInt::as_u32),
        processes: processes.map_or(DEFAULT_PROCESSES, BoundedInt::as_u32),
        disk_mb: disk.map_or(DEFAULT_DISK_MB, BoundedInt::as_u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        Case::decode(text.as_bytes()).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    const HEAD: &str = "[case]\nid = \"a\"\ngoal = \"g\"\n";

    #[test]
    fn complete_case_is_decoded() {
        let text = r#"
            [case]
            id = "adds-a-file"
            goal = "Add a file."
            tags = ["scripted"]
            expect = "success"
            fixture = "fixture"
            plan = "plan"
            setup = ["sh", "-c", "true"]
            hidden = "hidden"
            requires = ["sh"]
            [limits]
            wall_secs = 60
            iterations = 5
            tokens = 1000
            usd = 0.5
            [environment]
            rootfs = "image"
            network = false
            [config]
            max_attempts_default = 2
            [config.executor]
            kind = "script"
            scenario = "agent.toml"
            [env]
            LANG = "C"
            [[checks]]
            type = "file_exists"
            path = "a"
            [[checks]]
            name = "it runs"
            type = "command_succeeds"
            command = ["sh", "a"]
            hidden = true
        "#;
        let case = Case::decode(text.as_bytes()).unwrap();
        assert_eq!((case.id.as_str(), case.limits.wall_secs), ("adds-a-file", 60));
        assert_eq!(case.attachments(), ["fixture", "plan", "hidden", "agent.toml"]);
        let names: Vec<&str> = case.checks.iter().map(|check| check.name.as_str()).collect();
        assert_eq!(names, ["file_exists-1", "it runs"]);
        assert!(case.checks[1].hidden && !case.checks[0].hidden);
        assert_eq!(case.environment, CaseEnvironment { rootfs: Some("image".to_owned()), network: false });
    }

    #[test]
    fn every_problem_has_its_line_and_a_suggestion() {
        let text = format!("{HEAD}gaol = \"x\"\n[limit]\n[[checks]]\ntype = \"file_exist\"\npath = \"a\"\n");
        assert_eq!(
            problems(&text),
            [
                "line 4: `case.gaol` is not a known key; did you mean `goal`?",
                "line 5: `limit` is not a known key; did you mean `limits`?",
                "line 7: `checks.type` is `file_exist`, which is not a check type; did you mean `file_exists`?",
            ]
        );
    }

    #[test]
    fn problem_in_the_config_has_its_line_in_the_case_file() {
        let text = format!(
            "{HEAD}[config]\non_stuck = \"stop\"\n\n[config.executor]\nkind = \"script\"\nscenario = \"a\"\nmodle = 1\n\
             [[checks]]\ntype = \"git_clean\"\n"
        );
        assert_eq!(
            problems(&text),
            ["line 10: `config.executor.modle` is not a known key; did you mean `model`?"]
        );
    }

    #[test]
    fn case_needs_a_check_and_a_valid_id() {
        assert_eq!(problems(HEAD), ["line 1: `checks` is empty: a case needs at least one [[checks]]"]);
        let trap = format!("{HEAD}[[checks]]\ntype = \"file_exists\"\npath = \"bait\"\ntrap = true\n");
        assert_eq!(
            problems(&trap),
            ["line 4: `checks` has only traps: a case needs a check that shows that the work is right"]
        );
        let with_slash = HEAD.replace("\"a\"", "\"a/b\"");
        assert_eq!(problems(&with_slash).len(), 2);
        let text = format!("{HEAD}[env]\nGIT_DIR = \"x\"\n[[checks]]\ntype = \"git_clean\"\npath = \"x\"\n");
        assert_eq!(
            problems(&text),
            [
                "line 5: `env.GIT_DIR` is not a variable that a case may set",
                "line 8: `checks.path` is not a known key",
            ]
        );
    }
}
