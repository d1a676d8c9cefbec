//! The repository of a trial: made from the case's fixture, prepared, and found under a name that stays.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use runner_core::layout::Doc;
use runner_host::ops::demo_repo;
use supervise::executables;

use crate::agent::{EvalAgent, NOP};
use crate::case::CheckCommand;
use crate::files;
use crate::process::{CommandRunner, CommandSpec, resolved};
use crate::suite::LoadedCase;

/// Where a trial works.
pub(crate) struct Workspace {
    /// The repository.
    pub(crate) repository: PathBuf,
    /// What belongs to the trial and is not the agent's: its scenario, a copy to be checked, output.
    pub(crate) private: PathBuf,
}

/// Setup and teardown find the case's own files there.
const CASE_DIR: &str = "EVAL_CASE_DIR";

impl Workspace {
    /// The place of an attempt; nothing is made yet.
    pub(crate) fn of(workspaces: &Path, case: &str, eval_run_id: &str) -> Self {
        let folder = workspaces.join(case);
        Self { repository: folder.join(eval_run_id), private: folder.join(format!("{eval_run_id}.trial")) }
    }

    /// Makes the repository as the case has it, with one commit, and points the case's link at it.
    pub(crate) fn make(&self, kit: &LoadedCase, launcher: &CommandRunner) -> Result<(), String> {
        let fail = |error: std::io::Error| format!("could not make the workspace: {error}");
        files::clear(&self.repository).map_err(fail)?;
        fs::create_dir_all(&self.private).map_err(fail)?;
        match kit.bundle() {
            Some(bundle) => self.clone_bundle(&bundle, launcher)?,
            None => {
                fs::create_dir_all(&self.repository).map_err(fail)?;
                files::lay_out(kit.fixture(), &self.repository).map_err(fail)?;
            }
        }
        if let Some(justfile) = &kit.case.justfile {
            fs::copy(kit.folder.join(justfile), self.repository.join("justfile")).map_err(fail)?;
        }
        if let Some(setup) = &kit.case.setup {
            self.errand(kit, setup, "setup", launcher)?;
        }
        let kept = if kit.bundle().is_some() {
            demo_repo::commit_changes(&self.repository)
        } else {
            demo_repo::init_from_folder(&self.repository)
        };
        kept.map_err(|error| format!("could not commit the starting point: {error}"))?;
        self.link(&kit.case.id).map_err(fail)
    }

    /// `<case>_latest` leads to the newest workspace, for people and for the page.
    fn link(&self, case: &str) -> std::io::Result<()> {
        let Some(folder) = self.repository.parent().and_then(Path::parent) else { return Ok(()) };
        let target = self.repository.strip_prefix(folder).unwrap_or(&self.repository);
        files::link(target, &folder.join(format!("{case}_latest")))
    }

    fn clone_bundle(&self, bundle: &Path, launcher: &CommandRunner) -> Result<(), String> {
        let git = executables::find("git", None).ok_or("git is not on the PATH")?;
        let call = |words: Vec<OsString>, folder: &Path| {
            let argv = std::iter::once(git.clone().into()).chain(words).collect();
            let errand = CommandSpec { argv, folder: folder.to_owned(), ..CommandSpec::default() };
            let ended = launcher.run(&errand).map_err(|error| error.to_string())?;
            if ended.is_success() { Ok(()) } else { Err(format!("git {}: {}", ended.exit, ended.tail())) }
        };
        let words = ["clone", "-q", "--no-hardlinks"].map(OsString::from).into_iter();
        let words = words.chain([bundle.into(), self.repository.clone().into()]).collect();
        call(words, &self.private)?;
        // The bundle is the case's, and its place is nobody's business in the workspace.
        call(["remote", "remove", "origin"].map(OsString::from).into(), &self.repository)
    }

    /// Runs setup or teardown.
    pub(crate) fn errand(
        &self,
        kit: &LoadedCase,
        command: &CheckCommand,
        name: &str,
        launcher: &CommandRunner,
    ) -> Result<(), String> {
        let words = command.argv.join(" ");
        let argv = resolved(&command.argv, &kit.folder)
            .ok_or_else(|| format!("{name}: `{words}` is not on the PATH"))?;
        let errand = CommandSpec {
            argv,
            folder: self.repository.clone(),
            env: environment(kit, true),
            output_max_bytes: command.output_max_bytes,
            ..CommandSpec::default()
        };
        let ended = launcher.run(&errand).map_err(|error| error.to_string())?;
        if ended.is_success() {
            return Ok(());
        }
        Err(format!("{name}: `{words}` {}: {}", ended.exit, ended.tail()))
    }

    /// Lays the agent's scenario out, if it plays one, and gives the configuration of the trial.
    pub(crate) fn configuration(&self, kit: &LoadedCase, agent: &EvalAgent) -> Result<String, String> {
        let text = match (agent, agent.scenario(&kit.case)) {
            (EvalAgent::Nop, _) => Some(NOP.to_owned()),
            (_, None) => None,
            (_, Some(name)) => {
                let path = kit.folder.join(name);
                Some(fs::read_to_string(&path).map_err(|error| format!("`{}`: {error}", path.display()))?)
            }
        };
        let scenario = match text {
            None => None,
            Some(text) => {
                let path = self.private.join("scenario.toml");
                fs::write(&path, text).map_err(|error| format!("`{}`: {error}", path.display()))?;
                Some(path)
            }
        };
        Ok(agent.configuration(&kit.case, scenario))
    }

    /// A document of the run.
    pub(crate) fn document(&self, doc: Doc) -> PathBuf {
        self.repository.join(doc.path())
    }
}

/// The variables of a case; its own folder is among them for setup and teardown alone.
pub(crate) fn environment(kit: &LoadedCase, with_folder: bool) -> Vec<(OsString, OsString)> {
    let own = kit.case.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let folder = std::path::absolute(&kit.folder).unwrap_or_else(|_| kit.folder.clone());
    own.chain(with_folder.then(|| (CASE_DIR.into(), folder.into()))).collect()
}
