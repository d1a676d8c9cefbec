//! `runner doctor`: what a run needs of this machine, and how to get what is missing.

use std::env;
use std::path::{Path, PathBuf};

use runner_core::agents::{AgentLogin, AgentSandbox, AgentSpec};
use runner_core::config::{CommandArgv, Config, Executor, SandboxMode};
use runner_core::layout::{Doc, RUNNER_DIR};

use crate::agent::sandbox::{Bubblewrap, SANDBOX_FIX, obstacle};
use crate::error::Error;
use crate::git::{Git, OLDEST};
use crate::iteration::hook_program;
use crate::view::inspect::read_docs;
use runner_core::text::one_line;
use supervise::executables;

/// The verdict on one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckVerdict {
    /// As it should be.
    Good,
    /// Works, with something to know.
    Doubtful,
    /// A run would fail.
    Bad,
}

/// One point that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoctorCheck {
    /// What was looked at.
    pub name: &'static str,
    /// The verdict.
    pub verdict: CheckVerdict,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub fix: Option<String>,
}

impl DoctorCheck {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, verdict: CheckVerdict::Good, found: found.into(), fix: None }
    }

    fn other(
        name: &'static str,
        verdict: CheckVerdict,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { name, verdict, found: found.into(), fix: Some(fix.into()) }
    }
}

/// Looks at everything a run needs. A point that cannot be looked at is a bad one, not an error.
pub fn run_checks(dir: &Path) -> Vec<DoctorCheck> {
    let Some(program) = executables::find("git", None) else {
        return vec![DoctorCheck::other("git", CheckVerdict::Bad, "not found", "install git 2.36 or newer")];
    };
    let git = match Git::open(dir) {
        Ok(git) => git,
        Err(error) => {
            let found = version_of(&program).unwrap_or_else(|| program.display().to_string());
            return vec![DoctorCheck::good("git", found), repository_point(&error)];
        }
    };
    let config = read_docs(&git).map(|docs| docs.get(&Doc::Config).map(|bytes| Config::decode(bytes)));
    let mut points = vec![git_point(&git), DoctorCheck::good("repository", git.root().display().to_string())];
    points.push(identity_point(&git));
    points.push(file_system_point(&git));
    match config {
        Ok(Some(Ok(config))) => points.extend(program_points(&git, &config)),
        Ok(None) => {
            let fix = "run 'runner init', or 'runner start --goal \"…\"' to begin at once";
            points.push(DoctorCheck::other(
                "set-up",
                CheckVerdict::Doubtful,
                format!("no {RUNNER_DIR}/ here yet"),
                fix,
            ));
            points.extend(program_points(&git, &Config::default()));
        }
        Ok(Some(Err(_))) | Err(_) => {
            let fix = "run 'runner validate' to see every fault";
            points.push(DoctorCheck::other(
                "set-up",
                CheckVerdict::Bad,
                "the configuration cannot be read",
                fix,
            ));
        }
    }
    points
}

fn repository_point(error: &Error) -> DoctorCheck {
    let fix = "go to a repository, or make one with 'git init'";
    DoctorCheck::other("repository", CheckVerdict::Bad, error.to_string(), fix)
}

fn git_point(git: &Git) -> DoctorCheck {
    match git.version() {
        Ok((version, text)) if version >= OLDEST => {
            DoctorCheck::good("git", format!("{text}, {}", git.program().display()))
        }
        Ok((_, text)) => DoctorCheck::other("git", CheckVerdict::Bad, text, "install git 2.36 or newer"),
        Err(error) => {
            DoctorCheck::other("git", CheckVerdict::Bad, error.to_string(), "install git 2.36 or newer")
        }
    }
}

fn identity_point(git: &Git) -> DoctorCheck {
    if git.has_identity() {
        return DoctorCheck::good("identity", "commits carry the name in your git configuration");
    }
    let fix = "git config --global user.name \"…\" and user.email \"…\"";
    DoctorCheck::other(
        "identity",
        CheckVerdict::Doubtful,
        "no name configured: commits will be by `runner`",
        fix,
    )
}

/// Enough for a run's commits and logs.
const FREE_BYTES_MIN: u64 = 1 << 30;

fn file_system_point(git: &Git) -> DoctorCheck {
    let name = "disk";
    match rustix::fs::statvfs(git.root()) {
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let text = format!("{} MiB free", free >> 20);
            if free >= FREE_BYTES_MIN {
                return DoctorCheck::good(name, text);
            }
            DoctorCheck::other(
                name,
                CheckVerdict::Doubtful,
                text,
                "free at least 1 GiB: logs and commits take room",
            )
        }
        Err(error) => {
            DoctorCheck::other(name, CheckVerdict::Doubtful, error.to_string(), "check the file system")
        }
    }
}

fn program_points(git: &Git, config: &Config) -> Vec<DoctorCheck> {
    let guard = config.guard.command.program();
    let install = if guard == "just" {
        "install it with 'cargo install just'".to_owned()
    } else {
        format!("install `{guard}`")
    };
    let guard_fix = format!("{install}, or change [guard] command in {}", Doc::Config.path());
    let mut points = vec![
        program_point(git.root(), "guard", guard, guard_fix),
        agent_point(git.root(), &config.executor),
        sandbox_point(git, config),
    ];
    points.extend(config.hooks.configured().map(|(key, argv)| hook_point(git.root(), key, argv)));
    points
}

/// A hook that cannot be started costs a run nothing, but whoever waits for its word waits in vain.
fn hook_point(root: &Path, key: &str, argv: &CommandArgv) -> DoctorCheck {
    match hook_program(argv, root) {
        Ok(program) => {
            let path = program.argv.first().map(|path| path.to_string_lossy().into_owned());
            DoctorCheck::good("hook", format!("{key}: {}", path.unwrap_or_default()))
        }
        Err(why) => {
            let fix = format!("check [hooks] {key} in {}", Doc::Config.path());
            DoctorCheck::other("hook", CheckVerdict::Doubtful, format!("{key}: {why}"), fix)
        }
    }
}

/// The agent: its program, its version and its login. A program inside `root` must be named by its path.
pub(crate) fn agent_point(root: &Path, executor: &Executor) -> DoctorCheck {
    let check = |key: &str| format!("check [executor] {key} in {}", Doc::Config.path());
    let install = |package: &str| match &executor.program {
        Some(_) => check("program"),
        None => format!(
            "install it with 'npm install -g {package}', or change [executor] in {}",
            Doc::Config.path()
        ),
    };
    let named = |usual: &'static str| executor.program.as_deref().unwrap_or(usual).to_owned();
    if let Some(agent) = executor.agent() {
        let mut fix = install(agent.package);
        if let Some(native) = agent.native() {
            fix.push_str(&format!("; then log in with '{}'", native.login.command));
        }
        let check = known_program_point(root, "agent", &named(agent.program), fix);
        return match agent.native() {
            Some(native) => check_version(agent, check_login(&native.login, executor, check)),
            None => check,
        };
    }
    match &executor.command {
        Some(command) => program_point(root, "agent", command.program(), check("command")),
        None => DoctorCheck::good("agent", "a script: nothing to install"),
    }
}

/// Warns if no login is found: every session would fail. With a key chain (macOS) a login leaves no file to find.
fn check_login(login: &AgentLogin, executor: &Executor, check: DoctorCheck) -> DoctorCheck {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let home = env::var_os(login.home_variable).map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(login.home_dir)));
    let has_file = home.is_some_and(|home| home.join(login.file).exists());
    let has_login =
        executor.base_url.is_some() || has_file || login.key_variables.iter().any(|name| is_set(name));
    if check.verdict != CheckVerdict::Good || has_login || cfg!(target_os = "macos") {
        return check;
    }
    let key = login.key_variables.first().copied().unwrap_or_default();
    let fix = format!("log in with '{}', or set {key}", login.command);
    DoctorCheck::other("agent", CheckVerdict::Doubtful, format!("{}, no login found", check.found), fix)
}

/// Warns about a version that the runner was not tested with: it may interpret flags differently.
fn check_version(agent: &AgentSpec, check: DoctorCheck) -> DoctorCheck {
    if check.verdict != CheckVerdict::Good || agent.tested_version(&check.found).is_some() {
        return check;
    }
    let tested = agent.tested_versions.join(", ");
    let found = format!("{} (tested with {tested})", check.found);
    let fix = format!("if sessions fail, 'npm install -g {}@{tested}'", agent.package);
    DoctorCheck::other("agent", CheckVerdict::Doubtful, found, fix)
}

fn sandbox_point(git: &Git, config: &Config) -> DoctorCheck {
    let name = "sandbox";
    if config.executor.sandbox == SandboxMode::Off {
        return DoctorCheck::good(name, "off, as configured: the agent can write wherever you can");
    }
    let agent = config.executor.agent();
    if let Some(native) = agent.and_then(AgentSpec::native)
        && native.sandbox == AgentSandbox::BuiltIn
    {
        return DoctorCheck::good(name, format!("{}'s built-in sandbox", native.title));
    }
    let without = |why: &str, fix: &str| {
        let is_required = config.executor.sandbox == SandboxMode::Require;
        let verdict = if is_required { CheckVerdict::Bad } else { CheckVerdict::Doubtful };
        DoctorCheck::other(name, verdict, format!("none ({why}): the agent can write wherever you can"), fix)
    };
    match (Bubblewrap::find(git.root()), obstacle(git, agent)) {
        (Ok(found), None) => {
            let version = version_of(found.program()).unwrap_or_default();
            DoctorCheck::good(name, format!("{version}, {}", found.program().display()))
        }
        (Ok(_), Some((why, fix))) => without(&why, fix),
        (Err(why), _) => without(&why, SANDBOX_FIX),
    }
}

/// A program of the user's. One that is named by its path may do anything when it is asked for its version.
fn program_point(root: &Path, name: &'static str, program: &str, fix: String) -> DoctorCheck {
    match executables::find(program, Some(root)) {
        Some(path) if program.contains('/') => DoctorCheck::good(name, path.display().to_string()),
        Some(_) | None => known_program_point(root, name, program, fix),
    }
}

/// A program that tells its version when it is asked.
fn known_program_point(root: &Path, name: &'static str, program: &str, fix: String) -> DoctorCheck {
    let Some(path) = executables::find(program, Some(root)) else {
        return DoctorCheck::other(name, CheckVerdict::Bad, format!("`{program}` is not on the PATH"), fix);
    };
    let version = version_of(&path).map(|version| format!("{version}, ")).unwrap_or_default();
    DoctorCheck::good(name, format!("{version}{}", path.display()))
}

/// What a program prints for `--version`, safe to show.
fn version_of(program: &Path) -> Option<String> {
    executables::version_of(program).map(|version| one_line(&version))
}
