//! How an agent is started: from the job to the program, its arguments and its variables. Decides nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runner_core::agents::{AgentSpec, CommandLine, CommandSandbox, LaunchContext, SetupFile};
use runner_core::config::CommandArgv;
use runner_core::layout::Doc;
use runner_core::step::Job;

use crate::fs::atomic;
use supervise::executables;

/// The word after the program's name that makes this binary the scripted agent.
pub const PLAY: &str = "__play";

/// The variable that names the prompt. It also marks every process of a session.
pub(crate) const MARK: &str = "RUNNER_PROMPT";

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
    pub(crate) agent: Option<&'static AgentSpec>,
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
pub(crate) fn agent(job: &Job, places: &SessionPaths) -> Result<PreparedCommand, String> {
    let mut program = match (job.executor.agent(), &job.executor.scenario) {
        (Some(agent), _) => of_agent(agent, job, places)?,
        (None, Some(scenario)) => {
            let own = std::env::current_exe().map_err(|error| error.to_string())?;
            PreparedCommand::of(vec![own.into(), PLAY.into(), places.root.join(scenario).into()])
        }
        (None, None) => {
            let words = job.executor.command.as_ref().map(CommandArgv::words).unwrap_or_default();
            PreparedCommand::of(resolved(words, &places.root)?)
        }
    };
    if program.agent.is_none() {
        // The others leave their answer elsewhere.
        program.environment.push(("RUNNER_OUTPUT".into(), places.output.clone().into()));
        program.environment.push(("RUNNER_REPORT".into(), places.report.clone().into()));
    }
    let node = job.target.node().map(ToString::to_string).unwrap_or_default();
    program.environment.extend([
        (MARK.into(), places.prompt.clone().into()),
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
        Self { argv, environment: inherited(), files: Vec::new(), folders: Vec::new(), agent: None }
    }
}

/// The command of an agent of the registry. A native agent gets only its own environment; a preset gets the user's too.
fn of_agent(agent: &'static AgentSpec, job: &Job, places: &SessionPaths) -> Result<PreparedCommand, String> {
    let path = named_program(job.executor.program.as_deref(), agent.program, agent.package, &places.root)?;
    let CommandLine { arguments, environment, files, folders } = command_line(agent, job, places);
    let argv = std::iter::once(path.into()).chain(arguments).collect();
    if agent.is_preset() {
        let mut program = PreparedCommand { files, folders, ..PreparedCommand::of(argv) };
        program.environment.extend(environment);
        return Ok(program);
    }
    let environment = environment.into_iter().collect();
    Ok(PreparedCommand { argv, environment, files, folders, agent: Some(agent) })
}

fn command_line(agent: &AgentSpec, job: &Job, places: &SessionPaths) -> CommandLine {
    let schema = places.root.join(Doc::OutputSchema.path());
    let schema_bytes = atomic::read(&schema, SCHEMA_BYTES_MAX).ok().flatten().unwrap_or_default();
    let user = std::env::vars_os().collect();
    let context = LaunchContext {
        answer: places.output.clone(),
        schema,
        schema_bytes: &schema_bytes,
        context_full: places.context_full.clone(),
        settings_dir: places.settings.clone(),
        writable: places.writable.clone(),
        sandbox: places.fence.clone(),
        user: &user,
        is_root: rustix::process::geteuid().is_root(),
    };
    agent.command_line(&job.executor, &job.tools, &context)
}

/// Where a program is that has a name of its own, or how to get it.
fn named_program(own: Option<&str>, usual: &str, package: &str, root: &Path) -> Result<PathBuf, String> {
    let program = own.unwrap_or(usual);
    executables::find(program, Some(root)).ok_or_else(|| match own {
        Some(own) => format!("`{own}` is no program: check [executor] program"),
        None => format!("`{usual}` is not on the PATH: install it with 'npm install -g {package}'"),
    })
}

/// The guard of a job, or why there is none.
pub(crate) fn guard(job: &Job, root: &Path) -> Result<PreparedCommand, String> {
    program(job.guard.words(), root)
}

/// A command to be run in a work tree, or why it cannot be.
pub(crate) fn program(words: &[String], root: &Path) -> Result<PreparedCommand, String> {
    Ok(PreparedCommand::of(resolved(words, root)?))
}

/// The words with the program's own path in front. A program inside the repository must be named by its path.
fn resolved(words: &[String], root: &Path) -> Result<Vec<OsString>, String> {
    let (program, arguments) = words.split_first().ok_or("no program is configured")?;
    let where_not = if program.contains('/') { "not there, or no program" } else { "not on the PATH" };
    let path = executables::find(program, Some(root)).ok_or_else(|| format!("`{program}` is {where_not}"))?;
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
