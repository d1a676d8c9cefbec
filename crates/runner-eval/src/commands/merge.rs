//! `runner eval merge`

use std::collections::BTreeMap;

use runner_core::strict::canonical_json;
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use super::run::newest;
use crate::args::{EvalGlobalArgs, MergeArgs};
use crate::execution::progress::mark;
use crate::files;
use crate::plan::TrialUnit;
use crate::result::run_folder::RunFolder;
use crate::result::{TrialMeta, TrialOutcome};

/// A run, put together from what all its shares left.
pub(crate) struct MergeOutput {
    run: String,
    units: usize,
    last: Vec<TrialMeta>,
    attempts: usize,
    /// Units without a final result.
    missing: Vec<TrialUnit>,
    /// Folders that pretend to be results.
    forged: Vec<String>,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &MergeArgs) -> Result<MergeOutput, CommandError> {
    let results = global.results();
    let folder = match &args.run {
        Some(run) => RunFolder::open(&results, run)?,
        None => newest(global)?,
    };
    let units = &folder.plan.scope.units;
    let mut merged = MergeOutput {
        run: folder.name().to_owned(),
        units: units.len(),
        last: Vec::new(),
        attempts: 0,
        missing: Vec::new(),
        forged: Vec::new(),
    };
    for unit in units {
        let (attempts, forged) = folder.attempts(unit);
        merged.attempts += attempts.len();
        merged.forged.extend(forged.iter().map(|path| path.display().to_string()));
        // Whether a spoiled trial is tried again is decided where it is run; here it is a result.
        if !RunFolder::is_done(&attempts, 0) {
            merged.missing.push(unit.clone());
        } else if let Some(last) = attempts.last() {
            merged.last.push(last.meta.clone());
        }
    }
    let file = folder.file("summary.json");
    files::write(&file, &canonical_json(&merged.json()))
        .map_err(|error| CommandError::io("could not write the summary", &file, &error))?;
    Ok(merged)
}

impl MergeOutput {
    fn counts(&self) -> BTreeMap<TrialOutcome, usize> {
        let mut counts = BTreeMap::new();
        for meta in &self.last {
            *counts.entry(meta.outcome).or_default() += 1;
        }
        counts
    }

    fn scored(&self) -> usize {
        self.last.iter().filter(|meta| meta.is_scored()).count()
    }
}

impl CommandOutput for MergeOutput {
    fn json(&self) -> Value {
        let counts: BTreeMap<&str, usize> =
            self.counts().into_iter().map(|(outcome, count)| (outcome.as_str(), count)).collect();
        json!({
            "schema": "runner.eval.merge/1",
            "run": self.run,
            "units": self.units,
            "results": self.last.len(),
            "attempts": self.attempts,
            "scored": self.scored(),
            "outcomes": counts,
            "missing": self.missing,
            "forged": self.forged,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut line = KeyValueLine::new()
            .with("run", &self.run)
            .with("units", self.units)
            .with("results", self.last.len());
        line = line.with("attempts", self.attempts).with("scored", self.scored());
        for (outcome, count) in self.counts() {
            line = line.with(outcome.as_str(), count);
        }
        let missing = self.missing.iter().map(|unit| KeyValueLine::new().with("missing", unit));
        let forged = self.forged.iter().map(|path| KeyValueLine::new().with("forged", path));
        std::iter::once(line.with("missing", self.missing.len())).chain(missing).chain(forged).collect()
    }

    fn human(&self, pen: &Styler) -> String {
        let counts = self.counts().into_iter();
        let counts: Vec<String> =
            counts.map(|(outcome, count)| format!("{} {count} {outcome}", mark(pen, outcome))).collect();
        let mut text = format!(
            "run {}: {} of {} results\n{}\n",
            self.run,
            self.last.len(),
            self.units,
            counts.join("   ")
        );
        for unit in &self.missing {
            text.push_str(&format!("{} {unit}\n", pen.paint(TextRole::Warn, "missing")));
        }
        for path in &self.forged {
            text.push_str(&format!("{} {path}\n", pen.paint(TextRole::Bad, "not a result of this run")));
        }
        if !self.missing.is_empty() {
            text.push_str(&format!("finish it: runner eval run --continue --run {}\n", self.run));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        if self.missing.is_empty() { CommandExit::SUCCESS } else { CommandExit::FAILURE }
    }
}
