//! Telling programs of the user's what happens: outside of the repository, for a short time, and never at the run's cost.

use std::path::{Path, PathBuf};
use std::time::Duration;

use runner_core::config::{CommandArgv, HooksConfig};
use runner_core::step::{Event, HookCall};
use runner_core::strict::canonical_json;
use serde_json::Value;

use super::RepoWorld;
use crate::agent::command::{self, PreparedCommand};
use crate::fs::atomic;
use supervise::{self, CancelHandle, ExitReason, OutputTarget, ProcessSpec, TimeLimits};

/// How much of what a hook prints is kept.
const OUTPUT_BYTES_MAX: u64 = 64 << 10;

impl RepoWorld<'_> {
    /// Runs the hook that is due after an event, if there is one. Whatever becomes of it, the run goes on.
    pub(super) fn tell_hooks(&mut self, event: &Event) {
        let Some(mut word) = self.telling.note(event, &self.hooks) else { return };
        if let Value::Object(says) = &mut word.payload {
            says.insert("repository".to_owned(), self.git.root().display().to_string().into());
        }
        let fault = self.run_hook(&word, &self.hooks.clone()).err();
        // The work tree may be another one by now.
        self.left = None;
        let told = Event::HookRan { hook: word.hook.to_owned(), fault };
        if let Some(folder) = &self.last {
            folder.tell(&told);
        }
        (self.audience)(&told);
    }

    fn run_hook(&self, word: &HookCall, hooks: &HooksConfig) -> Result<(), String> {
        let PreparedCommand { argv, environment, .. } = program(&word.argv, self.git.root())?;
        let paths = self.git.paths();
        atomic::write_no_sync(&paths.hook_input(), &canonical_json(&word.payload))
            .map_err(|error| error.to_string())?;
        let wall = Duration::from_secs(u64::try_from(hooks.timeout_secs.get()).unwrap_or(1));
        let output = OutputTarget::combined(paths.hook_log(), OUTPUT_BYTES_MAX);
        let spec = ProcessSpec::new(argv, home(), output)
            .env(environment)
            .stdin_file(paths.hook_input())
            .time_limits(TimeLimits::wall(wall));
        // A handle of its own: the user's wish to stop the run is no reason not to tell of it.
        let ended = CancelHandle::new()
            .and_then(|control| supervise::run(&spec, &control, &self.supervision))
            .map_err(|error| error.to_string())?;
        atomic::remove_any(&paths.hook_input()).map_err(|error| error.to_string())?;
        match ended.exit {
            exit if exit.is_success() => Ok(()),
            ExitReason::TimedOut => Err(format!("it took longer than {} seconds", wall.as_secs())),
            exit => Err(format!("it {exit}")),
        }
    }
}

/// The program, if no agent can have written it.
pub(crate) fn program(argv: &CommandArgv, root: &Path) -> Result<PreparedCommand, String> {
    let name = argv.program();
    if name.contains('/') {
        let path = Path::new(name);
        if !path.is_absolute() {
            return Err(format!("`{name}` is not an absolute path"));
        }
        if path.canonicalize().is_ok_and(|path| path.starts_with(root)) {
            return Err(format!("`{name}` is inside the repository, where agents can change it"));
        }
    }
    command::resolve_command(argv.words(), root)
}

/// Where hooks run.
fn home() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute() && home.is_dir());
    home.unwrap_or_else(|| PathBuf::from("/"))
}
