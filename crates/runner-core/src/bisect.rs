//! Finding the first of many commits that a check is red on, with few runs of the check.

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BisectNext {
    /// Run the check on this one, and tell how it went.
    Probe(usize),
    /// The newest is green: nothing is broken.
    NeverRed,
    /// The oldest is red already.
    AlwaysRed,
    /// This one is the first that is red; a check that answered twice in different ways is flaky.
    Broke { at: usize, is_flaky: bool },
}

/// A search among commits, oldest first. The boundary is looked at twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bisect {
    count: usize,
    /// The newest that is known to be green.
    green: Option<usize>,
    /// The oldest that is known to be red.
    red: Option<usize>,
    /// Whether the second look at the boundary, first at its red side, agreed.
    again: Vec<bool>,
    is_never: bool,
    is_always: bool,
}

impl Bisect {
    /// A search among so many commits.
    pub fn new(count: usize) -> Self {
        let is_never = count == 0;
        Self { count, green: None, red: None, again: Vec::new(), is_never, is_always: false }
    }

    /// What to do next.
    pub fn next(&self) -> BisectNext {
        let (green, red) = match (self.green, self.red) {
            _ if self.is_never => return BisectNext::NeverRed,
            _ if self.is_always => return BisectNext::AlwaysRed,
            (_, None) => return BisectNext::Probe(self.count - 1),
            (None, Some(_)) => return BisectNext::Probe(0),
            (Some(green), Some(red)) => (green, red),
        };
        match self.again.as_slice() {
            _ if red - green > 1 => BisectNext::Probe(green + (red - green) / 2),
            [] => BisectNext::Probe(red),
            [_] => BisectNext::Probe(green),
            again => BisectNext::Broke { at: red, is_flaky: again.contains(&false) },
        }
    }

    /// Takes the answer to the last probe.
    pub fn tell(&mut self, is_red: bool) {
        let BisectNext::Probe(at) = self.next() else { return };
        if self.red == Some(at) {
            self.again.push(is_red);
        } else if self.green == Some(at) {
            self.again.push(!is_red);
        } else if is_red {
            self.red = Some(at);
            self.is_always = at == 0;
        } else {
            self.green = Some(at);
            self.is_never = self.red.is_none();
        }
    }

    /// How many commits the answer is still looked for among.
    pub fn left(&self) -> usize {
        match (self.green, self.red) {
            (Some(green), Some(red)) => red - green,
            (None, Some(red)) => red + 1,
            (_, None) => self.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(count: usize, mut is_red: impl FnMut(usize, usize) -> bool) -> (BisectNext, usize) {
        let mut bisect = Bisect::new(count);
        let mut probes = 0;
        while let BisectNext::Probe(at) = bisect.next() {
            probes += 1;
            assert!(probes <= count + 4, "no end in sight");
            bisect.tell(is_red(at, probes));
        }
        (bisect.next(), probes)
    }

    #[test]
    fn the_first_red_one_is_found_wherever_it_is() {
        for count in 2..40 {
            for first in 1..count {
                let (next, probes) = search(count, |at, _| at >= first);
                assert_eq!(next, BisectNext::Broke { at: first, is_flaky: false });
                let halvings = usize::BITS - (count - 1).leading_zeros();
                assert!(probes <= 4 + halvings as usize, "{probes} probes of {count}");
            }
        }
    }

    #[test]
    fn what_is_never_or_always_red_is_told_after_one_or_two_probes() {
        assert_eq!(search(9, |_, _| false), (BisectNext::NeverRed, 1));
        assert_eq!(search(9, |_, _| true), (BisectNext::AlwaysRed, 2));
        assert_eq!(search(1, |_, _| true), (BisectNext::AlwaysRed, 1));
        assert_eq!(search(0, |_, _| true), (BisectNext::NeverRed, 0));
    }

    #[test]
    fn a_check_that_changes_its_mind_at_the_boundary_is_flaky() {
        assert_eq!(search(2, |at, nth| at == 1 && nth < 3), (BisectNext::Broke { at: 1, is_flaky: true }, 4));
        assert_eq!(
            search(2, |at, nth| at == 1 || nth == 4),
            (BisectNext::Broke { at: 1, is_flaky: true }, 4)
        );
    }

    #[test]
    fn every_answer_says_among_how_many_commits_the_first_red_one_is() {
        let mut bisect = Bisect::new(10);
        for (left, at) in [(10, 9), (10, 0), (9, 4), (5, 6), (2, 5), (1, 6), (1, 5)] {
            assert_eq!((bisect.left(), bisect.next()), (left, BisectNext::Probe(at)));
            bisect.tell(at >= 6);
        }
        assert_eq!(bisect.left(), 1);
        assert_eq!(bisect.next(), BisectNext::Broke { at: 6, is_flaky: false });
    }
}
