//! `runner blame`

use std::collections::BTreeSet;
use std::path::Path;

use runner_core::commit_message::{CommitKind, IterationTarget};
use runner_core::model::id::{IterationNumber, NodeId};
use runner_core::model::tree::Node;
use runner_core::step::{GuardExit, Outcome};
use runner_host::ops::blame::{BisectStep, BlameCandidate, BlameProgress, BlameResult, BlameSearch};
use runner_host::ops::guard_rerun::GuardRerunOutcome;
use runner_host::view::run_view::{IterationView, RunView};
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use crate::args::BlameArgs;
use crate::render::changes::{FileDiffStat, parse_numstat, render_files};
use crate::render::short;
use crate::target_arg::{resolve_iteration, resolve_node, unreadable_tree};

const WHAT: &str = "could not find the breaking iteration";

pub(crate) struct BlameOutput {
    command: Vec<String>,
    first: Option<BlameCandidate>,
    result: BlameResult,
    steps: Vec<BisectStep>,
    files: Vec<FileDiffStat>,
}

pub(crate) fn run(dir: &Path, args: &BlameArgs, ui: &Ui) -> Result<BlameOutput, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    let view = RunView::at(dir, args.run.as_deref()).map_err(failed)?;
    let from = start_of_search(args, &view)?;
    let search = BlameSearch::begin(dir, args.run.as_deref(), from, &args.command).map_err(failed)?;
    let mut steps = Vec::new();
    let mut status_line = None;
    let mut on_progress = |progress: BlameProgress<'_>| match progress {
        BlameProgress::Started { candidate, left } => {
            let command = short(&args.command.join(" "));
            let command = if command.is_empty() { "the guard".to_owned() } else { format!("`{command}`") };
            let left = if left > 1 { format!(", {left} commits left") } else { String::new() };
            let text = format!("running {command} on {}{left}", describe(candidate));
            status_line = Some(ui.status_line(&text));
        }
        BlameProgress::Ended(step) => {
            status_line = None;
            ui.print_unless_json(&BlameStepOutput(step));
            steps.push(step.clone());
        }
    };
    let result = search.search(&mut on_progress).map_err(failed)?;
    drop(status_line);
    let numstat = match &result {
        BlameResult::Broke { candidate, .. } => search.diff_stat(candidate).map_err(failed)?,
        BlameResult::NeverFailed | BlameResult::AlwaysFailed | BlameResult::Stopped(_) => Vec::new(),
    };
    let command = search.command().to_vec();
    let first = search.candidates.first().cloned();
    Ok(BlameOutput { command, first, result, steps, files: parse_numstat(&numstat) })
}

/// The iteration after which the command succeeded: for a node, the one where it passed; for the guard, the first one
/// that passed; for another command none, which means the start of the run.
fn start_of_search(args: &BlameArgs, view: &RunView) -> Result<Option<IterationNumber>, CommandError> {
    if let Some(from) = &args.from {
        return resolve_iteration(from, view, WHAT).map(Some);
    }
    if let Some(node) = &args.node {
        return last_pass_of(node, view).map(Some);
    }
    if !args.command.is_empty() {
        return Ok(None);
    }
    let first = view.iterations.iter().find(|iteration| has_passed(iteration));
    first.map(|iteration| Some(iteration.iter)).ok_or_else(|| {
        CommandError::refused("no_pass", WHAT)
            .cause("no task has passed yet")
            .hint("name an iteration after which the guard succeeded: --from ITER")
    })
}

fn has_passed(iteration: &IterationView) -> bool {
    iteration.outcome == Some(Outcome::Passed)
}

/// The last iteration in which a leaf of the node passed.
fn last_pass_of(node: &str, view: &RunView) -> Result<IterationNumber, CommandError> {
    let tree = view.tree.as_ref().ok_or_else(|| unreadable_tree(WHAT))?;
    let id = resolve_node(node, tree, WHAT)?;
    let not_passed = || {
        CommandError::refused("not_passed", WHAT)
            .cause(format!("`{id}` has not passed yet"))
            .hint("name a command instead: runner blame -- COMMAND")
    };
    let path = tree.path_to(&id).unwrap_or_default();
    let node = path.last().filter(|node| node.passes).ok_or_else(not_passed)?;
    let mut leaves = BTreeSet::new();
    collect_leaves(node, &mut leaves);
    let is_on_leaf = |iteration: &&IterationView| iteration.node().is_some_and(|node| leaves.contains(node));
    let mut passes = view.iterations.iter().rev().filter(|iteration| has_passed(iteration));
    passes.find(is_on_leaf).map(|iteration| iteration.iter).ok_or_else(not_passed)
}

fn collect_leaves<'t>(node: &'t Node, leaves: &mut BTreeSet<&'t NodeId>) {
    if node.is_leaf() {
        leaves.insert(&node.id);
    }
    for child in &node.children {
        collect_leaves(child, leaves);
    }
}

/// A commit in a few words: an iteration with its node, a start, an edit, or a commit of the user.
fn describe(candidate: &BlameCandidate) -> String {
    match &candidate.kind {
        CommitKind::Iteration { iter, target: IterationTarget::Node(node), .. } => format!("#{iter} {node}"),
        CommitKind::Iteration { iter, target: IterationTarget::Repair, .. } => format!("#{iter} repair"),
        CommitKind::Iteration { iter, target: IterationTarget::Plan, .. } => format!("#{iter} plan"),
        CommitKind::Start { .. } => "start".to_owned(),
        CommitKind::Baseline { .. } => "baseline".to_owned(),
        CommitKind::Milestone { .. } => "milestone".to_owned(),
        CommitKind::Final { .. } => "final check".to_owned(),
        CommitKind::Edit { edit, .. } => format!("edit: {}", short(&edit.to_string())),
        CommitKind::Malformed { subject } | CommitKind::User { subject } => {
            format!("user commit: {}", short(subject))
        }
    }
}

fn candidate_json(candidate: &BlameCandidate) -> Value {
    let node = match &candidate.kind {
        CommitKind::Iteration { target: IterationTarget::Node(node), .. } => Some(node),
        CommitKind::Iteration { .. }
        | CommitKind::Start { .. }
        | CommitKind::Baseline { .. }
        | CommitKind::Final { .. }
        | CommitKind::Milestone { .. }
        | CommitKind::Edit { .. }
        | CommitKind::Malformed { .. }
        | CommitKind::User { .. } => None,
    };
    json!({ "iter": candidate.kind.iter(), "node": node, "commit": candidate.commit, "what": describe(candidate) })
}

/// One run of the command.
struct BlameStepOutput<'p>(&'p BisectStep);

impl BlameStepOutput<'_> {
    fn word(&self) -> String {
        match &self.0.outcome {
            GuardRerunOutcome::Ended(GuardExit::Code(0)) => "passed".to_owned(),
            GuardRerunOutcome::Ended(exit) => format!("failed (exit {exit})"),
            GuardRerunOutcome::TimedOut => "failed (timed out)".to_owned(),
            GuardRerunOutcome::NotStarted(why) => format!("failed (could not start: {})", short(why)),
            GuardRerunOutcome::Rejected(why) => format!("failed ({})", short(why)),
            GuardRerunOutcome::Stopped(_) => "stopped".to_owned(),
        }
    }
}

impl CommandOutput for BlameStepOutput<'_> {
    fn json(&self) -> Value {
        let mut step = candidate_json(&self.0.candidate);
        if let Some(keys) = step.as_object_mut() {
            keys.insert("passed".to_owned(), self.0.is_success().into());
            keys.insert("result".to_owned(), self.word().into());
            keys.insert("left".to_owned(), self.0.left.into());
        }
        step
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new()
            .with("step", describe(&self.0.candidate))
            .with("commit", &self.0.candidate.commit);
        vec![line.with("passed", self.0.is_success()).with("result", self.word()).with("left", self.0.left)]
    }

    fn human(&self, styler: &Styler) -> String {
        let (glyph, role) = if self.0.is_success() {
            (Glyph::Passed, TextRole::Good)
        } else {
            (Glyph::Failed, TextRole::Bad)
        };
        let commit = self.0.candidate.commit.prefix(8);
        let left = if self.0.left > 1 { format!(", {} left", self.0.left) } else { String::new() };
        let line = format!("{commit} {}: {}{left}", describe(&self.0.candidate), self.word());
        format!(
            "{} {}\n",
            styler.paint(role, styler.glyph(glyph)),
            styler.fit(&line, styler.width.saturating_sub(2))
        )
    }
}

impl BlameOutput {
    fn word(&self) -> &'static str {
        match &self.result {
            BlameResult::NeverFailed => "never_failed",
            BlameResult::AlwaysFailed => "always_failed",
            BlameResult::Broke { is_flaky: false, .. } => "found",
            BlameResult::Broke { is_flaky: true, .. } => "flaky",
            BlameResult::Stopped(_) => "stopped",
        }
    }

    /// The command's output on the commit that broke it.
    fn output(&self) -> &[String] {
        let BlameResult::Broke { candidate, .. } = &self.result else { return &[] };
        let failure = self.steps.iter().rev().find(|step| step.candidate == *candidate && !step.is_success());
        failure.map(|step| step.output.as_slice()).unwrap_or_default()
    }

    fn render_culprit(&self, candidate: &BlameCandidate, is_flaky: bool, styler: &Styler) -> String {
        let cross = styler.paint(TextRole::Bad, styler.glyph(Glyph::Failed));
        let mut text = format!(
            "\n{cross} {} broke it\n  commit {}\n",
            styler.paint(TextRole::Strong, &describe(candidate)),
            candidate.commit
        );
        for line in self.output() {
            text.push_str(&format!("    {}\n", styler.fit(line, styler.width.saturating_sub(4))));
        }
        text.push_str(&render_files(&self.files, styler));
        if is_flaky {
            let warning =
                "the command both passed and failed on this commit: it is flaky, so this may be wrong";
            text.push_str(&format!("{} {warning}\n", styler.paint(TextRole::Warn, "warning:")));
        }
        match candidate.kind.iter().map(IterationNumber::get) {
            Some(iter) => {
                text.push_str(&format!("\nNext: runner show {iter}\n      runner diff {iter}\n"));
                if iter > 1 {
                    text.push_str(&format!("      runner fork {}   # start again before it\n", iter - 1));
                }
            }
            None => {
                let commit = candidate.commit.prefix(12);
                text.push_str(&format!("\nNext: git show {commit}\n"));
            }
        }
        text
    }
}

impl CommandOutput for BlameOutput {
    fn json(&self) -> Value {
        let culprit = match &self.result {
            BlameResult::Broke { candidate, .. } => Some(candidate_json(candidate)),
            BlameResult::NeverFailed | BlameResult::AlwaysFailed | BlameResult::Stopped(_) => None,
        };
        json!({
            "schema": "runner.blame/1",
            "result": self.word(),
            "command": self.command,
            "from": self.first.as_ref().map(candidate_json),
            "culprit": culprit,
            "output": self.output(),
            "files": self.files.iter().map(FileDiffStat::json).collect::<Vec<_>>(),
            "steps": self.steps.iter().map(|step| BlameStepOutput(step).json()).collect::<Vec<_>>(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut line = KeyValueLine::new().with("result", self.word()).with("steps", self.steps.len());
        if let BlameResult::Broke { candidate, is_flaky } = &self.result {
            let iter = candidate.kind.iter().map_or_else(|| "none".to_owned(), |iter| iter.get().to_string());
            line =
                line.with("iter", iter).with("commit", &candidate.commit).with("what", describe(candidate));
            line = line.with("flaky", is_flaky);
        }
        let mut lines: Vec<KeyValueLine> = self.files.iter().map(FileDiffStat::line).collect();
        lines.push(line);
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let first = self.first.as_ref().map(describe).unwrap_or_default();
        let command = short(&self.command.join(" "));
        match &self.result {
            BlameResult::Broke { candidate, is_flaky } => self.render_culprit(candidate, *is_flaky, styler),
            BlameResult::NeverFailed => {
                let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
                format!("\n{tick} never failed: `{command}` succeeds on the run's last commit\n")
            }
            BlameResult::AlwaysFailed => {
                let cross = styler.paint(TextRole::Bad, styler.glyph(Glyph::Failed));
                let hint = "name an iteration after which it succeeded: --from ITER (or this machine changed, not the code)";
                format!(
                    "\n{cross} `{command}` was already failing at {first}\n\n{} {hint}\n",
                    styler.paint(TextRole::Active, "hint:")
                )
            }
            BlameResult::Stopped(_) => "\nstopped; the temporary clones are removed\n".to_owned(),
        }
    }

    fn exit(&self) -> CommandExit {
        match self.result {
            BlameResult::NeverFailed | BlameResult::Broke { .. } => CommandExit::SUCCESS,
            BlameResult::AlwaysFailed => CommandExit::FAILURE,
            BlameResult::Stopped(code) => CommandExit(code),
        }
    }
}
