//! `runner show` of an iteration that is still running: what is known before its commit.

use std::path::Path;

use runner_core::model::id::IterationNumber;
use runner_core::run_status::{RunFacts, RunStatus, run_status};
use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use super::status;
use crate::render::wait::on_the_wall;

/// The command that shows more while the iteration runs.
const FOLLOW: &str = "runner log @ -f";

pub(crate) struct ShowRunningOutput {
    iter: IterationNumber,
    status: RunStatus,
}

/// What the runner does in its current iteration.
pub(crate) fn run(
    dir: &Path,
    iter: IterationNumber,
    what: &str,
) -> Result<Box<dyn CommandOutput>, CommandError> {
    let report = status::read(dir).map_err(|error| CommandError::from_host(what, error))?;
    // The state of the iteration, not of a pause or a stop after it.
    let status = run_status(&RunFacts { is_paused: false, is_stopping: false, ..report.facts() });
    Ok(Box::new(ShowRunningOutput { iter, status }))
}

impl ShowRunningOutput {
    /// Names and values, as far as they are known.
    fn rows(&self) -> Vec<(&'static str, String)> {
        let RunStatus { task, headline, since_ms, details, .. } = &self.status;
        let mut rows = vec![("now", headline.clone())];
        rows.extend(task.iter().map(|task| ("task", task.clone())));
        rows.extend(since_ms.map(|since_ms| ("since", on_the_wall(since_ms))));
        rows.extend(details.iter().map(|detail| ("", detail.clone())));
        rows.push(("follow", FOLLOW.to_owned()));
        rows
    }
}

impl CommandOutput for ShowRunningOutput {
    fn json(&self) -> Value {
        json!({ "schema": "runner.show/1", "iteration": { "iter": self.iter }, "running": self.status })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let RunStatus { state, phase, headline, task, since_ms, .. } = &self.status;
        let mut line = KeyValueLine::new().with("iter", self.iter.get()).with("state", state.as_str());
        if let Some(phase) = phase {
            line = line.with("phase", phase.as_str());
        }
        if let Some(task) = task {
            line = line.with("task", task);
        }
        if let Some(since_ms) = since_ms {
            line = line.with("since_ms", since_ms);
        }
        vec![line.with("headline", headline), KeyValueLine::new().with("next", FOLLOW)]
    }

    fn human(&self, styler: &Styler) -> String {
        let label = self.status.label();
        let mut text = format!(
            "{} #{}  {}\n",
            styler.label_glyph(label),
            self.iter.get(),
            styler.paint(label.tone.into(), label.text)
        );
        for (name, value) in self.rows() {
            let value = styler.fit(&value, styler.width.saturating_sub(11));
            text.push_str(&format!("  {} {value}\n", styler.paint(TextRole::Faint, &format!("{name:<8}"))));
        }
        text
    }
}
