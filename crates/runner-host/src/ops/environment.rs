//! The environment of a run: the versions of the tools that the configuration names, and the lock files of a commit.

use std::ffi::OsString;

use runner_core::config::GuardConfig;
use runner_core::model::digest::Sha256;
use runner_core::model::environment::{Environment, LOCK_FILES, LockFile, ToolVersion};
use runner_core::model::object_id::CommitId;
use runner_core::model::repo_path::RepoPath;
use runner_core::text::one_line;
use supervise::executables;

use crate::error::Error;
use crate::git::Git;

/// The environment as it is now.
pub(crate) fn environment(git: &Git, commit: &CommitId, guard: &GuardConfig) -> Result<Environment, Error> {
    let tool = |tool: &String| ToolVersion { tool: tool.clone(), version: version(git, tool) };
    Ok(Environment { tools: guard.tools.iter().map(tool).collect(), locks: lock_files(git, commit)? })
}

/// The lock files of a commit, sorted by path.
fn lock_files(git: &Git, commit: &CommitId) -> Result<Vec<LockFile>, Error> {
    let paths = git.matching_paths(commit, &LOCK_FILES.map(|name| format!("**/{name}")))?;
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let mut batch = git.batch()?;
    let mut locks = Vec::new();
    for path in paths {
        let path = RepoPath::of_bytes(&path);
        let bytes = batch.file(&format!("{commit}:{path}"))?.unwrap_or_default();
        locks.push(LockFile { path, digest: Sha256::of(&bytes) });
    }
    locks.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(locks)
}

/// The first line that a tool prints about its version. A tool in the repository is not run.
fn version(git: &Git, tool: &str) -> Option<String> {
    let mut words = tool.split_whitespace();
    let program = executables::find(words.next()?, Some(git.root()))?;
    let args: Vec<OsString> = words.map(OsString::from).collect();
    let args = if args.is_empty() { vec!["--version".into()] } else { args };
    executables::first_line_of(&program, &args).map(|line| one_line(&line))
}
