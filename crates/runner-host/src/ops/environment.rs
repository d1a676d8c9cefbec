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

/// The environment as it is now; nothing where the configuration names no tools.
pub(crate) fn environment(git: &Git, commit: &CommitId, guard: &GuardConfig) -> Result<Environment, Error> {
    if guard.tools.is_empty() {
        return Ok(Environment::default());
    }
    let tool = |tool: &String| ToolVersion { tool: tool.clone(), version: version(git, tool) };
    let patterns = LOCK_FILES.map(|name| format!("**/{name}"));
    let mut locks = Vec::new();
    for path in git.matching_paths(commit, &patterns)? {
        let path = RepoPath::of_bytes(&path);
        let digest = Sha256::of(&git.file_at(commit, path.as_str())?);
        locks.push(LockFile { path, digest });
    }
    locks.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(Environment { tools: guard.tools.iter().map(tool).collect(), locks })
}

/// The first line that a tool prints about its version. A tool in the repository is not run.
fn version(git: &Git, tool: &str) -> Option<String> {
    let mut words = tool.split_whitespace();
    let program = executables::find(words.next()?, Some(git.root()))?;
    let args: Vec<OsString> = words.map(OsString::from).collect();
    let args = if args.is_empty() { vec!["--version".into()] } else { args };
    executables::first_line_of(&program, &args).map(|line| one_line(&line))
}
