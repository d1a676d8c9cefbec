//! Notices if a session changes the records of earlier iterations. In a sandbox they are read-only; without one an agent
//! can write them like the runner.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::repo_path::RepoPath;
use runner_core::step::{FileAction, FileNotice};

use super::log_retention::RECORDS;
use crate::agent::sandbox_kind::SandboxKind;
use crate::fs::atomic::{self, FileStamp};
use crate::git::Git;

/// How many changed records are reported.
const NOTICES_MAX: usize = 10;
/// How many iterations are looked at. The last ones matter to later sessions, and the cost must not grow with the run.
const ITERATIONS_MAX: u32 = 20;

/// What the records of a run's last finished iterations looked like before a session.
#[derive(Debug, Default)]
pub(super) struct EarlierRecords(BTreeMap<PathBuf, FileStamp>);

impl EarlierRecords {
    /// Leaves out the iteration that begins: its records are written meanwhile.
    pub(super) fn before(git: &Git, run: &RunId, iteration: IterationNumber, sandbox: SandboxKind) -> Self {
        if sandbox == SandboxKind::Bubblewrap {
            return Self::default();
        }
        let folder = git.paths().iterations().join(run.as_str());
        let numbers = iteration.get().saturating_sub(ITERATIONS_MAX)..iteration.get();
        let folders = numbers.filter_map(IterationNumber::new).map(|number| folder.join(number.to_string()));
        let files = folders.flat_map(|folder| RECORDS.map(|name| folder.join(name)));
        Self(files.filter_map(|file| atomic::stamp(&file).map(|stamp| (file, stamp))).collect())
    }

    /// A notice for every record that was changed or deleted since, up to a limit.
    pub(super) fn changes(&self, git: &Git) -> Vec<FileNotice> {
        let changed = self.0.iter().filter_map(|(file, before)| match atomic::stamp(file) {
            Some(now) if now == *before => None,
            Some(_) => Some((file, FileAction::IgnoredChanged)),
            None => Some((file, FileAction::IgnoredDeleted)),
        });
        let notice = |(file, action): (&PathBuf, FileAction)| FileNotice {
            path: RepoPath::of_bytes(file.strip_prefix(git.root()).unwrap_or(file).as_os_str().as_bytes()),
            action,
            reason: "the record of an earlier iteration; its commit is unchanged".to_owned(),
            restore: None,
        };
        changed.take(NOTICES_MAX).map(notice).collect()
    }
}
