//! How much of an archive is read before it is refused.

/// How much of an archive is read before it is refused. The defaults take sessions of many gigabytes and refuse bombs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many entries there may be.
    pub entries: usize,
    /// How many bytes one entry may have unpacked.
    pub entry_size: u64,
    /// How many bytes all entries together may have unpacked.
    pub total_size: u64,
    /// How many times larger than packed an entry of more than a mebibyte may be. Text reaches 50, nothing honest 250.
    pub ratio: u64,
    /// How many bytes the manifest and the signature file may have, each; the index has a quarter.
    pub part_size: u64,
    /// How many bytes the prompt may have.
    pub prompt_size: u64,
    /// How many bytes one message of the history may have.
    pub message_size: usize,
    /// How many bytes a picture may have that is put into its message; a larger one is only an attachment.
    pub image_size: u64,
    /// How many bytes all pictures together may have that are put into messages; the others are only attachments.
    pub images_size: u64,
    /// A history of at most so many bytes is kept in memory after the check, and not unpacked twice.
    pub kept_history: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 100_000,
            entry_size: 16 << 30,
            total_size: 64 << 30,
            ratio: 250,
            part_size: 16 << 20,
            prompt_size: 16 << 20,
            message_size: 24 << 20,
            image_size: 16 << 20,
            images_size: 32 << 20,
            kept_history: 16 << 20,
        }
    }
}

/// How deep a history's JSON may nest. Stored messages come back wrapped in a few levels more, and readers stop at 128.
pub(crate) const DEPTH: usize = 100;
/// From so many unpacked bytes on the ratio counts.
pub(crate) const RATIO_FROM: u64 = 1 << 20;
/// How many bytes a name may have.
pub(crate) const NAME: usize = 1024;
/// How many bytes all names together may have.
pub(crate) const NAMES: usize = 16 << 20;
