//! Finds the first commit on which a check fails, with few runs of the check. Used by `runner blame`.

/// The next step of a bisection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BisectNext {
    /// Run the check on this commit and pass the result to [`Bisect::record`].
    Probe(usize),
    /// The check succeeds on the newest commit.
    NeverFailed,
    /// The check already fails on the oldest commit.
    AlwaysFailed,
    /// The first commit on which the check fails. The check is flaky if it gave two results for one commit.
    FirstFailure { at: usize, is_flaky: bool },
}

/// A bisection of commits, oldest first. Both sides of the boundary are checked twice, to detect a flaky check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bisect {
    count: usize,
    /// The newest commit that is known to succeed.
    good: Option<usize>,
    /// The oldest commit that is known to fail.
    bad: Option<usize>,
    /// Whether the second check of the boundary, first of its bad side, gave the same result.
    confirmed: Vec<bool>,
    never_failed: bool,
    always_failed: bool,
}

impl Bisect {
    pub fn new(count: usize) -> Self {
        let never_failed = count == 0;
        Self { count, good: None, bad: None, confirmed: Vec::new(), never_failed, always_failed: false }
    }

    pub fn next(&self) -> BisectNext {
        let (good, bad) = match (self.good, self.bad) {
            _ if self.never_failed => return BisectNext::NeverFailed,
            _ if self.always_failed => return BisectNext::AlwaysFailed,
            (_, None) => return BisectNext::Probe(self.count - 1),
            (None, Some(_)) => return BisectNext::Probe(0),
            (Some(good), Some(bad)) => (good, bad),
        };
        match self.confirmed.as_slice() {
            _ if bad - good > 1 => BisectNext::Probe(good + (bad - good) / 2),
            [] => BisectNext::Probe(bad),
            [_] => BisectNext::Probe(good),
            confirmed => BisectNext::FirstFailure { at: bad, is_flaky: confirmed.contains(&false) },
        }
    }

    /// Records the result of the last probe.
    pub fn record(&mut self, has_failed: bool) {
        let BisectNext::Probe(at) = self.next() else { return };
        if self.bad == Some(at) {
            self.confirmed.push(has_failed);
        } else if self.good == Some(at) {
            self.confirmed.push(!has_failed);
        } else if has_failed {
            self.bad = Some(at);
            self.always_failed = at == 0;
        } else {
            self.good = Some(at);
            self.never_failed = self.bad.is_none();
        }
    }

    /// How many commits may still be the first failure.
    pub fn left(&self) -> usize {
        match (self.good, self.bad) {
            (Some(good), Some(bad)) => bad - good,
            (None, Some(bad)) => bad + 1,
            (_, None) => self.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bisects with a check that gets a commit and the number of the probe; returns the result and the number of probes.
    fn search(count: usize, mut fails: impl FnMut(usize, usize) -> bool) -> (BisectNext, usize) {
        let mut bisect = Bisect::new(count);
        let mut probes = 0;
        while let BisectNext::Probe(at) = bisect.next() {
            probes += 1;
            assert!(probes <= count + 4, "too many probes");
            bisect.record(fails(at, probes));
        }
        (bisect.next(), probes)
    }

    #[test]
    fn the_first_failing_commit_is_found_wherever_it_is() {
        for count in 2..40 {
            for first in 1..count {
                let (next, probes) = search(count, |at, _| at >= first);
                assert_eq!(next, BisectNext::FirstFailure { at: first, is_flaky: false });
                let halvings = usize::BITS - (count - 1).leading_zeros();
                assert!(probes <= 4 + halvings as usize, "{probes} probes of {count}");
            }
        }
    }

    #[test]
    fn a_check_that_never_or_always_fails_takes_one_or_two_probes() {
        assert_eq!(search(9, |_, _| false), (BisectNext::NeverFailed, 1));
        assert_eq!(search(9, |_, _| true), (BisectNext::AlwaysFailed, 2));
        assert_eq!(search(1, |_, _| true), (BisectNext::AlwaysFailed, 1));
        assert_eq!(search(0, |_, _| true), (BisectNext::NeverFailed, 0));
    }

    #[test]
    fn a_check_with_two_results_at_the_boundary_is_flaky() {
        let flaky = BisectNext::FirstFailure { at: 1, is_flaky: true };
        assert_eq!(search(2, |at, nth| at == 1 && nth < 3), (flaky, 4));
        assert_eq!(search(2, |at, nth| at == 1 || nth == 4), (flaky, 4));
    }

    #[test]
    fn every_probe_reduces_the_candidates() {
        let mut bisect = Bisect::new(10);
        for (left, at) in [(10, 9), (10, 0), (9, 4), (5, 6), (2, 5), (1, 6), (1, 5)] {
            assert_eq!((bisect.left(), bisect.next()), (left, BisectNext::Probe(at)));
            bisect.record(at >= 6);
        }
        assert_eq!(bisect.left(), 1);
        assert_eq!(bisect.next(), BisectNext::FirstFailure { at: 6, is_flaky: false });
    }
}
