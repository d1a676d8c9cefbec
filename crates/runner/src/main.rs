//! The `runner` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    if runner_host::process::is_supervisor() {
        return runner_host::process::supervise();
    }
    runner::main()
}
