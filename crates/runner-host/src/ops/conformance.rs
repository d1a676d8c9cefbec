//! One task of `runner conformance`: its own repository, some iterations in it, and their results.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use runner_core::config::Executor;
use runner_core::conformance_cases::CaseFile;
use runner_core::layout::{Doc, node_folder};
use runner_core::model::id::NodeId;
use runner_core::runs::start::StartOptions;
use runner_core::step::{self, Outcome, RoomLevel, StepResult, Usage, World};

use crate::agent::command;
use crate::error::Error;
use crate::git::Git;
use crate::iteration::RepoWorld;
use crate::ops::demo_repo::{ScratchFile, create};
use crate::ops::doctor::{self, DoctorCheck};
use crate::ops::init::{ExistingFiles, init};
use crate::ops::preflight::SetupStage;
use crate::ops::start::start;
use crate::ops::verify::verify;
use crate::repo::locked_repo::UnrecoveredRepo;
use crate::repo::readonly_repo::ReadonlyRepo;
use crate::repo::recovery::prompt_path;
use crate::view::inspect::inspect;

#[derive(Clone, Debug)]
pub struct ConformanceTask<'a> {
    pub goal: &'a str,
    /// The guard, as a shell script.
    pub guard: &'a str,
    /// Further files of the repository.
    pub files: &'a [CaseFile],
    /// The files of the root task's folder.
    pub checks: &'a [CaseFile],
    /// Patterns of protected files, besides the guard.
    pub protected: &'a [&'a str],
    /// Keys at the top of config.toml.
    pub keys: String,
    /// The body of the table `[executor]`.
    pub executor: String,
    /// The maximum of iterations.
    pub iterations: usize,
}

#[derive(Clone, Debug)]
pub struct ConformanceResult {
    /// The outcome of each iteration.
    pub outcomes: Vec<Outcome>,
    /// The usage of the last iteration.
    pub usage: Usage,
    /// The findings of all iterations.
    pub notes: Vec<String>,
    /// The violations that `runner verify` finds in the run.
    pub audit: Vec<String>,
    /// How many processes the sessions left behind, which the runner killed.
    pub processes_left: u32,
    /// How many of them were still alive after that.
    pub processes_alive: usize,
    /// How long the iterations took together.
    pub took: Duration,
    /// Whether a guard ran in place because there was no room.
    pub was_in_place: bool,
}

const GUARD: &str = "check";

/// Runs a task in a folder that does not exist yet.
pub fn run_task(folder: &Path, task: &ConformanceTask<'_>) -> Result<ConformanceResult, Error> {
    let folder_of_root = node_folder(&NodeId::root());
    let checks: Vec<(String, &str)> =
        task.checks.iter().map(|file| (format!("{folder_of_root}/{}", file.path), file.text)).collect();
    let others = task.files.iter().map(|file| (file.path, file.text));
    let named = checks.iter().map(|(path, text)| (path.as_str(), *text)).chain(others);
    let files: Vec<ScratchFile<'_>> = [(GUARD, task.guard)]
        .into_iter()
        .chain(named)
        .map(|(path, text)| ScratchFile { path, text, executable: false })
        .collect();
    create(folder, &files)?;
    init(folder, ExistingFiles::Keep)?;
    let config = folder.join(Doc::Config.path());
    let protected: Vec<String> =
        task.protected.iter().chain([&GUARD]).map(|pattern| format!("\"{pattern}\"")).collect();
    let text = format!(
        "{}\n[executor]\n{}\n[guard]\ncommand = [\"sh\", \"{GUARD}\"]\nprotected = [{}]\n",
        task.keys,
        task.executor,
        protected.join(", ")
    );
    fs::write(&config, text).map_err(Error::io("write", &config))?;
    start(folder, &StartOptions { goal: Some(task.goal.to_owned()), ..StartOptions::default() })?;
    let since = Instant::now();
    let mut result = iterate(folder, task.iterations)?;
    result.took = since.elapsed();
    for finding in verify(folder, None, &mut |_| ())?.findings {
        let rule = finding.rule.as_str();
        result.audit.push(format!("{rule}: expected {}, found {}", finding.expected, finding.found));
    }
    Ok(result)
}

fn iterate(folder: &Path, iterations: usize) -> Result<ConformanceResult, Error> {
    let mut world = RepoWorld::without_sink(UnrecoveredRepo::lock(folder)?)?;
    let mut result = ConformanceResult {
        outcomes: Vec::new(),
        usage: Usage::default(),
        notes: Vec::new(),
        audit: Vec::new(),
        processes_left: 0,
        processes_alive: 0,
        took: Duration::ZERO,
        was_in_place: false,
    };
    for _ in 0..iterations {
        let run = world.load()?;
        let StepResult::Iterated(completed) = step::step(&mut world, &run)? else { break };
        let meta = &completed.transition.meta;
        result.outcomes.push(meta.outcome);
        result.usage = meta.usage;
        result.notes.extend(meta.findings.iter().cloned());
        result.processes_left += meta.processes_left;
        result.was_in_place |= meta.room == Some(RoomLevel::InPlace);
        let prompt = prompt_path(&Git::open(folder)?, &meta.run_id, meta.iter);
        result.processes_alive +=
            supervise::kill_by_env_marker(command::SESSION_MARKER.as_ref(), prompt.as_os_str()).killed;
        if meta.outcome == Outcome::Interrupted {
            break;
        }
    }
    Ok(result)
}

/// The `[executor]` table of the repository that contains `dir`, if it is valid.
pub fn configured(dir: &Path) -> Option<Executor> {
    let inspected = inspect(&ReadonlyRepo::open(dir).ok()?).ok()?;
    inspected.docs.config.valid().map(|config| config.executor.clone())
}

/// Checks the agent's program, its version and its login.
pub fn program(folder: &Path, executor: &Executor) -> DoctorCheck {
    doctor::agent_check(folder, executor, SetupStage::Configured)
}

/// The command line of the scripted agent with a scenario file.
pub fn player(scenario: &Path) -> Result<Vec<String>, Error> {
    let own = std::env::current_exe().map_err(Error::io("find", Path::new("the runner's own program")))?;
    let words: [PathBuf; 3] = [own, command::SCRIPTED_AGENT_ARG.into(), scenario.to_owned()];
    Ok(words.iter().map(|word| word.display().to_string()).collect())
}
