//! The terminal in raw mode on the alternate screen, restored however the program ends.

use std::io::{self, Write, stdout};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{DefaultTerminal, Frame};
use rustix::process::{Signal, getpid, kill_process};

/// Whether the terminal is in raw mode. Restoring it twice would move the cursor over what was printed in between.
static IS_RAW: AtomicBool = AtomicBool::new(false);

/// The terminal; dropping this restores it.
pub(super) struct TuiTerminal {
    /// Never dropped: on a closed terminal its `Drop` prints an error, because it cannot show the cursor.
    terminal: ManuallyDrop<DefaultTerminal>,
}

impl TuiTerminal {
    /// Enters raw mode and the alternate screen. From here on, a panic restores the terminal before it prints its message.
    pub(super) fn enter() -> io::Result<Self> {
        let print_panic = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            print_panic(panic);
        }));
        let terminal = enter().inspect_err(|_| restore())?;
        Ok(Self { terminal })
    }

    /// Draws what differs from the last frame.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(|_| ())
    }

    /// Clears the screen, so that the next frame is drawn in full.
    pub(super) fn repaint(&mut self) -> io::Result<()> {
        let old = std::mem::replace(&mut self.terminal, enter()?);
        drop(ManuallyDrop::into_inner(old));
        Ok(())
    }

    /// Restores the terminal and stops the process until SIGCONT.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        restore();
        kill_process(getpid(), Signal::STOP)?;
        self.repaint()
    }
}

impl Drop for TuiTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Clears the screen directly: `Terminal::clear` would query the cursor's position, and not every terminal answers.
fn enter() -> io::Result<ManuallyDrop<DefaultTerminal>> {
    IS_RAW.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, EnableMouseCapture, Clear(ClearType::All))?;
    DefaultTerminal::new(CrosstermBackend::new(stdout())).map(ManuallyDrop::new)
}

/// Errors are ignored: the terminal may already be closed.
fn restore() {
    if !IS_RAW.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), DisableMouseCapture, LeaveAlternateScreen, Show);
    let _ = stdout().flush();
}
