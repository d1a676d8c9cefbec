//! Runs a case's checks on a copy of the repository that a trial left.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regex::Regex;
use runner_core::text::one_line;
use runner_host::ops::demo_repo;
use supervise::ExitReason;

use crate::case::suite::LoadedCase;
use crate::case::{Check, CheckCommand, CheckKind, ExpectedOutput};
use crate::execution::junit_counts;
use crate::execution::process::{CommandResult, CommandRunner, CommandSpec, resolve_argv};
use crate::execution::workspace::case_variables;
use crate::files;
use crate::result::{CheckResult, CheckResults};

/// The largest file that a check reads.
const FILE_MAX_BYTES: u64 = 64 << 20;
const VERIFY_TIMEOUT: Duration = Duration::from_secs(600);

pub(crate) struct Grader<'a> {
    pub(crate) loaded: &'a LoadedCase,
    pub(crate) commands: &'a CommandRunner,
    /// The runner under test, for `verify_passes`.
    pub(crate) runner: &'a Path,
    /// The copy that the checks run on.
    pub(crate) copy: &'a Path,
    /// Whether `runner loop` exited with 0.
    pub(crate) is_completed: bool,
}

struct CheckOutcome {
    /// The last output of the check's command.
    output: Option<String>,
    /// Why the check failed.
    failure: Option<String>,
}

impl From<Result<(), String>> for CheckOutcome {
    fn from(result: Result<(), String>) -> Self {
        Self { output: None, failure: result.err() }
    }
}

impl Grader<'_> {
    /// Runs every check. Hidden ones run after all others; the results keep the order of the case file.
    pub(crate) fn run_checks(&self) -> CheckResults {
        let checks = &self.loaded.case.checks;
        let mut results: Vec<Option<CheckResult>> = vec![None; checks.len()];
        for hidden in [false, true] {
            for (check, result) in checks.iter().zip(&mut results) {
                if check.hidden == hidden {
                    *result = Some(self.run_check(check));
                }
            }
        }
        CheckResults::new(results.into_iter().flatten().collect())
    }

    fn run_check(&self, check: &Check) -> CheckResult {
        let started = Instant::now();
        // The previous check may have run the agent's code, so the hidden files are written again for each check.
        let written = if check.hidden { files::write_tree(self.loaded.hidden(), self.copy) } else { Ok(()) };
        let outcome = match written {
            Ok(()) => self.evaluate(&check.kind),
            Err(error) => Err(format!("could not write the hidden files: {error}")).into(),
        };
        CheckResult {
            name: check.name.clone(),
            kind: check.kind.as_str().to_owned(),
            hidden: check.hidden,
            passed: outcome.failure.is_none(),
            why: outcome.failure.map(|why| one_line(&why)),
            seconds: started.elapsed().as_secs_f64(),
            output: outcome.output.filter(|output| !output.is_empty()),
        }
    }

    fn evaluate(&self, kind: &CheckKind) -> CheckOutcome {
        match kind {
            CheckKind::FileExists { path } => self.resolve_inside(path).map(drop).into(),
            CheckKind::FileContains { path, expected } => self.file_contains(path, expected).into(),
            CheckKind::CommandSucceeds { command, exit, stdout_matches } => {
                let expected = stdout_matches.clone().map(ExpectedOutput::Matches);
                self.check_command(command, *exit, expected.as_ref())
            }
            CheckKind::CommandOutput { command, expected } => self.check_command(command, 0, Some(expected)),
            CheckKind::RunnerCompleted if self.is_completed => Ok(()).into(),
            CheckKind::RunnerCompleted => Err("`runner loop` did not exit with 0".to_owned()).into(),
            CheckKind::GitClean => self.git_clean().into(),
            CheckKind::VerifyPasses => self.verify(),
            CheckKind::Junit { path, command, min_tests } => self.junit(path, command.as_ref(), *min_tests),
        }
    }

    /// The absolute path of an existing file. Fails if a link, perhaps the agent's, leads out of the repository.
    fn resolve_inside(&self, path: &str) -> Result<PathBuf, String> {
        let fail = |error: io::Error| format!("`{path}`: {error}");
        let root = self.copy.canonicalize().map_err(fail)?;
        let resolved = self.copy.join(path).canonicalize().map_err(fail)?;
        if !resolved.starts_with(&root) {
            return Err(format!("`{path}` leads out of the repository"));
        }
        Ok(resolved)
    }

    fn read_text(&self, path: &str) -> Result<String, String> {
        let resolved = self.resolve_inside(path)?;
        let size = fs::metadata(&resolved).map(|metadata| metadata.len()).unwrap_or_default();
        if size > FILE_MAX_BYTES {
            return Err(format!("`{path}` has {size} bytes, more than the limit of {FILE_MAX_BYTES}"));
        }
        let bytes = fs::read(&resolved).map_err(|error| format!("`{path}`: {error}"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn file_contains(&self, path: &str, expected: &ExpectedOutput) -> Result<(), String> {
        let text = self.read_text(path)?;
        let contains = match expected {
            ExpectedOutput::Text(part) => text.contains(part.as_str()),
            ExpectedOutput::Matches(pattern) => is_match(pattern, &text),
        };
        if contains { Ok(()) } else { Err(format!("`{path}` does not contain the expected text")) }
    }

    fn run_command(&self, command: &CheckCommand) -> Result<CommandResult, String> {
        let argv = resolve_argv(&command.argv, self.copy)
            .ok_or_else(|| format!("`{}`: the program is not on the PATH", command.argv.join(" ")))?;
        let spec = CommandSpec {
            folder: self.copy.to_owned(),
            env: case_variables(self.loaded),
            timeout: Duration::from_secs(command.timeout_secs),
            output_max_bytes: command.output_max_bytes,
            ..CommandSpec::new(argv)
        };
        self.commands.run(&spec).map_err(|error| error.to_string())
    }

    fn check_command(
        &self,
        command: &CheckCommand,
        exit: i32,
        expected: Option<&ExpectedOutput>,
    ) -> CheckOutcome {
        let result = match self.run_command(command) {
            Ok(result) => result,
            Err(why) => return Err(why).into(),
        };
        let text = command.argv.join(" ");
        let failure = if !matches!(result.exit, ExitReason::Exited(code) if code == exit) {
            let wanted = if exit == 0 { String::new() } else { format!(", expected {exit}") };
            Some(format!("`{text}` {}{wanted}", result.exit))
        } else {
            let matches = match expected {
                None => true,
                Some(ExpectedOutput::Text(text)) => result.stdout.trim_end() == text.trim_end(),
                Some(ExpectedOutput::Matches(pattern)) => is_match(pattern, &result.stdout),
            };
            (!matches).then(|| format!("`{text}` does not print the expected output"))
        };
        CheckOutcome { output: Some(result.tail()), failure }
    }

    /// Uses the host's git, which runs no program that the repository's configuration names: an agent may have written it.
    fn git_clean(&self) -> Result<(), String> {
        match demo_repo::is_clean(self.copy) {
            Ok(true) => Ok(()),
            Ok(false) => Err("the work tree has uncommitted changes".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn verify(&self) -> CheckOutcome {
        let spec = CommandSpec {
            folder: self.copy.to_owned(),
            timeout: VERIFY_TIMEOUT,
            ..CommandSpec::new(vec![self.runner.into(), "verify".into()])
        };
        match self.commands.run(&spec) {
            Err(error) => Err(error.to_string()).into(),
            Ok(result) => CheckOutcome {
                output: Some(result.tail()),
                failure: (!result.is_success()).then(|| format!("`runner verify` {}", result.exit)),
            },
        }
    }

    fn junit(&self, path: &str, command: Option<&CheckCommand>, min_tests: u64) -> CheckOutcome {
        let output = match command.map(|command| self.run_command(command)) {
            Some(Err(why)) => return Err(why).into(),
            Some(Ok(result)) => Some(result.tail()),
            None => None,
        };
        CheckOutcome { output, failure: self.check_junit_report(path, min_tests).err() }
    }

    fn check_junit_report(&self, path: &str, min_tests: u64) -> Result<(), String> {
        let counts = junit_counts::count(&self.read_text(path)?)?;
        if counts.failed > 0 {
            return Err(format!("{} of {} tests failed", counts.failed, counts.tests));
        }
        let executed = counts.tests.saturating_sub(counts.skipped);
        if executed < min_tests {
            return Err(format!("{executed} tests ran, expected at least {min_tests}"));
        }
        Ok(())
    }
}

/// Patterns are validated when the case is decoded.
fn is_match(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
}
