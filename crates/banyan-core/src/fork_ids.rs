//! The entry ids of a fork: fixed by the fork's id and the original ids, so that no fork lists them.
//!
//! The bits of a UUIDv7 that are random are XORed with a key made from the fork's session id; time, version and
//! variant stay, so that the copies sort as their originals do. Two originals never meet in one copy.

use banyan_model::{EntryId, SessionId};

use crate::id_key::IdKey;

/// The 74 bits of a UUIDv7 that are neither time nor version nor variant.
const RANDOM_BITS: [u8; 16] = [0, 0, 0, 0, 0, 0, 0x0f, 0xff, 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

/// Derives the ids of one fork.
#[derive(Clone, Debug)]
pub struct ForkIds {
    key: [u8; 32],
}

impl ForkIds {
    /// The ids of the fork with this session id.
    pub fn new(fork: &SessionId) -> Self {
        Self { key: blake3::derive_key("banyan 2026 entry ids of a fork", fork.as_str().as_bytes()) }
    }

    /// The id that an entry of the base has in the fork.
    pub fn derive(&self, original: &EntryId) -> EntryId {
        self.derive_key(&IdKey::of(original.as_str())).to_entry_id()
    }

    /// The same for compact ids.
    pub fn derive_key(&self, original: &IdKey) -> IdKey {
        match original {
            IdKey::Canonical(bytes) => {
                let mut derived = *bytes;
                for ((byte, key), mask) in derived.iter_mut().zip(&self.key).zip(&RANDOM_BITS) {
                    *byte ^= key & mask;
                }
                IdKey::Canonical(derived)
            }
            IdKey::Other(text) => {
                let hash = blake3::keyed_hash(&self.key, text.as_bytes());
                let mut derived = [0; 16];
                derived.copy_from_slice(&hash.as_bytes()[..16]);
                derived[6] = 0x70 | derived[6] & 0x0f;
                derived[8] = 0x80 | derived[8] & 0x3f;
                IdKey::Canonical(derived)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn deriving_twice_for_one_fork_gives_the_original_back(bytes: [u8; 16], fork in ".*") {
            let ids = ForkIds::new(&SessionId::from(fork));
            let original = IdKey::Canonical(bytes);
            prop_assert_eq!(ids.derive_key(&ids.derive_key(&original)), original);
        }

        #[test]
        fn time_version_and_variant_stay(bytes: [u8; 16]) {
            let IdKey::Canonical(derived) = ForkIds::new(&SessionId::from("s")).derive_key(&IdKey::Canonical(bytes)) else {
                panic!("a canonical id stays canonical");
            };
            prop_assert_eq!(&derived[..6], &bytes[..6]);
            prop_assert_eq!(derived[6] >> 4, bytes[6] >> 4);
            prop_assert_eq!(derived[8] >> 6, bytes[8] >> 6);
        }
    }

    #[test]
    fn a_fork_gives_fresh_ids_and_another_fork_others() {
        let original = EntryId::from("e_0190c0ffee0070008000000000000001");
        let one = ForkIds::new(&SessionId::from("s_1")).derive(&original);
        let two = ForkIds::new(&SessionId::from("s_2")).derive(&original);
        assert_ne!(one, original);
        assert_ne!(one, two);
        assert_eq!(one, ForkIds::new(&SessionId::from("s_1")).derive(&original));
    }

    #[test]
    fn a_callers_own_id_becomes_a_canonical_one() {
        let derived = ForkIds::new(&SessionId::from("s_1")).derive(&EntryId::from("note"));
        assert!(matches!(IdKey::of(derived.as_str()), IdKey::Canonical(_)));
    }
}
