//! How an agent is started: from the job to the program, its arguments and its variables. Decides nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runner_core::config::{Argv, ExecutorKind};
use runner_core::step::Job;

use crate::programs;

/// The word after the program's name that makes this binary the scripted agent.
pub const PLAY: &str = "__play";

/// A program that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// Where a session finds its things.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) root: PathBuf,
    pub(crate) prompt: PathBuf,
    pub(crate) output: PathBuf,
    pub(crate) tree: PathBuf,
}

/// The agent of a job, or why there is none.
pub(crate) fn agent(job: &Job, places: &Places) -> Result<Program, String> {
    let argv = match job.executor.kind {
        ExecutorKind::Command => {
            let words = job.executor.command.as_ref().map(Argv::words).unwrap_or_default();
            resolved(words, &places.root)?
        }
        ExecutorKind::Script => {
            let scenario = job.executor.scenario.as_deref().unwrap_or_default();
            let own = std::env::current_exe().map_err(|error| error.to_string())?;
            vec![own.into(), PLAY.into(), places.root.join(scenario).into()]
        }
        ExecutorKind::Codex | ExecutorKind::Claude => {
            return Err(format!("agents of kind \"{}\" cannot be started yet", job.executor.kind.as_str()));
        }
    };
    let node = job.aim.node().map(ToString::to_string).unwrap_or_default();
    let mut environment = inherited();
    environment.extend([
        ("RUNNER_OUTPUT".into(), places.output.clone().into()),
        ("RUNNER_PROMPT".into(), places.prompt.clone().into()),
        ("RUNNER_TREE".into(), places.tree.clone().into()),
        ("RUNNER_RUN_ID".into(), job.run_id.to_string().into()),
        ("RUNNER_ITER".into(), job.iteration.to_string().into()),
        ("RUNNER_NODE_ID".into(), node.into()),
        ("RUNNER_MODE".into(), job.aim.mode().as_str().into()),
    ]);
    Ok(Program { argv, environment })
}

/// The guard of a job, or why there is none.
pub(crate) fn guard(job: &Job, root: &Path) -> Result<Program, String> {
    program(job.guard.words(), root)
}

/// A command to be run in a work tree, or why it cannot be.
pub(crate) fn program(words: &[String], root: &Path) -> Result<Program, String> {
    Ok(Program { argv: resolved(words, root)?, environment: inherited() })
}

/// The words with the program's own path in front. A program inside the repository must be named by its path.
fn resolved(words: &[String], root: &Path) -> Result<Vec<OsString>, String> {
    let (program, arguments) = words.split_first().ok_or("no program is configured")?;
    let path =
        programs::find(program, Some(root)).ok_or_else(|| format!("`{program}` is not on the PATH"))?;
    Ok(std::iter::once(path.into()).chain(arguments.iter().map(OsString::from)).collect())
}

/// The user's environment without what would lead git elsewhere, and without a runner's around this one.
fn inherited() -> Vec<(OsString, OsString)> {
    let is_foreign = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("GIT_") || name.starts_with("RUNNER_")
    };
    let quiet = [("GIT_TERMINAL_PROMPT", "0"), ("GIT_EDITOR", "false"), ("GIT_PAGER", "cat")];
    let quiet = quiet.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    std::env::vars_os().filter(|(name, _)| !is_foreign(name)).chain(quiet).collect()
}
