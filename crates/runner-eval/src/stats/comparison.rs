//! Pairs two selections of results by case, for `compare` and `gate`.

use std::collections::{BTreeMap, BTreeSet};

use runner_term::CommandError;
use serde_json::{Value, json};

use crate::result::selection::ResultSelection;
use crate::result::stored_trial::StoredTrial;
use crate::stats::paired::ScoredPair;
use crate::stats::score::{Score, scores};

pub(crate) struct PairedComparison {
    /// By the id of the case.
    pub(crate) pairs: BTreeMap<String, ScoredPair>,
    /// Cases with a score only in the base results.
    pub(crate) only_base: Vec<String>,
    /// Cases with a score only in the new results.
    pub(crate) only_new: Vec<String>,
    /// Cases whose files differ between the two sides, or within one.
    pub(crate) changed: Vec<String>,
    /// Trials of both sides that are not scored.
    pub(crate) unscored: u32,
}

impl PairedComparison {
    /// Pairs two selections with one agent each.
    pub(crate) fn new(base: &ResultSelection, new: &ResultSelection) -> Result<Self, CommandError> {
        base.require_one_agent()?;
        new.require_one_agent()?;
        let base_scores = scores_by_case(base);
        let new_scores = scores_by_case(new);
        let versions = case_versions(base.last_attempts().into_iter().chain(new.last_attempts()));
        let mut comparison = Self {
            pairs: BTreeMap::new(),
            only_base: Vec::new(),
            only_new: Vec::new(),
            changed: Vec::new(),
            unscored: base_scores.values().chain(new_scores.values()).map(|score| score.unscored).sum(),
        };
        let names: BTreeSet<&String> = base_scores.keys().chain(new_scores.keys()).collect();
        for name in names {
            let base_counts = base_scores.get(name).and_then(Score::counts);
            let new_counts = new_scores.get(name).and_then(Score::counts);
            let is_changed = versions.get(name.as_str()).is_some_and(|versions| versions.len() > 1);
            match (base_counts, new_counts) {
                (Some(_), Some(_)) if is_changed => comparison.changed.push(name.clone()),
                (Some(base), Some(new)) => {
                    comparison.pairs.insert(name.clone(), ScoredPair { base, new });
                }
                (Some(_), None) => comparison.only_base.push(name.clone()),
                (None, Some(_)) => comparison.only_new.push(name.clone()),
                (None, None) => {}
            }
        }
        Ok(comparison)
    }

    pub(crate) fn pairs(&self) -> Vec<ScoredPair> {
        self.pairs.values().copied().collect()
    }

    pub(crate) fn json(&self) -> Value {
        let mut cases = Vec::new();
        for (case, pair) in &self.pairs {
            let ScoredPair { base, new } = pair;
            cases.push(json!({ "case": case, "base": base, "new": new, "difference": pair.difference() }));
        }
        json!({
            "cases": cases,
            "only_base": self.only_base,
            "only_new": self.only_new,
            "changed": self.changed,
            "unscored": self.unscored,
        })
    }

    /// What is excluded from the comparison, in sentences.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (what, names) in [
            ("scored only in the base results", &self.only_base),
            ("scored only in the new results", &self.only_new),
            ("not compared, because the case changed", &self.changed),
        ] {
            if !names.is_empty() {
                notes.push(format!("{what}: {}", names.join(", ")));
            }
        }
        if self.unscored > 0 {
            notes.push(format!("{} trials are not scored and not counted", self.unscored));
        }
        notes
    }
}

/// The scores of a selection with one agent, by case.
pub(crate) fn scores_by_case(selection: &ResultSelection) -> BTreeMap<String, Score> {
    let last = selection.last_attempts();
    let scores = scores(last.iter().map(|trial| &trial.meta));
    scores.into_iter().map(|((_, case), score)| (case.to_owned(), score)).collect()
}

/// The versions of each case that were tried: the digests of its file, fixture and checks.
fn case_versions<'a>(
    trials: impl Iterator<Item = &'a StoredTrial>,
) -> BTreeMap<&'a str, BTreeSet<[&'a str; 3]>> {
    let mut versions: BTreeMap<&str, BTreeSet<_>> = BTreeMap::new();
    for trial in trials.filter(|trial| trial.meta.is_scored()) {
        let inputs = &trial.inputs;
        let fixture = inputs.fixture_sha256.as_deref().unwrap_or_default();
        let version = [inputs.case_sha256.as_str(), fixture, inputs.checks_sha256.as_str()];
        versions.entry(&trial.meta.case_id).or_default().insert(version);
    }
    versions
}
