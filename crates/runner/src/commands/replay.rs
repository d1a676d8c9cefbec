//! `runner replay`

use std::path::Path;

use runner_cli::{Exit, Glyph, Ink, Line, Pen, Reply, Report};
use runner_core::replay::{Recording, Replayed, replay};
use runner_host::replay::{read, record, write};
use serde_json::{Value, json};

use crate::cli::ReplayArgs;
use crate::view::short;

pub(crate) struct Answer {
    run: String,
    replayed: Replayed,
}

const WHAT: &str = "could not replay the run";

pub(crate) fn run(dir: &Path, args: &ReplayArgs) -> Result<Answer, Report> {
    let told = |error| Report::of(WHAT, &error);
    let recording = recording(dir, args)?;
    if let Some(path) = &args.export {
        write(path, &recording).map_err(told)?;
    }
    let replayed = replay(&recording);
    if replayed.iterations == 0 && replayed.difference.is_none() {
        return Err(Report::new("not_recorded", Exit::REFUSED, WHAT)
            .cause(format!("no session of run `{}` is recorded here", recording.run_id))
            .hint(
                "replay it where it was made, or from a file that 'runner replay --export FILE' wrote there",
            ));
    }
    Ok(Answer { run: recording.run_id.to_string(), replayed })
}

/// A file if there is one of that name, else a run.
fn recording(dir: &Path, args: &ReplayArgs) -> Result<Recording, Report> {
    let told = |error| Report::of(WHAT, &error);
    if let Some(path) = args.target.as_deref().map(Path::new).filter(|path| path.is_file())
        && let Some(read) = read(path).map_err(told)?
    {
        return read.map_err(|why| {
            Report::new("recording", Exit::REFUSED, WHAT)
                .cause(format!("`{}` is no recording: {}", path.display(), short(&why)))
                .hint("make one with 'runner replay --export FILE'")
        });
    }
    record(dir, args.target.as_deref()).map_err(told)
}

impl Reply for Answer {
    fn json(&self) -> Value {
        json!({ "schema": "runner.replay/1", "run_id": self.run, "same": self.replayed.difference.is_none(),
                "iterations": self.replayed.iterations, "skipped": self.replayed.skipped,
                "difference": self.replayed.difference })
    }

    fn plain(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(found) = &self.replayed.difference {
            let iter = found.iter.map_or_else(|| "none".to_owned(), |iter| iter.get().to_string());
            let line = Line::new().with("difference", found.what).with("iter", iter).with("line", found.line);
            lines.push(line.with("recorded", short(&found.recorded)).with("now", short(&found.now)));
        }
        lines.extend(self.replayed.skipped.iter().map(|iter| Line::new().with("skipped", iter.get())));
        let same = self.replayed.difference.is_none();
        lines.push(
            Line::new()
                .with("same", same)
                .with("run_id", &self.run)
                .with("iterations", self.replayed.iterations),
        );
        lines
    }

    fn drawn(&self, pen: &Pen) -> String {
        let made = self.replayed.iterations;
        let mut text = match &self.replayed.difference {
            None => {
                let tick = pen.ink(Ink::Good, pen.glyph(Glyph::Passed));
                format!("{tick} run {}: {made} iterations replayed, every byte the same\n", self.run)
            }
            Some(found) => {
                let cross = pen.ink(Ink::Bad, pen.glyph(Glyph::Failed));
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
                pen.ink(Ink::Warn, "not recorded:"),
                skipped.join(", ")
            ));
        }
        text
    }

    fn exit(&self) -> Exit {
        if self.replayed.difference.is_none() { Exit::SUCCESS } else { Exit::FAILURE }
    }
}
