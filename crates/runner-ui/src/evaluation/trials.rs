//! The trials that are looked at: each opened like any repository, watched while it is asked for.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use super::{Evaluation, LATEST, Name, TrialName};
use crate::beneath::Folder;
use crate::error::Fault;
use crate::project::Project;
use crate::routes::App;
use crate::watch::Watcher;

/// How many trials are kept open.
const OPEN_MAX: usize = 12;

/// The trials that are open, the one that was asked for last at the end.
#[derive(Debug, Default)]
pub(super) struct Trials(Vec<Open>);

#[derive(Debug)]
struct Open {
    name: TrialName,
    /// Which folder it was: a trial that is made again has another of the same name.
    inode: u64,
    app: Arc<App>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.app.watch.end();
    }
}

impl Evaluation {
    /// The run of a trial.
    pub(crate) fn trial(self: &Arc<Self>, case: &str, id: &str) -> Result<Arc<App>, Fault> {
        let case = Name::new(case).ok_or_else(|| Fault::bad_request("the case is not a name"))?;
        let id = match id {
            LATEST => self.places.latest(&case).ok_or_else(|| Fault::no_trial(&case, LATEST))?,
            id => Name::new(id).ok_or_else(|| Fault::bad_request("the trial is not a name"))?,
        };
        let name = (case, id);
        let found = self.find(&name).map_err(|_| Fault::no_trial(&name.0, name.1.as_str()))?;
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
        trials.0.push(Open { name, inode: found.inode, app: Arc::clone(&app) });
        Ok(app)
    }

    /// Finds a trial: its workspace, or else what its result keeps of it. No link is followed on the way.
    fn find(&self, (case, id): &TrialName) -> io::Result<Found> {
        let places = [(&self.places.workspaces, true), (&self.places.results, false)];
        let found = |(place, is_workspace): (&PathBuf, bool)| -> io::Result<Found> {
            let folder = Folder::open(place)?.folder(case.as_str())?.folder(id.as_str())?;
            // A workspace that is not a repository yet would be taken for a part of the one around it.
            if is_workspace {
                folder.folder(".git")?;
            }
            let path = place.join(case.as_str()).join(id.as_str());
            Ok(Found { path, inode: folder.inode()?, is_workspace })
        };
        let [workspace, result] = places;
        found(workspace).or_else(|_| found(result))
    }

    /// Opens it and begins to watch it.
    fn open(self: &Arc<Self>, name: &TrialName, found: &Found) -> Result<Arc<App>, Fault> {
        let project =
            if found.is_workspace { Project::open(&found.path) } else { Project::open_record(&found.path) }?;
        if project.reading.root().canonicalize().ok() != found.path.canonicalize().ok() {
            return Err(Fault::no_trial(&name.0, name.1.as_str()));
        }
        let app = Arc::new(App::new(Arc::new(project), Arc::clone(&self.readers)));
        let watcher = Watcher::begin(app.project.as_ref(), &app.watch, self.only_polls);
        let (evaluation, watched, name) = (Arc::clone(self), Arc::clone(&app), name.clone());
        std::thread::spawn(move || {
            watcher.run(watched.project.as_ref(), |change| evaluation.tell(&name, change), &watched.watch);
        });
        Ok(app)
    }
}

/// A trial's folder.
struct Found {
    path: PathBuf,
    inode: u64,
    is_workspace: bool,
}
