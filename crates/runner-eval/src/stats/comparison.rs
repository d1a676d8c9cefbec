//! Two selections of results, put side by side by case.

use std::collections::{BTreeMap, BTreeSet};

use runner_term::CommandError;
use serde_json::{Value, json};

use crate::result::selection::ResultSelection;
use crate::result::stored_trial::StoredTrial;
use crate::stats::paired::{ScoredCounts, ScoredPair};
use crate::stats::score::{Score, scores};

/// What can be compared, and what cannot.
pub(crate) struct PairedComparison {
    /// By case.
    pub(crate) pairs: BTreeMap<String, ScoredPair>,
    /// Cases that only the old results have a score of.
    pub(crate) only_base: Vec<String>,
    /// Cases that only the new ones have a score of.
    pub(crate) only_new: Vec<String>,
    /// Cases whose files are not the same on both sides, or within one.
    pub(crate) changed: Vec<String>,
    /// Trials on either side that say nothing about the agent.
    pub(crate) left_out: u32,
}

impl PairedComparison {
    /// Puts two selections with one agent each side by side.
    pub(crate) fn new(base: &ResultSelection, new: &ResultSelection) -> Result<Self, CommandError> {
        base.one_agent()?;
        new.one_agent()?;
        let (old, fresh) = (by_case(base), by_case(new));
        let versions = versions(base.last().into_iter().chain(new.last()));
        let mut pairing = Self {
            pairs: BTreeMap::new(),
            only_base: Vec::new(),
            only_new: Vec::new(),
            changed: Vec::new(),
            left_out: old.values().chain(fresh.values()).map(|score| score.left_out).sum(),
        };
        let names: BTreeSet<&String> = old.keys().chain(fresh.keys()).collect();
        for name in names {
            let counts = |side: &BTreeMap<String, Score>| side.get(name).and_then(counts);
            let is_changed = versions.get(name.as_str()).is_some_and(|list| list.len() > 1);
            match (counts(&old), counts(&fresh)) {
                (Some(_), Some(_)) if is_changed => pairing.changed.push(name.clone()),
                (Some(base), Some(new)) => {
                    pairing.pairs.insert(name.clone(), ScoredPair { base, new });
                }
                (Some(_), None) => pairing.only_base.push(name.clone()),
                (None, Some(_)) => pairing.only_new.push(name.clone()),
                (None, None) => {}
            }
        }
        Ok(pairing)
    }

    /// The pairs alone.
    pub(crate) fn list(&self) -> Vec<ScoredPair> {
        self.pairs.values().copied().collect()
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let case = |(name, pair): (&String, &ScoredPair)| json!({ "case": name, "base": pair.base, "new": pair.new, "difference": pair.difference() });
        json!({
            "cases": self.pairs.iter().map(case).collect::<Vec<_>>(),
            "only_base": self.only_base,
            "only_new": self.only_new,
            "changed": self.changed,
            "left_out": self.left_out,
        })
    }

    /// What cannot be compared, in words.
    pub(crate) fn notes(&self) -> Vec<String> {
        let lists = [
            ("only the old results have a score of", &self.only_base),
            ("only the new results have a score of", &self.only_new),
            ("not the same case on both sides, so not compared:", &self.changed),
        ];
        let told = |(what, names): &(&str, &Vec<String>)| format!("{what} {}", names.join(", "));
        let mut notes: Vec<String> = lists.iter().filter(|(_, names)| !names.is_empty()).map(told).collect();
        if self.left_out > 0 {
            notes.push(format!("{} trials say nothing about the agent and are left out", self.left_out));
        }
        notes
    }
}

/// The counts of a score; none without a scored trial.
pub(crate) fn counts(score: &Score) -> Option<ScoredCounts> {
    (score.n > 0).then_some(ScoredCounts { successes: score.successes, n: score.n })
}

/// The scores of a selection with one agent, by case.
pub(crate) fn by_case(chosen: &ResultSelection) -> BTreeMap<String, Score> {
    let last = chosen.last();
    let scores = scores(last.iter().map(|trial| &trial.meta));
    scores.into_iter().map(|((_, case), score)| (case.to_owned(), score)).collect()
}

/// What each case was when it was tried: the fingerprints of its file, fixture and checks.
fn versions<'a>(trials: impl Iterator<Item = &'a StoredTrial>) -> BTreeMap<&'a str, BTreeSet<[&'a str; 3]>> {
    let mut versions: BTreeMap<&str, BTreeSet<_>> = BTreeMap::new();
    for trial in trials.filter(|trial| trial.meta.is_scored()) {
        let lock = &trial.lock;
        let fixture = lock.fixture_sha256.as_deref().unwrap_or_default();
        let version = [lock.case_sha256.as_str(), fixture, lock.checks_sha256.as_str()];
        versions.entry(&trial.meta.case_id).or_default().insert(version);
    }
    versions
}
