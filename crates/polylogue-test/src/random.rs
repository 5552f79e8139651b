//! Numbers that look random and follow from a seed.

/// Numbers that look random, and are the same for the same seed (Steele and others 2014, SplitMix64).
///
/// ```
/// use polylogue_test::random::Random;
/// let mut random = Random::new(7);
/// let first = random.below(10);
/// assert!(first < 10);
/// assert_eq!(Random::new(7).below(10), first);
/// ```
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The numbers of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns any number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`; 0 if there is none.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number().checked_rem(limit).unwrap_or(0)
    }

    /// Returns an index of a list of `len` items; 0 if there are none.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }
}
