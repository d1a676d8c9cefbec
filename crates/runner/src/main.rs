//! The `runner` executable, which is also its own supervisor, the launcher of sandboxes and of its own programs, the scripted
//! agent, the client of ACP agents, the file hook of Claude Code, and the programs `runner-ui` and `runner-eval`.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = runner::included_programs::run() {
        return code;
    }
    supervise::deny_inspection();
    if supervise::is_supervisor() {
        return supervise::run_supervisor();
    }
    if let Some(code) = supervise::socket_scope::launch_if_requested() {
        return code;
    }
    if let Some(code) = supervise::parent_death::launch_if_requested() {
        return code;
    }
    if let Some(scenario) = runner_host::agent::scripted_agent::scenario_argument() {
        return runner_host::agent::scripted_agent::play(&scenario);
    }
    if let Some(session) = runner_host::agent::acp_client::session_arguments() {
        return runner_host::agent::acp_client::run(&session);
    }
    if let Some(folders) = runner_host::agent::claude_file_hook::allowed_folders() {
        return runner_host::agent::claude_file_hook::check(&folders);
    }
    // Exceeding a file size limit should be an error, not kill the runner. If this fails, the next command recovers
    // the crash.
    let _ = supervise::signals::survive_file_size_limit();
    runner::main()
}
