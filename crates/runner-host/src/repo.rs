//! One git repository with a run in it: its paths, its journal, and how a prepared commit is published.

pub(crate) mod journal;
pub(crate) mod paths;
pub(crate) mod publish;
pub mod readonly_repo;
pub(crate) mod repo_guard;
pub(crate) mod run_history;
pub(crate) mod worktree;
