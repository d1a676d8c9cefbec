//! Runs a case's checks on a copy of the repository that a trial left.
//!
//! The commands of checks run code of the agent, so they run in a sandbox: without network, without the evaluation's own
//! files, and with only the copy writable. A check that cannot be run to its end is run again on the initial files, to find
//! out whether the check or the work is broken.

use std::cell::OnceCell;
use std::ffi::OsString;
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
use crate::execution::process::{
    CommandResult, CommandRunner, CommandSandbox, CommandSpec, InheritedVariables, resolve_argv,
};
use crate::execution::quota::{TrialQuotas, WatchedRun, run_watched};
use crate::execution::sandbox::{SandboxAccess, SandboxPrograms};
use crate::execution::workspace::{Workspace, case_variables};
use crate::execution::{disk_share, judge_output, junit_counts, rootfs};
use crate::files;
use crate::result::{CheckResult, CheckResults};

/// The largest file that a check reads.
const FILE_MAX_BYTES: u64 = 64 << 20;
const VERIFY_TIMEOUT: Duration = Duration::from_secs(600);
/// The module that judges import.
const JUDGE_MODULE: &str = include_str!("judge.py");

pub(crate) struct Grader<'a> {
    pub(crate) loaded: &'a LoadedCase,
    pub(crate) commands: &'a CommandRunner,
    /// The runner under test, for `verify_passes`.
    pub(crate) runner: &'a Path,
    /// None if trials run without a sandbox.
    pub(crate) sandbox: Option<&'a SandboxPrograms>,
    /// What the code of the agent may not read.
    pub(crate) hidden: &'a [PathBuf],
    /// A folder for the copies, outside of the repository.
    pub(crate) scratch: &'a Path,
    /// Whether `runner loop` exited with 0.
    pub(crate) is_completed: bool,
}

/// The checks of a trial's work.
pub(crate) struct GradedWork {
    pub(crate) results: CheckResults,
    /// Folders that could not be read or copied, so that no check saw them.
    pub(crate) skipped_folders: u64,
}

/// Why a check did not pass.
#[derive(Clone, Debug)]
enum CheckFailure {
    /// The check ran and found something.
    Failed(String),
    /// The check did not run to its end, which may be its own fault.
    NotRun { how: UnfinishedCheck, why: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnfinishedCheck {
    NotStarted,
    TimedOut,
    /// It used more memory, processes or disk than the case allows.
    Exceeded,
    Stopped,
}

struct CheckOutcome {
    /// The last output of the check's command.
    output: Option<String>,
    failure: Option<CheckFailure>,
}

impl CheckOutcome {
    fn of(failure: Option<CheckFailure>, result: &CommandResult) -> Self {
        Self { output: Some(result.tail()), failure }
    }
}

impl From<Result<(), String>> for CheckOutcome {
    fn from(result: Result<(), String>) -> Self {
        Self { output: None, failure: result.err().map(CheckFailure::Failed) }
    }
}

impl From<CheckFailure> for CheckOutcome {
    fn from(failure: CheckFailure) -> Self {
        Self { output: None, failure: Some(failure) }
    }
}

impl Grader<'_> {
    /// Copies the repository and runs every check on the copy.
    pub(crate) fn grade(&self, repository: &Path) -> io::Result<GradedWork> {
        let copy = self.scratch.join("checked");
        files::remove_any(&copy)?;
        let skipped_folders = files::copy_tree(repository, &copy)?;
        let results = self.run_checks(&copy);
        for name in ["checked", "control", "control.trial", "judge", "tmp"] {
            let _ = files::remove_any(&self.scratch.join(name));
        }
        Ok(GradedWork { results, skipped_folders })
    }

    /// Hidden checks run after all others; the results keep the order of the case file.
    fn run_checks(&self, copy: &Path) -> CheckResults {
        let work = CheckedCopy { grader: self, copy };
        let control = OnceCell::new();
        let checks = &self.loaded.case.checks;
        let mut results: Vec<Option<CheckResult>> = vec![None; checks.len()];
        for hidden in [false, true] {
            for (check, result) in checks.iter().zip(&mut results) {
                if check.hidden == hidden {
                    *result = Some(self.run_check(check, &work, &control));
                }
            }
        }
        CheckResults::new(results.into_iter().flatten().collect())
    }

    fn run_check(
        &self,
        check: &Check,
        work: &CheckedCopy<'_>,
        control: &OnceCell<Option<PathBuf>>,
    ) -> CheckResult {
        let started = Instant::now();
        let CheckOutcome { output, failure } = work.run(check);
        let (why, grader_fault) = match failure {
            None => (None, false),
            Some(CheckFailure::Failed(why)) => (Some(why), false),
            Some(CheckFailure::NotRun { how, why }) => {
                let is_broken = self.fails_on_initial_files(check, how, control);
                let note = if is_broken { " (on the initial files too: the check is broken)" } else { "" };
                (Some(format!("{why}{note}")), is_broken)
            }
        };
        CheckResult {
            name: check.name.clone(),
            kind: check.kind.as_str().to_owned(),
            hidden: check.hidden,
            trap: check.trap,
            passed: why.is_none(),
            grader_fault,
            why: why.map(|why| one_line(&why)),
            seconds: started.elapsed().as_secs_f64(),
            output: output.filter(|output| !output.is_empty()),
        }
    }

    /// Whether a check fails in the same way without any work of the agent.
    fn fails_on_initial_files(
        &self,
        check: &Check,
        how: UnfinishedCheck,
        control: &OnceCell<Option<PathBuf>>,
    ) -> bool {
        let create = || {
            let workspace = Workspace {
                repository: self.scratch.join("control"),
                private: self.scratch.join("control.trial"),
            };
            workspace.create(self.loaded, self.commands).is_ok().then_some(workspace.repository)
        };
        // On a full disk, the check proves nothing about itself: the work may have filled it.
        if disk_share::is_full(self.scratch) {
            return false;
        }
        let Some(copy) = control.get_or_init(create) else { return false };
        let outcome = CheckedCopy { grader: self, copy }.run(check);
        matches!(outcome.failure, Some(CheckFailure::NotRun { how: again, .. }) if again == how)
    }
}

/// A copy of a repository that checks run on.
struct CheckedCopy<'a> {
    grader: &'a Grader<'a>,
    copy: &'a Path,
}

impl CheckedCopy<'_> {
    fn run(&self, check: &Check) -> CheckOutcome {
        // The previous check may have run the agent's code, so the hidden files are written again for each check.
        let hidden = self.grader.loaded.hidden().filter(|_| check.hidden);
        let is_judge = matches!(check.kind, CheckKind::Judge { .. });
        if let Some(hidden) = hidden.filter(|_| !is_judge)
            && let Err(error) = files::copy_files_into(&hidden, self.copy)
        {
            let why = format!("could not write the hidden files: {error}");
            return CheckFailure::NotRun { how: UnfinishedCheck::NotStarted, why }.into();
        }
        self.evaluate(&check.kind)
    }

    fn evaluate(&self, kind: &CheckKind) -> CheckOutcome {
        match kind {
            CheckKind::FileExists { path } => self.resolve_inside(path).map(|_| ()).into(),
            CheckKind::FileContains { path, expected } => self.file_contains(path, expected).into(),
            CheckKind::CommandSucceeds { command, exit, stdout_matches } => {
                let expected = stdout_matches.clone().map(ExpectedOutput::Matches);
                self.check_command(command, *exit, expected.as_ref())
            }
            CheckKind::CommandOutput { command, expected } => self.check_command(command, 0, Some(expected)),
            CheckKind::RunnerCompleted if self.grader.is_completed => Ok(()).into(),
            CheckKind::RunnerCompleted => Err("`runner loop` did not exit with 0".to_owned()).into(),
            CheckKind::GitClean => self.git_clean().into(),
            CheckKind::VerifyPasses => self.verify(),
            CheckKind::Junit { path, command, min_tests } => self.junit(path, command.as_ref(), *min_tests),
            CheckKind::Judge { command, min_tests } => self.judge(command, *min_tests),
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
        let metadata = fs::metadata(&resolved).map_err(|error| format!("`{path}`: {error}"))?;
        if !metadata.is_file() {
            return Err(format!("`{path}` is not a file"));
        }
        let size = metadata.len();
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

    /// Runs a command of a check in a folder, in the sandbox.
    fn run_command(
        &self,
        command: &CheckCommand,
        folder: &Path,
        env: Vec<(OsString, OsString)>,
    ) -> Result<CommandResult, CheckFailure> {
        let text = command.argv.join(" ");
        let not_started = |why: String| CheckFailure::NotRun {
            how: UnfinishedCheck::NotStarted,
            why: format!("`{text}`: {why}"),
        };
        let is_judge = folder != self.copy;
        let root = self.grader.loaded.rootfs().filter(|_| !is_judge);
        let argv = resolve_argv_in(root.as_deref(), &command.argv, folder)
            .ok_or_else(|| not_started("the program is not on the PATH".to_owned()))?;
        let spec = CommandSpec {
            folder: folder.to_owned(),
            env,
            timeout: Duration::from_secs(command.timeout_secs),
            output_max_bytes: command.output_max_bytes,
            ..self.sandboxed(argv, root)
        };
        let WatchedRun { result, exceeded } = run_watched(&self.quotas(), self.grader.commands, &spec);
        let result = result.map_err(|error| not_started(error.to_string()))?;
        if let Some(what) = exceeded {
            let why = format!("`{text}`: quota exceeded: {what}");
            return Err(CheckFailure::NotRun { how: UnfinishedCheck::Exceeded, why });
        }
        match &result.exit {
            ExitReason::TimedOut => Err(CheckFailure::NotRun {
                how: UnfinishedCheck::TimedOut,
                why: format!("`{text}` {}", result.exit),
            }),
            ExitReason::CouldNotStart(error) => Err(not_started(error.to_string())),
            ExitReason::Exited(_)
            | ExitReason::Signalled(_)
            | ExitReason::Idle
            | ExitReason::OverLimit
            | ExitReason::Stopped
            | ExitReason::Lost => Ok(result),
        }
    }

    /// What the commands of checks may use: as much as the loop.
    fn quotas(&self) -> TrialQuotas {
        let folders = vec![self.copy.to_owned(), self.grader.scratch.join("tmp")];
        TrialQuotas::of_case(&self.grader.loaded.case, folders)
    }

    /// A command that can write only the copy and its temporary folder. Without a root file system of the case's own, it sees
    /// that of this machine.
    fn sandboxed(&self, argv: Vec<OsString>, root: Option<PathBuf>) -> CommandSpec<'_> {
        let Grader { sandbox, scratch, hidden, .. } = *self.grader;
        // What another check left there would count as this one's.
        let temporary = scratch.join("tmp");
        let _ = files::remove_any(&temporary);
        let _ = fs::create_dir_all(&temporary);
        let mut readable = vec![scratch.join("judge")];
        if root.is_none() {
            // A judge starts the work in it.
            readable.extend(self.grader.loaded.rootfs());
        }
        readable.retain(|path| path.exists());
        let access = SandboxAccess {
            hidden: hidden.to_vec(),
            readable,
            writable: vec![self.copy.to_owned()],
            temporary,
            rootfs: root,
            quotas: self.quotas().of_processes(),
            ..SandboxAccess::default()
        };
        CommandSpec {
            folder: self.copy.to_owned(),
            inherited: InheritedVariables::Basic,
            sandbox: sandbox.map(|programs| CommandSandbox { programs, access }),
            ..CommandSpec::new(argv)
        }
    }

    fn check_command(
        &self,
        command: &CheckCommand,
        exit: i32,
        expected: Option<&ExpectedOutput>,
    ) -> CheckOutcome {
        let result = match self.run_command(command, self.copy, case_variables(self.grader.loaded)) {
            Ok(result) => result,
            Err(failure) => return failure.into(),
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
        CheckOutcome::of(failure.map(CheckFailure::Failed), &result)
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
            timeout: VERIFY_TIMEOUT,
            ..self.sandboxed(vec![self.grader.runner.into(), "verify".into()], None)
        };
        match run_watched(&self.quotas(), self.grader.commands, &spec).result {
            Err(error) => Err(error.to_string()).into(),
            Ok(result) => {
                let failure = (!result.is_success()).then(|| format!("`runner verify` {}", result.exit));
                CheckOutcome::of(failure.map(CheckFailure::Failed), &result)
            }
        }
    }

    fn junit(&self, path: &str, command: Option<&CheckCommand>, min_tests: u64) -> CheckOutcome {
        let variables = case_variables(self.grader.loaded);
        let output = match command.map(|command| self.run_command(command, self.copy, variables)) {
            Some(Err(failure)) => return failure.into(),
            Some(Ok(result)) => Some(result.tail()),
            None => None,
        };
        let failure = self.check_junit_report(path, min_tests).err().map(CheckFailure::Failed);
        CheckOutcome { output, failure }
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

    /// Runs a judge in a folder of its own and reads its lines. Programs of the work run in sandboxes without that folder.
    fn judge(&self, command: &CheckCommand, min_tests: u64) -> CheckOutcome {
        let folder = self.grader.scratch.join("judge");
        if let Err(error) = self.write_judge(&folder) {
            let why = format!("could not write the files of the judge: {error}");
            return CheckFailure::NotRun { how: UnfinishedCheck::NotStarted, why }.into();
        }
        let mut env = case_variables(self.grader.loaded);
        let root = self.grader.loaded.rootfs();
        let prefix = self
            .grader
            .sandbox
            .map(|programs| programs.candidate_prefix(self.copy, &[&folder], root.as_deref()));
        let words: Vec<String> =
            prefix.into_iter().flatten().map(|word| word.to_string_lossy().into_owned()).collect();
        env.push(("EVAL_CANDIDATE".into(), serde_json::to_string(&words).unwrap_or_default().into()));
        env.push(("EVAL_WORK".into(), self.copy.into()));
        env.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
        let result = match self.run_command(command, &folder, env) {
            Ok(result) => result,
            Err(failure) => return failure.into(),
        };
        let text = command.argv.join(" ");
        let failure = match judge_output::read(&result.stdout) {
            None => Some(CheckFailure::NotRun {
                how: UnfinishedCheck::Stopped,
                why: format!("the judge `{text}` {} before its end", result.exit),
            }),
            Some(report) => failed_judgement(&report, min_tests).map(CheckFailure::Failed),
        };
        CheckOutcome::of(failure, &result)
    }

    fn write_judge(&self, folder: &Path) -> io::Result<()> {
        files::remove_any(folder)?;
        fs::create_dir_all(folder)?;
        if let Some(hidden) = self.grader.loaded.hidden() {
            files::copy_files_into(&hidden, folder)?;
        }
        // The module has another name than the judge itself, which is usually `judge.py`.
        fs::write(folder.join("judging.py"), JUDGE_MODULE)
    }
}

/// The program and its arguments, with the program's path in the root file system, if there is one.
fn resolve_argv_in(root: Option<&Path>, argv: &[String], folder: &Path) -> Option<Vec<OsString>> {
    let (Some(root), Some((program, arguments))) = (root, argv.split_first()) else {
        return resolve_argv(argv, folder);
    };
    let path =
        if program.contains('/') { folder.join(program) } else { rootfs::find_program(root, program)? };
    let mut resolved = vec![path.into_os_string()];
    resolved.extend(arguments.iter().map(OsString::from));
    Some(resolved)
}

fn failed_judgement(report: &judge_output::JudgeReport, min_tests: u64) -> Option<String> {
    if !report.failed.is_empty() {
        let first = report.failed.first().map(String::as_str).unwrap_or_default();
        return Some(format!("{} of {} tests failed: {first}", report.failed.len(), report.tests));
    }
    (report.tests < min_tests).then(|| format!("{} tests ran, expected at least {min_tests}", report.tests))
}

/// Patterns are validated when the case is decoded.
fn is_match(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
}
