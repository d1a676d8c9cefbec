//! Proof after the fact: every commit of a run, derived again from the one before it and from what it records of the
//! agent's and the guard's results.
//!
//! The rules are those of [`step`](crate::step): this module plans and settles with the same functions and compares. What
//! an agent said and what a guard printed cannot be derived; it is taken from the commit and must be the same wherever the
//! commit holds it. Nothing here reads git: the host hands the commits over one by one, oldest first.

mod auditor;
mod compare;
mod documents;
mod edit;
mod iteration;
mod reconstruct;
mod record;
mod rule;
mod snapshot;
mod start;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

pub use auditor::Auditor;
pub use record::{CommitKind, IterationTarget, kind};
pub use rule::Rule;
pub use snapshot::{Files, StepDocuments, is_read, kept, snapshot};

use crate::model::id::{IterationNumber, NodeId};
use crate::step::Outcome;

/// A commit as git has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedCommit {
    /// Its name.
    pub id: String,
    /// Its parents.
    pub parents: Vec<String>,
    /// Its message, byte for byte.
    pub message: Vec<u8>,
    /// What differs from the first parent.
    pub changes: Vec<CommitChange>,
    /// Every protected path that is there, told where the patterns may be others than before.
    pub protected: Option<BTreeSet<Vec<u8>>>,
}

/// A path that a commit changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitChange {
    /// From the repository's root, as git has it.
    pub path: Vec<u8>,
    /// What is there now.
    pub now: FileAfter,
    /// Whether the run's patterns protect it.
    pub is_protected: bool,
}

/// What is at a path after a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileAfter {
    /// Nothing.
    Deleted,
    /// A plain file; its bytes where [`is_read`] asks for them.
    File(Option<Vec<u8>>),
    /// A link, a repository.
    Other,
}

/// What an audit begins with: the state before its first commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditBase {
    /// The commit, if there is one.
    pub commit: Option<String>,
    /// The files there that [`is_read`] asks for.
    pub files: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The protected paths there.
    pub protected: BTreeSet<Vec<u8>>,
    /// Where in the run it is.
    pub start: AuditStart,
}

/// Where in a run an audit begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AuditStart {
    /// Before it: the first commit must start it.
    #[default]
    Before,
    /// Within it. The protected paths of its last start, if that commit can be reached.
    Within(Option<BTreeSet<Vec<u8>>>),
}

/// What was found of one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommitAudit {
    /// The commit.
    pub commit: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: CommitKind,
    /// How the iteration ended, as its commit says.
    pub outcome: Option<Outcome>,
    /// Marks on guard, plan and work, as the commit has them.
    pub annotations: Vec<String>,
    /// Rules that do not hold.
    pub findings: Vec<AuditFinding>,
    /// What could not be checked.
    pub unchecked: Vec<String>,
}

/// A rule that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditFinding {
    /// The commit that breaks it.
    pub commit: String,
    /// Its iteration, if it is one.
    pub iter: Option<IterationNumber>,
    /// The rule.
    pub rule: Rule,
    /// What the rule asks for.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// What is known at the end of an audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditSummary {
    /// Rules that the end breaks.
    pub findings: Vec<AuditFinding>,
    /// How many iterations there were.
    pub iterations: usize,
    /// The nodes that passed, in their order.
    pub passed: Vec<NodeId>,
    /// Whether the root passes.
    pub is_complete: bool,
}
