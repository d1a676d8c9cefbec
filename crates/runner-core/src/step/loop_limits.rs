//! The limits of one command on its loop: iterations, dollars and tokens.

use super::outcome::StopReason;
use crate::config::Budget;
use crate::model::cost::{BudgetLimit, ReachedLimit, RunSpending, SessionBudget, number, reached};

/// What one loop may use, whatever the run has used before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopLimits {
    /// Iterations, outages not counted.
    pub iterations: Option<u32>,
    /// Limits on tokens and dollars. Only those of a run apply.
    pub budget: Budget,
}

impl LoopLimits {
    /// At most this many iterations.
    pub fn of_iterations(iterations: Option<u32>) -> Self {
        Self { iterations, budget: Budget::default() }
    }

    /// What is left for the next session of a loop that began and stands with these sums of the run.
    pub(super) fn left(&self, began: &RunSpending, now: &RunSpending) -> SessionBudget {
        SessionBudget::left(&self.budget, &now.since(began), None)
    }

    /// The limit that a loop has reached that began and stands with these sums of the run. A session whose cost is unknown
    /// reaches every limit on it: the limit must hold, and nothing shows whether it does.
    pub(super) fn reached(&self, began: &RunSpending, now: &RunSpending) -> Option<StopReason> {
        let spent = now.since(began);
        if let Some(stop) = unmeasured(&self.budget, &spent, 1) {
            return Some(stop);
        }
        let ReachedLimit { limit, spent, max } = reached(&self.budget, &spent, None)?;
        Some(StopReason::LoopBudget { limit, spent: Some(spent), max })
    }
}

/// The configured limit that does not hold, because two sessions of the loop did not report what it limits. One may be killed
/// before it reports anything.
pub(super) fn unmeasured_budget(
    budget: &Budget,
    began: &RunSpending,
    now: &RunSpending,
) -> Option<StopReason> {
    unmeasured(budget, &now.since(began), 2)
}

/// The first limit on what this many sessions did not report.
fn unmeasured(budget: &Budget, spent: &RunSpending, sessions: u64) -> Option<StopReason> {
    BudgetLimit::ALL.into_iter().find_map(|limit| {
        let max = limit.of(budget)?;
        let unknown =
            if limit.is_money() { spent.sessions_without_cost } else { spent.sessions_without_tokens };
        (number(unknown) >= sessions).then_some(StopReason::LoopBudget { limit, spent: None, max })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Usd;
    use crate::model::cost::SessionCost;
    use crate::step::CostSource;
    use crate::strict::BoundedInt;

    fn cost(tokens: Option<u64>, microdollars: Option<u64>) -> SessionCost {
        SessionCost { tokens, microdollars, basis: CostSource::Reported }
    }

    #[test]
    fn only_what_the_loop_used_itself_counts() {
        let budget = Budget { run_usd: Some(Usd::of_microdollars(5)), ..Budget::default() };
        let limits = LoopLimits { iterations: None, budget };
        let began = RunSpending::default().with(cost(None, None)).with(cost(Some(9), Some(100)));
        assert_eq!(limits.reached(&began, &began), None);
        let below = began.with(cost(None, Some(4)));
        assert_eq!(limits.reached(&began, &below), None);
        let stop = StopReason::LoopBudget { limit: BudgetLimit::RunUsd, spent: Some(5), max: 5 };
        assert_eq!(limits.reached(&began, &below.with(cost(None, Some(1)))), Some(stop));
    }

    #[test]
    fn two_sessions_of_unknown_cost_end_a_loop_with_a_configured_limit_on_it() {
        let budget = Budget { leaf_usd: Some(Usd::of_microdollars(5)), ..Budget::default() };
        let began = RunSpending::default().with(cost(None, None));
        let one = began.with(cost(Some(1), None));
        assert_eq!(unmeasured_budget(&budget, &began, &one), None);
        let two = one.with(cost(Some(1), None));
        let stop = StopReason::LoopBudget { limit: BudgetLimit::LeafUsd, spent: None, max: 5 };
        assert_eq!(unmeasured_budget(&budget, &began, &two), Some(stop));
        let tokens = Budget { run_tokens: BoundedInt::new(7), ..Budget::default() };
        assert_eq!(unmeasured_budget(&tokens, &began, &two), None, "tokens are known");
    }

    #[test]
    fn a_session_of_unknown_cost_ends_a_loop_with_a_limit_on_it() {
        let budget = Budget { run_tokens: BoundedInt::new(7), ..Budget::default() };
        let limits = LoopLimits { iterations: None, budget };
        let began = RunSpending::default();
        let unknown = began.with(cost(None, Some(1)));
        let stop = StopReason::LoopBudget { limit: BudgetLimit::RunTokens, spent: None, max: 7 };
        assert_eq!(limits.reached(&began, &unknown), Some(stop));
        assert_eq!(LoopLimits::default().reached(&began, &unknown), None);
    }
}
