//! The PreToolUse hook for Claude Code: blocks file edits outside of the repository and inside of `.git`.
//!
//! Claude Code runs this binary before each edit that it makes itself, and sends the tool call as JSON on standard input. The
//! hook resolves links before it decides. Edits that it allows are still checked, and restored where necessary, after the
//! session.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

use super::session_folders::write_refusal;
use crate::error::Error;

/// The hidden first argument that makes this binary the hook.
const HOOK_ARG: &str = "__claude-file-hook";

/// The exit code for which Claude Code blocks the edit and shows standard error to the model.
const EXIT_BLOCK: u8 = 2;

const INPUT_BYTES_MAX: u64 = 64 << 20;

/// The hook's command line: this binary, the repository, and other writable folders.
pub(crate) fn command(root: &Path, folders: Vec<PathBuf>) -> Result<Vec<OsString>, Error> {
    let binary = std::env::current_exe().map_err(Error::io("find", Path::new("the runner's own program")))?;
    let mut argv: Vec<OsString> = vec![binary.into(), HOOK_ARG.into(), root.into()];
    argv.extend(folders.into_iter().map(OsString::from));
    Ok(argv)
}

/// The repository and the other writable folders, if this process was started as the hook.
pub fn allowed_folders() -> Option<Vec<PathBuf>> {
    let mut args = std::env::args_os().skip(1);
    (args.next()? == HOOK_ARG).then(|| args.map(PathBuf::from).collect())
}

/// The `main` of the hook.
pub fn check(folders: &[PathBuf]) -> ExitCode {
    let mut input = Vec::new();
    let _ = std::io::stdin().take(INPUT_BYTES_MAX).read_to_end(&mut input);
    match block_reason(&input, folders) {
        Some(why) => {
            let _ = writeln!(std::io::stderr(), "{why}");
            ExitCode::from(EXIT_BLOCK)
        }
        None => ExitCode::SUCCESS,
    }
}

/// Why an edit is blocked, if it is. Input that cannot be parsed is blocked.
fn block_reason(input: &[u8], folders: &[PathBuf]) -> Option<String> {
    let call: Value = serde_json::from_slice(input).unwrap_or_default();
    let tool_input = call.get("tool_input");
    let path = ["file_path", "notebook_path"].iter().find_map(|key| tool_input?.get(key)?.as_str());
    let Some(path) = path else { return Some("this edit names no file".to_owned()) };
    write_refusal(Path::new(path), folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(key: &str, path: &Path, folders: &[PathBuf]) -> bool {
        let call = serde_json::json!({ "tool_input": { key: path } });
        block_reason(call.to_string().as_bytes(), folders).is_none()
    }

    #[test]
    fn edits_are_checked_after_links_are_resolved() {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("repo");
        let other = outside.path().join("cache");
        for folder in [&root.join("src"), &root.join(".git"), &other] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::os::unix::fs::symlink(outside.path(), root.join("out")).unwrap();
        let folders = [root.clone(), other.clone()];
        for good in
            [root.join("new/deep/a.txt"), root.join("src/../b.txt"), other.join("x"), root.join(".gitignore")]
        {
            assert!(is_allowed("file_path", &good, &folders), "{}", good.display());
        }
        assert!(is_allowed("notebook_path", Path::new("src/a.ipynb"), &folders));
        for bad in [
            outside.path().join("x"),
            root.join("../x"),
            root.join("not-there/../../x"),
            root.join("out/x"),
            root.join(".git/hooks/pre-commit"),
            root.join("src/../.git/config"),
            PathBuf::from("/etc/passwd"),
        ] {
            assert!(!is_allowed("file_path", &bad, &folders), "{}", bad.display());
        }
        assert!(!is_allowed("other", &root.join("a"), &folders), "an edit without a file");
    }
}
