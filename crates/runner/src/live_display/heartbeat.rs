//! The sign of life of a loop without a terminal.

use runner_core::model::id::IterationNumber;
use runner_term::{CommandOutput, KeyValueLine, Styler};
use serde_json::{Value, json};

/// Printed now and then if there is no terminal and nothing else to print.
pub(super) struct Heartbeat {
    pub(super) iter: Option<IterationNumber>,
    pub(super) phase: &'static str,
    pub(super) secs: u64,
}

impl CommandOutput for Heartbeat {
    fn json(&self) -> Value {
        json!({ "event": "alive", "iter": self.iter, "phase": self.phase, "secs": self.secs })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("event", "alive");
        let line = self.iter.iter().fold(line, |line, iter| line.with("iter", iter));
        vec![line.with("phase", self.phase).with("secs", self.secs)]
    }

    fn human(&self, _: &Styler) -> String {
        String::new()
    }
}
