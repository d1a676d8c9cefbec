//! The results of an evaluation and the workspaces of its trials. `runner-eval` computes the scores; a trial's run is shown
//! like any other.

mod eval_cli;
mod trials;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use crate::api::{ChangeEvent, EvalComparison, EvalView, WatchMethod};
use crate::error::RequestError;
use crate::read::confined_fs::ConfinedDir;
use crate::server::sse::EventStream;
use crate::watch::WatchState;
use eval_cli::EvalCliCache;
pub(crate) use eval_cli::locked_trials;
use trials::OpenTrials;

/// The id in addresses for the newest trial of a case.
pub(crate) const LATEST: &str = "latest";

/// The name of a case or of a trial: a file name, and not one that the evaluation uses itself.
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

/// A trial of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrialName {
    pub(crate) case: EntryName,
    pub(crate) id: EntryName,
}

/// The folders of an evaluation. Either may not exist yet.
#[derive(Clone, Debug)]
pub(crate) struct EvalPaths {
    pub(crate) results: PathBuf,
    pub(crate) workspaces: PathBuf,
}

impl EvalPaths {
    /// Finds them from the folder of the results, from the one that contains `results` and `workspaces`, or from one with such
    /// a folder `eval` in it.
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
        let message = format!("`{}` has no results of an evaluation", folder.display());
        Err(io::Error::new(io::ErrorKind::NotFound, message))
    }

    /// The newest workspace of a case, from the target of the evaluation's link `{case}_latest`. A link that leads anywhere else
    /// is ignored.
    pub(crate) fn latest(&self, case: &EntryName) -> Option<EntryName> {
        let target = ConfinedDir::open(&self.workspaces).ok()?.link(&format!("{case}_latest")).ok()?;
        let (of, id) = target.split_once('/')?;
        EntryName::new(id).filter(|_| of == case.as_str())
    }
}

#[derive(Debug)]
pub(crate) struct Evaluation {
    pub(crate) paths: EvalPaths,
    pub(crate) watch: Arc<WatchState>,
    pub(crate) readers: Arc<Semaphore>,
    pub(crate) events: Arc<EventStream>,
    /// How the user wants changes to be noticed.
    method: WatchMethod,
    eval_cli: Mutex<EvalCliCache>,
    trials: Mutex<OpenTrials>,
}

impl Evaluation {
    pub(crate) fn new(
        paths: EvalPaths,
        events: Arc<EventStream>,
        readers: Arc<Semaphore>,
        method: WatchMethod,
    ) -> Self {
        Self {
            paths,
            watch: Arc::default(),
            readers,
            events,
            method,
            eval_cli: Mutex::default(),
            trials: Mutex::default(),
        }
    }

    /// The evaluation runs, and the trials of one of them: of the named one, or of the newest.
    pub(crate) fn view(&self, run: Option<&str>) -> Result<EvalView, RequestError> {
        self.eval_cli.lock().unwrap_or_else(PoisonError::into_inner).view(&self.paths, run)
    }

    /// Compares two results: of runs, or of agents of runs.
    pub(crate) fn compare(&self, base: &str, new: &str) -> Result<EvalComparison, RequestError> {
        self.eval_cli.lock().unwrap_or_else(PoisonError::into_inner).compare(&self.paths, base, new)
    }

    /// Clears the cache, because results changed.
    pub(crate) fn clear_cache(&self) {
        *self.eval_cli.lock().unwrap_or_else(PoisonError::into_inner) = EvalCliCache::default();
    }

    /// Publishes a change in a trial's run.
    pub(crate) fn publish_trial_change(&self, trial: &TrialName, change: ChangeEvent) {
        let is_latest = self.paths.latest(&trial.case).as_ref() == Some(&trial.id);
        self.events.publish(&ChangeEvent::TrialChanged {
            case: trial.case.to_string(),
            id: trial.id.to_string(),
            is_latest,
            change: Box::new(change),
        });
    }
}

/// The names in a folder that may be cases or trials; none if the folder is missing.
pub(crate) fn entry_names(folder: &io::Result<ConfinedDir>) -> Vec<EntryName> {
    let names = folder.as_ref().ok().and_then(|folder| folder.names().ok()).unwrap_or_default();
    names.iter().filter_map(|name| EntryName::new(name)).collect()
}

/// The newest workspace of each case.
pub(crate) fn latest_by_case(paths: &EvalPaths) -> BTreeMap<EntryName, EntryName> {
    let names = entry_names(&ConfinedDir::open(&paths.workspaces));
    let case = |name: &EntryName| EntryName::new(name.as_str().strip_suffix("_latest")?);
    names.iter().filter_map(case).filter_map(|case| Some((case.clone(), paths.latest(&case)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn entry_name_is_a_single_path_component() {
        for good in ["a", "fixes-a-ledger", "2026.codex_gpt-5.t01.a1"] {
            assert!(EntryName::new(good).is_some(), "{good}");
        }
        for bad in ["", ".", "..", "_runs", ".git", "-C", "a/b", "a\0", "é", "a b", &"x".repeat(256)] {
            assert!(EntryName::new(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn newest_trial_comes_from_a_link_within_its_case_only() {
        let around = tempfile::tempdir().unwrap();
        let workspaces = around.path().join("eval/workspaces");
        fs::create_dir_all(workspaces.join("a/r.x.t01.a1")).unwrap();
        let paths = EvalPaths::find(around.path()).unwrap();
        let case = EntryName::new("a").unwrap();
        let link = workspaces.join("a_latest");
        assert_eq!(paths.latest(&case), None);
        symlink("a/r.x.t01.a1", &link).unwrap();
        assert_eq!(paths.latest(&case), EntryName::new("r.x.t01.a1"));
        for bad in ["/etc/passwd", "../../..", "b/r.x.t01.a1", "a/../b", "a/b/c", "a"] {
            fs::remove_file(&link).unwrap();
            symlink(bad, &link).unwrap();
            assert_eq!(paths.latest(&case), None, "{bad}");
        }
    }

    #[test]
    fn results_are_found_from_the_folders_around_them() {
        let around = tempfile::tempdir().unwrap();
        let root = around.path().canonicalize().unwrap();
        assert!(EvalPaths::find(&root).is_err());
        fs::create_dir_all(root.join("eval/results/_runs")).unwrap();
        for folder in [root.clone(), root.join("eval"), root.join("eval/results")] {
            let paths = EvalPaths::find(&folder).unwrap();
            assert_eq!(paths.results, root.join("eval/results"));
            assert_eq!(paths.workspaces, root.join("eval/workspaces"));
        }
    }
}
