//! Jobs that run at the same time.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::Error;

/// Runs two jobs at the same time, and waits for both. A panic in one continues here. If no thread can be started, they run
/// one after the other.
pub(super) fn in_parallel<A: Send, B>(
    first: impl FnOnce() -> Result<A, Error> + Send,
    second: impl FnOnce() -> Result<B, Error>,
) -> Result<(A, B), Error> {
    let first = Mutex::new(Some(first));
    let (first, second) = thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, || run_once(&first));
        let second = second();
        (join_or_run(thread, &first), second)
    });
    Ok((first?, second?))
}

/// Runs a job that has not run yet.
fn run_once<T>(job: &Mutex<Option<impl FnOnce() -> Result<T, Error>>>) -> Result<T, Error> {
    let job = job.lock().unwrap_or_else(PoisonError::into_inner).take();
    job.map_or(Err(Error::Internal("a job ran twice")), |job| job())
}

/// Waits for a job's thread; runs the job here if there is no thread.
fn join_or_run<T>(
    thread: io::Result<thread::ScopedJoinHandle<'_, Result<T, Error>>>,
    job: &Mutex<Option<impl FnOnce() -> Result<T, Error>>>,
) -> Result<T, Error> {
    match thread {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(_) => run_once(job),
    }
}
