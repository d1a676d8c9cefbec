//! Builds the command of an agent or a guard from a job: program, arguments, environment and setup files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runner_core::agents::{
    AgentSpec, AnswerFiles, CommandLine, CommandSandbox, LaunchContext, LaunchUser, RepositoryAccess,
    SetupFile, SetupLink,
};
use runner_core::config::{CommandArgv, ExecutorKind, SandboxMode};
use runner_core::step::{Job, SessionMode};

use super::{acp_client, session_keys};
use crate::fs::atomic;
use crate::redaction;
use supervise::executables;

/// The hidden first argument that makes this binary the scripted agent.
pub const SCRIPTED_AGENT_ARG: &str = "__scripted-agent";

/// The variable with the path of the prompt. It also marks every process of a session, so that recovery can find them.
pub(crate) const SESSION_MARKER: &str = "RUNNER_PROMPT";
/// A variable that every process of a guard run has: the path of its log.
pub(crate) const GUARD_MARKER: &str = "RUNNER_GUARD_LOG";

const SCHEMA_BYTES_MAX: u64 = 1 << 20;
const SETTINGS_BYTES_MAX: u64 = 1 << 20;

/// A command with everything it needs to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PreparedCommand {
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Files to write before it starts.
    pub(crate) files: Vec<SetupFile>,
    /// Folders to create before it starts.
    pub(crate) folders: Vec<PathBuf>,
    /// Links to make before it starts.
    pub(crate) links: Vec<SetupLink>,
    /// The agent, if the runner parses its output.
    pub(crate) agent: Option<&'static AgentSpec>,
    /// The folder in which the agent records its usage.
    pub(crate) usage_logs: Option<PathBuf>,
    /// Folders of the user in whose place a sandboxed session has empty ones.
    pub(crate) state_folders: Vec<PathBuf>,
    /// Files of the user that a sandboxed session may write to.
    pub(crate) login_files: Vec<PathBuf>,
}

/// The paths of one session.
#[derive(Clone, Debug)]
pub(crate) struct SessionPaths {
    pub(crate) root: PathBuf,
    pub(crate) prompt: PathBuf,
    pub(crate) output: PathBuf,
    pub(crate) report: PathBuf,
    pub(crate) tree: PathBuf,
    /// A private folder of the session.
    pub(crate) settings: PathBuf,
    /// Writable folders outside of the repository.
    pub(crate) writable: Vec<PathBuf>,
    /// The sandbox for the commands of an agent that stays outside of it.
    pub(crate) command_sandbox: Option<CommandSandbox>,
    pub(crate) purpose: SessionPurpose,
    /// The address of the recorder of its requests.
    pub(crate) recorder: Option<String>,
}

impl SessionPaths {
    /// A hook creates this file when it stops the agent because its context is full.
    pub(crate) fn context_full(&self) -> PathBuf {
        self.settings.join("context-full.json")
    }
}

/// What a session is for.
#[derive(Clone, Debug)]
pub(crate) struct SessionPurpose {
    pub(crate) mode: SessionMode,
    pub(crate) access: RepositoryAccess,
    /// The schema of its answer.
    pub(crate) schema: PathBuf,
}

/// The command of a job's agent, or why it cannot be started.
pub(crate) fn agent_command(job: &Job, paths: &SessionPaths) -> Result<PreparedCommand, String> {
    let mut command = match (job.agent.executor.agent(), &job.agent.executor.scenario) {
        (Some(agent), _) => known_agent_command(agent, job, paths)?,
        (None, None) => {
            let words = job.agent.executor.command.as_ref().map(CommandArgv::words).unwrap_or_default();
            // The program of a container is in its image.
            let argv = match job.agent.executor.sandbox {
                SandboxMode::Podman => words.iter().map(OsString::from).collect(),
                SandboxMode::Auto | SandboxMode::Require | SandboxMode::Off => {
                    resolve_argv(words, &paths.root)?
                }
            };
            match job.agent.executor.kind {
                ExecutorKind::Acp => PreparedCommand::of(acp_client::command(argv, paths)?),
                ExecutorKind::Codex | ExecutorKind::Claude | ExecutorKind::Command | ExecutorKind::Script => {
                    PreparedCommand::of(argv)
                }
            }
        }
        (None, Some(scenario)) => {
            let binary = std::env::current_exe().map_err(|error| error.to_string())?;
            PreparedCommand::of(vec![
                binary.into(),
                SCRIPTED_AGENT_ARG.into(),
                paths.root.join(scenario).into(),
            ])
        }
    };
    if command.agent.is_none() {
        // Codex and Claude Code return their answer in their output.
        command.environment.push(("RUNNER_OUTPUT".into(), paths.output.clone().into()));
        command.environment.push(("RUNNER_REPORT".into(), paths.report.clone().into()));
    }
    let node = job.target.node().map(ToString::to_string).unwrap_or_default();
    command.environment.extend([
        (SESSION_MARKER.into(), paths.prompt.clone().into()),
        ("RUNNER_TREE".into(), paths.tree.clone().into()),
        ("RUNNER_RUN_ID".into(), job.run_id.to_string().into()),
        ("RUNNER_ITER".into(), job.iteration.to_string().into()),
        ("RUNNER_NODE_ID".into(), node.into()),
        ("RUNNER_MODE".into(), paths.purpose.mode.as_str().into()),
    ]);
    Ok(command)
}

impl PreparedCommand {
    fn of(argv: Vec<OsString>) -> Self {
        Self {
            argv,
            environment: inherited_environment(),
            files: Vec::new(),
            folders: Vec::new(),
            links: Vec::new(),
            agent: None,
            usage_logs: None,
            state_folders: Vec::new(),
            login_files: Vec::new(),
        }
    }
}

/// The command of an agent of the registry.
fn known_agent_command(
    agent: &'static AgentSpec,
    job: &Job,
    paths: &SessionPaths,
) -> Result<PreparedCommand, String> {
    let configured = job.agent.executor.program.as_deref();
    let path = match job.agent.executor.sandbox {
        SandboxMode::Podman => PathBuf::from(configured.unwrap_or(agent.program)),
        SandboxMode::Auto | SandboxMode::Require | SandboxMode::Off => {
            find_program(configured, agent.program, agent.package, &paths.root)?
        }
    };
    let line = command_line(agent, job, paths);
    redaction::add_keys(session_keys::of_session(agent, &job.agent.executor, &line));
    Ok(PreparedCommand {
        argv: std::iter::once(path.into()).chain(line.arguments).collect(),
        environment: line.environment.into_iter().collect(),
        files: line.files,
        folders: line.folders,
        links: line.links,
        agent: Some(agent).filter(|agent| !agent.is_preset()),
        usage_logs: line.usage_logs,
        state_folders: line.state_folders,
        login_files: line.login_files,
    })
}

fn command_line(agent: &AgentSpec, job: &Job, paths: &SessionPaths) -> CommandLine {
    let schema = paths.purpose.schema.clone();
    let schema_bytes = atomic::read(&schema, SCHEMA_BYTES_MAX).ok().flatten().unwrap_or_default();
    let user = std::env::vars_os().collect();
    let login_files = login_files(agent);
    let context = LaunchContext {
        answer: AnswerFiles { path: paths.output.clone(), schema, schema_bytes: &schema_bytes },
        context_full: paths.context_full(),
        settings_dir: paths.settings.clone(),
        writable: paths.writable.clone(),
        access: paths.purpose.access,
        sandbox: paths.command_sandbox.clone(),
        microdollars: job.limits.budget.microdollars,
        user: LaunchUser {
            variables: &user,
            login_files: &login_files,
            is_root: rustix::process::geteuid().is_root(),
        },
        recorder: paths.recorder.as_deref(),
    };
    agent.command_line(&job.agent.executor, &job.permissions.tools, &context)
}

/// The files of the user of which a session gets what it needs to log in.
fn login_files(agent: &AgentSpec) -> BTreeMap<&'static str, String> {
    let login = &agent.surroundings.login;
    let read = |path: &&'static str| {
        let file = login.place(path, &|name| std::env::var_os(name))?.canonicalize().ok()?;
        let bytes = atomic::read(&file, SETTINGS_BYTES_MAX).ok()??;
        Some((*path, String::from_utf8(bytes).ok()?))
    };
    login.read_files.iter().filter_map(read).collect()
}

/// Finds the configured program or the default one; `Err` has how to install it.
fn find_program(
    configured: Option<&str>,
    default: &str,
    package: &str,
    root: &Path,
) -> Result<PathBuf, String> {
    let program = configured.unwrap_or(default);
    executables::find(program, Some(root)).ok_or_else(|| match configured {
        Some(program) => format!("`{program}` does not exist or is not executable: check [executor] program"),
        None => format!("`{default}` is not on PATH: install it with 'npm install -g {package}'"),
    })
}

/// Resolves a command to run in a work tree, or returns why it cannot be started.
pub(crate) fn resolve_command(words: &[String], root: &Path) -> Result<PreparedCommand, String> {
    Ok(PreparedCommand::of(resolve_argv(words, root)?))
}

/// A command for a past commit, whose files the work tree need not have: a program inside the repository is not looked for.
pub(crate) fn resolve_past_command(words: &[String], root: &Path) -> Result<PreparedCommand, String> {
    match words.split_first() {
        Some((program, arguments)) if program.contains('/') && !program.starts_with('/') => {
            let program = root.join(program.trim_start_matches("./"));
            let argv = std::iter::once(program.into()).chain(arguments.iter().map(OsString::from));
            Ok(PreparedCommand::of(argv.collect()))
        }
        Some(_) | None => resolve_command(words, root),
    }
}

/// Repaths the program by its absolute path. A program inside the repository must be given by its path.
fn resolve_argv(words: &[String], root: &Path) -> Result<Vec<OsString>, String> {
    let (program, arguments) = words.split_first().ok_or("no program is configured")?;
    let problem = if program.contains('/') { "missing or not executable" } else { "not on PATH" };
    let path = executables::find(program, Some(root)).ok_or_else(|| format!("`{program}` is {problem}"))?;
    Ok(std::iter::once(path.into()).chain(arguments.iter().map(OsString::from)).collect())
}

/// The user's environment without the variables that would redirect git, and without those of an outer runner.
fn inherited_environment() -> Vec<(OsString, OsString)> {
    let is_foreign = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("GIT_") || name.starts_with("RUNNER_")
    };
    let non_interactive = [("GIT_TERMINAL_PROMPT", "0"), ("GIT_EDITOR", "false"), ("GIT_PAGER", "cat")]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    std::env::vars_os().filter(|(name, _)| !is_foreign(name)).chain(non_interactive).collect()
}
