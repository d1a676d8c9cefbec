//! The messages of the commits that the runner makes: every subject, every trailer, how they are written, parsed and searched
//! for. Steps, starts, forks and edits write them; verification, the host and the page read them.
//!
//! A message is a subject, an optional body that is indented by two spaces, and trailers as the last paragraph. The indent
//! keeps text of agents and users from being parsed as a trailer.

pub mod grep_pattern;
mod landed;
mod reference;
#[cfg(test)]
mod tests;

use std::fmt;

pub use landed::{LandedOrigin, landed_message};
pub use reference::reference;
use serde::{Serialize, Serializer};

use crate::model::agent_output::AgentStatus;
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::run_state::GuardResult;

/// The type and scope of every subject, as Conventional Commits have it.
const SUBJECT_PREFIX: &str = "chore(loop): ";
/// What every trailer key starts with.
const TRAILER_PREFIX: &str = "Runner-";

/// What a commit is, by its subject. `Display` gives the subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CommitKind {
    /// `runner start` or `runner fork` made it; a fork carries [`Trailer::Fork`].
    Start { run_id: RunId },
    Iteration {
        run_id: RunId,
        iter: IterationNumber,
        #[serde(flatten)]
        target: IterationTarget,
        status: AgentStatus,
        guard: GuardResult,
    },
    /// The guard's result before the first session.
    Baseline { run_id: RunId, guard: GuardResult },
    /// The guard's result in a clean checkout, after all tasks passed.
    Final { run_id: RunId, guard: GuardResult },
    /// How the checks of passed tasks ended when they ran again, after a task with parts passed.
    Milestone { run_id: RunId, checks: GuardResult },
    /// A command of the user's changed the plan or the memory.
    Edit { run_id: RunId, edit: EditSubject },
    /// The subject starts like one of the runner's and is not one.
    Malformed { subject: String },
    /// Any other commit.
    User { subject: String },
}

/// What an iteration worked on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "target", content = "node", rename_all = "snake_case")]
pub enum IterationTarget {
    Node(NodeId),
    Repair,
    /// The plan itself: `runner plan make`.
    Plan,
}

/// What an edit changed, as its subject names it: `node add login`, `answer 2`, `note`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditSubject {
    Node { verb: NodeVerb, node: NodeId },
    Answer { question: usize },
    Note,
    PlanApproval,
}

/// The subcommands of `runner node` that make a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeVerb {
    Add,
    Edit,
    Split,
    Remove,
    Move,
    Allow,
}

impl NodeVerb {
    const ALL: [Self; 6] = [Self::Add, Self::Edit, Self::Split, Self::Remove, Self::Move, Self::Allow];

    fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Edit => "edit",
            Self::Split => "split",
            Self::Remove => "remove",
            Self::Move => "move",
            Self::Allow => "allow",
        }
    }
}

impl fmt::Display for EditSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { verb, node } => write!(f, "node {} {node}", verb.as_str()),
            Self::Answer { question } => write!(f, "answer {question}"),
            Self::Note => f.write_str("note"),
            Self::PlanApproval => f.write_str("plan approve"),
        }
    }
}

impl Serialize for EditSubject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl EditSubject {
    fn parse(words: &[&str]) -> Option<Self> {
        match words {
            ["node", verb, node] => {
                let verb = NodeVerb::ALL.into_iter().find(|known| known.as_str() == *verb)?;
                Some(Self::Node { verb, node: NodeId::new(*node).ok()? })
            }
            ["answer", number] => {
                let question: usize = number.parse().ok()?;
                (question.to_string() == *number).then_some(Self::Answer { question })
            }
            ["note"] => Some(Self::Note),
            ["plan", "approve"] => Some(Self::PlanApproval),
            _ => None,
        }
    }
}

impl fmt::Display for CommitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { run_id } => write!(f, "{SUBJECT_PREFIX}start run {run_id}"),
            Self::Iteration { run_id, iter, target, status, guard } => {
                write!(f, "{SUBJECT_PREFIX}run {run_id} iter {iter} ")?;
                match target {
                    IterationTarget::Node(node) => write!(f, "node {node}")?,
                    IterationTarget::Repair => f.write_str("repair")?,
                    IterationTarget::Plan => f.write_str("plan")?,
                }
                write!(f, " status={} guard={}", status.as_str(), guard.as_str())
            }
            Self::Baseline { run_id, guard } => {
                write!(f, "{SUBJECT_PREFIX}run {run_id} baseline guard={}", guard.as_str())
            }
            Self::Final { run_id, guard } => {
                write!(f, "{SUBJECT_PREFIX}run {run_id} final guard={}", guard.as_str())
            }
            Self::Milestone { run_id, checks } => {
                write!(f, "{SUBJECT_PREFIX}run {run_id} milestone checks={}", checks.as_str())
            }
            Self::Edit { run_id, edit } => write!(f, "{SUBJECT_PREFIX}run {run_id} edit {edit}"),
            Self::Malformed { subject } | Self::User { subject } => f.write_str(subject),
        }
    }
}

impl CommitKind {
    /// Whether the commit records what an agent's session, the guard or checks did.
    pub fn is_of_a_run(&self) -> bool {
        match self {
            Self::Iteration { .. } | Self::Baseline { .. } | Self::Final { .. } | Self::Milestone { .. } => {
                true
            }
            Self::Start { .. } | Self::Edit { .. } | Self::Malformed { .. } | Self::User { .. } => false,
        }
    }

    /// What the commit with this message is. A subject that only resembles one of the runner's is [`CommitKind::Malformed`].
    pub fn parse(message: &[u8]) -> Self {
        let text = String::from_utf8_lossy(message);
        let subject = text.lines().next().unwrap_or_default();
        let Some(rest) = subject.strip_prefix(SUBJECT_PREFIX) else {
            return Self::User { subject: subject.to_owned() };
        };
        let words: Vec<&str> = rest.split(' ').collect();
        if !matches!(words.first(), Some(&"run" | &"start")) {
            return Self::User { subject: subject.to_owned() };
        }
        Self::from_words(&words).unwrap_or_else(|| Self::Malformed { subject: subject.to_owned() })
    }

    fn from_words(words: &[&str]) -> Option<Self> {
        match words {
            ["start", "run", run] => Some(Self::Start { run_id: RunId::new(*run).ok()? }),
            ["run", run, "iter", iter, "node", node, status, guard] => {
                let target = IterationTarget::Node(NodeId::new(*node).ok()?);
                iteration(run, iter, target, status, guard)
            }
            ["run", run, "iter", iter, "repair", status, guard] => {
                iteration(run, iter, IterationTarget::Repair, status, guard)
            }
            ["run", run, "iter", iter, "plan", status, guard] => {
                iteration(run, iter, IterationTarget::Plan, status, guard)
            }
            ["run", run, "baseline", guard] => {
                Some(Self::Baseline { run_id: RunId::new(*run).ok()?, guard: guard_result(guard)? })
            }
            ["run", run, "final", guard] => {
                Some(Self::Final { run_id: RunId::new(*run).ok()?, guard: guard_result(guard)? })
            }
            ["run", run, "milestone", checks] => {
                let checks = result(checks.strip_prefix("checks=")?)?;
                Some(Self::Milestone { run_id: RunId::new(*run).ok()?, checks })
            }
            ["run", run, "edit", edit @ ..] => {
                Some(Self::Edit { run_id: RunId::new(*run).ok()?, edit: EditSubject::parse(edit)? })
            }
            _ => None,
        }
    }

    /// The iteration's number, if it is one.
    pub fn iter(&self) -> Option<IterationNumber> {
        match self {
            Self::Iteration { iter, .. } => Some(*iter),
            Self::Start { .. }
            | Self::Baseline { .. }
            | Self::Final { .. }
            | Self::Milestone { .. }
            | Self::Edit { .. }
            | Self::Malformed { .. }
            | Self::User { .. } => None,
        }
    }

    /// The run that the subject names.
    pub fn run_id(&self) -> Option<&RunId> {
        match self {
            Self::Start { run_id }
            | Self::Iteration { run_id, .. }
            | Self::Baseline { run_id, .. }
            | Self::Final { run_id, .. }
            | Self::Milestone { run_id, .. }
            | Self::Edit { run_id, .. } => Some(run_id),
            Self::Malformed { .. } | Self::User { .. } => None,
        }
    }

    /// The node that an iteration worked on.
    pub fn node(&self) -> Option<&NodeId> {
        match self {
            Self::Iteration { target: IterationTarget::Node(node), .. } => Some(node),
            Self::Iteration { target: IterationTarget::Repair | IterationTarget::Plan, .. }
            | Self::Start { .. }
            | Self::Baseline { .. }
            | Self::Final { .. }
            | Self::Milestone { .. }
            | Self::Edit { .. }
            | Self::Malformed { .. }
            | Self::User { .. } => None,
        }
    }
}

fn iteration(
    run: &str,
    iter: &str,
    target: IterationTarget,
    status: &str,
    guard: &str,
) -> Option<CommitKind> {
    let status = status.strip_prefix("status=")?;
    let statuses = [AgentStatus::Done, AgentStatus::Retry, AgentStatus::Decomposed];
    Some(CommitKind::Iteration {
        run_id: RunId::new(run).ok()?,
        iter: iteration_number(iter)?,
        target,
        status: statuses.into_iter().find(|known| known.as_str() == status)?,
        guard: guard_result(guard)?,
    })
}

/// A number in the form in which it is written: at least four digits.
fn iteration_number(text: &str) -> Option<IterationNumber> {
    let number: IterationNumber = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// `guard=pass`, for one.
fn guard_result(word: &str) -> Option<GuardResult> {
    result(word.strip_prefix("guard=")?)
}

fn result(word: &str) -> Option<GuardResult> {
    let results = [GuardResult::Pass, GuardResult::Fail, GuardResult::Skipped];
    results.into_iter().find(|known| known.as_str() == word)
}

/// The subject of a commit that keeps files which recovery found in the work tree. It is on a ref of its own, never on a run's
/// branch.
pub fn stray_files_subject(run: &str) -> String {
    format!("{SUBJECT_PREFIX}save stray files of run {run}")
}

/// The subject of a commit that stores what a session left, before anything is decided about it. It is on a ref of its own,
/// never on a run's branch.
pub fn snapshot_subject(run: &str, iter: IterationNumber) -> String {
    format!("{SUBJECT_PREFIX}store the session of run {run} iter {iter}")
}

/// The subject of a commit that keeps the user's edits of the run's files during a session. It is on a ref of its own, never
/// on a run's branch.
pub fn edits_subject(run: &str, iter: IterationNumber) -> String {
    format!("{SUBJECT_PREFIX}keep edits during run {run} iter {iter}")
}

/// A trailer of the runner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trailer {
    Edit,
    Outcome,
    Attempt,
    Prompt,
    PromptVersion,
    Tree,
    State,
    GuardExit,
    Room,
    Candidate,
    Check,
    Red,
    Heldout,
    Recheck,
    Review,
    Semantics,
    UserCommits,
    PlanImport,
    Base,
    Fork,
    Annotation,
}

impl Trailer {
    pub const ALL: [Self; 21] = [
        Self::Edit,
        Self::Outcome,
        Self::Attempt,
        Self::Prompt,
        Self::PromptVersion,
        Self::Tree,
        Self::State,
        Self::GuardExit,
        Self::Room,
        Self::Candidate,
        Self::Check,
        Self::Red,
        Self::Heldout,
        Self::Recheck,
        Self::Review,
        Self::Semantics,
        Self::UserCommits,
        Self::PlanImport,
        Self::Base,
        Self::Fork,
        Self::Annotation,
    ];

    pub fn key(self) -> &'static str {
        match self {
            Self::Edit => "Runner-Edit",
            Self::Outcome => "Runner-Outcome",
            Self::Attempt => "Runner-Attempt",
            Self::Prompt => "Runner-Prompt",
            Self::PromptVersion => "Runner-Prompt-Version",
            Self::Tree => "Runner-Tree",
            Self::State => "Runner-State",
            Self::GuardExit => "Runner-Guard-Exit",
            Self::Room => "Runner-Room",
            Self::Candidate => "Runner-Candidate",
            Self::Check => "Runner-Check",
            Self::Red => "Runner-Red",
            Self::Heldout => "Runner-Heldout",
            Self::Recheck => "Runner-Recheck",
            Self::Review => "Runner-Review",
            Self::Semantics => "Runner-Semantics",
            Self::UserCommits => "Runner-User-Commits",
            Self::PlanImport => "Runner-Plan-Import",
            Self::Base => "Runner-Base",
            Self::Fork => "Runner-Fork",
            Self::Annotation => "Runner-Annotation",
        }
    }
}

impl fmt::Display for Trailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// A message to be written. `Display` gives the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitMessage {
    kind: CommitKind,
    body: String,
    trailers: Vec<(Trailer, String)>,
}

impl CommitMessage {
    pub fn new(kind: CommitKind) -> Self {
        Self { kind, body: String::new(), trailers: Vec::new() }
    }

    /// Sets the text between subject and trailers; an empty one is left out.
    pub fn body(self, text: &str) -> Self {
        Self { body: text.trim_matches('\n').to_owned(), ..self }
    }

    /// Adds a trailer. The value must be a single line.
    pub fn trailer(mut self, trailer: Trailer, value: impl fmt::Display) -> Self {
        self.trailers.push((trailer, value.to_string()));
        self
    }

    /// Adds the number of the user's own commits since the runner's last one, if there are any.
    pub fn user_commits(self, count: u32) -> Self {
        if count == 0 { self } else { self.trailer(Trailer::UserCommits, count) }
    }
}

impl fmt::Display for CommitMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.kind)?;
        if !self.body.is_empty() {
            f.write_str("\n")?;
            for line in self.body.lines() {
                match line.trim_end() {
                    "" => writeln!(f)?,
                    line => writeln!(f, "  {line}")?,
                }
            }
        }
        if !self.trailers.is_empty() {
            f.write_str("\n")?;
        }
        for (trailer, value) in &self.trailers {
            writeln!(f, "{trailer}: {value}")?;
        }
        Ok(())
    }
}

/// A message in its parts, as any commit may have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageParts<'m> {
    pub subject: &'m str,
    /// The text between subject and trailers, still indented.
    pub body: &'m str,
    pub trailers: Vec<(&'m str, &'m str)>,
}

impl<'m> MessageParts<'m> {
    /// Splits a message. The trailers are its last paragraph, if every line of that is one of the runner's.
    pub fn parse(message: &'m str) -> Self {
        let (subject, rest) = message.split_once('\n').unwrap_or((message, ""));
        let rest = rest.trim_end_matches('\n');
        let (body, last) = rest.rsplit_once("\n\n").unwrap_or(("", rest.trim_start_matches('\n')));
        let trailers: Option<Vec<(&str, &str)>> = last
            .lines()
            .map(|line| line.split_once(": ").filter(|(key, _)| key.starts_with(TRAILER_PREFIX)))
            .collect();
        match trailers {
            Some(trailers) => Self { subject, body: body.trim_matches('\n'), trailers },
            None => Self { subject, body: rest.trim_matches('\n'), trailers: Vec::new() },
        }
    }

    /// The value of a trailer; the first one, if there are several.
    pub fn value(&self, trailer: Trailer) -> Option<&'m str> {
        self.values(trailer).next()
    }

    pub fn values(&self, trailer: Trailer) -> impl Iterator<Item = &'m str> {
        self.trailers.iter().filter(move |(key, _)| *key == trailer.key()).map(|(_, value)| *value)
    }

    /// The body without its indent.
    pub fn text(&self) -> String {
        let lines: Vec<&str> =
            self.body.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
        lines.join("\n")
    }

    /// The run and the iteration that a fork starts from.
    pub fn fork_origin(&self) -> Option<(RunId, IterationNumber)> {
        let (run, iter) = self.value(Trailer::Fork)?.split_once(' ')?;
        Some((RunId::new(run).ok()?, iteration_number(iter)?))
    }
}
