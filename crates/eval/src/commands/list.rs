//! `runner eval list`

use runner_cli::{Ink, Line, Pen, Reply, Report};
use runner_core::text::one_line;
use serde_json::{Value, json};

use super::choice;
use crate::cli::{Global, ListArgs};
use crate::suite::{Kit, choose, read_all};

/// The cases.
pub(crate) struct Listed(Vec<Kit>);

pub(crate) fn run(global: &Global, args: &ListArgs) -> Result<Listed, Report> {
    choose(read_all(&global.cases())?, &choice(&args.cases)).map(Listed)
}

fn agent(kit: &Kit) -> &str {
    kit.case.config.kind().unwrap_or("any")
}

impl Reply for Listed {
    fn json(&self) -> Value {
        let case = |kit: &Kit| {
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

    fn plain(&self) -> Vec<Line> {
        let line = |kit: &Kit| {
            let case = &kit.case;
            let line = Line::new().with("case", &case.id).with("agent", agent(kit));
            let line = line.with("tags", case.tags.join(",")).with("checks", case.checks.len());
            let expect = case.expect.map_or("any", crate::result::Outcome::as_str);
            line.with("expect", expect).with("goal", one_line(&case.goal))
        };
        self.0.iter().map(line).collect()
    }

    fn drawn(&self, pen: &Pen) -> String {
        let width = self.0.iter().map(|kit| kit.case.id.len()).max().unwrap_or(0);
        let mut text = String::new();
        for kit in &self.0 {
            let case = &kit.case;
            let goal = one_line(&case.goal);
            let rest = pen.fit(&goal, pen.width.saturating_sub(width + 13));
            text.push_str(&format!(
                "{:width$}  {}  {rest}\n",
                case.id,
                pen.ink(
                    Ink::Faint,
                    &format!("{:9}", case.expect.map_or(agent(kit), |outcome| outcome.as_str()))
                )
            ));
        }
        text
    }
}
