//! The open trials of an evaluation: each is opened and watched like any repository, as long as it is among the last ones
//! requested.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use super::{EntryName, Evaluation, LATEST, TrialName};
use crate::error::RequestError;
use crate::read::confined_fs::ConfinedDir;
use crate::read::repo_reader::RepoReader;
use crate::server::routes::RepoState;
use crate::watch::FileWatcher;

/// How many trials are kept open.
const OPEN_MAX: usize = 12;

/// The open trials; the one that was requested last is at the end.
#[derive(Debug, Default)]
pub(super) struct OpenTrials(Vec<OpenTrial>);

#[derive(Debug)]
struct OpenTrial {
    name: TrialName,
    /// The inode of its folder: a repeated trial has another folder of the same name.
    inode: u64,
    state: Arc<RepoState>,
}

impl Drop for OpenTrial {
    fn drop(&mut self) {
        self.state.watch.end();
    }
}

impl Evaluation {
    /// Opens the run of a trial, or returns the open one.
    pub(crate) fn trial(self: &Arc<Self>, case: &str, id: &str) -> Result<Arc<RepoState>, RequestError> {
        let case =
            EntryName::new(case).ok_or_else(|| RequestError::bad_request("the case is not a valid name"))?;
        let id = match id {
            LATEST => self.paths.latest(&case).ok_or_else(|| RequestError::no_trial(&case, LATEST))?,
            id => EntryName::new(id)
                .ok_or_else(|| RequestError::bad_request("the trial is not a valid name"))?,
        };
        let name = TrialName { case, id };
        let folder = self.find(&name).map_err(|_| no_trial(&name))?;
        let mut trials = self.trials.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = trials.0.iter().position(|open| open.name == name) {
            let open = trials.0.remove(at);
            if open.inode == folder.inode {
                let state = Arc::clone(&open.state);
                trials.0.push(open);
                return Ok(state);
            }
        }
        let state = self.open(&name, &folder)?;
        if trials.0.len() >= OPEN_MAX {
            trials.0.remove(0);
        }
        trials.0.push(OpenTrial { name, inode: folder.inode, state: Arc::clone(&state) });
        Ok(state)
    }

    /// Finds the folder of a trial: its workspace, or else what its result keeps of it. No link is followed.
    fn find(&self, name: &TrialName) -> io::Result<TrialDir> {
        let workspace = TrialDir::find(&self.paths.workspaces, name, TrialDirKind::Workspace);
        workspace.or_else(|_| TrialDir::find(&self.paths.results, name, TrialDirKind::Result))
    }

    /// Opens a trial and starts to watch it.
    fn open(self: &Arc<Self>, name: &TrialName, folder: &TrialDir) -> Result<Arc<RepoState>, RequestError> {
        let project = match folder.kind {
            TrialDirKind::Workspace => RepoReader::open(&folder.path)?,
            TrialDirKind::Result => RepoReader::open_record(&folder.path)?,
        };
        if project.repo.root().canonicalize().ok() != folder.path.canonicalize().ok() {
            return Err(no_trial(name));
        }
        let state = Arc::new(RepoState::new(Arc::new(project), &self.readers, &self.events));
        let watcher = FileWatcher::begin(state.project.as_ref(), &state.watch, self.method);
        let evaluation = Arc::clone(self);
        let watched = Arc::clone(&state);
        let name = name.clone();
        std::thread::spawn(move || {
            let publish = |change| evaluation.publish_trial_change(&name, change);
            watcher.run(watched.project.as_ref(), publish, &watched.watch);
        });
        Ok(state)
    }
}

fn no_trial(name: &TrialName) -> RequestError {
    RequestError::no_trial(&name.case, name.id.as_str())
}

/// The folder of a trial.
struct TrialDir {
    path: PathBuf,
    inode: u64,
    kind: TrialDirKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrialDirKind {
    Workspace,
    /// The files that a result keeps of one.
    Result,
}

impl TrialDir {
    fn find(parent: &Path, name: &TrialName, kind: TrialDirKind) -> io::Result<Self> {
        let (case, id) = (name.case.as_str(), name.id.as_str());
        let folder = ConfinedDir::open(parent)?.folder(case)?.folder(id)?;
        // A workspace that is not a repository yet would be taken for a part of the repository around it.
        if kind == TrialDirKind::Workspace {
            folder.folder(".git")?;
        }
        Ok(Self { path: parent.join(case).join(id), inode: folder.inode()?, kind })
    }
}
