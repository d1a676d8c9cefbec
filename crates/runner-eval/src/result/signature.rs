//! The seal of a result: a fingerprint that only who has the run's key can make.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use runner_core::model::digest::Sha256;
use runner_core::strict::canonical_json;

use crate::result::TrialInputs;
use crate::result::stored_trial::{CHECKS, META, StoredTrial};

/// The files of a result that its lock holds fingerprints of.
const SEALED: [&str; 4] = [META, CHECKS, "tree.json", "run_state.json"];

/// The key of a run.
#[derive(Clone, Debug)]
pub(crate) struct SigningKey(String);

impl SigningKey {
    /// The file with the key.
    pub(crate) fn path(results: &Path, run: &str) -> PathBuf {
        results.join("_runs").join(run).join("key")
    }

    /// The key of a run; none if the run was not made here.
    pub(crate) fn read(results: &Path, run: &str) -> Option<Self> {
        fs::read_to_string(Self::path(results, run)).ok().map(Self)
    }

    /// The lock of a result with its seal.
    pub(crate) fn sealed(&self, lock: TrialInputs) -> TrialInputs {
        TrialInputs { seal: self.seal(&lock), ..lock }
    }

    fn seal(&self, lock: &TrialInputs) -> String {
        let lock = TrialInputs { seal: String::new(), ..lock.clone() };
        let inner = [self.0.as_bytes(), &canonical_json(&lock)].concat();
        Sha256::of(format!("{}{}", self.0, Sha256::of(&inner)).as_bytes()).to_string()
    }

    /// Whether a result was made by someone who has the key, and is as it was made.
    pub(crate) fn fits(&self, trial: &StoredTrial) -> bool {
        trial.lock.seal == self.seal(&trial.lock) && trial.lock.files == fingerprints(&trial.folder)
    }
}

/// The fingerprints of a result's files.
pub(crate) fn fingerprints(folder: &Path) -> BTreeMap<String, String> {
    let of = |name: &str| Some((name.to_owned(), Sha256::of(&fs::read(folder.join(name)).ok()?).to_string()));
    SEALED.into_iter().filter_map(of).collect()
}
