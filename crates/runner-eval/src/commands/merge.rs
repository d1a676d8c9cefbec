//! `runner eval merge`

use runner_core::strict::canonical_json;
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use super::scope::open_run;
use crate::args::{EvalGlobalArgs, MergeArgs};
use crate::execution::progress::{outcome_counts, outcome_counts_json, outcome_counts_line};
use crate::files;
use crate::plan::PlannedTrial;
use crate::result::TrialMeta;
use crate::result::run_folder::is_final;
use crate::result::share::import_results;

pub(crate) struct MergeOutput {
    run: String,
    trials: usize,
    /// The last attempt at each trial with a final result.
    results: Vec<TrialMeta>,
    attempts: usize,
    /// Trials without a final result.
    missing: Vec<PlannedTrial>,
    /// Folders that look like results but have no valid signature.
    forged: Vec<String>,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &MergeArgs) -> Result<MergeOutput, CommandError> {
    let folder = open_run(global, args.run.as_ref())?;
    let mut refused = Vec::new();
    for share in &args.from {
        let share = global.shared.project_dir.join(share);
        let found = import_results(&folder, &global.results(), &share)
            .map_err(|error| CommandError::io("could not import results", &share, &error))?;
        refused.extend(found.refused);
    }
    let trials = &folder.plan.scope.trials;
    let mut merged = MergeOutput {
        run: folder.name().to_string(),
        trials: trials.len(),
        results: Vec::new(),
        attempts: 0,
        missing: Vec::new(),
        forged: refused,
    };
    for trial in trials {
        let attempts = folder.attempts(trial);
        merged.attempts += attempts.valid.len();
        merged.forged.extend(attempts.forged.iter().map(|path| path.display().to_string()));
        // `run` decides about retries; here a lost trial is a result like any other.
        match attempts.valid.last() {
            Some(last) if is_final(&attempts.valid, 0) => merged.results.push(last.meta.clone()),
            _ => merged.missing.push(trial.clone()),
        }
    }
    let file = folder.file("summary.json");
    files::write_atomic(&file, &canonical_json(&merged.json()))
        .map_err(|error| CommandError::io("could not write the summary", &file, &error))?;
    Ok(merged)
}

impl MergeOutput {
    fn scored(&self) -> usize {
        self.results.iter().filter(|meta| meta.is_scored()).count()
    }
}

impl CommandOutput for MergeOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.eval.merge/1",
            "run": self.run,
            "trials": self.trials,
            "results": self.results.len(),
            "attempts": self.attempts,
            "scored": self.scored(),
            "outcomes": outcome_counts_json(&outcome_counts(&self.results)),
            "missing": self.missing,
            "forged": self.forged,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut head = KeyValueLine::new()
            .with("run", &self.run)
            .with("trials", self.trials)
            .with("results", self.results.len())
            .with("attempts", self.attempts)
            .with("scored", self.scored());
        for (outcome, count) in outcome_counts(&self.results) {
            head = head.with(outcome.as_str(), count);
        }
        let mut lines = vec![head.with("missing", self.missing.len())];
        lines.extend(self.missing.iter().map(|trial| KeyValueLine::new().with("missing", trial)));
        lines.extend(self.forged.iter().map(|path| KeyValueLine::new().with("forged", path)));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text =
            format!("run {}: {} of {} trials have a result\n", self.run, self.results.len(), self.trials);
        text.push_str(&format!("{}\n", outcome_counts_line(styler, &outcome_counts(&self.results))));
        for trial in &self.missing {
            text.push_str(&format!("{} {trial}\n", styler.paint(TextRole::Warn, "missing")));
        }
        for path in &self.forged {
            text.push_str(&format!("{} {path}\n", styler.paint(TextRole::Bad, "forged (invalid signature)")));
        }
        if !self.missing.is_empty() {
            text.push_str(&format!("Next: runner eval run --continue --run {}\n", self.run));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        if self.missing.is_empty() { CommandExit::SUCCESS } else { CommandExit::FAILURE }
    }
}
