//! The core as other crates see it.

#[cfg(test)]
mod agent_events;
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

/// How many cases a property is tried with; `RUNNER_PROPERTY_CASES` may ask for fewer.
const CASES: u32 = 512;

/// As many as usual, or as few as the variable `name` asks for: a mutation run starts the tests a thousand times.
#[expect(
    clippy::disallowed_methods,
    reason = "how long the tests may take is for whoever starts them to say"
)]
fn fewer<N: std::str::FromStr>(name: &str, usual: N) -> N {
    let Ok(asked) = std::env::var(name) else { return usual };
    let number = asked.parse().ok();
    assert!(number.is_some(), "{name} is no number: {asked}");
    number.unwrap_or(usual)
}

/// Tries a property with generated values: always the same ones, so that a test fails for everyone or for no one.
#[track_caller]
fn holds<S: Strategy>(values: S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let cases = fewer("RUNNER_PROPERTY_CASES", CASES);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let result = TestRunner::new_with_rng(config, rng).run(&values, property);
    assert!(result.is_ok(), "{}", result.err().map(|error| error.to_string()).unwrap_or_default());
}

/// The problems as people read them.
fn told<T: ToString>(problems: &[T]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}
