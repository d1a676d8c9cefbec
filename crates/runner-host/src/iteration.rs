//! Running iterations in a repository: [`RepoWorld`] carries out what the core's step decides.
//!
//! Every change of the repository is in the journal before it is made, so that the next command can finish it after a crash
//! at any point.

mod agent_version;
pub(crate) mod check_report;
mod commit;
mod earlier_records;
pub(crate) mod event_log;
mod file_activity;
pub(crate) mod guard;
mod heldout;
mod hooks;
pub mod iteration_dir;
mod known_state;
pub(crate) mod laid_files;
pub(crate) mod load;
pub mod log_retention;
mod maintenance;
mod memory_files;
mod notify;
mod open_iteration;
mod parallel;
mod pinned_repo;
pub(crate) mod program_runner;
mod protected_paths;
mod recheck;
mod recorded_guard;
pub(crate) mod recovered_session;
mod red_baseline;
mod red_check;
mod redacted_docs;
pub(crate) mod repo_world;
mod restored_index;
mod review;
mod room_proposal;
mod sandboxing;
mod session;
mod session_files;
pub(crate) mod step_inputs;
pub(crate) mod stored_attempt;
mod transcript_recorder;
mod usage_logs;
mod wait;

pub use event_log::EventSink;
pub(crate) use hooks::program as hook_program;
pub use red_baseline::RedBaselineChoice;
pub(crate) use red_check::StubFile;
pub use repo_world::RepoWorld;
