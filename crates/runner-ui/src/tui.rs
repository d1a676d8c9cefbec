//! `runner watch`: the run in a terminal. The same model as the page, read from the same files; it writes nothing, takes
//! no lock, and the runner does not know of it.
//!
//! One thread draws and waits. Keys, signals, the terminal's end and what was read come to it from threads of their own,
//! so nothing turns in circles while nothing happens.

mod draw;
mod reader;
mod session;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;
mod tree_pane;
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

use crate::error::RequestError;
use crate::read::repo_reader::RepoReader;
use crate::read::snapshot::now_ms;
use crate::watch::{FileWatcher, WatchState};
use reader::{ReadReason, RunReader, WatchData};
use terminal::TuiTerminal;
use theme::TuiTheme;
use view::{TuiAction, WatchView};

/// What is told to the thread that draws.
enum Heard {
    Pressed(Event),
    Read(Box<Result<WatchData, RequestError>>),
    Ended(ShutdownSignal),
    /// A thread that is needed is gone.
    Lost,
}

/// Shows the run until someone has seen enough.
pub(crate) fn run(
    project: RepoReader,
    wanted: Option<RunId>,
    only_polls: bool,
    manner: &GlobalArgs,
) -> Result<CommandExit, CommandError> {
    refuse_without_terminal()?;
    project.run(wanted.as_ref()).map_err(|fault| {
        CommandError::refused("no_run", "could not show the run")
            .cause(fault.message())
            .hint("`runner status` says which run is here")
    })?;
    let failed = |error: io::Error| {
        CommandError::new("terminal", CommandExit::FAILURE, "could not use the terminal")
            .cause(error.to_string())
            .hint("follow the run as lines: runner log --follow")
    };
    let (heard, hears) = mpsc::channel();
    let asks = begin_reading(Arc::new(project), wanted, only_polls, &heard).map_err(failed)?;
    let ended = heard.clone();
    on_shutdown_signal(move |caught| drop(ended.send(Heard::Ended(caught))))
        .map_err(|error| CommandError::from_host("could not listen to signals", error))?;
    watch_terminal(&heard).map_err(failed)?;
    let mut stage = TuiTerminal::take().map_err(failed)?;
    let pressed = heard;
    // It ends with the program: nobody can be woken from reading keys.
    let keys = move || while event::read().is_ok_and(|event| pressed.send(Heard::Pressed(event)).is_ok()) {};
    thread::Builder::new().name("keys".to_owned()).spawn(keys).map_err(failed)?;
    let paint = TuiTheme { pen: Styler::for_stdout(manner) };
    show(&mut stage, &hears, &asks, &paint).or_else(|error| {
        // The terminal went away while something was written to it.
        if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) {
            return Ok(CommandExit(ShutdownSignal::HangUp.exit_code()));
        }
        drop(stage);
        Err(failed(error))
    })
}

fn refuse_without_terminal() -> Result<(), CommandError> {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let why = match (io::stdout().is_terminal(), io::stdin().is_terminal()) {
        (false, _) => "standard output is no terminal",
        (true, false) => "standard input is no terminal, so no key would be heard",
        (true, true) if is_dumb => "this terminal cannot move its cursor (TERM=dumb)",
        (true, true) => return Ok(()),
    };
    Err(CommandError::refused("no_terminal", "could not show the run")
        .cause(why)
        .hint("follow the run as lines: runner log --follow"))
}

/// Begins to watch files and to read them; gives back where to ask for something else.
fn begin_reading(
    project: Arc<RepoReader>,
    run: Option<RunId>,
    only_polls: bool,
    heard: &Sender<Heard>,
) -> io::Result<Sender<ReadReason>> {
    let (asks, asked) = mpsc::channel();
    let watch = Arc::new(WatchState::default());
    let watcher = FileWatcher::begin(project.as_ref(), &watch, only_polls);
    let reader =
        RunReader { project: Arc::clone(&project), watch: Arc::clone(&watch), run, nth: 0, tree: None };
    let told = Bell(heard.clone());
    let read = move || reader.serve(&asked, |shown| drop(told.0.send(Heard::Read(Box::new(shown)))));
    thread::Builder::new().name("reader".to_owned()).spawn(read)?;
    let hint = asks.clone();
    let look = move || watcher.run(project.as_ref(), |_| drop(hint.send(ReadReason::Look)), &watch);
    thread::Builder::new().name("watcher".to_owned()).spawn(look)?;
    let _ = asks.send(ReadReason::Look);
    Ok(asks)
}

/// Rings when its thread ends, which it does not but by a fault.
struct Bell(Sender<Heard>);

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = self.0.send(Heard::Lost);
    }
}

/// Notices when the terminal goes away. Not everyone who loses one is told by a signal, and reading keys from one that is
/// gone would never end.
fn watch_terminal(heard: &Sender<Heard>) -> io::Result<()> {
    let gone = heard.clone();
    let wait = move || {
        let stdin = io::stdin();
        let mut polled = [PollFd::new(&stdin, PollFlags::empty())];
        while poll(&mut polled, None) == Err(rustix::io::Errno::INTR) {}
        let _ = gone.send(Heard::Ended(ShutdownSignal::HangUp));
    };
    thread::Builder::new().name("terminal".to_owned()).spawn(wait).map(|_| ())
}

/// Draws whenever something happened, and once a second while a clock on the screen moves.
fn show(
    stage: &mut TuiTerminal,
    hears: &Receiver<Heard>,
    asks: &Sender<ReadReason>,
    paint: &TuiTheme,
) -> io::Result<CommandExit> {
    let (mut view, mut shown): (WatchView, Option<WatchData>) = (WatchView::new(), None);
    loop {
        stage.draw(|frame| draw::draw(frame, &mut view, shown.as_ref(), paint, now_ms()))?;
        let moves = shown.as_ref().is_some_and(|shown| shown.snapshot.stop.is_none());
        let first = match wait(hears, moves) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("nothing is heard any more")),
        };
        for heard in std::iter::once(first).chain(hears.try_iter()) {
            let act = match heard {
                Heard::Pressed(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    view.press(key, shown.as_ref())
                }
                Heard::Pressed(_) => TuiAction::Draw,
                Heard::Read(read) => match *read {
                    Ok(read) => view.take(shown.insert(read)),
                    Err(fault) => {
                        view.note = fault.message().to_owned();
                        TuiAction::Draw
                    }
                },
                Heard::Ended(caught) => return Ok(CommandExit(caught.exit_code())),
                Heard::Lost => return Err(io::Error::other("the run can be read no more")),
            };
            match act {
                TuiAction::Draw => {}
                TuiAction::Show => drop(asks.send(ReadReason::Show(view.wish.clone()))),
                TuiAction::Repaint => stage.repaint()?,
                TuiAction::Suspend => stage.suspend()?,
                TuiAction::Quit => return Ok(CommandExit::SUCCESS),
                TuiAction::Interrupt => return Ok(CommandExit(ShutdownSignal::Interrupt.exit_code())),
            }
        }
    }
}

/// Waits for something to happen, or for the next full second.
fn wait(hears: &Receiver<Heard>, moves: bool) -> Result<Heard, RecvTimeoutError> {
    if moves {
        hears.recv_timeout(Duration::from_millis(1_000 - now_ms() % 1_000))
    } else {
        hears.recv().map_err(|_| RecvTimeoutError::Disconnected)
    }
}
