//! The `runner` command, which is also its own supervisor, the scripted agent and a hook for agents.

use std::process::ExitCode;

fn main() -> ExitCode {
    if runner_host::process::is_supervisor() {
        return runner_host::process::supervise();
    }
    if let Some(scenario) = runner_host::agent::scripted_agent::scenario_to_play() {
        return runner_host::agent::scripted_agent::play(&scenario);
    }
    if let Some(folders) = runner_host::agent::claude_file_hook::folders_to_keep_to() {
        return runner_host::agent::claude_file_hook::judge(&folders);
    }
    // A disk quota is an error to be told, not the runner's death. Where it cannot be arranged, a crash is recovered.
    let _ = runner_host::signals::survive_file_size_limit();
    runner::main()
}
