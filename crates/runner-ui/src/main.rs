//! The `runner-ui` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    runner_ui::main()
}
