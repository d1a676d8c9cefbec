//! One attempt at one trial, from an empty folder to an unsigned result: set up, `runner start`, `runner loop`, capture,
//! check, classify. [`super::worker`] calls it, signs the result and publishes it.

mod capture;
mod start;
pub(crate) mod work_patch;

use std::cell::RefCell;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use runner_core::model::cost::number;
use runner_core::model::digest::Sha256;
use runner_core::model::run_state::RunState;
use runner_core::step::{CostSource, Outcome as IterationOutcome, RecordedIteration};
use runner_core::strict::canonical_json;
use runner_core::text::one_line;
use runner_host::clock::{now_ms, utc};
use runner_term::CommandError;
use supervise::{ExitReason, executables};

use crate::case::suite::LoadedCase;
use crate::execution::grade::Grader;
use crate::execution::loop_log::{self, LoopCounter, LoopProgress};
use crate::execution::metrics::loop_metrics;
use crate::execution::process::{CommandResult, CommandRunner, CommandSandbox, CommandSpec};
use crate::execution::quota::{TrialQuotas, WatchedRun, run_watched};
use crate::execution::runner_under_test::machine_info;
use crate::execution::sandbox::{SandboxAccess, SandboxPrograms, hidden_paths};
use crate::execution::verdict::{
    LoopEnd, RunnerReport, TrialVerdict, classify, classify_lost_work, is_provider_failure,
};
use crate::execution::worker::{LOOP_PHASE, WorkerJob, WorkerMessage};
use crate::execution::workspace::{TrialConfig, Workspace};
use crate::execution::{configured_agents, disk_share};
use crate::files;
use crate::plan::TrialSubject;
use crate::plan::agent::EvalAgent;
use crate::plan::arm::ExperimentArm;
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

/// How the code of a trial is kept away from what it may not read.
struct TrialConfinement {
    /// None if the trial runs without a sandbox.
    sandbox: Option<SandboxPrograms>,
    /// What the agent's code may not read.
    hidden: Vec<PathBuf>,
    /// How many bytes it may write, by what was free on the disk before it began.
    disk_bytes: u64,
}

pub(crate) struct TrialAttempt<'a> {
    job: &'a WorkerJob,
    loaded: &'a LoadedCase,
    commands: &'a CommandRunner,
    send: &'a dyn Fn(WorkerMessage),
    workspace: Workspace,
    agent: EvalAgent,
    confinement: TrialConfinement,
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
    /// What the setup before it took.
    setup_secs: f64,
    /// The configuration that the run started with; none if it did not start.
    config: Option<TrialConfig>,
    /// Whether code of the agent may have run. Known without the log, which an agent can keep from being written.
    has_session: bool,
}

impl LoopResult {
    fn did_not_start(end: LoopEnd) -> Self {
        Self { end, seconds: 0.0, setup_secs: 0.0, config: None, has_session: false }
    }
}

struct CheckedLoop {
    loop_result: LoopResult,
    checks: CheckResults,
    check_secs: f64,
    verdict: TrialVerdict,
}

impl CheckedLoop {
    /// A loop whose work was not checked.
    fn unchecked(end: LoopEnd, verdict: TrialVerdict) -> Self {
        let checks = CheckResults::new(Vec::new());
        Self { loop_result: LoopResult::did_not_start(end), checks, check_secs: 0.0, verdict }
    }
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
        let TrialSubject { agent, .. } = TrialSubject::parse(&job.trial.agent)?;
        let eval_run_id = job.trial.eval_run_id(&job.run, number);
        let workspace = Workspace::new(&job.workspaces, &job.trial.case, &eval_run_id);
        let sandbox = SandboxPrograms::for_mode(job.isolation)
            .map_err(|why| CommandError::refused("isolation", "cannot isolate trials").cause(why))?;
        let hidden = hidden_paths(&job.hidden, std::env::var_os("HOME").as_deref());
        let disk_bytes = disk_share::share(&job.workspaces, job.jobs);
        Ok(Self {
            job,
            loaded,
            commands,
            send,
            workspace,
            agent,
            confinement: TrialConfinement { sandbox, hidden, disk_bytes },
            eval_run_id,
            number,
            staging,
        })
    }

    pub(crate) fn run(&self) -> Result<FinishedAttempt, CommandError> {
        let started = Instant::now();
        let started_ms = now_ms();
        let fail = |error| CommandError::io("could not write the result", &self.staging, &error);
        files::remove_any(&self.staging).map_err(fail)?;
        fs::create_dir_all(&self.staging).map_err(fail)?;
        let missing = self.missing_programs();
        let checked = if let Some(exit) = &self.job.killed_worker {
            self.record_killed(exit)
        } else if missing.is_empty() {
            self.run_and_check()
        } else {
            CheckedLoop::unchecked(LoopEnd::MissingTool(String::new()), TrialVerdict::skipped(&missing))
        };
        self.make_room();
        let config = checked.loop_result.config.as_ref().map(|config| config.normalized.clone());
        fs::write(self.staging.join(CHECKS_FILE), canonical_json(&checked.checks)).map_err(fail)?;
        let meta = self.meta(checked, started, started_ms);
        fs::write(self.staging.join(META_FILE), canonical_json(&meta)).map_err(fail)?;
        let _ = files::remove_any(&self.workspace.private);
        let inputs = self.inputs(&config.unwrap_or_default())?;
        Ok(FinishedAttempt { meta, inputs })
    }

    /// A result for an attempt whose worker died: what the run left, and no checks.
    fn record_killed(&self, exit: &str) -> CheckedLoop {
        if let Err(error) = self.capture() {
            (self.send)(WorkerMessage::Note(format!("could not keep what the run left: {error}")));
        }
        let end = LoopEnd::Killed(format!("the worker process {exit}"));
        let verdict = classify(&end, &RunnerReport::default(), &[]);
        CheckedLoop::unchecked(end, verdict)
    }

    fn missing_programs(&self) -> Vec<&str> {
        let required = self.loaded.case.requires.iter().map(String::as_str);
        required.filter(|program| executables::find(program, None).is_none()).collect()
    }

    fn run_and_check(&self) -> CheckedLoop {
        let loop_result = self.run_loop();
        let mut loss = self.capture().err();
        let checks_started = Instant::now();
        let mut checks = CheckResults::new(Vec::new());
        if loss.is_none() && loop_result.end.leaves_work() {
            match self.grade(&loop_result) {
                Ok(results) => checks = results,
                Err(error) => loss = Some(error),
            }
        }
        let check_secs = checks_started.elapsed().as_secs_f64();
        self.tear_down();
        let report = self.runner_report(&loop_result);
        let verdict = match loss {
            Some(error) if loop_result.end.leaves_work() => classify_lost_work(&report, &error),
            _ => classify(&loop_result.end, &report, &checks.checks),
        };
        CheckedLoop { loop_result, checks, check_secs, verdict }
    }

    fn quotas(&self) -> TrialQuotas {
        let home = self.workspace.private.join("home");
        let folders = vec![self.workspace.repository.clone(), self.temporary(), home];
        let quotas = TrialQuotas::of_case(&self.loaded.case, folders);
        TrialQuotas { disk_bytes: quotas.disk_bytes.min(self.confinement.disk_bytes), ..quotas }
    }

    /// Creates the repository and runs `runner init`, `runner start` and `runner loop` in it.
    fn run_loop(&self) -> LoopResult {
        self.send_phase("setup");
        let setup_started = Instant::now();
        let config = match self.start() {
            Ok(config) => config,
            Err(_) if self.commands.is_stopping() => return LoopResult::did_not_start(LoopEnd::Stopped),
            Err(end) => return LoopResult::did_not_start(end),
        };
        let setup_secs = setup_started.elapsed().as_secs_f64();
        self.send_phase(LOOP_PHASE);
        let counter = RefCell::new(LoopCounter::default());
        let on_output = |bytes: &[u8]| {
            if let Some(iterations) = counter.borrow_mut().add(bytes) {
                (self.send)(WorkerMessage::Iterations(iterations));
            }
        };
        let spec = CommandSpec {
            on_output: Some(&on_output),
            timeout: Duration::from_secs(self.loaded.case.limits.wall_secs.into()),
            ..self.runner_command(&["--json", "loop", "--allow-red"], LOOP_LOG, Some(&config))
        };
        let WatchedRun { result, exceeded } = run_watched(&self.quotas(), self.commands, &spec);
        if let Some(home) = self.trial_home(Some(&config)).filter(|_| self.confinement.sandbox.is_some())
            && let Err(error) = home.keep_renewed_logins()
        {
            (self.send)(WorkerMessage::Note(format!("could not keep a renewed login: {error}")));
        }
        let seconds = result.as_ref().map_or(0.0, |result| result.seconds);
        let has_session = counter.borrow().has_session;
        let end = match (exceeded, result) {
            (_, Err(error)) if !has_session => {
                return LoopResult::did_not_start(LoopEnd::DidNotStart(error.to_string()));
            }
            (Some(what), _) if !self.commands.is_stopping() => LoopEnd::Exceeded(what),
            (_, Err(error)) => LoopEnd::Killed(format!("the runner is lost ({error})")),
            (_, Ok(result)) => self.loop_end(&result),
        };
        LoopResult { end, seconds, setup_secs, config: Some(config), has_session }
    }

    fn loop_end(&self, result: &CommandResult) -> LoopEnd {
        if self.commands.is_stopping() {
            return LoopEnd::Stopped;
        }
        match &result.exit {
            ExitReason::Exited(code) => LoopEnd::Exited(*code),
            ExitReason::TimedOut => LoopEnd::TimedOut,
            ExitReason::CouldNotStart(error) => LoopEnd::DidNotStart(error.to_string()),
            exit @ (ExitReason::Signalled(_)
            | ExitReason::Idle
            | ExitReason::OverLimit
            | ExitReason::Stopped
            | ExitReason::Lost) => LoopEnd::Killed(format!("the runner {exit}")),
        }
    }

    fn send_phase(&self, phase: &str) {
        (self.send)(WorkerMessage::Phase(phase.to_owned()));
    }

    /// Runs the checks on a copy: the workspace stays as the run left it and never contains hidden files.
    fn grade(&self, loop_result: &LoopResult) -> io::Result<CheckResults> {
        self.send_phase("checks");
        let grader = Grader {
            loaded: self.loaded,
            commands: self.commands,
            runner: &self.job.runner,
            sandbox: self.confinement.sandbox.as_ref(),
            hidden: &self.confinement.hidden,
            scratch: &self.workspace.private,
            is_completed: loop_result.end == LoopEnd::Exited(0),
        };
        let graded = grader.grade(&self.workspace.repository)?;
        self.note_skipped(graded.skipped_folders);
        Ok(graded.results)
    }

    /// Teardown runs in the agent's repository: git, make and other programs run what its files and its configuration name.
    /// So it gets a sandbox like that of the checks, in which it can also read its case.
    fn tear_down(&self) {
        let Some(teardown) = &self.loaded.case.teardown else { return };
        let temporary = self.temporary();
        let _ = fs::create_dir_all(&temporary);
        let access = SandboxAccess {
            hidden: self.confinement.hidden.clone(),
            readable: vec![files::absolute(&self.loaded.folder)],
            writable: vec![self.workspace.repository.clone()],
            temporary,
            quotas: self.quotas().of_processes(),
            ..SandboxAccess::default()
        };
        let sandbox = self.confinement.sandbox.as_ref();
        let sandbox = sandbox.map(|programs| CommandSandbox { programs, access });
        let result =
            self.workspace.run_case_command(self.loaded, teardown, "teardown", self.commands, sandbox);
        if let Err(why) = result {
            (self.send)(WorkerMessage::Note(one_line(&why)));
        }
    }

    fn loop_log(&self) -> Vec<u8> {
        fs::read(self.staging.join(LOOP_LOG)).unwrap_or_default()
    }

    fn run_state(&self) -> Option<RunState> {
        RunState::decode(&fs::read(self.staging.join("run_state.json")).ok()?).ok()
    }

    fn runner_report(&self, loop_result: &LoopResult) -> RunnerReport {
        let log = self.loop_log();
        let mut progress = LoopProgress::read(&log);
        progress.has_session |= loop_result.has_session;
        let last = progress.outcomes.last().copied();
        let config = loop_result.config.as_ref().map(|config| config.text.as_str());
        let confirm =
            |last| is_provider_failure(last) && self.confirm_provider_failure(last, &progress, config);
        RunnerReport {
            why: loop_log::stop_reason(&log),
            is_provider_failure_confirmed: last.is_some_and(confirm),
            progress,
        }
    }

    /// Whether the provider's side confirms that it failed. The user's check decides if there is one. Otherwise a failure counts
    /// that Codex or Claude Code reported before the model did anything in this trial: after that, commands of the model may have
    /// written the report or removed the login. Every other agent reports failures in a file that its own code can write.
    fn confirm_provider_failure(
        &self,
        outcome: IterationOutcome,
        progress: &LoopProgress,
        config: Option<&str>,
    ) -> bool {
        if let Some(check) = &self.job.provider_check {
            let argv = vec!["/bin/sh".into(), "-c".into(), check.into()];
            let spec = CommandSpec { folder: self.job.workspaces.clone(), ..CommandSpec::new(argv) };
            return self.commands.run(&spec).is_ok_and(|result| !result.is_success());
        }
        // A refusal may be the model's own.
        outcome != IterationOutcome::ProviderRefused
            && !progress.has_activity
            && config.is_some_and(configured_agents::are_native)
    }

    fn meta(&self, checked: CheckedLoop, started: Instant, started_ms: u64) -> TrialMeta {
        let CheckedLoop { loop_result, verdict, checks, check_secs } = checked;
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
            setup_secs: rounded_to_ms(loop_result.setup_secs),
            check_secs: rounded_to_ms(check_secs),
            iterations: state.as_ref().map_or(0, |state| state.next_iter.get().saturating_sub(1)),
            tokens,
            cost: TrialCost { microdollars, source },
            metrics: loop_result
                .config
                .is_some()
                .then(|| loop_metrics(&self.loop_log(), &self.staging, &checks.checks)),
            cheated: checks.cheated(),
            runner: self.job.runner_version.clone(),
            regrade_of: None,
            started_at: utc(started_ms).unwrap_or_default(),
            ended_at: utc(now_ms()).unwrap_or_default(),
        }
    }

    fn inputs(&self, config: &str) -> Result<TrialInputs, CommandError> {
        let digests = self.loaded.digests()?;
        let identity = self.last_identity();
        Ok(TrialInputs {
            schema: INPUTS_SCHEMA.to_owned(),
            case_sha256: digests.task.to_string(),
            fixture_sha256: digests.fixture.map(|digest| digest.to_string()),
            checks_sha256: digests.checks.to_string(),
            config_sha256: self.config_digest(config).to_string(),
            runner: self.job.runner_version.clone(),
            evaluator: env!("CARGO_PKG_VERSION").to_owned(),
            agent_version: identity.as_ref().and_then(|iteration| iteration.identity.version.clone()),
            model: identity.and_then(|iteration| iteration.identity.model),
            isolation: if self.confinement.sandbox.is_some() { "bubblewrap" } else { "none" }.to_owned(),
            host: machine_info(self.job.jobs),
            files: file_digests(&self.staging),
            signature: String::new(),
        })
    }

    /// The digest of everything that an arm can change: the configuration, the prompts and the checks of tasks.
    fn config_digest(&self, config: &str) -> Sha256 {
        let ExperimentArm { prompts_sha256, leaf_checks, .. } = &self.job.arm;
        let mut text = config.to_owned();
        text.extend(prompts_sha256.iter().map(|digest| format!("# prompts {digest}\n")));
        text.extend(leaf_checks.iter().map(|mode| format!("# checks {mode:?}\n")));
        Sha256::of(text.as_bytes())
    }

    /// The last iteration with a record.
    fn last_identity(&self) -> Option<RecordedIteration> {
        let folder = crate::report::iteration_folders(&self.staging).pop()?;
        RecordedIteration::from_json(&fs::read(folder.join("meta.json")).ok()?)
    }
}

/// A sum over sessions; none unless every session reported its part, because an unknown part is not 0.
fn known_amount(sum: u64, sessions_without: u64) -> Option<u64> {
    (sessions_without == 0).then_some(sum)
}

fn rounded_to_ms(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amount_is_unknown_if_any_session_did_not_report_it() {
        assert_eq!((known_amount(0, 2), known_amount(5, 1)), (None, None));
        assert_eq!((known_amount(0, 0), known_amount(5, 0)), (Some(0), Some(5)));
    }
}
