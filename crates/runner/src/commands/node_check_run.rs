//! `runner node check run`

use std::path::Path;

use runner_core::model::id::NodeId;
use runner_host::ops::check_run::run_checks;
use runner_host::ops::guard_rerun::GuardRerunOutcome;
use runner_host::ops::rerun_step::{RerunPlace, RerunStep};
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use super::node_check::name_of;
use super::tree::load;
use super::verify::step_word;
use crate::args::CheckRunArgs;
use crate::target_arg::resolve_node;

const WHAT: &str = "could not run the checks";

pub(crate) struct CheckRunOutput {
    node: NodeId,
    steps: Vec<RerunStep>,
}

pub(crate) fn run(dir: &Path, args: &CheckRunArgs, ui: &Ui) -> Result<CheckRunOutput, CommandError> {
    let tree = load(dir, WHAT)?;
    let node = resolve_node(&args.node, &tree, WHAT)?;
    let name = args.name.as_deref().map(name_of).transpose()?;
    let status_line = ui.status_line(&format!("running the checks of {node}"));
    let steps = run_checks(dir, &node, name.as_ref(), &mut |_| {});
    drop(status_line);
    let steps = steps.map_err(|error| CommandError::from_host(WHAT, error))?;
    Ok(CheckRunOutput { node, steps })
}

impl CommandOutput for CheckRunOutput {
    fn json(&self) -> Value {
        let step = |step: &RerunStep| {
            json!({
                "check": step.name.trim_start_matches("check "), "place": step.place.as_str(),
                "passed": step.is_repeated(), "result": step_word(step), "output": step.output,
            })
        };
        json!({
            "schema": "runner.node_check_run/1",
            "node": self.node,
            "checks": self.steps.iter().map(step).collect::<Vec<_>>(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = |step: &RerunStep| {
            KeyValueLine::new()
                .with("node", &self.node)
                .with("check", step.name.trim_start_matches("check "))
                .with("passed", step.is_repeated())
                .with("place", step.place.as_str())
                .with("result", step_word(step))
        };
        self.steps.iter().map(line).collect()
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text = String::new();
        for step in &self.steps {
            let (glyph, role) = if step.is_repeated() {
                (Glyph::Passed, TextRole::Good)
            } else {
                (Glyph::Failed, TextRole::Bad)
            };
            let place = match step.place {
                RerunPlace::Room => "",
                RerunPlace::Clone => " (in a temporary clone, without a sandbox)",
            };
            let glyph = styler.paint(role, styler.glyph(glyph));
            text.push_str(&format!("{glyph} {} of {}: {}{place}\n", step.name, self.node, step_word(step)));
            for line in step.output.iter().filter(|_| !step.is_repeated()) {
                text.push_str(&format!("    {}\n", styler.fit(line, styler.width.saturating_sub(4))));
            }
        }
        text
    }

    fn exit(&self) -> CommandExit {
        let stopped = self.steps.iter().find_map(|step| match step.outcome {
            GuardRerunOutcome::Stopped(code) => Some(CommandExit(code)),
            GuardRerunOutcome::Ended(_)
            | GuardRerunOutcome::TimedOut
            | GuardRerunOutcome::NotStarted(_)
            | GuardRerunOutcome::Rejected(_) => None,
        });
        let is_green = self.steps.iter().all(RerunStep::is_repeated);
        stopped.unwrap_or(if is_green { CommandExit::SUCCESS } else { CommandExit::FAILURE })
    }
}
