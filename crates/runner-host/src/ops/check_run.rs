//! `runner node check run`: runs the checks of a task on HEAD. Takes no lock and commits nothing.

use std::path::Path;

use runner_core::config::Config;
use runner_core::layout::Doc;
use runner_core::model::checks::CheckName;
use runner_core::model::id::NodeId;
use runner_core::runs::start::StartError;

use super::guard_rerun::GuardRerunner;
use super::rerun_step::RerunStep;
use crate::error::{Error, UserError};
use crate::iteration::laid_files::LaidFiles;
use crate::iteration::step_inputs::checks_at;

/// Runs the checks of a task, or one of them, each in a fresh room with the files of HEAD and the task's check files.
pub fn run_checks(
    dir: &Path,
    node: &NodeId,
    name: Option<&CheckName>,
    on_result: &mut dyn FnMut(&RerunStep),
) -> Result<Vec<RerunStep>, Error> {
    let rerunner = GuardRerunner::begin(dir)?;
    let git = rerunner.git();
    let head = git.resolve("HEAD")?.ok_or(UserError::NoCommit)?;
    let config = git.file_at(&head, Doc::Config.path())?;
    let config = Config::decode(&config).map_err(StartError::Config)?;
    let fault = |text: String| Error::from(UserError::Checks { faults: vec![text] });
    let task = checks_at(git, &head, node)?.ok_or_else(|| fault(format!("task `{node}` has no checks")))?;
    let laid = LaidFiles::of_task(git, node, &task, &head)?;
    let wanted = |check: &CheckName| name.is_none_or(|name| name == check);
    let mut steps = Vec::new();
    for check in task.checks.iter().filter(|check| wanted(&check.name)) {
        let step = rerunner.run_check(&head, &config, &laid, check)?.green_step(check, None);
        on_result(&step);
        steps.push(step);
    }
    match (steps.is_empty(), name) {
        (true, Some(name)) => Err(fault(format!("task `{node}` has no check `{name}`"))),
        (_, _) => Ok(steps),
    }
}
