//! Running iterations in a repository: [`RepoWorld`] carries out what the core's step decides.
//!
//! Every change of the repository is in the journal before it is made, so that the next command can finish it after a crash
//! at any point.

mod agent_version;
mod baseline;
mod commit;
pub(crate) mod event_log;
pub(crate) mod guard;
mod hooks;
pub mod iteration_dir;
mod known_state;
pub(crate) mod load;
pub mod log_retention;
mod maintenance;
mod open_iteration;
pub(crate) mod program_runner;
mod protected_paths;
pub(crate) mod recovered_session;
pub(crate) mod repo_world;
mod sandboxing;
mod session;
mod session_files;
mod step_inputs;
pub(crate) mod stored_attempt;
mod transcript_recorder;
mod wait;

pub use event_log::EventSink;
pub(crate) use hooks::program as hook_program;
pub use repo_world::RepoWorld;
