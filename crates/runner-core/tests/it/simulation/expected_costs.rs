//! Checks agents, waits and spending of every simulated commit without the code under test.

use std::collections::{BTreeMap, BTreeSet};

use runner_core::config::{Config, Executor, OnUsageLimit, TokenLimit, TokenPrice, Usd};
use runner_core::model::cost::Amount;
use runner_core::model::id::NodeId;
use runner_core::model::run_state::RunState;
use runner_core::model::tree::Tree;
use runner_core::step::{Job, NextAction, Outcome, SessionExit, SessionTarget, Transition, Usage};

use super::agent::all_nodes;

/// What the run used, computed here.
#[derive(Clone, Debug, Default)]
pub(super) struct Books {
    tokens: u64,
    microdollars: u64,
    leaves: BTreeMap<NodeId, (u64, u64)>,
    /// Branches of the choice of agents, of waits and of budgets.
    pub(super) seen: Branches,
}

pub(super) type Branches = BTreeSet<&'static str>;

impl Books {
    pub(super) fn check(
        &mut self,
        job: &Job,
        before: &Tree,
        state: &RunState,
        transition: &Transition,
        config: &Config,
        usage: Usage,
    ) {
        let seen = &mut self.seen;
        let leaf = match &job.target {
            SessionTarget::Leaf(node)
            | SessionTarget::Replan(node)
            | SessionTarget::Split(node)
            | SessionTarget::Plan(node) => node,
            SessionTarget::Repair(repair) => &repair.node,
        };
        assert_eq!(transition.meta.usage, usage, "the recorded usage is the reported one");
        check_agent(job, before, state, leaf, config, seen);
        check_wait(job, transition, config, seen);
        let (mut tokens, mut dollars) = cost(job, transition, config, seen);
        if let Some(review) = &transition.state.review.last {
            let cost = review.cost();
            tokens += cost.tokens.unwrap_or(0);
            dollars += cost.microdollars.unwrap_or(0);
        }
        self.check_budget(leaf, config);
        self.tokens += tokens;
        self.microdollars += dollars;
        let sum = self.leaves.entry(leaf.clone()).or_default();
        *sum = (sum.0 + tokens, sum.1 + dollars);
        let after = all_nodes(transition.tree.root());
        let is_open = |id: &NodeId| after.iter().any(|node| node.id == *id && node.is_leaf() && !node.passes);
        self.leaves.retain(|id, sum| is_open(id) && *sum != (0, 0));
        let state = &transition.state;
        let number = |amount| u64::try_from(Amount::get(amount)).unwrap();
        assert_eq!(
            (number(state.spent.tokens), number(state.spent.microdollars)),
            (self.tokens, self.microdollars)
        );
        let recorded: BTreeMap<NodeId, (u64, u64)> = state
            .spent_by_leaf
            .iter()
            .map(|spent| (spent.node.clone(), (number(spent.tokens), number(spent.microdollars))))
            .collect();
        assert_eq!(recorded, self.leaves);
    }

    /// No session starts beyond a limit.
    fn check_budget(&self, leaf: &NodeId, config: &Config) {
        let (tokens, dollars) = self.leaves.get(leaf).copied().unwrap_or_default();
        let of = |limit: Option<TokenLimit>| limit.map_or(u64::MAX, TokenLimit::as_u64);
        let usd = |limit: Option<Usd>| limit.map_or(u64::MAX, Usd::microdollars);
        assert!(self.tokens < of(config.budget.run_tokens) && tokens < of(config.budget.leaf_tokens));
        assert!(self.microdollars < usd(config.budget.run_usd) && dollars < usd(config.budget.leaf_usd));
    }
}

fn rungs(config: &Config) -> Vec<&Executor> {
    std::iter::once(&config.executor).chain(config.ladder.iter().map(|rung| &rung.executor)).collect()
}

/// The agent follows from the committed attempts and usage limits.
fn check_agent(
    job: &Job,
    before: &Tree,
    state: &RunState,
    leaf: &NodeId,
    config: &Config,
    seen: &mut Branches,
) {
    let rungs = rungs(config);
    let nodes = all_nodes(before.root());
    let attempts = nodes.iter().find(|node| node.id == *leaf).map_or(0, |node| node.attempts);
    let mut base = 0;
    for (at, rung) in config.ladder.iter().enumerate() {
        if rung.after_attempts.is_some_and(|after| i64::from(attempts) >= after.get()) {
            base = at + 1;
        }
    }
    let failures = state.progress.leaf_failures.iter().find(|failure| failure.node == *leaf);
    for _ in 0..failures.map_or(0, |failure| failure.rungs) {
        let above = (base..config.ladder.len()).find(|at| config.ladder[*at].after_attempts.is_some());
        if let Some(at) = above {
            base = at + 1;
            seen.insert("moved up by the same failure");
        }
    }
    let is_limited = |executor: &Executor| {
        let mut of_leaf = state.usage_limits.iter().filter(|limit| limit.node == *leaf);
        of_leaf.any(|limit| limit.agent == executor.label())
    };
    let at = usize::try_from(job.agent.rung.nth).unwrap() - 1;
    assert_eq!((rungs[at], job.agent.rung.of), (&job.agent.executor, u32::try_from(rungs.len()).unwrap()));
    assert_eq!(job.agent.label(), job.agent.executor.label());
    if config.on_usage_limit == OnUsageLimit::Wait {
        assert!(state.usage_limits.is_empty());
    }
    if rungs.iter().all(|executor| is_limited(executor)) {
        seen.insert("all limited");
        return;
    }
    assert!(!is_limited(&job.agent.executor), "an agent with a usage limit was chosen");
    if !is_limited(rungs[base]) {
        assert_eq!(at, base);
    }
    if at != base {
        seen.insert(if at < base { "fell back to the first" } else { "fell back" });
    } else if base > 0 {
        seen.insert("climbed");
    }
}

/// A wait is recorded, so that a restart continues it.
fn check_wait(job: &Job, transition: &Transition, config: &Config, seen: &mut Branches) {
    let recorded = transition.state.wait.as_ref();
    let outcome = transition.outcome;
    if let NextAction::Wait(wait) = &transition.next {
        assert_eq!(recorded, Some(wait));
        let is_transient =
            [Outcome::RateLimited, Outcome::Overloaded, Outcome::Disconnected, Outcome::UsageLimit];
        assert!(is_transient.contains(&outcome), "{outcome} is not a reason to wait");
        assert!((0..=3600).contains(&wait.secs.get()));
        assert!(wait.secs.get() > 0 || wait.until_unix_secs.is_some());
        seen.insert(if wait.agent == job.agent.label() { "waits" } else { "waits for another agent" });
        return;
    }
    assert_eq!(recorded, None);
    if outcome == Outcome::UsageLimit {
        assert_eq!(config.on_usage_limit, OnUsageLimit::Next);
        assert!(rungs(config).len() > 1);
    }
}

/// Tokens and millionths of a dollar of a session, as far as they are known.
fn cost(job: &Job, transition: &Transition, config: &Config, seen: &mut Branches) -> (u64, u64) {
    let usage = transition.meta.usage;
    let had_no_session =
        matches!(transition.meta.exit, SessionExit::NotStarted { .. } | SessionExit::Provider { .. });
    let input = usage.input_tokens.unwrap_or(0);
    let output = usage.output_tokens.unwrap_or(0);
    let model = job.agent.executor.model.as_deref();
    // Codex's default model has a price of its own.
    let dollars = Usd::of_microdollars;
    let default_price = TokenPrice {
        input: dollars(2_000_000),
        cached_input: Some(dollars(100_000)),
        cache_write: Some(dollars(2_500_000)),
        output: dollars(10_000_000),
    };
    let price = config.prices.get(model.unwrap_or("codex")).copied();
    let price = price.or_else(|| model.is_none().then_some(default_price));
    let (word, dollars) = match (usage.cost_microdollars, price) {
        (None, _) if usage == Usage::default() && had_no_session => ("cost reported", 0),
        (Some(cost), _) => ("cost reported", cost),
        (None, Some(price)) if usage.input_tokens.is_some() || usage.output_tokens.is_some() => {
            let cached = usage.cached_input_tokens.unwrap_or(0).min(input);
            let cheap = price.cached_input.unwrap_or(price.input).microdollars();
            let whole = (input - cached) * price.input.microdollars()
                + cached * cheap
                + output * price.output.microdollars();
            ("cost estimated", whole.div_ceil(1_000_000))
        }
        (None, _) => ("cost unknown", 0),
    };
    assert_eq!(format!("cost {}", transition.meta.cost.basis.as_str()), word);
    seen.insert(word);
    (input + output, dollars)
}
