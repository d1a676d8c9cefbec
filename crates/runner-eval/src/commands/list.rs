//! `runner eval list`

use runner_core::text::one_line;
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::{EvalGlobalArgs, ListArgs};
use crate::case::suite::{BrokenCase, CaseFolder, LoadedCase, filter_cases, load_cases};
use crate::result::TrialOutcome;

pub(crate) struct ListOutput {
    cases: Vec<LoadedCase>,
    /// Case files that cannot be used, with the reasons.
    broken: Vec<BrokenCase>,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &ListArgs) -> Result<ListOutput, CommandError> {
    let CaseFolder { cases, mut broken } = load_cases(&global.cases())?;
    if cases.is_empty()
        && let Some(only) = broken.pop()
    {
        return Err(only.error);
    }
    let cases = filter_cases(CaseFolder { cases, broken: Vec::new() }, &args.cases.to_filter())?;
    Ok(ListOutput { cases, broken })
}

/// What is wrong with a case file, in one line.
fn summary(error: &CommandError) -> String {
    let json = error.json();
    let causes = json.get("causes").and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<&str> = json.get("message").into_iter().chain(causes).filter_map(Value::as_str).collect();
    one_line(&texts.join(": "))
}

/// The kind of the case's own agent.
fn agent(loaded: &LoadedCase) -> &str {
    loaded.case.config.kind().unwrap_or("any")
}

impl CommandOutput for ListOutput {
    fn json(&self) -> Value {
        let mut cases = Vec::new();
        for loaded in &self.cases {
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
                "sha256": loaded.digests().ok().map(|digests| digests.whole.to_string()),
            }));
        }
        let mut broken = Vec::new();
        for BrokenCase { name, error } in &self.broken {
            broken.push(json!({ "name": name, "error": error.json() }));
        }
        json!({ "schema": "runner.eval.list/1", "cases": cases, "broken": broken })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = Vec::new();
        for loaded in &self.cases {
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
        for BrokenCase { name, error } in &self.broken {
            lines.push(KeyValueLine::new().with("broken", name).with("error", summary(error)));
        }
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let width = self.cases.iter().map(|loaded| loaded.case.id.len()).max().unwrap_or(0);
        let mut text = String::new();
        for loaded in &self.cases {
            let case = &loaded.case;
            let expected = case.expect.map_or(agent(loaded), |outcome| outcome.as_str());
            let goal = styler.fit(&one_line(&case.goal), styler.width.saturating_sub(width + 13));
            let expected = styler.paint(TextRole::Faint, &format!("{expected:9}"));
            text.push_str(&format!("{:width$}  {expected}  {goal}\n", case.id));
        }
        for BrokenCase { name, error } in &self.broken {
            let line = format!("{name}: {}", summary(error));
            text.push_str(&format!("{}\n", styler.paint(TextRole::Bad, &line)));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        if self.broken.is_empty() { CommandExit::SUCCESS } else { CommandExit::FAILURE }
    }
}
