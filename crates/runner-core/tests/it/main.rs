//! The core as other crates see it.

mod corpus;

/// The problems as people read them, one a line.
fn told<T: ToString>(problems: &[T]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}
