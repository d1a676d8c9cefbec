//! A guard that runs in the work tree can change the repository around it. What it must not change is captured before it, and
//! compared and restored after it.
//!
//! Where nothing changed, this costs a few reads and no git process.

use std::fs;
use std::path::{Path, PathBuf};

use runner_core::model::digest::Sha256;
use runner_core::model::repo_path::RepoPath;
use runner_core::step::RestoreReport;

use crate::error::Error;
use crate::fs::atomic::{self, FileStamp};
use crate::git::{Git, PathSet, path_of};
use crate::repo::journal::JournalCopy;
use crate::repo::repo_guard::{FolderIdentity, RepoSnapshot, SessionRef};
use crate::room::Candidate;

/// A larger file is compared by its stamp alone.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The repository just before a program runs in its work tree.
pub(super) struct PinnedRepo<'a> {
    git: &'a Git,
    session: SessionRef<'a>,
    candidate: &'a Candidate,
    snapshot: RepoSnapshot,
    git_dir: FolderIdentity,
    journal: JournalCopy,
    /// The protected files, by their path as git prints it.
    protected: Vec<(&'a [u8], FileState)>,
}

/// What a program changed that it must not change.
#[derive(Debug)]
pub(super) struct RepoChanges {
    /// What was restored in the git directory.
    pub(super) restored: RestoreReport,
    /// The protected files that it changed.
    pub(super) protected: Vec<Vec<u8>>,
}

impl<'a> PinnedRepo<'a> {
    pub(super) fn capture(
        git: &'a Git,
        session: SessionRef<'a>,
        candidate: &'a Candidate,
        protected: &'a PathSet,
    ) -> Result<Self, Error> {
        let state = |path: &'a Vec<u8>| (path.as_slice(), FileState::of(&git.root().join(path_of(path))));
        Ok(Self {
            git,
            session,
            candidate,
            snapshot: RepoSnapshot::capture(git, session.access)?,
            git_dir: FolderIdentity::of(git.paths().git_dir())?,
            journal: JournalCopy::read(&git.paths().journal())?,
            protected: protected.iter().map(state).collect(),
        })
    }

    /// Restores the git directory. No process of the program may be alive. The runner's own git runs only when everything that
    /// changes what git does is as it was.
    pub(super) fn restore(self) -> Result<RepoChanges, Error> {
        let git = self.git;
        self.git_dir.restore(git)?;
        self.journal.restore(&git.paths().journal())?;
        let restored = if self.snapshot.is_unchanged(git) {
            RestoreReport::default()
        } else {
            self.snapshot.restore(git, self.session)?
        };
        let mut protected = Vec::new();
        for (path, before) in &self.protected {
            if self.is_changed(path, before)? {
                protected.push(path.to_vec());
            }
        }
        Ok(RepoChanges { restored, protected })
    }

    /// Whether a protected file was written to. Its old content at the end is no excuse: a script that runs could have been read
    /// in between. Only a change of permissions is one.
    fn is_changed(&self, path: &[u8], before: &FileState) -> Result<bool, Error> {
        let file = self.git.root().join(path_of(path));
        let FileState::File { stamp: was, digest } = before else {
            return Ok(FileState::of(&file) != *before);
        };
        let Some(is) = atomic::stamp(&file) else { return Ok(true) };
        if is == *was {
            return Ok(digest.is_some() && *digest != digest_of(&file));
        }
        if !was.differs_in_time_of_change_only(&is) {
            return Ok(true);
        }
        let committed = self.git.file_in_commit(&self.candidate.commit, &RepoPath::of_bytes(path))?;
        Ok(committed != atomic::read(&file, FILE_BYTES_MAX).ok().flatten())
    }
}

/// What differs between one state of a path and another.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FileState {
    Missing,
    Link(PathBuf),
    /// With a digest of the content if a change now could have the same stamp.
    File {
        stamp: FileStamp,
        digest: Option<Sha256>,
    },
    /// A folder, or something else that is no file.
    Other,
}

impl FileState {
    fn of(path: &Path) -> Self {
        if let Some(stamp) = atomic::stamp(path) {
            let digest = if stamp.is_settled() { None } else { digest_of(path) };
            return Self::File { stamp, digest };
        }
        match fs::read_link(path) {
            Ok(target) => Self::Link(target),
            Err(_) if path.symlink_metadata().is_ok() => Self::Other,
            Err(_) => Self::Missing,
        }
    }
}

fn digest_of(path: &Path) -> Option<Sha256> {
    atomic::read(path, FILE_BYTES_MAX).ok().flatten().map(|bytes| Sha256::of(&bytes))
}
