//! The `runner` command, which is also its own supervisor and the scripted agent.

use std::process::ExitCode;

fn main() -> ExitCode {
    if runner_host::process::is_supervisor() {
        return runner_host::process::supervise();
    }
    if let Some(scenario) = runner_host::script::scenario_to_play() {
        return runner_host::script::play(&scenario);
    }
    // A disk quota is an error to be told, not the runner's death. Where it cannot be arranged, a crash is recovered.
    let _ = runner_host::signals::survive_file_size_limit();
    runner::main()
}
