//! The hook that Claude Code asks before it changes a file itself: nothing outside of the repository, and nothing of git.
//!
//! It judges by where a path really leads. What it lets through is still put back where it must not change.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

use crate::error::Error;

/// The word after the program's name that makes this binary the hook.
const HOOK_ARG: &str = "__fence";

/// What tells the agent that it may not, and why.
const EXIT_BLOCK: u8 = 2;

/// The most bytes of a question.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// The command of a hook that keeps an agent to a repository and some folders.
pub(crate) fn command(root: &Path, folders: Vec<PathBuf>) -> Result<Vec<OsString>, Error> {
    let own = std::env::current_exe().map_err(Error::io("find", Path::new("the runner's own program")))?;
    let words = [own.into(), HOOK_ARG.into(), root.into()];
    Ok(words.into_iter().chain(folders.into_iter().map(OsString::from)).collect())
}

/// The repository and the other folders, if this process is such a hook.
pub fn allowed_folders() -> Option<Vec<PathBuf>> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == HOOK_ARG).then(|| words.map(PathBuf::from).collect())
}

/// Answers one question, which comes by standard input.
pub fn check(folders: &[PathBuf]) -> ExitCode {
    let mut question = Vec::new();
    let _ = std::io::stdin().take(INPUT_BYTES_MAX).read_to_end(&mut question);
    match block_reason(&question, folders) {
        Some(why) => {
            // What a hook says here is told to the agent.
            let _ = writeln!(std::io::stderr(), "{why}");
            ExitCode::from(EXIT_BLOCK)
        }
        None => ExitCode::SUCCESS,
    }
}

/// Why a change is refused, if it is. A question that cannot be understood is one that cannot be granted.
fn block_reason(question: &[u8], folders: &[PathBuf]) -> Option<String> {
    let question: Value = serde_json::from_slice(question).unwrap_or_default();
    let input = question.get("tool_input");
    let named = ["file_path", "notebook_path"].iter().find_map(|key| input?.get(key)?.as_str());
    let Some(path) = named else { return Some("this change names no file".to_owned()) };
    let (root, others) = folders.split_first()?;
    let place = resolve_existing(&root.join(path));
    let is_git = place.starts_with(resolve_existing(&root.join(".git")));
    let is_within = place.starts_with(resolve_existing(root)) && !is_git;
    let is_allowed = is_within || others.iter().any(|folder| place.starts_with(resolve_existing(folder)));
    (!is_allowed).then(|| {
        format!("`{path}` lies outside of what this session may write to: the repository without .git")
    })
}

/// A path without links in as much of it as there is.
fn resolve_existing(path: &Path) -> PathBuf {
    for beginning in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (beginning.canonicalize(), path.strip_prefix(beginning)) {
            let goes_up = rest.components().any(|part| part == std::path::Component::ParentDir);
            // Where there is nothing, `..` leads nowhere that could be known.
            return if goes_up { PathBuf::new() } else { real.join(rest) };
        }
    }
    PathBuf::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(key: &str, path: &Path, folders: &[PathBuf]) -> bool {
        let question = serde_json::json!({ "tool_input": { key: path } });
        block_reason(question.to_string().as_bytes(), folders).is_none()
    }

    #[test]
    fn files_are_judged_by_where_they_lead() {
        let around = tempfile::tempdir().unwrap();
        let (root, other) = (around.path().join("repo"), around.path().join("cache"));
        for folder in [&root.join("src"), &root.join(".git"), &other] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::os::unix::fs::symlink(around.path(), root.join("out")).unwrap();
        let folders = [root.clone(), other.clone()];
        for good in
            [root.join("new/deep/a.txt"), root.join("src/../b.txt"), other.join("x"), root.join(".gitignore")]
        {
            assert!(asked("file_path", &good, &folders), "{}", good.display());
        }
        assert!(asked("notebook_path", Path::new("src/a.ipynb"), &folders));
        for bad in [
            around.path().join("x"),
            root.join("../x"),
            root.join("not-there/../../x"),
            root.join("out/x"),
            root.join(".git/hooks/pre-commit"),
            root.join("src/../.git/config"),
            PathBuf::from("/etc/passwd"),
        ] {
            assert!(!asked("file_path", &bad, &folders), "{}", bad.display());
        }
        assert!(!asked("other", &root.join("a"), &folders), "a change without a file");
    }
}
