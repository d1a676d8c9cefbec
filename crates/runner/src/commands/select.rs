//! `runner select`

use std::path::Path;

use runner_core::config::OnStuck;
use runner_core::model::tree::{Selection, Tree, next_selection, path_text};
use runner_host::repo::readonly_repo::ReadonlyRepo;
use runner_host::view::inspect::read_on_stuck;
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use super::tree::load_from;
use crate::args::SelectArgs;
use crate::render::clean;

pub(crate) struct SelectOutput {
    tree: Tree,
    /// The policy for stuck tasks, which decides the next one.
    on_stuck: OnStuck,
    explain: bool,
}

pub(crate) fn run(dir: &Path, args: &SelectArgs) -> Result<SelectOutput, CommandError> {
    let what = "could not select the next task";
    let failed = |error| CommandError::from_host(what, error);
    let repo = ReadonlyRepo::open(dir).map_err(failed)?;
    let on_stuck = read_on_stuck(&repo).map_err(failed)?;
    Ok(SelectOutput { tree: load_from(&repo, what)?, on_stuck, explain: args.explain })
}

/// Why selection took the path it did.
struct SelectionReason {
    /// The path of the node where the choice was made.
    node: String,
    reason: String,
}

/// The reasons from the root down.
fn reasons(selection: &Selection<'_>) -> Vec<SelectionReason> {
    let (Selection::Leaf(choice) | Selection::Stuck(choice)) = selection else { return Vec::new() };
    let mut reasons = Vec::new();
    for (level, step) in choice.steps().enumerate() {
        let before = match step.passed_before {
            0 if step.skipped_before == 0 => "first child".to_owned(),
            0 => "no child before it passed".to_owned(),
            1 => "the child before it passed".to_owned(),
            n => format!("the {n} children before it passed"),
        };
        let before = match step.skipped_before {
            0 => before,
            1 => format!("{before}, 1 skipped without attempts left"),
            n => format!("{before}, {n} skipped without attempts left"),
        };
        let after = match step.open_after {
            0 => String::new(),
            1 => "; 1 open sibling follows".to_owned(),
            n => format!("; {n} open siblings follow"),
        };
        reasons.push(SelectionReason {
            node: path_text(choice.path.get(..=level).unwrap_or_default()),
            reason: format!("selects `{}`: {before}{after}", step.chosen.id),
        });
    }
    let attempts = choice.leaf.attempts;
    let max = choice.leaf.max_attempts;
    let reason = if attempts >= max {
        format!("open task, {attempts} of {max} attempts used: stuck")
    } else {
        format!("open task, {attempts} of {max} attempts used: next")
    };
    reasons.push(SelectionReason { node: path_text(&choice.path), reason });
    reasons
}

impl SelectOutput {
    fn selection(&self) -> Selection<'_> {
        next_selection(&self.tree, self.on_stuck)
    }
}

impl CommandOutput for SelectOutput {
    fn json(&self) -> Value {
        let selection = self.selection();
        let (state, choice) = match &selection {
            Selection::Complete => ("complete", None),
            Selection::Leaf(choice) => ("next", Some(choice)),
            Selection::Stuck(choice) => ("stuck", Some(choice)),
        };
        let reasons: Vec<Value> = reasons(&selection)
            .into_iter()
            .map(|SelectionReason { node, reason }| json!({ "node": node, "reason": reason }))
            .collect();
        json!({
            "schema": "runner.select/1",
            "state": state,
            "node": choice.map(|choice| json!({
                "id": choice.leaf.id,
                "path": path_text(&choice.path),
                "title": choice.leaf.title,
                "goal": choice.leaf.goal,
                "acceptance": choice.leaf.acceptance,
                "attempts": choice.leaf.attempts,
                "max_attempts": choice.leaf.max_attempts,
            })),
            "reasons": reasons,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let selection = self.selection();
        let (state, choice) = match &selection {
            Selection::Complete => return vec![KeyValueLine::new().with("state", "complete")],
            Selection::Leaf(choice) => ("next", choice),
            Selection::Stuck(choice) => ("stuck", choice),
        };
        let mut lines = vec![
            KeyValueLine::new().with("state", state),
            KeyValueLine::new().with("id", &choice.leaf.id),
            KeyValueLine::new().with("path", path_text(&choice.path)),
            KeyValueLine::new().with("attempts", choice.leaf.attempts),
            KeyValueLine::new().with("max_attempts", choice.leaf.max_attempts),
            KeyValueLine::new().with("title", clean(&choice.leaf.title)),
        ];
        if self.explain {
            for SelectionReason { node, reason } in reasons(&selection) {
                lines.push(KeyValueLine::new().with("node", node).with("reason", reason));
            }
        }
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let selection = self.selection();
        let (glyph, role, choice) = match &selection {
            Selection::Complete => {
                let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
                return format!("{tick} complete: every task has passed\n");
            }
            Selection::Leaf(choice) => (Glyph::Next, TextRole::Active, choice),
            Selection::Stuck(choice) => (Glyph::Failed, TextRole::Bad, choice),
        };
        let path = styler.paint(TextRole::Strong, &path_text(&choice.path));
        let mut text = format!("{} {path}\n", styler.paint(role, styler.glyph(glyph)));
        let title = clean(&choice.leaf.title);
        let attempts = choice.leaf.attempts;
        let max = choice.leaf.max_attempts;
        text.push_str(&format!("  {}\n", styler.fit(&title, styler.width.saturating_sub(2))));
        let stuck = if attempts >= max { ": stuck" } else { "" };
        text.push_str(&styler.paint(TextRole::Faint, &format!("  {attempts} of {max} attempts used{stuck}")));
        text.push('\n');
        if self.explain {
            text.push('\n');
            for SelectionReason { node, reason } in reasons(&selection) {
                text.push_str(&format!("  {}: {reason}\n", styler.paint(TextRole::Faint, &node)));
            }
        }
        text
    }

    fn exit(&self) -> CommandExit {
        match self.selection() {
            Selection::Complete | Selection::Leaf(_) => CommandExit::SUCCESS,
            Selection::Stuck(_) => CommandExit::STUCK,
        }
    }
}
