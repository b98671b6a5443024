//! OpenCode's ids: a prefix, twelve hex digits of the time, and letters that make it unique.

/// So many letters follow the time.
const LETTERS: usize = 14;
const ALPHABET: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Gives ids that sort in the order in which they are made, and before all that OpenCode makes later. The time in them is that
/// of the writing: it wraps around every two years, so that the time of an old message would not sort.
pub(super) struct Ids {
    next: u64,
    seed: String,
}

impl Ids {
    /// Ids that look as if they were made right before now.
    pub(super) fn new(now_ms: i64, count: usize, seed: &str) -> Self {
        let now = u64::try_from(now_ms).unwrap_or_default().wrapping_mul(0x1000);
        Self { next: now.wrapping_sub(count as u64 + 1), seed: format!("{seed} {now_ms}") }
    }

    /// The next id.
    pub(super) fn next(&mut self, prefix: &str) -> String {
        self.next = self.next.wrapping_add(1);
        self.made(prefix, self.next)
    }

    /// An id for a session: newer ones sort first.
    pub(super) fn session(&self) -> String {
        self.made("ses", !self.next)
    }

    fn made(&self, prefix: &str, number: u64) -> String {
        let mut random = [0; LETTERS];
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.seed.as_bytes()).update(&number.to_le_bytes()).finalize_xof().fill(&mut random);
        let letters: String =
            random.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect();
        format!("{prefix}_{:012x}{letters}", number & 0xffff_ffff_ffff)
    }
}
