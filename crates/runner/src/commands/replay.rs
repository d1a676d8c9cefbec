//! `runner replay`

use std::ops::ControlFlow;
use std::path::Path;

use runner_core::replay::{Recording, ReplayProgress, ReplayResult, Replayer, replay};
use runner_host::Error;
use runner_host::ops::replay::{RecordedRun, read, write};
use runner_term::format::counted;
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::ReplayArgs;
use crate::render::short;

pub(crate) struct ReplayOutput {
    run: String,
    result: ReplayResult,
}

const WHAT: &str = "could not replay the run";

pub(crate) fn run(dir: &Path, args: &ReplayArgs) -> Result<ReplayOutput, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    let replayed = match recording(args)? {
        Some(recording) => {
            if let Some(path) = &args.out {
                write(path, &recording).map_err(failed)?;
            }
            ReplayOutput { run: recording.run_id.to_string(), result: replay(&recording) }
        }
        None => replay_run(dir, args).map_err(failed)?,
    };
    if replayed.result.iterations == 0 && replayed.result.difference.is_none() {
        return Err(CommandError::refused("not_recorded", WHAT)
            .cause(format!("no session of run `{}` is recorded here", replayed.run))
            .hint(
                "replay it in the work tree where it was made, or from a file of 'runner replay --out FILE'",
            ));
    }
    Ok(replayed)
}

fn replay_run(dir: &Path, args: &ReplayArgs) -> Result<ReplayOutput, Error> {
    let run = RecordedRun::open(dir, args.target.as_deref().or(args.run.as_deref()))?;
    if let Some(path) = &args.out {
        run.write(path)?;
    }
    let mut replayer = Replayer::new(run.run_id.clone(), &run.base);
    run.for_each_commit(|commit| {
        Ok(match replayer.push(commit) {
            ReplayProgress::Same => ControlFlow::Continue(()),
            ReplayProgress::Differs => ControlFlow::Break(()),
        })
    })?;
    Ok(ReplayOutput { run: run.run_id.to_string(), result: replayer.finish() })
}

/// Reads a recording, if the target is a file.
fn recording(args: &ReplayArgs) -> Result<Option<Recording>, CommandError> {
    let Some(path) = args.target.as_deref().map(Path::new).filter(|path| path.is_file()) else {
        return Ok(None);
    };
    let recording = read(path).map_err(|error| CommandError::from_host(WHAT, error))?;
    recording.transpose().map_err(|cause| {
        CommandError::refused("recording", WHAT)
            .cause(format!("`{}` is not a recording: {}", path.display(), short(&cause)))
            .hint("create one with 'runner replay --out FILE'")
    })
}

impl CommandOutput for ReplayOutput {
    fn json(&self) -> Value {
        json!({ "schema": "runner.replay/1", "run_id": self.run, "identical": self.result.difference.is_none(),
                "iterations": self.result.iterations, "skipped": self.result.skipped,
                "difference": self.result.difference })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = Vec::new();
        if let Some(difference) = &self.result.difference {
            let iter = difference.iter.map_or_else(|| "none".to_owned(), |iter| iter.get().to_string());
            let line = KeyValueLine::new()
                .with("difference", difference.what)
                .with("iter", iter)
                .with("line", difference.line);
            let line = line.with("recorded", short(&difference.recorded));
            lines.push(line.with("now", short(&difference.now)));
        }
        for iter in &self.result.skipped {
            lines.push(KeyValueLine::new().with("skipped", iter.get()));
        }
        lines.push(
            KeyValueLine::new()
                .with("identical", self.result.difference.is_none())
                .with("run_id", &self.run)
                .with("iterations", self.result.iterations),
        );
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let iterations = counted(self.result.iterations, "iteration", "iterations");
        let mut text = match &self.result.difference {
            None => {
                let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
                format!("{tick} run {}: {iterations} replayed, all identical\n", self.run)
            }
            Some(difference) => {
                let cross = styler.paint(TextRole::Bad, styler.glyph(Glyph::Failed));
                let iter = difference.iter.map(|iter| format!(" of #{}", iter.get())).unwrap_or_default();
                format!(
                    "{cross} run {}: {iterations} identical, then {}{iter} differs in line {}\n  recorded  {}\n  now       {}\n",
                    self.run,
                    difference.what,
                    difference.line,
                    short(&difference.recorded),
                    short(&difference.now)
                )
            }
        };
        if !self.result.skipped.is_empty() {
            let skipped: Vec<String> =
                self.result.skipped.iter().map(|iter| iter.get().to_string()).collect();
            text.push_str(&format!(
                "  {} iterations {}\n",
                styler.paint(TextRole::Warn, "not recorded:"),
                skipped.join(", ")
            ));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        if self.result.difference.is_none() { CommandExit::SUCCESS } else { CommandExit::FAILURE }
    }
}
