//! Verification: derives every commit of a run again, from the commit before it and from the agent's and guard's results that
//! it records, and compares.
//!
//! The rules are those of [`step`](crate::step): this module plans and settles with the same functions. An agent's answer and a
//! guard's output cannot be derived; they are taken from the commit and must be the same wherever the commit holds them.
//! Nothing here reads git: the commits come from an [`AuditSource`], one by one, oldest first.

mod approval;
mod audit_source;
mod auditor;
mod candidate;
mod checks;
mod compare;
mod documents;
mod edit;
mod file_rules;
mod heldout;
mod iteration;
mod reconstruct;
mod rule;
mod run_audit;
mod snapshot;
mod start;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

pub use audit_source::{AuditSource, ChangedPaths, CommitRecord, RawChange, StoredBlob, StoredFile};
pub use auditor::Auditor;
pub use checks::{CheckFileAfter, FrozenFile};
pub use rule::Rule;
pub use run_audit::{
    CheckedCommit, RunAudit, RunAuditResult, StepBack, base_before, base_within, files_at, state_at,
    step_back,
};
pub(crate) use snapshot::is_runner_path;
pub use snapshot::{Files, StepDocuments, all_checks, is_read, kept, snapshot};

use crate::checks::coverage::Coverage;
use crate::commit_message::CommitKind;
use crate::guard_files::DerivedProtection;
use crate::model::id::{IterationNumber, NodeId};
use crate::model::instructions::PinnedInstructions;
use crate::model::object_id::TreeId;
use crate::model::repo_path::RepoPath;
use crate::step::Outcome;

/// A commit as git has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedCommit {
    pub id: String,
    pub parents: Vec<String>,
    /// The message, byte for byte.
    pub message: Vec<u8>,
    /// The differences from the first parent.
    pub changes: Vec<CommitChange>,
    /// Every protected path that exists in the commit; only set where the patterns may have changed.
    pub protected: Option<BTreeSet<Vec<u8>>>,
    /// The commit's tree with the runner's documents of its first parent, and with the check files of the task where the
    /// iteration did not commit them, if the message names a candidate: the tree that the guard must have seen.
    pub candidate: Option<TreeId>,
    /// What is at the destinations that [`Auditor::frozen_files`] names.
    pub check_files: Vec<CheckFileAfter>,
    /// What the commit must record as protected: a start by its configuration and files, a commit after new checks by those and
    /// the files of its parent.
    pub protection: Option<DerivedProtection>,
    /// What a start must record as the repository's instructions, by its configuration and files.
    pub instructions: Option<PinnedInstructions>,
    /// Changed files whose content is not that of their object id.
    pub damaged: Vec<RepoPath>,
}

/// A path that a commit changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitChange {
    /// From the repository's root, as git has it.
    pub path: Vec<u8>,
    pub now: FileAfter,
    /// Whether the run's patterns protect the path.
    pub is_protected: bool,
}

impl CommitChange {
    /// Whether the change decides how the run works: a file of the runner's, or one that the run protects. In a commit of the
    /// user's it takes effect with `runner start` alone.
    fn needs_start(&self) -> bool {
        self.is_protected || is_runner_path(&self.path)
    }
}

/// What is at a path after a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileAfter {
    Deleted,
    /// A regular file; with its bytes where [`is_read`] is true.
    File(Option<Vec<u8>>),
    /// A symbolic link or a submodule.
    Other,
}

/// The state before the first commit of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditBase {
    /// The commit, if there is one.
    pub commit: Option<String>,
    /// Its files where [`is_read`] is true.
    pub files: BTreeMap<Vec<u8>, Vec<u8>>,
    pub protected: BTreeSet<Vec<u8>>,
    pub start: AuditStart,
}

/// Where in a run an audit begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AuditStart {
    /// Before the run: its first commit must start it.
    #[default]
    Before,
    /// Within the run. Holds the protected paths at the run's last start, if that commit can be reached.
    Within(Option<BTreeSet<Vec<u8>>>),
}

/// The result for one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommitAudit {
    pub commit: String,
    #[serde(flatten)]
    pub kind: CommitKind,
    /// The outcome that the commit records.
    pub outcome: Option<Outcome>,
    /// The annotations that the commit records.
    pub annotations: Vec<String>,
    pub findings: Vec<AuditFinding>,
    /// What could not be checked.
    pub unchecked: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditFinding {
    pub commit: String,
    /// The commit's iteration, if it is one.
    pub iter: Option<IterationNumber>,
    pub rule: Rule,
    /// What the rule requires.
    pub expected: String,
    /// What the commit holds.
    pub found: String,
}

/// The result for the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditSummary {
    /// Rules that the end of the history violates.
    pub findings: Vec<AuditFinding>,
    pub iterations: usize,
    /// The leaves that passed, in their order in the tree.
    pub passed: Vec<NodeId>,
    /// Whether the root passes and the final check, if it is configured, succeeded.
    pub is_complete: bool,
    /// How much of the acceptance is proven.
    pub coverage: Coverage,
}

/// What an audit comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every commit of the run was checked, and every rule holds.
    Verified,
    /// A rule is violated.
    Violated,
    /// What could be checked holds, but something could not be checked.
    Partial,
}

impl Verdict {
    pub fn new(findings: &[AuditFinding], unchecked: &[String]) -> Self {
        match (findings.is_empty(), unchecked.is_empty()) {
            (false, _) => Self::Violated,
            (true, false) => Self::Partial,
            (true, true) => Self::Verified,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Violated => "violated",
            Self::Partial => "partial",
        }
    }
}
