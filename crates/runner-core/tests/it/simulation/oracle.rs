//! Checks every simulated commit without the code under test, and records which cases occurred.

use std::collections::{BTreeMap, BTreeSet};

use runner_core::config::{Config, OnStuck, ProtectPolicy, RemovalPolicy, UnchangedPolicy};
use runner_core::model::digest::Sha256;
use runner_core::model::id::NodeId;
use runner_core::model::review::ReviewResult;
use runner_core::model::run_state::RunState;
use runner_core::model::tree::{Node, Tree};
use runner_core::step::{
    Annotation, AttemptCharge, Event, GuardExit, GuardRun, Job, Outcome, OutcomeClass, SessionMode,
    SessionTarget, Transition, Usage,
};

use super::agent::{Temper, all_nodes};
use super::expected_costs::Books;

/// The cases that occurred in any run.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) outcomes: BTreeSet<Outcome>,
    pub(super) stops: BTreeSet<&'static str>,
    pub(super) tempers: BTreeSet<Temper>,
    pub(super) faults: BTreeSet<&'static str>,
    pub(super) events: BTreeSet<&'static str>,
    pub(super) annotations: BTreeSet<String>,
    pub(super) rules: BTreeSet<String>,
    /// Rows of the update table: mode; status and guard of the subject with the charge; outcome.
    pub(super) rows: BTreeSet<(&'static str, String, Outcome)>,
    /// Branches of the choice of agents, of waits and of budgets.
    pub(super) branches: BTreeSet<&'static str>,
    pub(super) iterations: u64,
    pub(super) runs: u64,
}

impl Seen {
    pub(super) fn add(&mut self, other: Self) {
        self.outcomes.extend(other.outcomes);
        self.stops.extend(other.stops);
        self.tempers.extend(other.tempers);
        self.faults.extend(other.faults);
        self.events.extend(other.events);
        self.annotations.extend(other.annotations);
        self.rules.extend(other.rules);
        self.rows.extend(other.rows);
        self.branches.extend(other.branches);
        self.iterations += other.iterations;
        self.runs += other.runs;
    }
}

/// Each node with its parent.
fn by_id(tree: &Tree) -> BTreeMap<&NodeId, (&Node, Option<&NodeId>)> {
    let below = |node| {
        all_nodes(node)
            .into_iter()
            .flat_map(|node| node.children.iter().map(move |child| (child, Some(&node.id))))
    };
    let all = std::iter::once((tree.root(), None)).chain(below(tree.root()));
    all.map(|(node, parent)| (&node.id, (node, parent))).collect()
}

pub(super) struct Oracle {
    pub(super) seen: Seen,
    protect: ProtectPolicy,
    removal: RemovalPolicy,
    attempts_default: u32,
    budget: usize,
    /// Charged iterations by node.
    charged: BTreeMap<NodeId, u32>,
    /// Iterations whose guard succeeded.
    guard_succeeded: BTreeSet<u32>,
    planned: Option<u32>,
    /// Iterations whose work was reviewed.
    reviewed: BTreeSet<u32>,
    /// Refusals by node.
    refused: BTreeMap<NodeId, u32>,
    /// Repair sessions with an answer since the last tree was rejected.
    repairs: u32,
    /// Nodes that had a replan session with an answer.
    replanned: BTreeSet<NodeId>,
    books: Books,
    on_stuck: OnStuck,
    unchanged: UnchangedPolicy,
    /// Whether the session's changes to files are part of the commit.
    pub(super) has_work: bool,
    /// The node whose last answer was `done` without work.
    claimed: Option<NodeId>,
}

impl Oracle {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            seen: Seen::default(),
            protect: config.guard.protect,
            removal: config.plan.removal,
            attempts_default: config.max_attempts_default.as_u32(),
            budget: usize::try_from(config.prompt_budget_bytes.get()).unwrap(),
            charged: BTreeMap::new(),
            guard_succeeded: BTreeSet::new(),
            planned: None,
            reviewed: BTreeSet::new(),
            refused: BTreeMap::new(),
            repairs: 0,
            replanned: BTreeSet::new(),
            books: Books::default(),
            on_stuck: config.on_stuck,
            unchanged: config.accept.unchanged,
            has_work: false,
            claimed: None,
        }
    }

    pub(super) fn record_guard(&mut self, job: &Job, guard: &GuardRun) {
        if matches!(guard, GuardRun::Ended { exit: GuardExit::Code(0), .. }) {
            self.guard_succeeded.insert(job.iteration.get());
        } else {
            self.guard_succeeded.remove(&job.iteration.get());
        }
    }

    pub(super) fn record_review(&mut self, job: &Job) {
        assert!(self.guard_succeeded.contains(&job.iteration.get()), "a review without a successful guard");
        self.reviewed.insert(job.iteration.get());
    }

    /// A reviewer is asked before every pass, until it has refused often enough.
    fn check_review(&mut self, job: &Job, transition: &Transition, config: &Config) {
        let (Some(review), Some(node)) = (&config.review, job.target.node()) else {
            assert_eq!(transition.state.review.last, None);
            return;
        };
        let refused = self.refused.get(node).copied().unwrap_or_default();
        let last = transition.state.review.last.as_ref();
        let is_overruled = transition.meta.annotations.contains(&Annotation::ReviewOverruled);
        let result = last.map(|last| last.result);
        assert_eq!(last.is_some(), self.reviewed.contains(&job.iteration.get()) && last.is_some());
        let has_rounds = i64::from(refused) < review.rounds.get();
        let is_charged = transition.meta.charge == AttemptCharge::Charged;
        if transition.outcome == Outcome::Passed {
            let expected = has_rounds.then_some(ReviewResult::Accepted);
            assert_eq!((result, is_overruled), (expected, !has_rounds), "rounds: {has_rounds}");
        } else if transition.outcome == Outcome::ReviewRefused {
            assert_eq!(result, Some(ReviewResult::Refused));
            assert!(has_rounds, "it refuses a bounded number of times");
            assert!(is_charged);
            *self.refused.entry(node.clone()).or_default() += 1;
        } else {
            assert!(!is_overruled);
            assert!(result.is_none_or(|result| result == ReviewResult::Failed));
            assert!(!(is_charged && result.is_some()));
        }
    }

    pub(super) fn record_event(&mut self, event: &Event) {
        if let Event::Planned { iter, .. } | Event::Recovered { iter, .. } = event {
            self.planned = Some(iter.get());
        }
        if let Event::Committed { iter, .. } = event {
            assert_eq!(self.planned.take(), Some(iter.get()), "a committed iteration was planned");
        }
    }

    /// A session that is not committed: the planned iteration is planned again.
    pub(super) fn record_discarded(&mut self, job: &Job) {
        assert_eq!(self.planned.take(), Some(job.iteration.get()), "a discarded iteration was planned");
    }

    /// Checks one commit before it is written.
    pub(super) fn check(
        &mut self,
        job: &Job,
        before: &Tree,
        state: &RunState,
        transition: &Transition,
        config: &Config,
        usage: Usage,
    ) {
        let after = Tree::decode(transition.tree.bytes()).expect("a committed tree is valid");
        assert_eq!(after, transition.tree, "and canonical");
        let decoded = RunState::decode(&transition.state.to_bytes()).expect("a committed state is valid");
        assert_eq!(decoded, transition.state);
        assert!(transition.state.to_bytes().len() < 512 << 10, "the committed state is bounded");
        assert_eq!(job.iteration, state.next_iter, "iterations are contiguous");
        assert_eq!(transition.state.next_iter, state.next_iter.next());
        self.check_selection(job, before);
        self.books.check(job, before, state, transition, config, usage);
        self.seen.branches.append(&mut self.books.seen);
        self.check_passed(before, &after);
        self.check_counts(job, before, &after, transition);
        self.check_message(job, transition);
        self.check_prompt(job);
        self.check_bounds(job, transition.outcome);
        self.check_claims(job, transition);
        self.check_review(job, transition, config);
        self.record_cases(job, transition);
    }

    /// The simplest selection: the first open leaf from left to right.
    fn check_selection(&self, job: &Job, before: &Tree) {
        let nodes = all_nodes(before.root());
        let mut open = nodes.into_iter().filter(|node| node.children.is_empty() && !node.passes);
        let first = match self.on_stuck {
            OnStuck::Skip => open.clone().find(|node| node.attempts < node.max_attempts).or(open.next()),
            OnStuck::Stop | OnStuck::Replan => open.next(),
        };
        match &job.target {
            SessionTarget::Leaf(id) | SessionTarget::Split(id) => {
                let leaf = first.expect("a leaf is open");
                assert_eq!(leaf.id, *id);
                assert!(leaf.attempts < leaf.max_attempts);
            }
            SessionTarget::Replan(id) => {
                let leaf = first.expect("a leaf is open");
                assert_eq!(leaf.id, *id);
                assert_eq!(leaf.attempts, leaf.max_attempts);
            }
            SessionTarget::Plan(_) | SessionTarget::Repair(_) => assert!(first.is_some()),
        }
    }

    /// A passed node stays where it is, byte for byte.
    fn check_passed(&self, before: &Tree, after: &Tree) {
        let old = by_id(before);
        let new = by_id(after);
        for (id, (was, parent)) in old {
            let is = new.get(id);
            if self.removal == RemovalPolicy::Refuse || was.passes {
                assert!(is.is_some(), "{id} was removed");
            }
            if was.passes {
                assert_eq!(is, Some(&(was, parent)), "{id} has passed and was changed or moved");
            }
        }
    }

    /// The runner's own fields are counted, never taken from the agent.
    fn check_counts(&mut self, job: &Job, before: &Tree, after: &Tree, transition: &Transition) {
        if let (AttemptCharge::Charged, Some(node)) = (transition.meta.charge, job.target.node()) {
            *self.charged.entry(node.clone()).or_default() += 1;
        }
        let old = by_id(before);
        let mut changed = 0;
        for node in all_nodes(after.root()) {
            let was = old.get(&node.id).map(|(was, _)| *was);
            let charged = self.charged.get(&node.id).copied().unwrap_or_default();
            assert_eq!(node.attempts, charged, "the attempts of {} are its charged iterations", node.id);
            let Some(was) = was else {
                assert!(node.max_attempts <= self.attempts_default, "{} has more than the default", node.id);
                assert!(!node.passes);
                continue;
            };
            let may_grant = [Outcome::Replanned, Outcome::Repaired].contains(&transition.outcome);
            assert!(
                node.max_attempts == was.max_attempts || may_grant && node.max_attempts > was.max_attempts
            );
            let passed = node.is_leaf() && node.passes && !was.passes;
            if passed {
                assert_eq!(Some(&node.id), job.target.node());
                assert_eq!(transition.outcome, Outcome::Passed);
                assert!(self.guard_succeeded.contains(&job.iteration.get()), "a pass without a guard run");
            }
            changed += usize::from(passed || node.attempts != was.attempts);
        }
        assert!(changed <= 1, "one iteration changes one leaf");
        self.charged.retain(|id, _| after.path_to(id).is_some());
    }

    fn check_message(&self, job: &Job, transition: &Transition) {
        let message = &transition.message;
        let target = match &job.target {
            SessionTarget::Leaf(node) | SessionTarget::Replan(node) | SessionTarget::Split(node) => {
                format!("node {node}")
            }
            SessionTarget::Plan(_) => "plan".to_owned(),
            SessionTarget::Repair(_) => "repair".to_owned(),
        };
        let start = format!("chore(loop): run sim iter {:04} {target} status=", job.iteration.get());
        assert!(message.starts_with(&start), "{message}");
        let trailers = message.trim_end().rsplit("\n\n").next().unwrap();
        let value = |key: &str| {
            let found: Vec<&str> = trailers.lines().filter_map(|line| line.strip_prefix(key)).collect();
            assert_eq!(found.len(), 1, "{key} in {message}");
            found[0].to_owned()
        };
        assert_eq!(value("Runner-Outcome: "), transition.outcome.as_str());
        assert_eq!(value("Runner-Tree: "), Sha256::of(transition.tree.bytes()).to_string());
        assert_eq!(value("Runner-Prompt: "), Sha256::of(job.prompt.text.as_bytes()).to_string());
        assert_eq!(value("Runner-Semantics: "), "1");
        let lines = message.lines().filter(|line| line.starts_with("Runner-Outcome: "));
        assert_eq!(lines.count(), 1, "a summary must not forge a trailer: {message}");
    }

    /// A rejected tree gets two repairs, a stuck leaf one replan.
    fn check_bounds(&mut self, job: &Job, outcome: Outcome) {
        if outcome == Outcome::InvalidTree {
            self.repairs = 0;
        }
        if outcome.class() != OutcomeClass::Answered {
            return;
        }
        match &job.target {
            SessionTarget::Repair(_) => self.repairs += 1,
            SessionTarget::Replan(node) => {
                assert!(self.replanned.insert(node.clone()), "{node} was replanned twice");
            }
            SessionTarget::Leaf(_) | SessionTarget::Split(_) | SessionTarget::Plan(_) => {}
        }
        assert!(self.repairs <= 2, "a tree was repaired {} times", self.repairs);
    }

    /// A task passes without work only if the policy says so, if a check of it turned green, or if the answer before said the
    /// same.
    fn check_claims(&mut self, job: &Job, transition: &Transition) {
        let node = job.target.node();
        let is_confirmed = transition.meta.annotations.contains(&Annotation::ConfirmedUnchanged);
        let is_proof = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            matches!(words.as_slice(), ["Runner-Check:", _, "failed" | "absent", "0", _])
        };
        let is_proven = transition.message.lines().any(is_proof);
        let is_word_enough = self.has_work || is_proven || self.unchanged == UnchangedPolicy::Pass;
        if transition.outcome == Outcome::Passed && !is_word_enough {
            assert_eq!((self.claimed.as_ref(), is_confirmed), (node, true), "a pass on one session's word");
        } else {
            assert!(!is_confirmed, "a confirmation of nothing");
        }
        let last = transition.state.review.last.as_ref();
        let has_failed_review = last.is_some_and(|review| review.result == ReviewResult::Failed);
        if (transition.outcome == Outcome::Unconfirmed || has_failed_review)
            && self.unchanged == UnchangedPolicy::Confirm
        {
            self.claimed = node.cloned();
        } else if transition.outcome.class() == OutcomeClass::Answered || self.has_work {
            self.claimed = None;
        }
    }

    fn check_prompt(&self, job: &Job) {
        let prompt = &job.prompt.text;
        assert!(prompt.len() <= self.budget, "{} bytes", prompt.len());
        for heading in ["# Rules", "# Project goal", "# Goal of this session", "# Your answer"] {
            assert!(prompt.contains(heading), "{heading} is missing");
        }
        assert_eq!(prompt.contains("# Shortened to fit"), !job.prompt.cuts.is_empty());
        match job.target.mode() {
            SessionMode::Leaf | SessionMode::Replan | SessionMode::Split | SessionMode::Plan => {
                assert!(prompt.contains("# The selected node"));
            }
            SessionMode::Repair => assert!(prompt.contains("# Errors of the rejected tree")),
            SessionMode::Review => panic!("no iteration is a review alone"),
        }
    }

    fn record_cases(&mut self, job: &Job, transition: &Transition) {
        let seen = &mut self.seen;
        seen.iterations += 1;
        seen.outcomes.insert(transition.outcome);
        let subject = transition.message.lines().next().unwrap();
        let claim = subject.split_once("status=").unwrap().1.to_owned();
        let row = format!("{claim} {}", transition.meta.charge.as_str());
        seen.rows.insert((job.target.mode().as_str(), row, transition.outcome));
        for annotation in &transition.meta.annotations {
            let is_changed = matches!(annotation, Annotation::GuardFileChanged { .. });
            assert!(!is_changed || self.protect == ProtectPolicy::Flag);
            let trailer = annotation.to_string();
            seen.annotations.insert(trailer.split(' ').next().unwrap().to_owned());
        }
        let findings = transition.meta.findings.iter().filter(|finding| !finding.starts_with("tree.json: "));
        seen.rules
            .extend(findings.filter_map(|finding| finding.split_once(": ").map(|(_, rule)| rule.to_owned())));
    }
}
