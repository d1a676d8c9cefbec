//! A case: what is asked for, where the work begins, and what must hold afterwards. Read strictly from its file.

mod check;
mod config;

use std::collections::BTreeMap;

use runner_core::model::id::NodeId;
use runner_core::strict::{BoundedInt, DocumentFault, DocumentProblem, FieldReader, decode_utf8};
use serde::Serialize;
use toml::Spanned;
use toml::de::DeValue;

pub use check::{Check, CheckCommand, CheckKind, ExpectedOutput};
pub use config::{CaseConfig, toml_text};

use crate::result::TrialOutcome;

/// The table of a document, while it is read.
pub(crate) type Table<'t> = FieldReader<'t, Spanned<DeValue<'t>>>;

/// How long a case may take, setup and checks apart.
type Wall = BoundedInt<1, 604_800>;
/// How many iterations.
type Iterations = BoundedInt<1, 1_000_000>;
/// How many tokens.
type Tokens = BoundedInt<1, 9_007_199_254_740_991>;

/// How long a loop may take where the case does not say.
const WALL_SECS: u32 = 3_600;

/// A case as its file says it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Case {
    /// Its name, and that of its results' folder.
    pub id: String,
    /// What the agent is asked for.
    pub goal: String,
    /// Words to choose cases by.
    pub tags: Vec<String>,
    /// The outcome that the case must have, if it is a case about the runner rather than about agents.
    pub expect: Option<TrialOutcome>,
    /// Files that the repository begins with: a folder, or a git bundle (`*.bundle`).
    pub fixture: Option<String>,
    /// A file that becomes the repository's justfile.
    pub justfile: Option<String>,
    /// Run in the repository before its first commit.
    pub setup: Option<CheckCommand>,
    /// Run in the repository after everything else.
    pub teardown: Option<CheckCommand>,
    /// A folder of files that come into the copy that is checked, once the loop and every process of it has ended.
    pub hidden: Option<String>,
    /// A scenario that must succeed.
    pub solution: Option<String>,
    /// A scenario that must not.
    pub cheat: Option<String>,
    /// Programs without which the case is skipped.
    pub requires: Vec<String>,
    /// How far a trial may go.
    pub limits: TrialLimits,
    /// What differs from the runner's usual configuration.
    pub config: CaseConfig,
    /// Variables for setup, loop, checks and teardown.
    pub env: BTreeMap<String, String>,
    /// What must hold afterwards.
    pub checks: Vec<Check>,
}

/// How far a trial may go.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialLimits {
    /// How long `runner loop` may take.
    pub wall_secs: u32,
    /// How many iterations a run may make.
    pub iterations: Option<i64>,
    /// How many tokens it may use.
    pub tokens: Option<i64>,
    /// How many dollars it may cost.
    pub usd: Option<f64>,
}

impl Case {
    /// Reads a case strictly: every fault is told, each with its line.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<DocumentProblem>> {
        let text = decode_utf8(bytes).map_err(|problem| vec![problem])?;
        let mut fields = FieldReader::of_toml(text);
        let mut case = fields.table("case", take_case);
        case.limits = fields.table("limits", take_limits);
        case.config = CaseConfig::take(&mut fields);
        case.env = fields.any_value("env").unwrap_or_default();
        case.checks = fields.tables("checks", Check::take);
        let lines = config::key_lines(text);
        let mut problems = fields.finish();
        problems.extend(case.config.problems(&lines));
        problems.extend(case.rules(&lines));
        problems.sort_by_key(|problem| problem.line);
        if problems.is_empty() { Ok(case.numbered()) } else { Err(problems) }
    }

    /// What several keys must keep together.
    fn rules(&self, lines: &BTreeMap<String, usize>) -> Vec<DocumentProblem> {
        let mut problems = Vec::new();
        let mut broken = |key: &str, rule: String| {
            let line = lines.get(key).copied().unwrap_or(1);
            problems.push(DocumentProblem { line, key: key.to_owned(), fault: DocumentFault::Rule(rule) });
        };
        if !self.id.is_empty() {
            if let Err(fault) = NodeId::new(self.id.clone()) {
                broken("case.id", fault.to_string());
            }
            if self.id.starts_with(['_', '.']) || self.id.ends_with("_latest") {
                broken("case.id", "must not begin with `_` or `.`, nor end in `_latest`".to_owned());
            }
        }
        if self.checks.is_empty() {
            broken("checks", "is empty: a case needs at least one [[checks]]".to_owned());
        }
        for name in self.env.keys() {
            let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if name.is_empty() || !is_word || name.starts_with("GIT_") {
                broken(&format!("env.{name}"), "is no variable that a case may set".to_owned());
            }
        }
        problems
    }

    /// Every check has a name of its own.
    fn numbered(mut self) -> Self {
        for (at, check) in self.checks.iter_mut().enumerate() {
            if check.name.is_empty() {
                check.name = format!("{}-{}", check.kind.as_str(), at + 1);
            }
        }
        self
    }

    /// Paths beside the case's file that it names.
    pub fn attachments(&self) -> Vec<&str> {
        let named = [&self.fixture, &self.justfile, &self.hidden, &self.solution, &self.cheat];
        named.into_iter().flatten().map(String::as_str).chain(self.config.scenario()).collect()
    }
}

fn take_case(table: &mut Table<'_>) -> Case {
    Case {
        id: table.required("id").unwrap_or_default(),
        goal: table.required("goal").unwrap_or_default(),
        tags: table.optional("tags").unwrap_or_default(),
        expect: table.optional("expect"),
        fixture: table.optional("fixture"),
        justfile: table.optional("justfile"),
        setup: CheckCommand::take_simple(table, "setup"),
        teardown: CheckCommand::take_simple(table, "teardown"),
        hidden: table.optional("hidden"),
        solution: table.optional("solution"),
        cheat: table.optional("cheat"),
        requires: table.optional("requires").unwrap_or_default(),
        limits: TrialLimits { wall_secs: WALL_SECS, iterations: None, tokens: None, usd: None },
        config: CaseConfig::default(),
        env: BTreeMap::new(),
        checks: Vec::new(),
    }
}

fn take_limits(table: &mut Table<'_>) -> TrialLimits {
    let wall: Option<Wall> = table.optional("wall_secs");
    let iterations: Option<Iterations> = table.optional("iterations");
    let tokens: Option<Tokens> = table.optional("tokens");
    let usd: Option<f64> = table.optional("usd");
    if usd.is_some_and(|usd| !(0.0..=1_000_000.0).contains(&usd)) {
        table.report_rule("usd", "must be from 0 to 1000000");
    }
    TrialLimits {
        wall_secs: wall.map_or(WALL_SECS, BoundedInt::as_u32),
        iterations: iterations.map(BoundedInt::get),
        tokens: tokens.map(BoundedInt::get),
        usd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        Case::decode(text.as_bytes()).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    const HEAD: &str = "[case]\nid = \"a\"\ngoal = \"g\"\n";

    #[test]
    fn a_whole_case_is_read() {
        let text = r#"
            [case]
            id = "adds-a-file"
            goal = "Add a file."
            tags = ["scripted"]
            expect = "success"
            fixture = "fixture"
            setup = ["sh", "-c", "true"]
            hidden = "hidden"
            requires = ["sh"]
            [limits]
            wall_secs = 60
            iterations = 5
            tokens = 1000
            usd = 0.5
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
        assert_eq!(case.attachments(), ["fixture", "hidden", "agent.toml"]);
        let names: Vec<&str> = case.checks.iter().map(|check| check.name.as_str()).collect();
        assert_eq!(names, ["file_exists-1", "it runs"]);
        assert!(case.checks[1].hidden && !case.checks[0].hidden);
    }

    #[test]
    fn every_fault_is_told_with_its_line_and_what_was_meant() {
        let text = format!("{HEAD}gaol = \"x\"\n[limit]\n[[checks]]\ntype = \"file_exist\"\npath = \"a\"\n");
        assert_eq!(
            told(&text),
            [
                "line 4: `case.gaol` is not a known key; did you mean `goal`?",
                "line 5: `limit` is not a known key; did you mean `limits`?",
                "line 7: `checks.type` is `file_exist`, which is no check; did you mean `file_exists`?",
            ]
        );
    }

    #[test]
    fn a_fault_in_the_configuration_is_told_where_it_stands_in_the_case() {
        let text = format!(
            "{HEAD}[config]\non_stuck = \"stop\"\n\n[config.executor]\nkind = \"script\"\nscenario = \"a\"\nmodle = 1\n\
             [[checks]]\ntype = \"git_clean\"\n"
        );
        assert_eq!(
            told(&text),
            ["line 10: `config.executor.modle` is not a known key; did you mean `model`?"]
        );
    }

    #[test]
    fn a_case_checks_something_and_has_a_plain_name() {
        assert_eq!(told(HEAD), ["line 1: `checks` is empty: a case needs at least one [[checks]]"]);
        let odd = HEAD.replace("\"a\"", "\"a/b\"");
        assert_eq!(told(&odd).len(), 2);
        let text = format!("{HEAD}[env]\nGIT_DIR = \"x\"\n[[checks]]\ntype = \"git_clean\"\npath = \"x\"\n");
        assert_eq!(
            told(&text),
            [
                "line 5: `env.GIT_DIR` is no variable that a case may set",
                "line 8: `checks.path` is not a known key",
            ]
        );
    }
}
