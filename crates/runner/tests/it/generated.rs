//! Generated documents that depend on this crate.

use runner_core::step::Outcome;
use testkit::generated::assert_generated;

#[test]
fn the_table_of_failures_is_generated() {
    let page = format!(
        "# Failures\n\nA session without a valid answer uses no attempt, whatever the reason. Each failure has one meaning, decided by one\n\
         function of the core.\n\nGenerated from the program: run `just generate` to update it.\n\n{}",
        Outcome::failure_table()
    );
    assert_generated("docs/reference/failures.md", page.as_bytes());
}

#[test]
fn the_command_line_reference_is_generated() {
    assert_generated("docs/reference/cli.md", runner::args::reference().as_bytes());
}
