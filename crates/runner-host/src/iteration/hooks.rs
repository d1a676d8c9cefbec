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
use supervise::{
    self, CancelHandle, ExitReason, OutputLog, OutputTarget, ProcessInput, ProcessSpec, TimeLimits,
};

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
        atomic::write_soon(&paths.hook_input(), &canonical_json(&word.payload))
            .map_err(|error| error.to_string())?;
        let wall = Duration::from_secs(hooks.timeout_secs.as_u64());
        let launch = ProcessSpec {
            argv,
            working_dir: home(),
            environment,
            input: ProcessInput::File(paths.hook_input()),
            output: OutputTarget::Combined(OutputLog { path: paths.hook_log(), bytes_max: OUTPUT_BYTES_MAX }),
            stream: None,
            limits: TimeLimits { wall, idle: Duration::ZERO },
            stop_policy: supervise::StopPolicy::default(),
            has_changed_files: &|| false,
            on_output: &|_, _| (),
        };
        // A handle of its own: the user's wish to stop the run is no reason not to tell of it.
        let ended = CancelHandle::new()
            .and_then(|control| supervise::run(&launch, &control, &self.supervision))
            .map_err(|error| error.to_string())?;
        atomic::clear(&paths.hook_input()).map_err(|error| error.to_string())?;
        match ended.exit {
            ExitReason::Exited(0) => Ok(()),
            ExitReason::Exited(code) => Err(format!("it ended with exit code {code}")),
            ExitReason::Signalled(signal) => Err(format!("it was ended by signal {signal}")),
            ExitReason::CouldNotStart(error) => Err(format!("it could not be started: {error}")),
            ExitReason::TimedOut | ExitReason::Idle => {
                Err(format!("it took longer than {} seconds", wall.as_secs()))
            }
            ExitReason::Stopped | ExitReason::Lost => Err("it was ended".to_owned()),
        }
    }
}

/// The program, if no agent can have written it.
pub(crate) fn program(argv: &CommandArgv, root: &Path) -> Result<PreparedCommand, String> {
    let name = argv.program();
    if name.contains('/') {
        let path = Path::new(name);
        if !path.is_absolute() {
            return Err(format!("`{name}` is no absolute path"));
        }
        if path.canonicalize().is_ok_and(|path| path.starts_with(root)) {
            return Err(format!("`{name}` lies in the repository, where agents write"));
        }
    }
    command::program(argv.words(), root)
}

/// Where hooks run.
fn home() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute() && home.is_dir());
    home.unwrap_or_else(|| PathBuf::from("/"))
}
