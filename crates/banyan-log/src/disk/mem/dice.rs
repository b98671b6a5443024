//! Chance that can be repeated.

/// A stream of chance that is the same for the same seeds (SplitMix64).
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn new(disk: u64, throw: u64) -> Self {
        let mut dice = Self(disk);
        dice.0 = dice.next() ^ throw;
        dice
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, or 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % (limit.max(1) as u64)) as usize
    }

    pub(super) fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}
