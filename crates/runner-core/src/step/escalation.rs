//! Which agent runs next, and which wait precedes it: functions of configuration, tree and recorded state alone.
//!
//! The ladder's first rung is `[executor]`; a leaf climbs with its failed attempts. With `on_usage_limit = "next"` the limits
//! that agents reached on the leaf are recorded, and the first agent without one runs; if all have one, the loop waits for
//! the limit that ends first. The next leaf starts without limits: only a session can show whether a limit has ended,
//! because no clock may decide what is committed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::backoff::Wait;
use super::outcome::{Outcome, OutcomeClass};
use super::plan::Ordinal;
use crate::config::{Config, Executor, OnUsageLimit, Rung};
use crate::model::cost::{Amount, number};
use crate::model::id::NodeId;
use crate::model::run_state::RunState;
use crate::model::tree::Node;

/// A usage limit that an agent reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageLimit {
    pub agent: String,
    /// The leaf on which the agent reached it.
    pub node: NodeId,
    /// When the limit ends, in seconds since 1970, as the agent reported it.
    #[serde(deserialize_with = "Option::deserialize")]
    pub resets_unix_secs: Option<Amount>,
}

/// The agent of the next session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentChoice {
    pub executor: Executor,
    /// The agent's rung, from 1.
    pub rung: Ordinal,
    /// The limit that must end first, if every agent has one.
    pub limit: Option<UsageLimit>,
}

impl AgentChoice {
    /// The agent's name, as configured.
    pub fn label(&self) -> String {
        self.executor.label()
    }
}

/// A leaf, as far as the choice of its agent depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafRef<'t> {
    pub node: &'t NodeId,
    /// The attempts that the leaf has used.
    pub attempts: u32,
    /// The rungs that the leaf moved up because the same failure occurred twice.
    pub rungs: u32,
}

impl<'t> LeafRef<'t> {
    pub(super) fn of(leaf: &'t Node, state: &RunState) -> Self {
        Self { node: &leaf.id, attempts: leaf.attempts, rungs: state.progress.rungs_of(&leaf.id) }
    }
}

/// The agent for a leaf: from the leaf's rung on, the first agent without a usage limit; if all have one, the agent whose
/// limit ends first.
pub fn choose_agent(config: &Config, limits: &[UsageLimit], leaf: Option<LeafRef<'_>>) -> AgentChoice {
    let mut rungs: Vec<&Executor> = vec![&config.executor];
    rungs.extend(config.ladder.iter().map(|rung| &rung.executor));
    let start = leaf.map_or(0, |leaf| first_rung(config, leaf));
    let limit_of = |executor: &Executor| active_limit(config, limits, leaf, executor);
    let from_start = || rungs.iter().enumerate().cycle().skip(start).take(rungs.len());
    let free = from_start().find(|(_, executor)| limit_of(executor).is_none());
    let soonest = || {
        from_start().min_by_key(|(_, executor)| {
            let resets = limit_of(executor).and_then(|limit| limit.resets_unix_secs);
            resets.map_or(0, number)
        })
    };
    let (at, executor) =
        free.or_else(soonest).map_or((0, &config.executor), |(at, executor)| (at, *executor));
    let count = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
    AgentChoice {
        executor: executor.clone(),
        rung: Ordinal { nth: count(at).saturating_add(1), of: count(rungs.len()) },
        limit: limit_of(executor).cloned(),
    }
}

/// The rung that a leaf has reached with its failed attempts, and beyond it those that repeated failures moved it up; 0 is
/// `[executor]`. Rungs that only replace an agent with a usage limit are not part of the climb.
fn first_rung(config: &Config, leaf: LeafRef<'_>) -> usize {
    let is_reached =
        |rung: &Rung| rung.after_attempts.is_some_and(|after| i64::from(leaf.attempts) >= after.get());
    let reached = config.ladder.iter().rposition(is_reached).map_or(0, |at| at + 1);
    let above = config.ladder.iter().enumerate().skip(reached);
    let climbed = above.filter(|(_, rung)| rung.after_attempts.is_some()).map(|(at, _)| at + 1);
    climbed.take(usize::try_from(leaf.rungs).unwrap_or(usize::MAX)).last().unwrap_or(reached)
}

/// The usage limit that an agent reached on this leaf, if the configuration then continues with the next agent.
fn active_limit<'l>(
    config: &Config,
    limits: &'l [UsageLimit],
    leaf: Option<LeafRef<'_>>,
    executor: &Executor,
) -> Option<&'l UsageLimit> {
    if config.on_usage_limit != OnUsageLimit::Next {
        return None;
    }
    let node = leaf?.node;
    let label = executor.label();
    limits.iter().find(|limit| limit.agent == label && limit.node == *node)
}

/// The agent of the next session on this leaf.
pub fn next_agent(config: &Config, state: &RunState, leaf: Option<&Node>) -> AgentChoice {
    let leaf = leaf.map(|leaf| LeafRef::of(leaf, state));
    choose_agent(config, &state.usage_limits, leaf)
}

/// The recorded wait, if it is for the agent that runs next, or for the reviewer. A user who switched to another agent does not
/// wait for the old one.
pub fn pending_wait<'s>(state: &'s RunState, config: &Config, agent: &Executor) -> Option<&'s Wait> {
    let is_reviewer =
        |label: &str| config.review.as_ref().is_some_and(|review| review.executor.label() == label);
    state.wait.as_ref().filter(|wait| wait.agent == agent.label() || is_reviewer(&wait.agent))
}

/// The limits on record after a session. `session` names its agent and leaf, and the limit's end if it reached one.
pub(super) fn limits_after(before: &[UsageLimit], session: UsageLimit, outcome: Outcome) -> Vec<UsageLimit> {
    let is_its = |limit: &&UsageLimit| limit.agent == session.agent;
    let of_leaf = || before.iter().filter(|limit| limit.node == session.node);
    let mut limits: Vec<UsageLimit> = of_leaf().filter(|limit| !is_its(limit)).cloned().collect();
    if outcome.class() == OutcomeClass::UsageLimit {
        limits.push(session);
    } else if outcome.class() != OutcomeClass::Answered {
        // Another failure does not prove that the limit has ended.
        limits.extend(of_leaf().filter(is_its).cloned());
    }
    limits.sort_by(|one, other| one.agent.cmp(&other.agent));
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cost::amount;
    use crate::strict::BoundedInt;

    fn config(text: &str) -> Config {
        Config::decode(text.as_bytes()).unwrap()
    }

    const LADDER: &str = "on_usage_limit = \"next\"\n[executor]\nkind = \"codex\"\nmodel = \"small\"\n\
        [[ladder]]\nafter_attempts = 1\nmodel = \"large\"\n[[ladder]]\nkind = \"claude\"\n";

    fn limit(agent: &str, resets: Option<u64>) -> UsageLimit {
        let resets_unix_secs = resets.map(amount);
        UsageLimit { agent: agent.to_owned(), node: NodeId::root(), resets_unix_secs }
    }

    fn chosen(config: &Config, limits: &[UsageLimit], attempts: u32) -> (String, u32, Option<String>) {
        let chosen =
            choose_agent(config, limits, Some(LeafRef { node: &NodeId::root(), attempts, rungs: 0 }));
        (chosen.executor.label(), chosen.rung.nth, chosen.limit.map(|limit| limit.agent))
    }

    #[test]
    fn a_leaf_climbs_with_its_failed_attempts() {
        let config = config(LADDER);
        let label = |attempts| chosen(&config, &[], attempts).0;
        assert_eq!(
            (label(0).as_str(), label(1).as_str(), label(9).as_str()),
            ("codex:small", "codex:large", "codex:large")
        );
        assert_eq!(choose_agent(&config, &[], None).rung, Ordinal { nth: 1, of: 3 });
    }

    #[test]
    fn a_failure_that_occurred_twice_moves_a_leaf_to_the_next_rung() {
        let text = "[executor]\nkind = \"codex\"\nmodel = \"a\"\n[[ladder]]\nafter_attempts = 3\nmodel = \"b\"\n\
            [[ladder]]\nmodel = \"only at a usage limit\"\n[[ladder]]\nafter_attempts = 6\nmodel = \"c\"\n";
        let config = config(text);
        let model = |attempts, rungs| {
            let leaf = LeafRef { node: &NodeId::root(), attempts, rungs };
            choose_agent(&config, &[], Some(leaf)).executor.model.unwrap()
        };
        let models = [model(0, 0), model(2, 1), model(3, 1), model(4, 2), model(6, 9), model(9, 0)];
        assert_eq!(models, ["a", "b", "c", "c", "c", "c"]);
    }

    #[test]
    fn an_agent_with_a_usage_limit_is_skipped_until_all_have_one() {
        let config = config(LADDER);
        let small = limit("codex:small", Some(9));
        let large = limit("codex:large", Some(5));
        assert_eq!(chosen(&config, std::slice::from_ref(&small), 0).0, "codex:large");
        assert_eq!(chosen(&config, &[small.clone(), large.clone()], 0).0, "claude");
        assert_eq!(chosen(&config, &[large.clone(), limit("claude", None)], 1).0, "codex:small");
        let all = [small, large, limit("claude", Some(7))];
        let five = ("codex:large".to_owned(), 2, Some("codex:large".to_owned()));
        assert_eq!(chosen(&config, &all, 0), five);
        // A limit that was reached on another leaf does not count.
        let elsewhere = UsageLimit { node: NodeId::new("other").unwrap(), ..limit("codex:small", None) };
        assert_eq!(chosen(&config, &[elsewhere], 0).0, "codex:small");
    }

    #[test]
    fn limits_change_nothing_without_a_ladder_or_with_wait() {
        let waits = config(&LADDER.replace("\"next\"", "\"wait\""));
        assert_eq!(chosen(&waits, &[limit("codex:small", None)], 0).0, "codex:small");
        let plain = Config::default();
        assert_eq!(chosen(&plain, &[], 5), ("codex".to_owned(), 1, None));
    }

    #[test]
    fn a_wait_is_for_the_agent_that_caused_it() {
        let wait = Wait {
            agent: "codex:small".to_owned(),
            outcome: Outcome::UsageLimit,
            secs: BoundedInt::new(60).unwrap(),
            until_unix_secs: None,
            secs_max: BoundedInt::new(600).unwrap(),
        };
        let state = RunState { wait: Some(wait.clone()), ..RunState::new(None) };
        let agent = |model: &str| Executor { model: Some(model.to_owned()), ..config(LADDER).executor };
        assert_eq!(pending_wait(&state, &Config::default(), &agent("small")), Some(&wait));
        assert_eq!(pending_wait(&state, &Config::default(), &agent("large")), None);
        assert_eq!(pending_wait(&RunState::new(None), &Config::default(), &agent("small")), None);
    }

    #[test]
    fn a_failure_of_another_kind_keeps_the_limits_of_the_leaf() {
        let elsewhere = UsageLimit { node: NodeId::new("other").unwrap(), ..limit("codex", None) };
        let before = [limit("claude", None), limit("codex", Some(7)), elsewhere];
        let after = limits_after(&before, limit("codex", None), Outcome::Overloaded);
        assert_eq!(after, before[..2]);
    }

    #[test]
    fn an_answer_removes_the_limit() {
        let reached = limits_after(&[], limit("codex", Some(7)), Outcome::UsageLimit);
        assert_eq!(reached, [limit("codex", Some(7))]);
        assert_eq!(limits_after(&reached, limit("codex", None), Outcome::Overloaded), reached);
        assert_eq!(limits_after(&reached, limit("claude", None), Outcome::Retry), reached);
        assert_eq!(limits_after(&reached, limit("codex", None), Outcome::Retry), []);
        let other = UsageLimit { node: NodeId::new("other").unwrap(), ..limit("claude", None) };
        assert_eq!(limits_after(&reached, other, Outcome::Retry), []);
    }
}
