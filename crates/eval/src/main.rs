//! The `runner-eval` command, which is also the supervisor of what it starts.

use std::process::ExitCode;

fn main() -> ExitCode {
    if runner_host::process::is_supervisor() {
        return runner_host::process::supervise();
    }
    eval::main()
}
