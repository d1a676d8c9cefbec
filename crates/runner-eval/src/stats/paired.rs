//! Two results of the same cases, compared case by case.

use serde::Serialize;

use super::random::SeededRandom;
use super::{Interval, TWO_SIDED};

/// How many standard errors 95 % of a normal distribution reach to one side.
const ONE_SIDED: f64 = 1.644_853_626_951_472_7;
/// Up to so many cases that differ, every choice of signs is counted instead of a sample of them.
const EXACT_UP_TO: usize = 12;
/// The same data always give the same answer.
const SEED: u64 = 20_261_116;

/// A side of a pair: how many trials were scored, and how many of them are successes.
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

/// A case that both sides have a score of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScoredPair {
    pub(crate) base: ScoredCounts,
    pub(crate) new: ScoredCounts,
}

impl ScoredPair {
    /// How much higher the new rate is.
    pub(crate) fn difference(&self) -> f64 {
        self.new.rate() - self.base.rate()
    }

    /// Whether both sides were tried equally often. Only then is a difference as likely as its opposite if nothing
    /// changed.
    fn is_even(&self) -> bool {
        self.base.n == self.new.n
    }

    /// Whether chance could have made the difference another one.
    fn can_differ(&self) -> bool {
        let (n, successes) = (self.base.n + self.new.n, self.base.successes + self.new.successes);
        if self.is_even() { self.base != self.new } else { 0 < successes && successes < n }
    }

    /// The difference if it is drawn by lot which trials are the new ones.
    fn redrawn(&self, random: &mut SeededRandom) -> f64 {
        let (n, successes) = (self.base.n + self.new.n, self.base.successes + self.new.successes);
        let new = random.among(self.new.n, n, successes);
        f64::from(new) / f64::from(self.new.n) - f64::from(successes - new) / f64::from(self.base.n)
    }
}

/// What all pairs say together; every case weighs the same.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct MeanDifference {
    /// The mean of the differences.
    pub(crate) mean: f64,
    /// Where the true one probably is.
    pub(crate) interval: Interval,
    /// Cases whose rate is higher in the new results.
    pub(crate) wins: usize,
    pub(crate) ties: usize,
    pub(crate) losses: usize,
    /// The sign-flip test, for a change in either direction.
    pub(crate) p_value: f64,
    /// Whether every choice of signs was counted.
    pub(crate) exact: bool,
}

/// Compares; none without a pair.
pub(crate) fn difference(pairs: &[ScoredPair], draws: u32) -> Option<MeanDifference> {
    let differences: Vec<f64> = pairs.iter().map(ScoredPair::difference).collect();
    let flips = sign_flip(pairs, draws);
    Some(MeanDifference {
        mean: differences.iter().sum::<f64>() / differences.len() as f64,
        interval: interval(pairs)?,
        wins: differences.iter().filter(|difference| **difference > 0.0).count(),
        ties: differences.iter().filter(|difference| **difference == 0.0).count(),
        losses: differences.iter().filter(|difference| **difference < 0.0).count(),
        p_value: flips.either,
        exact: flips.exact,
    })
}

/// Where the true difference probably is, on both sides.
fn interval(pairs: &[ScoredPair]) -> Option<Interval> {
    let (centre, error) = spread(pairs)?;
    let reach = TWO_SIDED * error;
    Some(Interval { low: (centre - reach).max(-1.0), high: (centre + reach).min(1.0) })
}

/// What the true difference is above, with 95 %.
pub(crate) fn at_least(pairs: &[ScoredPair]) -> Option<f64> {
    let (centre, error) = spread(pairs)?;
    Some((centre - ONE_SIDED * error).max(-1.0))
}

/// The mean difference and its standard error: the usual one of pairs, and the noise of one pair on top of it. Without
/// that, cases that all ended alike would be certainty. The noise is as much as one trial can differ from another, less
/// where each case was tried more often.
fn spread(pairs: &[ScoredPair]) -> Option<(f64, f64)> {
    if pairs.is_empty() {
        return None;
    }
    let count = pairs.len() as f64;
    let mean = pairs.iter().map(ScoredPair::difference).sum::<f64>() / count;
    let noise = |pair: &ScoredPair| 0.5 / f64::from(pair.base.n) + 0.5 / f64::from(pair.new.n);
    let noise = pairs.iter().map(noise).sum::<f64>() / count;
    let squares: f64 = pairs.iter().map(|pair| (pair.difference() - mean).powi(2)).sum();
    Some((mean, ((squares + noise) / (count * (count - 1.0).max(1.0))).sqrt()))
}

/// How often differences whose signs are drawn by lot lie as far out as these do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SignFlipTest {
    /// As low as these.
    pub(crate) lower: f64,
    /// As far from 0 as these.
    pub(crate) either: f64,
    exact: bool,
}

/// The sign-flip permutation test: if nothing changed, each difference might as well have had the other sign. Where one
/// side of a case was tried more often that does not hold (a single trial lies further out than the mean of many), so
/// its trials are dealt out anew instead.
pub(crate) fn sign_flip(pairs: &[ScoredPair], draws: u32) -> SignFlipTest {
    let some: Vec<(&ScoredPair, f64)> =
        pairs.iter().filter(|pair| pair.can_differ()).map(|pair| (pair, pair.difference())).collect();
    let seen: f64 = some.iter().map(|(_, difference)| difference).sum();
    let exact = some.len() <= EXACT_UP_TO && some.iter().all(|(pair, _)| pair.is_even());
    let mut random = SeededRandom::new(SEED);
    let rounds = if exact { 1 << some.len() } else { draws };
    let (mut lower, mut either) = (0_u32, 0_u32);
    for round in 0..rounds {
        let (mut sum, mut signs) = (0.0, u64::from(round));
        for (at, (pair, difference)) in some.iter().enumerate() {
            if !exact && at % 64 == 0 {
                signs = random.bits();
            }
            sum += match (pair.is_even(), signs >> (at % 64) & 1) {
                (false, _) => pair.redrawn(&mut random),
                (true, 0) => *difference,
                (true, _) => -difference,
            };
        }
        // Sums of the same numbers in another order may differ in their last digits.
        lower += u32::from(sum <= seen + 1e-9);
        either += u32::from(sum.abs() >= seen.abs() - 1e-9);
    }
    // What was seen is one of the possible draws; leaving it out would make a sample's answer too sure.
    let own = u32::from(!exact);
    let share = |count: u32| f64::from(count + own) / f64::from(rounds + own);
    SignFlipTest { lower: share(lower), either: share(either), exact }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(base: (u32, u32), new: (u32, u32)) -> ScoredPair {
        let counts = |(successes, n)| ScoredCounts { successes, n };
        ScoredPair { base: counts(base), new: counts(new) }
    }

    /// Cases that all trials of the new results lose, win, or lose as before.
    fn by(steps: &[i32]) -> Vec<ScoredPair> {
        let of = |step: &i32| pair((5 * u32::from(*step < 0), 5), (5 * u32::from(*step > 0), 5));
        steps.iter().map(of).collect()
    }

    #[test]
    fn few_cases_are_counted_exactly() {
        let found = sign_flip(&by(&[-1, -1, -1, 0]), 0);
        assert_eq!((found.lower, found.either, found.exact), (0.125, 0.25, true));
        assert_eq!(sign_flip(&by(&[0; 30]), 0), SignFlipTest { lower: 1.0, either: 1.0, exact: true });
        assert_eq!(sign_flip(&by(&[1; 4]), 0).lower, 1.0);
    }

    #[test]
    fn many_cases_are_sampled_close_to_the_exact_answer_and_always_alike() {
        let pairs = by(&(0..16).map(|at| if at < 11 { -1 } else { 1 }).collect::<Vec<_>>());
        // At most 5 of 16 fair coins: 6885 of 65536.
        let found = sign_flip(&pairs, 9_999);
        assert!((found.lower - 6_885.0 / 65_536.0).abs() < 0.01 && !found.exact, "{found:?}");
        assert_eq!(found, sign_flip(&pairs, 9_999));
        assert!(sign_flip(&by(&[-1; 70]), 999).lower <= 0.001, "more cases than a word has bits");
    }

    #[test]
    fn trials_of_unequal_number_are_dealt_out_anew() {
        // One success among six trials: it is the single new one in one of six deals.
        let found = sign_flip(&[pair((0, 5), (1, 1))], 9_999);
        assert!((found.either - 1.0 / 6.0).abs() < 0.02 && found.lower == 1.0 && !found.exact, "{found:?}");
    }

    #[test]
    fn cases_that_all_ended_alike_are_not_certainty() {
        let few = difference(&[pair((1, 1), (1, 1)); 5], 99).unwrap();
        let many = difference(&[pair((1, 1), (1, 1)); 100], 99).unwrap();
        let often = difference(&[pair((5, 5), (5, 5)); 5], 99).unwrap();
        assert!(few.interval.low < -0.2 && few.interval.high > 0.2, "{few:?}");
        assert!(many.interval.low > -0.03 && often.interval.low > few.interval.low, "{many:?} {often:?}");
        assert_eq!((few.mean, few.ties, few.p_value), (0.0, 5, 1.0));
        assert_eq!(difference(&[], 99), None);
    }

    #[test]
    fn wins_ties_and_losses_are_cases() {
        let found =
            difference(&[pair((1, 5), (4, 5)), pair((2, 4), (1, 2)), pair((3, 3), (0, 3))], 99).unwrap();
        assert_eq!((found.wins, found.ties, found.losses), (1, 1, 1));
        assert!((found.mean - (0.6 - 1.0) / 3.0).abs() < 1e-12);
        assert!(found.interval.low < 0.0 && found.interval.high > 0.0);
    }
}
