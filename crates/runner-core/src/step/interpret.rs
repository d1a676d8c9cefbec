//! Attempt to claim: parses what a session left and checks it against all rules. [`settle`](super::settle) decides by the claim.

use std::collections::BTreeMap;

use super::attempt::{
    Attempt, ChangeScope, FileChanges, KeyReport, LeftFile, ProtectedPath, SessionExit, Usage,
};
use super::growth_rules::growth_violations;
use super::left_checks::LeftChecks;
use super::merge::{PlanEdit, merge, plan_edits};
use super::next_state::NoteList;
use super::outcome::Outcome;
use super::plan::{Job, SessionTarget};
use super::snapshot::Snapshot;
use super::tree_rules::{Violation, question_violation, tree_violations};
use crate::config::ProtectPolicy;
use crate::model::agent_output::{AgentOutput, AgentStatus};
use crate::model::checks::CheckFilePath;
use crate::model::id::NodeId;
use crate::model::repo_path::RepoPath;
use crate::model::tree::index::NodeIndex;
use crate::model::tree::{AgentTree, Tree, TreeError, TreeProblem};
use crate::text::head;
use crate::verify::is_runner_path;

/// The most bytes of a rejected tree that are kept for its repair; the iteration's folder has the whole.
pub const REJECTED_BYTES_MAX: usize = 32 << 10;

/// What a session claims to have done, checked against the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub exit: SessionExit,
    pub finding: SessionFinding,
    /// What is wrong with the session, for people and for the next prompt.
    pub notes: NoteList,
    pub protected: ProtectedReport,
    pub work: ChangeScope,
    /// Whether anything outside `.runner/` is changed after protected files were restored.
    pub kept_work: ChangeScope,
    pub changes: FileChanges,
    /// The checks of tasks that did not exist before the session.
    pub new_checks: BTreeMap<NodeId, LeftChecks>,
    pub usage: Usage,
    /// How many processes the session left behind.
    pub processes_left: u32,
}

impl Claim {
    /// The files to check and to commit as the last commit has them: protected ones, and checks of tasks that are not in this
    /// plan.
    pub(super) fn restored_files(&self, tree: &Tree) -> Vec<RepoPath> {
        let mut restored = self.protected.restore.clone();
        let unplanned = self.new_checks.iter().filter(|(node, _)| tree.path_to(node).is_none());
        restored.extend(unplanned.flat_map(|(node, left)| left.paths(node)));
        restored
    }

    /// The same for the session's own plan.
    pub(super) fn restored_before_guard(&self) -> Vec<RepoPath> {
        match &self.finding {
            SessionFinding::Accepted { tree, .. } => self.restored_files(tree),
            SessionFinding::NoAnswer { .. }
            | SessionFinding::InvalidTree { .. }
            | SessionFinding::RuleViolations { .. } => self.protected.restore.clone(),
        }
    }
}

/// The result of checking a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionFinding {
    /// There is no answer, or it does not count.
    NoAnswer {
        outcome: Outcome,
        /// What is known about the cause.
        why: Vec<String>,
    },
    /// The agent answered, but tree.json is invalid.
    InvalidTree {
        answer: AgentOutput,
        /// The beginning of the rejected tree.json.
        rejected: String,
        errors: Vec<String>,
        /// Violated rules that are not about the tree.
        violations: Vec<Violation>,
    },
    /// The agent answered, and its tree or its changes violate rules.
    RuleViolations {
        answer: AgentOutput,
        /// The beginning of the rejected tree.json.
        rejected: String,
        violations: Vec<Violation>,
    },
    /// The agent answered and violated no rule.
    Accepted {
        answer: AgentOutput,
        /// The agent's plan with the runner's own fields as they were before.
        tree: Box<Tree>,
        edits: Vec<PlanEdit>,
    },
}

/// What a session did to protected files, sorted by the run's policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtectedReport {
    /// Changed although pinned: to be restored from the last commit, before the guard runs and in the commit.
    pub restore: Vec<RepoPath>,
    /// Changed although pinned; the policy allows it with an annotation.
    pub flagged: Vec<RepoPath>,
    /// Check files of the task at their destinations that the session changed: they are restored as they are frozen.
    pub check_files: Vec<RepoPath>,
    /// Newer than the run and not pinned yet: the first pass that they take part in pins them.
    pub unpinned: Vec<RepoPath>,
    /// Memory files in which the session changed earlier text: the runner restored it.
    pub memory: Vec<RepoPath>,
    /// Files outside `.runner/` that a planning session changed: they are not kept.
    pub discarded: Vec<RepoPath>,
    /// Keys in what the session wrote.
    pub keys: KeyReport,
}

impl Claim {
    /// Whether the guard must run: only after an accepted `done` on a leaf.
    pub fn wants_guard(&self, job: &Job) -> bool {
        let is_done = matches!(
            &self.finding,
            SessionFinding::Accepted { answer: AgentOutput { status: AgentStatus::Done, .. }, .. }
        );
        is_done && matches!(job.target, SessionTarget::Leaf(_))
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

/// Parses what a session left, strictly, and checks it against all rules at once.
pub fn interpret(snapshot: &Snapshot, job: &Job, attempt: Attempt) -> Claim {
    let protected = protected_report(snapshot, job, attempt.protected);
    let protected = ProtectedReport {
        memory: attempt.memory,
        discarded: attempt.planning.discarded,
        keys: attempt.keys,
        ..protected
    };
    let finding = match parse_answer(&attempt.exit, &attempt.answer) {
        Ok(answer) => {
            let left = LeftState {
                tree: &attempt.tree,
                protected: &protected,
                checks: &attempt.new_checks,
                questions: attempt.planning.questions,
            };
            check_tree(snapshot, job, answer, &left)
        }
        Err(no_answer) => no_answer,
    };
    let Attempt { exit, work, changes, new_checks, usage, processes_left, .. } = attempt;
    // A planning session does no work: what it changed outside of the plan is not kept.
    let is_planning = matches!(job.target, SessionTarget::Plan(_));
    let work = if is_planning { ChangeScope::Decompose } else { work };
    let notes = finding.notes();
    let is_work = |path: &&RepoPath| !is_runner_path(&path.to_bytes()) && !job.is_destination(path);
    let restored = protected.restore.iter().filter(is_work).count();
    let restored = u32::try_from(restored).unwrap_or(u32::MAX);
    let kept_work = if changes.work_files > restored { ChangeScope::Execute } else { ChangeScope::Decompose };
    Claim { exit, finding, notes, protected, work, kept_work, changes, new_checks, usage, processes_left }
}

/// The answer, or the finding that there is none that counts.
fn parse_answer(exit: &SessionExit, answer: &LeftFile) -> Result<AgentOutput, SessionFinding> {
    let mut why: Vec<String> = exit.why().into_iter().collect();
    if let Some(outcome) = exit.stopped_from_outside() {
        return Err(SessionFinding::NoAnswer { outcome, why });
    }
    match answer {
        LeftFile::Bytes(bytes) => match AgentOutput::decode(bytes) {
            Ok(answer) => return Ok(answer),
            Err(problems) => why.extend(problems.iter().map(|problem| format!("the answer: {problem}"))),
        },
        // An agent whose provider failed could not answer: the failure is explanation enough.
        LeftFile::Missing if matches!(exit, SessionExit::Provider { .. }) => {}
        LeftFile::Missing => why.push("the agent left no answer".to_owned()),
        LeftFile::NotAFile => why.push("the answer is not a regular file".to_owned()),
        LeftFile::TooLarge(bytes) => why.push(format!("the answer is too large: {bytes} bytes")),
    }
    Err(SessionFinding::NoAnswer { outcome: exit.without_answer(), why })
}

/// What a session left besides its answer.
struct LeftState<'a> {
    tree: &'a LeftFile,
    protected: &'a ProtectedReport,
    checks: &'a BTreeMap<NodeId, LeftChecks>,
    questions: u32,
}

fn check_tree(snapshot: &Snapshot, job: &Job, answer: AgentOutput, state: &LeftState<'_>) -> SessionFinding {
    let left = state.tree;
    let mut of_files = Vec::new();
    if job.guard.protect == ProtectPolicy::Reject {
        of_files
            .extend(state.protected.restore.iter().map(|path| Violation::Protected { path: path.clone() }));
    }
    let agent_tree = match read_tree(&snapshot.tree, left) {
        Ok(agent_tree) => agent_tree,
        Err(errors) => {
            let rejected = rejected_text(left);
            return SessionFinding::InvalidTree { answer, rejected, errors, violations: of_files };
        }
    };
    let before = &snapshot.tree;
    let removal = snapshot.config.plan.removal;
    let mut violations = tree_violations(before, &agent_tree, &job.target, answer.status, removal);
    violations.extend(growth_violations(before, &agent_tree, &snapshot.config.limits));
    violations.extend(check_violations(&agent_tree, state.checks));
    if matches!(job.target, SessionTarget::Plan(_)) {
        violations.extend(question_violation(answer.status, state.questions));
    }
    violations.extend(of_files);
    if !violations.is_empty() {
        return SessionFinding::RuleViolations { answer, rejected: rejected_text(left), violations };
    }
    match merge(before, &agent_tree, &snapshot.config, job.target.measured_node()) {
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

/// What is wrong with the checks of the tasks that a session created.
fn check_violations(tree: &AgentTree, checks: &BTreeMap<NodeId, LeftChecks>) -> Vec<Violation> {
    let index = NodeIndex::of(tree.root());
    let mut violations = Vec::new();
    for (node, left) in checks {
        let Some(entry) = index.get(node) else { continue };
        let faults = left.faults(entry.node.acceptance.len());
        violations.extend(
            faults.into_iter().map(|problem| Violation::InvalidChecks { node: node.clone(), problem }),
        );
    }
    violations
}

/// The tree that the session left, or all errors in it.
fn read_tree(before: &Tree, left: &LeftFile) -> Result<AgentTree, Vec<String>> {
    match left {
        LeftFile::Bytes(bytes) => AgentTree::left_of(before, bytes)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect()),
        LeftFile::Missing => Err(vec!["tree.json is missing: write it again, completely".to_owned()]),
        LeftFile::NotAFile => Err(vec!["tree.json is not a regular file: replace it with one".to_owned()]),
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

/// A file is pinned if it existed when the run started, or took part in a pass since.
fn protected_report(snapshot: &Snapshot, job: &Job, paths: Vec<ProtectedPath>) -> ProtectedReport {
    let protect = job.guard.protect;
    let mut report = ProtectedReport::default();
    for ProtectedPath { path, existed_at_start, changed, exists } in paths {
        if job.is_destination(&path) {
            report.check_files.push(path);
            continue;
        }
        // Whatever the policy for the guard's files is, the checks of a task are never an agent's to change.
        if CheckFilePath::parse(&path.to_bytes()).is_some() {
            report.restore.push(path);
            continue;
        }
        let pinned = existed_at_start || snapshot.state.pinned.contains(&path);
        match (pinned, changed, protect) {
            (true, true, ProtectPolicy::Restore | ProtectPolicy::Reject) => report.restore.push(path),
            (true, true, ProtectPolicy::Flag) => report.flagged.push(path),
            (false, _, _) if exists => report.unpinned.push(path),
            (true, false, _) | (false, _, _) => {}
        }
    }
    for paths in [&mut report.restore, &mut report.flagged, &mut report.check_files, &mut report.unpinned] {
        paths.sort();
        paths.dedup();
    }
    report
}
