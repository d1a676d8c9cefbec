//! What results say, with how sure that is: pure functions of counts.

pub(crate) mod comparison;
pub(crate) mod gate;
pub(crate) mod paired;
mod random;
pub(crate) mod score;

use serde::Serialize;

/// How many standard errors the middle 95 % of a normal distribution reach to each side.
const TWO_SIDED: f64 = 1.959_963_984_540_054;

/// From where to where something probably is, with 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Wilson's interval of a rate that was seen in so many independent observations; none without any. It stays between
/// 0 and 1, and has a width even if all ended alike.
pub(crate) fn wilson(rate: f64, observations: f64) -> Option<Interval> {
    if observations <= 0.0 {
        return None;
    }
    let square = TWO_SIDED * TWO_SIDED;
    let scale = 1.0 + square / observations;
    let centre = (rate + square / (2.0 * observations)) / scale;
    let spread = rate * (1.0 - rate) / observations + square / (4.0 * observations * observations);
    let reach = TWO_SIDED / scale * spread.max(0.0).sqrt();
    Some(Interval { low: (centre - reach).max(0.0), high: (centre + reach).min(1.0) })
}

/// The chance that at least one of `k` trials succeeds, without bias from so many of `n`; none if there are fewer than
/// `k`.
pub(crate) fn pass_at(k: u32, n: u32, successes: u32) -> Option<f64> {
    all_of(k, n, n.saturating_sub(successes)).map(|all_fail| 1.0 - all_fail)
}

/// The chance that each of `k` trials succeeds, likewise.
pub(crate) fn pass_all(k: u32, n: u32, successes: u32) -> Option<f64> {
    all_of(k, n, successes)
}

/// The chance that `k` that are drawn from `n` are all among the `marked`.
fn all_of(k: u32, n: u32, marked: u32) -> Option<f64> {
    if k == 0 || n < k {
        return None;
    }
    let drawn = |i: u32| f64::from(marked.saturating_sub(i)) / f64::from(n - i);
    Some((0..k).map(drawn).product())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-4
    }

    #[test]
    fn wilsons_interval_is_the_one_of_the_textbooks() {
        for (rate, n, low, high) in
            [(0.5, 10.0, 0.2366, 0.7634), (1.0, 5.0, 0.5655, 1.0), (0.0, 20.0, 0.0, 0.1611)]
        {
            let found = wilson(rate, n).unwrap();
            assert!(near(found.low, low) && near(found.high, high), "{rate} of {n}: {found:?}");
        }
        assert_eq!(wilson(0.0, 0.0), None);
    }

    /// What every choice of `k` of the trials says, one by one.
    fn counted(k: u32, n: u32, successes: u32) -> (f64, f64) {
        let (mut all, mut any, mut choices) = (0.0, 0.0, 0.0);
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
    fn the_estimators_are_the_mean_over_every_choice_of_k_trials() {
        for n in 1..=7 {
            for successes in 0..=n {
                for k in 1..=n {
                    let (any, all) = counted(k, n, successes);
                    let found = (pass_at(k, n, successes).unwrap(), pass_all(k, n, successes).unwrap());
                    assert!(near(found.0, any) && near(found.1, all), "{k} {n} {successes}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn more_than_was_tried_is_not_guessed() {
        assert_eq!(pass_at(3, 2, 2), None);
        assert_eq!(pass_all(3, 2, 2), None);
        assert_eq!(pass_all(1, 0, 0), None);
    }
}
