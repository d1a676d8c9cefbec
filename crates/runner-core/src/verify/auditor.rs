//! The auditor: takes the commits of a run, oldest first, and reports the rules that each one violates.

mod guard_record;
mod last_commit;
mod user_changes;

use std::collections::{BTreeMap, BTreeSet};

use self::last_commit::LastCommit;
use super::checks::{self, CheckAuthor, FrozenFile, PlanChange};
use super::compare::{self, Difference, shown};
use super::documents::DecodedDocuments;
use super::edit;
use super::file_rules::{instructions_difference, plan_scope_differences, protection_difference};
use super::heldout;
use super::iteration::{IterationAudit, subject_differences};
use super::snapshot::{self, Files, goal_id, is_runner_path};
use super::start::{self, ForkStart};
use super::{
    AuditBase, AuditFinding, AuditStart, AuditSummary, AuditedCommit, CommitAudit, CommitChange, FileAfter,
    Rule,
};
use crate::checks::coverage::{Coverage, coverage};
use crate::commit_message::{CommitKind, MessageParts, Trailer};
use crate::layout::{Doc, RUNNER_DIR};
use crate::model::agent_output::AgentStatus;
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::repo_path::RepoPath;
use crate::model::run_state::RunState;
use crate::model::tree::Node;
use crate::runs::start::unseeded_tree;
use crate::step::{
    FinalState, GuardOccasion, NextStep, Outcome, SessionRequest, StopReason, final_state, plan,
    session_request,
};

/// The state of a run after the commits so far, from which the next commit must follow.
#[derive(Clone, Debug)]
pub struct Auditor {
    run: RunId,
    pub(super) last: LastCommit,
    pub(super) files: Files,
    pub(super) docs: DecodedDocuments,
    pub(super) start: StartState,
    /// The protected paths that exist.
    pub(super) protected: BTreeSet<Vec<u8>>,
    /// Commits of the user's own that no commit of the runner's counts yet.
    user_commits: Vec<UserCommit>,
    /// Files that the user's own commits changed and that take effect with a start alone.
    pub(super) unstarted: BTreeSet<RepoPath>,
    iterations: usize,
    /// The tasks that passed in the commits so far, with the iteration.
    pub(super) passes: BTreeMap<NodeId, IterationNumber>,
}

/// Whether the run has started, and which protected paths existed then.
#[derive(Clone, Debug)]
pub(super) enum StartState {
    NotStarted,
    Started {
        protected: BTreeSet<Vec<u8>>,
    },
    /// The history begins after the start; the protected paths of its first commit are used instead.
    Unreachable {
        protected_at_base: BTreeSet<Vec<u8>>,
    },
}

#[derive(Clone, Debug)]
struct UserCommit {
    id: String,
    subject: String,
}

/// A commit while it is checked: its message, and the state before and after it.
struct CommitContext<'a> {
    commit: &'a AuditedCommit,
    kind: &'a CommitKind,
    text: &'a str,
    parts: MessageParts<'a>,
    files_before: &'a Files,
    after: &'a DecodedDocuments,
}

impl Auditor {
    pub fn new(run: RunId, base: AuditBase) -> Self {
        let docs = DecodedDocuments::decode(&base.files);
        let start = match base.start {
            AuditStart::Before => StartState::NotStarted,
            AuditStart::Within(Some(protected)) => StartState::Started { protected },
            AuditStart::Within(None) => StartState::Unreachable { protected_at_base: base.protected.clone() },
        };
        // A history that begins within a run may begin after an iteration; the state has its number.
        let last_iter = match (&start, &docs.state) {
            (StartState::NotStarted, _) | (_, None) => None,
            (_, Some(state)) => IterationNumber::new(state.next_iter.get() - 1),
        };
        let approved_plan = docs.approved_plan(&base.files);
        Self {
            run,
            last: LastCommit { id: base.commit, iter: last_iter, approved_plan },
            files: base.files,
            docs,
            start,
            protected: base.protected,
            user_commits: Vec::new(),
            unstarted: BTreeSet::new(),
            iterations: 0,
            passes: BTreeMap::new(),
        }
    }

    /// The check files of the task that the next commit works on, if it is an iteration: [`AuditedCommit::check_files`] is
    /// about them.
    pub fn frozen_files(&self, message: &[u8]) -> Vec<FrozenFile> {
        checks::frozen_files(&self.files, &CommitKind::parse(message))
    }

    /// Checks the next commit.
    pub fn check(&mut self, commit: &AuditedCommit) -> CommitAudit {
        let kind = CommitKind::parse(&commit.message);
        let text = String::from_utf8_lossy(&commit.message).into_owned();
        let files_before = self.files.clone();
        self.apply(commit);
        let mut invalid = Vec::new();
        let after = self.docs.after(&files_before, &self.files, &kind, &mut invalid);
        let context = CommitContext {
            commit,
            kind: &kind,
            text: &text,
            parts: MessageParts::parse(&text),
            files_before: &files_before,
            after: &after,
        };
        let mut differences: Vec<Difference> =
            self.last.parent_difference(context.kind, &context.commit.parents).into_iter().collect();
        let fork = self.fork_differences(&context);
        let is_fork = fork.is_some();
        differences.extend(fork.into_iter().flatten());
        differences.extend(self.identity_differences(&kind));
        if !self.is_started() && (is_fork || !matches!(kind, CommitKind::Start { .. })) {
            let expected = CommitKind::Start { run_id: self.run.clone() }.to_string();
            differences.push(Difference::new(Rule::StartMissing, expected, shown(context.parts.subject)));
        }
        differences.extend(commit.damaged.iter().map(|path| {
            Difference::new(Rule::Object, format!("the content of {path} by its id"), "another content")
        }));
        differences.extend(self.unstarted_differences(&kind));
        differences.extend(self.follow_checks(&kind, commit, context.after.state.as_ref()));
        differences.extend(invalid);
        if !matches!(kind, CommitKind::User { .. }) {
            differences.extend(checks::invalid_differences(commit, &self.files, after.tree.as_ref()));
        }
        let mut unchecked = Vec::new();
        differences.extend(self.kind_differences(&context, is_fork, &mut unchecked));
        let mut findings = Vec::new();
        if !matches!(kind, CommitKind::User { .. }) {
            findings.extend(self.uncounted_user_commits(&context.parts));
        }
        findings.extend(differences.into_iter().map(|found| finding(&commit.id, kind.iter(), found)));
        let outcome = context.parts.value(Trailer::Outcome).and_then(Outcome::from_name);
        let annotations = context.parts.values(Trailer::Annotation).map(shown).collect();
        if let (Some(node), Some(iter), Some(Outcome::Passed)) = (kind.node(), kind.iter(), outcome) {
            self.passes.insert(node.clone(), iter);
        }
        self.advance(commit, &kind, after);
        CommitAudit { commit: commit.id.clone(), kind, outcome, annotations, findings, unchecked }
    }

    /// What the rules for the commit's kind report.
    fn kind_differences(
        &mut self,
        context: &CommitContext<'_>,
        is_fork: bool,
        unchecked: &mut Vec<String>,
    ) -> Vec<Difference> {
        let mut differences = Vec::new();
        match context.kind {
            CommitKind::Start { .. } if is_fork => {}
            CommitKind::Start { .. } => differences.extend(self.start_differences(context)),
            CommitKind::Iteration { status, .. } => {
                self.iterations += 1;
                differences.extend(self.iteration_differences(context, *status, unchecked));
            }
            CommitKind::Baseline { .. } => {
                differences.extend(self.guard_record_differences(context, GuardOccasion::Baseline));
            }
            CommitKind::Milestone { .. } => {
                differences.extend(self.guard_record_differences(context, GuardOccasion::Milestone));
            }
            CommitKind::Final { .. } => {
                differences.extend(self.guard_record_differences(context, GuardOccasion::Final));
            }
            CommitKind::Edit { .. } => differences.extend(self.edit_differences(context)),
            CommitKind::Malformed { subject } => {
                let expected = "a subject that the runner writes";
                differences.push(Difference::new(Rule::Message, expected, shown(subject)));
            }
            CommitKind::User { subject } => {
                self.user_commits
                    .push(UserCommit { id: context.commit.id.clone(), subject: subject.clone() });
                let changes = context.commit.changes.iter().filter(|change| change.needs_start());
                self.unstarted.extend(changes.map(|change| RepoPath::of_bytes(&change.path)));
                differences.extend(self.user_commit_differences(context.after));
            }
        }
        differences
    }

    /// What the whole history comes to.
    pub fn finish(self) -> AuditSummary {
        let findings = self.user_commits.iter().map(foreign_commit).collect();
        let mut passed = Vec::new();
        if let Some(tree) = &self.docs.tree {
            collect_passed(tree.root(), &mut passed);
        }
        let coverage = self.coverage();
        let has_passed = self.docs.tree.is_some_and(|tree| tree.root().passes);
        let is_reproduced = match (&self.docs.config, &self.docs.state) {
            (Some(config), Some(state)) => final_state(config, state) == FinalState::Reproduced,
            (None, _) | (_, None) => false,
        };
        let is_complete = has_passed && is_reproduced && self.user_commits.is_empty();
        AuditSummary { findings, iterations: self.iterations, passed, is_complete, coverage }
    }

    /// How much of the acceptance the last commit proves.
    fn coverage(&self) -> Coverage {
        let (Some(tree), Some(state)) = (&self.docs.tree, &self.docs.state) else {
            return Coverage::default();
        };
        let checks = snapshot::all_checks(&self.files, tree);
        coverage(tree, &checks, state)
    }

    pub(super) fn is_started(&self) -> bool {
        !matches!(self.start, StartState::NotStarted)
    }

    pub(super) fn is_start_unreachable(&self) -> bool {
        matches!(self.start, StartState::Unreachable { .. })
    }

    pub(super) fn user_commit_count(&self) -> u32 {
        u32::try_from(self.user_commits.len()).unwrap_or(u32::MAX)
    }

    /// Applies the changes of a commit to the files and the protected paths.
    fn apply(&mut self, commit: &AuditedCommit) {
        for CommitChange { path, now, is_protected } in &commit.changes {
            match now {
                FileAfter::File(Some(bytes)) => drop(self.files.insert(path.clone(), bytes.clone())),
                FileAfter::File(None) => {}
                FileAfter::Deleted | FileAfter::Other => drop(self.files.remove(path)),
            }
            if *is_protected {
                match now {
                    FileAfter::Deleted => self.protected.remove(path),
                    FileAfter::File(_) | FileAfter::Other => self.protected.insert(path.clone()),
                };
            }
        }
        if let Some(protected) = &commit.protected {
            self.protected.clone_from(protected);
        }
    }

    fn advance(&mut self, commit: &AuditedCommit, kind: &CommitKind, after: DecodedDocuments) {
        self.last.id = Some(commit.id.clone());
        self.last.iter = kind.iter();
        if matches!(kind, CommitKind::Start { .. }) {
            self.start = StartState::Started { protected: self.protected.clone() };
        } else if matches!(kind, CommitKind::Iteration { .. }) && !self.is_started() {
            self.start = StartState::Started { protected: BTreeSet::new() };
        }
        self.docs = after;
        if !matches!(kind, CommitKind::User { .. }) {
            self.last.approved_plan = self.docs.approved_plan(&self.files);
        }
    }

    /// A start that forks the run so far: the rules it violates. From here on the fork is the run.
    fn fork_differences(&mut self, context: &CommitContext<'_>) -> Option<Vec<Difference>> {
        let CommitKind::Start { run_id } = context.kind else { return None };
        if *run_id == self.run || context.parts.fork_origin().is_none() {
            return None;
        }
        let forked = std::mem::replace(&mut self.run, run_id.clone());
        let fork = ForkStart {
            from: &forked,
            from_iter: self.last.iter,
            run: run_id,
            files_before: context.files_before,
            state_before: self.docs.state.as_ref(),
            files_after: &self.files,
            state_after: context.after.state.as_ref(),
        };
        Some(fork.differences(context.commit, context.text))
    }

    /// Message and goal must name this run.
    fn identity_differences(&self, kind: &CommitKind) -> Vec<Difference> {
        let mut differences = Vec::new();
        let mut compare = |place: &str, named: Option<&RunId>| {
            if named != Some(&self.run) {
                let found = named.map_or_else(|| "no run".to_owned(), |name| format!("run {name}"));
                let expected = format!("run {} in {place}", self.run);
                differences.push(Difference::new(Rule::Identity, expected, found));
            }
        };
        if let Some(named) = kind.run_id() {
            compare("the message", Some(named));
        }
        compare(Doc::Goal.path(), goal_id(&self.files).as_ref());
        differences
    }

    /// A commit of `runner start`: the first begins with a fresh state and an open tree; a later one may change what the user
    /// owns.
    fn start_differences(&self, context: &CommitContext<'_>) -> Vec<Difference> {
        let CommitContext { commit, parts, after, .. } = context;
        let mut differences = Vec::new();
        if let Some(change) = commit.changes.iter().find(|change| !is_runner_path(&change.path)) {
            let path = RepoPath::of_bytes(&change.path).to_string();
            let expected = format!("changes under {RUNNER_DIR}/ alone");
            differences.push(Difference::new(Rule::StartScope, expected, path));
        }
        let mut allowed = vec![Trailer::UserCommits.key(), Trailer::PlanImport.key()];
        if !self.is_started() {
            allowed.push(Trailer::Base.key());
        }
        if !parts.body.is_empty() || parts.trailers.iter().any(|(key, _)| !allowed.contains(key)) {
            differences.push(Difference::new(Rule::Message, parts.subject, shown(parts.body)));
        }
        let state = self.docs.state.as_ref();
        // What stands below the first start is not the run's, whatever it contains.
        let is_continued = self.is_started();
        let fresh = RunState::new(Some(self.run.clone()));
        let before = if is_continued { state } else { Some(&fresh) };
        if let (Some(before), Some(is)) = (before, &after.state) {
            let expected = self.state_after_start(before, is, after.tree.as_ref());
            differences.extend(compare::states(&expected, is));
            differences.extend(heldout::unconfigured_difference(after.config.as_ref(), is));
            differences.extend(protection_difference(commit, is));
            differences.extend(instructions_difference(commit, is));
        }
        if let Some(value) = parts.value(Trailer::PlanImport) {
            let before = self.docs.tree.as_ref();
            differences.extend(start::import_difference(value, before, after.tree.as_ref()));
        }
        let is_fresh = state.is_none_or(|state| state.next_iter == IterationNumber::FIRST);
        let known = self.docs.tree.as_ref().filter(|_| is_continued && !is_fresh);
        let known = known.cloned().unwrap_or_else(unseeded_tree);
        if let Some(tree) = &after.tree {
            differences.extend(edit::user_edit_differences(&known, tree));
        }
        differences
    }

    /// An iteration: planned and settled again, and compared.
    fn iteration_differences(
        &self,
        context: &CommitContext<'_>,
        status: AgentStatus,
        unchecked: &mut Vec<String>,
    ) -> Vec<Difference> {
        let mut differences = self.forbidden_changes(context.commit);
        let change = PlanChange { before: self.docs.tree.as_ref(), after: context.after.tree.as_ref() };
        let (before, after) = (context.files_before, &self.files);
        let request = session_request(context.kind);
        let is_plan = request == SessionRequest::Plan;
        let is_planned = context.parts.value(Trailer::Outcome) == Some(Outcome::Planned.as_str());
        let author = if is_plan && is_planned { CheckAuthor::Plan } else { CheckAuthor::Session };
        differences.extend(checks::frozen_differences(context.commit, before, after, change, author));
        if is_plan {
            differences.extend(plan_scope_differences(context.commit));
        }
        differences.extend(self.rewritten_memory(context.files_before));
        let Some(docs) = self.docs.complete() else {
            unchecked
                .push("what follows from the commit before, whose documents cannot be decoded".to_owned());
            return differences;
        };
        let user_commits = self.user_commit_count();
        let snapshot = snapshot::snapshot(context.files_before, &self.run, docs, user_commits);
        let Some(snapshot) = snapshot else {
            unchecked.push("what follows from the goal before, which cannot be parsed".to_owned());
            return differences;
        };
        let job = match plan(&snapshot, request) {
            Ok(NextStep::Work(job)) => job,
            Ok(step @ (NextStep::Stop(_) | NextStep::Milestone(_) | NextStep::FinalCheck(_))) => {
                let reason = match &step {
                    NextStep::Stop(stop) => stop.as_str(),
                    NextStep::Milestone(_) => "checks of passed tasks are due",
                    NextStep::FinalCheck(_) | NextStep::Work(_) => StopReason::Complete.as_str(),
                };
                let expected = format!("no iteration: {reason}");
                differences.push(Difference::new(Rule::Stopped, expected, shown(context.parts.subject)));
                return differences;
            }
            Err(error) => {
                let found = shown(&error.to_string());
                differences.push(Difference::new(Rule::Prompt, "a prompt can be composed", found));
                return differences;
            }
        };
        let wrong_subject = subject_differences(&job, context.kind);
        if !wrong_subject.is_empty() {
            differences.extend(wrong_subject);
            return differences;
        }
        if let (Some(tree), Some(state)) = (&context.after.tree, &context.after.state) {
            let audit = IterationAudit {
                auditor: self,
                commit: context.commit,
                text: context.text,
                status,
                snapshot: &snapshot,
                job: &job,
                tree,
                state,
            };
            differences.extend(audit.differences(unchecked));
        }
        differences
    }

    /// The user's own commits before this one, unless this one counts them. The first start counts none.
    fn uncounted_user_commits(&mut self, parts: &MessageParts<'_>) -> Vec<AuditFinding> {
        let counted = parts.value(Trailer::UserCommits).and_then(|count| count.parse::<usize>().ok());
        let user_commits = std::mem::take(&mut self.user_commits);
        if counted.unwrap_or_default() == user_commits.len() || !self.is_started() {
            return Vec::new();
        }
        user_commits.iter().map(foreign_commit).collect()
    }
}

fn finding(commit: &str, iter: Option<IterationNumber>, difference: Difference) -> AuditFinding {
    let Difference { rule, expected, found } = difference;
    AuditFinding { commit: commit.to_owned(), iter, rule, expected, found }
}

fn foreign_commit(commit: &UserCommit) -> AuditFinding {
    let expected = "a commit of the runner, or one that its next commit counts";
    finding(&commit.id, None, Difference::new(Rule::ForeignCommit, expected, shown(&commit.subject)))
}

fn collect_passed(node: &Node, passed: &mut Vec<NodeId>) {
    if node.is_leaf() && node.passes {
        passed.push(node.id.clone());
    }
    node.children.iter().for_each(|child| collect_passed(child, passed));
}
