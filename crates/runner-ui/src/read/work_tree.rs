//! What the running session has changed in the work tree so far. Git reads only its own objects for this: to compare files
//! of the work tree, it would run filters that an agent configured.

use std::sync::Arc;

use runner_core::layout::RUNNER_DIR;
use runner_core::model::object_id::CommitId;
use runner_host::repo::readonly_repo::CommittedFile;

use crate::api::DiffFile;
use crate::error::RequestError;
use crate::read::line_diff::{TextPatch, text_patch};
use crate::read::repo_reader::RepoReader;

/// A larger file is listed without its lines.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The most files that are listed.
const FILES_MAX: usize = 500;
/// How much earlier than the session's start a file may claim to be changed: clocks of file systems are coarse.
const CLOCK_SECS: u64 = 2;

/// The work tree, compared with a commit.
#[derive(Debug)]
pub(crate) struct WorkTreeDiff<'p> {
    project: &'p RepoReader,
    pub(crate) from: CommitId,
    /// Files of the same size that did not change since then are not read.
    since_secs: u64,
}

#[derive(Debug)]
struct ChangedFile {
    path: String,
    /// None for a new file.
    committed: Option<CommittedFile>,
}

impl<'p> WorkTreeDiff<'p> {
    pub(crate) fn new(project: &'p RepoReader, from: CommitId, since_ms: u64) -> Self {
        Self { project, from, since_secs: (since_ms / 1000).saturating_sub(CLOCK_SECS) }
    }

    /// The changed files outside `.runner/`, with the number of changed lines.
    pub(crate) fn files(&self) -> Result<Vec<DiffFile>, RequestError> {
        let view = |file: ChangedFile| {
            let patch = self.text_patch(&file, 0);
            DiffFile {
                added: patch.as_ref().map(|patch| patch.added),
                removed: patch.as_ref().map(|patch| patch.removed),
                path: file.path,
                old_path: None,
                is_runner_file: false,
            }
        };
        Ok(self.changed()?.into_iter().take(FILES_MAX).map(view).collect())
    }

    /// The patch of one file, as git would print it.
    pub(crate) fn patch(&self, path: &str, context: u32) -> Result<String, RequestError> {
        let file = self.changed()?.into_iter().find(|file| file.path == path);
        let file = file.ok_or_else(RequestError::not_found)?;
        let head = format!("diff --git a/{path} b/{path}\n");
        let patch = self.text_patch(&file, usize::try_from(context).unwrap_or(usize::MAX / 4));
        Ok(match patch {
            Some(patch) => format!("{head}--- a/{path}\n+++ b/{path}\n{}", patch.hunks),
            None => format!("{head}Binary files a/{path} and b/{path} differ\n"),
        })
    }

    fn changed(&self) -> Result<Vec<ChangedFile>, RequestError> {
        let committed: Arc<Vec<CommittedFile>> = self.project.files_at(&self.from)?;
        let mut changed: Vec<ChangedFile> = committed
            .iter()
            .filter_map(|file| {
                let path = std::str::from_utf8(&file.path).ok().filter(|path| is_outside(path))?;
                self.differs(path, file)
                    .then(|| ChangedFile { path: path.to_owned(), committed: Some(file.clone()) })
            })
            .collect();
        let known =
            |path: &str| committed.binary_search_by(|file| file.path.as_slice().cmp(path.as_bytes())).is_ok();
        let untracked = self.project.repo.untracked()?.into_iter();
        let untracked = untracked.filter_map(|path| String::from_utf8(path).ok());
        let is_new = |path: &String| is_outside(path) && !path.ends_with('/') && !known(path);
        changed.extend(untracked.filter(is_new).map(|path| ChangedFile { path, committed: None }));
        changed.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(changed)
    }

    fn differs(&self, path: &str, file: &CommittedFile) -> bool {
        let Some(version) = self.project.root.stamp(path) else { return true };
        if version.bytes != file.bytes {
            return true;
        }
        if version.modified_secs() < self.since_secs {
            return false;
        }
        let bytes = self.project.root.read(path, FILE_BYTES_MAX);
        bytes.is_ok_and(|bytes| !self.project.repo.is_blob(&file.object, &bytes))
    }

    /// The changed lines; `None` for a binary or a large file.
    fn text_patch(&self, file: &ChangedFile, context: usize) -> Option<TextPatch> {
        let before = match &file.committed {
            Some(committed) if committed.bytes > FILE_BYTES_MAX => return None,
            Some(committed) => self.project.repo.blob(&committed.object).ok()?,
            None => Vec::new(),
        };
        let after = match self.project.root.read(&file.path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(_) => return None,
        };
        let is_binary = |bytes: &[u8]| bytes.contains(&0);
        if is_binary(&before) || is_binary(&after) {
            return None;
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(text_patch(&text(&before), &text(&after), context))
    }
}

fn is_outside(path: &str) -> bool {
    path.strip_prefix(RUNNER_DIR).is_none_or(|rest| !rest.starts_with('/'))
}
