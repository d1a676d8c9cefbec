//! `runner eval`, which runs `runner-eval`

use std::ffi::OsString;

use runner_term::{CommandError, GlobalArgs};

use super::sibling_program::exec;
use crate::args::EvalArgs;

/// Returns only if `runner-eval` cannot be executed.
pub(crate) fn run(global: &GlobalArgs, args: &EvalArgs) -> CommandError {
    let mut program_args: Vec<OsString> = vec!["-C".into(), global.project_dir.clone().into()];
    program_args.extend(global.to_args());
    program_args.extend(args.rest.iter().cloned());
    exec("runner-eval", &program_args)
}
