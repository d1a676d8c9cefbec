//! The terminal that the process is connected to: its width, and single key presses.

/// Reads keys one by one, without waiting for the end of a line, while the value lives.
#[derive(Debug)]
pub struct KeyReader {
    saved_mode: rustix::termios::Termios,
}

impl KeyReader {
    /// Starts a thread that passes each key to `on_key`. None if standard input is not a terminal.
    pub fn read(on_key: impl Fn(u8) + Send + 'static) -> Option<Self> {
        use std::io::{IsTerminal, Read};
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return None;
        }
        let saved_mode = rustix::termios::tcgetattr(&stdin).ok()?;
        let mut key_mode = saved_mode.clone();
        key_mode.local_modes.remove(rustix::termios::LocalModes::ICANON | rustix::termios::LocalModes::ECHO);
        rustix::termios::tcsetattr(&stdin, rustix::termios::OptionalActions::Now, &key_mode).ok()?;
        let reader = Self { saved_mode };
        let pass_keys = move || {
            let mut key = [0];
            while std::io::stdin().lock().read(&mut key).is_ok_and(|count| count == 1) {
                key.into_iter().for_each(&on_key);
            }
        };
        // Without a thread there are no keys; dropping the reader restores the terminal.
        std::thread::Builder::new().name("keys".to_owned()).spawn(pass_keys).ok()?;
        Some(reader)
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        let stdin = std::io::stdin();
        let _ = rustix::termios::tcsetattr(&stdin, rustix::termios::OptionalActions::Now, &self.saved_mode);
    }
}

/// The width of standard output's terminal; none if it is not a terminal or reports no width.
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
