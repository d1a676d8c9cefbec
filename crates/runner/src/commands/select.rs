//! `runner select`

use std::path::Path;

use runner_core::model::tree::{Selection, Tree, path_text, select};
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use super::tree::load;
use crate::args::SelectArgs;
use crate::render::clean;

pub(crate) struct SelectOutput {
    tree: Tree,
    explain: bool,
}

pub(crate) fn run(dir: &Path, args: &SelectArgs) -> Result<SelectOutput, CommandError> {
    Ok(SelectOutput { tree: load(dir, "could not select the next leaf")?, explain: args.explain })
}

/// The reasons, from the root down, as sentences.
fn reasons(selection: &Selection<'_>) -> Vec<(String, String)> {
    let (Selection::Leaf(choice) | Selection::Stuck(choice)) = selection else { return Vec::new() };
    let mut reasons: Vec<(String, String)> = choice
        .steps()
        .enumerate()
        .map(|(level, turn)| {
            let here = path_text(choice.path.get(..=level).unwrap_or_default());
            let before = match turn.passed_before {
                0 => "the first child".to_owned(),
                1 => "the child before it passes".to_owned(),
                n => format!("the {n} children before it pass"),
            };
            let behind = match turn.open_after {
                0 => String::new(),
                1 => "; 1 open sibling waits behind it".to_owned(),
                n => format!("; {n} open siblings wait behind it"),
            };
            (here, format!("takes `{}`: {before}{behind}", turn.chosen.id))
        })
        .collect();
    let (attempts, max) = (choice.leaf.attempts, choice.leaf.max_attempts);
    let end = if attempts >= max {
        format!("a leaf with all {max} attempts spent: stuck")
    } else {
        format!("an open leaf, {attempts} of {max} attempts spent: this one is next")
    };
    reasons.push((path_text(&choice.path), end));
    reasons
}

impl CommandOutput for SelectOutput {
    fn json(&self) -> Value {
        let selection = select(&self.tree);
        let (state, choice) = match &selection {
            Selection::Complete => ("complete", None),
            Selection::Leaf(choice) => ("next", Some(choice)),
            Selection::Stuck(choice) => ("stuck", Some(choice)),
        };
        let reasons: Vec<Value> = reasons(&selection)
            .into_iter()
            .map(|(node, reason)| json!({ "node": node, "reason": reason }))
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
        let selection = select(&self.tree);
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
            let told = reasons(&selection).into_iter();
            lines.extend(
                told.map(|(node, reason)| KeyValueLine::new().with("node", node).with("reason", reason)),
            );
        }
        lines
    }

    fn human(&self, pen: &Styler) -> String {
        let selection = select(&self.tree);
        let (glyph, ink, choice) = match &selection {
            Selection::Complete => {
                let tick = pen.paint(TextRole::Good, pen.glyph(Glyph::Passed));
                return format!("{tick} complete: every leaf passes\n");
            }
            Selection::Leaf(choice) => (Glyph::Next, TextRole::Active, choice),
            Selection::Stuck(choice) => (Glyph::Failed, TextRole::Bad, choice),
        };
        let path = pen.paint(TextRole::Strong, &path_text(&choice.path));
        let mut text = format!("{} {path}\n", pen.paint(ink, pen.glyph(glyph)));
        let title = clean(&choice.leaf.title);
        let (attempts, max) = (choice.leaf.attempts, choice.leaf.max_attempts);
        text.push_str(&format!("  {}\n", pen.fit(&title, pen.width.saturating_sub(2))));
        let spent = if attempts >= max { ": stuck" } else { "" };
        text.push_str(&pen.paint(TextRole::Faint, &format!("  {attempts} of {max} attempts spent{spent}")));
        text.push('\n');
        if self.explain {
            text.push('\n');
            for (node, reason) in reasons(&selection) {
                text.push_str(&format!("  {}: {reason}\n", pen.paint(TextRole::Faint, &node)));
            }
        }
        text
    }

    fn exit(&self) -> CommandExit {
        match select(&self.tree) {
            Selection::Complete | Selection::Leaf(_) => CommandExit::SUCCESS,
            Selection::Stuck(_) => CommandExit::STUCK,
        }
    }
}
