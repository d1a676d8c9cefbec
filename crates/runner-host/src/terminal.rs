//! The terminal that the process is connected to.

/// How many cells a line of standard output's terminal has; none where it is no terminal or does not say.
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
