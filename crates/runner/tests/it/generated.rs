//! The file that is made from the command line.

use testkit::generated::assert_generated;

#[test]
fn the_command_line_reference_is_generated() {
    assert_generated("docs/cli.md", runner::cli::reference().as_bytes());
}
