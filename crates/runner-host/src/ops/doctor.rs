//! `runner doctor`: checks whether a run can work on this machine, and how to fix what is missing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runner_core::agents::{AgentLogin, AgentSandbox, AgentSpec, NativeAgent};
use runner_core::config::{CommandArgv, Config, Executor, NetworkAccess, RoomMode, SandboxMode};
use runner_core::detect::LoginState;
use runner_core::layout::Doc;
use runner_core::model::repo_path::RepoPath;
use runner_core::text::one_line;
use supervise::executables;

use crate::agent::login::{executor_login, installed_agents, unusable_login_file};
use crate::agent::own_sandbox::OwnSandbox;
use crate::agent::sandbox::{Bubblewrap, bubblewrap_fix, obstacle};
use crate::agent::sandbox_program::{NoSandbox, SandboxProgram};
use crate::error::Error;
use crate::git::{Git, OLDEST};
use crate::iteration::hook_program;
use crate::ops::preflight::{
    PreflightProblem, SetupStage, agent_problem, config_problems, goal_problem, guard_problem,
};
use crate::repo::documents::read_docs;
use crate::repo::work_tree_files::guard_dependencies;
use crate::sleep_inhibitor;

mod new_run;
mod places;
mod session_inputs;

const GIT_FIX: &str = "install git 2.36 or newer";

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckVerdict {
    Ok,
    /// A run works, with a restriction.
    Warning,
    /// A run would fail.
    Problem,
}

/// One check and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoctorCheck {
    pub name: &'static str,
    pub verdict: CheckVerdict,
    pub found: String,
    pub fix: Option<String>,
}

impl DoctorCheck {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, verdict: CheckVerdict::Ok, found: found.into(), fix: None }
    }

    fn warning(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, verdict: CheckVerdict::Warning, found: found.into(), fix: Some(fix.into()) }
    }

    fn problem(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, verdict: CheckVerdict::Problem, found: found.into(), fix: Some(fix.into()) }
    }
}

/// Runs all checks. A check that cannot run is a problem, not an error.
pub fn run_checks(dir: &Path) -> Vec<DoctorCheck> {
    let Some(program) = executables::find("git", None) else {
        return vec![DoctorCheck::problem("git", "not found", GIT_FIX)];
    };
    let git = match Git::open(dir) {
        Ok(git) => git,
        Err(error) => {
            let found = version_of(&program).unwrap_or_else(|| program.display().to_string());
            return vec![DoctorCheck::ok("git", found), places::missing_repository(dir, &error)];
        }
    };
    let config = read_docs(&git).map(|docs| docs.get(&Doc::Config).map(|bytes| Config::decode(bytes)));
    let mut checks = vec![git_check(&git)];
    checks.extend(places::checks(&git));
    checks.push(author_check(&git));
    match config {
        Ok(Some(Ok(config))) => {
            checks.extend(goal_check(&git));
            let stage = SetupStage::Configured;
            checks.extend(program_checks(&git, &config, guard_check(&git, &config, stage), stage));
        }
        Ok(None) => checks.extend(new_run::checks(&git)),
        Ok(Some(Err(_))) | Err(_) => {
            let fix = "run 'runner validate' to list all errors";
            checks.push(DoctorCheck::problem("setup", "the configuration is invalid", fix));
        }
    }
    checks
}

fn git_check(git: &Git) -> DoctorCheck {
    match git.version() {
        Ok((version, text)) if version >= OLDEST => {
            DoctorCheck::ok("git", format!("{text}, {}", git.program().display()))
        }
        Ok((_, text)) => DoctorCheck::problem("git", text, GIT_FIX),
        Err(error) => DoctorCheck::problem("git", error.to_string(), GIT_FIX),
    }
}

fn author_check(git: &Git) -> DoctorCheck {
    match git.author() {
        Some(author) => DoctorCheck::ok("author", format!("commit author: {}", one_line(&author))),
        None => DoctorCheck::warning(
            "author",
            "commit author: `runner`, because git has no user.name and user.email",
            "run 'git config --global user.name \"…\"' and 'git config --global user.email \"…\"'",
        ),
    }
}

/// A goal that still holds the template: no loop starts with it.
fn goal_check(git: &Git) -> Option<DoctorCheck> {
    let problem = goal_problem(&read_docs(git).ok()?)?;
    Some(DoctorCheck::problem("goal", problem.found, problem.fix))
}

fn program_checks(git: &Git, config: &Config, guard: DoctorCheck, stage: SetupStage) -> Vec<DoctorCheck> {
    let agent = |executor: &Executor| agent_check(git.root(), executor, stage);
    let mut checks = vec![guard, agent(&config.executor)];
    checks.extend(config.ladder.iter().map(|rung| agent(&rung.executor)));
    let reviewers = config.review.iter();
    checks.extend(reviewers.map(|review| DoctorCheck { name: "reviewer", ..agent(&review.executor) }));
    checks.extend(same_model_check(config));
    checks.extend(session_inputs::checks(git.root(), &config.executor));
    checks.extend([sandbox_check(git, config), network_check(config)]);
    checks.extend([room_check(git, config), protection_check(git, config)]);
    checks.push(sleep_check(git.root()));
    checks.extend(notify_checks(git.root(), config));
    checks.extend(config.hooks.configured().map(|(key, argv)| hook_check(git.root(), key, argv)));
    add_preflight(&mut checks, config_problems(git, config, stage));
    checks
}

/// Adds what would make a loop refuse to start, where no check has found it.
fn add_preflight(checks: &mut Vec<DoctorCheck>, problems: Vec<PreflightProblem>) {
    for PreflightProblem { check, found, fix } in problems {
        let is_known =
            checks.iter().any(|known| known.name == check && known.verdict == CheckVerdict::Problem);
        if !is_known {
            checks.push(DoctorCheck::problem(check, found, fix));
        }
    }
}

/// The guard's program. What a loop refuses is a problem here too.
fn guard_check(git: &Git, config: &Config, stage: SetupStage) -> DoctorCheck {
    if let Some(problem) = guard_problem(git.root(), config, stage) {
        return DoctorCheck::problem("guard", problem.found, problem.fix);
    }
    let program = config.guard.command.program();
    let path = git.root().join(program);
    if program.contains('/') && executables::find(program, Some(git.root())).is_none() {
        if path.exists() {
            let found = format!("`{program}` is not executable");
            return DoctorCheck::problem("guard", found, format!("chmod +x {program}, and commit that"));
        }
        let found = format!("there is no `{program}`: tasks fail until a setup or an agent makes it");
        let fix = format!("create and commit it, or {}", stage.set_guard("COMMAND"));
        return DoctorCheck::warning("guard", found, fix);
    }
    program_check(git.root(), "guard", program, String::new())
}

/// A reviewer that is the same model as the worker overlooks the same mistakes.
fn same_model_check(config: &Config) -> Option<DoctorCheck> {
    let reviewer = config.review.as_ref()?.executor.label();
    let mut workers =
        std::iter::once(&config.executor).chain(config.ladder.iter().map(|rung| &rung.executor));
    workers.any(|worker| worker.label() == reviewer).then(|| {
        let found = format!("reviewer and worker are the same model: {}", one_line(&reviewer));
        DoctorCheck::warning("reviewer", found, "choose another: runner config set review.model MODEL")
    })
}

/// The files that the guard depends on and that the configuration does not protect.
fn protection_check(git: &Git, config: &Config) -> DoctorCheck {
    let dependencies = guard_dependencies(git, &config.guard);
    let Some(listed) = &config.guard.protected else {
        let count = dependencies.files.len() + dependencies.entries.len();
        return DoctorCheck::ok(
            "protection",
            format!("derived from the guard's command: {count} files and entries"),
        );
    };
    // The patterns are git's: it decides which files they match.
    let protected = git.matching_work_tree_files(listed).unwrap_or_default();
    let is_open = |name: &String| git.root().join(name).is_file() && !protected.contains(name.as_bytes());
    let mut open: Vec<String> =
        dependencies.files.iter().map(|path| path.replace('\\', "")).filter(is_open).collect();
    let is_listed = |file: &RepoPath| protected.contains(&file.to_bytes());
    let entries = dependencies.entries.iter().filter(|entry| entry.pinned && !is_listed(&entry.file));
    open.extend(entries.map(ToString::to_string));
    if open.is_empty() {
        return DoctorCheck::ok("protection", "the configuration protects every file of the guard");
    }
    let fix = format!("add them to [guard] protected in {}, or remove that key", Doc::Config.path());
    DoctorCheck::warning("protection", format!("agents may change {}", one_line(&open.join(", "))), fix)
}

/// A missing hook program is a warning: the run works, but the user who waits for the hook gets no notice.
fn hook_check(root: &Path, key: &str, argv: &CommandArgv) -> DoctorCheck {
    match hook_program(argv, root) {
        Ok(program) => {
            let path = program.argv.first().map(|path| path.to_string_lossy().into_owned());
            DoctorCheck::ok("hook", format!("{key}: {}", path.unwrap_or_default()))
        }
        Err(why) => {
            let fix = format!("check [hooks] {key} in {}", Doc::Config.path());
            DoctorCheck::warning("hook", format!("{key}: {why}"), fix)
        }
    }
}

/// A machine that goes to sleep only delays a run.
fn sleep_check(root: &Path) -> DoctorCheck {
    match sleep_inhibitor::probe(root) {
        Ok(found) => DoctorCheck::ok("sleep", found),
        Err(why) => {
            let found = format!("the machine may go to sleep during a loop: {why}");
            DoctorCheck::warning("sleep", found, "turn off automatic suspend in the system's settings")
        }
    }
}

/// Missing programs for notifications are warnings too.
fn notify_checks(root: &Path, config: &Config) -> Vec<DoctorCheck> {
    let has = |program: &str| executables::find(program, Some(root)).is_some();
    let check = |key: &str, is_there: bool, programs: &str| {
        if is_there {
            return DoctorCheck::ok("notify", format!("{key}: configured"));
        }
        let fix = format!("install {programs}, or remove [notify] {key} from {}", Doc::Config.path());
        DoctorCheck::warning("notify", format!("{key}: {programs} is not on PATH"), fix)
    };
    let notify = &config.notify;
    let mut checks = Vec::new();
    if notify.desktop {
        checks.push(check("desktop", has("notify-send") || has("osascript"), "notify-send"));
    }
    let posts = [("webhook", &notify.webhook), ("ntfy", &notify.ntfy)];
    let posts = posts.into_iter().filter(|(_, url)| url.is_some());
    checks.extend(posts.map(|(key, _)| check(key, has("curl"), "curl")));
    if config.telemetry.otlp_endpoint.is_some() && !has("curl") {
        let fix = format!("install curl, or remove [telemetry] from {}", Doc::Config.path());
        checks.push(DoctorCheck::warning("telemetry", "curl is not on PATH", fix));
    }
    checks
}

/// Checks the agent's program, version and login. A program inside `root` must be configured by its path.
pub(crate) fn agent_check(root: &Path, executor: &Executor, stage: SetupStage) -> DoctorCheck {
    if let Some(image) = executor.image.as_ref().filter(|_| executor.sandbox == SandboxMode::Podman) {
        return DoctorCheck::ok("agent", format!("in the image {}", one_line(image)));
    }
    if let Some(agent) = executor.agent() {
        return known_agent_check(root, executor, agent, stage);
    }
    match &executor.command {
        Some(command) => {
            let fix = agent_fix(root, stage, "check [executor] command");
            program_check(root, "agent", command.program(), fix)
        }
        None => match agent_problem(root, executor, stage) {
            Some(problem) => DoctorCheck::problem("agent", problem.found, problem.fix),
            None => DoctorCheck::ok("agent", "scripted: nothing to install"),
        },
    }
}

/// Checks an agent of the registry. The runner knows the logins of native agents only.
fn known_agent_check(root: &Path, executor: &Executor, agent: &AgentSpec, stage: SetupStage) -> DoctorCheck {
    let program = executor.program.as_deref().unwrap_or(agent.program);
    let install = match &executor.program {
        Some(_) => agent_fix(root, stage, "check [executor] program"),
        None => {
            let other = agent_fix(root, stage, "change [executor]");
            format!("install it with 'npm install -g {}', or {other}", agent.package)
        }
    };
    let Some(native) = agent.native() else {
        let check = versioned_program_check(root, "agent", program, install);
        return check_key(executor, check_version(agent, check));
    };
    let fix = format!("{install}; then log in with '{}'", native.login.command);
    let check = versioned_program_check(root, "agent", program, fix);
    check_key(executor, check_login(&native.login, executor, check_version(agent, check)))
}

/// What to do about an agent that is missing: the change of the configuration, or an option where there is none yet.
fn agent_fix(root: &Path, stage: SetupStage, change: &str) -> String {
    match stage {
        SetupStage::NewRun => stage.set_agent(&installed_agents(root)),
        SetupStage::Configured => format!("{change} in {}", Doc::Config.path()),
    }
}

/// Reports a missing login beside what was doubtful before. A loop refuses to start without a login, unless the program is
/// the user's own, which may log in elsewhere.
fn check_login(login: &AgentLogin, executor: &Executor, check: DoctorCheck) -> DoctorCheck {
    if check.verdict == CheckVerdict::Problem || executor_login(executor) != LoginState::Missing {
        return check;
    }
    let key = login.key_variables.first().copied().unwrap_or_default();
    let other = check.fix.map(|fix| format!("; {fix}")).unwrap_or_default();
    let fix = format!("log in with '{}', or set {key}{other}", login.command);
    let in_file = unusable_login_file(executor);
    let in_file =
        in_file.map(|file| format!(" ({} holds none that works)", file.display())).unwrap_or_default();
    let found = format!("{}, no login found{in_file}", check.found);
    match executor.program {
        Some(_) => DoctorCheck::warning("agent", found, fix),
        None => DoctorCheck::problem("agent", found, fix),
    }
}

/// Reports a key for another provider that no variable holds.
fn check_key(executor: &Executor, check: DoctorCheck) -> DoctorCheck {
    let is_empty = |name: &&String| std::env::var_os(name.as_str()).is_none_or(|value| value.is_empty());
    match executor.key_env.as_ref().filter(is_empty) {
        Some(name) if check.verdict != CheckVerdict::Problem => {
            let found = format!("{}, but the variable {name} for its key is not set", check.found);
            DoctorCheck::problem("agent", found, format!("export {name}=KEY, or change [executor] key_env"))
        }
        Some(_) | None => check,
    }
}

/// Turns the check into a warning for an untested version, whose flags may differ.
fn check_version(agent: &AgentSpec, check: DoctorCheck) -> DoctorCheck {
    if check.verdict != CheckVerdict::Ok || agent.tested_version(&check.found).is_some() {
        return check;
    }
    let tested = agent.tested_versions.join(", ");
    let found = format!("{} (tested with {tested})", check.found);
    let fix = format!("if sessions fail, run 'npm install -g {}@{tested}'", agent.package);
    DoctorCheck::warning("agent", found, fix)
}

/// How the agent and the guard would be confined.
pub fn sandbox_checks(dir: &Path, config: &Config) -> Result<Vec<DoctorCheck>, Error> {
    let git = Git::open(dir)?;
    Ok(vec![sandbox_check(&git, config), room_check(&git, config)])
}

fn sandbox_check(git: &Git, config: &Config) -> DoctorCheck {
    let executor = &config.executor;
    let agent = executor.agent();
    let exposure = agent.map(exposure).unwrap_or_default();
    if executor.sandbox == SandboxMode::Off {
        let found = format!("off, as configured: the agent can write wherever you can{exposure}");
        if exposure.is_empty() {
            return DoctorCheck::ok("sandbox", found);
        }
        return DoctorCheck::warning("sandbox", found, "runner config set executor.sandbox auto");
    }
    let has_network = executor.effective_network() != NetworkAccess::None;
    if let Some(native) = agent.and_then(AgentSpec::native)
        && native.sandbox == AgentSandbox::BuiltIn
    {
        let found = format!("{}'s built-in sandbox", native.title);
        return built_in_fault(git.root(), executor, native, &found)
            .unwrap_or_else(|| with_gap(found, OwnSandbox::find(git.root()).gap(has_network)));
    }
    let found = SandboxProgram::find(executor, git.root());
    match found.and_then(|program| obstacle(git, agent).map_or(Ok(program), Err)) {
        Ok(program) => with_gap(program.describe(), program.gap(has_network)),
        Err(NoSandbox { why, fix }) => {
            if matches!(executor.sandbox, SandboxMode::Require | SandboxMode::Podman) {
                let found = format!("none ({why}): no session can start");
                return DoctorCheck::problem("sandbox", found, fix);
            }
            let found = format!("none ({why}): the agent can write wherever you can{exposure}");
            DoctorCheck::warning("sandbox", found, fix)
        }
    }
}

/// What an agent loads besides the prompt where no sandbox hides it.
fn exposure(agent: &AgentSpec) -> String {
    let places = [
        ("your home", agent.surroundings.hidden_in_home),
        ("the repository", agent.surroundings.hidden_in_repository),
    ];
    let named = places.iter().filter(|(_, paths)| !paths.is_empty());
    let named: Vec<String> = named.map(|(place, paths)| format!("{} in {place}", paths.join(", "))).collect();
    if named.is_empty() {
        return String::new();
    }
    format!("; {} also loads {}", agent.name, named.join(", and "))
}

/// Tries an agent's own sandbox: without it, every command of its sessions fails. Not tried without the agent's folder in the
/// home, which it would create.
fn built_in_fault(
    root: &Path,
    executor: &Executor,
    native: &NativeAgent,
    found: &str,
) -> Option<DoctorCheck> {
    let agent = executor.agent()?;
    let program = executables::find(executor.program.as_deref().unwrap_or(agent.program), Some(root))?;
    let folder = std::env::var_os(native.login.home_variable).map(PathBuf::from);
    let in_home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(native.login.home_dir));
    folder.or_else(in_home).filter(|folder| folder.is_dir())?;
    let why = executables::probe(&program, &["sandbox", "--", "true"].map(OsString::from)).err()?;
    let found = format!("{found} does not work: {}", one_line(&why));
    let is_tested = version_of(&program).is_some_and(|version| agent.tested_version(&version).is_some());
    // Another version may know other words for the trial.
    let fix = bubblewrap_fix(&why);
    Some(if is_tested {
        DoctorCheck::problem("sandbox", found, fix)
    } else {
        DoctorCheck::warning("sandbox", found, fix)
    })
}

/// A sandbox that works, with what it does not cover on this system.
fn with_gap(found: String, gap: Option<String>) -> DoctorCheck {
    match gap {
        None => DoctorCheck::ok("sandbox", found),
        Some(gap) => {
            let fix = "use Linux 6.12 or newer, or do without: runner config set executor.network none";
            DoctorCheck::warning("sandbox", format!("{found}; {gap}"), fix)
        }
    }
}

/// What the agent's commands can reach, and whether they can install something.
fn network_check(config: &Config) -> DoctorCheck {
    let executor = &config.executor;
    let check = DoctorCheck::ok("network", executor.network_note());
    if executor.agent().is_none() || executor.network.is_some() || executor.sandbox == SandboxMode::Off {
        return check;
    }
    let hint = "to let sessions install dependencies: runner config set executor.network registries";
    DoctorCheck::ok("network", format!("{} ({hint})", check.found))
}

/// Where the guard runs.
fn room_check(git: &Git, config: &Config) -> DoctorCheck {
    let in_place = |why: &str| format!("the guard runs in the work tree, without a sandbox ({why})");
    if config.guard.room == RoomMode::InPlace {
        return DoctorCheck::ok("room", in_place("as configured"));
    }
    match (Bubblewrap::find(git.root()), config.guard.room) {
        (Ok(_), _) => DoctorCheck::ok("room", "the guard runs on the files to commit, in a sandbox"),
        (Err(why), RoomMode::Require) => {
            let fix = bubblewrap_fix(&why);
            DoctorCheck::problem("room", why, fix)
        }
        (Err(why), RoomMode::Auto | RoomMode::InPlace) => {
            DoctorCheck::warning("room", in_place(&why), bubblewrap_fix(&why))
        }
    }
}

/// A program that the user configured. One configured by its path is not run with `--version`, because it may do anything.
fn program_check(root: &Path, name: &'static str, program: &str, fix: String) -> DoctorCheck {
    match executables::find(program, Some(root)) {
        Some(path) if program.contains('/') => DoctorCheck::ok(name, path.display().to_string()),
        Some(_) | None => versioned_program_check(root, name, program, fix),
    }
}

/// A program that prints its version for `--version`.
fn versioned_program_check(root: &Path, name: &'static str, program: &str, fix: String) -> DoctorCheck {
    let Some(path) = executables::find(program, Some(root)) else {
        return DoctorCheck::problem(name, format!("`{program}` is not on PATH"), fix);
    };
    let version = version_of(&path).map(|version| format!("{version}, ")).unwrap_or_default();
    DoctorCheck::ok(name, format!("{version}{}", path.display()))
}

/// The version as one printable line.
fn version_of(program: &Path) -> Option<String> {
    executables::version_of(program).map(|version| one_line(&version))
}
