//! Worker processes: one per attempt, because a process runs only one supervised program at a time and takes every orphan
//! for one of that program's. A worker reads its job from standard input, reports on standard output as JSON lines, and
//! ends with the process that started it.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runner_core::strict::canonical_json;
use runner_host::clock::now_ms;
use runner_term::{CommandError, CommandExit};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use supervise::signals::on_shutdown_signal;

use crate::args::IsolationMode;
use crate::case::suite::LoadedCase;
use crate::execution::process::CommandRunner;
use crate::execution::trial::TrialAttempt;
use crate::files;
use crate::plan::PlannedTrial;
use crate::plan::arm::ExperimentArm;
use crate::plan::run_name::EvalRunName;
use crate::result::run_folder::{RunFolder, is_final};
use crate::result::signature::SigningKey;
use crate::result::stored_trial::{INPUTS_FILE, StoredTrial};
use crate::result::{RunnerVersion, TrialMeta};

/// The first argument that makes this binary a worker.
const WORKER_ARGUMENT: &str = "__work";

/// The phase in which code of the agent runs.
pub(crate) const LOOP_PHASE: &str = "loop";

/// What a worker has to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkerJob {
    pub(crate) trial: PlannedTrial,
    pub(crate) run: EvalRunName,
    pub(crate) case_file: PathBuf,
    /// The digest of the case when the plan was made.
    pub(crate) case_sha256: String,
    pub(crate) runner: PathBuf,
    pub(crate) runner_version: RunnerVersion,
    pub(crate) results: PathBuf,
    pub(crate) workspaces: PathBuf,
    pub(crate) retries: u32,
    pub(crate) jobs: u32,
    pub(crate) arm: ExperimentArm,
    /// The key of the run. It comes through a pipe, so that nothing in the trial's reach has to hold it.
    pub(crate) key: SigningKey,
    pub(crate) isolation: IsolationMode,
    /// Folders that no trial may read: cases, results, workspaces.
    pub(crate) hidden: Vec<PathBuf>,
    /// A command that fails while the provider does.
    pub(crate) provider_check: Option<String>,
    /// Whether to give up a trial that another machine works on.
    pub(crate) skips_busy: bool,
    /// How the first worker of this attempt died: this one only records it.
    pub(crate) killed_worker: Option<String>,
}

/// A JSON line from a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerMessage {
    /// The phase that begins: `setup`, `loop` or `checks`.
    Phase(String),
    /// The number of iterations so far.
    Iterations(u32),
    /// A warning for the user.
    Note(String),
    /// The attempt ended, and its result is published.
    Finished(Box<TrialMeta>),
    /// The trial already had a final result.
    AlreadyDone(Box<TrialMeta>),
    /// Another machine works on the trial.
    Busy,
}

/// A line to a worker's standard input after its job. Signals would not do: the agent's code could send them too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerCommand {
    Stop,
    Kill,
}

impl WorkerCommand {
    fn line(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Kill => "kill",
        }
    }
}

/// Whether this process was started as a worker. Call it before anything else.
pub fn is_worker() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == WORKER_ARGUMENT)
}

/// Runs this process as a worker.
pub fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_line(&serde_json::json!({ "failed": error.json() }));
            ExitCode::from(error.exit().0)
        }
    }
}

fn serve() -> Result<(), CommandError> {
    let fail = |error| CommandError::from_host("could not start a worker", error);
    let mut line = String::new();
    let _ = io::stdin().lock().read_line(&mut line);
    let job: WorkerJob = serde_json::from_str(&line).map_err(|error| {
        CommandError::refused("worker_job", "could not read the worker's job").cause(error.to_string())
    })?;
    let scratch = job.workspaces.join(format!(".worker-{}", std::process::id()));
    let commands = CommandRunner::new(scratch.clone()).map_err(fail)?;
    on_shutdown_signal(|_| {}).map_err(fail)?;
    let is_orphaned = Arc::new(AtomicBool::new(false));
    // The parent holds the other end of standard input. When it closes, the parent is dead and the result is not wanted.
    std::thread::spawn({
        let cancel = commands.cancel.clone();
        let is_orphaned = Arc::clone(&is_orphaned);
        move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if line == WorkerCommand::Stop.line() {
                    cancel.stop();
                } else if line == WorkerCommand::Kill.line() {
                    cancel.kill();
                }
            }
            is_orphaned.store(true, Ordering::SeqCst);
            cancel.kill();
        }
    });
    let running = RunningJob {
        job: &job,
        commands: &commands,
        is_orphaned: &is_orphaned,
        send: &|message| print_line(&serde_json::to_value(message).unwrap_or_default()),
    };
    let result = running.run();
    let _ = files::remove_any(&scratch);
    result
}

fn print_line(value: &Value) {
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{value}").and_then(|()| stdout.flush());
}

/// A job in progress, inside the worker process.
struct RunningJob<'a> {
    job: &'a WorkerJob,
    commands: &'a CommandRunner,
    is_orphaned: &'a AtomicBool,
    send: &'a dyn Fn(WorkerMessage),
}

impl RunningJob<'_> {
    /// Makes an attempt at the trial, unless it already has a final result, and publishes the result by one rename.
    fn run(&self) -> Result<(), CommandError> {
        let job = self.job;
        let run = RunFolder::open_with_key(&job.results, job.run.as_str(), job.key.clone())?;
        let fail = |error| CommandError::io("could not write the result", &job.results, &error);
        let Some(_lock) = run.lock(&job.trial, job.skips_busy).map_err(fail)? else {
            (self.send)(WorkerMessage::Busy);
            return Ok(());
        };
        let attempts = self.valid_attempts(&run).map_err(fail)?;
        if is_final(&attempts, job.retries)
            && let Some(last) = attempts.last()
        {
            (self.send)(WorkerMessage::AlreadyDone(Box::new(last.meta.clone())));
            return Ok(());
        }
        let loaded = self.load_unchanged_case()?;
        let number = u32::try_from(attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
        let folder = run.result_folder(&job.trial, number);
        let staging = folder.with_file_name(format!(".{}", job.trial.eval_run_id(&job.run, number)));
        let attempt =
            TrialAttempt::new(job, &loaded, number, staging.clone(), self.commands, self.send)?.run()?;
        if self.is_orphaned.load(Ordering::SeqCst) {
            return files::remove_any(&staging).map_err(fail);
        }
        let inputs = run.key.sign(attempt.inputs);
        fs::write(staging.join(INPUTS_FILE), canonical_json(&inputs)).map_err(fail)?;
        if folder.exists() {
            // This process holds the trial's lock, so only the agent can have created this folder.
            self.set_aside(&folder).map_err(fail)?;
        }
        fs::rename(&staging, &folder).map_err(fail)?;
        self.valid_attempts(&run).map_err(fail)?;
        run.record_spending(&attempt.meta).map_err(fail)?;
        (self.send)(WorkerMessage::Finished(Box::new(attempt.meta)));
        Ok(())
    }

    fn load_unchanged_case(&self) -> Result<LoadedCase, CommandError> {
        let loaded = LoadedCase::load(&self.job.case_file)?;
        if loaded.digests()?.whole.to_string() == self.job.case_sha256 {
            return Ok(loaded);
        }
        let what = format!("case `{}` has changed since the run started", self.job.trial.case);
        Err(CommandError::new("case_changed", CommandExit::FAILURE, what)
            .cause("you or an agent changed its files")
            .hint("see what changed: git status; then restore the files, or start a new run: --new"))
    }

    /// The attempts at the trial. Moves forged ones away first.
    fn valid_attempts(&self, run: &RunFolder) -> io::Result<Vec<StoredTrial>> {
        loop {
            let attempts = run.attempts(&self.job.trial);
            if attempts.forged.is_empty() {
                return Ok(attempts.valid);
            }
            for folder in &attempts.forged {
                self.set_aside(folder)?;
            }
        }
    }

    /// Moves a forged result to `_forged`, where it does not count but can be inspected.
    fn set_aside(&self, folder: &Path) -> io::Result<()> {
        let forged = self.job.results.join("_forged");
        fs::create_dir_all(&forged)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let target = forged.join(format!("{name}.{}", now_ms()));
        fs::rename(folder, &target)?;
        let note = format!("{name} was not created by this evaluation: moved to {}", target.display());
        (self.send)(WorkerMessage::Note(note));
        Ok(())
    }
}

/// A worker process, as its parent sees it.
pub(crate) struct WorkerProcess {
    child: Child,
    /// None once it is handed out.
    input: Option<ChildStdin>,
}

/// How a worker ended without an error of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkerEnd {
    Exited,
    /// By a signal, or by an exit that no worker makes.
    Died(String),
}

impl WorkerProcess {
    /// Starts a worker in its own process group, so that only the pool stops it, not the terminal's Ctrl-C.
    pub(crate) fn start(job: &WorkerJob) -> Result<Self, CommandError> {
        let fail = |error: io::Error| {
            CommandError::new("worker", CommandExit::FAILURE, "could not start a worker")
                .cause(error.to_string())
        };
        let mut command = Command::new(std::env::current_exe().map_err(fail)?);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.arg(WORKER_ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(fail)?;
        let mut input = child.stdin.take();
        if let Some(stdin) = &mut input {
            writeln!(stdin, "{}", serde_json::to_string(job).unwrap_or_default()).map_err(fail)?;
        }
        Ok(Self { child, input })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The pipe that stops the worker. The worker ends when it is dropped.
    pub(crate) fn take_input(&mut self) -> Option<ChildStdin> {
        self.input.take()
    }

    /// Passes on the worker's messages until it ends, and returns its error if it failed.
    pub(crate) fn wait(
        &mut self,
        mut on_message: impl FnMut(WorkerMessage),
    ) -> Result<WorkerEnd, CommandError> {
        let mut failure = None;
        if let Some(stdout) = self.child.stdout.take() {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                match serde_json::from_str::<WorkerMessage>(&line) {
                    Ok(message) => on_message(message),
                    Err(_) => {
                        let value: Value = serde_json::from_str(&line).unwrap_or_default();
                        failure = Some(CommandError::from_json(value.get("failed").unwrap_or(&value)));
                    }
                }
            }
        }
        let status = self.child.wait();
        match (failure, status) {
            (Some(failure), _) => Err(failure),
            (None, Ok(status)) if status.success() => Ok(WorkerEnd::Exited),
            (None, Ok(status)) => Ok(WorkerEnd::Died(format!("died ({status})"))),
            (None, Err(error)) => Ok(WorkerEnd::Died(format!("is lost ({error})"))),
        }
    }
}

/// Sends a command to a worker. A worker that has already ended needs none.
pub(crate) fn send_command(input: &mut ChildStdin, command: WorkerCommand) {
    let _ = writeln!(input, "{}", command.line()).and_then(|()| input.flush());
}
