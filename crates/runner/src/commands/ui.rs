//! `runner ui`: hands over to `runner-ui`, which is a program of its own.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use runner_host::programs::companion;

use crate::cli::UiArgs;
use crate::error::Report;
use crate::reply::Exit;

const PROGRAM: &str = "runner-ui";

/// Becomes that program; comes back only if there is none.
pub(crate) fn run(dir: &Path, json: bool, args: &UiArgs) -> Report {
    let failed = |cause: String| {
        Report::new("no_program", Exit::FAILURE, format!("could not hand over to `{PROGRAM}`"))
            .cause(cause)
            .hint("install it beside `runner`: cargo install --locked --path crates/runner-ui")
    };
    let Some(program) = companion(PROGRAM) else {
        return failed(format!("`{PROGRAM}` is neither beside `runner` nor on the PATH"));
    };
    let mut given: Vec<OsString> = vec!["--project-dir".into(), dir.into()];
    given.extend(json.then(|| "--json".into()));
    given.extend(args.rest.iter().cloned());
    let error = Command::new(&program).args(given).exec();
    failed(format!("`{}`: {error}", program.display()))
}
