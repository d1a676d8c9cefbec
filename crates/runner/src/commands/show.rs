//! `runner show`

use std::path::Path;

use runner_core::commit_message::CommitKind;
use runner_core::labels::{NodeState, NodeStates};
use runner_core::model::id::NodeId;
use runner_core::model::run_state::{NodeHistory, RunState};
use runner_core::model::tree::{Node, path_text};
use runner_core::step::FileNotice;
use runner_core::text::lines;
use runner_host::view::run_view::{DiffFormat, IterationView, RunView};
use runner_term::format::{clock, dollars};
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use super::show_running;
use crate::args::ShowArgs;
use crate::render::changes::{FileDiffStat, parse_numstat, render_files};
use crate::render::clean;
use crate::render::event::notice_lines;
use crate::render::iteration::{
    iteration_json, iteration_line, iteration_row, outcome_glyph, outcome_style, outcome_word, target_word,
};
use crate::target_arg::{TargetArg, committed_iteration, resolve};

const WHAT: &str = "could not show the iteration or task";

pub(crate) fn run(dir: &Path, args: &ShowArgs) -> Result<Box<dyn CommandOutput>, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    let view = RunView::at(dir, args.run.as_deref()).map_err(failed)?;
    match resolve(args.target.as_deref().unwrap_or("@"), &view, WHAT)? {
        TargetArg::Node(id) => Ok(Box::new(ShowNodeOutput::new(&view, &id))),
        TargetArg::Iteration(iter) if view.is_in_progress(iter) => show_running::run(dir, iter, WHAT),
        TargetArg::Iteration(iter) => {
            let iteration = committed_iteration(iter, &view, WHAT)?.clone();
            let numstat = view.diff(&iteration, DiffFormat::Stat, &[]).map_err(failed)?;
            let state = view.state_after(&iteration).map_err(failed)?;
            let summary = state.as_ref().and_then(RunState::last_note).unwrap_or(&iteration.body).to_owned();
            let is_removed = view.has_removed_logs(iter);
            let files = parse_numstat(&numstat);
            Ok(Box::new(ShowIterationOutput { iteration, summary, files, is_removed }))
        }
    }
}

struct ShowIterationOutput {
    iteration: IterationView,
    summary: String,
    files: Vec<FileDiffStat>,
    /// Whether the policy of `[logs]` removed logs of the iteration.
    is_removed: bool,
}

const REMOVED: &str = "removed by keep_iterations under [logs]";

impl ShowIterationOutput {
    /// `agent 4:12, guard 0:03, $0.42`, as far as known.
    fn times_and_cost(&self) -> String {
        let agent = self.iteration.agent_time().map(|time| format!("agent {}", clock(time)));
        let guard = self.iteration.guard_time().map(|time| format!("guard {}", clock(time)));
        let cost = self.iteration.cost().map(dollars);
        [agent, guard, cost].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Files that are not committed as the session left them.
    fn notices(&self) -> &[FileNotice] {
        self.iteration.meta.as_ref().map_or(&[], |record| &record.file_notices)
    }

    /// `refused 1/2 by claude: no test`.
    fn review(&self) -> Option<String> {
        Some(self.iteration.meta.as_ref()?.meta.review.as_ref()?.text())
    }

    fn guard(&self) -> String {
        match &self.iteration.kind {
            CommitKind::Iteration { guard, .. } => guard.as_str().to_owned(),
            CommitKind::Baseline { guard, .. } | CommitKind::Final { guard, .. } => guard.as_str().to_owned(),
            CommitKind::Start { .. }
            | CommitKind::Milestone { .. }
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
            "iteration": iteration_json(&self.iteration),
            "summary": lines(&self.summary),
            "guard": self.guard(),
            "files": files,
            "meta": self.iteration.meta,
            "logs_removed": self.is_removed,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut output =
            vec![iteration_line(&self.iteration), KeyValueLine::new().with("guard", self.guard())];
        output.extend(self.review().map(|review| KeyValueLine::new().with("review", review)));
        output.push(KeyValueLine::new().with("summary", lines(&self.summary)));
        for annotation in &self.iteration.annotations {
            output.push(KeyValueLine::new().with("annotation", clean(annotation)));
        }
        for notice in self.notices() {
            let line = KeyValueLine::new().with("notice", notice.text());
            output
                .push(notice.restore.iter().fold(line, |line, command| line.with("restore", clean(command))));
        }
        output.extend(self.is_removed.then(|| KeyValueLine::new().with("logs", REMOVED)));
        output.extend(self.files.iter().map(FileDiffStat::line));
        output
    }

    fn human(&self, styler: &Styler) -> String {
        let iteration = &self.iteration;
        let (_, role) = outcome_style(iteration.outcome);
        let mut text = format!(
            "{} #{} {}  {}\n",
            outcome_glyph(iteration.outcome, styler),
            iteration.iter.get(),
            target_word(iteration),
            styler.paint(role, outcome_word(iteration.outcome))
        );
        let commit = iteration.commit.prefix(12).to_owned();
        let review = self.review().unwrap_or_default();
        let mut rows = vec![
            ("guard", self.guard()),
            ("review", review),
            ("took", self.times_and_cost()),
            ("commit", commit),
        ];
        rows.extend(self.is_removed.then(|| ("logs", REMOVED.to_owned())));
        rows.extend(iteration.annotations.iter().map(|annotation| ("note", clean(annotation))));
        for (key, value) in rows.into_iter().filter(|(_, value)| !value.is_empty()) {
            text.push_str(&format!("  {} {value}\n", styler.paint(TextRole::Faint, &format!("{key:<8}"))));
        }
        for notice in self.notices() {
            text.push_str(&notice_lines(notice, styler));
        }
        for line in lines(&self.summary).lines() {
            text.push_str(&format!("    {line}\n"));
        }
        text + &render_files(&self.files, styler)
    }

    fn is_long(&self) -> bool {
        true
    }
}

struct ShowNodeOutput {
    node: Node,
    path: String,
    state: NodeState,
    iterations: Vec<IterationView>,
    history: Option<NodeHistory>,
}

impl ShowNodeOutput {
    fn new(view: &RunView, id: &NodeId) -> Self {
        let path = view.tree.as_ref().and_then(|tree| tree.path_to(id)).unwrap_or_default();
        let states = view.tree.as_ref().map(|tree| NodeStates::new(tree, view.on_stuck));
        let node = path.last().map(|node| (*node).clone());
        #[expect(clippy::expect_used, reason = "the id was resolved in this very tree")]
        let node = node.expect("the node is in the tree");
        let on_node = |iteration: &&IterationView| iteration.node() == Some(id);
        Self {
            state: states.map_or(NodeState::Open, |states| states.of(&node)),
            path: path_text(&path),
            iterations: view.iterations.iter().filter(on_node).cloned().collect(),
            history: view.state.as_ref().and_then(|state| state.history_of(id).cloned()),
            node,
        }
    }

    /// The guard's output in the last failed attempt.
    fn last_guard_output(&self) -> Option<&str> {
        if self.node.passes {
            return None;
        }
        self.history.as_ref().and_then(|history| history.guard_output.as_deref())
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
            "iterations": self.iterations.iter().map(iteration_json).collect::<Vec<_>>(),
            "history": self.history,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let node = &self.node;
        let mut output = vec![
            KeyValueLine::new()
                .with("id", &node.id)
                .with("path", &self.path)
                .with("state", self.state.as_str())
                .with("attempts", format!("{}/{}", node.attempts, node.max_attempts)),
            KeyValueLine::new().with("title", clean(&node.title)),
            KeyValueLine::new().with("goal", lines(&node.goal)),
        ];
        for criterion in &node.acceptance {
            output.push(KeyValueLine::new().with("acceptance", lines(criterion)));
        }
        output.extend(self.iterations.iter().map(iteration_line));
        output
    }

    fn human(&self, styler: &Styler) -> String {
        let node = &self.node;
        let label = self.state.label();
        let state = styler.paint(label.tone.into(), label.text);
        let glyph = styler.label_glyph(label);
        let mut text = format!(
            "{glyph} {}  {state}, {} of {} attempts used\n",
            self.path, node.attempts, node.max_attempts
        );
        text.push_str(&format!("  {}\n", styler.paint(TextRole::Strong, &clean(&node.title))));
        for line in lines(&node.goal).lines() {
            text.push_str(&format!("  {line}\n"));
        }
        for criterion in &node.acceptance {
            text.push_str(&format!("  - {}\n", clean(criterion)));
        }
        for child in &node.children {
            let state = if child.passes { "passed" } else { "open" };
            text.push_str(&format!("  {} {} ({state})\n", styler.glyph(Glyph::Arrow), child.id));
        }
        if !self.iterations.is_empty() {
            text.push('\n');
        }
        for iteration in &self.iterations {
            text.push_str(&iteration_row(iteration, styler));
        }
        if let Some(output) = self.last_guard_output() {
            text.push_str(&format!("\n{}\n", styler.paint(TextRole::Strong, "last output of the guard")));
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
