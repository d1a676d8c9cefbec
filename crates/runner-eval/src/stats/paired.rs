//! Compares two sides of the same cases: the mean difference of pass rates, its interval, and a permutation test.

use serde::Serialize;

use super::random::SeededRandom;
use super::{Interval, Z_TWO_SIDED};

/// The 95 % quantile of the normal distribution, for one-sided bounds.
const Z_ONE_SIDED: f64 = 1.644_853_626_951_472_7;
/// Up to this many cases that differ, the test enumerates all sign choices instead of sampling them.
const EXACT_CASES_MAX: usize = 12;
/// Fixed, so that the same data always give the same result.
const SEED: u64 = 20_261_116;

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

    /// Whether both sides have the same number of trials. Only then are a difference and its opposite equally likely if
    /// nothing changed.
    fn is_balanced(&self) -> bool {
        self.base.n == self.new.n
    }

    /// The trials of both sides together.
    fn pooled(&self) -> ScoredCounts {
        ScoredCounts { successes: self.base.successes + self.new.successes, n: self.base.n + self.new.n }
    }

    /// Whether a permutation can give another difference.
    fn can_differ(&self) -> bool {
        let pooled = self.pooled();
        if self.is_balanced() {
            self.base != self.new
        } else {
            0 < pooled.successes && pooled.successes < pooled.n
        }
    }

    /// The difference after the trials are dealt to the two sides at random.
    fn redealt_difference(&self, random: &mut SeededRandom) -> f64 {
        let pooled = self.pooled();
        let new = random.draw_successes(self.new.n, pooled.n, pooled.successes);
        f64::from(new) / f64::from(self.new.n) - f64::from(pooled.successes - new) / f64::from(self.base.n)
    }
}

/// The mean difference over all pairs; every case has the same weight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct MeanDifference {
    pub(crate) mean: f64,
    pub(crate) interval: Interval,
    /// Cases whose pass rate is higher in the new results.
    pub(crate) wins: usize,
    pub(crate) ties: usize,
    pub(crate) losses: usize,
    /// Of the two-sided sign-flip test.
    pub(crate) p_value: f64,
    /// Whether the test enumerated all sign choices.
    pub(crate) exact: bool,
}

/// None without a pair.
pub(crate) fn mean_difference(pairs: &[ScoredPair], draws: u32) -> Option<MeanDifference> {
    let differences: Vec<f64> = pairs.iter().map(ScoredPair::difference).collect();
    let test = sign_flip_test(pairs, draws);
    Some(MeanDifference {
        mean: differences.iter().sum::<f64>() / differences.len() as f64,
        interval: interval(pairs)?,
        wins: differences.iter().filter(|difference| **difference > 0.0).count(),
        ties: differences.iter().filter(|difference| **difference == 0.0).count(),
        losses: differences.iter().filter(|difference| **difference < 0.0).count(),
        p_value: test.two_sided,
        exact: test.exact,
    })
}

fn interval(pairs: &[ScoredPair]) -> Option<Interval> {
    let Estimate { mean, standard_error } = estimate(pairs)?;
    let half_width = Z_TWO_SIDED * standard_error;
    Some(Interval { low: (mean - half_width).max(-1.0), high: (mean + half_width).min(1.0) })
}

/// The one-sided 95 % lower bound of the difference.
pub(crate) fn lower_bound(pairs: &[ScoredPair]) -> Option<f64> {
    let Estimate { mean, standard_error } = estimate(pairs)?;
    Some((mean - Z_ONE_SIDED * standard_error).max(-1.0))
}

struct Estimate {
    mean: f64,
    standard_error: f64,
}

/// The mean difference and its standard error: the usual one of pairs, plus the noise of one more pair. Without that noise,
/// cases that all ended alike would give an interval without width. The noise is the variance of a single trial, smaller
/// with more trials per case.
fn estimate(pairs: &[ScoredPair]) -> Option<Estimate> {
    if pairs.is_empty() {
        return None;
    }
    let count = pairs.len() as f64;
    let mean = pairs.iter().map(ScoredPair::difference).sum::<f64>() / count;
    let pair_noise = |pair: &ScoredPair| 0.5 / f64::from(pair.base.n) + 0.5 / f64::from(pair.new.n);
    let noise = pairs.iter().map(pair_noise).sum::<f64>() / count;
    let squares: f64 = pairs.iter().map(|pair| (pair.difference() - mean).powi(2)).sum();
    let variance = (squares + noise) / (count * (count - 1.0).max(1.0));
    Some(Estimate { mean, standard_error: variance.sqrt() })
}

/// How often permuted differences are at least as extreme as the observed ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SignFlipTest {
    /// As low as observed.
    pub(crate) lower: f64,
    /// As far from 0 as observed.
    pub(crate) two_sided: f64,
    exact: bool,
}

/// The sign-flip permutation test: if nothing changed, each difference is as likely as its opposite. That does not hold if
/// one side of a case has more trials (a single trial varies more than the mean of many), so the trials of such a case are
/// dealt to the sides again instead.
pub(crate) fn sign_flip_test(pairs: &[ScoredPair], draws: u32) -> SignFlipTest {
    let differing: Vec<(&ScoredPair, f64)> =
        pairs.iter().filter(|pair| pair.can_differ()).map(|pair| (pair, pair.difference())).collect();
    let observed: f64 = differing.iter().map(|(_, difference)| difference).sum();
    let exact = differing.len() <= EXACT_CASES_MAX && differing.iter().all(|(pair, _)| pair.is_balanced());
    let mut random = SeededRandom::new(SEED);
    let rounds = if exact { 1 << differing.len() } else { draws };
    let mut lower = 0_u32;
    let mut two_sided = 0_u32;
    for round in 0..rounds {
        let mut sum = 0.0;
        let mut signs = u64::from(round);
        for (position, (pair, difference)) in differing.iter().enumerate() {
            if !exact && position % 64 == 0 {
                signs = random.next_bits();
            }
            let is_flipped = signs >> (position % 64) & 1 == 1;
            sum += if !pair.is_balanced() {
                pair.redealt_difference(&mut random)
            } else if is_flipped {
                -difference
            } else {
                *difference
            };
        }
        // The tolerance covers rounding: the same numbers in another order may give another sum.
        lower += u32::from(sum <= observed + 1e-9);
        two_sided += u32::from(sum.abs() >= observed.abs() - 1e-9);
    }
    // The observed differences are one of the possible draws; a sample without them would underestimate the p-value.
    let own = u32::from(!exact);
    let fraction = |count: u32| f64::from(count + own) / f64::from(rounds + own);
    SignFlipTest { lower: fraction(lower), two_sided: fraction(two_sided), exact }
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

    /// One case per step: -1 loses all five trials, 1 wins all, 0 changes nothing.
    fn by_steps(steps: &[i32]) -> Vec<ScoredPair> {
        let mut pairs = Vec::new();
        for step in steps {
            let base = counts(5 * u32::from(*step < 0), 5);
            pairs.push(pair(base, counts(5 * u32::from(*step > 0), 5)));
        }
        pairs
    }

    #[test]
    fn few_cases_are_enumerated_exactly() {
        let test = sign_flip_test(&by_steps(&[-1, -1, -1, 0]), 0);
        assert_eq!((test.lower, test.two_sided, test.exact), (0.125, 0.25, true));
        let no_change = SignFlipTest { lower: 1.0, two_sided: 1.0, exact: true };
        assert_eq!(sign_flip_test(&by_steps(&[0; 30]), 0), no_change);
        assert_eq!(sign_flip_test(&by_steps(&[1; 4]), 0).lower, 1.0);
    }

    #[test]
    fn sampled_test_is_close_to_the_exact_one_and_deterministic() {
        let steps: Vec<i32> = (0..16).map(|case| if case < 11 { -1 } else { 1 }).collect();
        let pairs = by_steps(&steps);
        // At most 5 of 16 fair coins: 6885 of 65536.
        let test = sign_flip_test(&pairs, 9_999);
        assert!((test.lower - 6_885.0 / 65_536.0).abs() < 0.01 && !test.exact, "{test:?}");
        assert_eq!(test, sign_flip_test(&pairs, 9_999));
        assert!(sign_flip_test(&by_steps(&[-1; 70]), 999).lower <= 0.001, "more cases than a word has bits");
    }

    #[test]
    fn trials_of_an_unbalanced_pair_are_redealt() {
        // One success among six trials: it is the single new one in one of six deals.
        let test = sign_flip_test(&[pair(counts(0, 5), counts(1, 1))], 9_999);
        assert!((test.two_sided - 1.0 / 6.0).abs() < 0.02 && test.lower == 1.0 && !test.exact, "{test:?}");
    }

    #[test]
    fn equal_results_still_have_an_interval() {
        let once = pair(counts(1, 1), counts(1, 1));
        let five_times = pair(counts(5, 5), counts(5, 5));
        let few = mean_difference(&[once; 5], 99).unwrap();
        let many = mean_difference(&[once; 100], 99).unwrap();
        let more_trials = mean_difference(&[five_times; 5], 99).unwrap();
        assert!(few.interval.low < -0.2 && few.interval.high > 0.2, "{few:?}");
        assert!(many.interval.low > -0.03, "{many:?}");
        assert!(more_trials.interval.low > few.interval.low, "{more_trials:?}");
        assert_eq!((few.mean, few.ties, few.p_value), (0.0, 5, 1.0));
        assert_eq!(mean_difference(&[], 99), None);
    }

    #[test]
    fn wins_ties_and_losses_count_cases() {
        let win = pair(counts(1, 5), counts(4, 5));
        let tie = pair(counts(2, 4), counts(1, 2));
        let loss = pair(counts(3, 3), counts(0, 3));
        let difference = mean_difference(&[win, tie, loss], 99).unwrap();
        assert_eq!((difference.wins, difference.ties, difference.losses), (1, 1, 1));
        assert!((difference.mean - (0.6 - 1.0) / 3.0).abs() < 1e-12);
        assert!(difference.interval.low < 0.0 && difference.interval.high > 0.0);
    }
}
