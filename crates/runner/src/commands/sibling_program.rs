//! Replaces this process by a program that ships with `runner`: `runner-ui` or `runner-eval`.

use std::ffi::OsString;
use std::io::ErrorKind;

use runner_term::{CommandError, CommandExit};
use supervise::executables::exec_sibling;

/// Executes the program, found beside `runner` or on PATH. Returns only if that fails.
pub(super) fn exec(program: &str, args: &[OsString]) -> CommandError {
    let error = exec_sibling(program, args);
    let cause = if error.kind() == ErrorKind::NotFound {
        format!("`{program}` is neither beside `runner` nor on PATH")
    } else {
        error.to_string()
    };
    CommandError::new("no_program", CommandExit::FAILURE, format!("could not run `{program}`"))
        .cause(cause)
        .hint(format!("install it beside `runner`: cargo install --locked --path crates/{program}"))
}
