//! The `runner-ui` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    runner_ui::main()
}
