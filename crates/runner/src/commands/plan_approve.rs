//! `runner plan approve`

use std::path::Path;

use runner_core::model::digest::Sha256;
use runner_core::runs::edit::UserEdit;
use runner_host::ops::edit::EditSession;
use runner_term::format::counted;
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

const WHAT: &str = "could not approve the plan";

pub(crate) struct PlanApproveOutput {
    plan: Sha256,
    tasks: usize,
    /// None if the plan was approved already.
    commit: Option<String>,
}

pub(crate) fn run(dir: &Path) -> Result<PlanApproveOutput, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    let session = EditSession::open(dir).map_err(failed)?;
    let tasks = session.tree().node_count();
    let plan = session.plan().map_err(failed)?;
    if plan.approved == Some(plan.current) {
        return Ok(PlanApproveOutput { plan: plan.current, tasks, commit: None });
    }
    let committed = session.commit(&UserEdit::Approve { plan: plan.current }).map_err(failed)?;
    Ok(PlanApproveOutput { plan: plan.current, tasks, commit: Some(committed.commit.to_string()) })
}

impl CommandOutput for PlanApproveOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.plan_approve/1", "plan": self.plan, "tasks": self.tasks, "commit": self.commit,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("approved", self.plan).with("tasks", self.tasks);
        vec![match &self.commit {
            Some(commit) => line.with("commit", commit),
            None => line,
        }]
    }

    fn human(&self, styler: &Styler) -> String {
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        let plan: String = self.plan.to_string().chars().take(12).collect();
        let tasks = counted(self.tasks, "task", "tasks");
        match &self.commit {
            Some(commit) => {
                let commit: String = commit.chars().take(8).collect();
                format!(
                    "{tick} approved the plan ({tasks}, digest {plan}), commit {commit}\n\nNext: runner loop\n"
                )
            }
            None => format!("{tick} the plan is approved already ({tasks}, digest {plan})\n"),
        }
    }
}
