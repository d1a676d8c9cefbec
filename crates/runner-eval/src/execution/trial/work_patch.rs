//! The work of a trial as a patch: everything that changed since the run started, outside of `.runner/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use supervise::executables;

use runner_core::layout::RUNNER_DIR;

use super::TrialAttempt;
use crate::execution::process::{CommandResult, CommandSandbox, CommandSpec, InheritedVariables};
use crate::execution::sandbox::SandboxAccess;

/// The file in a result.
pub(crate) const PATCH_FILE: &str = "work.patch";
const PATCH_TIMEOUT: Duration = Duration::from_secs(120);
/// A longer patch is not kept: cut off, it could not be applied.
const PATCH_BYTES_MAX: u64 = 20_000_000;

impl TrialAttempt<'_> {
    fn base_file(&self) -> PathBuf {
        self.workspace.private.join("base")
    }

    /// Records the commit that the work begins at.
    pub(super) fn record_base_commit(&self) {
        let arguments = ["rev-parse", "HEAD"].map(str::to_owned);
        if let Some(commit) = self.git_output(&arguments) {
            let _ = fs::write(self.base_file(), commit.trim());
        }
    }

    /// Writes the patch into the result. Without one, the result is complete all the same.
    pub(super) fn capture_patch(&self) {
        let Ok(base) = fs::read_to_string(self.base_file()) else { return };
        let options = ["diff", "--binary", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"];
        let mut arguments: Vec<String> = options.map(str::to_owned).into();
        arguments.extend([base, "HEAD".to_owned(), "--".to_owned(), ".".to_owned()]);
        arguments.push(format!(":(exclude){RUNNER_DIR}"));
        if let Some(patch) = self.git_output(&arguments) {
            let _ = fs::write(self.staging.join(PATCH_FILE), patch);
        }
    }

    /// The output of git in the repository. The repository is the agent's, so its configuration may name programs: they run
    /// in the sandbox, where they reach nothing that the agent did not reach.
    fn git_output(&self, arguments: &[String]) -> Option<String> {
        let git = executables::find("git", None)?;
        let mut argv = vec![git.into_os_string(), "-c".into(), "core.fsmonitor=false".into()];
        argv.extend(arguments.iter().map(Into::into));
        let sandbox = self.confinement.sandbox.as_ref().map(|programs| CommandSandbox {
            programs,
            access: SandboxAccess {
                hidden: self.confinement.hidden.clone(),
                readable: vec![self.workspace.repository.clone()],
                temporary: self.temporary(),
                ..SandboxAccess::default()
            },
        });
        let spec = CommandSpec {
            folder: self.workspace.repository.clone(),
            inherited: InheritedVariables::Basic,
            timeout: PATCH_TIMEOUT,
            output_max_bytes: PATCH_BYTES_MAX,
            sandbox,
            ..CommandSpec::new(argv)
        };
        let result = self.commands.run(&spec).ok().filter(CommandResult::is_success)?;
        let is_complete = u64::try_from(result.stdout.len()).is_ok_and(|length| length < PATCH_BYTES_MAX);
        is_complete.then_some(result.stdout)
    }
}

/// The patch in a result; none if it has none.
pub(crate) fn read_patch(result: &Path) -> Option<String> {
    let path = result.join(PATCH_FILE);
    let is_file = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file());
    if is_file { fs::read_to_string(path).ok() } else { None }
}
