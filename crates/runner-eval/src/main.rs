//! The `runner-eval` command, which is also its own workers and the supervisor of what they start.

use std::process::ExitCode;

fn main() -> ExitCode {
    if supervise::is_supervisor() {
        return supervise::run_supervisor();
    }
    if runner_eval::worker::is_worker() {
        return runner_eval::worker::main();
    }
    runner_eval::main()
}
