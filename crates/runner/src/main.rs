//! The `runner` command, which is also its own supervisor, the scripted agent and a hook for agents.

use std::process::ExitCode;

fn main() -> ExitCode {
    if supervise::is_supervisor() {
        return supervise::run_supervisor();
    }
    if let Some(scenario) = runner_host::agent::scripted_agent::scenario_argument() {
        return runner_host::agent::scripted_agent::play(&scenario);
    }
    if let Some(folders) = runner_host::agent::claude_file_hook::allowed_folders() {
        return runner_host::agent::claude_file_hook::check(&folders);
    }
    // A disk quota is an error to be told, not the runner's death. Where it cannot be arranged, a crash is recovered.
    let _ = supervise::signals::survive_file_size_limit();
    runner::main()
}
