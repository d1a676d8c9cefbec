//! The `runner` command, which is also its own supervisor, the scripted agent and a hook for agents.

use std::process::ExitCode;

fn main() -> ExitCode {
    if supervise::is_supervisor() {
        return supervise::supervise();
    }
    if let Some(scenario) = runner_host::agent::scripted_agent::scenario_to_play() {
        return runner_host::agent::scripted_agent::play(&scenario);
    }
    if let Some(folders) = runner_host::agent::claude_file_hook::folders_to_keep_to() {
        return runner_host::agent::claude_file_hook::judge(&folders);
    }
    // A disk quota is an error to be told, not the runner's death. Where it cannot be arranged, a crash is recovered.
    let _ = supervise::signals::survive_file_size_limit();
    runner::main()
}
