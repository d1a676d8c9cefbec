//! Signs results with the key of their evaluation run, and verifies them. The key is in the results folder, which trials in a
//! sandbox cannot read; workers get it through a pipe.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use runner_core::model::digest::Sha256;
use runner_core::strict::canonical_json;
use serde::{Deserialize, Serialize};

use crate::result::TrialInputs;
use crate::result::stored_trial::{CHECKS_FILE, META_FILE, StoredTrial};

/// The files of a result whose digests are signed.
const SIGNED_FILES: [&str; 4] = [META_FILE, CHECKS_FILE, "tree.json", "run_state.json"];

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SigningKey(String);

impl SigningKey {
    pub(crate) fn path(results: &Path, run: &str) -> PathBuf {
        results.join("_runs").join(run).join("key")
    }

    /// The key of a run; none if the run was not made in this folder.
    pub(crate) fn read(results: &Path, run: &str) -> Option<Self> {
        fs::read_to_string(Self::path(results, run)).ok().map(Self)
    }

    pub(crate) fn sign(&self, inputs: TrialInputs) -> TrialInputs {
        TrialInputs { signature: self.signature(&inputs), ..inputs }
    }

    fn signature(&self, inputs: &TrialInputs) -> String {
        let unsigned = TrialInputs { signature: String::new(), ..inputs.clone() };
        let inner = [self.0.as_bytes(), &canonical_json(&unsigned)].concat();
        Sha256::of(format!("{}{}", self.0, Sha256::of(&inner)).as_bytes()).to_string()
    }

    /// Whether a result was created with this key and has not changed since.
    pub(crate) fn verify(&self, trial: &StoredTrial) -> bool {
        trial.inputs.signature == self.signature(&trial.inputs)
            && trial.inputs.files == file_digests(&trial.folder)
    }
}

/// The digests of the signed files of a result.
pub(crate) fn file_digests(folder: &Path) -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    for name in SIGNED_FILES {
        if let Ok(bytes) = fs::read(folder.join(name)) {
            digests.insert(name.to_owned(), Sha256::of(&bytes).to_string());
        }
    }
    digests
}
