//! Scores of a case with an agent, and of an agent over all its cases.

use std::collections::BTreeMap;

use super::paired::ScoredCounts;
use super::{Interval, pass_all, pass_at, wilson};
use crate::result::{TrialMeta, TrialOutcome};

/// Counts over the trials of one case with one agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Score {
    /// The number of scored trials.
    pub(crate) n: u32,
    pub(crate) successes: u32,
    /// Skipped and interrupted trials, and those lost to provider or infrastructure errors.
    pub(crate) unscored: u32,
    /// Of the scored trials.
    seconds: f64,
    /// Of the scored trials; none if the cost of any is unknown.
    microdollars: Option<u64>,
}

impl Default for Score {
    fn default() -> Self {
        Self { n: 0, successes: 0, unscored: 0, seconds: 0.0, microdollars: Some(0) }
    }
}

impl Score {
    /// Adds a trial, by its last attempt.
    pub(crate) fn add(&mut self, meta: &TrialMeta) {
        if !meta.is_scored() {
            self.unscored += 1;
            return;
        }
        self.n += 1;
        self.successes += u32::from(meta.outcome == TrialOutcome::Success);
        self.seconds += meta.wall_secs;
        self.microdollars = self.microdollars.zip(meta.cost.microdollars).map(|(sum, cost)| sum + cost);
    }

    fn merge(self, other: &Self) -> Self {
        Self {
            n: self.n + other.n,
            successes: self.successes + other.successes,
            unscored: self.unscored + other.unscored,
            seconds: self.seconds + other.seconds,
            microdollars: self.microdollars.zip(other.microdollars).map(|(a, b)| a + b),
        }
    }

    /// None without a scored trial.
    pub(crate) fn pass_rate(&self) -> Option<f64> {
        (self.n > 0).then(|| f64::from(self.successes) / f64::from(self.n))
    }

    /// The confidence interval of the pass rate.
    pub(crate) fn interval(&self) -> Option<Interval> {
        wilson(self.pass_rate()?, f64::from(self.n))
    }

    /// None without a scored trial.
    pub(crate) fn counts(&self) -> Option<ScoredCounts> {
        (self.n > 0).then_some(ScoredCounts { successes: self.successes, n: self.n })
    }

    /// The time of all scored trials, failures included, per success; none without a success.
    pub(crate) fn secs_per_success(&self) -> Option<f64> {
        (self.successes > 0).then(|| self.seconds / f64::from(self.successes))
    }

    /// The cost of all scored trials per success; none without a success, or if a cost is unknown.
    pub(crate) fn usd_per_success(&self) -> Option<f64> {
        let micro = self.microdollars.filter(|_| self.successes > 0)?;
        Some(micro as f64 / 1e6 / f64::from(self.successes))
    }
}

/// A row of the table: a case with an agent, or an agent over all its cases.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScoreRow {
    pub(crate) agent: String,
    /// None for the agent over all cases.
    pub(crate) case: Option<String>,
    /// The number of cases with a score.
    pub(crate) cases: usize,
    pub(crate) score: Score,
    pub(crate) interval: Option<Interval>,
    /// pass@k; none with fewer than k trials.
    pub(crate) pass_at: Option<f64>,
    /// pass^k; none with fewer than k trials.
    pub(crate) pass_all: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScoreTable {
    /// Of pass@k and pass^k.
    pub(crate) k: u32,
    pub(crate) agents: Vec<ScoreRow>,
    pub(crate) cases: Vec<ScoreRow>,
}

/// By agent and case.
pub(crate) type Scores<'a> = BTreeMap<(&'a str, &'a str), Score>;

/// Computes scores from the last attempt at each trial.
pub(crate) fn scores<'a>(metas: impl IntoIterator<Item = &'a TrialMeta>) -> Scores<'a> {
    let mut scores = Scores::new();
    for meta in metas {
        scores.entry((&meta.agent, &meta.case_id)).or_default().add(meta);
    }
    scores
}

/// The table of these scores. The default of `k` is the smallest number of scored trials of any case with a score.
pub(crate) fn table(scores: &Scores<'_>, k: Option<u32>) -> ScoreTable {
    let fewest = scores.values().map(|score| score.n).filter(|n| *n > 0).min();
    let k = k.or(fewest).unwrap_or(1);
    let mut agents: BTreeMap<&str, Vec<Score>> = BTreeMap::new();
    let mut cases = Vec::new();
    for ((agent, case), score) in scores {
        agents.entry(agent).or_default().push(*score);
        cases.push(ScoreRow {
            agent: (*agent).to_owned(),
            case: Some((*case).to_owned()),
            cases: usize::from(score.n > 0),
            score: *score,
            interval: score.interval(),
            pass_at: pass_at(k, score.n, score.successes),
            pass_all: pass_all(k, score.n, score.successes),
        });
    }
    ScoreTable {
        k,
        agents: agents.into_iter().map(|(agent, scores)| agent_row(agent, &scores, k)).collect(),
        cases,
    }
}

/// The row of an agent over all its cases.
fn agent_row(agent: &str, scores: &[Score], k: u32) -> ScoreRow {
    let scored: Vec<&Score> = scores.iter().filter(|score| score.n > 0).collect();
    // A mean over only the cases with at least k trials would be biased by that selection.
    let mean = |estimator: fn(u32, u32, u32) -> Option<f64>| {
        let estimates: Option<Vec<f64>> =
            scored.iter().map(|score| estimator(k, score.n, score.successes)).collect();
        let estimates = estimates.filter(|estimates| !estimates.is_empty())?;
        Some(estimates.iter().sum::<f64>() / estimates.len() as f64)
    };
    let score = scores.iter().fold(Score::default(), Score::merge);
    ScoreRow {
        agent: agent.to_owned(),
        case: None,
        cases: scored.len(),
        interval: score.pass_rate().and_then(|rate| wilson(rate, effective_observations(&scored, rate))),
        score,
        pass_at: mean(pass_at),
        pass_all: mean(pass_all),
    }
}

/// The effective number of independent observations behind a rate over cases: at most the number of trials, at least the
/// number of cases. Trials of one case are correlated, so the variance between cases decides.
fn effective_observations(scores: &[&Score], rate: f64) -> f64 {
    let cases = scores.len() as f64;
    let trials: f64 = scores.iter().map(|score| f64::from(score.n)).sum();
    if cases < 2.0 {
        return trials;
    }
    let deviation = |score: &Score| f64::from(score.successes) - rate * f64::from(score.n);
    let squares: f64 = scores.iter().map(|score| deviation(score).powi(2)).sum();
    let variance = squares / (trials * trials) * cases / (cases - 1.0);
    if variance <= 0.0 { cases } else { (rate * (1.0 - rate) / variance).clamp(cases, trials) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{FailureCause, META_SCHEMA, RunnerVersion, TrialCost};
    use runner_core::step::CostSource;

    fn meta(case: &str, cause: Option<FailureCause>, micro: Option<u64>) -> TrialMeta {
        TrialMeta {
            schema: META_SCHEMA.to_owned(),
            case_id: case.to_owned(),
            tags: Vec::new(),
            agent: "codex".to_owned(),
            trial: 1,
            attempt: 1,
            run: "r".to_owned(),
            eval_run_id: "r.codex.t01.a1".to_owned(),
            outcome: if cause.is_none() { TrialOutcome::Success } else { TrialOutcome::Error },
            cause,
            why: None,
            expected: None,
            runner_exit: None,
            wall_secs: 10.0,
            loop_secs: 9.0,
            iterations: 1,
            tokens: None,
            cost: TrialCost { microdollars: micro, source: CostSource::Unknown },
            runner: RunnerVersion { version: "0".to_owned(), sha256: "0".to_owned() },
            started_at: String::new(),
            ended_at: String::new(),
        }
    }

    #[test]
    fn unscored_trials_are_excluded_and_do_not_count_as_zero() {
        let skipped =
            TrialMeta { outcome: TrialOutcome::Skipped, ..meta("a", Some(FailureCause::MissingTool), None) };
        let lost = [FailureCause::Provider, FailureCause::Harness, FailureCause::Interrupted]
            .map(|cause| meta("a", Some(cause), None));
        let metas: Vec<TrialMeta> = lost.into_iter().chain([skipped, meta("a", None, Some(1))]).collect();
        let scores = scores(&metas);
        let score = scores.get(&("codex", "a")).unwrap();
        assert_eq!((score.n, score.successes, score.unscored, score.pass_rate()), (1, 1, 4, Some(1.0)));
        assert_eq!(score.usd_per_success(), Some(1e-6), "only scored trials count towards the cost");
    }

    #[test]
    fn case_without_a_scored_trial_has_no_pass_rate() {
        let metas = [meta("a", Some(FailureCause::Provider), None)];
        let table = table(&scores(&metas), Some(1));
        let row = &table.cases[0];
        let agent = &table.agents[0];
        assert_eq!(
            (row.score.pass_rate(), row.interval, row.pass_at, row.pass_all),
            (None, None, None, None)
        );
        assert_eq!((agent.cases, agent.score.pass_rate(), agent.pass_at), (0, None, None));
    }

    #[test]
    fn time_and_cost_per_success_include_failures() {
        let metas = [meta("a", None, Some(2_000_000)), meta("a", Some(FailureCause::Agent), Some(1_000_000))];
        let score = scores(&metas)[&("codex", "a")];
        assert_eq!((score.secs_per_success(), score.usd_per_success()), (Some(20.0), Some(3.0)));
        let metas = [meta("a", None, Some(2_000_000)), meta("a", Some(FailureCause::Agent), None)];
        assert_eq!(scores(&metas)[&("codex", "a")].usd_per_success(), None, "an unknown cost is not 0");
        let metas = [meta("a", Some(FailureCause::Limit), Some(5))];
        let score = scores(&metas)[&("codex", "a")];
        assert_eq!((score.secs_per_success(), score.usd_per_success()), (None, None));
    }

    #[test]
    fn equal_trials_of_a_case_do_not_narrow_the_interval() {
        let score = |successes, n| Score { n, successes, ..Score::default() };
        let width = |scores: &[Score]| {
            let interval = agent_row("a", scores, 1).interval.unwrap();
            interval.high - interval.low
        };
        let once = [score(1, 1), score(0, 1)].repeat(5);
        let often = [score(9, 9), score(0, 9)].repeat(5);
        assert!((width(&once) - width(&often)).abs() < 0.02, "all or nothing: each case is one observation");
        let mixed = [score(5, 9), score(4, 9)].repeat(5);
        assert!(
            width(&mixed) < width(&often) - 0.2,
            "equal rates in every case: each trial is one observation"
        );
        assert!(width(&[score(9, 9); 10]) > 0.2, "equal results are not certainty");
    }

    #[test]
    fn pass_at_k_needs_k_trials_of_every_case() {
        let metas = ["a", "a", "b"].map(|case| meta(case, None, None));
        let agent = |k| table(&scores(&metas), k).agents[0].clone();
        assert_eq!(agent(Some(2)).pass_at, None);
        assert_eq!((table(&scores(&metas), None).k, agent(None).pass_all), (1, Some(1.0)));
    }
}
