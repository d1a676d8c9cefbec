//! A seeded pseudo-random generator (SplitMix64), so that the same data always give the same result.

#[derive(Clone, Debug)]
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `end` without `end`, which must not be 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let scaled = (u128::from(self.next_bits()) * end as u128) >> 64;
        usize::try_from(scaled).unwrap_or_default()
    }

    /// Draws `drawn` of `n` trials without replacement and returns how many of them are among the `successes`
    /// (hypergeometric).
    pub(crate) fn draw_successes(&mut self, drawn: u32, n: u32, successes: u32) -> u32 {
        let mut hits = 0;
        for already_drawn in 0..drawn.min(n) {
            let position = ((self.next_bits() >> 32) * u64::from(n - already_drawn)) >> 32;
            hits += u32::from(position < u64::from(successes - hits));
        }
        hits
    }

    /// Simulates `n` trials that succeed with this probability and returns the number of successes (binomial).
    pub(crate) fn successes(&mut self, n: u32, probability: f64) -> u32 {
        (0..n).map(|_| u32::from(self.uniform() < probability)).sum()
    }

    /// A number from 0 to 1, without 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.next_bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_the_reference_implementation() {
        // The first two numbers for the seed 1234567.
        let mut random = SeededRandom::new(1_234_567);
        assert_eq!(random.next_bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn simulated_rates_match_their_probabilities() {
        let mut random = SeededRandom::new(1);
        let rate = f64::from(random.successes(100_000, 0.3)) / 100_000.0;
        assert!((rate - 0.3).abs() < 0.01, "{rate}");
        let hits: u32 = (0..10_000).map(|_| random.draw_successes(3, 10, 4)).sum();
        assert!((f64::from(hits) / 10_000.0 - 1.2).abs() < 0.03, "{hits}");
        assert_eq!(random.draw_successes(4, 4, 2), 2);
        assert_eq!(random.draw_successes(3, 5, 5), 3);
        assert_eq!(random.draw_successes(3, 5, 0), 0);
        assert_eq!((random.successes(1000, 0.0), random.successes(1000, 1.0)), (0, 1000));
    }
}
