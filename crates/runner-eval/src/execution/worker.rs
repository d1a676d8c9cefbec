//! A worker: a process of its own for every attempt, so that what one trial does to its process touches no other. It
//! takes its order on standard input, tells what it does on standard output, and ends with whoever started it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runner_term::{CommandError, CommandExit};
use supervise::signals::SignalListener;

use crate::execution::process::CommandRunner;
use crate::execution::trial::{WorkerJob, WorkerMessage, work};

/// The word after the program's name that makes this binary a worker.
const WORK: &str = "__work";

/// Whether this process was started as a worker. To be asked before anything else is done.
pub fn is_worker() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == WORK)
}

/// Runs this process as a worker.
pub fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(report) => {
            tell(&serde_json::json!({ "failed": report.json() }));
            ExitCode::from(report.exit().0)
        }
    }
}

fn serve() -> Result<(), CommandError> {
    let told = |error| CommandError::from_host("could not begin", error);
    let mut line = String::new();
    let _ = io::stdin().lock().read_line(&mut line);
    let order: WorkerJob = serde_json::from_str(&line).map_err(|error| {
        CommandError::refused("order", "could not understand the order").cause(error.to_string())
    })?;
    let scratch = order.workspaces.join(format!(".worker-{}", std::process::id()));
    let launcher = CommandRunner::new(scratch.clone()).map_err(told)?;
    let _listener = SignalListener::install(&launcher.control).map_err(told)?;
    let orphaned = Arc::new(AtomicBool::new(false));
    let (control, noted) = (launcher.control.clone(), Arc::clone(&orphaned));
    // Whoever started this process holds the other end; when that is gone, nobody wants the result.
    std::thread::spawn(move || {
        let mut rest = [0; 16];
        while matches!(io::stdin().lock().read(&mut rest), Ok(count) if count > 0) {}
        noted.store(true, Ordering::SeqCst);
        control.kill();
    });
    let is_orphaned = || orphaned.load(Ordering::SeqCst);
    let say = |said: WorkerMessage| tell(&serde_json::to_value(said).unwrap_or_default());
    let done = work(&order, &launcher, &is_orphaned, &say);
    let _ = crate::files::clear(&scratch);
    done
}

fn tell(value: &serde_json::Value) {
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{value}").and_then(|()| stdout.flush());
}

/// A worker under way.
pub(crate) struct WorkerProcess(Child);

impl WorkerProcess {
    /// Starts one and gives it its order. It has a process group of its own, so that it is stopped by us alone.
    pub(crate) fn start(order: &WorkerJob) -> Result<Self, CommandError> {
        let fail = |error: io::Error| {
            CommandError::new("worker", CommandExit::FAILURE, "could not start a worker")
                .cause(error.to_string())
        };
        let own = std::env::current_exe().map_err(fail)?;
        let mut command = Command::new(own);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .arg(WORK)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(fail)?;
        let order = serde_json::to_string(order).unwrap_or_default();
        if let Some(stdin) = &mut child.stdin {
            writeln!(stdin, "{order}").map_err(fail)?;
        }
        Ok(Self(child))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Hears what it says until it ends; its own error, if that was its end.
    pub(crate) fn attend(&mut self, mut hear: impl FnMut(WorkerMessage)) -> Result<(), CommandError> {
        let mut failed = None;
        if let Some(stdout) = self.0.stdout.take() {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                match serde_json::from_str::<WorkerMessage>(&line) {
                    Ok(said) => hear(said),
                    Err(_) => {
                        let told: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
                        failed = Some(CommandError::from_json(told.get("failed").unwrap_or(&told)));
                    }
                }
            }
        }
        let _ = self.0.wait();
        failed.map_or(Ok(()), Err)
    }
}
