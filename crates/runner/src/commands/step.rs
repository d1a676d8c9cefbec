//! `runner step`

use std::path::Path;

use runner_term::{CommandError, Ui};

use super::run_loop::{LoopOutput, RunMode, run_iterations};

pub(crate) fn run(dir: &Path, ui: &Ui) -> Result<LoopOutput, CommandError> {
    run_iterations(dir, RunMode::OneStep, None, ui)
}
