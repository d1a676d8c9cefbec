//! The `runner-eval` binary. It starts itself again as worker processes and as the supervisor of their programs.

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
