//! `runner eval`: hands over to `runner-eval`, which is a program of its own.

use std::ffi::OsString;
use std::path::Path;

use runner_cli::Report;

use super::ui::hand_over;
use crate::cli::EvalArgs;

/// Becomes that program; comes back only if there is none.
pub(crate) fn run(dir: &Path, (json, quiet): (bool, bool), args: &EvalArgs) -> Report {
    let mut given: Vec<OsString> = vec!["-C".into(), dir.into()];
    given.extend(json.then(|| "--json".into()));
    given.extend(quiet.then(|| "--quiet".into()));
    given.extend(args.rest.iter().cloned());
    hand_over("runner-eval", "crates/eval", &given)
}
