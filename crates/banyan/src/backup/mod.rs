//! Backups: a consistent copy of a store, independent of how the store keeps it.
//!
//! [`Banyan::backup`](crate::Banyan::backup) gives a [`Backup`], a stream of everything that a destination does not have yet, as of
//! one commit. [`receive`] writes such a stream to a [`Repository`], which holds one generation for each backup; content is shared
//! between them. [`check`] reads a generation, and [`restore`] makes a data directory of it.
//!
//! `docs/backup-format.md` describes the files, `docs/decisions/backup.md` says why they are so.

mod check;
mod frames;
mod hold;
mod lines;
mod manifest;
mod prune;
mod reading;
mod receive;
mod repository;
mod restore;
mod source;
mod spool;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;

pub use check::{Checked, check};
pub use lines::Cut;
pub use manifest::{Manifest, ManifestHead, Part, SessionCopy, SessionKind, SourceDamage};
pub use receive::{ReceiveOptions, Received, Wanted, have, receive};
pub use repository::{BackupError, Repository, is_backup};
pub use restore::{KEYS, Restore, Restored, directory, restore};
pub use source::Backup;

pub(crate) use hold::{Hold, Holds};
