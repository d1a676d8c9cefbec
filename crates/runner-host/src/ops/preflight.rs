//! Checks before a loop's first commit, and at every start of a loop: everything that would make the night useless.

use std::path::Path;

use runner_core::agents::{AgentSandbox, AgentSpec, ReportedUsage};
use runner_core::config::{Budget, Config, Executor, RoomMode, SandboxMode};
use runner_core::detect::{AgentPresence, LoginState, login_places};
use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::cost::{BudgetLimit, RunSpending, unenforceable_limits};
use runner_core::model::goal::Goal;
use runner_core::runs::start::DocSet;
use supervise::executables;

use super::agent_needs::missing_need;
use super::signed_tip::signing_obstacle;
use crate::agent::login::{executor_login, installed_agents};
use crate::agent::sandbox::{Bubblewrap, bubblewrap_fix};
use crate::agent::sandbox_program::{NoSandbox, SandboxProgram};
use crate::error::{Error, UserError};
use crate::fs::free_space::{refuse_full_disk, refuse_read_only};
use crate::fs::lock;
use crate::git::Git;
use crate::repo::documents::read_docs;
use crate::repo::heldout_folder::HeldoutFolder;
use crate::repo::journal::{self, JournalState};
use crate::repo::readonly_repo::lock_holder;

/// The name of the checks of sandboxes.
const SANDBOX: &str = "sandbox";

/// Something that must be fixed before a loop starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreflightProblem {
    pub check: &'static str,
    /// What is wrong, with the value.
    pub found: String,
    /// The command or the change that fixes it.
    pub fix: String,
}

impl PreflightProblem {
    pub(super) fn new(check: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, found: found.into(), fix: fix.into() }
    }
}

/// Whether a run has a configuration file that `runner config` can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetupStage {
    /// Options of `runner run` decide.
    NewRun,
    Configured,
}

impl SetupStage {
    /// What to type for another test command.
    pub(super) fn set_guard(self, command: &str) -> String {
        match self {
            Self::NewRun => format!("name your test command: runner run \"GOAL\" --guard \"{command}\""),
            Self::Configured => {
                format!("set your test command: runner config set guard.command {command} && runner start")
            }
        }
    }

    /// What to type for another agent.
    pub(super) fn set_agent(self, installed: &[AgentPresence]) -> String {
        let name = installed.first().map_or("COMMAND", |presence| presence.agent.name);
        match (self, installed.first()) {
            (Self::NewRun, _) => {
                format!("name an agent that is installed: runner run \"GOAL\" --agent {name}")
            }
            (Self::Configured, Some(presence)) => {
                let keys = if presence.agent.is_preset() {
                    format!("executor.kind=command executor.preset={name}")
                } else {
                    format!("executor.kind={name}")
                };
                let set = format!("runner config set {keys} executor.command=");
                format!("choose one that is installed: {set} && runner start")
            }
            (Self::Configured, None) => {
                "choose another: runner config set executor.command PROGRAM && runner start".to_owned()
            }
        }
    }
}

/// Refuses to start a loop in this repository if it could not do any work. Nothing is written.
pub fn preflight(dir: &Path, loop_budget: &Budget) -> Result<(), Error> {
    // The loop reports a repository that cannot be opened, after it has tried to repair what a crash left.
    let Ok(git) = Git::open(dir) else { return Ok(()) };
    let holder = lock_holder(&git);
    // After a crash the file may name a process that has nothing to do with it.
    if let Some(pid) = holder.filter(|_| lock::is_held(&git.paths().lock())) {
        return Err(UserError::LoopRunning(pid).into());
    }
    // After a crash the documents may be half written: recovery comes first, and then every iteration checks them.
    if journal::read(&git.paths().journal())? != JournalState::Empty {
        return Ok(());
    }
    let is_set_up = git.root().join(RUNNER_DIR).symlink_metadata().is_ok();
    if !is_set_up && git.runner_branches()?.is_empty() {
        return Err(UserError::NotSetUp(git.root().to_owned()).into());
    }
    // A full disk is the cause of many other problems.
    refuse_full_disk(&[git.root(), git.common_dir()])?;
    refuse_read_only(&[git.root(), git.common_dir()])?;
    let docs = read_docs(&git)?;
    let mut problems = Vec::new();
    problems.extend(goal_problem(&docs));
    // An invalid configuration is reported by the loop itself.
    if let Some(config) = docs.get(&Doc::Config).and_then(|bytes| Config::decode(bytes).ok()) {
        problems.extend(config_problems(&git, &config, SetupStage::Configured));
        problems.extend(loop_limit_problem(&config, loop_budget));
        // Alone it does not stop a loop, which warns when it starts. Beside another problem, both can be fixed at once.
        if !problems.is_empty() && problems.iter().all(|problem| problem.check != SANDBOX) {
            problems.extend(missing_sandbox(git.root(), &config));
        }
    }
    refuse(problems)
}

/// A sandbox that the agents would have if it worked here.
fn missing_sandbox(root: &Path, config: &Config) -> Option<PreflightProblem> {
    let is_wanted =
        |executor: &&Executor| executor.sandbox == SandboxMode::Auto && !has_own_sandbox(executor);
    let mut wanted = config.agents().filter(is_wanted);
    let NoSandbox { why, fix } = wanted.find_map(|executor| SandboxProgram::find(executor, root).err())?;
    Some(PreflightProblem::new(SANDBOX, format!("the agent would run without a sandbox: {why}"), fix))
}

pub(crate) fn goal_problem(docs: &DocSet) -> Option<PreflightProblem> {
    let goal = docs.get(&Doc::Goal).and_then(|bytes| Goal::parse(bytes).ok())?;
    let fix = "write it there, or here: runner start --goal \"GOAL\"";
    (!goal.is_written()).then(|| PreflightProblem::new("goal", "GOAL.md still holds the template", fix))
}

/// The same for a run that does not exist yet.
pub(crate) fn preflight_config(git: &Git, config: &Config) -> Result<(), Error> {
    refuse_full_disk(&[git.root(), git.common_dir()])?;
    refuse_read_only(&[git.root(), git.common_dir()])?;
    refuse(config_problems(git, config, SetupStage::NewRun))
}

/// Refuses a limit of the command on something that the agents of this configuration do not report.
pub fn refuse_unmeasurable(config: &Config, loop_budget: &Budget) -> Result<(), Error> {
    refuse(loop_limit_problem(config, loop_budget).into_iter().collect())
}

fn refuse(problems: Vec<PreflightProblem>) -> Result<(), Error> {
    if problems.is_empty() { Ok(()) } else { Err(UserError::Preflight(problems).into()) }
}

pub(crate) fn config_problems(git: &Git, config: &Config, stage: SetupStage) -> Vec<PreflightProblem> {
    let mut problems = Vec::new();
    let agents = config.agents();
    for (rung, executor) in agents.clone().enumerate() {
        let is_repeated = agents.clone().take(rung).any(|earlier| is_same_program(earlier, executor));
        problems.extend(agent_problem(git.root(), executor, stage).filter(|_| !is_repeated));
    }
    problems.extend(guard_problem(git.root(), config, stage));
    problems.extend(limit_problem(config));
    problems.extend(sandbox_problem(git.root(), config));
    problems.extend(heldout_problem(git, config));
    problems.extend(signing_obstacle(git, &config.proof).map(|why| {
        let fix = "load the key into your agent, or choose another: runner config set proof.key KEY";
        PreflightProblem::new("signing", format!("the run could not be signed at its end: {why}"), fix)
    }));
    problems
}

fn is_same_program(one: &Executor, other: &Executor) -> bool {
    (one.kind, &one.program, &one.command, one.preset, &one.base_url)
        == (other.kind, &other.program, &other.command, other.preset, &other.base_url)
}

pub(crate) fn agent_problem(root: &Path, executor: &Executor, stage: SetupStage) -> Option<PreflightProblem> {
    let problem = |found: String, fix: String| Some(PreflightProblem::new("agent", found, fix));
    if let Some(scenario) = executor.scenario.as_deref().filter(|scenario| !root.join(scenario).is_file()) {
        let fix = "name a scenario that exists: runner config set executor.scenario FILE && runner start";
        return problem(format!("there is no scenario `{scenario}`"), fix.to_owned());
    }
    if executor.sandbox == SandboxMode::Podman {
        // Its program is in the image.
        return None;
    }
    let Some(agent) = executor.agent() else {
        let program = executor.command.as_ref()?.program();
        if executables::find(program, Some(root)).is_some() {
            return None;
        }
        return problem(format!("`{program}` is not on PATH"), stage.set_agent(&installed_agents(root)));
    };
    let program = executor.program.as_deref().unwrap_or(agent.program);
    if executables::find(program, Some(root)).is_none() {
        return problem(format!("`{program}` is not on PATH"), install_fix(executor, agent));
    }
    // A program of the user's own may log in elsewhere.
    if executor.program.is_none() && executor_login(executor) == LoginState::Missing {
        let places = login_places(agent);
        let key = places.variables.first().copied().unwrap_or_default();
        let login = places.command.unwrap_or(agent.program);
        return problem(
            format!("`{program}` is not logged in"),
            format!("log in with '{login}', or set {key}"),
        );
    }
    missing_need(root, executor, agent)
}

fn install_fix(executor: &Executor, agent: &AgentSpec) -> String {
    match &executor.program {
        Some(_) => format!("check [executor] program in {}", Doc::Config.path()),
        None => format!("install it: npm install -g {}", agent.package),
    }
}

pub(crate) fn guard_problem(root: &Path, config: &Config, stage: SetupStage) -> Option<PreflightProblem> {
    let program = config.guard.command.program();
    let problem = |found: String, fix: String| Some(PreflightProblem::new("guard", found, fix));
    let is_installed = |program: &str| executables::find(program, Some(root)).is_some();
    if let Some((first, _)) = program.split_once(' ').filter(|(first, _)| is_installed(first)) {
        let found = format!("`{program}` is one word of the command, but `{first}` is the program");
        return problem(found, stage.set_guard(program));
    }
    // A program inside the repository may be made by the setup, or by an agent.
    if program.contains('/') && !program.starts_with('/') || is_installed(program) {
        return None;
    }
    let fix = format!("install `{program}`, or {}", stage.set_guard("COMMAND"));
    problem(format!("`{program}` is not on PATH"), fix)
}

/// Limits of the configuration on what an agent is known not to report.
fn limit_problem(config: &Config) -> Option<PreflightProblem> {
    let name = |limit: BudgetLimit| format!("budget.{}", limit.as_str());
    unenforceable(config, config.budget, &name, "budget.run_tokens")
}

/// The same for the options of a loop.
fn loop_limit_problem(config: &Config, loop_budget: &Budget) -> Option<PreflightProblem> {
    let name = |limit: BudgetLimit| if limit.is_money() { "--max-usd" } else { "--max-tokens" }.to_owned();
    unenforceable(config, *loop_budget, &name, "--max-tokens")
}

/// The limits of a budget that cannot be measured for one of the agents, and what to set instead for an agent that reports its
/// tokens.
fn unenforceable(
    config: &Config,
    budget: Budget,
    name: &dyn Fn(BudgetLimit) -> String,
    instead: &str,
) -> Option<PreflightProblem> {
    let spent = RunSpending::default();
    // Each agent is looked at by itself, the reviewer too.
    let limited = Config { budget, review: None, ..config.clone() };
    let mut limits = config.agents().map(|agent| (agent, unenforceable_limits(&limited, &spent, agent)));
    let (agent, limits) = limits.find(|(_, limits)| !limits.is_empty())?;
    let names = limits.into_iter().map(name).collect::<Vec<_>>().join(" and ");
    let reports_nothing = agent.agent().is_some_and(|agent| agent.reports == ReportedUsage::Nothing);
    let (why, fix) = if reports_nothing {
        let fix = format!(
            "choose an agent that reports them, or remove {names} and limit iterations or time: \
             runner loop --max-iterations N --until HH:MM"
        );
        ("reports neither tokens nor cost", fix)
    } else {
        let fix = format!(
            "add [prices.\"{}\"] to {} and run 'runner start', or limit tokens instead: {instead}",
            agent.priced_as(),
            Doc::Config.path()
        );
        ("does not report its cost", fix)
    };
    let found = format!("{names} cannot be enforced: {} {why}", agent.label());
    Some(PreflightProblem::new("limits", found, fix))
}

/// A sandbox that the configuration requires and that does not work here.
fn sandbox_problem(root: &Path, config: &Config) -> Option<PreflightProblem> {
    let is_required = |executor: &&Executor| match executor.sandbox {
        SandboxMode::Podman => true,
        SandboxMode::Require => !has_own_sandbox(executor),
        SandboxMode::Auto | SandboxMode::Off => false,
    };
    if config.guard.room == RoomMode::Require {
        let why = Bubblewrap::find(root).err()?;
        let found = format!("the guard must run in a room here, but {why}");
        return Some(PreflightProblem::new(SANDBOX, found, bubblewrap_fix(&why)));
    }
    let required = config.agents().filter(is_required);
    let NoSandbox { why, fix } =
        required.into_iter().find_map(|executor| SandboxProgram::find(executor, root).err())?;
    let found = format!("agents must run in a sandbox here, but {why}");
    Some(PreflightProblem::new(SANDBOX, found, fix))
}

/// A folder of held-out checks that cannot be used, or that cannot be hidden here.
fn heldout_problem(git: &Git, config: &Config) -> Option<PreflightProblem> {
    let name = config.checks.heldout.as_deref()?;
    let tasks = HeldoutFolder::open(git, name).map_err(Error::from).and_then(|folder| folder.tasks());
    if let Err(error) = tasks {
        let fix = if let Error::Refused(UserError::Heldout { fix, .. }) = &error {
            *fix
        } else {
            "fix the checks in that folder, then run 'runner start'"
        };
        return Some(PreflightProblem::new("held-out checks", error.to_string(), fix));
    }
    if config.guard.room == RoomMode::InPlace {
        let found = "held-out checks need a room, and the guard runs in place";
        return Some(PreflightProblem::new("held-out checks", found, "runner config set guard.room auto"));
    }
    let why = Bubblewrap::find(git.root()).err()?;
    let found = format!("held-out checks need bubblewrap, which hides them from agents, but {why}");
    Some(PreflightProblem::new("held-out checks", found, bubblewrap_fix(&why)))
}

fn has_own_sandbox(executor: &Executor) -> bool {
    let native = executor.agent().and_then(AgentSpec::native);
    native.is_some_and(|native| native.sandbox == AgentSandbox::BuiltIn)
}
