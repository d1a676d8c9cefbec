//! The repository that the server shows, and the thread that watches it. If the folder was named by a link, such as the newest
//! workspace of an evaluation's case, the server follows the link when it changes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::FromRef;
use tokio::sync::Semaphore;

use crate::api::{ChangeEvent, WatchMethod};
use crate::read::repo_reader::RepoReader;
use crate::server::routes::RepoState;
use crate::server::sse::EventStream;
use crate::watch::FileWatcher;

/// How often a link is read.
const LINK_INTERVAL: Duration = Duration::from_millis(500);

/// The state of the repository that is shown now.
#[derive(Clone, Debug)]
pub(crate) struct ServedRepo(Arc<Mutex<Arc<RepoState>>>);

impl ServedRepo {
    pub(crate) fn new(state: Arc<RepoState>) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn current(&self) -> Arc<RepoState> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, state: Arc<RepoState>) -> Arc<RepoState> {
        std::mem::replace(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), state)
    }
}

impl FromRef<ServedRepo> for Arc<RepoState> {
    fn from_ref(served: &ServedRepo) -> Self {
        served.current()
    }
}

/// How repositories are opened and watched.
pub(crate) struct RepoWatcher {
    pub(crate) events: Arc<EventStream>,
    pub(crate) readers: Arc<Semaphore>,
    pub(crate) method: WatchMethod,
}

impl RepoWatcher {
    /// Starts a thread that watches the repository and publishes its changes.
    pub(crate) fn watch(&self, project: Arc<RepoReader>) -> Arc<RepoState> {
        let state = Arc::new(RepoState::new(project, &self.readers, &self.events));
        let watcher = FileWatcher::begin(state.project.as_ref(), &state.watch, self.method);
        let (target, events) = (Arc::clone(&state), Arc::clone(&self.events));
        std::thread::spawn(move || {
            watcher.run(target.project.as_ref(), |change| events.publish(&change), &target.watch);
        });
        state
    }

    /// If `folder` is a link, starts a thread that shows another repository when the link leads there.
    pub(crate) fn follow(self, folder: &Path, served: ServedRepo) {
        let Ok(link) = std::path::absolute(folder) else { return };
        let Ok(target) = link.canonicalize() else { return };
        if target != link {
            std::thread::spawn(move || self.follow_link(&link, target, &served));
        }
    }

    fn follow_link(&self, link: &Path, mut target: PathBuf, served: &ServedRepo) {
        loop {
            std::thread::sleep(LINK_INTERVAL);
            // A link that leads nowhere may be about to be replaced.
            let Some(now) = link.canonicalize().ok().filter(|now| *now != target) else { continue };
            let Ok(project) = RepoReader::open(&now) else { continue };
            let before = served.replace(self.watch(Arc::new(project)));
            before.watch.end();
            self.events.publish(&ChangeEvent::Resync {});
            target = now;
        }
    }
}
