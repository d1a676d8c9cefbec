//! What must hold after a trial: the types of checks, read strictly.

use regex::Regex;
use runner_core::config::CommandArgv;
use runner_core::strict::{BoundedInt, nearest};
use serde::Serialize;

use super::Table;

/// How long a command may take.
type Seconds = BoundedInt<1, 86_400>;
/// How much of what it writes is kept.
type Bytes = BoundedInt<1_024, 1_073_741_824>;

/// How long a command may take where its check does not say.
const TIMEOUT_SECS: i64 = 60;
/// How much of its output is kept.
const OUTPUT_MAX_BYTES: i64 = 1 << 20;

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What it is called in results.
    pub name: String,
    /// Whether the agent must not know it: it is run after the others, with the hidden files in place.
    pub hidden: bool,
    /// What must hold.
    pub kind: CheckKind,
}

/// A command to run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// How long it may take.
    pub timeout_secs: u64,
    /// How much of its output is kept.
    pub output_max_bytes: u64,
}

/// What a command must print.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum ExpectedOutput {
    /// This text, but for blanks at the end.
    Text(String),
    /// Something that this expression matches.
    Matches(String),
}

/// What can be checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckKind {
    /// A file is there.
    FileExists { path: String },
    /// A file holds something.
    FileContains { path: String, expected: ExpectedOutput },
    /// A command ends with an exit code, and prints something if that is said.
    CommandSucceeds { command: CheckCommand, exit: i32, stdout_matches: Option<String> },
    /// A command ends with 0 and prints something.
    CommandOutput { command: CheckCommand, expected: ExpectedOutput },
    /// The runner says that its goal is reached.
    RunnerCompleted,
    /// The work tree is what the last commit holds.
    GitClean,
    /// `runner verify` finds every rule kept.
    VerifyPasses,
    /// A report in JUnit's form has enough tests and no failures. The command that makes it is run first, if there is
    /// one; its exit code does not matter.
    Junit { path: String, command: Option<CheckCommand>, min_tests: u64 },
}

const TYPES: [&str; 8] = [
    "file_exists",
    "file_contains",
    "command_succeeds",
    "command_output",
    "runner_completed",
    "git_clean",
    "verify_passes",
    "junit",
];

impl CheckKind {
    /// Its type, as the file has it.
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
        }
    }
}

impl Check {
    pub(super) fn take(table: &mut Table<'_>) -> Self {
        let kind: Option<String> = table.required("type");
        let name = table.optional("name").unwrap_or_default();
        let hidden = table.optional("hidden").unwrap_or(false);
        let kind = match kind.as_deref() {
            Some("file_exists") => CheckKind::FileExists { path: take_path(table) },
            Some("file_contains") => {
                CheckKind::FileContains { path: take_path(table), expected: take_expected(table, "text") }
            }
            Some("command_succeeds") => CheckKind::CommandSucceeds {
                command: CheckCommand::take(table),
                exit: take_exit(table),
                stdout_matches: take_pattern(table, "stdout_matches"),
            },
            Some("command_output") => CheckKind::CommandOutput {
                command: CheckCommand::take(table),
                expected: take_expected(table, "stdout"),
            },
            Some("runner_completed") => CheckKind::RunnerCompleted,
            Some("verify_passes") => CheckKind::VerifyPasses,
            Some("junit") => take_junit(table),
            Some("git_clean") | None => CheckKind::GitClean,
            Some(other) => {
                let near = nearest(other, &TYPES).map(|near| format!("; did you mean `{near}`?"));
                let known = near.unwrap_or_else(|| format!(": there are {}", TYPES.join(", ")));
                table.report_rule("type", format!("is `{other}`, which is no check{known}"));
                // What goes with a type that is not known is not known either.
                for key in KEYS {
                    let _: Option<toml::Value> = table.any_value(key);
                }
                CheckKind::GitClean
            }
        };
        Self { name, hidden, kind }
    }
}

/// All keys of all types.
const KEYS: [&str; 10] = [
    "path",
    "text",
    "matches",
    "command",
    "timeout_secs",
    "output_max_bytes",
    "exit",
    "stdout_matches",
    "stdout",
    "min_tests",
];

fn take_path(table: &mut Table<'_>) -> String {
    let path: String = table.required("path").unwrap_or_default();
    let leads_out = path.starts_with('/') || path.split('/').any(|part| part == "..");
    if leads_out {
        table.report_rule("path", "must lead to something inside the repository");
    }
    path
}

fn take_exit(table: &mut Table<'_>) -> i32 {
    let exit: Option<BoundedInt<0, 255>> = table.optional("exit");
    exit.and_then(|exit| i32::try_from(exit.get()).ok()).unwrap_or(0)
}

fn take_pattern(table: &mut Table<'_>, key: &'static str) -> Option<String> {
    let pattern: String = table.optional(key)?;
    if let Err(fault) = Regex::new(&pattern) {
        table.report_rule(
            key,
            format!("is no regular expression: {}", runner_core::text::one_line(&fault.to_string())),
        );
    }
    Some(pattern)
}

/// Either an exact text or an expression, and not both.
fn take_expected(table: &mut Table<'_>, exact: &'static str) -> ExpectedOutput {
    let text: Option<String> = table.optional(exact);
    let matches = take_pattern(table, "matches");
    match (text, matches) {
        (Some(text), None) => ExpectedOutput::Text(text),
        (None, Some(pattern)) => ExpectedOutput::Matches(pattern),
        (Some(_), Some(pattern)) => {
            table.report_rule("matches", format!("stands beside `{exact}`: remove one of them"));
            ExpectedOutput::Matches(pattern)
        }
        (None, None) => {
            if !table.has_problem(exact) && !table.has_problem("matches") {
                table.report_rule(exact, "is missing, and so is `matches`: one of them is needed");
            }
            ExpectedOutput::Text(String::new())
        }
    }
}

fn take_junit(table: &mut Table<'_>) -> CheckKind {
    let path = take_path(table);
    let command = table.has("command").then(|| CheckCommand::take(table));
    let min_tests: Option<BoundedInt<1, 1_000_000>> = table.optional("min_tests");
    let min_tests = min_tests.map_or(1, BoundedInt::as_u64);
    CheckKind::Junit { path, command, min_tests }
}

impl CheckCommand {
    fn take(table: &mut Table<'_>) -> Self {
        let argv: Option<CommandArgv> = table.required("command");
        let timeout: Option<Seconds> = table.optional("timeout_secs");
        let bytes: Option<Bytes> = table.optional("output_max_bytes");
        Self::new(
            argv,
            timeout.map_or(TIMEOUT_SECS, BoundedInt::get),
            bytes.map_or(OUTPUT_MAX_BYTES, BoundedInt::get),
        )
    }

    /// A command that is given by its words alone.
    pub(super) fn take_simple(table: &mut Table<'_>, key: &'static str) -> Option<Self> {
        let argv: CommandArgv = table.optional(key)?;
        Some(Self::new(Some(argv), 10 * TIMEOUT_SECS, OUTPUT_MAX_BYTES))
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

    fn told(check: &str) -> Vec<String> {
        let text = format!("[case]\nid = \"a\"\ngoal = \"g\"\n[[checks]]\n{check}\n");
        Case::decode(text.as_bytes()).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_type_is_read() {
        for good in [
            "type = \"file_exists\"\npath = \"a/b\"",
            "type = \"file_contains\"\npath = \"a\"\ntext = \"x\"",
            "type = \"file_contains\"\npath = \"a\"\nmatches = \"^x+$\"",
            "type = \"command_succeeds\"\ncommand = [\"true\"]\ntimeout_secs = 5\noutput_max_bytes = 4096\nexit = 3",
            "type = \"command_succeeds\"\ncommand = [\"true\"]\nstdout_matches = \"ok\"",
            "type = \"command_output\"\ncommand = [\"echo\"]\nstdout = \"\"",
            "type = \"runner_completed\"",
            "type = \"git_clean\"\nname = \"tidy\"\nhidden = true",
            "type = \"verify_passes\"",
            "type = \"junit\"\npath = \"r.xml\"\ncommand = [\"make\"]\nmin_tests = 3",
        ] {
            assert_eq!(told(good), [""; 0], "{good}");
        }
    }

    #[test]
    fn what_a_type_needs_and_what_it_cannot_mean_is_told() {
        for (bad, fault) in [
            ("path = \"a\"", "line 4: `checks.type` is missing"),
            ("type = \"file_exists\"", "line 4: `checks.path` is missing"),
            (
                "type = \"file_exists\"\npath = \"../x\"",
                "line 6: `checks.path` must lead to something inside the repository",
            ),
            (
                "type = \"file_contains\"\npath = \"a\"",
                "line 4: `checks.text` is missing, and so is `matches`: one of them is needed",
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
            assert!(told(bad).contains(&fault.to_owned()), "{bad}: {:?}", told(bad));
        }
        assert!(
            told("type = \"file_contains\"\npath = \"a\"\nmatches = \"(\"")[0]
                .contains("no regular expression")
        );
    }
}
