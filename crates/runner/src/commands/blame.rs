//! `runner blame`

use std::collections::BTreeSet;
use std::path::Path;

use runner_core::commit_message::{CommitKind, IterationTarget};
use runner_core::model::id::{IterationNumber, NodeId};
use runner_core::model::tree::Node;
use runner_core::step::{GuardExit, Outcome};
use runner_host::ops::blame::{BisectStep, BlameCandidate, BlameProgress, BlameResult, BlameSearch};
use runner_host::ops::guard_rerun::GuardRerunOutcome;
use runner_host::view::run_view::RunView;
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use crate::args::BlameArgs;
use crate::render::changes::{FileDiffStat, files, files_drawn};
use crate::render::short;
use crate::target_arg::{iteration_of, node};

const WHAT: &str = "could not find out who broke it";

pub(crate) struct BlameOutput {
    command: Vec<String>,
    first: Option<BlameCandidate>,
    found: BlameResult,
    probes: Vec<BisectStep>,
    files: Vec<FileDiffStat>,
}

pub(crate) fn run(dir: &Path, args: &BlameArgs, out: &Ui) -> Result<BlameOutput, CommandError> {
    let told = |error| CommandError::from_host(WHAT, error);
    let look = RunView::at(dir, args.run.as_deref()).map_err(told)?;
    let from = beginning(args, &look)?;
    let blame = BlameSearch::begin(dir, args.run.as_deref(), from, &args.command).map_err(told)?;
    let mut probes = Vec::new();
    let mut under_way = None;
    let mut tell = |going: BlameProgress<'_>| match going {
        BlameProgress::Begins { suspect, left } => {
            let check = short(&args.command.join(" "));
            let check = if check.is_empty() { "the guard".to_owned() } else { format!("`{check}`") };
            let left = if left > 1 { format!(", {left} commits left") } else { String::new() };
            under_way = Some(out.status_line(&format!("{check} on {}{left}", what(suspect))));
        }
        BlameProgress::Ended(probe) => {
            under_way = None;
            out.print_unless_json(&BlameStepOutput(probe));
            probes.push(probe.clone());
        }
    };
    let found = blame.search(&mut tell).map_err(told)?;
    drop(under_way);
    let numbers = match &found {
        BlameResult::Broke { suspect, .. } => blame.numbers(suspect).map_err(told)?,
        BlameResult::NeverRed | BlameResult::AlwaysRed | BlameResult::Stopped(_) => Vec::new(),
    };
    let command = blame.command().to_vec();
    Ok(BlameOutput { command, first: blame.suspects.first().cloned(), found, probes, files: files(&numbers) })
}

/// Where the check was green: where the node passed; of the guard alone, where it first let a node pass; of a command,
/// at the start.
fn beginning(args: &BlameArgs, look: &RunView) -> Result<Option<IterationNumber>, CommandError> {
    if let Some(from) = &args.from {
        return iteration_of(from, look, WHAT).map(Some);
    }
    let passed = |seen: &&runner_host::view::run_view::IterationView| seen.outcome == Some(Outcome::Passed);
    let Some(wanted) = &args.node else {
        if !args.command.is_empty() {
            return Ok(None);
        }
        let none = || {
            CommandError::new("no_pass", CommandExit::REFUSED, WHAT)
                .cause("the guard has let no node pass yet")
                .hint("name an iteration after which it was green: --from ITER")
        };
        return look.iterations.iter().find(passed).map(|seen| Some(seen.iter)).ok_or_else(none);
    };
    let tree = look.tree.as_ref().ok_or_else(|| {
        CommandError::new("tree", CommandExit::REFUSED, WHAT)
            .cause("the run's tree cannot be read")
            .hint("run 'runner validate'")
    })?;
    let id = node(wanted, tree, WHAT)?;
    let path = tree.path_to(&id).unwrap_or_default();
    let mut leaves = BTreeSet::new();
    path.last().into_iter().for_each(|node| collect(node, &mut leaves));
    let on_it = |seen: &&runner_host::view::run_view::IterationView| {
        seen.node().is_some_and(|node| leaves.contains(node))
    };
    let is_passed = path.last().is_some_and(|node| node.passes);
    let last = look.iterations.iter().rev().filter(passed).find(on_it).filter(|_| is_passed);
    last.map(|seen| Some(seen.iter)).ok_or_else(|| {
        CommandError::new("not_passed", CommandExit::REFUSED, WHAT)
            .cause(format!("`{id}` has not passed, so nothing can have broken it"))
            .hint("name a check: runner blame -- COMMAND")
    })
}

fn collect<'t>(node: &'t Node, leaves: &mut BTreeSet<&'t NodeId>) {
    if node.is_leaf() {
        leaves.insert(&node.id);
    }
    node.children.iter().for_each(|child| collect(child, leaves));
}

/// What a commit is, for people: an iteration with its node, a start, or the user's own.
fn what(suspect: &BlameCandidate) -> String {
    match &suspect.kind {
        CommitKind::Iteration { iter, target: IterationTarget::Node(node), .. } => format!("#{iter} {node}"),
        CommitKind::Iteration { iter, target: IterationTarget::Repair, .. } => format!("#{iter} repair"),
        CommitKind::Start { .. } => "start".to_owned(),
        CommitKind::Baseline { .. } => "baseline".to_owned(),
        CommitKind::Edit { edit, .. } => format!("edit: {}", short(&edit.to_string())),
        CommitKind::Malformed { subject } | CommitKind::User { subject } => {
            format!("yours: {}", short(subject))
        }
    }
}

fn suspect_json(suspect: &BlameCandidate) -> Value {
    let node = match &suspect.kind {
        CommitKind::Iteration { target: IterationTarget::Node(node), .. } => Some(node),
        CommitKind::Iteration { .. }
        | CommitKind::Start { .. }
        | CommitKind::Baseline { .. }
        | CommitKind::Edit { .. }
        | CommitKind::Malformed { .. }
        | CommitKind::User { .. } => None,
    };
    json!({ "iter": suspect.kind.iter(), "node": node, "commit": suspect.commit, "what": what(suspect) })
}

/// One run of the check, as it is over.
struct BlameStepOutput<'p>(&'p BisectStep);

impl BlameStepOutput<'_> {
    fn word(&self) -> String {
        match &self.0.how {
            GuardRerunOutcome::Ended(GuardExit::Code(0)) => "green".to_owned(),
            GuardRerunOutcome::Ended(exit) => format!("red (exit {exit})"),
            GuardRerunOutcome::TimedOut => "red (ran out of time)".to_owned(),
            GuardRerunOutcome::NotStarted(why) => format!("red (could not be started: {})", short(why)),
            GuardRerunOutcome::Stopped(_) => "stopped".to_owned(),
        }
    }
}

impl CommandOutput for BlameStepOutput<'_> {
    fn json(&self) -> Value {
        let mut probe = suspect_json(&self.0.suspect);
        if let Some(keys) = probe.as_object_mut() {
            keys.insert("green".to_owned(), self.0.is_green().into());
            keys.insert("result".to_owned(), self.word().into());
            keys.insert("left".to_owned(), self.0.left.into());
        }
        probe
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line =
            KeyValueLine::new().with("probe", what(&self.0.suspect)).with("commit", &self.0.suspect.commit);
        vec![line.with("green", self.0.is_green()).with("result", self.word()).with("left", self.0.left)]
    }

    fn human(&self, pen: &Styler) -> String {
        let (glyph, ink) =
            if self.0.is_green() { (Glyph::Passed, TextRole::Good) } else { (Glyph::Failed, TextRole::Bad) };
        let commit: String = self.0.suspect.commit.chars().take(8).collect();
        let left = if self.0.left > 1 { format!(", {} left", self.0.left) } else { String::new() };
        let line = format!("{commit} {}: {}{left}", what(&self.0.suspect), self.word());
        format!("{} {}\n", pen.paint(ink, pen.glyph(glyph)), pen.fit(&line, pen.width.saturating_sub(2)))
    }
}

impl BlameOutput {
    fn word(&self) -> &'static str {
        match &self.found {
            BlameResult::NeverRed => "never_red",
            BlameResult::AlwaysRed => "always_red",
            BlameResult::Broke { is_flaky: false, .. } => "found",
            BlameResult::Broke { is_flaky: true, .. } => "flaky",
            BlameResult::Stopped(_) => "stopped",
        }
    }

    /// What the check printed on the commit that broke it.
    fn output(&self) -> &[String] {
        let BlameResult::Broke { suspect, .. } = &self.found else { return &[] };
        let red = self.probes.iter().rev().find(|probe| probe.suspect == *suspect && !probe.is_green());
        red.map(|probe| probe.output.as_slice()).unwrap_or_default()
    }

    fn broke_drawn(&self, suspect: &BlameCandidate, is_flaky: bool, pen: &Styler) -> String {
        let cross = pen.paint(TextRole::Bad, pen.glyph(Glyph::Failed));
        let mut text = format!(
            "\n{cross} {} broke it\n  commit {}\n",
            pen.paint(TextRole::Strong, &what(suspect)),
            suspect.commit
        );
        for line in self.output() {
            text.push_str(&format!("    {}\n", pen.fit(line, pen.width.saturating_sub(4))));
        }
        text.push_str(&files_drawn(&self.files, pen));
        if is_flaky {
            let warning =
                "the check answered twice in different ways there: it is flaky, and this may be wrong";
            text.push_str(&format!("{} {warning}\n", pen.paint(TextRole::Warn, "note:")));
        }
        match suspect.kind.iter().map(IterationNumber::get) {
            Some(iter) => {
                text.push_str(&format!("\nNext: runner show {iter}\n      runner diff {iter}\n"));
                if iter > 1 {
                    text.push_str(&format!("      runner fork {}    to go on from before it\n", iter - 1));
                }
            }
            None => {
                let commit: String = suspect.commit.chars().take(12).collect();
                text.push_str(&format!("\nNext: git show {commit}\n"));
            }
        }
        text
    }
}

impl CommandOutput for BlameOutput {
    fn json(&self) -> Value {
        let culprit = match &self.found {
            BlameResult::Broke { suspect, .. } => Some(suspect_json(suspect)),
            BlameResult::NeverRed | BlameResult::AlwaysRed | BlameResult::Stopped(_) => None,
        };
        json!({
            "schema": "runner.blame/1",
            "result": self.word(),
            "check": self.command,
            "from": self.first.as_ref().map(suspect_json),
            "culprit": culprit,
            "output": self.output(),
            "files": self.files.iter().map(FileDiffStat::json).collect::<Vec<_>>(),
            "probes": self.probes.iter().map(|probe| BlameStepOutput(probe).json()).collect::<Vec<_>>(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut line = KeyValueLine::new().with("result", self.word()).with("probes", self.probes.len());
        if let BlameResult::Broke { suspect, is_flaky } = &self.found {
            let iter = suspect.kind.iter().map_or_else(|| "none".to_owned(), |iter| iter.get().to_string());
            line = line.with("iter", iter).with("commit", &suspect.commit).with("what", what(suspect));
            line = line.with("flaky", is_flaky);
        }
        let files = self.files.iter().map(FileDiffStat::plain);
        files.chain([line]).collect()
    }

    fn human(&self, pen: &Styler) -> String {
        let first = self.first.as_ref().map(what).unwrap_or_default();
        let command = short(&self.command.join(" "));
        match &self.found {
            BlameResult::Broke { suspect, is_flaky } => self.broke_drawn(suspect, *is_flaky, pen),
            BlameResult::NeverRed => {
                let tick = pen.paint(TextRole::Good, pen.glyph(Glyph::Passed));
                format!("\n{tick} nothing is broken: `{command}` is green at the run's newest commit\n")
            }
            BlameResult::AlwaysRed => {
                let cross = pen.paint(TextRole::Bad, pen.glyph(Glyph::Failed));
                let hint = "name an iteration on which it was green: --from ITER; or a machine has changed, not the code";
                format!(
                    "\n{cross} `{command}` was red already at {first}\n\n{} {hint}\n",
                    pen.paint(TextRole::Active, "hint:")
                )
            }
            BlameResult::Stopped(_) => "\nstopped; nothing was left behind\n".to_owned(),
        }
    }

    fn exit(&self) -> CommandExit {
        match self.found {
            BlameResult::NeverRed | BlameResult::Broke { .. } => CommandExit::SUCCESS,
            BlameResult::AlwaysRed => CommandExit::FAILURE,
            BlameResult::Stopped(code) => CommandExit(code),
        }
    }
}
