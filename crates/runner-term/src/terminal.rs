//! The terminal that the process is connected to: its width, and single key presses.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};

/// Reads keys one by one, without waiting for the end of a line, while the value lives. Afterwards nothing reads standard input
/// any more, so that a question can be asked there.
#[derive(Debug)]
pub struct KeyReader {
    saved_mode: Termios,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How long the thread rests after it found no key. A terminal that is gone never has one.
const KEY_PAUSE: Duration = Duration::from_millis(20);

impl KeyReader {
    /// Starts a thread that passes each key to `on_key`. None if standard input is not a terminal.
    pub fn read(on_key: impl Fn(u8) + Send + 'static) -> Option<Self> {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return None;
        }
        let saved_mode = rustix::termios::tcgetattr(&stdin).ok()?;
        let mut key_mode = saved_mode.clone();
        key_mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        // A read returns after a tenth of a second without a key, so that the thread notices its end.
        key_mode.special_codes[SpecialCodeIndex::VMIN] = 0;
        key_mode.special_codes[SpecialCodeIndex::VTIME] = 1;
        rustix::termios::tcsetattr(&stdin, OptionalActions::Now, &key_mode).ok()?;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let mut reader = Self { saved_mode, is_stopped: Arc::clone(&is_stopped), thread: None };
        let pass_keys = move || {
            while !is_stopped.load(Ordering::SeqCst) {
                let mut key = [0];
                // Not through the buffer of the standard library, which would keep what is typed ahead.
                match rustix::io::read(std::io::stdin(), &mut key) {
                    Ok(1) => key.into_iter().for_each(&on_key),
                    Ok(_) => std::thread::sleep(KEY_PAUSE),
                    Err(rustix::io::Errno::INTR) => {}
                    Err(_) => return,
                }
            }
        };
        // Without a thread there are no keys; dropping the reader restores the terminal.
        reader.thread = Some(std::thread::Builder::new().name("keys".to_owned()).spawn(pass_keys).ok()?);
        Some(reader)
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = rustix::termios::tcsetattr(std::io::stdin(), OptionalActions::Now, &self.saved_mode);
    }
}

/// The width of standard output's terminal; none if it is not a terminal or reports no width.
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
