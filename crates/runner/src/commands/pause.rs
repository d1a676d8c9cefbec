//! `runner pause` and `runner resume`

use std::path::Path;

use runner_host::ops::pause::{self, PauseStatus};
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::PauseArgs;

/// What was wished for, and how things stand.
pub(crate) struct PauseOutput {
    is_paused: bool,
    found: PauseStatus,
    /// Whether the running iteration was waited for.
    waited: bool,
}

pub(crate) fn pause(dir: &Path, args: &PauseArgs) -> Result<PauseOutput, CommandError> {
    let told = |error| CommandError::from_host("could not pause the run", error);
    let found = pause::pause(dir).map_err(told)?;
    if args.wait {
        pause::wait_until_free(dir).map_err(told)?;
    }
    Ok(PauseOutput { is_paused: true, found, waited: args.wait })
}

pub(crate) fn resume(dir: &Path) -> Result<PauseOutput, CommandError> {
    let found =
        pause::resume(dir).map_err(|error| CommandError::from_host("could not let the run go on", error))?;
    Ok(PauseOutput { is_paused: false, found, waited: false })
}

impl PauseOutput {
    /// The runner that is still at work.
    fn at_work(&self) -> Option<u32> {
        self.found.lock_holder.filter(|_| !self.waited)
    }

    fn text(&self) -> String {
        match (self.is_paused, self.at_work()) {
            (true, Some(pid)) => {
                format!("the loop (pid {pid}) stands still after the iteration that it is making")
            }
            (true, None) => "the run is paused: a loop waits until 'runner resume'".to_owned(),
            (false, _) if !self.found.was_paused => "the run was not paused".to_owned(),
            (false, _) => "the run goes on: a loop that waits takes the next leaf".to_owned(),
        }
    }

    fn next(&self) -> &'static str {
        match (self.is_paused, self.found.lock_holder) {
            (true, _) => "runner node …, runner answer, runner note; then 'runner resume'",
            (false, _) => "runner loop    if none is waiting",
        }
    }
}

impl CommandOutput for PauseOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.pause/1",
            "paused": self.is_paused,
            "was_paused": self.found.was_paused,
            "at_work": self.at_work(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line =
            KeyValueLine::new().with("paused", self.is_paused).with("was_paused", self.found.was_paused);
        vec![match self.at_work() {
            Some(pid) => line.with("at_work", pid),
            None => line,
        }]
    }

    fn human(&self, pen: &Styler) -> String {
        let (glyph, ink) =
            if self.is_paused { (Glyph::Retried, TextRole::Warn) } else { (Glyph::Passed, TextRole::Good) };
        format!("{} {}\n\nNext: {}\n", pen.paint(ink, pen.glyph(glyph)), self.text(), self.next())
    }
}
