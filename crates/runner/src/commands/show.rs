//! `runner show` and `runner diff`

use std::path::Path;

use runner_core::labels::{NodeState, NodeStates};
use runner_core::model::id::NodeId;
use runner_core::model::tree::{Node, path_text};
use runner_core::step::Outcome;
use runner_core::text::lines;
use runner_core::verify::CommitKind;
use runner_host::view::run_view::{DiffFormat, IterationView, RunView};
use runner_term::format::{clock, dollars};
use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use super::log::{look_of, seen_drawn, seen_json, seen_line};
use crate::args::{DiffArgs, ShowArgs};
use crate::render::changes::{FileDiffStat, files, files_drawn};
use crate::render::clean;
use crate::target_arg::{TargetArg, iteration_of, seen, which};

const SHOW: &str = "could not show it";
const DIFF: &str = "could not show the difference";

pub(crate) fn run(dir: &Path, args: &ShowArgs) -> Result<Box<dyn CommandOutput>, CommandError> {
    let told = |error| CommandError::from_host(SHOW, error);
    let look = RunView::at(dir, args.run.as_deref()).map_err(told)?;
    match which(args.which.as_deref().unwrap_or("@"), &look, SHOW)? {
        TargetArg::Node(id) => Ok(Box::new(ShowNodeOutput::new(&look, &id))),
        TargetArg::Iteration(iter) => {
            let seen = seen(iter, &look, SHOW)?.clone();
            let numbers = look.diff(&seen, DiffFormat::Numbers, &[]).map_err(told)?;
            let state = look.state_after(&seen).map_err(told)?;
            let summary = state.and_then(|state| state.last_summary).unwrap_or_else(|| seen.body.clone());
            Ok(Box::new(ShowIterationOutput { seen, summary, files: files(&numbers) }))
        }
    }
}

pub(crate) fn diff(dir: &Path, args: &DiffArgs, out: &Ui) -> Result<DiffOutput, CommandError> {
    let told = |error| CommandError::from_host(DIFF, error);
    let look = RunView::at(dir, args.run.as_deref()).map_err(told)?;
    let iter = iteration_of(args.which.as_deref().unwrap_or("@"), &look, DIFF)?;
    let seen = seen(iter, &look, DIFF)?;
    let form = if out.is_coloured() { DiffFormat::Coloured } else { DiffFormat::Patch };
    let text = look.diff(seen, form, &args.paths).map_err(told)?;
    Ok(DiffOutput { seen: seen.clone(), text: String::from_utf8_lossy(&text).into_owned() })
}

/// One iteration, whole.
struct ShowIterationOutput {
    seen: IterationView,
    summary: String,
    files: Vec<FileDiffStat>,
}

impl ShowIterationOutput {
    fn times(&self) -> String {
        let time = |key: &str| {
            let time = self.seen.number(key).map(std::time::Duration::from_millis);
            time.map(|time| format!("{} {}", key.trim_end_matches("_ms"), clock(time)))
        };
        let cost = self.seen.cost().map(dollars);
        [time("agent_ms"), time("guard_ms"), cost].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn guard(&self) -> String {
        match &self.seen.kind {
            CommitKind::Iteration { guard, .. } => guard.as_str().to_owned(),
            CommitKind::Baseline { guard, .. } => guard.as_str().to_owned(),
            CommitKind::Start { .. }
            | CommitKind::Edit { .. }
            | CommitKind::Malformed { .. }
            | CommitKind::User { .. } => String::new(),
        }
    }
}

impl CommandOutput for ShowIterationOutput {
    fn json(&self) -> Value {
        let files: Vec<Value> = self.files.iter().map(FileDiffStat::json).collect();
        json!({
            "schema": "runner.show/1",
            "iteration": seen_json(&self.seen),
            "summary": lines(&self.summary),
            "guard": self.guard(),
            "files": files,
            "meta": self.seen.meta,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut told = vec![seen_line(&self.seen), KeyValueLine::new().with("guard", self.guard())];
        told.push(KeyValueLine::new().with("summary", lines(&self.summary)));
        told.extend(self.seen.annotations.iter().map(|mark| KeyValueLine::new().with("mark", clean(mark))));
        told.extend(self.files.iter().map(FileDiffStat::plain));
        told
    }

    fn human(&self, pen: &Styler) -> String {
        let (glyph, ink) = look_of(self.seen.outcome);
        let outcome = self.seen.outcome.map_or("unknown", Outcome::as_str);
        let node = self.seen.node().map_or_else(|| "repair".to_owned(), ToString::to_string);
        let glyph = pen.glyph(glyph).trim_end_matches(['─', '-', ' ']);
        let head = format!("{} #{} {node}", pen.paint(ink, glyph), self.seen.iter.get());
        let mut text = format!("{head}  {}\n", pen.paint(ink, outcome));
        let commit: String = self.seen.commit.chars().take(12).collect();
        let mut row = |key: &str, value: &str| {
            if !value.is_empty() {
                text.push_str(&format!("  {} {}\n", pen.paint(TextRole::Faint, &format!("{key:<8}")), value));
            }
        };
        row("guard", &self.guard());
        row("took", &self.times());
        row("commit", &commit);
        self.seen.annotations.iter().for_each(|mark| row("mark", &clean(mark)));
        for line in lines(&self.summary).lines() {
            text.push_str(&format!("    {line}\n"));
        }
        text.push_str(&files_drawn(&self.files, pen));
        text
    }

    fn is_long(&self) -> bool {
        true
    }
}

/// A node, whole.
struct ShowNodeOutput {
    node: Node,
    path: String,
    state: NodeState,
    history: Vec<IterationView>,
    lesson: Option<runner_core::model::run_state::NodeHistory>,
}

impl ShowNodeOutput {
    fn new(look: &RunView, id: &NodeId) -> Self {
        let path = look.tree.as_ref().and_then(|tree| tree.path_to(id)).unwrap_or_default();
        let states = look.tree.as_ref().map(NodeStates::new);
        let node = path.last().map(|node| (*node).clone());
        #[expect(clippy::expect_used, reason = "the id was found in this very tree")]
        let node = node.expect("the node is in the tree");
        Self {
            state: states.map_or(NodeState::Open, |states| states.of(&node)),
            path: path_text(&path),
            history: look.iterations.iter().filter(|seen| seen.node() == Some(id)).cloned().collect(),
            lesson: look.state.as_ref().and_then(|state| state.history_of(id).cloned()),
            node,
        }
    }
}

impl CommandOutput for ShowNodeOutput {
    fn json(&self) -> Value {
        let node = &self.node;
        json!({
            "schema": "runner.show/1",
            "node": {
                "id": node.id, "path": self.path, "state": self.state.as_str(), "title": node.title, "goal": node.goal,
                "acceptance": node.acceptance, "attempts": node.attempts, "max_attempts": node.max_attempts,
                "children": node.children.iter().map(|child| &child.id).collect::<Vec<_>>(),
            },
            "iterations": self.history.iter().map(seen_json).collect::<Vec<_>>(),
            "lesson": self.lesson,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let node = &self.node;
        let mut told = vec![
            KeyValueLine::new()
                .with("id", &node.id)
                .with("path", &self.path)
                .with("state", self.state.as_str())
                .with("attempts", format!("{}/{}", node.attempts, node.max_attempts)),
            KeyValueLine::new().with("title", clean(&node.title)),
            KeyValueLine::new().with("goal", lines(&node.goal)),
        ];
        told.extend(node.acceptance.iter().map(|point| KeyValueLine::new().with("acceptance", lines(point))));
        told.extend(self.history.iter().map(seen_line));
        told
    }

    fn human(&self, pen: &Styler) -> String {
        let node = &self.node;
        let state = pen.paint(self.state.label().tone.into(), self.state.as_str());
        let glyph = pen.label_glyph(self.state.label());
        let mut text =
            format!("{glyph} {}  {state}, {} of {} attempts\n", self.path, node.attempts, node.max_attempts);
        text.push_str(&format!("  {}\n", pen.paint(TextRole::Strong, &clean(&node.title))));
        for line in lines(&node.goal).lines() {
            text.push_str(&format!("  {line}\n"));
        }
        for point in &node.acceptance {
            text.push_str(&format!("  - {}\n", clean(point)));
        }
        for child in &node.children {
            let done = if child.passes { "passed" } else { "open" };
            text.push_str(&format!("  {} {} ({done})\n", pen.glyph(runner_term::Glyph::Arrow), child.id));
        }
        if !self.history.is_empty() {
            text.push('\n');
        }
        self.history.iter().for_each(|seen| text.push_str(&seen_drawn(seen, pen)));
        let failure = self.lesson.as_ref().and_then(|lesson| lesson.guard_output.as_deref());
        if let Some(output) = failure.filter(|_| !node.passes) {
            text.push_str(&format!("\n{}\n", pen.paint(TextRole::Strong, "what the guard said last")));
            for line in lines(output).lines() {
                text.push_str(&format!("  {line}\n"));
            }
        }
        text
    }

    fn is_long(&self) -> bool {
        true
    }
}

/// What an iteration changed.
pub(crate) struct DiffOutput {
    seen: IterationView,
    text: String,
}

impl CommandOutput for DiffOutput {
    fn json(&self) -> Value {
        json!({ "schema": "runner.diff/1", "iter": self.seen.iter, "commit": self.seen.commit, "patch": self.text })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        self.text.lines().map(KeyValueLine::verbatim).collect()
    }

    fn human(&self, pen: &Styler) -> String {
        if pen.is_coloured() { keep_colours(&self.text) } else { lines(&self.text) }
    }

    fn is_long(&self) -> bool {
        true
    }
}

/// The text without control sequences, but for colours: git's own, and those that a file may hold.
fn keep_colours(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for (nth, piece) in text.split("\u{1b}[").enumerate() {
        let end =
            piece.find('m').filter(|end| piece.bytes().take(*end).all(|b| b.is_ascii_digit() || b == b';'));
        match (nth, end) {
            (0, _) => safe.push_str(&lines(piece)),
            (_, Some(end)) => {
                let (code, rest) = piece.split_at_checked(end + 1).unwrap_or((piece, ""));
                safe.push_str("\u{1b}[");
                safe.push_str(code);
                safe.push_str(&lines(rest));
            }
            (_, None) => safe.push_str(&lines(&format!("\u{1b}[{piece}"))),
        }
    }
    safe
}
