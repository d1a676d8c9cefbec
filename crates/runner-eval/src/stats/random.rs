//! Numbers that look random and are the same every time (SplitMix64).

/// Where such a row of numbers is.
#[derive(Clone, Debug)]
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    /// The row that belongs to a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// How many of `drawn` trials are among the successes, when they are drawn by lot from `n` of which so many are.
    pub(crate) fn among(&mut self, drawn: u32, n: u32, successes: u32) -> u32 {
        let mut found = 0;
        for at in 0..drawn.min(n) {
            let place = ((self.bits() >> 32) * u64::from(n - at)) >> 32;
            found += u32::from(place < u64::from(successes - found));
        }
        found
    }

    /// How many of `n` trials succeed that each do with this chance.
    pub(crate) fn successes(&mut self, n: u32, chance: f64) -> u32 {
        let unit = |bits: u64| (bits >> 11) as f64 / (1_u64 << 53) as f64;
        (0..n).map(|_| u32::from(unit(self.bits()) < chance)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_known_row() {
        // The first numbers of the reference implementation for the seed 1234567.
        let mut random = SeededRandom::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn trials_succeed_as_often_as_their_chance_says() {
        let mut random = SeededRandom::new(1);
        let seen = f64::from(random.successes(100_000, 0.3)) / 100_000.0;
        assert!((seen - 0.3).abs() < 0.01, "{seen}");
        let lots: u32 = (0..10_000).map(|_| random.among(3, 10, 4)).sum();
        assert!((f64::from(lots) / 10_000.0 - 1.2).abs() < 0.03, "{lots}");
        assert_eq!((random.among(4, 4, 2), random.among(3, 5, 5), random.among(3, 5, 0)), (2, 3, 0));
        assert_eq!((random.successes(1000, 0.0), random.successes(1000, 1.0)), (0, 1000));
    }
}
