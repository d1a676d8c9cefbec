//! Which agent is asked, and what it must wait for: functions of configuration, tree and recorded state alone.
//!
//! The ladder's first rung is `[executor]`. A leaf climbs by the attempts spent on it. Where a usage limit leads to
//! the next agent, the limits met on the leaf are on record, and the first agent from the leaf's rung on that has
//! none is asked; when all have one, the one that comes free first is waited for. Another leaf begins anew: whether
//! an allowance is there again is found out by asking, since no clock may decide what is committed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::backoff::Wait;
use super::outcome::Outcome;
use super::plan::Ordinal;
use crate::config::{Config, Executor, OnUsageLimit};
use crate::model::cost::{Amount, number};
use crate::model::id::NodeId;
use crate::model::run_state::RunState;
use crate::model::tree::Node;

/// An agent that has used up its allowance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageLimit {
    /// The agent, by its name.
    pub agent: String,
    /// The leaf on which it was met.
    pub node: NodeId,
    /// When the allowance comes back, in seconds since 1970, as the agent said it.
    #[serde(deserialize_with = "Option::deserialize")]
    pub resets_unix_secs: Option<Amount>,
}

/// The agent that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentChoice {
    /// The agent.
    pub executor: Executor,
    /// Its rung, from 1.
    pub rung: Ordinal,
    /// The limit that must pass first, where every agent has one.
    pub limit: Option<UsageLimit>,
}

/// The agent for a leaf. `attempts` are those spent on it.
pub fn choose(config: &Config, limits: &[UsageLimit], leaf: Option<(&NodeId, u32)>) -> AgentChoice {
    let rungs: Vec<&Executor> =
        std::iter::once(&config.executor).chain(config.ladder.iter().map(|rung| &rung.executor)).collect();
    let attempts = leaf.map_or(0, |(_, attempts)| i64::from(attempts));
    let climbed =
        |rung: &crate::config::Rung| rung.after_attempts.is_some_and(|after| attempts >= after.get());
    let base = config.ladder.iter().rposition(climbed).map_or(0, |at| at + 1);
    let limit_of = |executor: &Executor| {
        let label = executor.label();
        let met =
            |limit: &&UsageLimit| limit.agent == label && Some(&limit.node) == leaf.map(|(node, _)| node);
        limits.iter().find(met).filter(|_| config.on_usage_limit == OnUsageLimit::Next)
    };
    let in_turn = || (base..rungs.len()).chain(0..base);
    let free = in_turn().find(|at| rungs.get(*at).is_some_and(|executor| limit_of(executor).is_none()));
    let soonest = || {
        in_turn().min_by_key(|at| {
            let limit = rungs.get(*at).and_then(|executor| limit_of(executor));
            limit.and_then(|limit| limit.resets_unix_secs).map_or(0, number)
        })
    };
    let at = free.or_else(soonest).unwrap_or(base);
    let executor = rungs.get(at).copied().unwrap_or(&config.executor);
    let nth = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
    AgentChoice {
        executor: executor.clone(),
        rung: Ordinal { nth: nth(at).saturating_add(1), of: nth(rungs.len()) },
        limit: limit_of(executor).cloned(),
    }
}

/// The agent that the next session asks.
pub fn next_agent(config: &Config, state: &RunState, leaf: Option<&Node>) -> AgentChoice {
    choose(config, &state.usage_limits, leaf.map(|leaf| (&leaf.id, leaf.attempts)))
}

/// What the next session must wait for: what is on record, if it is about the agent that is asked next. A user who
/// chose another agent in the meantime does not wait for the old one.
pub fn pending_wait<'s>(state: &'s RunState, agent: &Executor) -> Option<&'s Wait> {
    state.wait.as_ref().filter(|wait| wait.agent == agent.label())
}

/// The limits on record after an iteration of this agent on this leaf.
pub(super) fn limits_after(
    before: &[UsageLimit],
    (agent, node): (&str, &NodeId),
    outcome: Outcome,
    resets_unix_secs: Option<Amount>,
) -> Vec<UsageLimit> {
    let of_leaf = before.iter().filter(|limit| limit.node == *node);
    let mut limits: Vec<UsageLimit> = of_leaf.filter(|limit| limit.agent != agent).cloned().collect();
    if outcome == Outcome::UsageLimit {
        limits.push(UsageLimit { agent: agent.to_owned(), node: node.clone(), resets_unix_secs });
    } else if outcome.class() != super::outcome::OutcomeClass::Answered {
        // What failed in another way said nothing about the allowance.
        limits.extend(before.iter().filter(|limit| limit.node == *node && limit.agent == agent).cloned());
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
        let chosen = choose(config, limits, Some((&NodeId::root(), attempts)));
        (chosen.executor.label(), chosen.rung.nth, chosen.limit.map(|limit| limit.agent))
    }

    #[test]
    fn a_leaf_climbs_by_its_attempts() {
        let config = config(LADDER);
        let label = |attempts| chosen(&config, &[], attempts).0;
        assert_eq!(
            (label(0).as_str(), label(1).as_str(), label(9).as_str()),
            ("codex:small", "codex:large", "codex:large")
        );
        assert_eq!(choose(&config, &[], None).rung, Ordinal { nth: 1, of: 3 });
    }

    #[test]
    fn a_used_up_agent_is_passed_over_and_the_soonest_is_waited_for() {
        let config = config(LADDER);
        let (small, large) = (limit("codex:small", Some(9)), limit("codex:large", Some(5)));
        assert_eq!(chosen(&config, std::slice::from_ref(&small), 0).0, "codex:large");
        assert_eq!(chosen(&config, &[small.clone(), large.clone()], 0).0, "claude");
        assert_eq!(chosen(&config, &[large.clone(), limit("claude", None)], 1).0, "codex:small");
        let all = [small, large, limit("claude", Some(7))];
        let five = ("codex:large".to_owned(), 2, Some("codex:large".to_owned()));
        assert_eq!(chosen(&config, &all, 0), five);
        // What was met on another leaf does not count.
        let elsewhere = UsageLimit { node: NodeId::new("other").unwrap(), ..limit("codex:small", None) };
        assert_eq!(chosen(&config, &[elsewhere], 0).0, "codex:small");
    }

    #[test]
    fn without_a_ladder_or_the_wish_limits_change_nothing() {
        let waits = config(&LADDER.replace("\"next\"", "\"wait\""));
        assert_eq!(chosen(&waits, &[limit("codex:small", None)], 0).0, "codex:small");
        let plain = Config::default();
        assert_eq!(chosen(&plain, &[], 5), ("codex".to_owned(), 1, None));
    }

    #[test]
    fn a_wait_is_for_the_agent_that_made_it() {
        let wait = Wait {
            agent: "codex:small".to_owned(),
            outcome: Outcome::UsageLimit,
            secs: BoundedInt::new(60).unwrap(),
            until_unix_secs: None,
            secs_max: BoundedInt::new(600).unwrap(),
        };
        let state = RunState { wait: Some(wait.clone()), ..RunState::new(None) };
        let agent = |model: &str| Executor { model: Some(model.to_owned()), ..config(LADDER).executor };
        assert_eq!(pending_wait(&state, &agent("small")), Some(&wait));
        assert_eq!(pending_wait(&state, &agent("large")), None);
        assert_eq!(pending_wait(&RunState::new(None), &agent("small")), None);
    }

    #[test]
    fn a_failure_that_says_nothing_of_the_allowance_leaves_the_record_as_it_is() {
        let elsewhere = UsageLimit { node: NodeId::new("other").unwrap(), ..limit("codex", None) };
        let before = [limit("claude", None), limit("codex", Some(7)), elsewhere];
        let after = limits_after(&before, ("codex", &NodeId::root()), Outcome::Overloaded, None);
        assert_eq!(after, before[..2]);
    }

    #[test]
    fn an_answer_takes_the_limit_off_the_record() {
        let root = NodeId::root();
        let met = limits_after(&[], ("codex", &root), Outcome::UsageLimit, Some(amount(7)));
        assert_eq!(met, [limit("codex", Some(7))]);
        assert_eq!(limits_after(&met, ("codex", &root), Outcome::Overloaded, None), met);
        assert_eq!(limits_after(&met, ("claude", &root), Outcome::Retry, None), met);
        assert_eq!(limits_after(&met, ("codex", &root), Outcome::Retry, None), []);
        let other = NodeId::new("other").unwrap();
        assert_eq!(limits_after(&met, ("claude", &other), Outcome::Retry, None), []);
    }
}
