//! Sets a trial up and starts its run: repository, configuration, plan, `runner init` and `runner start`, each in the sandbox.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use runner_core::layout::Doc;

use super::{START_LOG, START_TIMEOUT, TrialAttempt};
use crate::execution::configured_agents::AgentState;
use crate::execution::process::{CommandSandbox, CommandSpec};
use crate::execution::sandbox::SandboxAccess;
use crate::execution::trial_home::TrialHome;
use crate::execution::verdict::LoopEnd;
use crate::execution::workspace::{TrialConfig, case_variables};
use crate::execution::{case_plan, rootfs};

impl TrialAttempt<'_> {
    /// A command of the runner under test in the repository. With a configuration, it can reach what the agent needs.
    pub(super) fn runner_command(
        &self,
        arguments: &[&str],
        log: &str,
        config: Option<&TrialConfig>,
    ) -> CommandSpec<'_> {
        let mut argv = vec![self.job.runner.clone().into_os_string()];
        argv.extend(arguments.iter().map(Into::into));
        CommandSpec {
            folder: self.workspace.repository.clone(),
            env: case_variables(self.loaded),
            timeout: START_TIMEOUT,
            log: Some(self.staging.join(log)),
            sandbox: self.loop_sandbox(config),
            ..CommandSpec::new(argv)
        }
    }

    /// The sandbox around the runner, the agent and the guard: only the repository and the agent's own state are writable.
    fn loop_sandbox(&self, config: Option<&TrialConfig>) -> Option<CommandSandbox<'_>> {
        let programs = self.confinement.sandbox.as_ref()?;
        let mut readable = vec![self.workspace.scenario(), self.goal_file(), self.plan_file()];
        readable.retain(|path| path.exists());
        let mut writable = vec![self.workspace.repository.clone(), self.workspace.heldout()];
        writable.retain(|path| path.exists());
        let access = SandboxAccess {
            hidden: self.confinement.hidden.clone(),
            readable,
            writable,
            temporary: self.temporary(),
            has_network: self.loaded.case.environment.network,
            home: self.trial_home(config),
            rootfs: self.loaded.rootfs(),
            quotas: self.quotas().of_processes(),
        };
        Some(CommandSandbox { programs, access })
    }

    /// The home folder of the trial. With a configuration, it has the logins of the agents.
    pub(super) fn trial_home(&self, config: Option<&TrialConfig>) -> Option<TrialHome> {
        let path = PathBuf::from(std::env::var_os("HOME")?).canonicalize().ok()?;
        let state = config.map(|config| AgentState::of(&config.text)).unwrap_or_default();
        Some(TrialHome::new(path, self.workspace.private.join("home"), state))
    }

    /// The copy of the case's file of tasks.
    fn plan_file(&self) -> PathBuf {
        self.workspace.private.join("plan")
    }

    fn goal_file(&self) -> PathBuf {
        self.workspace.private.join("goal.md")
    }

    /// Creates the repository, configures it, starts the run, and returns its configuration. The configuration is written
    /// before `runner start`, because the rules of a run are those that `start` commits.
    pub(super) fn start(&self) -> Result<TrialConfig, LoopEnd> {
        let failed = LoopEnd::DidNotStart;
        let write = |path: &Path, text: &str| {
            fs::write(path, text).map_err(|error| failed(format!("`{}`: {error}", path.display())))
        };
        self.require_rootfs()?;
        if self.confinement.disk_bytes == 0 {
            return Err(failed(format!("the disk of `{}` is full", self.job.workspaces.display())));
        }
        self.workspace.create(self.loaded, self.commands).map_err(failed)?;
        let fail = |error: io::Error| failed(format!("could not create the workspace: {error}"));
        self.workspace.link_as_latest(&self.loaded.case.id).map_err(fail)?;
        fs::create_dir_all(self.temporary()).map_err(fail)?;
        let config = self.workspace.configuration(self.loaded, &self.agent, &self.job.arm).map_err(failed)?;
        if let Some(home) = self.trial_home(Some(&config)).filter(|_| self.confinement.sandbox.is_some()) {
            home.create().map_err(fail)?;
        }
        let root = self.loaded.rootfs();
        if let Some(why) = self.workspace.missing_program(&config.text, root.as_deref()) {
            return Err(LoopEnd::MissingTool(why));
        }
        self.run_start_command(&["init"])?;
        write(&self.workspace.document(Doc::Config), &config.text)?;
        if let Some(prompts) = &self.job.arm.prompts {
            self.workspace.write_prompts(prompts).map_err(fail)?;
        }
        let goal = self.goal_file();
        write(&goal, &self.loaded.case.goal)?;
        self.run_start_command(&["start", "--goal-file", &goal.to_string_lossy()])?;
        self.install_plan()?;
        self.record_base_commit();
        Ok(config)
    }

    /// Imports the tasks that the case brings, and commits their checks.
    fn install_plan(&self) -> Result<(), LoopEnd> {
        let Some(plan) = self.loaded.plan() else { return Ok(()) };
        let fail = |error: io::Error| LoopEnd::DidNotStart(format!("could not install the plan: {error}"));
        if let Some(tasks) = case_plan::task_file(&plan) {
            let file = self.plan_file();
            fs::copy(&tasks, &file).map_err(fail)?;
            self.run_start_command(&["plan", "import", &file.to_string_lossy()])?;
        }
        let nodes = self.workspace.document(Doc::Goal).with_file_name("nodes");
        case_plan::write_task_files(&plan, &nodes, self.job.arm.leaf_checks).map_err(fail)?;
        self.run_start_command(&["start"])
    }

    /// A root file system of the case's own must have what a trial needs, and needs a sandbox.
    fn require_rootfs(&self) -> Result<(), LoopEnd> {
        let Some(root) = self.loaded.rootfs() else { return Ok(()) };
        if self.confinement.sandbox.is_none() {
            let why = "the case has a root file system of its own, which needs bubblewrap";
            return Err(LoopEnd::MissingTool(why.to_owned()));
        }
        match rootfs::missing_program(&root) {
            None => Ok(()),
            Some(name) => Err(LoopEnd::MissingTool(format!("`{}` has no program `{name}`", root.display()))),
        }
    }

    fn run_start_command(&self, arguments: &[&str]) -> Result<(), LoopEnd> {
        let result = self
            .commands
            .run(&self.runner_command(arguments, START_LOG, None))
            .map_err(|error| LoopEnd::DidNotStart(error.to_string()))?;
        if result.is_success() {
            return Ok(());
        }
        let why = format!("`runner {}` {}: {}", arguments.join(" "), result.exit, result.tail());
        Err(LoopEnd::DidNotStart(why))
    }

    /// The folder that is `/tmp` for the loop.
    pub(super) fn temporary(&self) -> PathBuf {
        self.workspace.private.join("tmp")
    }
}
