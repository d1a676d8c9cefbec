//! `runner eval plan`

use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler};
use serde_json::{Value, json};

use super::scope::{create_run, resolve_scope};
use crate::args::{EvalGlobalArgs, EvalPlanArgs};
use crate::plan::PlannedTrial;

pub(crate) struct EvalPlanOutput {
    run: String,
    file: String,
    trials: Vec<PlannedTrial>,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &EvalPlanArgs) -> Result<EvalPlanOutput, CommandError> {
    let scope = resolve_scope(global, &args.scope)?.scope;
    let folder = create_run(global, args.run.as_ref(), &scope)?;
    let file = folder.file("plan.json").display().to_string();
    Ok(EvalPlanOutput { run: folder.name().to_string(), file, trials: scope.trials })
}

impl CommandOutput for EvalPlanOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.eval.plan-summary/1",
            "run": self.run,
            "file": self.file,
            "trials": self.trials,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = vec![
            KeyValueLine::new()
                .with("run", &self.run)
                .with("trials", self.trials.len())
                .with("file", &self.file),
        ];
        for PlannedTrial { case, agent, trial } in &self.trials {
            lines.push(KeyValueLine::new().with("case", case).with("agent", agent).with("trial", trial));
        }
        lines
    }

    fn human(&self, _: &Styler) -> String {
        let Self { run, file, trials } = self;
        format!(
            "run {run}: {} trials, written to {file}\n\n  \
             runner eval run --continue --run {run} --partition slice:1/8\n  \
             runner eval merge --run {run}\n",
            trials.len()
        )
    }
}
