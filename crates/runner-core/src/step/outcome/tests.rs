//! Outcomes and stop reasons: their words, exit codes and documentation.

use super::*;

#[test]
fn every_outcome_is_listed_once_under_its_name() {
    for outcome in Outcome::ALL {
        assert_eq!(Outcome::from_name(outcome.as_str()), Some(outcome));
        assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
    }
    let mut sorted = Outcome::ALL;
    sorted.sort_unstable();
    assert_eq!(sorted, Outcome::ALL, "in the order of the type");
    assert_eq!(Outcome::from_name("fine"), None);
}

#[test]
fn every_stop_has_the_exit_code_of_the_contract() {
    let node = NodeId::root();
    for (stop, code) in [
        (StopReason::Complete, 0),
        (StopReason::Stuck { node }, 3),
        (StopReason::NotReproducible { exit: "1".to_owned() }, 3),
        (StopReason::MaxIterations { max: 1 }, 4),
        (StopReason::LoopIterations { max: 1 }, 4),
        (StopReason::LoopBudget { limit: BudgetLimit::RunUsd, spent: None, max: 1 }, 4),
        (StopReason::Budget { limit: BudgetLimit::RunUsd, node: None, spent: 2, max: 1 }, 4),
        (StopReason::Stalled { iterations: 12 }, 4),
        (StopReason::TimeLimit { outcome: Outcome::IdleTimeout }, 4),
        (StopReason::Failures { outcome: Outcome::NoAnswer, in_row: 3 }, 1),
        (StopReason::NeedsUser { outcome: Outcome::NotLoggedIn }, 1),
        (StopReason::VacuousChecks { node: NodeId::root(), checks: Vec::new() }, 1),
        (StopReason::NotApproved, 2),
        (StopReason::Interrupted { by: Interruption::Int }, 130),
        (StopReason::Interrupted { by: Interruption::Term }, 143),
        (StopReason::Interrupted { by: Interruption::Hup }, 129),
        (StopReason::UserStop, 130),
    ] {
        assert_eq!(stop.exit_code(), code, "{stop:?}");
        assert_eq!(serde_json::to_value(&stop).unwrap()["reason"], stop.as_str());
    }
}

#[test]
fn the_documented_failures_match_the_code() {
    let page = include_str!("../../../../../docs/reference/failures.md");
    let (_, table) = page.rsplit_once("\n\n").unwrap();
    assert_eq!(Outcome::failure_table(), table);
}

#[test]
fn every_failure_is_documented_with_the_exit_code_of_its_stop_reason() {
    let table = Outcome::failure_table();
    let mut rows = table.lines().skip(2).map(|row| row.trim_matches(['|', ' ']).split(" | "));
    for outcome in Outcome::ALL {
        let stops = match outcome.class() {
            OutcomeClass::Answered => continue,
            OutcomeClass::TimeLimit => vec![StopReason::TimeLimit { outcome }],
            OutcomeClass::Interrupted => [Interruption::Int, Interruption::Term, Interruption::Hup]
                .map(|by| StopReason::Interrupted { by })
                .to_vec(),
            OutcomeClass::Transient | OutcomeClass::UsageLimit => Vec::new(),
            OutcomeClass::TooLarge | OutcomeClass::Failure => {
                vec![StopReason::Failures { outcome, in_row: 3 }]
            }
            OutcomeClass::NeedsUser => vec![StopReason::NeedsUser { outcome }],
        };
        let codes: Vec<String> = stops.iter().map(|stop| stop.exit_code().to_string()).collect();
        let codes = if codes.is_empty() { "none".to_owned() } else { codes.join(", ") };
        let mut row = rows.next().unwrap();
        assert_eq!((row.next(), row.last()), (Some(&*format!("`{outcome}`")), Some(&*codes)));
    }
    assert_eq!(rows.count(), 0, "an answer is not a failure");
}
