//! `runner eval list`

use runner_core::text::one_line;
use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use super::choice;
use crate::args::{EvalGlobalArgs, ListArgs};
use crate::case::suite::{LoadedCase, choose, read_all};

/// The cases.
pub(crate) struct ListOutput(Vec<LoadedCase>);

pub(crate) fn run(global: &EvalGlobalArgs, args: &ListArgs) -> Result<ListOutput, CommandError> {
    choose(read_all(&global.cases())?, &choice(&args.cases)).map(ListOutput)
}

fn agent(kit: &LoadedCase) -> &str {
    kit.case.config.kind().unwrap_or("any")
}

impl CommandOutput for ListOutput {
    fn json(&self) -> Value {
        let case = |kit: &LoadedCase| {
            let case = &kit.case;
            json!({
                "id": case.id,
                "goal": case.goal,
                "tags": case.tags,
                "agent": agent(kit),
                "expect": case.expect,
                "checks": case.checks.len(),
                "has_solution": case.solution.is_some(),
                "requires": case.requires,
                "file": kit.file.display().to_string(),
                "sha256": kit.digests.whole,
            })
        };
        json!({ "schema": "runner.eval.list/1", "cases": self.0.iter().map(case).collect::<Vec<_>>() })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = |kit: &LoadedCase| {
            let case = &kit.case;
            let line = KeyValueLine::new().with("case", &case.id).with("agent", agent(kit));
            let line = line.with("tags", case.tags.join(",")).with("checks", case.checks.len());
            let expect = case.expect.map_or("any", crate::result::TrialOutcome::as_str);
            line.with("expect", expect).with("goal", one_line(&case.goal))
        };
        self.0.iter().map(line).collect()
    }

    fn human(&self, pen: &Styler) -> String {
        let width = self.0.iter().map(|kit| kit.case.id.len()).max().unwrap_or(0);
        let mut text = String::new();
        for kit in &self.0 {
            let case = &kit.case;
            let goal = one_line(&case.goal);
            let rest = pen.fit(&goal, pen.width.saturating_sub(width + 13));
            text.push_str(&format!(
                "{:width$}  {}  {rest}\n",
                case.id,
                pen.paint(
                    TextRole::Faint,
                    &format!("{:9}", case.expect.map_or(agent(kit), |outcome| outcome.as_str()))
                )
            ));
        }
        text
    }
}
