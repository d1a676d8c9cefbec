//! Renders results as predictions of SWE-bench: a patch for each instance, which its own harness applies and tests.

use std::collections::BTreeSet;

use serde_json::json;

use crate::execution::trial::work_patch::read_patch;
use crate::result::stored_trial::StoredTrial;

/// One JSON object per line. SWE-bench takes one prediction per instance and model, so only the first trial counts.
pub(crate) fn predictions(trials: &[&StoredTrial]) -> String {
    let mut seen = BTreeSet::new();
    let mut text = String::new();
    for trial in trials {
        let meta = &trial.meta;
        if !seen.insert((&meta.case_id, &meta.agent)) {
            continue;
        }
        let prediction = json!({
            "instance_id": meta.case_id,
            "model_name_or_path": meta.agent,
            "model_patch": read_patch(&trial.folder).unwrap_or_default(),
        });
        text.push_str(&format!("{prediction}\n"));
    }
    text
}
