//! What a plan may cost and how long it may take, from tasks that passed earlier in the same repository.

use serde::Serialize;

/// What one task took from its first session to its pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSample {
    pub secs: u64,
    /// None if no session reported its cost.
    pub microdollars: Option<u64>,
}

/// The middle and the high end of an expectation: half and nine tenths of comparable plans stay below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    pub p50: u64,
    pub p90: u64,
}

/// The expectation for all open tasks of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PlanEstimate {
    /// The open leaves that it is about.
    pub tasks: usize,
    /// The tasks that passed earlier, which it is computed from.
    pub samples: usize,
    pub secs: Quantiles,
    /// None if too few of the samples have a cost.
    pub microdollars: Option<Quantiles>,
}

/// Fewer samples say nothing about the spread.
pub const SAMPLES_MIN: usize = 5;
const RESAMPLES: usize = 2_000;

/// Sums of randomly drawn samples, one for each open task. The numbers are drawn by a fixed sequence, so that the same records
/// always give the same estimate.
pub fn estimate(samples: &[TaskSample], tasks: usize) -> Option<PlanEstimate> {
    if samples.len() < SAMPLES_MIN || tasks == 0 {
        return None;
    }
    let secs: Vec<u64> = samples.iter().map(|sample| sample.secs).collect();
    let costs: Vec<u64> = samples.iter().filter_map(|sample| sample.microdollars).collect();
    Some(PlanEstimate {
        tasks,
        samples: samples.len(),
        secs: quantiles(&secs, tasks)?,
        microdollars: if costs.len() < SAMPLES_MIN { None } else { quantiles(&costs, tasks) },
    })
}

fn quantiles(values: &[u64], tasks: usize) -> Option<Quantiles> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut sums = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let mut sum = 0_u64;
        for _ in 0..tasks {
            let index = usize::try_from(next(&mut state) % u64::try_from(values.len()).ok()?).ok()?;
            sum = sum.saturating_add(*values.get(index)?);
        }
        sums.push(sum);
    }
    sums.sort_unstable();
    Some(Quantiles { p50: *sums.get(RESAMPLES / 2)?, p90: *sums.get(RESAMPLES * 9 / 10)? })
}

/// One step of the splitmix64 sequence.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(secs: &[u64], cost: Option<u64>) -> Vec<TaskSample> {
        secs.iter().map(|secs| TaskSample { secs: *secs, microdollars: cost }).collect()
    }

    #[test]
    fn equal_samples_give_their_sum_and_few_samples_give_nothing() {
        let found = estimate(&samples(&[60; 5], Some(10)), 4).unwrap();
        assert_eq!((found.secs, found.samples, found.tasks), (Quantiles { p50: 240, p90: 240 }, 5, 4));
        assert_eq!(found.microdollars, Some(Quantiles { p50: 40, p90: 40 }));
        assert_eq!(estimate(&samples(&[60; 4], None), 4), None);
        assert_eq!(estimate(&samples(&[60; 9], None), 0), None);
        assert_eq!(
            estimate(&samples(&[60; 9], None), 1).unwrap().microdollars,
            None,
            "no cost is not a cost of zero"
        );
    }

    #[test]
    fn a_spread_lies_between_the_extremes_and_is_the_same_every_time() {
        let mixed = samples(&[10, 20, 30, 40, 1000], None);
        let found = estimate(&mixed, 10).unwrap();
        assert_eq!(Some(found), estimate(&mixed, 10));
        assert!(
            100 <= found.secs.p50 && found.secs.p50 < found.secs.p90 && found.secs.p90 <= 10_000,
            "{found:?}"
        );
    }
}
