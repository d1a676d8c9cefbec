//! Tests the core through its public interface.

#[cfg(test)]
mod agent_events;
#[cfg(test)]
mod agent_presets;
#[cfg(test)]
mod agents;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod decoder_properties;
#[cfg(test)]
mod document_properties;
#[cfg(test)]
mod generated;
#[cfg(test)]
mod goal;
#[cfg(test)]
mod plan_import;
#[cfg(test)]
mod run_id_git_rules;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod start;
#[cfg(test)]
mod step_properties;
#[cfg(test)]
mod text;
#[cfg(test)]
mod tree_corpus;
#[cfg(test)]
mod tree_properties;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// The number of cases per property; `RUNNER_PROPERTY_CASES` overrides it.
const CASES: u32 = 512;

/// The number in an environment variable, or the default: a mutation run starts the tests a thousand times and needs fewer.
#[expect(clippy::disallowed_methods, reason = "the caller of the tests limits their duration")]
fn count_from_env<N: std::str::FromStr>(name: &str, default: N) -> N {
    let Ok(value) = std::env::var(name) else { return default };
    let number = value.parse().ok();
    assert!(number.is_some(), "{name} is not a number: {value}");
    number.unwrap_or(default)
}

/// Checks a property with generated values: always the same ones, so that a test fails everywhere or nowhere.
#[track_caller]
fn holds<S: Strategy>(values: S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let cases = count_from_env("RUNNER_PROPERTY_CASES", CASES);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let result = TestRunner::new_with_rng(config, rng).run(&values, property);
    assert!(result.is_ok(), "{}", result.err().map(|error| error.to_string()).unwrap_or_default());
}

fn messages<T: ToString>(problems: &[T]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}
