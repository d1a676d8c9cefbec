//! The `runner-eval` command, which is also its own workers and the supervisor of what they start.

use std::process::ExitCode;

fn main() -> ExitCode {
    if runner_host::process::is_supervisor() {
        return runner_host::process::supervise();
    }
    if eval::worker::is_worker() {
        return eval::worker::main();
    }
    eval::main()
}
