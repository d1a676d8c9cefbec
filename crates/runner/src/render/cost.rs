//! Tokens, money and budgets as people read them.

use runner_core::config::Budget;
use runner_core::model::cost::{BudgetLimit, RunSpending, number};
use runner_core::step::CostSource;
use runner_term::format::{counted, dollars, tokens};

/// An amount in the unit of a limit.
pub(crate) fn of_limit(limit: BudgetLimit, amount: u64) -> String {
    if limit.is_money() { dollars(amount) } else { format!("{} tokens", tokens(amount)) }
}

/// What a run has cost, with its limits; none if no cost is known and none is limited.
pub(crate) fn spent_text(spent: &RunSpending, budget: &Budget) -> Option<String> {
    let against = |limit: BudgetLimit, amount: u64| {
        let max = limit.of(budget).map(|max| format!(" of {}", of_limit(limit, max)));
        match (amount, max) {
            (0, None) => None,
            (amount, max) => Some(format!("{}{}", of_limit(limit, amount), max.unwrap_or_default())),
        }
    };
    let money = against(BudgetLimit::RunUsd, number(spent.microdollars)).map(|text| {
        let without = number(spent.sessions_without_cost);
        match spent.basis() {
            CostSource::Reported => text,
            CostSource::Estimated => format!("{text} (estimated)"),
            CostSource::Unknown => {
                let sessions = counted(without, "session", "sessions");
                format!("{text} (cost of {sessions} unknown)")
            }
        }
    });
    let parts = [against(BudgetLimit::RunTokens, number(spent.tokens)), money];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    Some(text).filter(|text| !text.is_empty())
}

/// A warning about limits that cannot be enforced, because the agent does not report what they limit.
pub(crate) fn blind_text(limits: &[BudgetLimit], agent: &str) -> String {
    let names: Vec<&str> = limits.iter().map(|limit| limit.as_str()).collect();
    let names = names.join(" and ");
    if !limits.iter().all(|limit| limit.is_money()) {
        return format!("{names} cannot be enforced: {agent} reports no usage");
    }
    let price = match agent.split_once(':') {
        Some(("codex" | "claude", model)) => format!("[prices.\"{model}\"]"),
        Some(_) | None => "its price under [prices]".to_owned(),
    };
    format!("{names} cannot be enforced: {agent} reports no cost. Add {price} or set run_tokens.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_core::config::Usd;
    use runner_core::model::cost::{SessionCost, amount};

    #[test]
    fn spent_amounts_show_their_limit_and_how_reliable_they_are() {
        let mut budget = Budget::default();
        assert_eq!(spent_text(&RunSpending::default(), &budget), None);
        let spent =
            RunSpending { tokens: amount(15_000), microdollars: amount(420_000), ..RunSpending::default() };
        assert_eq!(spent_text(&spent, &budget).unwrap(), "15k tokens, $0.42");
        budget.run_usd = Some(Usd::of_microdollars(2_000_000));
        let unknown = SessionCost { tokens: None, microdollars: None, basis: CostSource::Unknown };
        let text = spent_text(&spent.with(unknown), &budget).unwrap();
        assert_eq!(text, "15k tokens, $0.42 of $2.00 (cost of 1 session unknown)");
    }
}
