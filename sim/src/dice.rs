//! Chance that a seed decides.

/// A stream of numbers that look random and follow from a seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.roll() % end as u64) as usize
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, times: usize) -> bool {
        self.below(100) < times
    }

    /// One of some things, or `None` when there is none.
    pub fn pick<'a, T>(&mut self, things: &'a [T]) -> Option<&'a T> {
        if things.is_empty() { None } else { things.get(self.below(things.len())) }
    }

    /// Words that are unlikely to be said twice.
    pub fn text(&mut self, bytes: usize) -> String {
        let mut text = format!("{:08x}", self.roll() as u32);
        while text.len() < bytes {
            text.push_str(
                [" \u{e9}l\u{e8}ve", " \"quoted\"", " tab\t", "\nline", " plain words", " \u{1f333}"]
                    [self.below(6)],
            );
        }
        text
    }
}
