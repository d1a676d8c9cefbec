//! The trials that are looked at: each opened like any repository, watched while it is asked for.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use super::{EntryName, Evaluation, LATEST, TrialName};
use crate::error::RequestError;
use crate::read::confined_fs::ConfinedDir;
use crate::read::repo_reader::RepoReader;
use crate::server::routes::RepoState;
use crate::watch::FileWatcher;

/// How many trials are kept open.
const OPEN_MAX: usize = 12;

/// The trials that are open, the one that was asked for last at the end.
#[derive(Debug, Default)]
pub(super) struct OpenTrials(Vec<OpenTrial>);

#[derive(Debug)]
struct OpenTrial {
    name: TrialName,
    /// Which folder it was: a trial that is made again has another of the same name.
    inode: u64,
    app: Arc<RepoState>,
}

impl Drop for OpenTrial {
    fn drop(&mut self) {
        self.app.watch.end();
    }
}

impl Evaluation {
    /// The run of a trial.
    pub(crate) fn trial(self: &Arc<Self>, case: &str, id: &str) -> Result<Arc<RepoState>, RequestError> {
        let case = EntryName::new(case).ok_or_else(|| RequestError::bad_request("the case is not a name"))?;
        let id = match id {
            LATEST => self.places.latest(&case).ok_or_else(|| RequestError::no_trial(&case, LATEST))?,
            id => EntryName::new(id).ok_or_else(|| RequestError::bad_request("the trial is not a name"))?,
        };
        let name = (case, id);
        let found = self.find(&name).map_err(|_| RequestError::no_trial(&name.0, name.1.as_str()))?;
        let mut trials = self.trials.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = trials.0.iter().position(|open| open.name == name) {
            let open = trials.0.remove(at);
            if open.inode == found.inode {
                let app = Arc::clone(&open.app);
                trials.0.push(open);
                return Ok(app);
            }
        }
        let app = self.open(&name, &found)?;
        if trials.0.len() >= OPEN_MAX {
            trials.0.remove(0);
        }
        trials.0.push(OpenTrial { name, inode: found.inode, app: Arc::clone(&app) });
        Ok(app)
    }

    /// Finds a trial: its workspace, or else what its result keeps of it. No link is followed on the way.
    fn find(&self, (case, id): &TrialName) -> io::Result<TrialDir> {
        let places = [(&self.places.workspaces, true), (&self.places.results, false)];
        let found = |(place, is_workspace): (&PathBuf, bool)| -> io::Result<TrialDir> {
            let folder = ConfinedDir::open(place)?.folder(case.as_str())?.folder(id.as_str())?;
            // A workspace that is not a repository yet would be taken for a part of the one around it.
            if is_workspace {
                folder.folder(".git")?;
            }
            let path = place.join(case.as_str()).join(id.as_str());
            Ok(TrialDir { path, inode: folder.inode()?, is_workspace })
        };
        let [workspace, result] = places;
        found(workspace).or_else(|_| found(result))
    }

    /// Opens it and begins to watch it.
    fn open(self: &Arc<Self>, name: &TrialName, found: &TrialDir) -> Result<Arc<RepoState>, RequestError> {
        let project = if found.is_workspace {
            RepoReader::open(&found.path)
        } else {
            RepoReader::open_record(&found.path)
        }?;
        if project.reading.root().canonicalize().ok() != found.path.canonicalize().ok() {
            return Err(RequestError::no_trial(&name.0, name.1.as_str()));
        }
        let app = Arc::new(RepoState::new(Arc::new(project), Arc::clone(&self.readers)));
        let watcher = FileWatcher::begin(app.project.as_ref(), &app.watch, self.only_polls);
        let (evaluation, watched, name) = (Arc::clone(self), Arc::clone(&app), name.clone());
        std::thread::spawn(move || {
            watcher.run(watched.project.as_ref(), |change| evaluation.tell(&name, change), &watched.watch);
        });
        Ok(app)
    }
}

/// A trial's folder.
struct TrialDir {
    path: PathBuf,
    inode: u64,
    is_workspace: bool,
}
