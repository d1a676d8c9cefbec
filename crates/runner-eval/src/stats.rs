//! Statistics of results: pass rates, confidence intervals, comparisons, the gate. Pure functions of counts, except for
//! [`comparison`], which reads selections of [`crate::result`].

mod bootstrap;
#[cfg(test)]
mod calibration;
pub(crate) mod comparison;
pub(crate) mod gate;
pub(crate) mod holm;
pub(crate) mod loop_summary;
pub(crate) mod paired;
mod random;
mod redeal;
pub(crate) mod score;
mod student;

use serde::Serialize;

/// The 97.5 % quantile of the normal distribution, for two-sided 95 % intervals.
const Z_TWO_SIDED: f64 = 1.959_963_984_540_054;

/// A 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The Wilson interval of a rate observed in this many independent observations; none without any. It stays between 0 and
/// 1 and has a width even if all observations are equal.
pub(crate) fn wilson(rate: f64, observations: f64) -> Option<Interval> {
    if observations <= 0.0 {
        return None;
    }
    let z_squared = Z_TWO_SIDED * Z_TWO_SIDED;
    let scale = 1.0 + z_squared / observations;
    let centre = (rate + z_squared / (2.0 * observations)) / scale;
    let variance = rate * (1.0 - rate) / observations + z_squared / (4.0 * observations * observations);
    let half_width = Z_TWO_SIDED / scale * variance.max(0.0).sqrt();
    Some(Interval { low: (centre - half_width).max(0.0), high: (centre + half_width).min(1.0) })
}

/// pass@k: the probability that at least one of `k` trials succeeds, an unbiased estimate from `successes` of `n`. None if
/// `n` is smaller than `k`.
pub(crate) fn pass_at(k: u32, n: u32, successes: u32) -> Option<f64> {
    all_of(k, n, n.saturating_sub(successes)).map(|all_fail| 1.0 - all_fail)
}

/// pass^k: the probability that all of `k` trials succeed, likewise.
pub(crate) fn pass_all(k: u32, n: u32, successes: u32) -> Option<f64> {
    all_of(k, n, successes)
}

/// The probability that `k` items drawn from `n` without replacement are all among the `marked` ones.
fn all_of(k: u32, n: u32, marked: u32) -> Option<f64> {
    if k == 0 || n < k {
        return None;
    }
    Some((0..k).map(|drawn| f64::from(marked.saturating_sub(drawn)) / f64::from(n - drawn)).product())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-4
    }

    #[test]
    fn wilson_interval_matches_textbook_values() {
        for (rate, n, low, high) in
            [(0.5, 10.0, 0.2366, 0.7634), (1.0, 5.0, 0.5655, 1.0), (0.0, 20.0, 0.0, 0.1611)]
        {
            let interval = wilson(rate, n).unwrap();
            assert!(near(interval.low, low) && near(interval.high, high), "{rate} of {n}: {interval:?}");
        }
        assert_eq!(wilson(0.0, 0.0), None);
    }

    /// pass@k and pass^k by enumerating every choice of `k` trials.
    fn enumerated(k: u32, n: u32, successes: u32) -> (f64, f64) {
        let mut all = 0.0;
        let mut any = 0.0;
        let mut choices = 0.0;
        for mask in 0_u32..1 << n {
            if mask.count_ones() == k {
                let good = (mask & ((1 << successes) - 1)).count_ones();
                choices += 1.0;
                any += f64::from(u8::from(good > 0));
                all += f64::from(u8::from(good == k));
            }
        }
        (any / choices, all / choices)
    }

    #[test]
    fn estimators_equal_the_mean_over_every_choice_of_k_trials() {
        for n in 1..=7 {
            for successes in 0..=n {
                for k in 1..=n {
                    let (any, all) = enumerated(k, n, successes);
                    assert!(near(pass_at(k, n, successes).unwrap(), any), "{k} {n} {successes}");
                    assert!(near(pass_all(k, n, successes).unwrap(), all), "{k} {n} {successes}");
                }
            }
        }
    }

    #[test]
    fn estimators_need_at_least_k_trials() {
        assert_eq!(pass_at(3, 2, 2), None);
        assert_eq!(pass_all(3, 2, 2), None);
        assert_eq!(pass_all(1, 0, 0), None);
    }
}
