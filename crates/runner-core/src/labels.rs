//! Labels for people: the text, symbol and tone of run states, stop reasons, outcomes, node states and annotations.
//!
//! The command line, the terminal UI and the page all take them from here; `ui/src/lib/types.ts` is generated from these
//! tables.

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::OnStuck;
use crate::format::counted;
use crate::model::checks::RedKind;
use crate::model::id::NodeId;
use crate::model::tree::{Node, Selection, Tree, next_selection};
use crate::run_status::LifecycleState;
use crate::step::{Annotation, Outcome, StopReason};

/// How good or bad something is; decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    Pass,
    Run,
    Retry,
    Fail,
    Open,
}

impl Tone {
    pub const ALL: [Self; 5] = [Self::Pass, Self::Run, Self::Retry, Self::Fail, Self::Open];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Run => "run",
            Self::Retry => "retry",
            Self::Fail => "fail",
            Self::Open => "open",
        }
    }
}

/// A symbol that is one cell wide in every terminal, so none of East Asian ambiguous width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    Check,
    Cross,
    Pointer,
    Retry,
    Halt,
    Dot,
    Split,
}

impl Symbol {
    pub const ALL: [Self; 7] =
        [Self::Check, Self::Cross, Self::Pointer, Self::Retry, Self::Halt, Self::Dot, Self::Split];

    pub fn glyph(self) -> &'static str {
        match self {
            Self::Check => "✓",
            Self::Cross => "✗",
            Self::Pointer => "▸",
            Self::Retry => "↻",
            Self::Halt => "⊘",
            Self::Dot => "◦",
            Self::Split => "◊",
        }
    }

    /// The symbol for terminals that only show ASCII.
    pub fn ascii(self) -> &'static str {
        match self {
            Self::Check => "+",
            Self::Cross => "!",
            Self::Pointer => ">",
            Self::Retry => "~",
            Self::Halt => "-",
            Self::Dot => ".",
            Self::Split => "/",
        }
    }
}

/// How something is shown: the text and the symbol carry the meaning, the tone only adds colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    pub text: &'static str,
    pub symbol: Symbol,
    pub tone: Tone,
}

const fn label(text: &'static str, symbol: Symbol, tone: Tone) -> Label {
    Label { text, symbol, tone }
}

impl LifecycleState {
    pub fn label(self) -> Label {
        match self {
            Self::NoRun => label("no run", Symbol::Dot, Tone::Open),
            Self::Invalid => label("invalid", Symbol::Cross, Tone::Fail),
            Self::Running => label("running", Symbol::Pointer, Tone::Run),
            Self::Waiting => label("waiting", Symbol::Retry, Tone::Retry),
            Self::Paused => label("paused", Symbol::Halt, Tone::Retry),
            Self::Stopped => label("stopped", Symbol::Halt, Tone::Retry),
            Self::Complete => label("complete", Symbol::Check, Tone::Pass),
            Self::Crashed => label("crashed", Symbol::Cross, Tone::Fail),
        }
    }
}

impl StopReason {
    /// The label of a run that stopped for this reason; its text names the reason.
    pub fn label(&self) -> Label {
        match self {
            Self::Complete => label("complete", Symbol::Check, Tone::Pass),
            Self::Stuck { .. } => label("stuck", Symbol::Cross, Tone::Fail),
            Self::NotReproducible { .. } => label("final check failed", Symbol::Cross, Tone::Fail),
            Self::Regressed { .. } => label("checks fail again", Symbol::Cross, Tone::Fail),
            Self::MaxIterations { .. } => label("max_iterations reached", Symbol::Cross, Tone::Fail),
            Self::Budget { .. } => label("budget used up", Symbol::Cross, Tone::Fail),
            Self::Stalled { .. } => label("no progress", Symbol::Cross, Tone::Fail),
            Self::TimeLimit { .. } => label("time limit", Symbol::Cross, Tone::Fail),
            Self::Failures { .. } => label("failures in a row", Symbol::Cross, Tone::Fail),
            Self::NeedsUser { .. } => label("action needed", Symbol::Cross, Tone::Fail),
            Self::VacuousChecks { .. } => label("checks prove nothing", Symbol::Cross, Tone::Fail),
            Self::NotApproved => label("plan not approved", Symbol::Halt, Tone::Retry),
            Self::LoopIterations { .. } => label("--max-iterations reached", Symbol::Halt, Tone::Retry),
            Self::LoopBudget { .. } => label("limit of this loop reached", Symbol::Halt, Tone::Retry),
            Self::LoopUntil { .. } => label("--until reached", Symbol::Halt, Tone::Retry),
            Self::Interrupted { .. } => label("interrupted", Symbol::Halt, Tone::Retry),
            Self::UserStop => label("stopped by you", Symbol::Halt, Tone::Retry),
            Self::Unknown => label("unknown reason", Symbol::Halt, Tone::Retry),
        }
    }
}

impl Outcome {
    pub fn label(self) -> Label {
        let failed = |text| label(text, Symbol::Cross, Tone::Fail);
        let halted = |text| label(text, Symbol::Halt, Tone::Retry);
        let retried = |text| label(text, Symbol::Retry, Tone::Retry);
        let split = |text| label(text, Symbol::Split, Tone::Run);
        match self {
            Self::Passed => label("passed", Symbol::Check, Tone::Pass),
            Self::Repaired => label("repaired", Symbol::Check, Tone::Pass),
            Self::Decomposed => split("split"),
            Self::Replanned => split("replanned"),
            Self::Planned => split("planned"),
            Self::PlanQuestions => retried("has questions"),
            Self::Retry => retried("retry"),
            Self::Unconfirmed => retried("unconfirmed"),
            Self::RateLimited => retried("rate limited"),
            Self::Overloaded => retried("overloaded"),
            Self::Disconnected => retried("disconnected"),
            Self::UsageLimit => retried("usage limit"),
            Self::TimedOut => halted("timed out"),
            Self::IdleTimeout => halted("no output"),
            Self::GuardTimedOut => halted("guard timed out"),
            Self::OverBudget => halted("budget used"),
            Self::Interrupted => halted("interrupted"),
            Self::ContextFull => halted("context full"),
            Self::ChecksFailed => failed("checks failed"),
            Self::GuardFailed => failed("guard failed"),
            Self::ReviewRefused => failed("review refused"),
            Self::RuleViolation => failed("rule violated"),
            Self::InvalidTree => failed("invalid tree"),
            Self::RepairFailed => failed("repair failed"),
            Self::RepairAbandoned => failed("repair abandoned"),
            Self::ReplanRefused => failed("replan refused"),
            Self::SplitRefused => failed("not split"),
            Self::PlanRejected => failed("plan rejected"),
            Self::AgentNotStarted => failed("agent not started"),
            Self::AgentCrashed => failed("agent crashed"),
            Self::NoAnswer => failed("no answer"),
            Self::ProviderRefused => failed("provider refused"),
            Self::GuardNotStarted => failed("guard not started"),
            Self::ReviewFailed => failed("review failed"),
            Self::NotLoggedIn => failed("not logged in"),
        }
    }
}

/// The state of a node as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    Passed,
    /// A session works on it now.
    Running,
    Stuck,
    Next,
    Retried,
    Open,
}

/// What decides the state of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeFlags {
    pub passes: bool,
    pub is_running: bool,
    /// A leaf without attempts left.
    pub is_exhausted: bool,
    pub is_next: bool,
    /// A leaf with used attempts.
    pub is_tried: bool,
}

impl NodeState {
    /// By priority: a node has the first of these states that applies to it.
    pub const ALL: [Self; 6] =
        [Self::Passed, Self::Running, Self::Stuck, Self::Next, Self::Retried, Self::Open];

    pub fn of(flags: NodeFlags) -> Self {
        let applies = |state: &Self| match state {
            Self::Passed => flags.passes,
            Self::Running => flags.is_running,
            Self::Stuck => flags.is_exhausted,
            Self::Next => flags.is_next,
            Self::Retried => flags.is_tried,
            Self::Open => true,
        };
        Self::ALL.into_iter().find(applies).unwrap_or(Self::Open)
    }

    pub fn as_str(self) -> &'static str {
        self.label().text
    }

    pub fn label(self) -> Label {
        match self {
            Self::Passed => label("passed", Symbol::Check, Tone::Pass),
            Self::Running => label("running", Symbol::Pointer, Tone::Run),
            Self::Stuck => label("stuck", Symbol::Cross, Tone::Fail),
            Self::Next => label("next", Symbol::Pointer, Tone::Run),
            Self::Retried => label("retried", Symbol::Retry, Tone::Retry),
            Self::Open => label("open", Symbol::Dot, Tone::Open),
        }
    }
}

/// Finds the state of each node of one tree. It does not know which node a session works on.
#[derive(Debug)]
pub struct NodeStates<'t> {
    next: Option<&'t NodeId>,
}

impl<'t> NodeStates<'t> {
    pub fn new(tree: &'t Tree, on_stuck: OnStuck) -> Self {
        let next = match next_selection(tree, on_stuck) {
            Selection::Leaf(choice) => Some(&choice.leaf.id),
            Selection::Stuck(_) | Selection::Complete => None,
        };
        Self { next }
    }

    pub fn of(&self, node: &Node) -> NodeState {
        NodeState::of(NodeFlags {
            passes: node.passes,
            is_running: false,
            is_exhausted: node.is_leaf() && node.is_exhausted(),
            is_next: self.next == Some(&node.id),
            is_tried: node.is_leaf() && node.attempts > 0,
        })
    }
}

/// An annotation as a sentence.
pub fn annotation_text(annotation: &Annotation) -> String {
    match annotation {
        Annotation::GuardFileRestored { path } => {
            format!("the agent changed `{path}` (protected): restored")
        }
        Annotation::GuardFileChanged { path } => {
            format!("the agent changed `{path}` (protected): allowed by the policy")
        }
        Annotation::GuardFileCreated { path } => {
            format!("the agent created `{path}`, which the guard uses: protected from now on")
        }
        Annotation::CheckFileRestored { path } => {
            format!("the agent changed `{path}` (a check): restored")
        }
        Annotation::CheckUnproven { check, red: RedKind::Green } => {
            format!("check `{check}` already succeeded before the work: unproven")
        }
        Annotation::CheckUnproven { check, .. } => {
            format!("check `{check}` gave no result before the work: unproven")
        }
        Annotation::MemoryRestored { path } => {
            format!("the agent changed earlier text of `{path}` (append-only): restored")
        }
        Annotation::KeyRedacted { path } => format!("the agent wrote a key into `{path}`: redacted"),
        Annotation::KeyCommitted { path } => {
            format!("`{path}` contains what looks like a key: look at it before you push")
        }
        Annotation::PlanEdited { added, removed, moved, reordered, reworded } => {
            let counts = [
                ("added", *added),
                ("removed", *removed),
                ("moved", *moved),
                ("reordered", *reordered),
                ("reworded", *reworded),
            ];
            plan_edit_text(&counts)
        }
        Annotation::SelectedTaskEdited => "the agent changed its own task's goal or acceptance".to_owned(),
        Annotation::GuardFilesOmitted { count } => format!("and {count} more files that the guard uses"),
        Annotation::RepairAbandoned => {
            "the tree could not be repaired: the run continues with the last valid one".to_owned()
        }
        Annotation::NothingChanged => "the session changed nothing".to_owned(),
        Annotation::ReviewOverruled => {
            "passed against the reviewer, which had refused the task as often as it may".to_owned()
        }
        Annotation::ConfirmedUnchanged => {
            "passed without a change: two independent sessions answered done".to_owned()
        }
        Annotation::InPlace => "passed by a guard in the work tree, without a room".to_owned(),
        Annotation::IgnoredWorktree => {
            "passed by a guard that had the ignored files of the work tree".to_owned()
        }
        Annotation::Unknown => "an annotation of a newer runner".to_owned(),
    }
}

/// `the agent added 3 tasks, moved 1`.
fn plan_edit_text(counts: &[(&str, usize)]) -> String {
    let mut edits: Vec<String> = Vec::new();
    for (verb, count) in counts.iter().filter(|(_, count)| *count > 0) {
        // The noun after the first number is enough.
        edits.push(match edits.is_empty() {
            true => format!("{verb} {}", counted(*count, "task", "tasks")),
            false => format!("{verb} {count}"),
        });
    }
    format!("the agent {}", edits.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_has_the_first_state_that_applies() {
        let all =
            NodeFlags { passes: true, is_running: true, is_exhausted: true, is_next: true, is_tried: true };
        assert_eq!(NodeState::of(all), NodeState::Passed);
        assert_eq!(NodeState::of(NodeFlags { passes: false, ..all }), NodeState::Running);
        let next = NodeFlags { is_next: true, is_tried: true, ..NodeFlags::default() };
        assert_eq!(NodeState::of(next), NodeState::Next, "next comes before retried");
        assert_eq!(NodeState::of(NodeFlags { is_next: false, ..next }), NodeState::Retried);
        assert_eq!(NodeState::of(NodeFlags::default()), NodeState::Open);
    }

    #[test]
    fn node_states_and_tones_are_serialized_as_their_names() {
        for state in NodeState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        for tone in Tone::ALL {
            assert_eq!(serde_json::to_value(tone).unwrap(), tone.as_str());
        }
    }

    #[test]
    fn every_symbol_has_an_ascii_form() {
        for symbol in Symbol::ALL {
            assert!(symbol.ascii().is_ascii() && symbol.ascii().len() == 1, "{symbol:?}");
            assert_eq!(symbol.glyph().chars().count(), 1, "{symbol:?}");
        }
        let ascii: std::collections::BTreeSet<&str> =
            Symbol::ALL.iter().map(|symbol| symbol.ascii()).collect();
        assert_eq!(ascii.len(), Symbol::ALL.len(), "no two are alike");
        assert_ne!(Symbol::Check.ascii(), "x", "which reads as a failure");
    }

    #[test]
    fn plan_edit_names_the_tasks_once() {
        let edited = |added, moved| {
            annotation_text(&Annotation::PlanEdited { added, removed: 0, moved, reordered: 0, reworded: 0 })
        };
        assert_eq!(edited(3, 0), "the agent added 3 tasks");
        assert_eq!(edited(0, 1), "the agent moved 1 task");
        assert_eq!(edited(3, 1), "the agent added 3 tasks, moved 1");
    }
}
