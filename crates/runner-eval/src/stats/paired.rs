//! Compares two sides of the same cases: the mean difference of pass rates, its interval, and a permutation test.

use serde::Serialize;

use super::random::SeededRandom;
use super::redeal::redeal_test;
use super::student;
use super::{Interval, Z_TWO_SIDED};

/// The 95 % quantile of the normal distribution, for one-sided bounds.
const Z_ONE_SIDED: f64 = 1.644_853_626_951_472_7;
/// The significance level of all tests.
pub(crate) const ALPHA: f64 = 0.05;

/// The scored trials of one side of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ScoredCounts {
    pub(crate) successes: u32,
    pub(crate) n: u32,
}

impl ScoredCounts {
    fn rate(self) -> f64 {
        f64::from(self.successes) / f64::from(self.n)
    }

    /// The variance of the rate, as if half a trial more had succeeded and half a trial more had failed: equal trials are not
    /// certainty.
    fn variance(self) -> f64 {
        let n = f64::from(self.n);
        let probability = (f64::from(self.successes) + 0.5) / (n + 1.0);
        probability * (1.0 - probability) * (n + 1.0) / (n * n)
    }
}

/// A case with scored trials on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScoredPair {
    pub(crate) base: ScoredCounts,
    pub(crate) new: ScoredCounts,
}

impl ScoredPair {
    /// The new pass rate minus the base pass rate.
    pub(crate) fn difference(&self) -> f64 {
        self.new.rate() - self.base.rate()
    }

    /// The trials of both sides together.
    pub(super) fn pooled(&self) -> ScoredCounts {
        ScoredCounts { successes: self.base.successes + self.new.successes, n: self.base.n + self.new.n }
    }

    /// The difference after the trials are dealt to the two sides at random.
    pub(super) fn redealt_difference(&self, random: &mut SeededRandom) -> f64 {
        let pooled = self.pooled();
        let new = random.draw_successes(self.new.n, pooled.n, pooled.successes);
        f64::from(new) / f64::from(self.new.n) - f64::from(pooled.successes - new) / f64::from(self.base.n)
    }
}

/// What a statement about a difference is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InferenceScope {
    /// These cases: only the noise of the trials counts.
    #[default]
    Cases,
    /// All cases that could have been in the suite: the choice of cases counts too.
    Population,
}

/// The mean difference over all pairs; every case has the same weight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct MeanDifference {
    pub(crate) mean: f64,
    pub(crate) interval: Interval,
    pub(crate) scope: InferenceScope,
    /// Cases whose pass rate is higher in the new results.
    pub(crate) wins: usize,
    pub(crate) ties: usize,
    pub(crate) losses: usize,
    /// Two-sided: of the re-dealing test on these cases, or of a t test over cases for all cases that could have been chosen.
    pub(crate) p_value: f64,
    /// Of the same test, one-sided, for a drop.
    pub(crate) p_drop: f64,
    /// Whether the test counted every way to deal the trials.
    pub(crate) exact: bool,
}

/// What a difference shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShownDirection {
    Better,
    Worse,
    None,
}

impl MeanDifference {
    /// Follows the p-value, so that the words and the number never contradict each other.
    pub(crate) fn direction(&self) -> ShownDirection {
        if self.p_value > ALPHA {
            ShownDirection::None
        } else if self.mean > 0.0 {
            ShownDirection::Better
        } else {
            ShownDirection::Worse
        }
    }

    /// The same for the gate, which asks only about a drop and follows its one-sided p-value.
    pub(crate) fn drop_direction(&self) -> ShownDirection {
        match self.direction() {
            _ if self.p_drop <= ALPHA => ShownDirection::Worse,
            ShownDirection::Better => ShownDirection::Better,
            ShownDirection::Worse | ShownDirection::None => ShownDirection::None,
        }
    }
}

/// The p-values of a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DifferenceTest {
    pub(crate) p_value: f64,
    pub(crate) p_drop: f64,
    pub(crate) exact: bool,
}

/// Tests for a difference, and for a drop. For the population it agrees with the interval: p <= 5 % exactly if 0 is outside.
pub(crate) fn difference_test(pairs: &[ScoredPair], scope: InferenceScope, draws: u32) -> DifferenceTest {
    match scope {
        InferenceScope::Cases => {
            let test = redeal_test(pairs, draws);
            DifferenceTest { p_value: test.two_sided, p_drop: test.lower, exact: test.exact }
        }
        InferenceScope::Population => {
            let tail = |side: BoundSide| {
                let Some(Estimate { mean, standard_error, degrees: Some(degrees) }) =
                    estimate(pairs, scope, side)
                else {
                    return 1.0;
                };
                let towards = match side {
                    BoundSide::Lower => -mean,
                    BoundSide::Upper => mean,
                };
                student::probability_below(towards / standard_error, degrees)
            };
            let [rise, drop] = [BoundSide::Lower, BoundSide::Upper].map(tail);
            DifferenceTest { p_value: (2.0 * rise.min(drop)).min(1.0), p_drop: drop, exact: false }
        }
    }
}

impl Estimate {
    /// How far a bound is away from the mean.
    fn distance(&self, confidence: Confidence) -> f64 {
        let errors = match (self.degrees, confidence) {
            (None, Confidence::TwoSided) => Z_TWO_SIDED,
            (None, Confidence::OneSided) => Z_ONE_SIDED,
            (Some(degrees), Confidence::TwoSided) => student::quantile(0.975, degrees),
            (Some(degrees), Confidence::OneSided) => student::quantile(0.95, degrees),
        };
        errors * self.standard_error
    }
}

/// 95 %, for an interval or for one bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Confidence {
    TwoSided,
    OneSided,
}

/// None without a pair.
pub(crate) fn mean_difference(
    pairs: &[ScoredPair],
    scope: InferenceScope,
    draws: u32,
) -> Option<MeanDifference> {
    let differences: Vec<f64> = pairs.iter().map(ScoredPair::difference).collect();
    let test = difference_test(pairs, scope, draws);
    Some(MeanDifference {
        mean: differences.iter().sum::<f64>() / differences.len() as f64,
        interval: interval(pairs, scope)?,
        scope,
        wins: differences.iter().filter(|difference| **difference > 0.0).count(),
        ties: differences.iter().filter(|difference| **difference == 0.0).count(),
        losses: differences.iter().filter(|difference| **difference < 0.0).count(),
        p_value: test.p_value,
        p_drop: test.p_drop,
        exact: test.exact,
    })
}

/// The 95 % interval of the mean difference.
pub(super) fn interval(pairs: &[ScoredPair], scope: InferenceScope) -> Option<Interval> {
    let [low, high] = [BoundSide::Lower, BoundSide::Upper].map(|side| estimate(pairs, scope, side));
    let (low, high) = low.zip(high)?;
    Some(Interval {
        low: (low.mean - low.distance(Confidence::TwoSided)).max(-1.0),
        high: (high.mean + high.distance(Confidence::TwoSided)).min(1.0),
    })
}

/// The one-sided 95 % lower bound of the difference.
pub(crate) fn lower_bound(pairs: &[ScoredPair], scope: InferenceScope) -> Option<f64> {
    let estimate = estimate(pairs, scope, BoundSide::Lower)?;
    Some((estimate.mean - estimate.distance(Confidence::OneSided)).max(-1.0))
}

/// The one-sided 95 % upper bound of the difference.
pub(crate) fn upper_bound(pairs: &[ScoredPair], scope: InferenceScope) -> Option<f64> {
    let estimate = estimate(pairs, scope, BoundSide::Upper)?;
    Some((estimate.mean + estimate.distance(Confidence::OneSided)).min(1.0))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BoundSide {
    Lower,
    Upper,
}

struct Estimate {
    mean: f64,
    standard_error: f64,
    /// Of Student's distribution; none for the normal one.
    degrees: Option<f64>,
}

fn estimate(pairs: &[ScoredPair], scope: InferenceScope, side: BoundSide) -> Option<Estimate> {
    if pairs.is_empty() {
        return None;
    }
    let differences = pairs.iter().map(ScoredPair::difference);
    match scope {
        InferenceScope::Cases => {
            let count = pairs.len() as f64;
            let variance: f64 = pairs.iter().map(|pair| pair.base.variance() + pair.new.variance()).sum();
            let mean = differences.sum::<f64>() / count;
            Some(Estimate { mean, standard_error: variance.sqrt() / count, degrees: None })
        }
        InferenceScope::Population => {
            // One more case that lost everything (or won everything, for the upper bound): a suite of cases of which none
            // broke does not prove that no other case would.
            let unseen = match side {
                BoundSide::Lower => -1.0,
                BoundSide::Upper => 1.0,
            };
            let values: Vec<f64> = differences.chain([unseen]).collect();
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let standard_error = (squares / (count - 1.0) / count).sqrt();
            Some(Estimate { mean, standard_error, degrees: Some(count - 1.0) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(successes: u32, n: u32) -> ScoredCounts {
        ScoredCounts { successes, n }
    }

    fn pair(base: ScoredCounts, new: ScoredCounts) -> ScoredPair {
        ScoredPair { base, new }
    }

    fn difference(pairs: &[ScoredPair]) -> MeanDifference {
        mean_difference(pairs, InferenceScope::Cases, 99).unwrap()
    }

    #[test]
    fn equal_results_still_have_an_interval() {
        let once = pair(counts(1, 1), counts(1, 1));
        let five_times = pair(counts(5, 5), counts(5, 5));
        let few = difference(&[once; 5]);
        let many = difference(&[once; 100]);
        let more_trials = difference(&[five_times; 5]);
        assert!(few.interval.low < -0.2 && few.interval.high > 0.2, "{few:?}");
        assert!(many.interval.low > -0.2, "{many:?}");
        assert!(more_trials.interval.low > few.interval.low, "{more_trials:?}");
        assert_eq!((few.mean, few.ties, few.p_value), (0.0, 5, 1.0));
        assert_eq!(mean_difference(&[], InferenceScope::Cases, 99), None);
    }

    #[test]
    fn population_leaves_room_for_a_case_that_was_not_drawn() {
        let same = [pair(counts(5, 5), counts(5, 5)); 20];
        let cases = lower_bound(&same, InferenceScope::Cases).unwrap();
        let population = lower_bound(&same, InferenceScope::Population).unwrap();
        // With 20 cases of which none broke, up to 13.9 % of all cases may break (exact binomial bound).
        assert!(population < -0.11 && population > -0.15, "{population}");
        assert!(cases > population, "{cases}");
    }

    #[test]
    fn words_follow_the_p_value() {
        let one = [pair(counts(5, 5), counts(0, 5))];
        assert_eq!(difference(&one).direction(), ShownDirection::Worse, "{:?}", difference(&one));
        let weak = [pair(counts(1, 1), counts(0, 1)); 5];
        assert!(difference(&weak).p_value > 0.05);
        assert_eq!(difference(&weak).direction(), ShownDirection::None);
        let better = [pair(counts(0, 5), counts(5, 5)); 3];
        assert_eq!(difference(&better).direction(), ShownDirection::Better);
    }

    #[test]
    fn words_p_and_interval_agree_for_the_population() {
        let mut random = SeededRandom::new(3);
        for _ in 0..300 {
            let mut side = || counts(random.successes(3, 0.7), 3);
            let mut pairs: Vec<ScoredPair> = (0..12).map(|_| pair(side(), side())).collect();
            let shifted = random.below(12);
            pairs.iter_mut().take(shifted).for_each(|pair| pair.new.successes = 0);
            let found = mean_difference(&pairs, InferenceScope::Population, 99).unwrap();
            let is_open = found.interval.low <= 0.0 && found.interval.high >= 0.0;
            assert_eq!(found.direction() == ShownDirection::None, is_open, "{found:?}");
            assert_eq!(found.p_value <= ALPHA, !is_open, "{found:?}");
            let high = upper_bound(&pairs, InferenceScope::Population).unwrap();
            assert_eq!(found.p_drop <= ALPHA, high <= 0.0, "{found:?}");
            assert_eq!(found.drop_direction() == ShownDirection::Worse, found.p_drop <= ALPHA);
        }
        // One lost case of one: sure about this case, and nothing is known about others.
        let one = [pair(counts(5, 5), counts(0, 5))];
        assert_eq!(difference(&one).direction(), ShownDirection::Worse);
        let population = mean_difference(&one, InferenceScope::Population, 99).unwrap();
        assert_eq!(population.direction(), ShownDirection::None);
    }

    #[test]
    fn wins_ties_and_losses_count_cases() {
        let win = pair(counts(1, 5), counts(4, 5));
        let tie = pair(counts(2, 4), counts(1, 2));
        let loss = pair(counts(3, 3), counts(0, 3));
        let difference = difference(&[win, tie, loss]);
        assert_eq!((difference.wins, difference.ties, difference.losses), (1, 1, 1));
        assert!((difference.mean - (0.6 - 1.0) / 3.0).abs() < 1e-12);
        assert!(difference.interval.low < 0.0 && difference.interval.high > 0.0);
    }
}
