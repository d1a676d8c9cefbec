//! One session: what is laid out before it, the agent and the guard, and what is picked up after it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use runner_core::agents::{AgentSpec, SessionIdentity, SetupFile};
use runner_core::layout::Doc;
use runner_core::model::agent_report::AgentReport;
use runner_core::model::repo_path::RepoPath;
use runner_core::model::tree::{BYTES_MAX, Tree};
use runner_core::step::{
    Attempt, ChangeScope, GuardExit, GuardRun, Interruption, Job, LeftFile, ProtectedPath, SessionExit, Usage,
};

use super::sandboxing::AgentWrapping;
use super::transcript_recorder::TranscriptRecorder;
use super::{OpenIteration, RepoWorld, SessionCheckpoint, interruption_of};
use crate::agent::command::{self, PreparedCommand, SessionPaths};
use crate::agent::sandbox::{SandboxKind, folders_of, unwrapped};
use crate::error::{Error, UserError};
use crate::failpoint;
use crate::fs::atomic;
use crate::git::{Differing, Git, PathChange, PathSet, path_of};
use crate::iteration::iteration_dir::IterationDir;
use crate::repo::journal::{self, IterationEntry, IterationPhase, JournalEntry};
use crate::repo::paths::is_runner_path;
use crate::repo::repo_guard::{RepoSnapshot, RestoreReport, SessionRef};
use crate::repo::worktree;
use runner_core::text::one_line;
use supervise::executables;
use supervise::signals::SignalListener;
use supervise::{
    self, ExitReason, OutputLog, OutputTarget, ProcessInput, ProcessSpec, SignalTarget, StopSignal,
    TimeLimits,
};

/// The file that an agent's output goes to.
pub(super) const OUTPUT: &str = "executor.log";

/// The most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The most bytes of a report.
const REPORT_BYTES_MAX: u64 = 64 << 10;

/// How a session ended, before anything of it was looked at.
pub(super) struct EndedSession {
    pub(super) exit: SessionExit,
    pub(super) usage: Usage,
    pub(super) processes_left: u32,
}

impl RepoWorld<'_> {
    /// Lays everything out, and writes down that a session begins.
    pub(super) fn begin_session(&mut self, job: &Job, sandbox: SandboxKind) -> Result<(), Error> {
        let base = self.head.clone().ok_or(UserError::NoCommit)?;
        let pins = RepoSnapshot::take(&self.git)?;
        let left = self.left.take();
        let index = worktree::pin_index(&self.git, left.and_then(|left| left.index))?;
        if self.at_head.is_none() {
            self.at_head = Some(self.git.matching_in_index(&index, &job.protected)?);
        }
        atomic::clear(&answer_path(&self.git, job))?;
        atomic::clear(&report_path(&self.git, job))?;
        write_context(&self.git, job)?;
        let tree = self.tree.clone().ok_or(UserError::MissingDoc(Doc::Tree))?;
        self.set_bench(job, base.clone(), index, &tree)?;
        self.bench()?.sandbox = sandbox;
        let iteration = Box::new(IterationEntry {
            branch: job.run_id.branch(),
            iter: job.iteration.to_string(),
            base,
            pins,
            sandbox,
            phase: IterationPhase::Session,
        });
        journal::begin(&self.git.paths().journal(), &JournalEntry::Iteration(iteration.clone()))?;
        let index = atomic::stamp(&self.bench()?.index);
        let (journal, users) =
            (atomic::stamp(&self.git.paths().journal()), atomic::stamp(&self.git.paths().index()));
        self.session = Some(SessionCheckpoint { iteration, index, journal, users });
        failpoint::reach("iter.begun");
        Ok(())
    }

    /// Puts an iteration on the bench, with a folder for its log.
    pub(super) fn set_bench(
        &mut self,
        job: &Job,
        base: String,
        index: PathBuf,
        tree: &Tree,
    ) -> Result<(), Error> {
        let folder = IterationDir::open(
            self.git.root(),
            self.git.paths().iteration(job.run_id.as_str(), &job.iteration.to_string()),
        )?;
        self.early.drain(..).for_each(|event| folder.tell(&event));
        folder.write("prompt.md", job.prompt.text.as_bytes())?;
        folder.write_before(tree, self.last.as_ref())?;
        self.bench = Some(OpenIteration {
            run: job.run_id.clone(),
            base,
            index,
            folder,
            deadline: Instant::now() + Duration::from_secs(job.limits.iteration_secs),
            sandbox: SandboxKind::None,
            set_aside: Vec::new(),
            mended: RestoreReport::default(),
            attempt: None,
            verdict: GuardRun::Skipped,
            has_changes: true,
            identity: SessionIdentity::default(),
        });
        Ok(())
    }

    /// Runs the agent to its end.
    pub(super) fn run_session(&mut self, job: &Job) -> Result<EndedSession, Error> {
        let bench = self.bench.as_ref().ok_or(UserError::NoCommit)?;
        let mut places = places(&self.git, job, &bench.folder);
        places.fence = self.fence(job, bench)?;
        let program = command::agent(job, &places).and_then(|program| lay_ready(&places, program));
        let (PreparedCommand { argv, environment, agent, .. }, wrapped) = match program {
            Ok(program) => self.confined(program, job, bench)?,
            Err(why) => {
                let exit = SessionExit::NotStarted { why };
                return Ok(EndedSession { exit, usage: Usage::default(), processes_left: 0 });
            }
        };
        let version = agent.and_then(|agent| version(&mut self.version, agent, argv.first()?));
        let known_agent = job.executor.agent();
        let log = |name: &str| OutputLog {
            path: bench.folder.file(name),
            bytes_max: job.limits.executor_output_bytes,
        };
        let ear = RefCell::new(TranscriptRecorder::new(
            known_agent,
            job.iteration,
            &bench.folder,
            &mut *self.audience,
        ));
        // Looked at only when the agent seems idle; whether anything changed before the first look is not known.
        let seen = RefCell::new(None);
        let has_changed_files = || {
            let now = Some(fingerprint(&self.git, &bench.index));
            seen.replace(now.clone()) != now
        };
        let launch = ProcessSpec {
            argv,
            working_dir: self.git.root().to_owned(),
            environment,
            input: ProcessInput::File(places.prompt.clone()),
            output: match known_agent {
                Some(_) => OutputTarget::Separate { stdout: log(OUTPUT), stderr: log("executor.err.log") },
                None => OutputTarget::Combined(log(OUTPUT)),
            },
            stream: Some(log("stream.jsonl")),
            limits: TimeLimits {
                wall: bench.deadline.saturating_duration_since(Instant::now()),
                idle: Duration::from_secs(job.limits.idle_secs.unwrap_or(0)),
            },
            stop_policy: supervise::StopPolicy {
                is_sandboxed: wrapped == AgentWrapping::Yes,
                ..how_to_stop(agent)
            },
            has_changed_files: &has_changed_files,
            on_output: &|source, bytes| ear.borrow_mut().hear(source, bytes),
        };
        let ended = supervise::run(&launch, &self.control, &self.supervision)?;
        let by = self
            .signals
            .as_ref()
            .and_then(SignalListener::received)
            .map_or(Interruption::Int, interruption_of);
        let how = if wrapped == AgentWrapping::Yes { unwrapped(ended.exit) } else { ended.exit };
        let heard = ear.into_inner().conclude(exit_of(how, by), &places.context_full);
        if let Some(answer) = &heard.answer {
            atomic::write(&places.output, answer)?;
        }
        let (exit, usage) = with_report(heard.exit, heard.usage, reported(&self.git, job));
        let bench = self.bench()?;
        bench.folder.agent_took(ended.elapsed);
        let SessionIdentity { session_id, model, version: told } = heard.identity;
        let model = model.or_else(|| job.executor.model.clone());
        bench.identity = SessionIdentity { session_id, model, version: told.or(version) };
        let processes_left = u32::try_from(ended.leftovers.killed).unwrap_or(u32::MAX);
        Ok(EndedSession { exit, usage, processes_left })
    }

    /// Puts back what the session must not have changed, and picks up what it left.
    pub(super) fn end_session(&mut self, job: &Job, ended: EndedSession) -> Result<Attempt, Error> {
        let EndedSession { exit, usage, processes_left } = ended;
        let begun = self.session.take().ok_or(UserError::NoCommit)?;
        let index = self.bench()?.index.clone();
        tidy_private(&self.git, &index, &begun)?;
        let mut iteration = begun.iteration;
        self.bench()?.folder.tidy()?;
        let run = job.run_id.to_string();
        let name = SessionRef {
            run: &run,
            branch: &iteration.branch,
            iter: &iteration.iter,
            base: &iteration.base,
            index: begun.users,
        };
        let mended = iteration.pins.put_back(&self.git, name)?;
        if !index.exists() {
            self.git.read_into_index(&index, &iteration.base)?;
        }
        iteration.phase = IterationPhase::Ended { exit: exit.clone(), usage, processes_left };
        journal::note(&self.git.paths().journal(), &JournalEntry::Iteration(iteration))?;
        failpoint::reach("iter.ended");
        self.bench()?.mended = mended;
        self.pick_up(job, EndedSession { exit, usage, processes_left })
    }

    /// What the session left, as values.
    pub(super) fn pick_up(&mut self, job: &Job, ended: EndedSession) -> Result<Attempt, Error> {
        let git = &self.git;
        atomic::make_folders(git.root(), &git.paths().context())?;
        let at_start = match &self.at_start {
            Some(paths) => paths.clone(),
            None => {
                let base = &self.bench.as_ref().ok_or(UserError::NoCommit)?.base;
                git.matching_in(&git.start_commit(job.run_id.as_str(), base)?, &job.protected)?
            }
        };
        let answer = file_left(&answer_path(git, job), ANSWER_BYTES_MAX);
        let tree = file_left(&git.paths().doc(Doc::Tree), BYTES_MAX as u64);
        let bench = self.bench.as_mut().ok_or(UserError::NoCommit)?;
        if let LeftFile::Bytes(bytes) = &answer {
            bench.folder.write("output.json", bytes)?;
        }
        let found = worktree::take(git, &bench.index, &job.iteration.to_string())?;
        bench.set_aside = found.set_aside;
        let before = match self.at_head.take() {
            Some(paths) => paths,
            None => git.matching_in(&bench.base, &job.protected)?,
        };
        // An index that was taken up after a crash may hold some of the changes already, and a link in the place of a
        // folder hides what was in it: only then is git asked again.
        let is_unsure = self.resuming.is_some() || has_links(git, &found.changed);
        let changed: PathSet = match is_unsure {
            true => git.staged_paths(&bench.index, &bench.base)?,
            false => found.changed.keys().cloned().collect(),
        };
        bench.has_changes = !changed.is_empty();
        let now = if is_unsure || found.changed.values().any(|how| *how == PathChange::New) {
            git.matching_in_index(&bench.index, &job.protected)?
        } else {
            let is_gone = |path: &&Vec<u8>| found.changed.get(*path) == Some(&PathChange::Gone);
            before.iter().filter(|path| !is_gone(path)).cloned().collect()
        };
        let protected = protected_paths(&before, &now, &at_start, &changed);
        let outside = changed.iter().any(|path| !is_runner_path(path));
        self.at_start = Some(at_start);
        self.at_head = Some(now);
        let attempt = Attempt {
            exit: ended.exit,
            answer,
            tree,
            work: if outside { ChangeScope::Execute } else { ChangeScope::Decompose },
            protected,
            usage: ended.usage,
            processes_left: ended.processes_left,
        };
        self.bench()?.attempt = Some(attempt.clone());
        Ok(attempt)
    }

    /// Runs the guard on what is in the work tree.
    pub(super) fn guard(&mut self, job: &Job) -> Result<GuardRun, Error> {
        let bench = self.bench.as_ref().ok_or(UserError::NoCommit)?;
        let (path, left) = (bench.folder.file("guard.log"), bench.deadline);
        bench.folder.tidy()?;
        let (verdict, took) = self.ask_guard(job, &path, left.saturating_duration_since(Instant::now()))?;
        if let Some(took) = took {
            self.bench()?.folder.guard_took(took);
        }
        Ok(verdict)
    }

    /// Runs the guard, with its output in this file, and says how long it took if it ran.
    pub(super) fn ask_guard(
        &self,
        job: &Job,
        path: &Path,
        wall: Duration,
    ) -> Result<(GuardRun, Option<Duration>), Error> {
        let PreparedCommand { argv, environment, .. } = match command::guard(job, self.git.root()) {
            Ok(program) => program,
            Err(why) => return Ok((GuardRun::NotStarted { why }, None)),
        };
        let launch = ProcessSpec {
            argv,
            working_dir: self.git.root().to_owned(),
            environment,
            input: ProcessInput::Empty,
            output: OutputTarget::Combined(OutputLog {
                path: path.to_owned(),
                bytes_max: job.limits.guard_output_bytes,
            }),
            stream: None,
            limits: TimeLimits { wall, idle: Duration::ZERO },
            stop_policy: supervise::StopPolicy::default(),
            has_changed_files: &|| false,
            on_output: &|_, _| (),
        };
        let ended = supervise::run(&launch, &self.control, &self.supervision)?;
        let output = || fs::read(path).unwrap_or_default();
        let verdict = match ended.exit {
            ExitReason::Exited(code) => GuardRun::Ended { exit: GuardExit::Code(code), output: output() },
            ExitReason::Signalled(signal) => {
                GuardRun::Ended { exit: GuardExit::Signal(signal), output: output() }
            }
            ExitReason::CouldNotStart(error) => GuardRun::NotStarted { why: error.to_string() },
            ExitReason::TimedOut | ExitReason::Idle => GuardRun::TimedOut,
            ExitReason::Stopped => {
                GuardRun::Interrupted { by: self.interruption().unwrap_or(Interruption::Int) }
            }
            ExitReason::Lost => GuardRun::NotStarted { why: "its supervisor was killed".to_owned() },
        };
        Ok((verdict, Some(ended.elapsed)))
    }
}

fn exit_of(how: ExitReason, by: Interruption) -> SessionExit {
    match how {
        ExitReason::Exited(code) => SessionExit::Finished { code },
        ExitReason::Signalled(signal) => SessionExit::Killed { signal },
        ExitReason::CouldNotStart(error) => SessionExit::NotStarted { why: error.to_string() },
        ExitReason::TimedOut => SessionExit::TimedOut,
        ExitReason::Idle => SessionExit::Idle,
        ExitReason::Stopped => SessionExit::Interrupted { by },
        ExitReason::Lost => SessionExit::Killed { signal: 9 },
    }
}

/// Codex and Claude Code end their own commands when they are interrupted, and leave them alone when they are
/// terminated.
fn how_to_stop(agent: Option<&AgentSpec>) -> supervise::StopPolicy {
    let usual = supervise::StopPolicy::default();
    match agent {
        Some(_) => {
            supervise::StopPolicy { signal: StopSignal::Interrupt, target: SignalTarget::Program, ..usual }
        }
        None => usual,
    }
}

fn places(git: &Git, job: &Job, folder: &IterationDir) -> SessionPaths {
    let settings = git.paths().session();
    SessionPaths {
        root: git.root().to_owned(),
        prompt: folder.file("prompt.md"),
        output: answer_path(git, job),
        report: report_path(git, job),
        tree: git.paths().doc(Doc::Tree),
        context_full: settings.join("context-full.json"),
        settings,
        writable: folders_of(job),
        fence: None,
    }
}

/// Makes the session's own folder, and in it what its program needs.
fn lay_ready(places: &SessionPaths, program: PreparedCommand) -> Result<PreparedCommand, String> {
    let lay = || -> Result<(), Error> {
        atomic::clear(&places.settings)?;
        if program.agent.is_some() || !program.files.is_empty() || !program.folders.is_empty() {
            atomic::ensure_folder(&places.settings)?;
        }
        program.folders.iter().try_for_each(|folder| atomic::ensure_folder(folder))?;
        for SetupFile { path, text, is_program } in &program.files {
            path.parent().map_or(Ok(()), atomic::ensure_folder)?;
            fs::write(path, text).map_err(Error::io("write", path))?;
            let mode = fs::Permissions::from_mode(if *is_program { 0o700 } else { 0o600 });
            fs::set_permissions(path, mode).map_err(Error::io("write", path))?;
        }
        Ok(())
    };
    lay().map(|()| program).map_err(|error| error.to_string())
}

/// The version of an agent that does not say it in its session, asked for once.
fn version(
    known: &mut Option<(PathBuf, Option<String>)>,
    agent: &AgentSpec,
    program: &OsString,
) -> Option<String> {
    if agent.native().is_none_or(|native| native.features.reports_version) {
        return None;
    }
    let program = Path::new(program);
    if known.as_ref().is_none_or(|(path, _)| path != program) {
        let told = executables::version_of(program).map(|version| one_line(&version));
        let version = told.as_deref().and_then(|told| told.split_whitespace().last()).map(str::to_owned);
        *known = Some((program.to_owned(), version));
    }
    known.as_ref().and_then(|(_, version)| version.clone())
}

/// Makes the runner's private folder its own again: what a session put there goes, but for its answer; an index that
/// it touched goes, too, and a journal is written again.
fn tidy_private(git: &Git, index: &Path, begun: &SessionCheckpoint) -> Result<(), Error> {
    let (paths, private) = (git.paths(), git.paths().private());
    atomic::make_folders(paths.git_dir(), &private)?;
    if atomic::stamp(&paths.journal()) != begun.journal {
        atomic::clear(&paths.journal())?;
        journal::begin(&paths.journal(), &JournalEntry::Iteration(begun.iteration.clone()))?;
    }
    if atomic::stamp(index) != begun.index {
        atomic::clear(index)?;
    }
    let own = [
        paths.lock(),
        paths.journal(),
        paths.recovery(),
        // A person may have asked for a pause meanwhile. An agent that does so is seen to do it.
        paths.pause(),
        paths.asides(),
        paths.answers(),
        index.to_owned(),
    ];
    for entry in fs::read_dir(&private).map_err(Error::io("look at", &private))?.flatten() {
        if !own.iter().any(|path| *path == entry.path()) {
            atomic::clear(&entry.path())?;
        }
    }
    [paths.asides(), paths.answers()].iter().try_for_each(|folder| atomic::make_folders(&private, folder))
}

/// Where the agent of an iteration puts its answer: outside the work tree, and never a path with an old one in it.
fn answer_path(git: &Git, job: &Job) -> PathBuf {
    git.paths().answer(&job.iteration.to_string())
}

fn report_path(git: &Git, job: &Job) -> PathBuf {
    git.paths().report(&job.iteration.to_string())
}

/// What a session came to, with what its agent reported of itself. What the runner understood itself comes first.
fn with_report(exit: SessionExit, usage: Usage, report: AgentReport) -> (SessionExit, Usage) {
    let exit = match (exit, report.fault) {
        (SessionExit::Finished { .. }, Some(fault)) => SessionExit::Provider { fault },
        (exit, _) => exit,
    };
    (exit, if usage == Usage::default() { report.usage } else { usage })
}

/// What the agent of an iteration has said of itself so far.
pub(super) fn reported(git: &Git, job: &Job) -> AgentReport {
    match file_left(&report_path(git, job), REPORT_BYTES_MAX) {
        LeftFile::Bytes(bytes) => AgentReport::decode(&bytes).unwrap_or_default(),
        LeftFile::Missing | LeftFile::NotAFile | LeftFile::TooLarge(_) => AgentReport::default(),
    }
}

/// Clears and writes `.runner/context/`, and makes room for the answer.
fn write_context(git: &Git, job: &Job) -> Result<(), Error> {
    atomic::ensure_folder(&git.paths().answers())?;
    let folder = git.paths().context();
    atomic::make_folders(git.root(), &folder)?;
    let files = [
        ("goal.md", Some(&job.context.goal)),
        ("history.md", job.context.history.as_ref()),
        ("failure.md", job.context.failure.as_ref()),
    ];
    let files: BTreeMap<PathBuf, &String> =
        files.into_iter().filter_map(|(name, text)| Some((folder.join(name), text?))).collect();
    for entry in fs::read_dir(&folder).map_err(Error::io("look at", &folder))?.flatten() {
        if !files.contains_key(&entry.path()) {
            atomic::clear(&entry.path())?;
        }
    }
    files.iter().try_for_each(|(path, text)| atomic::overwrite(path, text.as_bytes()))
}

fn file_left(path: &Path, bytes_max: u64) -> LeftFile {
    match atomic::read(path, bytes_max) {
        Ok(Some(bytes)) => LeftFile::Bytes(bytes),
        Ok(None) => LeftFile::Missing,
        Err(Error::Refused(UserError::TooLarge { bytes, .. })) => LeftFile::TooLarge(bytes),
        Err(_) => LeftFile::NotAFile,
    }
}

/// The protected paths that the session changed, and those that are younger than the run.
fn protected_paths(
    before: &PathSet,
    now: &PathSet,
    at_start: &PathSet,
    changed: &PathSet,
) -> Vec<ProtectedPath> {
    let all = now.union(before).map(|path| ProtectedPath {
        path: RepoPath::of_bytes(path),
        existed_at_start: at_start.contains(path),
        changed: changed.contains(path),
        exists: now.contains(path),
    });
    all.filter(|found| found.changed || !found.existed_at_start).collect()
}

/// Whether any of these paths is a link now.
fn has_links(git: &Git, paths: &Differing) -> bool {
    let is_link = |path: &Vec<u8>| {
        git.root().join(path_of(path)).symlink_metadata().is_ok_and(|found| found.is_symlink())
    };
    paths.keys().any(is_link)
}

/// What the work tree looks like beside the index: another value when files changed.
fn fingerprint(git: &Git, index: &Path) -> Vec<(Vec<u8>, Option<SystemTime>)> {
    let paths = git.differing_paths(index).unwrap_or_default();
    let changed =
        |path: &[u8]| git.root().join(path_of(path)).symlink_metadata().and_then(|found| found.modified());
    paths.into_iter().map(|path| (changed(&path).ok(), path)).map(|(time, path)| (path, time)).collect()
}
