//! A folder of results, read whole.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::result::signature::SigningKey;
use crate::result::{CHECKS_SCHEMA, CheckResults, LOCK_SCHEMA, META_SCHEMA, TrialInputs, TrialMeta};

/// The files of one result that are read here.
pub const META: &str = "meta.json";
/// What the checks said.
pub const CHECKS: &str = "checks.json";
/// What the result depends on.
pub const LOCK: &str = "lock.json";

/// One attempt at one trial, as its folder holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTrial {
    /// Where it is: `<results>/<case>/<eval-run-id>`.
    pub folder: PathBuf,
    /// Who, what, how it ended.
    pub meta: TrialMeta,
    /// What the checks said.
    pub checks: CheckResults,
    /// What it depends on.
    pub lock: TrialInputs,
}

impl StoredTrial {
    /// The trial that this is an attempt at: run, case, agent, number.
    pub fn unit(&self) -> (&str, &str, &str, u32) {
        (&self.meta.run, &self.meta.case_id, &self.meta.agent, self.meta.trial)
    }
}

/// A result that cannot be read.
#[derive(Debug, Error)]
#[error("`{}`: {why}", .path.display())]
pub struct UnreadableResult {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// Every attempt in a folder of results, ordered by case, agent, run, trial and attempt; and what cannot be read, or was
/// not made by the run that it names. Names that begin with `_` or `.` are not cases and not results.
pub fn load(results: &Path) -> io::Result<(Vec<StoredTrial>, Vec<UnreadableResult>)> {
    let (mut trials, mut faults, mut keys) = (Vec::new(), Vec::new(), BTreeMap::new());
    for case in folders_in(results)? {
        for folder in folders_in(&case)? {
            match read(&folder) {
                Ok(trial) if is_true(&trial, results, &mut keys) => trials.push(trial),
                Ok(_) => {
                    let why = "was not made by the run that it names, or was changed since".to_owned();
                    faults.push(UnreadableResult { path: folder, why });
                }
                Err(fault) => faults.push(fault),
            }
        }
    }
    trials.sort_by(|a, b| order(a).cmp(&order(b)));
    Ok((trials, faults))
}

/// Whether a result has the seal of its run. Of a run that was made elsewhere there is no key, and nothing to compare.
fn is_true(trial: &StoredTrial, results: &Path, keys: &mut BTreeMap<String, Option<SigningKey>>) -> bool {
    let run = &trial.meta.run;
    let key = keys.entry(run.clone()).or_insert_with(|| SigningKey::read(results, run));
    key.as_ref().is_none_or(|key| key.fits(trial))
}

fn order(trial: &StoredTrial) -> (&str, &str, &str, u32, u32) {
    let meta = &trial.meta;
    (&meta.case_id, &meta.agent, &meta.run, meta.trial, meta.attempt)
}

/// The last attempt at each trial, which is the one that scores are made from.
pub fn last_attempts(trials: &[StoredTrial]) -> Vec<&StoredTrial> {
    let mut last: Vec<&StoredTrial> = Vec::new();
    for trial in trials {
        match last.last_mut() {
            Some(before) if before.unit() == trial.unit() => *before = trial,
            _ => last.push(trial),
        }
    }
    last
}

/// One result.
pub fn read(folder: &Path) -> Result<StoredTrial, UnreadableResult> {
    let meta: TrialMeta = document(folder, META)?;
    let checks: CheckResults = document(folder, CHECKS)?;
    let lock: TrialInputs = document(folder, LOCK)?;
    let versions = [
        (META, meta.schema.as_str(), META_SCHEMA),
        (CHECKS, checks.schema.as_str(), CHECKS_SCHEMA),
        (LOCK, lock.schema.as_str(), LOCK_SCHEMA),
    ];
    for (name, found, known) in versions {
        if found != known {
            let why = format!("`schema` is `{found}`, and this program reads `{known}`");
            return Err(UnreadableResult { path: folder.join(name), why });
        }
    }
    let named = folder.file_name().is_some_and(|name| name == meta.eval_run_id.as_str());
    let beneath = folder.parent().and_then(Path::file_name).is_some_and(|case| case == meta.case_id.as_str());
    if !named || !beneath {
        let why = format!("is the result of `{}/{}`, and not in its place", meta.case_id, meta.eval_run_id);
        return Err(UnreadableResult { path: folder.to_owned(), why });
    }
    if meta.cause.is_none() != (meta.outcome == crate::result::TrialOutcome::Success) {
        let why = "`cause` is null exactly when `outcome` is `success`".to_owned();
        return Err(UnreadableResult { path: folder.join(META), why });
    }
    Ok(StoredTrial { folder: folder.to_owned(), meta, checks, lock })
}

fn document<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<T, UnreadableResult> {
    let path = folder.join(name);
    let fault = |why: String| UnreadableResult { path: path.clone(), why };
    // A link could lead anywhere, and a pipe could make whoever reads it wait for ever.
    if !fs::symlink_metadata(&path).map_err(|error| fault(error.to_string()))?.is_file() {
        return Err(fault("is not a plain file".to_owned()));
    }
    let text = fs::read_to_string(&path).map_err(|error| fault(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| fault(error.to_string()))
}

fn folders_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let is_own = entry.file_name().to_string_lossy().starts_with(['_', '.']);
        if !is_own && entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
