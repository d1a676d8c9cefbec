//! Reads the results folder: every attempt at every trial, with the signature verified.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::result::signature::SigningKey;
use crate::result::{
    CHECKS_SCHEMA, CheckResults, INPUTS_SCHEMA, META_SCHEMA, TrialInputs, TrialMeta, TrialOutcome,
};

pub const META_FILE: &str = "meta.json";
pub const CHECKS_FILE: &str = "checks.json";
pub const INPUTS_FILE: &str = "inputs.json";

/// One attempt at one trial, as its folder holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTrial {
    pub folder: PathBuf,
    pub meta: TrialMeta,
    pub checks: CheckResults,
    pub inputs: TrialInputs,
}

/// Identifies a trial; all attempts at it have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrialKey<'t> {
    pub case: &'t str,
    pub agent: &'t str,
    pub run: &'t str,
    pub trial: u32,
}

impl StoredTrial {
    pub fn key(&self) -> TrialKey<'_> {
        let TrialMeta { case_id, agent, run, trial, .. } = &self.meta;
        TrialKey { case: case_id, agent, run, trial: *trial }
    }
}

#[derive(Debug, Error)]
#[error("`{}`: {why}", .path.display())]
pub struct UnreadableResult {
    pub path: PathBuf,
    pub why: String,
}

/// The content of a results folder.
#[derive(Debug, Default)]
pub struct StoredResults {
    /// Ordered by case, agent, run, trial and attempt.
    pub trials: Vec<StoredTrial>,
    /// Results that cannot be decoded, or whose signature is not valid.
    pub unreadable: Vec<UnreadableResult>,
}

/// Reads every attempt. Folders whose names begin with `_` or `.` are neither cases nor results.
pub fn load_results(results: &Path) -> io::Result<StoredResults> {
    let mut loaded = StoredResults::default();
    let mut keys = BTreeMap::new();
    for case in folders_in(results)? {
        for folder in folders_in(&case)? {
            match read_result(&folder) {
                Ok(trial) => match signature_fault(&trial, results, &mut keys) {
                    None => loaded.trials.push(trial),
                    Some(why) => {
                        loaded.unreadable.push(UnreadableResult { path: folder, why: why.to_owned() });
                    }
                },
                Err(error) => loaded.unreadable.push(error),
            }
        }
    }
    loaded.trials.sort_by(|a, b| (a.key(), a.meta.attempt).cmp(&(b.key(), b.meta.attempt)));
    Ok(loaded)
}

/// Why a result is not proven to be of its run; none if it is. Without the key of the run nothing is proven.
fn signature_fault(
    trial: &StoredTrial,
    results: &Path,
    keys: &mut BTreeMap<String, Option<SigningKey>>,
) -> Option<&'static str> {
    let run = &trial.meta.run;
    match keys.entry(run.clone()).or_insert_with(|| SigningKey::read(results, run)) {
        None => Some("the key of its run is missing: copy the run's folder in _runs as well"),
        Some(key) if key.verify(trial) => None,
        Some(_) => Some("the signature is not valid: changed since, or not created by its run"),
    }
}

/// The last attempt at each trial, which is the one that counts in scores.
pub fn last_attempts(trials: &[StoredTrial]) -> Vec<&StoredTrial> {
    let mut last: Vec<&StoredTrial> = Vec::new();
    for trial in trials {
        match last.last_mut() {
            Some(before) if before.key() == trial.key() => *before = trial,
            _ => last.push(trial),
        }
    }
    last
}

/// Reads one result, without verifying its signature.
pub fn read_result(folder: &Path) -> Result<StoredTrial, UnreadableResult> {
    let meta: TrialMeta = read_document(folder, META_FILE)?;
    let checks: CheckResults = read_document(folder, CHECKS_FILE)?;
    let inputs: TrialInputs = read_document(folder, INPUTS_FILE)?;
    check_schema(folder, META_FILE, &meta.schema, META_SCHEMA)?;
    check_schema(folder, CHECKS_FILE, &checks.schema, CHECKS_SCHEMA)?;
    check_schema(folder, INPUTS_FILE, &inputs.schema, INPUTS_SCHEMA)?;
    let has_own_name = folder.file_name().is_some_and(|name| name == meta.eval_run_id.as_str());
    let is_in_case =
        folder.parent().and_then(Path::file_name).is_some_and(|case| case == meta.case_id.as_str());
    if !has_own_name || !is_in_case {
        let why = format!("is the result of `{}/{}`, in the wrong folder", meta.case_id, meta.eval_run_id);
        return Err(UnreadableResult { path: folder.to_owned(), why });
    }
    if meta.cause.is_none() != (meta.outcome == TrialOutcome::Success) {
        let why = "`cause` must be null for a success, and only then".to_owned();
        return Err(UnreadableResult { path: folder.join(META_FILE), why });
    }
    Ok(StoredTrial { folder: folder.to_owned(), meta, checks, inputs })
}

fn check_schema(folder: &Path, name: &str, schema: &str, supported: &str) -> Result<(), UnreadableResult> {
    if schema == supported {
        return Ok(());
    }
    let why = format!("`schema` is `{schema}`; this version reads `{supported}`");
    Err(UnreadableResult { path: folder.join(name), why })
}

fn read_document<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<T, UnreadableResult> {
    let path = folder.join(name);
    let unreadable = |why: String| UnreadableResult { path: path.clone(), why };
    // A link could lead anywhere, and reading a pipe could block forever.
    if !fs::symlink_metadata(&path).map_err(|error| unreadable(error.to_string()))?.is_file() {
        return Err(unreadable("is not a regular file".to_owned()));
    }
    let text = fs::read_to_string(&path).map_err(|error| unreadable(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))
}

fn folders_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(folders),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let is_reserved = entry.file_name().to_string_lossy().starts_with(['_', '.']);
        if !is_reserved && entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}
