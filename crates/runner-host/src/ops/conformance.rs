//! One exercise of `runner conformance`: a repository of its own, some iterations in it, and what came of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use runner_core::config::Executor;
use runner_core::layout::Doc;
use runner_core::runs::start::StartOptions;
use runner_core::step::{self, Event, Outcome, StepResult, Usage};

use crate::agent::command;
use crate::error::Error;
use crate::git::Git;
use crate::iteration::RepoWorld;
use crate::ops::demo_repo::{ScratchFile, create};
use crate::ops::doctor::{self, DoctorCheck};
use crate::ops::init::{ExistingFiles, init};
use crate::ops::start::start;
use crate::ops::verify::verify;

/// What is done.
#[derive(Clone, Debug)]
pub struct ConformanceTask<'a> {
    /// The goal.
    pub goal: &'a str,
    /// The guard, as a shell script.
    pub guard: &'a str,
    /// Keys at the top of the configuration.
    pub keys: String,
    /// The table `[executor]`, without its head.
    pub executor: String,
    /// How many iterations are made at most.
    pub iterations: usize,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct ConformanceResult {
    /// How the iterations ended.
    pub outcomes: Vec<Outcome>,
    /// What the last one used.
    pub usage: Usage,
    /// What was found against it, and what the proof says.
    pub notes: Vec<String>,
    /// What `runner verify` has against the run.
    pub audit: Vec<String>,
    /// How many processes it had left behind, which the runner ended.
    pub processes_left: u32,
    /// How many were still there after that.
    pub processes_alive: usize,
    /// How long the iterations took together.
    pub took: Duration,
}

/// The guard's file.
const GUARD: &str = "check";

/// Does an exercise in a folder that is not there yet.
pub fn run_task(folder: &Path, exercise: &ConformanceTask<'_>) -> Result<ConformanceResult, Error> {
    create(folder, &[ScratchFile { path: GUARD, text: exercise.guard, executable: false }])?;
    init(folder, ExistingFiles::Keep)?;
    let config = folder.join(Doc::Config.path());
    let text = format!(
        "{}\n[executor]\n{}\n[guard]\ncommand = [\"sh\", \"{GUARD}\"]\nprotected = [\"{GUARD}\"]\n",
        exercise.keys, exercise.executor
    );
    fs::write(&config, text).map_err(Error::io("write", &config))?;
    start(folder, &StartOptions { goal: Some(exercise.goal.to_owned()), ..StartOptions::default() })?;
    let begun = Instant::now();
    let mut found = iterate(folder, exercise.iterations)?;
    found.took = begun.elapsed();
    let audit = verify(folder, None, &mut |_| ())?;
    found.audit = audit
        .findings
        .iter()
        .map(|fault| format!("{}: expected {}, found {}", fault.rule.as_str(), fault.expected, fault.found))
        .collect();
    Ok(found)
}

fn iterate(folder: &Path, iterations: usize) -> Result<ConformanceResult, Error> {
    let mut nobody = |_: &Event| {};
    let mut workshop = RepoWorld::open(folder, &mut nobody, Box::new(|| false))?;
    workshop.handle_signals()?;
    let mut found = ConformanceResult {
        outcomes: Vec::new(),
        usage: Usage::default(),
        notes: Vec::new(),
        audit: Vec::new(),
        processes_left: 0,
        processes_alive: 0,
        took: Duration::ZERO,
    };
    for _ in 0..iterations {
        let StepResult::Iterated(it) = step::step(&mut workshop)? else { break };
        let meta = &it.transition.meta;
        found.outcomes.push(meta.outcome);
        found.usage = meta.usage;
        found.notes.extend(meta.findings.iter().cloned());
        found.processes_left += meta.processes_left;
        let paths = Git::open(folder)?;
        let prompt = paths.paths().iteration(meta.run_id.as_str(), &meta.iter.to_string()).join("prompt.md");
        found.processes_alive +=
            supervise::kill_by_env_marker(command::SESSION_MARKER.as_ref(), prompt.as_os_str()).killed;
        if meta.outcome == Outcome::Interrupted {
            break;
        }
    }
    Ok(found)
}

/// The `[executor]` of the repository that `dir` lies in, if there is one that can be read.
pub fn configured(dir: &Path) -> Option<Executor> {
    let inspected = crate::view::inspect::inspect(dir).ok()?;
    inspected.config.valid().map(|config| config.executor.clone())
}

/// Whether the agent's program is there, what version it is, and whether it has a login.
pub fn program(folder: &Path, executor: &Executor) -> DoctorCheck {
    doctor::agent_check(folder, executor)
}

/// The words that make this program the scripted agent, which plays the scenario in a file.
pub fn player(scenario: &Path) -> Result<Vec<String>, Error> {
    let own = std::env::current_exe().map_err(Error::io("find", Path::new("the runner's own program")))?;
    let words: [PathBuf; 3] = [own, command::SCRIPTED_AGENT_ARG.into(), scenario.to_owned()];
    Ok(words.iter().map(|word| word.display().to_string()).collect())
}
