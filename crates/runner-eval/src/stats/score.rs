//! Scores: of a case with an agent, and of an agent over all its cases.

use std::collections::BTreeMap;

use super::{Interval, pass_all, pass_at, wilson};
use crate::result::{TrialMeta, TrialOutcome};

/// The trials of one case with one agent, counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Score {
    /// How many say something about the agent.
    pub(crate) n: u32,
    /// Of these, successes.
    pub(crate) successes: u32,
    /// How many say nothing: skipped, spoiled by the provider or the evaluation, interrupted.
    pub(crate) left_out: u32,
    /// What the scored ones took.
    seconds: f64,
    /// What they cost; none if that is not known of each.
    microdollars: Option<u64>,
}

impl Default for Score {
    fn default() -> Self {
        Self { n: 0, successes: 0, left_out: 0, seconds: 0.0, microdollars: Some(0) }
    }
}

impl Score {
    /// Counts a trial by its last attempt.
    pub(crate) fn add(&mut self, meta: &TrialMeta) {
        if !meta.is_scored() {
            self.left_out += 1;
            return;
        }
        self.n += 1;
        self.successes += u32::from(meta.outcome == TrialOutcome::Success);
        self.seconds += meta.wall_secs;
        self.microdollars = self.microdollars.zip(meta.cost.microdollars).map(|(sum, cost)| sum + cost);
    }

    fn joined(self, other: &Self) -> Self {
        Self {
            n: self.n + other.n,
            successes: self.successes + other.successes,
            left_out: self.left_out + other.left_out,
            seconds: self.seconds + other.seconds,
            microdollars: self.microdollars.zip(other.microdollars).map(|(a, b)| a + b),
        }
    }

    /// The share of successes; none without a scored trial.
    pub(crate) fn rate(&self) -> Option<f64> {
        (self.n > 0).then(|| f64::from(self.successes) / f64::from(self.n))
    }

    /// Where the rate probably is.
    pub(crate) fn interval(&self) -> Option<Interval> {
        wilson(self.rate()?, f64::from(self.n))
    }

    /// What all scored trials took for each success; none without a success.
    pub(crate) fn secs_per_success(&self) -> Option<f64> {
        (self.successes > 0).then(|| self.seconds / f64::from(self.successes))
    }

    /// What they cost for each success; none without one, or if a cost is not known.
    pub(crate) fn usd_per_success(&self) -> Option<f64> {
        let micro = self.microdollars.filter(|_| self.successes > 0)?;
        Some(micro as f64 / 1e6 / f64::from(self.successes))
    }
}

/// A line of the table: a case with an agent, or an agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScoreRow {
    pub(crate) agent: String,
    /// None for the agent as a whole.
    pub(crate) case: Option<String>,
    /// How many cases have a score.
    pub(crate) cases: usize,
    pub(crate) score: Score,
    pub(crate) interval: Option<Interval>,
    /// At least one of `k` trials.
    pub(crate) pass_at: Option<f64>,
    /// Each of `k` trials.
    pub(crate) pass_all: Option<f64>,
}

/// All scores.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScoreTable {
    /// For the chances with `k` trials.
    pub(crate) k: u32,
    pub(crate) agents: Vec<ScoreRow>,
    pub(crate) cases: Vec<ScoreRow>,
}

/// The scores by agent and case.
pub(crate) type Scores<'a> = BTreeMap<(&'a str, &'a str), Score>;

/// Counts trials, each by its last attempt.
pub(crate) fn scores<'a>(metas: impl IntoIterator<Item = &'a TrialMeta>) -> Scores<'a> {
    let mut scores = Scores::new();
    for meta in metas {
        scores.entry((&meta.agent, &meta.case_id)).or_default().add(meta);
    }
    scores
}

/// The table of these scores. Without a `k` it is as many as every case that has a score was tried.
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
        agents: agents.into_iter().map(|(agent, scores)| whole(agent, &scores, k)).collect(),
        cases,
    }
}

/// An agent over all its cases.
fn whole(agent: &str, scores: &[Score], k: u32) -> ScoreRow {
    let scored: Vec<&Score> = scores.iter().filter(|score| score.n > 0).collect();
    // A mean over only those cases that were tried often enough would be one over a choice of cases.
    let mean = |chance: fn(u32, u32, u32) -> Option<f64>| {
        let chances = scored.iter().map(|score| chance(k, score.n, score.successes));
        let chances: Option<Vec<f64>> = chances.collect();
        chances.filter(|list| !list.is_empty()).map(|list| list.iter().sum::<f64>() / list.len() as f64)
    };
    let score = scores.iter().fold(Score::default(), Score::joined);
    ScoreRow {
        agent: agent.to_owned(),
        case: None,
        cases: scored.len(),
        interval: score.rate().and_then(|rate| wilson(rate, observations(&scored, rate))),
        score,
        pass_at: mean(pass_at),
        pass_all: mean(pass_all),
    }
}

/// How many independent observations a rate over cases is worth: never more than there are trials, never fewer than
/// there are cases. Trials of one case are alike, so the spread between cases decides.
fn observations(scores: &[&Score], rate: f64) -> f64 {
    let (cases, trials) = (scores.len() as f64, scores.iter().map(|score| f64::from(score.n)).sum::<f64>());
    if cases < 2.0 {
        return trials;
    }
    let off = |score: &&Score| f64::from(score.successes) - rate * f64::from(score.n);
    let squares: f64 = scores.iter().map(|score| off(score).powi(2)).sum();
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
            cost: TrialCost { microdollars: micro, basis: CostSource::Unknown },
            runner: RunnerVersion { version: "0".to_owned(), sha256: "0".to_owned() },
            started_at: String::new(),
            ended_at: String::new(),
        }
    }

    #[test]
    fn what_says_nothing_about_the_agent_is_left_out_and_never_a_zero() {
        let skipped =
            TrialMeta { outcome: TrialOutcome::Skipped, ..meta("a", Some(FailureCause::MissingTool), None) };
        let spoiled = [FailureCause::Provider, FailureCause::Harness, FailureCause::Interrupted]
            .map(|cause| meta("a", Some(cause), None));
        let metas: Vec<TrialMeta> = spoiled.into_iter().chain([skipped, meta("a", None, Some(1))]).collect();
        let scores = scores(&metas);
        let score = scores.get(&("codex", "a")).unwrap();
        assert_eq!((score.n, score.successes, score.left_out, score.rate()), (1, 1, 4, Some(1.0)));
        assert_eq!(score.usd_per_success(), Some(1e-6), "only scored trials are charged");
    }

    #[test]
    fn a_case_without_a_scored_trial_has_no_rate() {
        let metas = [meta("a", Some(FailureCause::Provider), None)];
        let table = table(&scores(&metas), Some(1));
        let (row, agent) = (&table.cases[0], &table.agents[0]);
        assert_eq!((row.score.rate(), row.interval, row.pass_at, row.pass_all), (None, None, None, None));
        assert_eq!((agent.cases, agent.score.rate(), agent.pass_at), (0, None, None));
    }

    #[test]
    fn failures_are_part_of_what_a_success_takes_and_costs() {
        let metas = [meta("a", None, Some(2_000_000)), meta("a", Some(FailureCause::Agent), Some(1_000_000))];
        let score = scores(&metas)[&("codex", "a")];
        assert_eq!((score.secs_per_success(), score.usd_per_success()), (Some(20.0), Some(3.0)));
        let metas = [meta("a", None, Some(2_000_000)), meta("a", Some(FailureCause::Agent), None)];
        assert_eq!(scores(&metas)[&("codex", "a")].usd_per_success(), None, "an unknown cost is no 0");
        let metas = [meta("a", Some(FailureCause::Limit), Some(5))];
        let score = scores(&metas)[&("codex", "a")];
        assert_eq!((score.secs_per_success(), score.usd_per_success()), (None, None));
    }

    #[test]
    fn trials_that_are_alike_do_not_make_an_agents_rate_surer() {
        let score = |successes, n| Score { n, successes, ..Score::default() };
        let width = |scores: &[Score]| {
            let interval = whole("a", scores, 1).interval.unwrap();
            interval.high - interval.low
        };
        let (once, often) = ([score(1, 1), score(0, 1)].repeat(5), [score(9, 9), score(0, 9)].repeat(5));
        assert!(
            (width(&once) - width(&often)).abs() < 0.02,
            "all or nothing: the cases are what was observed"
        );
        let mixed = [score(5, 9), score(4, 9)].repeat(5);
        assert!(width(&mixed) < width(&often) - 0.2, "a coin in every case: each trial is one observation");
        assert!(width(&[score(9, 9); 10]) > 0.2, "all alike is not certainty");
    }

    #[test]
    fn a_chance_with_k_trials_needs_k_in_every_case() {
        let metas = ["a", "a", "b"].map(|case| meta(case, None, None));
        let found = |k| table(&scores(&metas), k).agents[0].clone();
        assert_eq!(found(Some(2)).pass_at, None);
        assert_eq!((table(&scores(&metas), None).k, found(None).pass_all), (1, Some(1.0)));
    }
}
