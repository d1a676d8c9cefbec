//! `runner ui`, `runner export` and `runner watch`: hand over to `runner-ui`, which is a program of its own.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;

use runner_term::{CommandError, CommandExit, GlobalArgs};
use supervise::executables::exec_sibling;

use crate::args::UiArgs;

const PROGRAM: &str = "runner-ui";
const PACKAGE: &str = "crates/runner-ui";

/// Becomes that program; comes back only if there is none.
pub(crate) fn run(dir: &Path, json: bool, args: &UiArgs) -> CommandError {
    let mut given: Vec<OsString> = vec!["--project-dir".into(), dir.into()];
    given.extend(json.then(|| "--json".into()));
    given.extend(args.rest.iter().cloned());
    hand_over(PROGRAM, PACKAGE, &given)
}

/// The same, for another command of it than the server.
pub(crate) fn also(manner: &GlobalArgs, command: &str, rest: &[OsString]) -> CommandError {
    let mut given: Vec<OsString> = vec!["--project-dir".into(), manner.directory.clone().into()];
    given.extend(manner.json.then(|| "--json".into()));
    given.push(command.into());
    given.extend(rest.iter().cloned());
    hand_over(PROGRAM, PACKAGE, &given)
}

/// Becomes a program that ships with this one; comes back only if there is none.
pub(super) fn hand_over(program: &str, package: &str, given: &[OsString]) -> CommandError {
    let error = exec_sibling(program, given);
    let cause = if error.kind() == ErrorKind::NotFound {
        format!("`{program}` is neither beside `runner` nor on the PATH")
    } else {
        error.to_string()
    };
    CommandError::new("no_program", CommandExit::FAILURE, format!("could not hand over to `{program}`"))
        .cause(cause)
        .hint(format!("install it beside `runner`: cargo install --locked --path {package}"))
}
