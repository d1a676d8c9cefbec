//! The cost of sessions: reported by the agent, estimated from the prices in the configuration, or unknown.
//!
//! Amounts are integers, tokens and millionths of a dollar, so that the same sessions give the same bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agents::ReportedUsage;
use crate::config::{Budget, Config, Executor, TokenLimit, TokenPrice, Usd};
use crate::model::id::NodeId;
use crate::step::{CostSource, SessionExit, Usage};
use crate::strict::{BoundedInt, SAFE_INTEGER_MAX};

/// An amount that every JSON reader keeps exactly. It saturates.
pub type Amount = BoundedInt<0, SAFE_INTEGER_MAX>;

pub fn amount(number: u64) -> Amount {
    let number = i64::try_from(number).unwrap_or(SAFE_INTEGER_MAX).min(SAFE_INTEGER_MAX);
    Amount::new(number).unwrap_or(Amount::fixed::<0>())
}

pub fn number(amount: Amount) -> u64 {
    amount.as_u64()
}

fn plus(sum: Amount, more: u64) -> Amount {
    amount(number(sum).saturating_add(more))
}

/// The cost of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionCost {
    /// Input and output tokens, if known.
    pub tokens: Option<u64>,
    /// Millionths of a dollar, if known.
    pub microdollars: Option<u64>,
    /// Where the dollars come from.
    pub basis: CostSource,
}

impl SessionCost {
    /// The cost of a session, from its exit and its usage.
    pub fn of(exit: &SessionExit, usage: Usage, price: Option<TokenPrice>) -> Self {
        let has_no_usage = usage == Usage::default();
        // A session that did not start, or that the provider refused, costs nothing even if it reports nothing.
        if has_no_usage && matches!(exit, SessionExit::NotStarted { .. } | SessionExit::Provider { .. }) {
            return Self { tokens: Some(0), microdollars: Some(0), basis: CostSource::Reported };
        }
        let tokens = match (usage.input_tokens, usage.output_tokens) {
            (None, None) => None,
            (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
        };
        match (usage.cost_microdollars, price) {
            (Some(microdollars), _) => {
                let is_estimate = usage.cost_source == CostSource::Estimated;
                let basis = if is_estimate { CostSource::Estimated } else { CostSource::Reported };
                Self { tokens, microdollars: Some(microdollars), basis }
            }
            (None, Some(price)) if tokens.is_some() => {
                Self { tokens, microdollars: Some(estimate(usage, price)), basis: CostSource::Estimated }
            }
            (None, _) => Self { tokens, microdollars: None, basis: CostSource::Unknown },
        }
    }
}

/// The price of the tokens, rounded up to a millionth of a dollar.
fn estimate(usage: Usage, price: TokenPrice) -> u64 {
    let input = usage.input_tokens.unwrap_or(0);
    let cached = usage.cached_input_tokens.unwrap_or(0).min(input);
    let cost = |tokens: u64, price: Usd| u128::from(tokens) * u128::from(price.microdollars());
    let written = usage.cache_write_input_tokens.unwrap_or(0).min(input - cached);
    let sum = cost(input - cached - written, price.input)
        + cost(written, price.cache_write.unwrap_or(price.input))
        + cost(cached, price.cached_input.unwrap_or(price.input))
        + cost(usage.output_tokens.unwrap_or(0), price.output);
    u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// What a run has used so far, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSpending {
    /// Input and output tokens.
    pub tokens: Amount,
    /// Millionths of a dollar, reported and estimated.
    pub microdollars: Amount,
    /// The estimated part of them.
    pub estimated_microdollars: Amount,
    /// Sessions whose tokens are unknown.
    pub sessions_without_tokens: Amount,
    /// Sessions whose cost is unknown.
    pub sessions_without_cost: Amount,
}

impl Default for RunSpending {
    fn default() -> Self {
        let none = Amount::fixed::<0>();
        Self {
            tokens: none,
            microdollars: none,
            estimated_microdollars: none,
            sessions_without_tokens: none,
            sessions_without_cost: none,
        }
    }
}

impl RunSpending {
    /// The sum with one more session.
    pub fn with(self, cost: SessionCost) -> Self {
        let dollars = cost.microdollars.unwrap_or(0);
        let estimated = if cost.basis == CostSource::Estimated { dollars } else { 0 };
        Self {
            tokens: plus(self.tokens, cost.tokens.unwrap_or(0)),
            microdollars: plus(self.microdollars, dollars),
            estimated_microdollars: plus(self.estimated_microdollars, estimated),
            sessions_without_tokens: plus(self.sessions_without_tokens, u64::from(cost.tokens.is_none())),
            sessions_without_cost: plus(self.sessions_without_cost, u64::from(cost.microdollars.is_none())),
        }
    }

    /// What was added since an earlier sum of the same run.
    pub fn since(&self, earlier: &Self) -> Self {
        let added = |now: Amount, before: Amount| amount(number(now).saturating_sub(number(before)));
        Self {
            tokens: added(self.tokens, earlier.tokens),
            microdollars: added(self.microdollars, earlier.microdollars),
            estimated_microdollars: added(self.estimated_microdollars, earlier.estimated_microdollars),
            sessions_without_tokens: added(self.sessions_without_tokens, earlier.sessions_without_tokens),
            sessions_without_cost: added(self.sessions_without_cost, earlier.sessions_without_cost),
        }
    }

    /// Where the sum comes from: the least certain source of its parts.
    pub fn basis(&self) -> CostSource {
        if number(self.sessions_without_cost) > 0 {
            CostSource::Unknown
        } else if number(self.estimated_microdollars) > 0 {
            CostSource::Estimated
        } else {
            CostSource::Reported
        }
    }
}

/// What an open leaf has used so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeafSpending {
    pub node: NodeId,
    /// Input and output tokens.
    pub tokens: Amount,
    /// Millionths of a dollar.
    pub microdollars: Amount,
}

impl LeafSpending {
    /// The sum with one more session.
    pub fn with(self, cost: SessionCost) -> Self {
        Self {
            tokens: plus(self.tokens, cost.tokens.unwrap_or(0)),
            microdollars: plus(self.microdollars, cost.microdollars.unwrap_or(0)),
            node: self.node,
        }
    }
}

/// The limits that a budget can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetLimit {
    RunTokens,
    RunUsd,
    LeafTokens,
    LeafUsd,
}

impl BudgetLimit {
    pub const ALL: [Self; 4] = [Self::RunTokens, Self::RunUsd, Self::LeafTokens, Self::LeafUsd];

    /// The key under `[budget]`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunTokens => "run_tokens",
            Self::RunUsd => "run_usd",
            Self::LeafTokens => "leaf_tokens",
            Self::LeafUsd => "leaf_usd",
        }
    }

    /// Whether it limits dollars.
    pub fn is_money(self) -> bool {
        matches!(self, Self::RunUsd | Self::LeafUsd)
    }

    /// Whether it limits a leaf.
    pub fn is_of_leaf(self) -> bool {
        matches!(self, Self::LeafTokens | Self::LeafUsd)
    }

    /// The limit's value in a budget, in tokens or millionths of a dollar.
    pub fn of(self, budget: &Budget) -> Option<u64> {
        match self {
            Self::RunTokens => budget.run_tokens.map(TokenLimit::as_u64),
            Self::RunUsd => budget.run_usd.map(Usd::microdollars),
            Self::LeafTokens => budget.leaf_tokens.map(TokenLimit::as_u64),
            Self::LeafUsd => budget.leaf_usd.map(Usd::microdollars),
        }
    }
}

/// A limit that has been reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReachedLimit {
    pub limit: BudgetLimit,
    /// The amount used, in tokens or millionths of a dollar.
    pub spent: u64,
    /// The value of the limit.
    pub max: u64,
}

/// The first limit that has been reached.
pub fn reached(budget: &Budget, run: &RunSpending, leaf: Option<&LeafSpending>) -> Option<ReachedLimit> {
    BudgetLimit::ALL.into_iter().find_map(|limit| {
        let max = limit.of(budget)?;
        let spent = used_of(limit, run, leaf);
        (spent >= max).then_some(ReachedLimit { limit, spent, max })
    })
}

/// What one session may use. Zero is left of a limit that has been reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionBudget {
    /// Input and output tokens.
    pub tokens: Option<u64>,
    /// Millionths of a dollar.
    pub microdollars: Option<u64>,
    /// The price of the tokens of an agent that does not report its cost.
    pub price: Option<TokenPrice>,
}

impl SessionBudget {
    /// What is left of a budget.
    pub fn left(budget: &Budget, run: &RunSpending, leaf: Option<&LeafSpending>) -> Self {
        let left = |limits: [BudgetLimit; 2]| {
            let left =
                limits.map(|limit| limit.of(budget).map(|max| max.saturating_sub(used_of(limit, run, leaf))));
            left.into_iter().flatten().min()
        };
        Self {
            tokens: left([BudgetLimit::RunTokens, BudgetLimit::LeafTokens]),
            microdollars: left([BudgetLimit::RunUsd, BudgetLimit::LeafUsd]),
            price: None,
        }
    }

    /// The smaller of both for each limit, at this one's price.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let smaller = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            tokens: smaller(self.tokens, other.tokens),
            microdollars: smaller(self.microdollars, other.microdollars),
            price: self.price,
        }
    }

    pub fn is_limited(&self) -> bool {
        self.tokens.is_some() || self.microdollars.is_some()
    }

    /// Whether a session that has used this much has reached a limit.
    pub fn is_reached(&self, usage: Usage) -> bool {
        let cost = SessionCost::of(&SessionExit::OverBudget, usage, self.price);
        let is_over =
            |max: Option<u64>, used: Option<u64>| max.zip(used).is_some_and(|(max, used)| used >= max);
        is_over(self.tokens, cost.tokens) || is_over(self.microdollars, cost.microdollars)
    }
}

/// What a limit counts: tokens or millionths of a dollar, of the run or of the leaf.
fn used_of(limit: BudgetLimit, run: &RunSpending, leaf: Option<&LeafSpending>) -> u64 {
    match limit {
        BudgetLimit::RunTokens => number(run.tokens),
        BudgetLimit::RunUsd => number(run.microdollars),
        BudgetLimit::LeafTokens => leaf.map_or(0, |leaf| number(leaf.tokens)),
        BudgetLimit::LeafUsd => leaf.map_or(0, |leaf| number(leaf.microdollars)),
    }
}

/// The configured limits that cannot be enforced, because sessions so far did not report what they limit, or because the agent
/// is known not to report it.
pub fn unenforceable_limits(config: &Config, run: &RunSpending, agent: &Executor) -> Vec<BudgetLimit> {
    let reports = |agent: &Executor| agent.agent().map(|agent| agent.reports);
    let reports_no_tokens = |agent: &Executor| reports(agent) == Some(ReportedUsage::Nothing);
    let reports_no_cost = |agent: &Executor| match reports(agent) {
        Some(ReportedUsage::Nothing) => true,
        Some(ReportedUsage::Tokens) => config.price_of(agent).is_none(),
        Some(ReportedUsage::TokensAndCost) | None => false,
    };
    let reviewer = config.review.iter().map(|review| &review.executor);
    let agents: Vec<&Executor> = std::iter::once(agent).chain(reviewer).collect();
    let without_cost =
        number(run.sessions_without_cost) > 0 || agents.iter().any(|agent| reports_no_cost(agent));
    let without_tokens =
        number(run.sessions_without_tokens) > 0 || agents.iter().any(|agent| reports_no_tokens(agent));
    let is_unknown = |limit: &BudgetLimit| if limit.is_money() { without_cost } else { without_tokens };
    let configured = BudgetLimit::ALL.into_iter().filter(|limit| limit.of(&config.budget).is_some());
    configured.filter(is_unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, cached: u64, output: u64, cost: Option<u64>) -> Usage {
        Usage {
            input_tokens: Some(input),
            cached_input_tokens: Some(cached),
            output_tokens: Some(output),
            cost_microdollars: cost,
            ..Usage::default()
        }
    }

    const ENDED: SessionExit = SessionExit::Finished { code: 0 };

    fn price() -> TokenPrice {
        let usd = Usd::of_microdollars;
        TokenPrice {
            input: usd(1_250_000),
            cached_input: Some(usd(125_000)),
            cache_write: Some(usd(2_000_000)),
            output: usd(10_000_000),
        }
    }

    #[test]
    fn a_cost_is_reported_or_estimated_or_unknown() {
        let reported = SessionCost::of(&ENDED, usage(10, 0, 5, Some(7)), Some(price()));
        assert_eq!(
            reported,
            SessionCost { tokens: Some(15), microdollars: Some(7), basis: CostSource::Reported }
        );
        // 900 at 1.25, 100 at 0.125 and 50 at 10 dollars a million: 1125 + 12.5 + 500 millionths, rounded up.
        let estimated = SessionCost::of(&ENDED, usage(1000, 100, 50, None), Some(price()));
        assert_eq!(
            estimated,
            SessionCost { tokens: Some(1050), microdollars: Some(1638), basis: CostSource::Estimated }
        );
        // The same with 200 of the 900 at 2 dollars a million: 150 millionths more.
        let written = Usage { cache_write_input_tokens: Some(200), ..usage(1000, 100, 50, None) };
        assert_eq!(SessionCost::of(&ENDED, written, Some(price())).microdollars, Some(1788));
        let without_price = TokenPrice { cache_write: None, ..price() };
        assert_eq!(SessionCost::of(&ENDED, written, Some(without_price)).microdollars, Some(1638));
        let unknown = SessionCost::of(&ENDED, usage(10, 0, 5, None), None);
        assert_eq!((unknown.microdollars, unknown.basis), (None, CostSource::Unknown));
        assert_eq!(SessionCost::of(&ENDED, Usage::default(), Some(price())).basis, CostSource::Unknown);
        let turned_away = SessionExit::NotStarted { why: String::new() };
        assert_eq!(SessionCost::of(&turned_away, Usage::default(), None).microdollars, Some(0));
        let huge = SessionCost::of(&ENDED, usage(u64::MAX, 0, u64::MAX, None), Some(price()));
        assert_eq!((huge.tokens, huge.microdollars), (Some(u64::MAX), Some(u64::MAX)));
    }

    #[test]
    fn a_sum_is_known_no_better_than_its_parts() {
        let cost = |microdollars, basis| SessionCost { tokens: Some(1), microdollars, basis };
        let sum = RunSpending::default().with(cost(Some(5), CostSource::Reported));
        assert_eq!((number(sum.microdollars), sum.basis()), (5, CostSource::Reported));
        let sum = sum.with(cost(Some(3), CostSource::Estimated));
        assert_eq!((number(sum.microdollars), number(sum.estimated_microdollars)), (8, 3));
        assert_eq!(sum.basis(), CostSource::Estimated);
        assert_eq!(sum.with(cost(None, CostSource::Unknown)).basis(), CostSource::Unknown);
        let full = sum.with(cost(Some(u64::MAX), CostSource::Reported));
        assert_eq!(full.microdollars.get(), SAFE_INTEGER_MAX);
    }

    #[test]
    fn a_limit_is_reached_by_what_is_spent_and_not_before() {
        let budget = Budget {
            run_tokens: BoundedInt::new(10),
            leaf_usd: Some(Usd::of_microdollars(5)),
            ..Budget::default()
        };
        let spent = |tokens| RunSpending { tokens: amount(tokens), ..RunSpending::default() };
        let leaf =
            |dollars| LeafSpending { node: NodeId::root(), tokens: amount(0), microdollars: amount(dollars) };
        assert_eq!(reached(&budget, &spent(9), Some(&leaf(4))), None);
        let run = reached(&budget, &spent(10), None).unwrap();
        assert_eq!((run.limit, run.spent, run.max), (BudgetLimit::RunTokens, 10, 10));
        assert_eq!(reached(&budget, &spent(9), Some(&leaf(5))).unwrap().limit, BudgetLimit::LeafUsd);
        assert_eq!(reached(&Budget::default(), &spent(u64::MAX), None), None);
    }

    #[test]
    fn a_session_gets_what_is_left_of_the_smaller_limit() {
        let limits = |run, leaf| Budget {
            run_usd: Some(Usd::of_microdollars(run)),
            leaf_usd: Some(Usd::of_microdollars(leaf)),
            ..Budget::default()
        };
        let run = RunSpending { microdollars: amount(7), ..RunSpending::default() };
        let leaf = LeafSpending { node: NodeId::root(), tokens: amount(0), microdollars: amount(2) };
        let left = |budget: &Budget, leaf| SessionBudget::left(budget, &run, leaf).microdollars;
        assert_eq!(left(&limits(10, 10), Some(&leaf)), Some(3));
        assert_eq!(left(&limits(100, 10), Some(&leaf)), Some(8));
        assert_eq!(left(&limits(5, 10), None), Some(0));
        assert_eq!(left(&Budget::default(), Some(&leaf)), None);
        let tokens = Budget { run_tokens: BoundedInt::new(10), ..Budget::default() };
        assert_eq!(SessionBudget::left(&tokens, &run, None).tokens, Some(10));
        let loops = SessionBudget { tokens: Some(4), microdollars: Some(9), price: None };
        let both = SessionBudget { price: Some(price()), ..SessionBudget::left(&limits(10, 10), &run, None) };
        assert_eq!(
            both.and(loops),
            SessionBudget { tokens: Some(4), microdollars: Some(3), price: Some(price()) }
        );
    }

    #[test]
    fn a_session_is_over_its_budget_at_the_limit_and_not_before() {
        let budget = |tokens, microdollars| SessionBudget { tokens, microdollars, price: Some(price()) };
        assert!(!budget(Some(1051), None).is_reached(usage(1000, 100, 50, None)));
        assert!(budget(Some(1050), None).is_reached(usage(1000, 100, 50, None)));
        // Estimated at 1638 millionths.
        assert!(!budget(None, Some(1639)).is_reached(usage(1000, 100, 50, None)));
        assert!(budget(None, Some(1638)).is_reached(usage(1000, 100, 50, None)));
        assert!(budget(None, Some(7)).is_reached(usage(1, 0, 0, Some(7))));
        assert!(!SessionBudget::default().is_reached(usage(u64::MAX, 0, 0, Some(u64::MAX))));
        assert!(!budget(Some(0), Some(0)).is_reached(Usage::default()), "nothing is known yet");
    }

    #[test]
    fn a_limit_that_an_agent_is_known_not_to_report_cannot_be_enforced() {
        let unenforceable = |keys: &str| {
            let config = Config::decode(keys.as_bytes()).unwrap();
            unenforceable_limits(&config, &RunSpending::default(), &config.executor)
        };
        let preset = |name: &str, budget: &str| {
            unenforceable(&format!(
                "[executor]\nkind = \"command\"\npreset = \"{name}\"\n[budget]\n{budget}\n"
            ))
        };
        assert_eq!(preset("copilot", "run_tokens = 5"), [BudgetLimit::RunTokens]);
        assert_eq!(preset("copilot", "run_usd = 5"), [BudgetLimit::RunUsd]);
        assert_eq!(preset("gemini", "run_usd = 5"), [BudgetLimit::RunUsd]);
        assert_eq!(preset("gemini", "run_tokens = 5\n[prices.gemini]\ninput = 1\noutput = 1"), []);
        assert_eq!(preset("opencode", "run_tokens = 5\nleaf_usd = 1"), []);
        assert_eq!(
            unenforceable("[executor]\nkind = \"command\"\ncommand = [\"x\"]\n[budget]\nrun_usd = 5\n"),
            [],
            "a program may report its cost"
        );
    }

    #[test]
    fn a_limit_on_what_is_not_known_is_told() {
        let mut config = Config::default();
        config.budget.run_usd = Some(Usd::of_microdollars(1));
        config.executor.model = Some("unpriced".to_owned());
        let codex = config.executor.clone();
        assert_eq!(unenforceable_limits(&config, &RunSpending::default(), &codex), [BudgetLimit::RunUsd]);
        config.prices.insert("unpriced".to_owned(), price());
        assert_eq!(unenforceable_limits(&config, &RunSpending::default(), &codex), []);
        let unknown = SessionCost { tokens: None, microdollars: None, basis: CostSource::Unknown };
        let blind = RunSpending::default().with(unknown);
        assert_eq!(unenforceable_limits(&config, &blind, &codex), [BudgetLimit::RunUsd]);
    }

    #[test]
    fn a_limit_on_tokens_needs_agents_that_tell_them() {
        let mut config = Config::default();
        config.budget.run_tokens = BoundedInt::new(10);
        let agent = config.executor.clone();
        let known = SessionCost { tokens: Some(1), microdollars: None, basis: CostSource::Unknown };
        assert_eq!(unenforceable_limits(&config, &RunSpending::default().with(known), &agent), []);
        let unknown = SessionCost { tokens: None, ..known };
        assert_eq!(
            unenforceable_limits(&config, &RunSpending::default().with(unknown), &agent),
            [BudgetLimit::RunTokens]
        );
    }

    #[test]
    fn a_limit_is_called_by_its_key_and_knows_what_it_is_about() {
        let found = BudgetLimit::ALL.map(|limit| (limit.as_str(), limit.is_money(), limit.is_of_leaf()));
        let expected = [
            ("run_tokens", false, false),
            ("run_usd", true, false),
            ("leaf_tokens", false, true),
            ("leaf_usd", true, true),
        ];
        assert_eq!(found, expected);
    }
}
