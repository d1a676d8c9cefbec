//! `runner replay`

use std::path::Path;

use runner_core::replay::{Recording, ReplayResult, replay};
use runner_host::ops::replay::{read, record, write};
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::ReplayArgs;
use crate::render::short;

pub(crate) struct ReplayOutput {
    run: String,
    replayed: ReplayResult,
}

const WHAT: &str = "could not replay the run";

pub(crate) fn run(dir: &Path, args: &ReplayArgs) -> Result<ReplayOutput, CommandError> {
    let told = |error| CommandError::from_host(WHAT, error);
    let recording = recording(dir, args)?;
    if let Some(path) = &args.export {
        write(path, &recording).map_err(told)?;
    }
    let replayed = replay(&recording);
    if replayed.iterations == 0 && replayed.difference.is_none() {
        return Err(CommandError::new("not_recorded", CommandExit::REFUSED, WHAT)
            .cause(format!("no session of run `{}` is recorded here", recording.run_id))
            .hint(
                "replay it where it was made, or from a file that 'runner replay --export FILE' wrote there",
            ));
    }
    Ok(ReplayOutput { run: recording.run_id.to_string(), replayed })
}

/// A file if there is one of that name, else a run.
fn recording(dir: &Path, args: &ReplayArgs) -> Result<Recording, CommandError> {
    let told = |error| CommandError::from_host(WHAT, error);
    if let Some(path) = args.target.as_deref().map(Path::new).filter(|path| path.is_file())
        && let Some(read) = read(path).map_err(told)?
    {
        return read.map_err(|why| {
            CommandError::new("recording", CommandExit::REFUSED, WHAT)
                .cause(format!("`{}` is no recording: {}", path.display(), short(&why)))
                .hint("make one with 'runner replay --export FILE'")
        });
    }
    record(dir, args.target.as_deref()).map_err(told)
}

impl CommandOutput for ReplayOutput {
    fn json(&self) -> Value {
        json!({ "schema": "runner.replay/1", "run_id": self.run, "same": self.replayed.difference.is_none(),
                "iterations": self.replayed.iterations, "skipped": self.replayed.skipped,
                "difference": self.replayed.difference })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = Vec::new();
        if let Some(found) = &self.replayed.difference {
            let iter = found.iter.map_or_else(|| "none".to_owned(), |iter| iter.get().to_string());
            let line = KeyValueLine::new()
                .with("difference", found.what)
                .with("iter", iter)
                .with("line", found.line);
            lines.push(line.with("recorded", short(&found.recorded)).with("now", short(&found.now)));
        }
        lines
            .extend(self.replayed.skipped.iter().map(|iter| KeyValueLine::new().with("skipped", iter.get())));
        let same = self.replayed.difference.is_none();
        lines.push(
            KeyValueLine::new()
                .with("same", same)
                .with("run_id", &self.run)
                .with("iterations", self.replayed.iterations),
        );
        lines
    }

    fn human(&self, pen: &Styler) -> String {
        let made = self.replayed.iterations;
        let mut text = match &self.replayed.difference {
            None => {
                let tick = pen.paint(TextRole::Good, pen.glyph(Glyph::Passed));
                format!("{tick} run {}: {made} iterations replayed, every byte the same\n", self.run)
            }
            Some(found) => {
                let cross = pen.paint(TextRole::Bad, pen.glyph(Glyph::Failed));
                let iter = found.iter.map(|iter| format!(" of #{}", iter.get())).unwrap_or_default();
                format!(
                    "{cross} run {}: {made} iterations the same, then {}{iter} differs in line {}\n  recorded  {}\n  now       {}\n",
                    self.run,
                    found.what,
                    found.line,
                    short(&found.recorded),
                    short(&found.now)
                )
            }
        };
        if !self.replayed.skipped.is_empty() {
            let skipped: Vec<String> =
                self.replayed.skipped.iter().map(|iter| iter.get().to_string()).collect();
            text.push_str(&format!(
                "  {} iterations {}\n",
                pen.paint(TextRole::Warn, "not recorded:"),
                skipped.join(", ")
            ));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        if self.replayed.difference.is_none() { CommandExit::SUCCESS } else { CommandExit::FAILURE }
    }
}
