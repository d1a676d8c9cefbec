//! Scores of a case with an agent, and of an agent over all its cases.

use std::collections::BTreeMap;

use serde::Serialize;

use super::bootstrap::{case_interval, median};
use super::paired::ScoredCounts;
use super::student;
use super::{Interval, Z_TWO_SIDED, pass_all, pass_at, wilson};
use crate::result::{TrialMeta, TrialOutcome};

/// Counts over the trials of one case with one agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Score {
    /// The number of scored trials.
    pub(crate) n: u32,
    pub(crate) successes: u32,
    /// Skipped and interrupted trials, and those lost to provider or infrastructure errors.
    pub(crate) unscored: u32,
    /// Of each scored trial.
    seconds: Vec<f64>,
    /// Of each scored trial whose cost is known.
    usd: Vec<f64>,
    /// Of all attempts, also of those that were lost: they are paid for. None if the cost of any is unknown.
    microdollars: Option<u64>,
}

impl Default for Score {
    fn default() -> Self {
        let [seconds, usd] = [Vec::new(), Vec::new()];
        Self { n: 0, successes: 0, unscored: 0, seconds, usd, microdollars: Some(0) }
    }
}

impl Score {
    /// Adds a trial, by its last attempt.
    pub(crate) fn add(&mut self, meta: &TrialMeta) {
        self.add_cost(meta);
        if !meta.is_scored() {
            self.unscored += 1;
            return;
        }
        self.n += 1;
        self.successes += u32::from(meta.outcome == TrialOutcome::Success);
        self.seconds.push(meta.wall_secs);
        self.usd.extend(meta.cost.usd());
    }

    /// Adds what an attempt cost. One without a session cost nothing.
    fn add_cost(&mut self, meta: &TrialMeta) {
        let has_session =
            meta.metrics.is_none_or(|metrics| metrics.sessions > 0) && meta.runner_exit.is_some();
        let cost = if has_session || meta.is_scored() { meta.cost.microdollars } else { Some(0) };
        self.microdollars = self.microdollars.zip(cost).map(|(sum, cost)| sum + cost);
    }

    fn merge(mut self, other: &Self) -> Self {
        self.n += other.n;
        self.successes += other.successes;
        self.unscored += other.unscored;
        self.seconds.extend(&other.seconds);
        self.usd.extend(&other.usd);
        self.microdollars = self.microdollars.zip(other.microdollars).map(|(a, b)| a + b);
        self
    }

    /// Of the trials of one case; none without a scored trial.
    pub(crate) fn pass_rate(&self) -> Option<f64> {
        (self.n > 0).then(|| f64::from(self.successes) / f64::from(self.n))
    }

    /// The rate if every trial without a score had failed.
    fn worst_rate(&self) -> Option<f64> {
        let all = self.n + self.unscored;
        (all > 0).then(|| f64::from(self.successes) / f64::from(all))
    }

    /// None without a scored trial.
    pub(crate) fn counts(&self) -> Option<ScoredCounts> {
        (self.n > 0).then_some(ScoredCounts { successes: self.successes, n: self.n })
    }

    /// The counts if every trial without a score had ended this way; none without a trial.
    pub(crate) fn counts_with_lost(&self, lost_succeed: bool) -> Option<ScoredCounts> {
        let n = self.n + self.unscored;
        let lost = if lost_succeed { self.unscored } else { 0 };
        (n > 0).then_some(ScoredCounts { successes: self.successes + lost, n })
    }

    /// The time of all scored trials, failures included, per success; none without a success.
    pub(crate) fn secs_per_success(&self) -> Option<f64> {
        (self.successes > 0).then(|| self.seconds.iter().sum::<f64>() / f64::from(self.successes))
    }

    /// The cost of all attempts per success; none without a success, or if a cost is unknown.
    pub(crate) fn usd_per_success(&self) -> Option<f64> {
        let micro = self.microdollars.filter(|_| self.successes > 0)?;
        Some(micro as f64 / 1e6 / f64::from(self.successes))
    }

    /// Of the scored trials.
    pub(crate) fn median_secs(&self) -> Option<f64> {
        median(self.seconds.iter().copied())
    }

    /// Of the scored trials; none if the cost of any is unknown.
    pub(crate) fn median_usd(&self) -> Option<f64> {
        if self.usd.len() < self.seconds.len() { None } else { median(self.usd.iter().copied()) }
    }
}

/// A statistic with its 95 % confidence interval, if it has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct EstimatedValue {
    pub(crate) value: Option<f64>,
    pub(crate) interval: Option<Interval>,
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
    /// Of a case: successes per trial. Of an agent: the mean over its cases, so that no case counts more than another.
    pub(crate) rate: EstimatedValue,
    /// The same if every trial without a score had failed.
    pub(crate) worst_rate: Option<f64>,
    /// pass@k; none with fewer than k trials.
    pub(crate) pass_at: EstimatedValue,
    /// pass^k; none with fewer than k trials.
    pub(crate) pass_all: EstimatedValue,
    pub(crate) secs_per_success: EstimatedValue,
    pub(crate) usd_per_success: EstimatedValue,
    pub(crate) median_secs: EstimatedValue,
    pub(crate) median_usd: EstimatedValue,
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

/// Computes scores from the last attempt at each trial; the earlier ones only cost.
pub(crate) fn scores<'a>(
    last: impl IntoIterator<Item = &'a TrialMeta>,
    earlier: impl IntoIterator<Item = &'a TrialMeta>,
) -> Scores<'a> {
    let mut scores = Scores::new();
    for meta in last {
        scores.entry((&meta.agent, &meta.case_id)).or_default().add(meta);
    }
    for meta in earlier {
        scores.entry((&meta.agent, &meta.case_id)).or_default().add_cost(meta);
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
        agents.entry(agent).or_default().push(score.clone());
        cases.push(case_row(agent, case, score, k));
    }
    ScoreTable {
        k,
        agents: agents.into_iter().map(|(agent, scores)| agent_row(agent, &scores, k)).collect(),
        cases,
    }
}

fn case_row(agent: &str, case: &str, score: &Score, k: u32) -> ScoreRow {
    let plain = |value: Option<f64>| EstimatedValue { value, interval: None };
    let rate = score.pass_rate();
    ScoreRow {
        agent: agent.to_owned(),
        case: Some(case.to_owned()),
        cases: usize::from(score.n > 0),
        rate: EstimatedValue {
            value: rate,
            interval: rate.and_then(|rate| wilson(rate, f64::from(score.n))),
        },
        worst_rate: score.worst_rate(),
        pass_at: plain(pass_at(k, score.n, score.successes)),
        pass_all: plain(pass_all(k, score.n, score.successes)),
        secs_per_success: plain(score.secs_per_success()),
        usd_per_success: plain(score.usd_per_success()),
        median_secs: plain(score.median_secs()),
        median_usd: plain(score.median_usd()),
        score: score.clone(),
    }
}

/// The row of an agent over all its cases.
fn agent_row(agent: &str, scores: &[Score], k: u32) -> ScoreRow {
    let scored: Vec<Score> = scores.iter().filter(|score| score.n > 0).cloned().collect();
    let trials: f64 = scored.iter().map(|score| f64::from(score.n)).sum();
    // A mean over only the cases with at least k trials would be biased by that selection.
    let mean = |estimator: &dyn Fn(&Score) -> Option<f64>| {
        let estimates: Option<Vec<f64>> = scored.iter().map(estimator).collect();
        mean_over_cases(&estimates.unwrap_or_default(), trials)
    };
    let pooled = |cases: &[&Score]| cases.iter().fold(Score::default(), |sum, score| sum.merge(score));
    let resampled = |statistic: fn(&Score) -> Option<f64>| {
        let all: Vec<&Score> = scored.iter().collect();
        EstimatedValue {
            value: statistic(&pooled(&all)),
            interval: case_interval(&scored, |sample| statistic(&pooled(sample))),
        }
    };
    let all: Vec<&Score> = scores.iter().collect();
    let total = pooled(&all);
    let worst: Option<Vec<f64>> = scores.iter().map(Score::worst_rate).collect();
    let usd = EstimatedValue { value: total.usd_per_success(), ..resampled(Score::usd_per_success) };
    ScoreRow {
        agent: agent.to_owned(),
        case: None,
        cases: scored.len(),
        rate: mean(&Score::pass_rate),
        worst_rate: worst
            .filter(|rates| !rates.is_empty())
            .map(|rates| rates.iter().sum::<f64>() / rates.len() as f64),
        pass_at: mean(&|score: &Score| pass_at(k, score.n, score.successes)),
        pass_all: mean(&|score: &Score| pass_all(k, score.n, score.successes)),
        secs_per_success: resampled(Score::secs_per_success),
        usd_per_success: usd,
        median_secs: resampled(Score::median_secs),
        median_usd: resampled(Score::median_usd),
        score: total,
    }
}

/// How many degrees of freedom a further case adds to the correction of the effective number of observations.
const DEGREES_PER_CASE: f64 = 3.0;

/// The pass rate of an agent with these counts by case.
#[cfg(test)]
pub(super) fn rate_of_cases(counts: &[ScoredCounts]) -> EstimatedValue {
    let rates: Vec<f64> =
        counts.iter().map(|counts| f64::from(counts.successes) / f64::from(counts.n)).collect();
    mean_over_cases(&rates, counts.iter().map(|counts| f64::from(counts.n)).sum())
}

/// The mean of rates over cases, with a Wilson interval for the effective number of observations: at most the number of
/// trials, at least the number of cases. Trials of one case are correlated, so the variance between cases decides. Few cases
/// estimate it badly, so the number is reduced by a part of Student's correction; `just eval-calibrate` shows that this part
/// gives 95 %.
fn mean_over_cases(rates: &[f64], trials: f64) -> EstimatedValue {
    if rates.is_empty() {
        return EstimatedValue::default();
    }
    let cases = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / cases;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let variance = squares / (cases * (cases - 1.0));
    let effective = if rates.len() < 2 {
        trials
    } else if variance <= 0.0 {
        cases
    } else {
        let reduced = (Z_TWO_SIDED / student::quantile(0.975, DEGREES_PER_CASE * (cases - 1.0))).powi(2);
        (reduced * mean * (1.0 - mean) / variance).clamp(cases, trials.max(cases))
    };
    EstimatedValue { value: Some(mean), interval: wilson(mean, effective) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::result::{FailureCause, META_SCHEMA, RunnerVersion, TrialCost};
    use runner_core::step::CostSource;

    pub(crate) fn meta(case: &str, cause: Option<FailureCause>, micro: Option<u64>) -> TrialMeta {
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
            setup_secs: 0.5,
            check_secs: 0.5,
            iterations: 1,
            tokens: None,
            cost: TrialCost { microdollars: micro, source: CostSource::Unknown },
            metrics: None,
            cheated: None,
            runner: RunnerVersion { version: "0".to_owned(), sha256: "0".to_owned() },
            started_at: String::new(),
            regrade_of: None,
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
        let scores = scores(&metas, []);
        let score = scores.get(&("codex", "a")).unwrap();
        assert_eq!((score.n, score.successes, score.unscored, score.pass_rate()), (1, 1, 4, Some(1.0)));
    }

    #[test]
    fn case_without_a_scored_trial_has_no_pass_rate() {
        let metas = [meta("a", Some(FailureCause::Provider), None)];
        let table = table(&scores(&metas, []), Some(1));
        let row = &table.cases[0];
        let agent = &table.agents[0];
        let none = EstimatedValue::default();
        assert_eq!((row.rate, row.pass_at, row.pass_all), (none, none, none));
        assert_eq!((agent.cases, agent.rate, agent.pass_at, agent.worst_rate), (0, none, none, Some(0.0)));
    }

    #[test]
    fn time_and_cost_per_success_include_failures() {
        let metas = [meta("a", None, Some(2_000_000)), meta("a", Some(FailureCause::Agent), Some(1_000_000))];
        let score = scores(&metas, [])[&("codex", "a")].clone();
        assert_eq!((score.secs_per_success(), score.usd_per_success()), (Some(20.0), Some(3.0)));
        let metas = [meta("a", None, Some(2_000_000)), meta("a", Some(FailureCause::Agent), None)];
        assert_eq!(scores(&metas, [])[&("codex", "a")].usd_per_success(), None, "an unknown cost is not 0");
        let metas = [meta("a", Some(FailureCause::Limit), Some(5))];
        let score = scores(&metas, [])[&("codex", "a")].clone();
        assert_eq!((score.secs_per_success(), score.usd_per_success()), (None, None));
    }

    fn score(successes: u32, n: u32) -> Score {
        Score { n, successes, ..Score::default() }
    }

    #[test]
    fn lost_attempts_are_paid_for() {
        let lost =
            TrialMeta { runner_exit: Some(1), ..meta("a", Some(FailureCause::Provider), Some(4_000_000)) };
        let good = meta("a", None, Some(1_000_000));
        assert_eq!(scores([&good], [&lost])[&("codex", "a")].usd_per_success(), Some(5.0));
        assert_eq!(scores([&good, &lost], [])[&("codex", "a")].usd_per_success(), Some(5.0));
        let unknown = TrialMeta { cost: TrialCost { microdollars: None, ..lost.cost }, ..lost };
        assert_eq!(scores([&good], [&unknown])[&("codex", "a")].usd_per_success(), None);
    }

    #[test]
    fn headline_is_the_mean_over_cases_and_lost_trials_do_not_move_it() {
        let row = agent_row("a", &[score(1, 1), score(0, 9)], 1);
        assert_eq!((row.rate.value, row.pass_at.value), (Some(0.5), Some(0.5)));
        let mut easy_and_hard = vec![score(5, 5); 10];
        easy_and_hard.extend(vec![score(0, 5); 10]);
        let mut lost = vec![score(5, 5); 10];
        lost.extend(vec![Score { unscored: 4, ..score(0, 1) }; 10]);
        let [all, lost] = [easy_and_hard, lost].map(|scores| agent_row("a", &scores, 1));
        assert_eq!((all.rate.value, lost.rate.value), (Some(0.5), Some(0.5)));
        let worst = agent_row("a", &[Score { unscored: 2, ..score(3, 3) }], 1).worst_rate;
        assert_eq!(worst, Some(0.6), "lost trials count as failures in the worst case");
    }

    #[test]
    fn median_is_not_moved_by_one_outlier() {
        let mut metas: Vec<TrialMeta> = (0..50).map(|_| meta("a", None, Some(100_000))).collect();
        metas.push(meta("a", None, Some(900_000_000)));
        let score = scores(&metas, [])[&("codex", "a")].clone();
        assert_eq!(score.median_usd(), Some(0.1));
        assert!(score.usd_per_success().unwrap() > 17.0);
        metas.push(meta("a", None, None));
        assert_eq!(scores(&metas, [])[&("codex", "a")].median_usd(), None);
    }

    #[test]
    fn equal_trials_of_a_case_do_not_narrow_the_interval() {
        let width = |scores: &[Score]| {
            let interval = agent_row("a", scores, 1).rate.interval.unwrap();
            interval.high - interval.low
        };
        let once = [score(1, 1), score(0, 1)].iter().cycle().take(10).cloned().collect::<Vec<_>>();
        let often = [score(9, 9), score(0, 9)].iter().cycle().take(10).cloned().collect::<Vec<_>>();
        assert!((width(&once) - width(&often)).abs() < 0.02, "all or nothing: each case is one observation");
        let mixed = [score(5, 9), score(4, 9)].iter().cycle().take(10).cloned().collect::<Vec<_>>();
        assert!(
            width(&mixed) < width(&often) - 0.2,
            "equal rates in every case: each trial is one observation"
        );
        assert!(width(&vec![score(9, 9); 10]) > 0.2, "equal results are not certainty");
    }

    #[test]
    fn pass_at_k_needs_k_trials_of_every_case() {
        let metas = ["a", "a", "b"].map(|case| meta(case, None, None));
        let agent = |k| table(&scores(&metas, []), k).agents[0].clone();
        assert_eq!(agent(Some(2)).pass_at.value, None);
        assert_eq!((table(&scores(&metas, []), None).k, agent(None).pass_all.value), (1, Some(1.0)));
    }
}
