//! The terminal that the process is connected to.

/// Keys that are read one by one, without waiting for the end of a line, as long as this lives.
#[derive(Debug)]
pub struct KeyReader {
    before: rustix::termios::Termios,
}

impl KeyReader {
    /// Begins to read keys and gives each to `pressed`, on a thread of its own. Nothing where no person can type.
    pub fn read(pressed: impl Fn(u8) + Send + 'static) -> Option<Self> {
        use std::io::{IsTerminal, Read};
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return None;
        }
        let before = rustix::termios::tcgetattr(&stdin).ok()?;
        let mut single = before.clone();
        single.local_modes.remove(rustix::termios::LocalModes::ICANON | rustix::termios::LocalModes::ECHO);
        rustix::termios::tcsetattr(&stdin, rustix::termios::OptionalActions::Now, &single).ok()?;
        std::thread::spawn(move || {
            let mut key = [0];
            while std::io::stdin().lock().read(&mut key).is_ok_and(|count| count == 1) {
                key.into_iter().for_each(&pressed);
            }
        });
        Some(Self { before })
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        let stdin = std::io::stdin();
        let _ = rustix::termios::tcsetattr(&stdin, rustix::termios::OptionalActions::Now, &self.before);
    }
}

/// How many cells a line of standard output's terminal has; none where it is no terminal or does not say.
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
