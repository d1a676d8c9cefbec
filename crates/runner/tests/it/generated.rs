//! The file that is made from the command line.

use runner_core::step::Outcome;
use testkit::generated::assert_generated;

#[test]
fn the_table_of_failures_is_generated() {
    let page = format!(
        "# Failures\n\nA session without an answer that counts costs no attempt, whatever the reason. Each way to fail has one meaning, \
         decided by one\nfunction of the core.\n\nMade from the program itself: `just generate` writes it anew.\n\n{}",
        Outcome::failure_table()
    );
    assert_generated("docs/reference/failures.md", page.as_bytes());
}

#[test]
fn the_command_line_reference_is_generated() {
    assert_generated("docs/reference/cli.md", runner::args::reference().as_bytes());
}
