//! Running a case's checks on a copy of the repository that a trial left.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regex::Regex;
use runner_core::text::one_line;
use supervise::{ExitReason, TimeLimits};

use crate::case::{Check, CheckCommand, CheckKind, ExpectedOutput};
use crate::files;
use crate::junit;
use crate::process::{CommandResult, CommandRunner, CommandSpec, resolved};
use crate::result::{CHECKS_SCHEMA, CheckResult, CheckResults};
use crate::suite::LoadedCase;

/// The most bytes of a file that a check looks into.
const FILE_MAX_BYTES: u64 = 64 << 20;
/// How long `runner verify` may take.
const VERIFY_WITHIN: Duration = Duration::from_secs(600);

/// What the checks need.
pub(crate) struct Grader<'a> {
    pub(crate) kit: &'a LoadedCase,
    pub(crate) launcher: &'a CommandRunner,
    pub(crate) runner: &'a Path,
    /// The copy that is checked.
    pub(crate) folder: &'a Path,
    /// Whether `runner loop` ended with 0.
    pub(crate) completed: bool,
}

/// What came of one check: the last lines that its command wrote, and why it does not pass.
type Found = (Option<String>, Result<(), String>);

impl Grader<'_> {
    /// Every check, in the order of the file; those that are hidden run after all others, with the hidden files in
    /// place.
    pub(crate) fn grade(&self) -> CheckResults {
        let checks = &self.kit.case.checks;
        let mut results: Vec<Option<CheckResult>> = vec![None; checks.len()];
        for hidden in [false, true] {
            for (check, result) in checks.iter().zip(&mut results).filter(|(check, _)| check.hidden == hidden)
            {
                *result = Some(self.check(check));
            }
        }
        CheckResults { schema: CHECKS_SCHEMA.to_owned(), checks: results.into_iter().flatten().collect() }
    }

    fn check(&self, check: &Check) -> CheckResult {
        let started = Instant::now();
        // The check before may have run the agent's code: the hidden files are brought in anew for each.
        let laid_out = if check.hidden { files::lay_out(self.kit.hidden(), self.folder) } else { Ok(()) };
        let (output, found) = match laid_out {
            Ok(()) => self.look(&check.kind),
            Err(error) => (None, Err(format!("the hidden files could not be brought in: {error}"))),
        };
        CheckResult {
            name: check.name.clone(),
            kind: check.kind.as_str().to_owned(),
            hidden: check.hidden,
            passed: found.is_ok(),
            why: found.err().map(|why| one_line(&why)),
            seconds: started.elapsed().as_secs_f64(),
            output: output.filter(|output| !output.is_empty()),
        }
    }

    fn look(&self, kind: &CheckKind) -> Found {
        match kind {
            CheckKind::FileExists { path } => (None, self.inside(path).map(drop)),
            CheckKind::FileContains { path, expected } => (None, self.contains(path, expected)),
            CheckKind::CommandSucceeds { command, exit, stdout_matches } => {
                let matches = stdout_matches.clone().map(ExpectedOutput::Matches);
                self.command(command, *exit, matches.as_ref())
            }
            CheckKind::CommandOutput { command, expected } => self.command(command, 0, Some(expected)),
            CheckKind::RunnerCompleted if self.completed => (None, Ok(())),
            CheckKind::RunnerCompleted => (None, Err("the runner did not reach its goal".to_owned())),
            CheckKind::GitClean => (None, self.git_clean()),
            CheckKind::VerifyPasses => self.verify(),
            CheckKind::Junit { path, command, min_tests } => self.junit(path, command.as_ref(), *min_tests),
        }
    }

    /// Where a file is, if it is one and really lies inside: a link of the agent's leads nowhere.
    fn inside(&self, path: &str) -> Result<PathBuf, String> {
        let gone = |error: std::io::Error| format!("`{path}`: {error}");
        let root = self.folder.canonicalize().map_err(gone)?;
        let found = self.folder.join(path).canonicalize().map_err(gone)?;
        if !found.starts_with(&root) {
            return Err(format!("`{path}` leads out of the repository"));
        }
        Ok(found)
    }

    fn text(&self, path: &str) -> Result<String, String> {
        let found = self.inside(path)?;
        let size = fs::metadata(&found).map(|found| found.len()).unwrap_or_default();
        if size > FILE_MAX_BYTES {
            return Err(format!("`{path}` is {size} bytes, more than a check reads"));
        }
        fs::read(&found)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|error| format!("`{path}`: {error}"))
    }

    fn contains(&self, path: &str, expected: &ExpectedOutput) -> Result<(), String> {
        let text = self.text(path)?;
        let is_there = match expected {
            ExpectedOutput::Text(part) => text.contains(part.as_str()),
            ExpectedOutput::Matches(pattern) => matches(pattern, &text),
        };
        if is_there { Ok(()) } else { Err(format!("`{path}` does not hold what is expected")) }
    }

    fn run(&self, command: &CheckCommand) -> Result<CommandResult, String> {
        let argv = resolved(&command.argv, self.folder)
            .ok_or_else(|| format!("`{}` is not on the PATH", command.argv.join(" ")))?;
        let env = &self.kit.case.env;
        let errand = CommandSpec {
            argv,
            folder: self.folder.to_owned(),
            env: env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect(),
            limits: TimeLimits::wall(Duration::from_secs(command.timeout_secs)),
            output_max_bytes: command.output_max_bytes,
            ..CommandSpec::default()
        };
        self.launcher.run(&errand).map_err(|error| error.to_string())
    }

    fn command(&self, command: &CheckCommand, exit: i32, expected: Option<&ExpectedOutput>) -> Found {
        let ended = match self.run(command) {
            Ok(ended) => ended,
            Err(why) => return (None, Err(why)),
        };
        let output = Some(ended.tail());
        if !matches!(ended.exit, ExitReason::Exited(code) if code == exit) {
            let wanted = if exit == 0 { String::new() } else { format!(", and {exit} is expected") };
            return (output, Err(format!("`{}` {}{wanted}", command.argv.join(" "), ended.exit)));
        }
        let fits = match expected {
            None => true,
            Some(ExpectedOutput::Text(text)) => ended.stdout.trim_end() == text.trim_end(),
            Some(ExpectedOutput::Matches(pattern)) => matches(pattern, &ended.stdout),
        };
        let why = || format!("`{}` does not print what is expected", command.argv.join(" "));
        (output, if fits { Ok(()) } else { Err(why()) })
    }

    fn git_clean(&self) -> Result<(), String> {
        match runner_host::ops::demo_repo::is_clean(self.folder) {
            Ok(true) => Ok(()),
            Ok(false) => Err("the work tree has changes that are not committed".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn verify(&self) -> Found {
        let errand = CommandSpec {
            argv: vec![self.runner.into(), "verify".into()],
            folder: self.folder.to_owned(),
            limits: TimeLimits::wall(VERIFY_WITHIN),
            ..CommandSpec::default()
        };
        match self.launcher.run(&errand) {
            Err(error) => (None, Err(error.to_string())),
            Ok(ended) if ended.is_success() => (Some(ended.tail()), Ok(())),
            Ok(ended) => (Some(ended.tail()), Err(format!("`runner verify` {}", ended.exit))),
        }
    }

    fn junit(&self, path: &str, command: Option<&CheckCommand>, min_tests: u64) -> Found {
        let output = match command.map(|command| self.run(command)) {
            Some(Err(why)) => return (None, Err(why)),
            Some(Ok(ended)) => Some(ended.tail()),
            None => None,
        };
        let counted = self.text(path).and_then(|text| junit::count(&text));
        let found = counted.and_then(|counts| {
            let run = counts.tests.saturating_sub(counts.skipped);
            if counts.failed > 0 {
                return Err(format!("{} of {} tests failed", counts.failed, counts.tests));
            }
            if run < min_tests {
                return Err(format!("{run} tests were run, and at least {min_tests} are expected"));
            }
            Ok(())
        });
        (output, found)
    }
}

/// Patterns were tried when the case was read.
fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
}
