//! One agent session: prepared, run under a supervisor, and ended by restoring the repository around its changes.
//!
//! [`PreparedSession`] → [`EndedSession`] → [`OpenIteration`](super::open_iteration::OpenIteration): each phase consumes
//! the one before and holds exactly its state.

use std::cell::RefCell;
use std::time::Duration;

use runner_core::agents::{RepositoryAccess, SessionIdentity};
use runner_core::config::ExecutorKind;
use runner_core::model::agent_report::AgentReport;
use runner_core::step::{Interruption, Job, LoadedRun, RedResults, SessionExit, Usage};
use supervise::{
    ExitReason, OutputLog, OutputTarget, ProcessResult, ProcessSpec, SignalTarget, StopPolicy, StopSignal,
    TimeLimits,
};

use super::agent_version::AgentVersion;
use super::event_log::EventLog;
use super::file_activity::FileActivity;
use super::known_state::KnownState;
use super::laid_files::LaidFiles;
use super::open_iteration::{EndedSession, IterationSetup, SessionOutcome};
use super::program_runner::ProgramRunner;
use super::protected_paths::ProtectedPaths;
use super::sandboxing::{ConfinedCommand, RepositoryView, SessionSandbox};
use super::session_files::{
    OUTPUT, SessionCheckpoint, read_report, return_logins, session_paths, start_recorder, write_context,
    write_setup_files,
};
use super::transcript_recorder::TranscriptRecorder;
use super::usage_logs::UsageLogs;
use crate::agent::command::{self, PreparedCommand, SessionPaths};
use crate::agent::sandbox_program::AgentWrapping;
use crate::error::Error;
use crate::failpoint;
use crate::fs::atomic;
use crate::git::Git;
use crate::recorder::{REQUESTS, Recorder};
use crate::repo::journal::{EndNote, IterationEntry, IterationPhase};
use crate::repo::repo_guard::{GitAccess, RepoSnapshot, SessionRef, make_folders_writable};
use crate::repo::worktree;

const WORK_TREE: RepositoryView<'static> = RepositoryView::WorkTree(RepositoryAccess::Writable);

/// A session whose files are written and whose beginning is in the journal.
pub(super) struct PreparedSession {
    setup: IterationSetup,
    sandbox: SessionSandbox,
    checkpoint: SessionCheckpoint,
}

/// What a session needs to run.
pub(super) struct SessionEnv<'w, 'a> {
    pub(super) git: &'w Git,
    pub(super) programs: &'w ProgramRunner,
    pub(super) events: &'w mut EventLog<'a>,
    pub(super) version: &'w mut AgentVersion,
}

/// What is known of the agent after its process ended.
struct AgentResult {
    outcome: SessionOutcome,
    identity: SessionIdentity,
}

impl PreparedSession {
    /// Captures the state of the repository, writes the session's files, and records in the journal that it begins.
    pub(super) fn prepare(
        env: &mut SessionEnv<'_, '_>,
        run: &LoadedRun,
        job: &Job,
        sandbox: SessionSandbox,
        known: Option<KnownState>,
        red: &RedResults,
    ) -> Result<Self, Error> {
        let git = env.git;
        let known = known.filter(|known| known.head.commit() == Some(&run.commit));
        let snapshot = RepoSnapshot::capture(git, GitAccess::of(sandbox.kind()))?;
        let index = worktree::pin_index(git, known.as_ref().and_then(|known| known.index))?;
        let (protected, tree_file) = known.map_or((None, None), |known| (known.protected, known.tree_file));
        let protected = match protected {
            Some(protected) => protected,
            None => ProtectedPaths::read(git, job, &run.commit, &index)?,
        };
        write_context(git, job)?;
        let setup = IterationSetup::new(git, run, job, index, sandbox.kind(), protected)?;
        env.events.begin_iteration(setup.dir.events_file());
        setup.dir.write_tree_before(&setup.tree, tree_file.as_ref());
        let entry = Box::new(IterationEntry {
            run: job.run_id.clone(),
            iter: job.iteration,
            base: setup.base.clone(),
            git_dir: git.paths().git_dir_in_root(),
            snapshot,
            sandbox: setup.sandbox,
            request: run.request,
            red: red.clone(),
            phase: IterationPhase::Session,
        });
        let checkpoint = SessionCheckpoint::begin(git, entry, &setup.index)?;
        // With the journal written, a crash cannot leave these files behind.
        LaidFiles::read(git, job, &setup.base)?.lay(git)?;
        failpoint::reach("iter.begun");
        Ok(Self { setup, sandbox, checkpoint })
    }

    /// Runs the agent to its end, and restores what it must not change.
    pub(super) fn run(mut self, env: &mut SessionEnv<'_, '_>, job: &Job) -> Result<EndedSession, Error> {
        let agent = self.run_agent(env, job)?;
        self.end(env.git, job, agent)
    }

    fn run_agent(&mut self, env: &mut SessionEnv<'_, '_>, job: &Job) -> Result<AgentResult, Error> {
        let git = env.git;
        let protected = &self.setup.protected.at_base;
        let command_sandbox = self.sandbox.for_commands(git, job, protected, WORK_TREE)?;
        let recorder = match start_recorder(git, job, &self.setup.dir, REQUESTS) {
            Ok(recorder) => recorder,
            Err(why) => return Ok(AgentResult::not_started(why)),
        };
        let url = recorder.as_ref().map(|recorder| recorder.url().to_owned());
        let paths =
            SessionPaths { recorder: url, ..session_paths(git, job, &self.setup.dir, command_sandbox) };
        let command = match prepare_command(job, &paths) {
            Ok(command) => command,
            Err(why) => return Ok(AgentResult::not_started(why)),
        };
        let version = match (command.agent, command.argv.first()) {
            (Some(agent), Some(program)) => env.version.of(agent, program),
            (_, _) => None,
        };
        let confined = self.sandbox.wrap(command, git, job, protected, WORK_TREE)?;
        let format = job.agent.executor.output_format();
        let usage_logs = UsageLogs::new(confined.command.usage_logs.clone());
        let transcript = RefCell::new(
            TranscriptRecorder::new(format, job.iteration, Some(env.events)).with_usage_logs(usage_logs),
        );
        let links = confined.command.links.clone();
        let result = self.run_process(git, env.programs, job, &paths, confined, &transcript)?;
        return_logins(&links);
        self.setup.dir.set_requests(recorder.map(Recorder::finish));
        let by = env.programs.interruption().unwrap_or(Interruption::Int);
        let session = transcript.into_inner().conclude(session_exit(result.exit, by), &paths.context_full());
        // An agent that writes files and messages has its answer in the file, if there is one.
        let is_in_file = job.agent.executor.kind == ExecutorKind::Acp && paths.output.exists();
        if let Some(answer) = session.answer.filter(|_| !is_in_file) {
            atomic::write(&paths.output, &answer)?;
        }
        self.setup.dir.set_agent_time(result.active);
        self.setup.time_left = self.setup.time_left.saturating_sub(result.active);
        let processes_left = u32::try_from(result.leftovers.killed).unwrap_or(u32::MAX);
        let identity = SessionIdentity {
            session_id: session.identity.session_id,
            model: session.identity.model.or_else(|| job.agent.executor.model.clone()),
            version: session.identity.version.or(version),
        };
        let outcome = SessionOutcome { exit: session.exit, usage: session.usage, processes_left };
        Ok(AgentResult { outcome: outcome.with_report(read_report(git, job)), identity })
    }

    /// Runs the agent's process, and passes its output to the transcript.
    fn run_process(
        &self,
        git: &Git,
        programs: &ProgramRunner,
        job: &Job,
        paths: &SessionPaths,
        confined: ConfinedCommand,
        transcript: &RefCell<TranscriptRecorder<'_, '_>>,
    ) -> Result<ProcessResult, Error> {
        let ConfinedCommand { command, wrapping } = confined;
        let log = |name: &str| OutputLog {
            path: self.setup.dir.file(name),
            bytes_max: job.limits.executor_output_bytes,
        };
        let output = match job.agent.executor.output_format() {
            Some(_) => OutputTarget::Separate { stdout: log(OUTPUT), stderr: log("executor.err.log") },
            None => OutputTarget::Combined(log(OUTPUT)),
        };
        let activity = RefCell::new(FileActivity::new(git, &self.setup.index));
        let has_changed_files = || activity.borrow_mut().has_changed();
        let on_output = |source, bytes: &[u8]| transcript.borrow_mut().push(source, bytes);
        let is_over_budget = || {
            if !job.limits.budget.is_limited() {
                return false;
            }
            let usage = transcript.borrow_mut().usage().unwrap_or_else(|| read_report(git, job).usage);
            job.limits.budget.is_reached(usage)
        };
        let spec = ProcessSpec::new(command.argv, git.root(), output)
            .env(command.environment)
            .stdin_file(&paths.prompt)
            .jsonl_copy(log("stream.jsonl"))
            .time_limits(TimeLimits {
                wall: self.setup.time_left,
                idle: Duration::from_secs(job.limits.idle_secs.unwrap_or(0)),
            })
            .stop_policy(StopPolicy {
                is_sandboxed: wrapping == AgentWrapping::Namespace,
                ..stop_policy(job)
            })
            .file_activity(&has_changed_files)
            .stop_when(&is_over_budget)
            .on_output(&on_output);
        let result = programs.run(spec)?;
        Ok(ProcessResult { exit: wrapping.exit_inside(result.exit), ..result })
    }

    /// Restores what the session must not change, and notes that it ended.
    fn end(self, git: &Git, job: &Job, agent: AgentResult) -> Result<EndedSession, Error> {
        let Self { setup, checkpoint, .. } = self;
        let access = GitAccess::of(setup.sandbox);
        if access == GitAccess::Writable {
            make_folders_writable(git);
        }
        checkpoint.git_dir.restore(git)?;
        checkpoint.tidy_private(git, &setup.index)?;
        setup.dir.tidy()?;
        let session = SessionRef { run: &job.run_id, iter: job.iteration, base: &setup.base, access };
        let restored = checkpoint.entry.snapshot.restore(git, session)?;
        if !setup.index.exists() {
            git.read_for_worktree(&setup.index, &setup.base)?;
            git.refresh_index(&setup.index)?;
        }
        checkpoint.restore_user_index(git, &setup.index)?;
        let entry = checkpoint.entry;
        let SessionOutcome { exit, usage, processes_left } = agent.outcome.clone();
        if let Some(note) = EndNote::new(&entry, exit, usage, processes_left) {
            note.write(&git.paths().end_note())?;
        }
        failpoint::reach("iter.ended");
        Ok(EndedSession { setup, entry, outcome: agent.outcome, restored, identity: agent.identity })
    }
}

impl AgentResult {
    fn not_started(why: String) -> Self {
        let exit = SessionExit::NotStarted { why };
        Self {
            outcome: SessionOutcome { exit, usage: Usage::default(), processes_left: 0 },
            identity: SessionIdentity::default(),
        }
    }
}

impl SessionOutcome {
    /// Adds what the agent reported about itself, where the runner did not find out by itself.
    pub(super) fn with_report(self, report: AgentReport) -> Self {
        let exit = match (self.exit, report.fault) {
            (SessionExit::Finished { .. }, Some(fault)) => SessionExit::Provider { fault },
            (exit, _) => exit,
        };
        let usage = if self.usage == Usage::default() { report.usage } else { self.usage };
        Self { exit, usage, processes_left: self.processes_left }
    }
}

/// The agent's command, with its setup files written; or why it cannot start.
pub(super) fn prepare_command(job: &Job, paths: &SessionPaths) -> Result<PreparedCommand, String> {
    let command = command::agent_command(job, paths)?;
    write_setup_files(paths, &command).map_err(|error| error.to_string())?;
    Ok(command)
}

pub(super) fn session_exit(exit: ExitReason, by: Interruption) -> SessionExit {
    match exit {
        ExitReason::Exited(code) => SessionExit::Finished { code },
        ExitReason::Signalled(signal) => SessionExit::Killed { signal },
        ExitReason::CouldNotStart(error) => SessionExit::NotStarted { why: error.to_string() },
        ExitReason::TimedOut => SessionExit::TimedOut,
        ExitReason::Idle => SessionExit::Idle,
        ExitReason::OverLimit => SessionExit::OverBudget,
        ExitReason::Stopped => SessionExit::Interrupted { by },
        ExitReason::Lost => SessionExit::Killed { signal: 9 },
    }
}

/// Codex and Claude Code stop their own commands on SIGINT, and leave them running on SIGTERM. The client of an ACP agent
/// cancels its turn.
pub(super) fn stop_policy(job: &Job) -> StopPolicy {
    let default = StopPolicy::default();
    let executor = &job.agent.executor;
    let is_native = executor.agent().is_some_and(|agent| !agent.is_preset());
    if is_native || executor.kind == ExecutorKind::Acp {
        return StopPolicy { signal: StopSignal::Interrupt, target: SignalTarget::Program, ..default };
    }
    default
}
