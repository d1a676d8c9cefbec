//! How an agent is started: from the job to the program, its arguments and its variables. Decides nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runner_core::agents::{self, AgentKind, CommandLine, CommandSandbox, Preset, SetupFile};
use runner_core::config::{CommandArgv, ExecutorKind};
use runner_core::layout::Doc;
use runner_core::step::Job;

use crate::fs::atomic;
use supervise::executables;

/// The word after the program's name that makes this binary the scripted agent.
pub const SCRIPTED_AGENT_ARG: &str = "__play";

/// The variable that names the prompt. It also marks every process of a session.
pub(crate) const SESSION_MARKER: &str = "RUNNER_PROMPT";

/// The most bytes of the answer's schema.
const SCHEMA_BYTES_MAX: u64 = 1 << 20;

/// A program that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PreparedCommand {
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Files that must lie ready for it.
    pub(crate) files: Vec<SetupFile>,
    /// Folders that must be there.
    pub(crate) folders: Vec<PathBuf>,
    /// Which agent it is, if the runner understands what it prints.
    pub(crate) agent: Option<AgentKind>,
}

/// Where a session finds its things.
#[derive(Clone, Debug)]
pub(crate) struct SessionPaths {
    pub(crate) root: PathBuf,
    pub(crate) prompt: PathBuf,
    pub(crate) output: PathBuf,
    pub(crate) report: PathBuf,
    pub(crate) tree: PathBuf,
    /// A folder that is the session's alone.
    pub(crate) settings: PathBuf,
    /// Appears when the agent was stopped because its context was full.
    pub(crate) context_full: PathBuf,
    /// Folders outside of the repository that may be written to.
    pub(crate) writable: Vec<PathBuf>,
    /// What keeps an agent in that has no sandbox of its own.
    pub(crate) fence: Option<CommandSandbox>,
}

/// The agent of a job, or why there is none.
pub(crate) fn agent_command(job: &Job, places: &SessionPaths) -> Result<PreparedCommand, String> {
    let mut program = match (job.executor.kind, job.executor.preset) {
        (ExecutorKind::Command, Some(preset)) => preset_command(preset, job, places)?,
        (ExecutorKind::Command, None) => {
            let words = job.executor.command.as_ref().map(CommandArgv::words).unwrap_or_default();
            PreparedCommand::of(resolve_argv(words, &places.root)?)
        }
        (ExecutorKind::Script, _) => {
            let scenario = job.executor.scenario.as_deref().unwrap_or_default();
            let own = std::env::current_exe().map_err(|error| error.to_string())?;
            PreparedCommand::of(vec![
                own.into(),
                SCRIPTED_AGENT_ARG.into(),
                places.root.join(scenario).into(),
            ])
        }
        (ExecutorKind::Codex, _) => agent_kind_command(AgentKind::Codex, job, places)?,
        (ExecutorKind::Claude, _) => agent_kind_command(AgentKind::Claude, job, places)?,
    };
    if program.agent.is_none() {
        // The others leave their answer elsewhere.
        program.environment.push(("RUNNER_OUTPUT".into(), places.output.clone().into()));
        program.environment.push(("RUNNER_REPORT".into(), places.report.clone().into()));
    }
    let node = job.target.node().map(ToString::to_string).unwrap_or_default();
    program.environment.extend([
        (SESSION_MARKER.into(), places.prompt.clone().into()),
        ("RUNNER_TREE".into(), places.tree.clone().into()),
        ("RUNNER_RUN_ID".into(), job.run_id.to_string().into()),
        ("RUNNER_ITER".into(), job.iteration.to_string().into()),
        ("RUNNER_NODE_ID".into(), node.into()),
        ("RUNNER_MODE".into(), job.target.mode().as_str().into()),
    ]);
    Ok(program)
}

impl PreparedCommand {
    fn of(argv: Vec<OsString>) -> Self {
        Self {
            argv,
            environment: inherited_environment(),
            files: Vec::new(),
            folders: Vec::new(),
            agent: None,
        }
    }
}

/// The program of an agent that has a table of its own.
fn agent_kind_command(agent: AgentKind, job: &Job, places: &SessionPaths) -> Result<PreparedCommand, String> {
    let facts = agent.facts();
    let path = find_program(job.executor.program.as_deref(), facts.program, facts.package, &places.root)?;
    let line = command_line(places, |places| agents::command_line(agent, &job.executor, &job.tools, places));
    Ok(PreparedCommand {
        argv: std::iter::once(path.into()).chain(line.arguments).collect(),
        environment: line.environment.into_iter().collect(),
        files: line.files,
        folders: line.folders,
        agent: Some(agent),
    })
}

/// The program of a preset.
fn preset_command(preset: Preset, job: &Job, places: &SessionPaths) -> Result<PreparedCommand, String> {
    let facts = preset.facts();
    let path = find_program(job.executor.program.as_deref(), facts.program, facts.package, &places.root)?;
    let line = command_line(places, |places| preset.command_line(&job.executor, places));
    let argv = std::iter::once(path.into()).chain(line.arguments).collect();
    let mut program =
        PreparedCommand { files: line.files, folders: line.folders, ..PreparedCommand::of(argv) };
    program.environment.extend(line.environment);
    Ok(program)
}

fn command_line(
    places: &SessionPaths,
    make: impl FnOnce(&agents::LaunchContext<'_>) -> CommandLine,
) -> CommandLine {
    let schema = places.root.join(Doc::OutputSchema.path());
    let schema_bytes = atomic::read(&schema, SCHEMA_BYTES_MAX).ok().flatten().unwrap_or_default();
    let user = std::env::vars_os().collect();
    make(&agents::LaunchContext {
        answer: places.output.clone(),
        schema,
        schema_bytes: &schema_bytes,
        context_full: places.context_full.clone(),
        settings: places.settings.clone(),
        writable: places.writable.clone(),
        fence: places.fence.clone(),
        user: &user,
        is_root: rustix::process::geteuid().is_root(),
    })
}

/// Where a program is that has a name of its own, or how to get it.
fn find_program(own: Option<&str>, usual: &str, package: &str, root: &Path) -> Result<PathBuf, String> {
    let program = own.unwrap_or(usual);
    executables::find(program, Some(root)).ok_or_else(|| match own {
        Some(own) => format!("`{own}` does not exist or is not executable: check [executor] program"),
        None => format!("`{usual}` is not on PATH: install it with 'npm install -g {package}'"),
    })
}

/// The guard of a job, or why there is none.
pub(crate) fn guard_command(job: &Job, root: &Path) -> Result<PreparedCommand, String> {
    resolve_command(job.guard.words(), root)
}

/// A command to be run in a work tree, or why it cannot be.
pub(crate) fn resolve_command(words: &[String], root: &Path) -> Result<PreparedCommand, String> {
    Ok(PreparedCommand::of(resolve_argv(words, root)?))
}

/// The words with the program's own path in front. A program inside the repository must be named by its path.
fn resolve_argv(words: &[String], root: &Path) -> Result<Vec<OsString>, String> {
    let (program, arguments) = words.split_first().ok_or("no program is configured")?;
    let where_not = if program.contains('/') { "missing or not executable" } else { "not on PATH" };
    let path = executables::find(program, Some(root)).ok_or_else(|| format!("`{program}` is {where_not}"))?;
    Ok(std::iter::once(path.into()).chain(arguments.iter().map(OsString::from)).collect())
}

/// The user's environment without what would lead git elsewhere, and without a runner's around this one.
fn inherited_environment() -> Vec<(OsString, OsString)> {
    let is_foreign = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("GIT_") || name.starts_with("RUNNER_")
    };
    let quiet = [("GIT_TERMINAL_PROMPT", "0"), ("GIT_EDITOR", "false"), ("GIT_PAGER", "cat")];
    let quiet = quiet.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    std::env::vars_os().filter(|(name, _)| !is_foreign(name)).chain(quiet).collect()
}
