//! One git repository with a run in it: its paths, its lock and journal, crash recovery, and how a prepared commit is
//! published.

pub(crate) mod commit_files;
pub(crate) mod commit_scope;
pub(crate) mod documents;
pub(crate) mod exclude_file;
pub(crate) mod git_dir_repair;
pub(crate) mod git_source;
pub(crate) mod heldout_folder;
pub(crate) mod journal;
mod leftovers;
pub mod locked_repo;
pub mod own_output;
pub(crate) mod publish;
pub mod readonly_repo;
pub mod recovery;
pub(crate) mod repo_guard;
pub(crate) mod run_history;
mod unrecorded_commits;
pub(crate) mod work_tree_files;
pub(crate) mod worktree;
