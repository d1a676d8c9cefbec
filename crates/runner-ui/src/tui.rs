//! `runner watch`: the terminal UI. It shows the same data as the page, read from the same files. It writes nothing, takes no
//! lock, and the runner does not know of it.
//!
//! One thread draws and waits for events. Keys, signals, the loss of the terminal and new data come from threads of their
//! own, so an idle UI uses no CPU.

mod draw;
mod iteration_list;
mod mouse;
mod reader;
mod session;
mod terminal;
#[cfg(test)]
mod tests;
mod text_search;
mod theme;
mod tree_pane;
mod trust;
mod view;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyEventKind};
use runner_core::model::id::RunId;
use runner_term::{CommandError, CommandExit, GlobalArgs, Styler};
use rustix::event::{PollFd, PollFlags, poll};
use supervise::signals::{ShutdownSignal, on_shutdown_signal};

use crate::api::WatchMethod;
use crate::error::RequestError;
use crate::read::repo_reader::RepoReader;
use crate::read::snapshot::now_ms;
use crate::watch::{FileWatcher, WatchState};
use reader::{ReadReason, RunReader, WatchData};
use terminal::TuiTerminal;
use theme::TuiTheme;
use trust::TrustRequests;
use view::{TuiAction, WatchView};

/// What the drawing thread reacts to.
enum TuiEvent {
    Terminal(Event),
    Data(Box<Result<WatchData, RequestError>>),
    Shutdown(ShutdownSignal),
    /// The reader thread ended, which it only does if it panics.
    ReaderDied,
}

/// Shows a run until the user quits.
pub(crate) fn run(
    project: RepoReader,
    wanted: Option<RunId>,
    method: WatchMethod,
    globals: &GlobalArgs,
) -> Result<CommandExit, CommandError> {
    refuse_without_terminal()?;
    project.run(wanted.as_ref()).map_err(|error| {
        CommandError::refused("no_run", "could not show the run")
            .cause(error.message())
            .hint("`runner status` shows the current run")
    })?;
    let failed = |error: io::Error| {
        CommandError::new("terminal", CommandExit::FAILURE, "could not use the terminal")
            .cause(error.to_string())
            .hint("follow the run as plain lines: runner log --follow")
    };
    let (sender, events) = mpsc::channel();
    let requests = start_reader(Arc::new(project), wanted, method, &sender).map_err(failed)?;
    let shutdown = sender.clone();
    on_shutdown_signal(move |signal| drop(shutdown.send(TuiEvent::Shutdown(signal))))
        .map_err(|error| CommandError::from_host("could not handle signals", error))?;
    watch_terminal(&sender).map_err(failed)?;
    let mut terminal = TuiTerminal::enter().map_err(failed)?;
    // This thread ends with the program: a blocking read of keys cannot be interrupted.
    let keys =
        move || while event::read().is_ok_and(|event| sender.send(TuiEvent::Terminal(event)).is_ok()) {};
    thread::Builder::new().name("keys".to_owned()).spawn(keys).map_err(failed)?;
    let theme = TuiTheme { styler: Styler::for_stdout(globals) };
    event_loop(&mut terminal, &events, &requests, &theme).or_else(|error| {
        // The terminal closed during a write.
        if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) {
            return Ok(CommandExit(ShutdownSignal::HangUp.exit_code()));
        }
        drop(terminal);
        Err(failed(error))
    })
}

fn refuse_without_terminal() -> Result<(), CommandError> {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let cause = match (io::stdout().is_terminal(), io::stdin().is_terminal()) {
        (false, _) => "standard output is not a terminal",
        (true, false) => "standard input is not a terminal, so keys cannot be read",
        (true, true) if is_dumb => "the terminal cannot move its cursor (TERM=dumb)",
        (true, true) => return Ok(()),
    };
    Err(CommandError::refused("no_terminal", "could not show the run")
        .cause(cause)
        .hint("follow the run as plain lines: runner log --follow"))
}

/// Starts the threads that watch, read and verify. Returns the sender of requests for another log.
fn start_reader(
    project: Arc<RepoReader>,
    run: Option<RunId>,
    method: WatchMethod,
    events: &Sender<TuiEvent>,
) -> io::Result<Sender<ReadReason>> {
    let (requests, received) = mpsc::channel();
    let watch = Arc::new(WatchState::default());
    let watcher = FileWatcher::begin(project.as_ref(), &watch, method);
    let (to_verify, verifications) = mpsc::channel();
    let (verified, verifier) = (requests.clone(), Arc::clone(&project));
    let verify = move || trust::serve(&verifier, &verifications, &verified);
    thread::Builder::new().name("verifier".to_owned()).spawn(verify)?;
    let reader = RunReader::new(Arc::clone(&project), Arc::clone(&watch), run, TrustRequests::new(to_verify));
    let events = NotifyOnDrop(events.clone());
    let read = move || reader.serve(&received, |data| drop(events.0.send(TuiEvent::Data(Box::new(data)))));
    thread::Builder::new().name("reader".to_owned()).spawn(read)?;
    let changed = requests.clone();
    let watch_files =
        move || watcher.run(project.as_ref(), |_| drop(changed.send(ReadReason::Changed)), &watch);
    thread::Builder::new().name("watcher".to_owned()).spawn(watch_files)?;
    let _ = requests.send(ReadReason::Changed);
    Ok(requests)
}

/// Reports the end of the reader thread.
struct NotifyOnDrop(Sender<TuiEvent>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        let _ = self.0.send(TuiEvent::ReaderDied);
    }
}

/// Notices when the terminal closes. Not every process that loses its terminal gets a signal, and reading keys from a closed
/// one would never end.
fn watch_terminal(events: &Sender<TuiEvent>) -> io::Result<()> {
    let closed = events.clone();
    let wait = move || {
        let stdin = io::stdin();
        let mut polled = [PollFd::new(&stdin, PollFlags::empty())];
        while poll(&mut polled, None) == Err(rustix::io::Errno::INTR) {}
        let _ = closed.send(TuiEvent::Shutdown(ShutdownSignal::HangUp));
    };
    thread::Builder::new().name("terminal".to_owned()).spawn(wait).map(|_| ())
}

/// Draws after every event, and once a second while the screen shows a running clock.
fn event_loop(
    terminal: &mut TuiTerminal,
    events: &Receiver<TuiEvent>,
    requests: &Sender<ReadReason>,
    theme: &TuiTheme,
) -> io::Result<CommandExit> {
    let mut view = WatchView::new();
    let mut data: Option<WatchData> = None;
    loop {
        terminal.draw(|frame| draw::draw(frame, &mut view, data.as_ref(), theme, now_ms()))?;
        let has_clock = data.as_ref().is_some_and(|data| data.snapshot.status.is_live());
        let first = match next_event(events, has_clock) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("internal error: every event source ended"));
            }
        };
        for event in std::iter::once(first).chain(events.try_iter()) {
            let action = match event {
                TuiEvent::Terminal(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    view.press(key, data.as_ref())
                }
                TuiEvent::Terminal(Event::Mouse(mouse)) => view.mouse(mouse, data.as_ref()),
                TuiEvent::Terminal(_) => TuiAction::Draw,
                TuiEvent::Data(read) => match *read {
                    Ok(read) => view.update(data.insert(read)),
                    Err(error) => {
                        view.note = error.message().to_owned();
                        TuiAction::Draw
                    }
                },
                TuiEvent::Shutdown(signal) => return Ok(CommandExit(signal.exit_code())),
                TuiEvent::ReaderDied => {
                    return Err(io::Error::other("internal error: the reader thread died"));
                }
            };
            match action {
                TuiAction::Draw => {}
                TuiAction::Show => drop(requests.send(ReadReason::Show(view.request.clone()))),
                TuiAction::Repaint => terminal.repaint()?,
                TuiAction::Suspend => terminal.suspend()?,
                TuiAction::Quit => return Ok(CommandExit::SUCCESS),
                TuiAction::Interrupt => return Ok(CommandExit(ShutdownSignal::Interrupt.exit_code())),
            }
        }
    }
}

/// Waits for an event; if the screen has a clock, at most until the next full second.
fn next_event(events: &Receiver<TuiEvent>, has_clock: bool) -> Result<TuiEvent, RecvTimeoutError> {
    if has_clock {
        events.recv_timeout(Duration::from_millis(1_000 - now_ms() % 1_000))
    } else {
        events.recv().map_err(|_| RecvTimeoutError::Disconnected)
    }
}
