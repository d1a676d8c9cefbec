//! `runner pause` and `runner resume`

use std::path::Path;

use runner_host::ops::pause::{self, PauseStatus};
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::PauseArgs;

pub(crate) struct PauseOutput {
    is_paused: bool,
    /// How the run stood before the command.
    before: PauseStatus,
    /// Whether the command waited for the current iteration.
    has_waited: bool,
}

pub(crate) fn pause(dir: &Path, args: &PauseArgs) -> Result<PauseOutput, CommandError> {
    let failed = |error| CommandError::from_host("could not pause the run", error);
    let before = pause::pause(dir).map_err(failed)?;
    if args.wait {
        pause::wait_until_free(dir).map_err(failed)?;
    }
    Ok(PauseOutput { is_paused: true, before, has_waited: args.wait })
}

pub(crate) fn resume(dir: &Path) -> Result<PauseOutput, CommandError> {
    let before =
        pause::resume(dir).map_err(|error| CommandError::from_host("could not resume the run", error))?;
    Ok(PauseOutput { is_paused: false, before, has_waited: false })
}

impl PauseOutput {
    /// The process of the loop that still runs an iteration.
    fn running_pid(&self) -> Option<u32> {
        self.before.lock_holder.filter(|_| !self.has_waited)
    }

    fn text(&self) -> String {
        match (self.is_paused, self.running_pid()) {
            (true, Some(pid)) => format!("the loop (pid {pid}) pauses after the current iteration"),
            (true, None) => "paused: a loop waits until 'runner resume'".to_owned(),
            (false, _) if !self.before.was_paused => "the run was not paused".to_owned(),
            (false, _) => "resumed: a waiting loop continues with the next task".to_owned(),
        }
    }

    fn next(&self) -> &'static str {
        if self.is_paused {
            "edit the run (runner node, answer, note), then 'runner resume'"
        } else {
            "runner loop   # if no loop is waiting"
        }
    }
}

impl CommandOutput for PauseOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.pause/1",
            "paused": self.is_paused,
            "was_paused": self.before.was_paused,
            "running_pid": self.running_pid(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line =
            KeyValueLine::new().with("paused", self.is_paused).with("was_paused", self.before.was_paused);
        vec![match self.running_pid() {
            Some(pid) => line.with("running_pid", pid),
            None => line,
        }]
    }

    fn human(&self, styler: &Styler) -> String {
        let (glyph, role) =
            if self.is_paused { (Glyph::Retried, TextRole::Warn) } else { (Glyph::Passed, TextRole::Good) };
        let glyph = styler.paint(role, styler.glyph(glyph));
        format!("{glyph} {}\n\nNext: {}\n", self.text(), self.next())
    }
}
