//! Attempt to claim: what a session's leavings mean under the rules. Nothing of it is believed yet.

use super::attempt::{Attempt, ChangeScope, LeftFile, ProtectedPath, SessionExit, Usage};
use super::merge::{PlanEdit, merge, plan_edits};
use super::next_state::NoteList;
use super::outcome::Outcome;
use super::plan::{Job, SessionTarget};
use super::snapshot::Snapshot;
use super::tree_rules::{Violation, tree_violations};
use crate::config::ProtectPolicy;
use crate::model::agent_output::{AgentOutput, AgentStatus};
use crate::model::repo_path::RepoPath;
use crate::model::tree::{AgentTree, Tree, TreeError, TreeProblem};
use crate::text::head;

/// How much of a rejected tree is kept for its repair; the whole is in the iteration's folder.
pub const REJECTED_BYTES_MAX: usize = 32 << 10;

/// What a session claims, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// How the session ended.
    pub exit: SessionExit,
    pub finding: SessionFinding,
    /// What is wrong with the session, for people and for the next prompt.
    pub notes: NoteList,
    /// What it did to protected files.
    pub protected: ProtectedReport,
    /// Whether it changed anything outside `.runner/`.
    pub work: ChangeScope,
    /// What it cost.
    pub usage: Usage,
    /// How many processes it left behind.
    pub processes_left: u32,
}

/// What a session's leavings mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionFinding {
    /// There is no answer that counts.
    NoAnswer {
        /// How the iteration ends.
        outcome: Outcome,
        /// What is known of the cause.
        why: Vec<String>,
    },
    /// There is an answer, but the tree is none.
    InvalidTree {
        /// The answer.
        answer: AgentOutput,
        /// The tree as it was left, from its beginning.
        rejected: String,
        /// What is wrong with it.
        errors: Vec<String>,
        /// Other rules that were broken.
        violations: Vec<Violation>,
    },
    /// There is an answer and a tree, and rules were broken.
    RuleViolations {
        /// The answer.
        answer: AgentOutput,
        /// The tree as it was left, from its beginning.
        rejected: String,
        /// The rules.
        violations: Vec<Violation>,
    },
    /// There is an answer, and every rule was kept.
    Accepted {
        /// The answer.
        answer: AgentOutput,
        /// The agent's plan with the runner's own fields as they were before.
        tree: Box<Tree>,
        /// What changed in the plan.
        edits: Vec<PlanEdit>,
    },
}

/// What a session did to protected files, by the run's policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtectedReport {
    /// Changed although pinned: to be put back as the last commit has them, before the guard and in the commit.
    pub restore: Vec<RepoPath>,
    /// Changed although pinned, and let pass with a mark.
    pub flagged: Vec<RepoPath>,
    /// Younger than the run, there now, and not pinned yet: pinned by the first pass they take part in.
    pub unpinned: Vec<RepoPath>,
}

impl Claim {
    /// Whether the guard is to be asked: only when a session on a leaf lawfully says `done`.
    pub fn wants_guard(&self, job: &Job) -> bool {
        let done = matches!(
            &self.finding,
            SessionFinding::Accepted { answer: AgentOutput { status: AgentStatus::Done, .. }, .. }
        );
        done && matches!(job.target, SessionTarget::Leaf(_))
    }
}

impl SessionFinding {
    /// Everything that is wrong with the session, one line each.
    fn notes(&self) -> NoteList {
        let mut notes = Vec::new();
        match self {
            Self::NoAnswer { why, .. } => notes.clone_from(why),
            Self::InvalidTree { errors, violations, .. } => {
                notes.extend(errors.iter().map(|error| format!("tree.json: {error}")));
                notes.extend(violations.iter().map(ToString::to_string));
            }
            Self::RuleViolations { violations, .. } => {
                notes.extend(violations.iter().map(ToString::to_string));
            }
            Self::Accepted { .. } => {}
        }
        NoteList::bounded(notes)
    }
}

/// Reads what a session left, strictly, and judges it by all rules at once.
pub fn interpret(snapshot: &Snapshot, job: &Job, attempt: Attempt) -> Claim {
    let protected = protected_report(snapshot, job.protect, attempt.protected);
    let finding = match heard(&attempt.exit, &attempt.answer) {
        Ok(answer) => judged(snapshot, job, answer, &attempt.tree, &protected),
        Err((outcome, why)) => SessionFinding::NoAnswer { outcome, why },
    };
    let Attempt { exit, work, usage, processes_left, .. } = attempt;
    let notes = finding.notes();
    Claim { exit, finding, notes, protected, work, usage, processes_left }
}

/// The answer, if there is one that counts.
fn heard(exit: &SessionExit, answer: &LeftFile) -> Result<AgentOutput, (Outcome, Vec<String>)> {
    let why = |more: Vec<String>| exit.why().into_iter().chain(more).collect();
    if let Some(outcome) = exit.broken_off() {
        return Err((outcome, why(Vec::new())));
    }
    let silent = |more| Err((exit.without_answer(), why(more)));
    match answer {
        LeftFile::Bytes(bytes) => match AgentOutput::decode(bytes) {
            Ok(answer) => Ok(answer),
            Err(problems) => {
                silent(problems.iter().map(|problem| format!("the answer: {problem}")).collect())
            }
        },
        // Who was failed by its provider could not answer: that needs no second line.
        LeftFile::Missing if matches!(exit, SessionExit::Provider { .. }) => silent(Vec::new()),
        LeftFile::Missing => silent(vec!["the agent left no answer".to_owned()]),
        LeftFile::NotAFile => silent(vec!["the answer is no regular file".to_owned()]),
        LeftFile::TooLarge(bytes) => silent(vec![format!("the answer has {bytes} bytes, too many to read")]),
    }
}

fn judged(
    snapshot: &Snapshot,
    job: &Job,
    answer: AgentOutput,
    left: &LeftFile,
    protected: &ProtectedReport,
) -> SessionFinding {
    let refused: &[RepoPath] = if job.protect == ProtectPolicy::Reject { &protected.restore } else { &[] };
    let mut violations: Vec<Violation> =
        refused.iter().map(|path| Violation::Protected { path: path.clone() }).collect();
    let agent = match read_tree(&snapshot.tree, left) {
        Ok(agent) => agent,
        Err(errors) => {
            return SessionFinding::InvalidTree { answer, rejected: rejected_text(left), errors, violations };
        }
    };
    let (before, config) = (&snapshot.tree, &snapshot.config);
    let of_plan = tree_violations(before, &agent, &job.target, answer.status, config.plan.removal);
    violations.splice(0..0, of_plan);
    if !violations.is_empty() {
        return SessionFinding::RuleViolations { answer, rejected: rejected_text(left), violations };
    }
    match merge(before, &agent, config) {
        Ok(tree) => {
            let edits = plan_edits(before, &tree);
            SessionFinding::Accepted { answer, tree: Box::new(tree), edits }
        }
        Err(problems) => {
            let errors = problems.iter().map(ToString::to_string).collect();
            SessionFinding::InvalidTree { answer, rejected: rejected_text(left), errors, violations }
        }
    }
}

/// The tree that was left, or everything that is wrong with it.
fn read_tree(before: &Tree, left: &LeftFile) -> Result<AgentTree, Vec<String>> {
    match left {
        LeftFile::Bytes(bytes) => AgentTree::left_of(before, bytes)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect()),
        LeftFile::Missing => Err(vec!["tree.json is missing: write it again, whole".to_owned()]),
        LeftFile::NotAFile => Err(vec!["tree.json is no regular file: write it as one".to_owned()]),
        LeftFile::TooLarge(bytes) => {
            let fault = TreeError::TooLarge(usize::try_from(*bytes).unwrap_or(usize::MAX));
            Err(vec![TreeProblem { node: String::new(), fault }.to_string()])
        }
    }
}

fn rejected_text(left: &LeftFile) -> String {
    match left {
        LeftFile::Bytes(bytes) => head(&String::from_utf8_lossy(bytes), REJECTED_BYTES_MAX).to_owned(),
        LeftFile::Missing | LeftFile::NotAFile | LeftFile::TooLarge(_) => String::new(),
    }
}

/// A file is pinned if it was there when the run started, or took part in a pass since.
fn protected_report(
    snapshot: &Snapshot,
    protect: ProtectPolicy,
    paths: Vec<ProtectedPath>,
) -> ProtectedReport {
    let mut report = ProtectedReport::default();
    for ProtectedPath { path, existed_at_start, changed, exists } in paths {
        let pinned = existed_at_start || snapshot.state.pinned.contains(&path);
        match (pinned, changed, protect) {
            (true, true, ProtectPolicy::Restore | ProtectPolicy::Reject) => report.restore.push(path),
            (true, true, ProtectPolicy::Flag) => report.flagged.push(path),
            (false, _, _) if exists => report.unpinned.push(path),
            (true, false, _) | (false, _, _) => {}
        }
    }
    for paths in [&mut report.restore, &mut report.flagged, &mut report.unpinned] {
        paths.sort();
        paths.dedup();
    }
    report
}
