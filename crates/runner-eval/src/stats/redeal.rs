//! The re-dealing test: if nothing changed, the trials of a case could have been on either side. The distribution of the mean
//! difference over all ways to deal the trials of every case is computed exactly, or sampled if it has too many values.

use super::paired::ScoredPair;
use super::random::SeededRandom;

/// Fixed, so that the same data always give the same result.
const SEED: u64 = 20_261_116;
/// A distribution with more values than this is sampled.
const VALUES_MAX: u64 = 400_000;
/// So is one that takes more additions than this.
const ADDITIONS_MAX: u64 = 200_000_000;

/// How often re-dealt differences are at least as extreme as the observed one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RedealTest {
    /// As low as observed.
    pub(crate) lower: f64,
    /// As far from 0 as observed.
    pub(crate) two_sided: f64,
    /// Whether every way to deal was counted.
    pub(crate) exact: bool,
}

/// Tests whether two sides differ. `draws` is used only if the distribution is sampled.
pub(crate) fn redeal_test(pairs: &[ScoredPair], draws: u32) -> RedealTest {
    match Lattice::new(pairs).and_then(|lattice| lattice.distribution(pairs)) {
        Some(distribution) => distribution.test(),
        None => sampled_test(pairs, draws),
    }
}

/// The common unit in which the differences of all cases are whole numbers.
struct Lattice {
    units: u64,
}

/// The successes on the new side of a case, if its trials are dealt at random.
struct DealtCase {
    /// The difference in units for the smallest number of successes.
    low: i64,
    /// By how much one more success moves the difference, in units.
    step: i64,
    /// The probability of each number of successes.
    probabilities: Vec<f64>,
    observed: i64,
}

impl Lattice {
    /// None if the numbers of trials have no small common multiple.
    fn new(pairs: &[ScoredPair]) -> Option<Self> {
        let mut units = 1_u64;
        for n in pairs.iter().flat_map(|pair| [pair.base.n, pair.new.n]) {
            units = least_common_multiple(units, n.into())?;
        }
        Some(Self { units })
    }

    fn deal(&self, pair: &ScoredPair) -> Option<DealtCase> {
        let [base, new] = [pair.base.n, pair.new.n].map(i64::from);
        let units = i64::try_from(self.units).ok()?;
        let pooled = pair.pooled();
        let [successes, trials] = [pooled.successes, pooled.n].map(i64::from);
        let fewest = (new - (trials - successes)).max(0);
        let most = new.min(successes);
        let difference = |on_new: i64| on_new * (units / new) - (successes - on_new) * (units / base);
        Some(DealtCase {
            low: difference(fewest),
            step: units / new + units / base,
            probabilities: hypergeometric(trials, successes, new, fewest, most),
            observed: difference(i64::from(pair.new.successes)),
        })
    }

    fn distribution(&self, pairs: &[ScoredPair]) -> Option<DealtSum> {
        let mut cases = Vec::new();
        for pair in pairs {
            let dealt = self.deal(pair)?;
            if dealt.probabilities.len() > 1 {
                cases.push(dealt);
            }
        }
        let stride =
            cases.iter().fold(0, |gcd, case| greatest_common_divisor(gcd, case.step.unsigned_abs())).max(1);
        let stride = i64::try_from(stride).ok()?;
        let mut values = 1_u64;
        let mut additions = 0_u64;
        for case in &cases {
            let support = case.probabilities.len() as u64;
            additions = additions.checked_add(values.checked_mul(support)?)?;
            values += (support - 1) * (case.step / stride).unsigned_abs();
            if values > VALUES_MAX || additions > ADDITIONS_MAX {
                return None;
            }
        }
        Some(DealtSum::convolve(&cases, stride))
    }
}

/// The distribution of the sum of all differences.
struct DealtSum {
    low: i64,
    stride: i64,
    probabilities: Vec<f64>,
    observed: i64,
}

impl DealtSum {
    fn convolve(cases: &[DealtCase], stride: i64) -> Self {
        let mut sum = Self { low: 0, stride, probabilities: vec![1.0], observed: 0 };
        for case in cases {
            let hop = usize::try_from(case.step / stride).unwrap_or(1);
            let mut next = vec![0.0; sum.probabilities.len() + hop * (case.probabilities.len() - 1)];
            for (weight, shift) in case.probabilities.iter().zip((0..).step_by(hop)) {
                for (target, probability) in next.iter_mut().skip(shift).zip(&sum.probabilities) {
                    *target += weight * probability;
                }
            }
            sum.probabilities = next;
            sum.low += case.low;
            sum.observed += case.observed;
        }
        sum
    }

    fn test(&self) -> RedealTest {
        let mut test = RedealTest { lower: 0.0, two_sided: 0.0, exact: true };
        let values = (self.low..).step_by(usize::try_from(self.stride).unwrap_or(1));
        for (probability, value) in self.probabilities.iter().zip(values) {
            if value <= self.observed {
                test.lower += probability;
            }
            if value.abs() >= self.observed.abs() {
                test.two_sided += probability;
            }
        }
        RedealTest { lower: test.lower.min(1.0), two_sided: test.two_sided.min(1.0), ..test }
    }
}

/// The probabilities of `fewest` to `most` successes among `drawn` of `trials` trials with `successes` successes. Weights are
/// computed relative to the most likely number, so that none overflows.
fn hypergeometric(trials: i64, successes: i64, drawn: i64, fewest: i64, most: i64) -> Vec<f64> {
    let mode = ((drawn + 1) * (successes + 1) / (trials + 2)).clamp(fewest, most);
    // The weight of one more success, relative to this number.
    let ratio = |hits: i64| {
        ((successes - hits) * (drawn - hits)) as f64
            / ((hits + 1) * (trials - successes - drawn + hits + 1)) as f64
    };
    let mut below = Vec::new();
    let mut weight = 1.0;
    for hits in (fewest..mode).rev() {
        weight /= ratio(hits);
        below.push(weight);
    }
    let mut weights: Vec<f64> = below.into_iter().rev().collect();
    weight = 1.0;
    weights.push(weight);
    for hits in mode..most {
        weight *= ratio(hits);
        weights.push(weight);
    }
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    let multiple = (a / greatest_common_divisor(a, b)).checked_mul(b)?;
    (multiple <= VALUES_MAX).then_some(multiple)
}

fn sampled_test(pairs: &[ScoredPair], draws: u32) -> RedealTest {
    let observed: f64 = pairs.iter().map(ScoredPair::difference).sum();
    let mut random = SeededRandom::new(SEED);
    let mut lower = 0_u32;
    let mut two_sided = 0_u32;
    for _ in 0..draws {
        let sum: f64 = pairs.iter().map(|pair| pair.redealt_difference(&mut random)).sum();
        // The tolerance covers rounding: the same numbers in another order may give another sum.
        lower += u32::from(sum <= observed + 1e-9);
        two_sided += u32::from(sum.abs() >= observed.abs() - 1e-9);
    }
    // The observed differences are one of the possible draws; a sample without them would underestimate the p-value.
    let fraction = |count: u32| f64::from(count + 1) / f64::from(draws + 1);
    RedealTest { lower: fraction(lower), two_sided: fraction(two_sided), exact: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::paired::ScoredCounts;

    fn pair(base: [u32; 2], new: [u32; 2]) -> ScoredPair {
        let counts = |[successes, n]: [u32; 2]| ScoredCounts { successes, n };
        ScoredPair { base: counts(base), new: counts(new) }
    }

    #[test]
    fn single_case_is_fishers_exact_test() {
        // 5 of 5 against 0 of 5: one of the 252 ways to deal 5 successes to 5 of 10 trials.
        let test = redeal_test(&[pair([5, 5], [0, 5])], 99);
        assert!((test.lower - 1.0 / 252.0).abs() < 1e-12, "{test:?}");
        assert!((test.two_sided - 2.0 / 252.0).abs() < 1e-12 && test.exact, "{test:?}");
        let test = redeal_test(&[pair([0, 5], [1, 1])], 99);
        assert!((test.two_sided - 1.0 / 6.0).abs() < 1e-12 && test.exact, "{test:?}");
    }

    #[test]
    fn one_trial_per_side_is_mcnemars_exact_test() {
        let mut pairs = vec![pair([1, 1], [0, 1]); 7];
        pairs.push(pair([0, 1], [1, 1]));
        pairs.extend(vec![pair([1, 1], [1, 1]); 5]);
        let test = redeal_test(&pairs, 99);
        // 8 discordant pairs, at most 1 in favour: (1 + 8) / 256.
        assert!((test.lower - 9.0 / 256.0).abs() < 1e-12 && test.exact, "{test:?}");
        assert!((test.two_sided - 18.0 / 256.0).abs() < 1e-12, "{test:?}");
    }

    #[test]
    fn exact_and_sampled_tests_agree() {
        let pairs = [pair([4, 5], [2, 3]), pair([1, 4], [0, 5]), pair([3, 3], [1, 4]), pair([2, 6], [3, 6])];
        let exact = redeal_test(&pairs, 1);
        let sampled = sampled_test(&pairs, 200_000);
        assert!(exact.exact && (exact.lower - sampled.lower).abs() < 0.005, "{exact:?} {sampled:?}");
        assert!((exact.two_sided - sampled.two_sided).abs() < 0.005, "{exact:?} {sampled:?}");
    }

    #[test]
    fn equal_sides_have_p_one() {
        assert_eq!(
            redeal_test(&[pair([5, 5], [5, 5])], 99),
            RedealTest { lower: 1.0, two_sided: 1.0, exact: true }
        );
        assert_eq!(redeal_test(&[], 99).two_sided, 1.0);
    }

    #[test]
    fn large_suites_are_exact_and_odd_ones_sampled() {
        assert!(redeal_test(&vec![pair([300, 500], [280, 500]); 20], 9).exact);
        let odd: Vec<ScoredPair> =
            [101, 103, 107, 109].iter().map(|n| pair([n / 2, *n], [n / 3, n + 2])).collect();
        assert!(!redeal_test(&odd, 9).exact);
    }
}
