//! Files of the run that the user edited while a session ran: GOAL.md, config.toml, templates, tools.json. They take effect
//! with `runner start` alone, so the iteration is committed without them; the edits are kept under
//! `refs/runner/<run>/edits/<iter>` and offered.

use std::os::unix::fs::MetadataExt;

use runner_core::commit_message::edits_subject;
use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::repo_path::RepoPath;
use runner_core::step::{FileAction, FileNotice};

use super::aside::shell_word;
use crate::error::Error;
use crate::fs::atomic;
use crate::git::{Git, KeptFile, path_of};

/// A larger file is not kept: it is not one of these documents.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Keeps the files as they are in the work tree, and returns a notice for each.
pub(crate) fn keep_edits(
    git: &Git,
    run: &RunId,
    iter: IterationNumber,
    paths: &[Vec<u8>],
) -> Result<Vec<FileNotice>, Error> {
    let mut files = Vec::new();
    for path in paths {
        let file = git.root().join(path_of(path));
        let is_executable = file.metadata().is_ok_and(|metadata| metadata.mode() & 0o100 != 0);
        if let Ok(Some(bytes)) = atomic::read(&file, FILE_BYTES_MAX) {
            files.push(KeptFile { path: path.clone(), is_executable, bytes });
        }
    }
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let reference = format!("refs/runner/{run}/edits/{iter}");
    let message = format!("{}\n", edits_subject(run.as_str(), iter));
    git.keep_files(&reference, None, &message, &files)?;
    Ok(files.iter().map(|file| notice(&reference, &file.path)).collect())
}

fn notice(reference: &str, path: &[u8]) -> FileNotice {
    let name = std::str::from_utf8(path).ok().filter(|path| !path.contains(char::is_control));
    let restore =
        name.map(|path| format!("git restore --source={reference} -- {} && runner start", shell_word(path)));
    FileNotice {
        path: RepoPath::of_bytes(path),
        action: FileAction::EditKept,
        reason: "it changed while the session ran".to_owned(),
        restore,
    }
}
