//! Reads runs for the page and the terminal UI. Writes nothing.

mod cache;
pub(crate) mod confined_fs;
pub(crate) mod diff;
pub(crate) mod error_lines;
pub(crate) mod evidence;
pub(crate) mod failure;
pub(crate) mod files;
pub(crate) mod iterations;
pub(crate) mod line_diff;
pub(crate) mod log_groups;
pub(crate) mod log_index;
pub(crate) mod logs;
pub(crate) mod repo_reader;
pub(crate) mod row_cache;
pub(crate) mod search;
pub(crate) mod snapshot;
pub(crate) mod tree_view;
pub(crate) mod verify;
pub(crate) mod work_tree;
