//! `runner diff`

use std::path::Path;

use runner_core::text::lines;
use runner_host::view::run_view::{DiffFormat, IterationView, RunView};
use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler, Ui};
use serde_json::{Value, json};

use crate::args::DiffArgs;
use crate::target_arg::{committed_iteration, resolve_iteration};

const WHAT: &str = "could not show the changes";

pub(crate) struct DiffOutput {
    iteration: IterationView,
    patch: String,
}

pub(crate) fn run(dir: &Path, args: &DiffArgs, ui: &Ui) -> Result<DiffOutput, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    let view = RunView::at(dir, args.run.as_deref()).map_err(failed)?;
    let iter = resolve_iteration(args.target.as_deref().unwrap_or("@"), &view, WHAT)?;
    let iteration = committed_iteration(iter, &view, WHAT)?;
    let format = if ui.is_coloured() { DiffFormat::Coloured } else { DiffFormat::Patch };
    let patch = view.diff(iteration, format, &args.paths).map_err(failed)?;
    Ok(DiffOutput { iteration: iteration.clone(), patch: String::from_utf8_lossy(&patch).into_owned() })
}

impl CommandOutput for DiffOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.diff/1", "iter": self.iteration.iter, "commit": self.iteration.commit,
            "patch": self.patch,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        self.patch.lines().map(KeyValueLine::verbatim).collect()
    }

    fn human(&self, styler: &Styler) -> String {
        if styler.is_coloured() { keep_colours(&self.patch) } else { lines(&self.patch) }
    }

    fn is_long(&self) -> bool {
        true
    }
}

/// Removes control sequences except for colours: git's own, and those that a file may contain.
fn keep_colours(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for (nth, piece) in text.split("\u{1b}[").enumerate() {
        let end =
            piece.find('m').filter(|end| piece.bytes().take(*end).all(|b| b.is_ascii_digit() || b == b';'));
        match (nth, end) {
            (0, _) => safe.push_str(&lines(piece)),
            (_, Some(end)) => {
                let (code, rest) = piece.split_at_checked(end + 1).unwrap_or((piece, ""));
                safe.push_str("\u{1b}[");
                safe.push_str(code);
                safe.push_str(&lines(rest));
            }
            (_, None) => safe.push_str(&lines(&format!("\u{1b}[{piece}"))),
        }
    }
    safe
}
