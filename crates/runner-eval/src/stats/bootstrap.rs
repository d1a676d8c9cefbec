//! Percentile intervals from resampled cases, for statistics without a formula: ratios and medians.

use super::Interval;
use super::random::SeededRandom;

const ROUNDS: usize = 1_000;
const SEED: u64 = 7;

/// The 95 % interval of a statistic of cases. None with fewer than two cases, or if the statistic is undefined too often to
/// have an interval.
pub(crate) fn case_interval<T>(cases: &[T], statistic: impl Fn(&[&T]) -> Option<f64>) -> Option<Interval> {
    if cases.len() < 2 {
        return None;
    }
    let mut random = SeededRandom::new(SEED);
    let mut values = Vec::new();
    for _ in 0..ROUNDS {
        let sample: Vec<&T> = (0..cases.len()).filter_map(|_| cases.get(random.below(cases.len()))).collect();
        values.extend(statistic(&sample));
    }
    if values.len() < ROUNDS * 9 / 10 {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let at = |part: f64| quantile(&values, part);
    Some(Interval { low: at(0.025)?, high: at(0.975)? })
}

/// A quantile of sorted values, interpolated.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = part.clamp(0.0, 1.0) * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the last index"
    )]
    let index = position.floor() as usize;
    let below = sorted.get(index)?;
    let above = sorted.get(index + 1).unwrap_or(below);
    Some(below + (above - below) * (position - index as f64))
}

/// The median of values in any order.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0]), Some(2.5));
        assert_eq!(median([]), None);
        assert_eq!(quantile(&[0.0, 10.0], 0.25), Some(2.5));
    }

    #[test]
    fn interval_contains_the_mean_and_needs_two_cases() {
        let values: Vec<f64> = (0..50).map(f64::from).collect();
        let mean = |sample: &[&f64]| Some(sample.iter().copied().sum::<f64>() / sample.len() as f64);
        let interval = case_interval(&values, mean).unwrap();
        assert!(interval.low > 15.0 && interval.low < 24.0 && interval.high < 34.0, "{interval:?}");
        assert_eq!(case_interval(&[1.0], mean), None);
        assert_eq!(case_interval(&values, |_| None), None);
    }
}
