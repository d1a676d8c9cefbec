//! `runner ui`, `runner watch` and `runner export`, which run `runner-ui`

use std::ffi::OsString;

use runner_term::{CommandError, GlobalArgs};

use super::sibling_program::exec;
use crate::args::{ExportArgs, UiArgs, WatchArgs};

const PROGRAM: &str = "runner-ui";

/// Runs the server. Returns only if `runner-ui` cannot be executed, as do the other functions.
pub(crate) fn serve(global: &GlobalArgs, args: &UiArgs) -> CommandError {
    let mut program_args = common_args(global);
    program_args.extend(args.rest.iter().cloned());
    exec(PROGRAM, &program_args)
}

pub(crate) fn watch(global: &GlobalArgs, args: &WatchArgs) -> CommandError {
    let mut program_args = common_args(global);
    program_args.push("watch".into());
    program_args.extend(global.color.to_args());
    program_args.extend(args.run.name.iter().map(Into::into));
    program_args.extend(args.rest.iter().cloned());
    exec(PROGRAM, &program_args)
}

pub(crate) fn export(global: &GlobalArgs, args: &ExportArgs) -> CommandError {
    let mut program_args = common_args(global);
    program_args.push("export".into());
    // The run comes behind the format.
    program_args.extend(args.rest.first().cloned());
    program_args.extend(args.run.name.iter().map(Into::into));
    program_args.extend(args.rest.iter().skip(1).cloned());
    exec(PROGRAM, &program_args)
}

fn common_args(global: &GlobalArgs) -> Vec<OsString> {
    let mut program_args: Vec<OsString> = vec!["--project-dir".into(), global.project_dir.clone().into()];
    program_args.extend(global.json.then(|| "--json".into()));
    program_args
}
