//! An entry id in the fewest bytes: sixteen for the canonical form, the text itself for a caller's own.

use banyan_model::EntryId;

use crate::hex;

/// A compact entry id. Equal exactly when the ids are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IdKey {
    /// `e_` and 32 lower-case hex digits.
    Canonical([u8; 16]),
    /// Any other id.
    Other(Box<str>),
}

impl IdKey {
    /// The key of an id's text.
    pub fn of(id: &str) -> Self {
        match id.strip_prefix("e_").and_then(|digits| hex::decode16(digits.as_bytes())) {
            Some(bytes) => Self::Canonical(bytes),
            None => Self::Other(id.into()),
        }
    }

    /// The id it stands for.
    pub fn to_entry_id(&self) -> EntryId {
        match self {
            Self::Canonical(bytes) => {
                let mut id = *b"e_00000000000000000000000000000000";
                id[2..].copy_from_slice(&hex::encode16(bytes));
                EntryId::from(hex::text(&id))
            }
            Self::Other(text) => EntryId::from(text.as_ref()),
        }
    }

    /// True when the id begins with `prefix`.
    pub fn starts_with(&self, prefix: &str) -> bool {
        match self {
            Self::Canonical(_) => self.to_entry_id().as_str().starts_with(prefix),
            Self::Other(text) => text.starts_with(prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_form_is_packed_and_every_id_comes_back() {
        for (id, packed) in [
            ("e_0190c0ffee0070008000000000000001", true),
            ("e_0190C0FFEE0070008000000000000001", false),
            ("e_0190c0ffee007000800000000000000", false),
            ("e_0190c0ffee00700080000000000000012", false),
            ("", false),
            ("note", false),
        ] {
            let key = IdKey::of(id);
            assert_eq!(matches!(key, IdKey::Canonical(_)), packed, "{id}");
            assert_eq!(key.to_entry_id(), EntryId::from(id));
        }
    }
}
