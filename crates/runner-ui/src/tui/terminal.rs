//! The terminal: taken over whole, and given back as it was, however the program ends.

use std::io::{self, Write, stdout};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{DefaultTerminal, Frame};
use rustix::process::{Signal, getpid, kill_process};

/// Whether the terminal is taken. Giving it back twice would move the cursor over what was told in between.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, as long as this lives.
pub(super) struct TuiTerminal {
    /// Not dropped by itself: it would complain, on a terminal that is gone, that it cannot show the cursor there.
    terminal: ManuallyDrop<DefaultTerminal>,
}

impl TuiTerminal {
    /// Takes the terminal over. From here on a panic gives it back before it tells of itself.
    pub(super) fn take() -> io::Result<Self> {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            tell(panic);
        }));
        let terminal = enter().inspect_err(|_| give_back())?;
        Ok(Self { terminal })
    }

    /// Draws what differs from what is there.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(|_| ())
    }

    /// Draws everything anew next time, whatever other programs left there.
    pub(super) fn repaint(&mut self) -> io::Result<()> {
        let old = std::mem::replace(&mut self.terminal, enter()?);
        drop(ManuallyDrop::into_inner(old));
        Ok(())
    }

    /// Gives the terminal back and stands still until someone lets the program go on.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        give_back();
        kill_process(getpid(), Signal::STOP)?;
        self.repaint()
    }
}

impl Drop for TuiTerminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Takes the terminal over, empty. Its own `clear` would ask it where its cursor is, and not every one answers.
fn enter() -> io::Result<ManuallyDrop<DefaultTerminal>> {
    IS_TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, Clear(ClearType::All))?;
    DefaultTerminal::new(CrosstermBackend::new(stdout())).map(ManuallyDrop::new)
}

/// A terminal that is gone needs nothing any more, so faults are none.
fn give_back() {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = stdout().flush();
}
