//! `runner eval plan`

use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler};
use serde_json::{Value, json};

use super::run::{new_run, scope_of};
use crate::args::{EvalGlobalArgs, EvalPlanArgs};
use crate::plan::TrialUnit;
use crate::result::run_folder::RunFolder;

/// The plan, on record.
pub(crate) struct EvalPlanOutput {
    run: String,
    file: String,
    units: Vec<TrialUnit>,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &EvalPlanArgs) -> Result<EvalPlanOutput, CommandError> {
    let (_, _, scope) = scope_of(global, &args.scope)?;
    let folder = match &args.run {
        Some(run) => RunFolder::make(&global.results(), run, &scope)?,
        None => new_run(global, &scope)?,
    };
    let file = folder.file("plan.json").display().to_string();
    Ok(EvalPlanOutput { run: folder.name().to_owned(), file, units: scope.units })
}

impl CommandOutput for EvalPlanOutput {
    fn json(&self) -> Value {
        json!({ "schema": "runner.eval.planned/1", "run": self.run, "file": self.file, "units": self.units })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = |unit: &TrialUnit| {
            KeyValueLine::new().with("case", &unit.case).with("agent", &unit.agent).with("trial", unit.trial)
        };
        let head = KeyValueLine::new()
            .with("run", &self.run)
            .with("units", self.units.len())
            .with("file", &self.file);
        std::iter::once(head).chain(self.units.iter().map(line)).collect()
    }

    fn human(&self, _: &Styler) -> String {
        format!(
            "run {}: {} units, in {}\n\n  runner eval run --continue --run {} --partition slice:1/8    and so on, anywhere\n  runner eval merge --run {}\n",
            self.run,
            self.units.len(),
            self.file,
            self.run,
            self.run
        )
    }
}
