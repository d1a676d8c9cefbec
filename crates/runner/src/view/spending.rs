//! Tokens and money, for people.

use runner_core::config::Budget;
use runner_core::spending::{BudgetLimit, Spent, number};
use runner_core::step::{CostSource, Stop};

use super::counted;

/// `950`, `12.3k`, `4.56M`.
pub(crate) fn tokens(count: u64) -> String {
    let scaled = |unit: u64, digits: usize, name: &str| {
        let tenth = unit / 10_u64.pow(u32::try_from(digits).unwrap_or(0));
        let parts = count / tenth.max(1);
        let scale = 10_u64.pow(u32::try_from(digits).unwrap_or(0));
        let fraction = format!("{:0digits$}", parts % scale);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{point}{fraction}{name}", parts / scale)
    };
    match count {
        0..=9_999 => count.to_string(),
        10_000..=999_999 => scaled(1_000, 1, "k"),
        _ => scaled(1_000_000, 2, "M"),
    }
}

/// `$1.25`; below a cent as exactly as it is known.
pub(crate) fn dollars(microdollars: u64) -> String {
    let (whole, rest) = (microdollars / 1_000_000, microdollars % 1_000_000);
    if microdollars > 0 && microdollars < 10_000 {
        return format!("${whole}.{}", format!("{rest:06}").trim_end_matches('0'));
    }
    format!("${whole}.{:02}", rest / 10_000)
}

/// An amount of what a limit is about.
pub(crate) fn of_limit(limit: BudgetLimit, amount: u64) -> String {
    if limit.is_money() { dollars(amount) } else { format!("{} tokens", tokens(amount)) }
}

/// What a run has cost, against what it may cost. Nothing where nothing is known and nothing is limited.
pub(crate) fn spent_text(spent: &Spent, budget: &Budget) -> Option<String> {
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

/// Limits that cannot hold.
pub(crate) fn blind_text(limits: &[BudgetLimit], agent: &str) -> String {
    let names: Vec<&str> = limits.iter().map(|limit| limit.as_str()).collect();
    let what = if limits.iter().all(|limit| limit.is_money()) { "cost" } else { "use" };
    format!(
        "the budget cannot hold: `{}` is set, but {agent} does not say its {what}; add its price under [prices], or \
         limit tokens",
        names.join("`, `")
    )
}

/// Why a limit of the budget stops the run.
pub(crate) fn budget_why(stop: &Stop) -> Option<String> {
    let Stop::Budget { limit, node, spent, max } = stop else { return None };
    let leaf = node.as_ref().map(|node| format!(" on leaf `{node}`")).unwrap_or_default();
    let (spent, max) = (of_limit(*limit, *spent), of_limit(*limit, *max));
    Some(format!("the budget `{}` is reached: {spent} of {max} spent{leaf}", limit.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_core::config::Usd;
    use runner_core::spending::{Cost, amount};

    #[test]
    fn amounts_read_like_amounts() {
        let read = [0, 9_999, 12_345, 999_999, 1_000_000, 4_567_890].map(tokens);
        assert_eq!(read, ["0", "9999", "12.3k", "999.9k", "1M", "4.56M"]);
        let read = [0, 1, 5_000, 10_000, 1_250_000, 25_000_000].map(dollars);
        assert_eq!(read, ["$0.00", "$0.000001", "$0.005", "$0.01", "$1.25", "$25.00"]);
    }

    #[test]
    fn what_is_spent_stands_against_the_budget_and_says_how_it_is_known() {
        let mut budget = Budget::default();
        assert_eq!(spent_text(&Spent::default(), &budget), None);
        let spent = Spent { tokens: amount(15_000), microdollars: amount(420_000), ..Spent::default() };
        assert_eq!(spent_text(&spent, &budget).unwrap(), "15k tokens, $0.42");
        budget.run_usd = Some(Usd::of_microdollars(2_000_000));
        let unknown = Cost { tokens: None, microdollars: None, basis: CostSource::Unknown };
        let told = spent_text(&spent.with(unknown), &budget).unwrap();
        assert_eq!(told, "15k tokens, $0.42 of $2.00 (cost of 1 session unknown)");
    }
}
