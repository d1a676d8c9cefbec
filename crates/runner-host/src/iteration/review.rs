//! The session of a reviewer: read-only, on a checkout of the files that would be committed; without bubblewrap, in the work tree.
//! Whatever it changes all the same is restored.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runner_core::agents::RepositoryAccess;
use runner_core::layout::Doc;
use runner_core::model::digest::Sha256;
use runner_core::model::repo_path::RepoPath;
use runner_core::model::tools::Tools;
use runner_core::prompt::Prompt;
use runner_core::schema::SchemaDocument;
use runner_core::step::{Interruption, Job, LeftFile, ReviewJob, ReviewRun, SessionExit, SessionMode, Usage};
use supervise::{OutputLog, OutputTarget, ProcessSpec, StopPolicy, TimeLimits};

use super::open_iteration::{OpenIteration, SessionOutcome};
use super::program_runner::ProgramRunner;
use super::sandboxing::{ConfinedCommand, RepositoryView, SessionSandbox};
use super::session::{prepare_command, session_exit, stop_policy};
use super::session_files::{SessionCheckpoint, read_answer, read_report_at, return_logins, start_recorder};
use super::transcript_recorder::TranscriptRecorder;
use crate::agent::command::{SessionPaths, SessionPurpose};
use crate::agent::sandbox::{Bubblewrap, writable_folders};
use crate::agent::sandbox_program::AgentWrapping;
use crate::error::Error;
use crate::failpoint;
use crate::fs::atomic;
use crate::git::{Git, PathSet};
use crate::recorder::REVIEW_REQUESTS;
use crate::repo::publish;
use crate::repo::repo_guard::{GitAccess, RepoSnapshot, SessionRef, make_folders_writable};
use crate::repo::worktree;
use crate::room::{Candidate, CandidateView};

/// The files of a review in the iteration's directory.
const PROMPT: &str = "review.prompt.md";
const OUTPUT: &str = "review.log";
const ERRORS: &str = "review.err.log";
const STREAM: &str = "review.jsonl";
const ANSWER: &str = "review.json";

/// How many changed files a review names.
const CHANGED_MAX: usize = 20;

/// The job of an iteration as its reviewer sees it: another agent, without the tools of the task.
pub(super) fn reviewer_job(job: &Job, review: &ReviewJob) -> Job {
    let mut reviewer = job.clone();
    reviewer.agent.executor = review.reviewer.clone();
    reviewer.permissions.tools = Tools::default();
    reviewer
}

/// Runs a review to its end, and restores what it must not change.
pub(super) fn run(
    git: &Git,
    programs: &ProgramRunner,
    sandbox: SessionSandbox,
    iteration: &mut OpenIteration,
    job: &Job,
    review: &ReviewJob,
) -> Result<ReviewRun, Error> {
    let candidate = iteration.candidate(git)?;
    let diff =
        git.patch(&iteration.setup.base, &candidate.commit, &[Doc::Tree.path(), Doc::RunState.path()])?;
    let text = review.brief.prompt(&diff)?;
    iteration.setup.dir.tidy()?;
    iteration.setup.dir.write(PROMPT, text.as_bytes())?;
    let mut job = reviewer_job(job, review);
    job.prompt = Prompt { sha256: Sha256::of(text.as_bytes()), text, cuts: Vec::new() };
    iteration.ensure_index(git)?;
    let before = worktree::differing_paths(git, &iteration.setup.index)?;
    let access = GitAccess::of(sandbox.kind());
    let snapshot = RepoSnapshot::capture(git, access)?;
    let checkpoint = SessionCheckpoint::begin(git, iteration.entry.clone(), &iteration.setup.index)?;
    let checkout = ReviewCheckout::of(git, &sandbox, &candidate)?;
    let session = ReviewSession { git, programs, sandbox, iteration, job: &job, checkout: checkout.as_ref() };
    let ended = session.run();
    checkout.map_or(Ok(()), |checkout| checkout.view.remove())?;
    let ended = ended?;
    failpoint::reach("iter.review");
    if access == GitAccess::Writable {
        make_folders_writable(git);
    }
    checkpoint.git_dir.restore(git)?;
    checkpoint.tidy_private(git, &iteration.setup.index)?;
    iteration.setup.dir.tidy()?;
    let session = SessionRef { run: &job.run_id, iter: job.iteration, base: &iteration.setup.base, access };
    snapshot.restore(git, session)?;
    iteration.ensure_index(git)?;
    checkpoint.restore_user_index(git, &iteration.setup.index)?;
    let changed = match access {
        // What changed meanwhile is the user's.
        GitAccess::ReadOnly => Vec::new(),
        GitAccess::Writable => restore_files(git, iteration, &job, &before)?,
    };
    let paths = review_paths(git, &job);
    let answer = read_answer(&paths.answer);
    if let LeftFile::Bytes(bytes) = &answer {
        iteration.setup.dir.write_log(ANSWER, bytes);
    }
    for path in [paths.answer, paths.report, paths.schema] {
        atomic::remove_any(&path)?;
    }
    Ok(ReviewRun { exit: ended.exit, answer, usage: ended.usage, changed })
}

/// Restores the work tree, if the reviewer changed files in it; returns them.
fn restore_files(
    git: &Git,
    iteration: &mut OpenIteration,
    job: &Job,
    before: &PathSet,
) -> Result<Vec<RepoPath>, Error> {
    let index = &iteration.setup.index;
    let after = worktree::differing_paths(git, index)?;
    let changed: BTreeSet<&Vec<u8>> = after.symmetric_difference(before).collect();
    if changed.is_empty() {
        return Ok(Vec::new());
    }
    let names = changed.into_iter().take(CHANGED_MAX).map(|path| RepoPath::of_bytes(path)).collect();
    let candidate = iteration.candidate(git)?.commit;
    publish::restore_worktree(git, index, &job.run_id, &iteration.setup.base, &candidate)?;
    iteration.index_stamp = atomic::stamp(index);
    Ok(names)
}

/// Where a reviewer finds the schema of its answer, and where it writes answer and report.
struct ReviewPaths {
    answer: PathBuf,
    report: PathBuf,
    schema: PathBuf,
}

fn review_paths(git: &Git, job: &Job) -> ReviewPaths {
    let name = format!("{}.review", job.iteration);
    ReviewPaths {
        answer: git.paths().answer(&name),
        report: git.paths().report(&name),
        schema: git.paths().answers().join(SchemaDocument::Review.file_name()),
    }
}

/// The candidate's files for a reviewer, and the program that puts them in the place of the repository.
struct ReviewCheckout {
    bubblewrap: Bubblewrap,
    view: CandidateView,
}

impl ReviewCheckout {
    /// None if a session in this sandbox can only see the work tree.
    fn of(git: &Git, sandbox: &SessionSandbox, candidate: &Candidate) -> Result<Option<Self>, Error> {
        let Some(bubblewrap) = sandbox.view_program() else { return Ok(None) };
        Ok(Some(Self { bubblewrap, view: CandidateView::check_out(git, candidate)? }))
    }
}

/// A reviewer's session in a repository that is captured already.
struct ReviewSession<'r> {
    git: &'r Git,
    programs: &'r ProgramRunner,
    sandbox: SessionSandbox,
    iteration: &'r OpenIteration,
    job: &'r Job,
    checkout: Option<&'r ReviewCheckout>,
}

impl ReviewSession<'_> {
    /// What the reviewer finds at the path of the repository.
    fn view<'v>(&'v self, prompt: &'v Path) -> RepositoryView<'v> {
        match self.checkout {
            Some(ReviewCheckout { bubblewrap, view }) => {
                RepositoryView::Candidate { bubblewrap, view, prompt }
            }
            None => RepositoryView::WorkTree(RepositoryAccess::ReadOnly),
        }
    }

    fn run(&self) -> Result<SessionOutcome, Error> {
        let (git, job) = (self.git, self.job);
        let protected = &self.iteration.setup.protected.at_base;
        let prompt = self.iteration.setup.dir.file(PROMPT);
        let view = self.view(&prompt);
        let not_started = |why| {
            let exit = SessionExit::NotStarted { why };
            Ok(SessionOutcome { exit, usage: Usage::default(), processes_left: 0 })
        };
        let recorder = match start_recorder(git, job, &self.iteration.setup.dir, REVIEW_REQUESTS) {
            Ok(recorder) => recorder,
            Err(why) => return not_started(why),
        };
        let url = recorder.as_ref().map(|recorder| recorder.url().to_owned());
        let paths = SessionPaths { recorder: url, ..self.session_paths(view)? };
        let command = match prepare_command(job, &paths) {
            Ok(command) => command,
            Err(why) => return not_started(why),
        };
        let confined = self.sandbox.wrap(command, git, job, protected, view)?;
        let transcript =
            RefCell::new(TranscriptRecorder::new(job.agent.executor.output_format(), job.iteration, None));
        let links = confined.command.links.clone();
        let exit = self.run_process(&paths, confined, &transcript)?;
        return_logins(&links);
        drop(recorder);
        let session = transcript.into_inner().conclude(exit, &paths.context_full());
        if let Some(answer) = &session.answer {
            atomic::write(&paths.output, answer)?;
        }
        let outcome = SessionOutcome { exit: session.exit, usage: session.usage, processes_left: 0 };
        Ok(outcome.with_report(read_report_at(&paths.report)))
    }

    /// Writes the schema, and removes what an earlier review left.
    fn session_paths(&self, view: RepositoryView<'_>) -> Result<SessionPaths, Error> {
        let (git, job) = (self.git, self.job);
        let ReviewPaths { answer, report, schema } = review_paths(git, job);
        atomic::remove_any(&answer)?;
        atomic::remove_any(&report)?;
        atomic::ensure_folder(&git.paths().answers())?;
        atomic::write(&schema, &SchemaDocument::Review.schema_bytes())?;
        let protected = &self.iteration.setup.protected.at_base;
        Ok(SessionPaths {
            root: git.root().to_owned(),
            prompt: self.iteration.setup.dir.file(PROMPT),
            output: answer,
            report,
            tree: git.paths().doc(Doc::Tree),
            settings: git.paths().session(),
            writable: writable_folders(git.root(), job),
            command_sandbox: self.sandbox.for_commands(git, job, protected, view)?,
            purpose: SessionPurpose { mode: SessionMode::Review, access: view.access(), schema },
            recorder: None,
        })
    }

    /// Runs the reviewer's process. It has the time of an iteration for itself.
    fn run_process(
        &self,
        paths: &SessionPaths,
        confined: ConfinedCommand,
        transcript: &RefCell<TranscriptRecorder<'_, '_>>,
    ) -> Result<SessionExit, Error> {
        let ConfinedCommand { command, wrapping } = confined;
        let limits = &self.job.limits;
        let log = |name: &str| OutputLog {
            path: self.iteration.setup.dir.file(name),
            bytes_max: limits.executor_output_bytes,
        };
        let output = match self.job.agent.executor.output_format() {
            Some(_) => OutputTarget::Separate { stdout: log(OUTPUT), stderr: log(ERRORS) },
            None => OutputTarget::Combined(log(OUTPUT)),
        };
        let on_output = |source, bytes: &[u8]| transcript.borrow_mut().push(source, bytes);
        let spec = ProcessSpec::new(command.argv, self.git.root(), output)
            .env(command.environment)
            .stdin_file(&paths.prompt)
            .jsonl_copy(log(STREAM))
            .time_limits(TimeLimits {
                wall: Duration::from_secs(limits.iteration_secs),
                idle: Duration::from_secs(limits.idle_secs.unwrap_or(0)),
            })
            .stop_policy(StopPolicy {
                is_sandboxed: wrapping == AgentWrapping::Namespace,
                ..stop_policy(self.job)
            })
            .on_output(&on_output);
        let result = self.programs.run(spec)?;
        let by = self.programs.interruption().unwrap_or(Interruption::Int);
        Ok(session_exit(wrapping.exit_inside(result.exit), by))
    }
}
