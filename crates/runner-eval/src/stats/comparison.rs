//! Pairs two selections of results by case, for `compare` and `gate`.

use std::collections::{BTreeMap, BTreeSet};

use runner_term::CommandError;
use serde::Serialize;
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
    /// Cases that differ in the configuration, agent version, model, machine or isolation, with what differs.
    pub(crate) conditions: Vec<String>,
    pub(crate) base_lost: LostShare,
    pub(crate) new_lost: LostShare,
    /// The pairs if every lost trial had ended in the way that is worst for the new results.
    pub(crate) worst_pairs: Vec<ScoredPair>,
}

/// How many trials of a side have no score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LostShare {
    pub(crate) lost: u32,
    pub(crate) trials: u32,
}

impl LostShare {
    fn of(scores: &BTreeMap<String, Score>) -> Self {
        let lost = scores.values().map(|score| score.unscored).sum();
        Self { lost, trials: scores.values().map(|score| score.n).sum::<u32>() + lost }
    }

    pub(crate) fn share(self) -> f64 {
        if self.trials == 0 { 0.0 } else { f64::from(self.lost) / f64::from(self.trials) }
    }
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
            conditions: changed_conditions(base, new),
            base_lost: LostShare::of(&base_scores),
            new_lost: LostShare::of(&new_scores),
            worst_pairs: Vec::new(),
        };
        let names: BTreeSet<&String> = base_scores.keys().chain(new_scores.keys()).collect();
        for name in names {
            let base_counts = base_scores.get(name).and_then(Score::counts);
            let new_counts = new_scores.get(name).and_then(Score::counts);
            let worst = base_scores.get(name).and_then(|score| score.counts_with_lost(true));
            let worst = worst.zip(new_scores.get(name).and_then(|score| score.counts_with_lost(false)));
            comparison.worst_pairs.extend(worst.map(|(base, new)| ScoredPair { base, new }));
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
            "unscored": self.base_lost.lost + self.new_lost.lost,
            "lost": { "base": self.base_lost, "new": self.new_lost },
            "conditions": self.conditions,
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
        for (side, LostShare { lost, trials }) in [("base", self.base_lost), ("new", self.new_lost)] {
            if lost > 0 {
                notes.push(format!(
                    "{lost} of {trials} trials of the {side} results are not scored and not counted"
                ));
            }
        }
        notes.extend(self.conditions.iter().map(|what| format!("not the same on both sides: {what}")));
        notes
    }
}

/// The scores of a selection with one agent, by case.
pub(crate) fn scores_by_case(selection: &ResultSelection) -> BTreeMap<String, Score> {
    let last = selection.last_attempts();
    let scores = scores(last.iter().map(|trial| &trial.meta), []);
    scores.into_iter().map(|((_, case), score)| (case.to_owned(), score)).collect()
}

/// The versions of each case that were tried.
fn case_versions<'a>(trials: impl Iterator<Item = &'a StoredTrial>) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut versions: BTreeMap<&str, BTreeSet<_>> = BTreeMap::new();
    for trial in trials.filter(|trial| trial.meta.is_scored()) {
        versions.entry(&trial.meta.case_id).or_default().insert(trial.inputs.case_sha256.as_str());
    }
    versions
}

/// A property of a trial that could explain a difference.
struct TrialCondition {
    name: &'static str,
    value: fn(&StoredTrial) -> String,
}

/// What else differs between two sides and could explain a difference, with the values of both.
fn changed_conditions(base: &ResultSelection, new: &ResultSelection) -> Vec<String> {
    let conditions = [
        TrialCondition { name: "runner", value: |trial| trial.inputs.runner.version.clone() },
        TrialCondition {
            name: "agent version",
            value: |trial| trial.inputs.agent_version.clone().unwrap_or_default(),
        },
        TrialCondition { name: "model", value: |trial| trial.inputs.model.clone().unwrap_or_default() },
        TrialCondition {
            name: "machine",
            value: |trial| format!("{} {} cpus", trial.inputs.host.hostname, trial.inputs.host.cpus),
        },
        TrialCondition { name: "parallel trials", value: |trial| trial.inputs.host.jobs.to_string() },
        TrialCondition { name: "isolation", value: |trial| trial.inputs.isolation.clone() },
        TrialCondition { name: "evaluator", value: |trial| trial.inputs.evaluator.clone() },
    ];
    let mut changed = Vec::new();
    for TrialCondition { name, value } in conditions {
        let values = |selection: &ResultSelection| -> BTreeSet<String> {
            let scored = selection.last_attempts().into_iter().filter(|trial| trial.meta.is_scored());
            scored.map(value).collect()
        };
        let [base, new] = [values(base), values(new)];
        if base != new && !base.is_empty() && !new.is_empty() {
            let list = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(", ");
            changed.push(format!("{name} ({} / {})", list(base), list(new)));
        }
    }
    let configured = changed_configurations(base, new);
    if !configured.is_empty() {
        changed.push(format!("configuration ({})", configured.join(", ")));
    }
    changed
}

/// Cases whose configuration differs although both sides have the same agent and arm, by name: a key of the arm, a prompt, or the
/// scenario has changed. With other names, the difference is what is compared.
fn changed_configurations(base: &ResultSelection, new: &ResultSelection) -> Vec<String> {
    if base.agents() != new.agents() {
        return Vec::new();
    }
    let [base, new] = [configurations(base), configurations(new)];
    let differs = |case: &&String| new.get(*case).is_some_and(|other| base.get(*case) != Some(other));
    base.keys().filter(differs).cloned().collect()
}

/// The digests of the configurations of each case.
fn configurations(selection: &ResultSelection) -> BTreeMap<String, BTreeSet<String>> {
    let mut configurations: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for trial in selection.last_attempts().into_iter().filter(|trial| trial.meta.is_scored()) {
        let digests = configurations.entry(trial.meta.case_id.clone()).or_default();
        digests.insert(trial.inputs.config_sha256.clone());
    }
    configurations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{CheckResults, INPUTS_SCHEMA, MachineInfo, RunnerVersion, TrialInputs};
    use crate::stats::score::tests::meta;

    fn inputs() -> TrialInputs {
        let text = || "x".to_owned();
        TrialInputs {
            schema: INPUTS_SCHEMA.to_owned(),
            case_sha256: text(),
            fixture_sha256: None,
            checks_sha256: text(),
            config_sha256: text(),
            runner: RunnerVersion { version: text(), sha256: text() },
            evaluator: text(),
            agent_version: Some(text()),
            model: Some(text()),
            isolation: text(),
            host: MachineInfo {
                os: text(),
                arch: text(),
                hostname: text(),
                kernel: text(),
                cpus: 1,
                memory_bytes: None,
                jobs: 1,
            },
            files: BTreeMap::new(),
            signature: String::new(),
        }
    }

    fn selection(agent: &str, inputs: TrialInputs) -> ResultSelection {
        let mut meta = meta("a", None, None);
        meta.agent = agent.to_owned();
        let checks = CheckResults::new(Vec::new());
        let trials = vec![StoredTrial { folder: "f".into(), meta, checks, inputs }];
        ResultSelection { name: "r".to_owned(), trials, unreadable: Vec::new(), missing: Vec::new() }
    }

    #[test]
    fn every_condition_that_differs_is_reported() {
        let other = || "y".to_owned();
        let same = inputs();
        let changed = |agent: &str, inputs: TrialInputs| {
            changed_conditions(&selection("codex", same.clone()), &selection(agent, inputs))
        };
        assert_eq!(changed("codex", same.clone()), Vec::<String>::new());
        let machine = MachineInfo { hostname: other(), ..same.host.clone() };
        let busy = MachineInfo { jobs: 2, ..same.host.clone() };
        let runner = RunnerVersion { version: other(), ..same.runner.clone() };
        for (inputs, expected) in [
            (TrialInputs { runner, ..same.clone() }, "runner (x / y)"),
            (TrialInputs { agent_version: Some(other()), ..same.clone() }, "agent version (x / y)"),
            (TrialInputs { model: Some(other()), ..same.clone() }, "model (x / y)"),
            (TrialInputs { host: machine, ..same.clone() }, "machine (x 1 cpus / y 1 cpus)"),
            (TrialInputs { host: busy, ..same.clone() }, "parallel trials (1 / 2)"),
            (TrialInputs { isolation: other(), ..same.clone() }, "isolation (x / y)"),
            (TrialInputs { evaluator: other(), ..same.clone() }, "evaluator (x / y)"),
            (TrialInputs { config_sha256: other(), ..same.clone() }, "configuration (a)"),
        ] {
            assert_eq!(changed("codex", inputs), [expected]);
        }
        let arm = TrialInputs { config_sha256: other(), ..same.clone() };
        assert_eq!(changed("codex+x", arm), Vec::<String>::new(), "that is what is compared");
    }
}
