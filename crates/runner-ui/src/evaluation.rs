//! The results of an evaluation, and the workspaces of its trials. What results mean is asked of `runner-eval`; a
//! trial's run is shown like any other.

mod eval_cli;
mod trials;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use crate::api::{ChangeEvent, EvalComparison, EvalView};
use crate::error::RequestError;
use crate::read::confined_fs::ConfinedDir;
use crate::server::sse::EventStream;
use crate::watch::WatchState;
use eval_cli::EvalCliCache;
pub(crate) use eval_cli::locked;
use trials::OpenTrials;

/// The id that stands for the newest trial of a case.
pub(crate) const LATEST: &str = "latest";

/// The name of a case or of a trial: one step down from a folder, and not one of the evaluation's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryName(String);

/// The longest name that a file can have.
const NAME_BYTES_MAX: usize = 255;

impl EntryName {
    pub(crate) fn new(text: &str) -> Option<Self> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let fits = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed);
        (fits && !text.starts_with(['.', '_', '-'])).then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A trial's attempt, by name.
pub(crate) type TrialName = (EntryName, EntryName);

/// Where an evaluation keeps its things. Either may not be there yet.
#[derive(Clone, Debug)]
pub(crate) struct EvalPaths {
    pub(crate) results: PathBuf,
    pub(crate) workspaces: PathBuf,
}

impl EvalPaths {
    /// Finds them from a folder of results, a folder that holds one beside the workspaces, or one with such an `eval` in
    /// it.
    pub(crate) fn find(folder: &Path) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        let beside =
            |around: &Path| Self { results: around.join("results"), workspaces: around.join("workspaces") };
        if folder.join("_runs").is_dir() {
            let workspaces = folder.with_file_name("workspaces");
            return Ok(Self { results: folder, workspaces });
        }
        let inner = folder.join("eval");
        if folder.join("results").is_dir() || folder.file_name().is_some_and(|name| name == "eval") {
            return Ok(beside(&folder));
        }
        if inner.is_dir() {
            return Ok(beside(&inner));
        }
        let says = format!("`{}` holds no results of an evaluation", folder.display());
        Err(io::Error::new(io::ErrorKind::NotFound, says))
    }

    /// The newest workspace of a case: where the evaluation's link of that name says, and nowhere else.
    pub(crate) fn latest(&self, case: &EntryName) -> Option<EntryName> {
        let target = ConfinedDir::open(&self.workspaces).ok()?.link(&format!("{case}_latest")).ok()?;
        let (of, id) = target.split_once('/')?;
        EntryName::new(id).filter(|_| of == case.as_str())
    }
}

/// An evaluation.
#[derive(Debug)]
pub(crate) struct Evaluation {
    pub(crate) places: EvalPaths,
    pub(crate) watch: Arc<WatchState>,
    pub(crate) readers: Arc<Semaphore>,
    pub(crate) feed: Arc<EventStream>,
    /// Whether files are looked at every two seconds because somebody asked for it.
    only_polls: bool,
    answers: Mutex<EvalCliCache>,
    trials: Mutex<OpenTrials>,
}

impl Evaluation {
    pub(crate) fn new(
        places: EvalPaths,
        feed: Arc<EventStream>,
        readers: Arc<Semaphore>,
        only_polls: bool,
    ) -> Self {
        let (watch, answers, trials) = (Arc::default(), Mutex::default(), Mutex::default());
        Self { places, watch, readers, feed, only_polls, answers, trials }
    }

    /// The runs, and the trials of one of them; without a name, of the newest.
    pub(crate) fn view(&self, run: Option<&str>) -> Result<EvalView, RequestError> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).view(&self.places, run)
    }

    /// Two results side by side: runs, or agents of runs.
    pub(crate) fn compare(&self, base: &str, new: &str) -> Result<EvalComparison, RequestError> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).compare(&self.places, base, new)
    }

    /// Something changed: nothing that was asked before holds any more.
    pub(crate) fn forget(&self) {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner) = EvalCliCache::default();
    }

    /// Tells of a change in a trial's run.
    pub(crate) fn tell(&self, (case, id): &TrialName, change: ChangeEvent) {
        let is_latest = self.places.latest(case).as_ref() == Some(id);
        self.feed.publish(&ChangeEvent::TrialChanged {
            case: case.to_string(),
            id: id.to_string(),
            is_latest,
            change: Box::new(change),
        });
    }
}

/// The names in a folder that may be cases or trials; none where there is no folder.
pub(crate) fn names_in(folder: &io::Result<ConfinedDir>) -> Vec<EntryName> {
    let names = folder.as_ref().ok().and_then(|folder| folder.names().ok()).unwrap_or_default();
    names.iter().filter_map(|name| EntryName::new(name)).collect()
}

/// The newest workspace of each case.
pub(crate) fn latest_of_all(places: &EvalPaths) -> BTreeMap<EntryName, EntryName> {
    let names = names_in(&ConfinedDir::open(&places.workspaces));
    let case = |name: &EntryName| EntryName::new(name.as_str().strip_suffix("_latest")?);
    names.iter().filter_map(case).filter_map(|case| Some((case.clone(), places.latest(&case)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_name_leads_one_step_down_and_no_further() {
        for good in ["a", "mends-a-ledger", "2026.codex_gpt-5.t01.a1"] {
            assert!(EntryName::new(good).is_some(), "{good}");
        }
        for bad in ["", ".", "..", "_runs", ".git", "-C", "a/b", "a\0", "é", "a b", &"x".repeat(256)] {
            assert!(EntryName::new(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn the_newest_trial_is_where_the_link_says_and_nowhere_else() {
        let around = tempfile::tempdir().unwrap();
        let workspaces = around.path().join("eval/workspaces");
        fs::create_dir_all(workspaces.join("a/r.x.t01.a1")).unwrap();
        let places = EvalPaths::find(around.path()).unwrap();
        let case = EntryName::new("a").unwrap();
        let link = workspaces.join("a_latest");
        assert_eq!(places.latest(&case), None);
        symlink("a/r.x.t01.a1", &link).unwrap();
        assert_eq!(places.latest(&case), EntryName::new("r.x.t01.a1"));
        for bad in ["/etc/passwd", "../../..", "b/r.x.t01.a1", "a/../b", "a/b/c", "a"] {
            fs::remove_file(&link).unwrap();
            symlink(bad, &link).unwrap();
            assert_eq!(places.latest(&case), None, "{bad}");
        }
    }

    #[test]
    fn results_are_found_from_above_and_from_within() {
        let around = tempfile::tempdir().unwrap();
        let root = around.path().canonicalize().unwrap();
        assert!(EvalPaths::find(&root).is_err());
        fs::create_dir_all(root.join("eval/results/_runs")).unwrap();
        for folder in [root.clone(), root.join("eval"), root.join("eval/results")] {
            let places = EvalPaths::find(&folder).unwrap();
            assert_eq!(places.results, root.join("eval/results"));
            assert_eq!(places.workspaces, root.join("eval/workspaces"));
        }
    }
}
