//! One attempt at one trial, from an empty folder to an unsigned result: set up, `runner start`, `runner loop`, capture,
//! check, classify. [`super::worker`] calls it, signs the result and publishes it.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use runner_core::layout::Doc;
use runner_core::model::cost::number;
use runner_core::model::digest::Sha256;
use runner_core::model::run_state::RunState;
use runner_core::step::CostSource;
use runner_core::strict::canonical_json;
use runner_core::text::one_line;
use runner_host::clock::{now_ms, utc};
use runner_term::CommandError;
use supervise::{ExitReason, executables};

use crate::case::suite::LoadedCase;
use crate::execution::grade::Grader;
use crate::execution::loop_log;
use crate::execution::process::{CommandResult, CommandRunner, CommandSpec};
use crate::execution::runner_under_test::machine_info;
use crate::execution::verdict::{LoopEnd, RunnerReport, TrialVerdict, classify};
use crate::execution::worker::{WorkerJob, WorkerMessage};
use crate::execution::workspace::{Workspace, case_variables};
use crate::files;
use crate::plan::agent::EvalAgent;
use crate::result::signature::file_digests;
use crate::result::stored_trial::{CHECKS_FILE, META_FILE};
use crate::result::{CheckResults, INPUTS_SCHEMA, META_SCHEMA, TrialCost, TrialInputs, TrialMeta};

/// The time limit of `runner init` and of `runner start`.
const START_TIMEOUT: Duration = Duration::from_secs(300);

pub(crate) const START_LOG: &str = "runner.start.log";
/// What `runner --json loop` printed.
pub(crate) const LOOP_LOG: &str = "runner.loop.log";
/// The folder of iterations, under `.runner/` and in a result.
pub(crate) const ITERATIONS: &str = "iterations";

pub(crate) struct TrialAttempt<'a> {
    job: &'a WorkerJob,
    loaded: &'a LoadedCase,
    commands: &'a CommandRunner,
    send: &'a dyn Fn(WorkerMessage),
    workspace: Workspace,
    agent: EvalAgent,
    eval_run_id: String,
    number: u32,
    /// The folder in which the result is assembled.
    staging: PathBuf,
}

/// A result whose files are in the staging folder, except for the inputs, which are not signed yet.
pub(crate) struct FinishedAttempt {
    pub(crate) meta: TrialMeta,
    pub(crate) inputs: TrialInputs,
}

struct LoopResult {
    end: LoopEnd,
    seconds: f64,
    /// The configuration that the run started with; empty if it did not start.
    config: String,
}

impl LoopResult {
    fn did_not_start(why: impl Into<String>) -> Self {
        Self { end: LoopEnd::DidNotStart(why.into()), seconds: 0.0, config: String::new() }
    }
}

struct CheckedLoop {
    loop_result: LoopResult,
    checks: CheckResults,
    verdict: TrialVerdict,
}

impl<'a> TrialAttempt<'a> {
    pub(crate) fn new(
        job: &'a WorkerJob,
        loaded: &'a LoadedCase,
        number: u32,
        staging: PathBuf,
        commands: &'a CommandRunner,
        send: &'a dyn Fn(WorkerMessage),
    ) -> Result<Self, CommandError> {
        let agent = job.trial.agent.parse().map_err(|error: String| {
            CommandError::refused("agent", format!("no such agent: `{}`", job.trial.agent)).cause(error)
        })?;
        let eval_run_id = job.trial.eval_run_id(&job.run, number);
        let workspace = Workspace::new(&job.workspaces, &job.trial.case, &eval_run_id);
        Ok(Self { job, loaded, commands, send, workspace, agent, eval_run_id, number, staging })
    }

    pub(crate) fn run(&self) -> Result<FinishedAttempt, CommandError> {
        let started = Instant::now();
        let started_ms = now_ms();
        let fail = |error| CommandError::io("could not write the result", &self.staging, &error);
        files::remove_any(&self.staging).map_err(fail)?;
        fs::create_dir_all(&self.staging).map_err(fail)?;
        let missing = self.missing_programs();
        let checked = if missing.is_empty() {
            self.run_and_check().map_err(fail)?
        } else {
            CheckedLoop {
                loop_result: LoopResult::did_not_start(""),
                checks: CheckResults::new(Vec::new()),
                verdict: TrialVerdict::skipped(&missing),
            }
        };
        let inputs_config = checked.loop_result.config.clone();
        fs::write(self.staging.join(CHECKS_FILE), canonical_json(&checked.checks)).map_err(fail)?;
        let meta = self.meta(checked, started, started_ms);
        fs::write(self.staging.join(META_FILE), canonical_json(&meta)).map_err(fail)?;
        let _ = files::remove_any(&self.workspace.private);
        Ok(FinishedAttempt { meta, inputs: self.inputs(&inputs_config) })
    }

    fn missing_programs(&self) -> Vec<&str> {
        let required = self.loaded.case.requires.iter().map(String::as_str);
        required.filter(|program| executables::find(program, None).is_none()).collect()
    }

    fn run_and_check(&self) -> io::Result<CheckedLoop> {
        let loop_result = self.run_loop();
        self.capture()?;
        let checks = match loop_result.end {
            LoopEnd::Stopped | LoopEnd::DidNotStart(_) => CheckResults::new(Vec::new()),
            LoopEnd::Exited(_) | LoopEnd::TimedOut | LoopEnd::Killed(_) => self.grade(&loop_result)?,
        };
        self.tear_down();
        let verdict = classify(&loop_result.end, &self.runner_report(), &checks.checks);
        Ok(CheckedLoop { loop_result, checks, verdict })
    }

    /// Creates the repository and runs `runner init`, `runner start` and `runner loop` in it.
    fn run_loop(&self) -> LoopResult {
        self.send_phase("setup");
        let config = match self.start() {
            Ok(config) => config,
            Err(_) if self.commands.is_stopping() => {
                return LoopResult { end: LoopEnd::Stopped, ..LoopResult::did_not_start("") };
            }
            Err(why) => return LoopResult::did_not_start(why),
        };
        self.send_phase("loop");
        let counter = RefCell::new(IterationCounter::default());
        let on_output = |bytes: &[u8]| {
            if let Some(iterations) = counter.borrow_mut().add(bytes) {
                (self.send)(WorkerMessage::Iterations(iterations));
            }
        };
        let spec = CommandSpec {
            on_output: Some(&on_output),
            timeout: Duration::from_secs(self.loaded.case.limits.wall_secs.into()),
            ..self.runner_command(&["--json", "loop"], LOOP_LOG)
        };
        match self.commands.run(&spec) {
            Err(error) => LoopResult { config, ..LoopResult::did_not_start(error.to_string()) },
            Ok(result) => LoopResult { end: self.loop_end(&result), seconds: result.seconds, config },
        }
    }

    fn loop_end(&self, result: &CommandResult) -> LoopEnd {
        if self.commands.is_stopping() {
            return LoopEnd::Stopped;
        }
        match &result.exit {
            ExitReason::Exited(code) => LoopEnd::Exited(*code),
            ExitReason::TimedOut => LoopEnd::TimedOut,
            ExitReason::CouldNotStart(error) => LoopEnd::DidNotStart(error.to_string()),
            exit @ (ExitReason::Signalled(_) | ExitReason::Idle | ExitReason::Stopped | ExitReason::Lost) => {
                LoopEnd::Killed(exit.to_string())
            }
        }
    }

    fn send_phase(&self, phase: &str) {
        (self.send)(WorkerMessage::Phase(phase.to_owned()));
    }

    /// A command of the runner under test in the repository.
    fn runner_command(&self, arguments: &[&str], log: &str) -> CommandSpec<'a> {
        let mut argv = vec![self.job.runner.clone().into_os_string()];
        argv.extend(arguments.iter().map(Into::into));
        CommandSpec {
            folder: self.workspace.repository.clone(),
            env: case_variables(self.loaded),
            timeout: START_TIMEOUT,
            log: Some(self.staging.join(log)),
            ..CommandSpec::new(argv)
        }
    }

    /// Creates the repository, configures it, starts the run, and returns its configuration. The configuration is written
    /// before `runner start`, because the rules of a run are those that `start` commits.
    fn start(&self) -> Result<String, String> {
        self.workspace.create(self.loaded, self.commands)?;
        let config = self.workspace.configuration(self.loaded, &self.agent)?;
        self.run_start_command(&["init"])?;
        let path = self.workspace.document(Doc::Config);
        fs::write(&path, &config).map_err(|error| format!("`{}`: {error}", path.display()))?;
        let goal = self.workspace.private.join("goal.md");
        fs::write(&goal, &self.loaded.case.goal).map_err(|error| format!("`{}`: {error}", goal.display()))?;
        self.run_start_command(&["start", "--goal-file", &goal.to_string_lossy()])?;
        Ok(config)
    }

    fn run_start_command(&self, arguments: &[&str]) -> Result<(), String> {
        let result = self
            .commands
            .run(&self.runner_command(arguments, START_LOG))
            .map_err(|error| error.to_string())?;
        if result.is_success() {
            return Ok(());
        }
        Err(format!("`runner {}` {}: {}", arguments.join(" "), result.exit, result.tail()))
    }

    /// Copies what the run left into the result: its documents and the folders of its iterations. Links, which an agent
    /// may have created, are not followed.
    fn capture(&self) -> io::Result<()> {
        for (doc, name) in [(Doc::Tree, "tree.json"), (Doc::RunState, "run_state.json")] {
            let path = self.workspace.document(doc);
            if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
                fs::copy(path, self.staging.join(name))?;
            }
        }
        let folder = self.workspace.document(Doc::Goal).with_file_name(ITERATIONS);
        if fs::symlink_metadata(&folder).is_ok_and(|metadata| metadata.is_dir()) {
            files::copy_tree(&folder, &self.staging.join(ITERATIONS))?;
        }
        Ok(())
    }

    /// Runs the checks on a copy: the workspace stays as the run left it and never contains hidden files.
    fn grade(&self, loop_result: &LoopResult) -> io::Result<CheckResults> {
        self.send_phase("checks");
        let copy = self.workspace.private.join("checked");
        files::remove_any(&copy)?;
        files::copy_tree(&self.workspace.repository, &copy)?;
        let grader = Grader {
            loaded: self.loaded,
            commands: self.commands,
            runner: &self.job.runner,
            copy: &copy,
            is_completed: loop_result.end == LoopEnd::Exited(0),
        };
        Ok(grader.run_checks())
    }

    fn tear_down(&self) {
        let Some(teardown) = &self.loaded.case.teardown else { return };
        let result = self.workspace.run_case_command(self.loaded, teardown, "teardown", self.commands);
        if let Err(why) = result {
            (self.send)(WorkerMessage::Note(one_line(&why)));
        }
    }

    fn run_state(&self) -> Option<RunState> {
        RunState::decode(&fs::read(self.staging.join("run_state.json")).ok()?).ok()
    }

    fn runner_report(&self) -> RunnerReport {
        let log = fs::read(self.staging.join(LOOP_LOG)).unwrap_or_default();
        RunnerReport {
            last_outcome: self.run_state().and_then(|state| state.last_outcome),
            why: loop_log::stop_reason(&log),
        }
    }

    fn meta(&self, checked: CheckedLoop, started: Instant, started_ms: u64) -> TrialMeta {
        let CheckedLoop { loop_result, verdict, .. } = checked;
        let state = self.run_state();
        let spent = state.as_ref().map(|state| state.spent);
        let tokens =
            spent.and_then(|spent| known_amount(number(spent.tokens), number(spent.sessions_without_tokens)));
        let microdollars = spent
            .and_then(|spent| known_amount(number(spent.microdollars), number(spent.sessions_without_cost)));
        let source = spent.map_or(CostSource::Unknown, |spent| spent.basis());
        TrialMeta {
            schema: META_SCHEMA.to_owned(),
            case_id: self.job.trial.case.clone(),
            tags: self.loaded.case.tags.clone(),
            agent: self.job.trial.agent.clone(),
            trial: self.job.trial.trial,
            attempt: self.number,
            run: self.job.run.to_string(),
            eval_run_id: self.eval_run_id.clone(),
            outcome: verdict.outcome,
            cause: verdict.cause,
            why: verdict.why.map(|why| one_line(&why)),
            expected: self.loaded.case.expect.filter(|_| self.agent == EvalAgent::Case),
            runner_exit: loop_result.end.exit_code(),
            wall_secs: rounded_to_ms(started.elapsed().as_secs_f64()),
            loop_secs: rounded_to_ms(loop_result.seconds),
            iterations: state.as_ref().map_or(0, |state| state.next_iter.get().saturating_sub(1)),
            tokens,
            cost: TrialCost { microdollars, source },
            runner: self.job.runner_version.clone(),
            started_at: utc(started_ms).unwrap_or_default(),
            ended_at: utc(now_ms()).unwrap_or_default(),
        }
    }

    fn inputs(&self, config: &str) -> TrialInputs {
        let digests = &self.loaded.digests;
        TrialInputs {
            schema: INPUTS_SCHEMA.to_owned(),
            case_sha256: digests.case.to_string(),
            fixture_sha256: digests.fixture.map(|digest| digest.to_string()),
            checks_sha256: digests.checks.to_string(),
            config_sha256: Sha256::of(config.as_bytes()).to_string(),
            runner: self.job.runner_version.clone(),
            host: machine_info(self.job.jobs),
            files: file_digests(&self.staging),
            signature: String::new(),
        }
    }
}

/// A sum over sessions; none if it is 0 because no session reported its part.
fn known_amount(sum: u64, sessions_without: u64) -> Option<u64> {
    if sum == 0 && sessions_without > 0 { None } else { Some(sum) }
}

fn rounded_to_ms(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// Counts iterations in the output of the loop, which arrives in arbitrary pieces.
#[derive(Default)]
struct IterationCounter {
    partial_line: Vec<u8>,
    iterations: u32,
}

impl IterationCounter {
    /// The new number of iterations, if it changed.
    fn add(&mut self, bytes: &[u8]) -> Option<u32> {
        self.partial_line.extend_from_slice(bytes);
        let complete = self.partial_line.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let rest = self.partial_line.split_off(complete);
        let lines = std::mem::replace(&mut self.partial_line, rest);
        let decided = loop_log::count_iterations(&lines);
        self.iterations += u32::try_from(decided).unwrap_or_default();
        (decided > 0).then_some(self.iterations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_are_counted_across_pieces_of_output() {
        let mut counter = IterationCounter::default();
        assert_eq!(counter.add(b"{\"event\":\"dec"), None);
        assert_eq!(counter.add(b"ided\"}\n{\"event\":\"decided\"}\n{\"ev"), Some(2));
        assert_eq!(counter.add(b"ent\":\"agent\"}\n"), None);
    }

    #[test]
    fn amount_is_unknown_only_if_no_session_reported_it() {
        assert_eq!(known_amount(0, 2), None);
        assert_eq!((known_amount(0, 0), known_amount(5, 1)), (Some(0), Some(5)));
    }
}
