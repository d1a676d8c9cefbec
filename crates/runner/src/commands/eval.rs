//! `runner eval`: hands over to `runner-eval`, which is a program of its own.

use std::ffi::OsString;

use runner_term::{CommandError, GlobalArgs};

use super::ui::hand_over;
use crate::args::EvalArgs;

/// Becomes that program; comes back only if there is none.
pub(crate) fn run(manner: &GlobalArgs, args: &EvalArgs) -> CommandError {
    let mut given: Vec<OsString> = vec!["-C".into(), manner.directory.clone().into()];
    given.extend(manner.words());
    given.extend(args.rest.iter().cloned());
    hand_over("runner-eval", "crates/runner-eval", &given)
}
