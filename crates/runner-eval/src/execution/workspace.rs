//! The workspace of a trial: a repository created from the case's fixture, and a private folder beside it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use runner_core::config::Config as RunnerConfig;
use runner_core::layout::Doc;
use runner_core::model::digest::Sha256;
use runner_host::ops::demo_repo;
use supervise::executables;
use toml::{Table, Value};

use crate::case::CheckCommand;
use crate::case::suite::LoadedCase;
use crate::execution::process::{CommandRunner, CommandSandbox, CommandSpec, resolve_argv};
use crate::execution::{configured_agents, rootfs};
use crate::files;
use crate::plan::agent::{EvalAgent, NOP_SCENARIO, exit_zero_scenario};
use crate::plan::arm::{ExperimentArm, merge_tables};

pub(crate) struct Workspace {
    pub(crate) repository: PathBuf,
    /// Files that are not the agent's: its scenario, the checked copy, output.
    pub(crate) private: PathBuf,
}

/// The variable with the case's folder, for setup and teardown.
const CASE_DIR_VARIABLE: &str = "EVAL_CASE_DIR";

impl Workspace {
    /// The paths of an attempt's workspace; creates nothing.
    pub(crate) fn new(workspaces: &Path, case: &str, eval_run_id: &str) -> Self {
        let folder = workspaces.join(case);
        Self { repository: folder.join(eval_run_id), private: folder.join(format!("{eval_run_id}.trial")) }
    }

    /// Creates the repository with one commit.
    pub(crate) fn create(&self, loaded: &LoadedCase, commands: &CommandRunner) -> Result<(), String> {
        let fail = |error: io::Error| format!("could not create the workspace: {error}");
        files::remove_any(&self.repository).map_err(fail)?;
        fs::create_dir_all(&self.private).map_err(fail)?;
        match loaded.bundle() {
            Some(bundle) => self.clone_bundle(&bundle, commands)?,
            None => {
                fs::create_dir_all(&self.repository).map_err(fail)?;
                if let Some(fixture) = loaded.fixture() {
                    files::copy_files_into(&fixture, &self.repository).map_err(fail)?;
                }
            }
        }
        if let Some(justfile) = &loaded.case.justfile {
            fs::copy(loaded.folder.join(justfile), self.repository.join("justfile")).map_err(fail)?;
        }
        if let Some(setup) = &loaded.case.setup {
            self.run_case_command(loaded, setup, "setup", commands, None)?;
        }
        let committed = if loaded.bundle().is_some() {
            demo_repo::commit_changes(&self.repository)
        } else {
            demo_repo::init_from_folder(&self.repository)
        };
        committed.map_err(|error| format!("could not commit the initial files: {error}"))
    }

    /// Points `<case>_latest` at this workspace, for people and for the web UI.
    pub(crate) fn link_as_latest(&self, case: &str) -> io::Result<()> {
        let Some(folder) = self.repository.parent().and_then(Path::parent) else { return Ok(()) };
        let target = self.repository.strip_prefix(folder).unwrap_or(&self.repository);
        files::replace_link(target, &folder.join(format!("{case}_latest")))
    }

    fn clone_bundle(&self, bundle: &Path, commands: &CommandRunner) -> Result<(), String> {
        let mut clone: Vec<OsString> = ["clone", "-q", "--no-hardlinks"].map(OsString::from).into();
        clone.push(bundle.into());
        clone.push(self.repository.clone().into());
        run_git(commands, clone, &self.private)?;
        // The remote would name the case's folder.
        run_git(commands, ["remote", "remove", "origin"].map(OsString::from).into(), &self.repository)
    }

    /// Runs setup or teardown. Setup needs no sandbox: no code of an agent has run before it.
    pub(crate) fn run_case_command(
        &self,
        loaded: &LoadedCase,
        command: &CheckCommand,
        name: &str,
        commands: &CommandRunner,
        sandbox: Option<CommandSandbox<'_>>,
    ) -> Result<(), String> {
        let text = command.argv.join(" ");
        let words = case_paths(&command.argv, &loaded.folder);
        let argv = resolve_argv(&words, &loaded.folder)
            .ok_or_else(|| format!("{name}: `{text}`: the program is not on the PATH"))?;
        let mut env = case_variables(loaded);
        env.push((CASE_DIR_VARIABLE.into(), files::absolute(&loaded.folder).into()));
        let spec = CommandSpec {
            folder: self.repository.clone(),
            env,
            output_max_bytes: command.output_max_bytes,
            sandbox,
            ..CommandSpec::new(argv)
        };
        let result = commands.run(&spec).map_err(|error| error.to_string())?;
        if result.is_success() {
            return Ok(());
        }
        Err(format!("{name}: `{text}` {}: {}", result.exit, result.tail()))
    }

    /// Writes the scenario that the agent plays, if it plays one, and returns the trial's configuration.
    pub(crate) fn configuration(
        &self,
        loaded: &LoadedCase,
        agent: &EvalAgent,
        arm: &ExperimentArm,
    ) -> Result<TrialConfig, String> {
        let read = |name: &str| {
            let path = loaded.folder.join(name);
            fs::read_to_string(&path).map_err(|error| format!("`{}`: {error}", path.display()))
        };
        let scenario = match (agent, agent.scenario(&loaded.case), &loaded.case.solution) {
            (EvalAgent::Nop, ..) => Some(NOP_SCENARIO.to_owned()),
            (EvalAgent::ExitZero, _, Some(solution)) => Some(exit_zero_scenario(&read(solution)?)),
            (_, Some(name), _) => Some(read(name)?),
            (_, None, _) => None,
        };
        let has_heldout = loaded.case.heldout.is_some() && arm.heldout;
        let configuration = |scenario: Option<PathBuf>, heldout: &Path| {
            let mut overrides = arm.table();
            if has_heldout {
                let path = Value::String(heldout.to_string_lossy().into_owned());
                let checks = Table::from_iter([("heldout".to_owned(), path)]);
                merge_tables(
                    &mut overrides,
                    &Table::from_iter([("checks".to_owned(), Value::Table(checks))]),
                );
            }
            agent.configuration(&loaded.case, scenario, &overrides)
        };
        let digest = scenario.as_ref().map(|scenario| Sha256::of(scenario.as_bytes()).to_string().into());
        let path = scenario.as_ref().map(|_| self.scenario());
        if let (Some(path), Some(scenario)) = (&path, &scenario) {
            fs::write(path, scenario).map_err(|error| format!("`{}`: {error}", path.display()))?;
        }
        if let Some(heldout) = loaded.heldout().filter(|_| has_heldout) {
            let fail = |error: io::Error| format!("could not copy the held-out checks: {error}");
            fs::create_dir_all(self.heldout()).map_err(fail)?;
            files::copy_files_into(&heldout, &self.heldout()).map_err(fail)?;
        }
        let text = configuration(path, &files::absolute(&self.heldout()));
        Ok(TrialConfig { text, normalized: configuration(digest, Path::new("/heldout")) })
    }

    /// The trial's copy of the held-out checks. The runner writes their logs there.
    pub(crate) fn heldout(&self) -> PathBuf {
        self.private.join("heldout")
    }

    /// The file of the scenario that the agent plays.
    pub(crate) fn scenario(&self) -> PathBuf {
        self.private.join("scenario.toml")
    }

    /// The program of the guard or of an agent that is missing, in words. Once the trial has begun, a program that cannot be
    /// started is the agent's doing; so is one with a relative path, because agents can write the repository.
    pub(crate) fn missing_program(&self, config: &str, rootfs: Option<&Path>) -> Option<String> {
        let decoded = RunnerConfig::decode(config.as_bytes()).ok()?;
        let guard = decoded.guard.command.words().first().map(|program| ("guard", program.clone()));
        let agents = configured_agents::programs(config).into_iter().map(|program| ("agent", program));
        let is_missing = |program: &str| match rootfs {
            _ if Path::new(program).is_absolute() => rootfs.is_none() && !Path::new(program).exists(),
            _ if program.contains('/') => false,
            Some(rootfs) => rootfs::find_program(rootfs, program).is_none(),
            None => executables::find(program, None).is_none(),
        };
        let (whose, program) = guard.into_iter().chain(agents).find(|(_, program)| is_missing(program))?;
        Some(format!("the {whose}'s program `{program}` is not on the PATH"))
    }

    /// Writes the prompt templates of an arm into the repository.
    pub(crate) fn write_prompts(&self, folder: &Path) -> io::Result<()> {
        let target = self.document(Doc::Goal).with_file_name("prompts");
        fs::create_dir_all(&target)?;
        files::copy_files_into(folder, &target)
    }

    /// The path of one of the runner's documents in the repository.
    pub(crate) fn document(&self, doc: Doc) -> PathBuf {
        self.repository.join(doc.path())
    }
}

/// The configuration of a trial.
#[derive(Clone, Debug)]
pub(crate) struct TrialConfig {
    pub(crate) text: String,
    /// The same without paths of this trial: equal for all trials that are configured alike.
    pub(crate) normalized: String,
}

/// Replaces words that name a file in the case's folder by its absolute path: `["sh", "setup.sh"]` runs in the repository,
/// and the script is in the case's folder.
fn case_paths(argv: &[String], folder: &Path) -> Vec<String> {
    let mut words = Vec::new();
    for (word, position) in argv.iter().zip(0..) {
        let path = folder.join(word);
        let is_program = position == 0 && !word.contains('/');
        let is_case_file = !is_program && Path::new(word).is_relative() && path.is_file();
        words.push(if is_case_file {
            files::absolute(&path).to_string_lossy().into_owned()
        } else {
            word.clone()
        });
    }
    words
}

fn run_git(commands: &CommandRunner, arguments: Vec<OsString>, folder: &Path) -> Result<(), String> {
    let git = executables::find("git", None).ok_or("git is not on the PATH")?;
    let mut argv = vec![git.into_os_string()];
    argv.extend(arguments);
    let spec = CommandSpec { folder: folder.to_owned(), ..CommandSpec::new(argv) };
    let result = commands.run(&spec).map_err(|error| error.to_string())?;
    if result.is_success() {
        return Ok(());
    }
    Err(format!("git {}: {}", result.exit, result.tail()))
}

/// The variables in `[env]` of a case.
pub(crate) fn case_variables(loaded: &LoadedCase) -> Vec<(OsString, OsString)> {
    loaded.case.env.iter().map(|(name, value)| (name.into(), value.into())).collect()
}
