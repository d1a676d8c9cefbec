//! The audit itself: commits go in, oldest first, and what is wrong with each comes out.

use std::collections::BTreeSet;

use super::compare::{self, Difference, shown};
use super::documents::DocumentSet;
use super::edit;
use super::iteration::{IterationAudit, aim_differences};
use super::record::{CommitKind, MessageParts, kind};
use super::snapshot::{self, Files, StepDocuments, goal_id, is_an_iterations, is_runners};
use super::start::{self, ExpectedFork};
use super::{
    AuditBase, AuditFinding, AuditStart, AuditSummary, AuditedCommit, CommitAudit, CommitChange, FileAfter,
    Rule,
};
use crate::config::{Config, ProtectPolicy};
use crate::layout::{Doc, RUNNER_DIR};
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::repo_path::RepoPath;
use crate::model::run_state::RunState;
use crate::model::tree::{Node, Tree};
use crate::runs::fork;
use crate::runs::start::{IMPORTED, unseeded_tree};
use crate::step::baseline;
use crate::step::message::TAKEN_IN;
use crate::step::{NextStep, Outcome, plan};

/// Walks along a run's commits and remembers what the next one must follow from.
#[derive(Clone, Debug)]
pub struct Auditor {
    run: RunId,
    /// The commit before, and what it holds.
    last: Option<String>,
    pub(super) files: Files,
    tree: Option<Tree>,
    pub(super) state: Option<RunState>,
    config: Option<Config>,
    /// Whether the run was started.
    is_begun: bool,
    /// The protected paths at the run's last start, if known.
    pub(super) at_start: Option<BTreeSet<Vec<u8>>>,
    /// Those at the first commit that can be reached, which stand in for them.
    at_base: BTreeSet<Vec<u8>>,
    /// The protected paths that are there.
    pub(super) protected: BTreeSet<Vec<u8>>,
    /// Commits of the user's own that nothing has taken in yet.
    own: Vec<(String, String)>,
    iterations: usize,
    /// The iteration that the last commit was, if it was one.
    last_iter: Option<IterationNumber>,
}

/// The documents of a commit that can be read, and what is wrong with them.
struct DocsAfter {
    tree: Option<Tree>,
    state: Option<RunState>,
    config: Option<Config>,
    differences: Vec<Difference>,
}

impl Auditor {
    /// Begins an audit of a run.
    pub fn new(run: RunId, base: AuditBase) -> Self {
        let (is_begun, at_start) = match base.start {
            AuditStart::Before => (false, Some(BTreeSet::new())),
            AuditStart::Within(at_start) => (true, at_start),
        };
        let read = DocumentSet(&base.files);
        let (tree, state, config) = (read.tree(), read.state(), read.config());
        let state = state.and_then(Result::ok);
        // A line that begins within a run may begin behind an iteration; its state knows which.
        let last_iter = state
            .as_ref()
            .filter(|_| is_begun)
            .and_then(|state| IterationNumber::new(state.next_iter.get() - 1));
        Self {
            run,
            last: base.commit,
            tree: tree.and_then(Result::ok),
            state,
            config: config.and_then(Result::ok),
            files: base.files,
            is_begun,
            at_start,
            at_base: base.protected.clone(),
            protected: base.protected,
            own: Vec::new(),
            iterations: 0,
            last_iter,
        }
    }

    /// Checks the next commit.
    pub fn check(&mut self, commit: &AuditedCommit) -> CommitAudit {
        let kind = kind(&commit.message);
        let before = self.files.clone();
        self.apply(commit);
        let mut after = self.read(&before, &kind);
        let mut differences: Vec<Difference> = self.parents(commit, &kind).into_iter().collect();
        let mut unchecked = Vec::new();
        let text = String::from_utf8_lossy(&commit.message).into_owned();
        let parts = MessageParts::of(&text);
        let forked = self.forked(commit, &kind, (&before, &after), &text);
        let is_fork = forked.is_some();
        differences.extend(forked.into_iter().flatten());
        differences.extend(self.names(&kind));
        if !self.is_begun && (is_fork || !matches!(kind, CommitKind::Start { .. })) {
            differences.push((
                Rule::StartMissing,
                format!("chore(loop): start run {}", self.run),
                shown(parts.subject),
            ));
        }
        differences.append(&mut after.differences);
        let mut findings = Vec::new();
        match &kind {
            CommitKind::Start { .. } if is_fork => {}
            CommitKind::Start { .. } => differences.extend(self.start(commit, &after, &before, &parts)),
            CommitKind::Iteration { .. } => {
                self.iterations += 1;
                differences.extend(self.iteration((commit, &kind), &after, (&before, &text), &mut unchecked));
            }
            CommitKind::Baseline { .. } => differences.extend(self.baseline(commit, &after, &text)),
            CommitKind::Edit { .. } => differences.extend(self.edit(commit, &after, (&before, &text))),
            CommitKind::Malformed { subject } => differences.push((
                Rule::Message,
                "a subject that the runner writes".to_owned(),
                shown(subject),
            )),
            CommitKind::User { subject } => {
                self.own.push((commit.id.clone(), subject.clone()));
                differences.extend(self.own_edit(&after));
            }
        }
        if !matches!(kind, CommitKind::User { .. }) {
            findings.extend(self.taken_in(&parts));
        }
        let iter = kind.iter();
        findings.extend(differences.into_iter().map(|difference| finding(&commit.id, iter, difference)));
        let outcome = parts.value("Runner-Outcome").and_then(Outcome::from_name);
        let marks = parts.trailers.iter().filter(|(key, _)| key.ends_with("-Mark"));
        let marks = marks.map(|(_, value)| shown(value)).collect();
        self.step_forward(commit, &kind, after);
        CommitAudit { commit: commit.id.clone(), kind, outcome, annotations: marks, findings, unchecked }
    }

    /// A start that says that it is a fork of the run so far: what is wrong with it. From now on it is the run.
    fn forked(
        &mut self,
        commit: &AuditedCommit,
        kind: &CommitKind,
        (before, after): (&Files, &DocsAfter),
        text: &str,
    ) -> Option<Vec<Difference>> {
        let CommitKind::Start { run_id } = kind else { return None };
        if *run_id == self.run || fork::origin(&commit.message).is_none() {
            return None;
        }
        let old = std::mem::replace(&mut self.run, run_id.clone());
        let fork = ExpectedFork {
            from: (&old, self.last_iter),
            run: run_id,
            before: (before, self.state.as_ref()),
            after: (&self.files, after.state.as_ref()),
        };
        Some(fork.differences(commit, text))
    }

    /// What the end says of the whole.
    pub fn finish(self) -> AuditSummary {
        let findings = self.own.iter().map(|(commit, subject)| unrecorded(commit, subject)).collect();
        let mut passed = Vec::new();
        if let Some(tree) = &self.tree {
            collect_passed(tree.root(), &mut passed);
        }
        let is_complete = self.tree.is_some_and(|tree| tree.root().passes);
        AuditSummary { findings, iterations: self.iterations, passed, is_complete }
    }

    /// Takes the changes of a commit into the files and the protected paths.
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

    /// Reads the documents that the commit changed; the others are known.
    fn read(&self, before: &Files, kind: &CommitKind) -> DocsAfter {
        let docs = DocumentSet(&self.files);
        let is_same = |doc: Doc| snapshot::doc(before, doc) == snapshot::doc(&self.files, doc);
        let mut differences = Vec::new();
        let tree = if is_same(Doc::Tree) && self.tree.is_some() {
            self.tree.clone()
        } else {
            docs.checked_tree(kind, &mut differences)
        };
        let state = if is_same(Doc::RunState) && self.state.is_some() {
            self.state.clone()
        } else {
            docs.checked_state(&mut differences)
        };
        let config = if is_same(Doc::Config) && self.config.is_some() {
            self.config.clone()
        } else {
            docs.checked_config(&mut differences)
        };
        DocsAfter { tree, state, config, differences }
    }

    fn parents(&self, commit: &AuditedCommit, kind: &CommitKind) -> Option<Difference> {
        let is_own = matches!(kind, CommitKind::User { .. });
        let expected = self.last.clone();
        let is_right = if is_own {
            commit.parents.first() == expected.as_ref()
        } else {
            commit.parents.iter().eq(expected.iter())
        };
        let told = |parents: &[String]| match parents {
            [] => "no parent".to_owned(),
            parents => format!("parent {}", parents.join(", ")),
        };
        (!is_right).then(|| (Rule::Parents, told(expected.as_slice()), told(&commit.parents)))
    }

    /// The run that message, goal and state name.
    fn names(&self, kind: &CommitKind) -> Vec<Difference> {
        let in_message = match kind {
            CommitKind::Start { run_id }
            | CommitKind::Iteration { run_id, .. }
            | CommitKind::Baseline { run_id, .. }
            | CommitKind::Edit { run_id, .. } => Some(run_id),
            CommitKind::Malformed { .. } | CommitKind::User { .. } => None,
        };
        let mut wrong = Vec::new();
        let mut compare = |place: &str, named: Option<&RunId>| {
            if named != Some(&self.run) {
                let name = named.map_or_else(|| "no run".to_owned(), |name| format!("run {name}"));
                wrong.push((Rule::Identity, format!("run {} in {place}", self.run), name));
            }
        };
        if let Some(named) = in_message {
            compare("the message", Some(named));
        }
        compare(Doc::Goal.path(), goal_id(&self.files).as_ref());
        wrong
    }

    /// A commit of `runner start`: the first begins with a fresh state and nothing done, a later one takes in what the
    /// user changed.
    fn start(
        &self,
        commit: &AuditedCommit,
        after: &DocsAfter,
        before: &Files,
        parts: &MessageParts<'_>,
    ) -> Vec<Difference> {
        let mut wrong = Vec::new();
        let outside = commit.changes.iter().find(|change| !is_runners(&change.path));
        if let Some(change) = outside {
            let path = RepoPath::of_bytes(&change.path).to_string();
            wrong.push((Rule::StartScope, format!("changes under {RUNNER_DIR}/ alone"), path));
        }
        if !parts.body.is_empty()
            || parts.trailers.iter().any(|(key, _)| *key != TAKEN_IN && *key != IMPORTED)
        {
            wrong.push((Rule::Message, parts.subject.to_owned(), shown(parts.body)));
        }
        let is_continued =
            self.is_begun || self.state.as_ref().and_then(|state| state.run_id.as_ref()) == Some(&self.run);
        let same_state = snapshot::doc(before, Doc::RunState) == snapshot::doc(&self.files, Doc::RunState);
        if !is_continued {
            let fresh = RunState::new(Some(self.run.clone()));
            wrong.extend(after.state.as_ref().and_then(|state| compare::states(&fresh, state)));
        } else if !same_state {
            wrong.extend(
                self.state.as_ref().zip(after.state.as_ref()).and_then(|(was, is)| compare::states(was, is)),
            );
        }
        let imported = parts.value(IMPORTED);
        wrong
            .extend(imported.and_then(|value| start::import(value, self.tree.as_ref(), after.tree.as_ref())));
        let is_fresh = self.state.as_ref().is_none_or(|state| state.next_iter == IterationNumber::FIRST);
        let known =
            self.tree.as_ref().filter(|_| is_continued && !is_fresh).cloned().unwrap_or_else(unseeded_tree);
        wrong.extend(after.tree.as_ref().into_iter().flat_map(|tree| edit::faults(&known, tree)));
        wrong
    }

    /// What a user's own commit may not do to the runner's documents.
    fn own_edit(&self, after: &DocsAfter) -> Vec<Difference> {
        let mut wrong = Vec::new();
        if let (Some(was), Some(is)) = (&self.state, &after.state) {
            wrong.extend(compare::states(was, is));
        }
        if let (Some(was), Some(is)) = (&self.tree, &after.tree) {
            wrong.extend(edit::faults(was, is));
        }
        if self.is_begun && after.tree.is_none() && self.tree.is_some() {
            wrong.push((Rule::TreeInvalid, "a tree".to_owned(), "none that can be read".to_owned()));
        }
        wrong
    }

    /// What the guard said before the first session: recorded once, if it was to be asked, and nothing beside it.
    fn baseline(&self, commit: &AuditedCommit, after: &DocsAfter, text: &str) -> Vec<Difference> {
        let mut wrong = edit::scope(commit, Doc::RunState);
        let (Some(was), Some(is), Some(config)) = (&self.state, &after.state, &self.config) else {
            return wrong;
        };
        let expected = RunState { baseline: is.baseline.clone(), ..was.clone() };
        wrong.extend(compare::states(&expected, is));
        let is_due =
            config.guard.baseline && was.baseline.is_none() && was.next_iter == IterationNumber::FIRST;
        if !is_due || !is.baseline.as_ref().is_some_and(baseline::is_possible) {
            let found = is.baseline.as_ref().map_or_else(|| "none".to_owned(), |it| it.exit.clone());
            let expected = "the guard's first word, before the first iteration".to_owned();
            wrong.push((Rule::Baseline, expected, format!("guard exit {}", shown(&found))));
        }
        if wrong.is_empty() {
            let own_commits = u32::try_from(self.own.len()).unwrap_or(u32::MAX);
            wrong.extend(compare::messages(&baseline::message(&self.run, is, own_commits), text, true));
        }
        wrong
    }

    /// An edit of the user's: made again, and compared.
    fn edit(
        &self,
        commit: &AuditedCommit,
        after: &DocsAfter,
        (before, text): (&Files, &str),
    ) -> Vec<Difference> {
        let (Some(was), Some(state)) = (&self.tree, &self.state) else { return Vec::new() };
        let own_commits = u32::try_from(self.own.len()).unwrap_or(u32::MAX);
        let known = edit::EditContext { run: &self.run, tree: was, state, files: before, own_commits };
        let (Some(tree), Some(new_state)) = (&after.tree, &after.state) else { return Vec::new() };
        edit::differences(&known, (commit, text), (tree, new_state, &self.files))
    }

    /// An iteration: planned and settled again, and compared.
    fn iteration(
        &self,
        (commit, kind): (&AuditedCommit, &CommitKind),
        after: &DocsAfter,
        (before, text): (&Files, &str),
        unchecked: &mut Vec<String>,
    ) -> Vec<Difference> {
        let mut wrong = self.pinned(commit);
        wrong.extend(self.protected_changes(commit));
        let (Some(tree), Some(state), Some(config)) = (&self.tree, &self.state, &self.config) else {
            unchecked.push("what follows from the commit before, which cannot be read".to_owned());
            return wrong;
        };
        let own_commits = u32::try_from(self.own.len()).unwrap_or(u32::MAX);
        let docs = StepDocuments { tree, state, config };
        let Some(snapshot) = snapshot::snapshot(before, &self.run, docs, own_commits) else {
            unchecked.push("what follows from the goal before, which cannot be read".to_owned());
            return wrong;
        };
        let job = match plan(&snapshot) {
            Ok(NextStep::Work(job)) => job,
            Ok(NextStep::Stop(stop)) => {
                wrong.push((
                    Rule::Stopped,
                    format!("no iteration: {}", stop.as_str()),
                    shown(&subject(text)),
                ));
                return wrong;
            }
            Err(fault) => {
                wrong.push((Rule::Prompt, "a prompt can be made".to_owned(), shown(&fault.to_string())));
                return wrong;
            }
        };
        let aimed = aim_differences(&job, kind);
        if !aimed.is_empty() {
            wrong.extend(aimed);
            return wrong;
        }
        let (Some(new_tree), Some(new_state)) = (&after.tree, &after.state) else { return wrong };
        let scene = IterationAudit { auditor: self, commit, snapshot: &snapshot, job: &job, text };
        wrong.extend(scene.settled(kind, new_tree, new_state, unchecked));
        wrong
    }

    /// Files that an iteration must not change.
    fn pinned(&self, commit: &AuditedCommit) -> Vec<Difference> {
        let changed = commit.changes.iter().filter(|change| !is_an_iterations(&change.path));
        changed
            .map(|change| {
                let path = RepoPath::of_bytes(&change.path);
                (Rule::PinnedFile, format!("{path} as before"), format!("{path} changed"))
            })
            .collect()
    }

    /// Protected files that the commit changed although the policy puts them back.
    fn protected_changes(&self, commit: &AuditedCommit) -> Vec<Difference> {
        let policy = self.config.as_ref().map(|config| config.guard.protect);
        if policy == Some(ProtectPolicy::Flag) {
            return Vec::new();
        }
        let changed =
            commit.changes.iter().filter(|change| change.is_protected && self.is_pinned(&change.path));
        changed
            .map(|change| {
                let path = RepoPath::of_bytes(&change.path);
                (Rule::ProtectedFile, format!("{path} as before"), format!("{path} changed"))
            })
            .collect()
    }

    /// Whether a protected path was there at the start, or was pinned by a pass.
    pub(super) fn is_pinned(&self, path: &[u8]) -> bool {
        let at_start = self.at_start.as_ref().unwrap_or(&self.at_base).contains(path);
        let path = RepoPath::of_bytes(path);
        at_start || self.state.as_ref().is_some_and(|state| state.pinned.contains(&path))
    }

    /// The user's own commits before this one: it says that it took them in, or they are nobody's.
    fn taken_in(&mut self, parts: &MessageParts<'_>) -> Vec<AuditFinding> {
        let said = parts.value(TAKEN_IN).and_then(|count| count.parse::<usize>().ok()).unwrap_or_default();
        let own = std::mem::take(&mut self.own);
        let is_first_start = !self.is_begun;
        if said == own.len() || is_first_start {
            return Vec::new();
        }
        own.iter().map(|(commit, subject)| unrecorded(commit, subject)).collect()
    }

    fn step_forward(&mut self, commit: &AuditedCommit, kind: &CommitKind, after: DocsAfter) {
        self.last = Some(commit.id.clone());
        self.last_iter = kind.iter();
        if matches!(kind, CommitKind::Start { .. }) {
            self.is_begun = true;
            self.at_start = Some(self.protected.clone());
        }
        self.is_begun |= matches!(kind, CommitKind::Iteration { .. });
        (self.tree, self.state, self.config) = (after.tree, after.state, after.config);
    }
}

fn subject(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn finding(commit: &str, iter: Option<IterationNumber>, (rule, expected, found): Difference) -> AuditFinding {
    AuditFinding { commit: commit.to_owned(), iter, rule, expected, found }
}

fn unrecorded(commit: &str, subject: &str) -> AuditFinding {
    let expected = "a commit of the runner's, or one that its next commit took in".to_owned();
    finding(commit, None, (Rule::ForeignCommit, expected, shown(subject)))
}

fn collect_passed(node: &Node, passed: &mut Vec<NodeId>) {
    if node.is_leaf() && node.passes {
        passed.push(node.id.clone());
    }
    node.children.iter().for_each(|child| collect_passed(child, passed));
}
