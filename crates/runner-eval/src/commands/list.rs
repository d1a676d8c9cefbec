//! `runner eval list`

use runner_core::text::one_line;
use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::{EvalGlobalArgs, ListArgs};
use crate::case::suite::{LoadedCase, filter_cases, load_cases};
use crate::result::TrialOutcome;

pub(crate) struct ListOutput(Vec<LoadedCase>);

pub(crate) fn run(global: &EvalGlobalArgs, args: &ListArgs) -> Result<ListOutput, CommandError> {
    filter_cases(load_cases(&global.cases())?, &args.cases.to_filter()).map(ListOutput)
}

/// The kind of the case's own agent.
fn agent(loaded: &LoadedCase) -> &str {
    loaded.case.config.kind().unwrap_or("any")
}

impl CommandOutput for ListOutput {
    fn json(&self) -> Value {
        let mut cases = Vec::new();
        for loaded in &self.0 {
            let case = &loaded.case;
            cases.push(json!({
                "id": case.id,
                "goal": case.goal,
                "tags": case.tags,
                "agent": agent(loaded),
                "expect": case.expect,
                "checks": case.checks.len(),
                "has_solution": case.solution.is_some(),
                "requires": case.requires,
                "file": loaded.file.display().to_string(),
                "sha256": loaded.digests.whole,
            }));
        }
        json!({ "schema": "runner.eval.list/1", "cases": cases })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = Vec::new();
        for loaded in &self.0 {
            let case = &loaded.case;
            lines.push(
                KeyValueLine::new()
                    .with("case", &case.id)
                    .with("agent", agent(loaded))
                    .with("tags", case.tags.join(","))
                    .with("checks", case.checks.len())
                    .with("expect", case.expect.map_or("any", TrialOutcome::as_str))
                    .with("goal", one_line(&case.goal)),
            );
        }
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let width = self.0.iter().map(|loaded| loaded.case.id.len()).max().unwrap_or(0);
        let mut text = String::new();
        for loaded in &self.0 {
            let case = &loaded.case;
            let expected = case.expect.map_or(agent(loaded), |outcome| outcome.as_str());
            let goal = styler.fit(&one_line(&case.goal), styler.width.saturating_sub(width + 13));
            let expected = styler.paint(TextRole::Faint, &format!("{expected:9}"));
            text.push_str(&format!("{:width$}  {expected}  {goal}\n", case.id));
        }
        text
    }
}
