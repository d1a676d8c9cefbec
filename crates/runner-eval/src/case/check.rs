//! The check types of a case, read strictly. [`crate::execution::grade`] runs them.

use regex::Regex;
use runner_core::config::CommandArgv;
use runner_core::strict::{BoundedInt, nearest};
use runner_core::text::one_line;
use serde::Serialize;

use super::CaseTable;

type TimeoutSecs = BoundedInt<1, 86_400>;
type OutputBytes = BoundedInt<1_024, 1_073_741_824>;

const DEFAULT_TIMEOUT_SECS: i64 = 60;
const DEFAULT_OUTPUT_MAX_BYTES: i64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    pub name: String,
    /// Hidden from the agent: runs after the other checks, with the hidden files in place.
    pub hidden: bool,
    /// Passes only if the work cheated: it then fails the trial. If it does not pass, it decides nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trap: bool,
    pub kind: CheckKind,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckCommand {
    pub argv: Vec<String>,
    pub timeout_secs: u64,
    /// How much of its output is kept.
    pub output_max_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum ExpectedOutput {
    /// Exactly this text, ignoring trailing whitespace.
    Text(String),
    /// Anything that this regular expression matches.
    Matches(String),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckKind {
    FileExists {
        path: String,
    },
    FileContains {
        path: String,
        expected: ExpectedOutput,
    },
    /// The command exits with `exit` and, if `stdout_matches` is set, prints something that it matches.
    CommandSucceeds {
        command: CheckCommand,
        exit: i32,
        stdout_matches: Option<String>,
    },
    /// The command exits with 0 and prints what is expected.
    CommandOutput {
        command: CheckCommand,
        expected: ExpectedOutput,
    },
    /// `runner loop` exited with 0.
    RunnerCompleted,
    /// The work tree equals the last commit.
    GitClean,
    /// `runner verify` exits with 0.
    VerifyPasses,
    /// A JUnit report has enough tests and no failures. The command that writes it, if any, runs first; its exit code does
    /// not matter.
    Junit {
        path: String,
        command: Option<CheckCommand>,
        min_tests: u64,
    },
    /// A program among the hidden files judges the work from outside: it runs programs of the work as other processes, which
    /// cannot reach it, and prints one line per test.
    Judge {
        command: CheckCommand,
        min_tests: u64,
    },
}

const TYPES: [&str; 9] = [
    "file_exists",
    "file_contains",
    "command_succeeds",
    "command_output",
    "runner_completed",
    "git_clean",
    "verify_passes",
    "junit",
    "judge",
];

impl CheckKind {
    /// The value of `type` in the case file.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::FileExists { .. } => "file_exists",
            Self::FileContains { .. } => "file_contains",
            Self::CommandSucceeds { .. } => "command_succeeds",
            Self::CommandOutput { .. } => "command_output",
            Self::RunnerCompleted => "runner_completed",
            Self::GitClean => "git_clean",
            Self::VerifyPasses => "verify_passes",
            Self::Junit { .. } => "junit",
            Self::Judge { .. } => "judge",
        }
    }
}

impl Check {
    pub(super) fn read(table: &mut CaseTable<'_>) -> Self {
        let kind: Option<String> = table.required("type");
        let name = table.optional("name").unwrap_or_default();
        let hidden = table.optional("hidden").unwrap_or(false);
        let trap = table.optional("trap").unwrap_or(false);
        let kind = match kind.as_deref() {
            Some("file_exists") => CheckKind::FileExists { path: read_path(table) },
            Some("file_contains") => {
                CheckKind::FileContains { path: read_path(table), expected: read_expected(table, "text") }
            }
            Some("command_succeeds") => CheckKind::CommandSucceeds {
                command: CheckCommand::read(table),
                exit: read_exit(table),
                stdout_matches: read_pattern(table, "stdout_matches"),
            },
            Some("command_output") => CheckKind::CommandOutput {
                command: CheckCommand::read(table),
                expected: read_expected(table, "stdout"),
            },
            Some("runner_completed") => CheckKind::RunnerCompleted,
            Some("verify_passes") => CheckKind::VerifyPasses,
            Some("junit") => read_junit(table),
            Some("judge") => {
                CheckKind::Judge { command: CheckCommand::read(table), min_tests: read_min_tests(table) }
            }
            Some("git_clean") | None => CheckKind::GitClean,
            Some(unknown) => {
                report_unknown_type(table, unknown);
                CheckKind::GitClean
            }
        };
        // The files of a judge are hidden ones.
        let hidden = hidden || matches!(kind, CheckKind::Judge { .. });
        Self { name, hidden, trap, kind }
    }
}

/// The keys of all types.
const KEYS: [&str; 11] = [
    "path",
    "text",
    "matches",
    "command",
    "cmd",
    "timeout_secs",
    "output_max_bytes",
    "exit",
    "stdout_matches",
    "stdout",
    "min_tests",
];

fn report_unknown_type(table: &mut CaseTable<'_>, unknown: &str) {
    let suggestion = match nearest(unknown, &TYPES) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => format!("; the types are {}", TYPES.join(", ")),
    };
    table.report_rule("type", format!("is `{unknown}`, which is not a check type{suggestion}"));
    // Which keys are allowed depends on the type, so none of them is reported as unknown.
    for key in KEYS {
        let _: Option<toml::Value> = table.any_value(key);
    }
}

fn read_path(table: &mut CaseTable<'_>) -> String {
    let path: String = table.required("path").unwrap_or_default();
    let is_outside = path.starts_with('/') || path.split('/').any(|part| part == "..");
    if is_outside {
        table.report_rule("path", "must be inside the repository");
    }
    path
}

fn read_exit(table: &mut CaseTable<'_>) -> i32 {
    let exit: Option<BoundedInt<0, 255>> = table.optional("exit");
    exit.and_then(|exit| i32::try_from(exit.get()).ok()).unwrap_or(0)
}

fn read_pattern(table: &mut CaseTable<'_>, key: &'static str) -> Option<String> {
    let pattern: String = table.optional(key)?;
    if let Err(error) = Regex::new(&pattern) {
        table.report_rule(key, format!("is not a regular expression: {}", one_line(&error.to_string())));
    }
    Some(pattern)
}

/// Reads either an exact text or `matches`.
fn read_expected(table: &mut CaseTable<'_>, text_key: &'static str) -> ExpectedOutput {
    let text: Option<String> = table.optional(text_key);
    let matches = read_pattern(table, "matches");
    match (text, matches) {
        (Some(text), None) => ExpectedOutput::Text(text),
        (None, Some(pattern)) => ExpectedOutput::Matches(pattern),
        (Some(_), Some(pattern)) => {
            table.report_rule("matches", format!("cannot be combined with `{text_key}`: remove one of them"));
            ExpectedOutput::Matches(pattern)
        }
        (None, None) => {
            if !table.has_problem(text_key) && !table.has_problem("matches") {
                table.report_rule(text_key, "is missing: set it or `matches`");
            }
            ExpectedOutput::Text(String::new())
        }
    }
}

fn read_junit(table: &mut CaseTable<'_>) -> CheckKind {
    let path = read_path(table);
    let has_command = table.has("command") || table.has("cmd");
    let command = has_command.then(|| CheckCommand::read(table));
    CheckKind::Junit { path, command, min_tests: read_min_tests(table) }
}

fn read_min_tests(table: &mut CaseTable<'_>) -> u64 {
    let min_tests: Option<BoundedInt<1, 1_000_000>> = table.optional("min_tests");
    min_tests.map_or(1, BoundedInt::as_u64)
}

impl CheckCommand {
    fn read(table: &mut CaseTable<'_>) -> Self {
        let key = if table.has("cmd") { "cmd" } else { "command" };
        let argv: Option<CommandArgv> = table.required(key);
        let timeout: Option<TimeoutSecs> = table.optional("timeout_secs");
        let bytes: Option<OutputBytes> = table.optional("output_max_bytes");
        Self::new(
            argv,
            timeout.map_or(DEFAULT_TIMEOUT_SECS, BoundedInt::get),
            bytes.map_or(DEFAULT_OUTPUT_MAX_BYTES, BoundedInt::get),
        )
    }

    /// Reads setup or teardown, which have no limits of their own.
    pub(super) fn read_argv(table: &mut CaseTable<'_>, key: &'static str) -> Option<Self> {
        let argv: CommandArgv = table.optional(key)?;
        Some(Self::new(Some(argv), 10 * DEFAULT_TIMEOUT_SECS, DEFAULT_OUTPUT_MAX_BYTES))
    }

    fn new(argv: Option<CommandArgv>, timeout_secs: i64, output_max_bytes: i64) -> Self {
        Self {
            argv: argv.map(|argv| argv.words().to_vec()).unwrap_or_default(),
            timeout_secs: timeout_secs.unsigned_abs(),
            output_max_bytes: output_max_bytes.unsigned_abs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::case::Case;

    fn problems(check: &str) -> Vec<String> {
        let text = format!("[case]\nid = \"a\"\ngoal = \"g\"\n[[checks]]\n{check}\n");
        Case::decode(text.as_bytes()).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_check_type_is_decoded() {
        for good in [
            "type = \"file_exists\"\npath = \"a/b\"",
            "type = \"file_contains\"\npath = \"a\"\ntext = \"x\"",
            "type = \"file_contains\"\npath = \"a\"\nmatches = \"^x+$\"",
            "type = \"command_succeeds\"\ncommand = [\"true\"]\ntimeout_secs = 5\noutput_max_bytes = 4096\nexit = 3",
            "type = \"command_succeeds\"\ncmd = [\"true\"]",
            "type = \"command_succeeds\"\ncommand = [\"true\"]\nstdout_matches = \"ok\"",
            "type = \"command_output\"\ncommand = [\"echo\"]\nstdout = \"\"",
            "type = \"runner_completed\"",
            "type = \"git_clean\"\nname = \"tidy\"\nhidden = true",
            "type = \"verify_passes\"",
            "type = \"judge\"\ncommand = [\"python3\", \"judge.py\"]\nmin_tests = 3",
            "type = \"junit\"\npath = \"r.xml\"\ncommand = [\"make\"]\nmin_tests = 3",
        ] {
            assert_eq!(problems(good), [""; 0], "{good}");
        }
    }

    #[test]
    fn missing_and_invalid_keys_are_reported() {
        for (bad, fault) in [
            ("path = \"a\"", "line 4: `checks.type` is missing"),
            ("type = \"file_exists\"", "line 4: `checks.path` is missing"),
            (
                "type = \"file_exists\"\npath = \"../x\"",
                "line 6: `checks.path` must be inside the repository",
            ),
            (
                "type = \"file_contains\"\npath = \"a\"",
                "line 4: `checks.text` is missing: set it or `matches`",
            ),
            (
                "type = \"command_output\"\ncommand = []\nstdout = \"x\"",
                "line 6: `checks.command` is invalid: expected a program and its arguments",
            ),
            (
                "type = \"command_succeeds\"\ncommand = [\"x\"]\ntimeout_sec = 5",
                "line 7: `checks.timeout_sec` is not a known key; did you mean `timeout_secs`?",
            ),
        ] {
            assert!(problems(bad).contains(&fault.to_owned()), "{bad}: {:?}", problems(bad));
        }
        assert!(
            problems("type = \"file_contains\"\npath = \"a\"\nmatches = \"(\"")[0]
                .contains("not a regular expression")
        );
    }
}
