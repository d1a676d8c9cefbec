//! Reference pages that are generated from the command line and the outcomes.

use runner_core::step::Outcome;
use testkit::generated::assert_generated;

#[test]
fn the_table_of_failures_is_generated() {
    let page = format!(
        "# Failures\n\nA session without an answer costs no attempt, whatever the reason. Each failure has one outcome and one \
         consequence.\n\nGenerated from the code: `just generate` writes it.\n\n{}",
        Outcome::failure_table()
    );
    assert_generated("docs/reference/failures.md", page.as_bytes());
}

#[test]
fn the_command_line_reference_is_generated() {
    assert_generated("docs/reference/cli.md", runner::args::reference().as_bytes());
}

#[test]
fn the_page_of_error_codes_is_generated() {
    assert_generated("docs/reference/errors.md", runner_term::explain::reference().as_bytes());
}
