//! One session: what is laid out before it, the agent and the guard, and what is picked up after it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use runner_core::agent_report::AgentReport;
use runner_core::agents::{Agent, Dialect, Identity, Ready};
use runner_core::layout::Doc;
use runner_core::repo_path::RepoPath;
use runner_core::step::{
    Attempt, Exit, FileLeft, GuardExit, Interruption, Job, ProtectedPath, Usage, Verdict, Work,
};
use runner_core::tree::{BYTES_MAX, Tree};

use super::confine::Wrapped;
use super::listen::Ear;
use super::{Begun, Bench, Workshop, interruption_of};
use crate::error::{Error, Refusal};
use crate::executor::{self, Places, Program};
use crate::failpoint;
use crate::git::{Difference, Differing, Git, PathSet, path_of};
use crate::journal::{self, Iteration, Pending, Phase};
use crate::paths::is_runner_path;
use crate::pins::{Mended, Pins, SessionName};
use crate::process::{self, How, Input, Launch, Limits, Log, Output, Polite, Reach};
use crate::programs;
use crate::record::Folder;
use crate::sandbox::{Level, folders_of, unwrapped};
use crate::signals::Listener;
use crate::store;
use crate::worktree;

/// The file that an agent's output goes to.
pub(super) const OUTPUT: &str = "executor.log";

/// The most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The most bytes of a report.
const REPORT_BYTES_MAX: u64 = 64 << 10;

/// How a session ended, before anything of it was looked at.
pub(super) struct Ended {
    pub(super) exit: Exit,
    pub(super) usage: Usage,
    pub(super) processes_left: u32,
}

impl Workshop<'_> {
    /// Lays everything out, and writes down that a session begins.
    pub(super) fn begin_session(&mut self, job: &Job, sandbox: Level) -> Result<(), Error> {
        let base = self.head.clone().ok_or(Refusal::NoCommit)?;
        let pins = Pins::take(&self.git)?;
        let left = self.left.take();
        let index = worktree::pin_index(&self.git, left.and_then(|left| left.index))?;
        if self.at_head.is_none() {
            self.at_head = Some(self.git.matching_in_index(&index, &job.protected)?);
        }
        store::clear(&answer_path(&self.git, job))?;
        store::clear(&report_path(&self.git, job))?;
        write_context(&self.git, job)?;
        let tree = self.tree.clone().ok_or(Refusal::MissingDoc(Doc::Tree))?;
        self.set_bench(job, base.clone(), index, &tree)?;
        self.bench()?.sandbox = sandbox;
        let iteration = Box::new(Iteration {
            branch: job.run_id.branch(),
            iter: job.iteration.to_string(),
            base,
            pins,
            sandbox,
            phase: Phase::Session,
        });
        journal::begin(&self.git.paths().journal(), &Pending::Iteration(iteration.clone()))?;
        let index = store::stamp(&self.bench()?.index);
        let (journal, users) =
            (store::stamp(&self.git.paths().journal()), store::stamp(&self.git.paths().index()));
        self.session = Some(Begun { iteration, index, journal, users });
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
        let folder = Folder::open(
            self.git.root(),
            self.git.paths().iteration(job.run_id.as_str(), &job.iteration.to_string()),
        )?;
        self.early.drain(..).for_each(|event| folder.tell(&event));
        folder.write("prompt.md", job.prompt.text.as_bytes())?;
        folder.write_before(tree, self.last.as_ref())?;
        self.bench = Some(Bench {
            run: job.run_id.clone(),
            base,
            index,
            folder,
            deadline: Instant::now() + Duration::from_secs(job.limits.iteration_secs),
            sandbox: Level::None,
            set_aside: Vec::new(),
            mended: Mended::default(),
            attempt: None,
            verdict: Verdict::Skipped,
            has_changes: true,
            identity: Identity::default(),
        });
        Ok(())
    }

    /// Runs the agent to its end.
    pub(super) fn run_session(&mut self, job: &Job) -> Result<Ended, Error> {
        let bench = self.bench.as_ref().ok_or(Refusal::NoCommit)?;
        let mut places = places(&self.git, job, &bench.folder);
        places.fence = self.fence(job, bench)?;
        let program = executor::agent(job, &places).and_then(|program| lay_ready(&places, program));
        let (Program { argv, environment, agent, .. }, wrapped) = match program {
            Ok(program) => self.confined(program, job, bench)?,
            Err(why) => {
                let exit = Exit::NotStarted { why };
                return Ok(Ended { exit, usage: Usage::default(), processes_left: 0 });
            }
        };
        let version = agent.and_then(|agent| version(&mut self.version, agent, argv.first()?));
        let dialect = Dialect::of(&job.executor);
        let log =
            |name: &str| Log { path: bench.folder.file(name), bytes_max: job.limits.executor_output_bytes };
        let ear = RefCell::new(Ear::new(dialect, job.iteration, &bench.folder, &mut *self.audience));
        // Looked at only when the agent seems idle; whether anything changed before the first look is not known.
        let seen = RefCell::new(None);
        let has_changed_files = || {
            let now = Some(fingerprint(&self.git, &bench.index));
            seen.replace(now.clone()) != now
        };
        let launch = Launch {
            argv,
            folder: self.git.root().to_owned(),
            environment,
            input: Input::File(places.prompt.clone()),
            output: match dialect {
                Some(_) => Output::Apart { stdout: log(OUTPUT), stderr: log("executor.err.log") },
                None => Output::Together(log(OUTPUT)),
            },
            stream: Some(log("stream.jsonl")),
            limits: Limits {
                wall: bench.deadline.saturating_duration_since(Instant::now()),
                idle: Duration::from_secs(job.limits.idle_secs.unwrap_or(0)),
            },
            stop: process::Stop { is_wrapped: wrapped == Wrapped::Yes, ..how_to_stop(agent) },
            has_changed_files: &has_changed_files,
            hear: &|source, bytes| ear.borrow_mut().hear(source, bytes),
        };
        let ended = process::run(&launch, &self.control, &self.supervision)?;
        let by = self.signals.as_ref().and_then(Listener::caught).map_or(Interruption::Int, interruption_of);
        let how = if wrapped == Wrapped::Yes { unwrapped(ended.how) } else { ended.how };
        let heard = ear.into_inner().conclude(exit_of(how, by), &places.context_full);
        if let Some(answer) = &heard.answer {
            store::write(&places.output, answer)?;
        }
        let (exit, usage) = with_report(heard.exit, heard.usage, reported(&self.git, job));
        let bench = self.bench()?;
        bench.folder.agent_took(ended.elapsed);
        let Identity { session_id, model, version: told } = heard.identity;
        let model = model.or_else(|| job.executor.model.clone());
        bench.identity = Identity { session_id, model, version: told.or(version) };
        let processes_left = u32::try_from(ended.leftovers.killed).unwrap_or(u32::MAX);
        Ok(Ended { exit, usage, processes_left })
    }

    /// Puts back what the session must not have changed, and picks up what it left.
    pub(super) fn end_session(&mut self, job: &Job, ended: Ended) -> Result<Attempt, Error> {
        let Ended { exit, usage, processes_left } = ended;
        let begun = self.session.take().ok_or(Refusal::NoCommit)?;
        let index = self.bench()?.index.clone();
        tidy_private(&self.git, &index, &begun)?;
        let mut iteration = begun.iteration;
        self.bench()?.folder.tidy()?;
        let run = job.run_id.to_string();
        let name = SessionName {
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
        iteration.phase = Phase::Ended { exit: exit.clone(), usage, processes_left };
        journal::note(&self.git.paths().journal(), &Pending::Iteration(iteration))?;
        failpoint::reach("iter.ended");
        self.bench()?.mended = mended;
        self.pick_up(job, Ended { exit, usage, processes_left })
    }

    /// What the session left, as values.
    pub(super) fn pick_up(&mut self, job: &Job, ended: Ended) -> Result<Attempt, Error> {
        let git = &self.git;
        store::make_folders(git.root(), &git.paths().context())?;
        let at_start = match &self.at_start {
            Some(paths) => paths.clone(),
            None => {
                let base = &self.bench.as_ref().ok_or(Refusal::NoCommit)?.base;
                git.matching_in(&git.start_commit(job.run_id.as_str(), base)?, &job.protected)?
            }
        };
        let answer = file_left(&answer_path(git, job), ANSWER_BYTES_MAX);
        let tree = file_left(&git.paths().doc(Doc::Tree), BYTES_MAX as u64);
        let bench = self.bench.as_mut().ok_or(Refusal::NoCommit)?;
        if let FileLeft::Bytes(bytes) = &answer {
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
        let now = if is_unsure || found.changed.values().any(|how| *how == Difference::New) {
            git.matching_in_index(&bench.index, &job.protected)?
        } else {
            let is_gone = |path: &&Vec<u8>| found.changed.get(*path) == Some(&Difference::Gone);
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
            work: if outside { Work::Execute } else { Work::Decompose },
            protected,
            usage: ended.usage,
            processes_left: ended.processes_left,
        };
        self.bench()?.attempt = Some(attempt.clone());
        Ok(attempt)
    }

    /// Runs the guard on what is in the work tree.
    pub(super) fn guard(&mut self, job: &Job) -> Result<Verdict, Error> {
        let bench = self.bench.as_ref().ok_or(Refusal::NoCommit)?;
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
    ) -> Result<(Verdict, Option<Duration>), Error> {
        let Program { argv, environment, .. } = match executor::guard(job, self.git.root()) {
            Ok(program) => program,
            Err(why) => return Ok((Verdict::NotStarted { why }, None)),
        };
        let launch = Launch {
            argv,
            folder: self.git.root().to_owned(),
            environment,
            input: Input::Nothing,
            output: Output::Together(Log { path: path.to_owned(), bytes_max: job.limits.guard_output_bytes }),
            stream: None,
            limits: Limits { wall, idle: Duration::ZERO },
            stop: process::Stop::default(),
            has_changed_files: &|| false,
            hear: &|_, _| (),
        };
        let ended = process::run(&launch, &self.control, &self.supervision)?;
        let output = || fs::read(path).unwrap_or_default();
        let verdict = match ended.how {
            How::Exited(code) => Verdict::Ended { exit: GuardExit::Code(code), output: output() },
            How::Signalled(signal) => Verdict::Ended { exit: GuardExit::Signal(signal), output: output() },
            How::CouldNotStart(error) => Verdict::NotStarted { why: error.to_string() },
            How::TimedOut | How::Idle => Verdict::TimedOut,
            How::Stopped => Verdict::Interrupted { by: self.interruption().unwrap_or(Interruption::Int) },
            How::Lost => Verdict::NotStarted { why: "its supervisor was killed".to_owned() },
        };
        Ok((verdict, Some(ended.elapsed)))
    }
}

fn exit_of(how: How, by: Interruption) -> Exit {
    match how {
        How::Exited(code) => Exit::Finished { code },
        How::Signalled(signal) => Exit::Killed { signal },
        How::CouldNotStart(error) => Exit::NotStarted { why: error.to_string() },
        How::TimedOut => Exit::TimedOut,
        How::Idle => Exit::Idle,
        How::Stopped => Exit::Interrupted { by },
        How::Lost => Exit::Killed { signal: 9 },
    }
}

/// Codex and Claude Code end their own commands when they are interrupted, and leave them alone when they are
/// terminated.
fn how_to_stop(agent: Option<Agent>) -> process::Stop {
    let usual = process::Stop::default();
    match agent {
        Some(_) => process::Stop { polite: Polite::Interrupt, reach: Reach::Program, ..usual },
        None => usual,
    }
}

fn places(git: &Git, job: &Job, folder: &Folder) -> Places {
    let settings = git.paths().session();
    Places {
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
fn lay_ready(places: &Places, program: Program) -> Result<Program, String> {
    let lay = || -> Result<(), Error> {
        store::clear(&places.settings)?;
        if program.agent.is_some() || !program.files.is_empty() || !program.folders.is_empty() {
            store::ensure_folder(&places.settings)?;
        }
        program.folders.iter().try_for_each(|folder| store::ensure_folder(folder))?;
        for Ready { path, text, is_program } in &program.files {
            path.parent().map_or(Ok(()), store::ensure_folder)?;
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
    agent: Agent,
    program: &OsString,
) -> Option<String> {
    if agent == Agent::Claude {
        return None;
    }
    let program = Path::new(program);
    if known.as_ref().is_none_or(|(path, _)| path != program) {
        let told = programs::version_of(program);
        let version = told.as_deref().and_then(|told| told.split_whitespace().last()).map(str::to_owned);
        *known = Some((program.to_owned(), version));
    }
    known.as_ref().and_then(|(_, version)| version.clone())
}

/// Makes the runner's private folder its own again: what a session put there goes, but for its answer; an index that
/// it touched goes, too, and a journal is written again.
fn tidy_private(git: &Git, index: &Path, begun: &Begun) -> Result<(), Error> {
    let (paths, private) = (git.paths(), git.paths().private());
    store::make_folders(paths.git_dir(), &private)?;
    if store::stamp(&paths.journal()) != begun.journal {
        store::clear(&paths.journal())?;
        journal::begin(&paths.journal(), &Pending::Iteration(begun.iteration.clone()))?;
    }
    if store::stamp(index) != begun.index {
        store::clear(index)?;
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
            store::clear(&entry.path())?;
        }
    }
    [paths.asides(), paths.answers()].iter().try_for_each(|folder| store::make_folders(&private, folder))
}

/// Where the agent of an iteration puts its answer: outside the work tree, and never a path with an old one in it.
fn answer_path(git: &Git, job: &Job) -> PathBuf {
    git.paths().answer(&job.iteration.to_string())
}

fn report_path(git: &Git, job: &Job) -> PathBuf {
    git.paths().report(&job.iteration.to_string())
}

/// What a session came to, with what its agent reported of itself. What the runner understood itself comes first.
fn with_report(exit: Exit, usage: Usage, report: AgentReport) -> (Exit, Usage) {
    let exit = match (exit, report.fault) {
        (Exit::Finished { .. }, Some(fault)) => Exit::Provider { fault },
        (exit, _) => exit,
    };
    (exit, if usage == Usage::default() { report.usage } else { usage })
}

/// What the agent of an iteration has said of itself so far.
pub(super) fn reported(git: &Git, job: &Job) -> AgentReport {
    match file_left(&report_path(git, job), REPORT_BYTES_MAX) {
        FileLeft::Bytes(bytes) => AgentReport::decode(&bytes).unwrap_or_default(),
        FileLeft::Missing | FileLeft::NotAFile | FileLeft::TooLarge(_) => AgentReport::default(),
    }
}

/// Clears and writes `.runner/context/`, and makes room for the answer.
fn write_context(git: &Git, job: &Job) -> Result<(), Error> {
    store::ensure_folder(&git.paths().answers())?;
    let folder = git.paths().context();
    store::make_folders(git.root(), &folder)?;
    let files = [
        ("goal.md", Some(&job.context.goal)),
        ("history.md", job.context.history.as_ref()),
        ("failure.md", job.context.failure.as_ref()),
    ];
    let files: BTreeMap<PathBuf, &String> =
        files.into_iter().filter_map(|(name, text)| Some((folder.join(name), text?))).collect();
    for entry in fs::read_dir(&folder).map_err(Error::io("look at", &folder))?.flatten() {
        if !files.contains_key(&entry.path()) {
            store::clear(&entry.path())?;
        }
    }
    files.iter().try_for_each(|(path, text)| store::overwrite(path, text.as_bytes()))
}

fn file_left(path: &Path, bytes_max: u64) -> FileLeft {
    match store::read(path, bytes_max) {
        Ok(Some(bytes)) => FileLeft::Bytes(bytes),
        Ok(None) => FileLeft::Missing,
        Err(Error::Refused(Refusal::TooLarge { bytes, .. })) => FileLeft::TooLarge(bytes),
        Err(_) => FileLeft::NotAFile,
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
