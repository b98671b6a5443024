//! Records that a newer Banyan wrote: those that this build must neither skip nor change.

use std::fmt;

use super::fault::{Salvaged, SalvagedWhat};

/// A record that this build does not understand and may not skip.
#[derive(Clone, Debug, PartialEq)]
pub struct NewerRecord {
    /// What is not known here.
    pub unknown: UnknownForm,
    /// The oldest Banyan that understands the record, as the record says it.
    pub needs: Option<String>,
    /// What can be read of it all the same: structure, never text.
    pub salvage: Option<Salvaged>,
}

/// What of a record is not known to this build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownForm {
    /// The version of its form.
    SchemaVersion(String),
    /// Its type, which says that it may not be skipped.
    Type(String),
}

impl NewerRecord {
    /// Whether the record may have changed the session's metadata, and with it who reaches the session.
    pub fn may_set_metadata(&self) -> bool {
        let about_an_entry = matches!(
            self.salvage.as_ref().map(|salvaged| &salvaged.what),
            Some(SalvagedWhat::Entry { .. } | SalvagedWhat::Put { .. } | SalvagedWhat::Text(_))
        );
        !about_an_entry
    }
}

impl fmt::Display for NewerRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.unknown {
            UnknownForm::SchemaVersion(version) => write!(f, "schema version {version} of a record")?,
            UnknownForm::Type(name) => write!(f, "record type `{name}`")?,
        }
        write!(
            f,
            " is not known to Banyan {}; {} is needed",
            env!("CARGO_PKG_VERSION"),
            needed(self.needs.as_deref())
        )
    }
}

/// The Banyan that is needed, in words.
pub(crate) fn needed(version: Option<&str>) -> String {
    version.map_or_else(|| "a newer Banyan".to_owned(), |version| format!("Banyan {version} or newer"))
}

/// The hashes of stored content that a line may name: every string of exactly 64 lower-case hex digits. A record that is
/// not understood may use content in a way that is not known here, so that content must stay.
pub fn named_content(line: &[u8]) -> impl Iterator<Item = &str> {
    let is_hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    let runs = line.split(move |byte| !is_hex(byte)).filter(|run| run.len() == 64);
    runs.filter_map(|run| std::str::from_utf8(run).ok())
}
