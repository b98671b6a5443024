//! The entry ids of a fork: fixed by the fork's id and the original ids, so that no fork lists them.
//!
//! The bits of a UUIDv7 that are random are XORed with a key made from the fork's session id; time, version and
//! variant stay, so that the copies sort as their originals do. Two originals never meet in one copy.

use banyan_model::{EntryId, SessionId};

use crate::id_key::IdKey;

/// The 74 bits of a UUIDv7 that are neither time nor version nor variant.
const RANDOM_BITS: [u8; 16] = [0, 0, 0, 0, 0, 0, 0x0f, 0xff, 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

/// Derives the ids of one fork.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

/// Derives the ids of a fork from those in one of the files that it reads, however many forks are between the two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InheritedIds {
    /// The fork of the session whose file it is.
    first: ForkIds,
    /// What the forks of that fork change, all together.
    later: [u8; 16],
}

impl InheritedIds {
    /// The ids of a fork of the session whose file it is.
    pub fn of_fork(ids: &ForkIds) -> Self {
        Self { first: ids.clone(), later: [0; 16] }
    }

    /// The ids of a fork of that fork.
    pub fn then(&self, ids: &ForkIds) -> Self {
        let mut inherited = self.clone();
        for ((byte, key), mask) in inherited.later.iter_mut().zip(&ids.key).zip(&RANDOM_BITS) {
            *byte ^= key & mask;
        }
        inherited
    }

    /// The id that an entry of the file has in the fork.
    pub fn derive_key(&self, original: &IdKey) -> IdKey {
        match self.first.derive_key(original) {
            IdKey::Canonical(mut derived) => {
                derived.iter_mut().zip(&self.later).for_each(|(byte, later)| *byte ^= later);
                IdKey::Canonical(derived)
            }
            other => other,
        }
    }

    /// The bytes that it comes back from.
    pub(crate) fn to_bytes(&self) -> [u8; 48] {
        let mut bytes = [0; 48];
        bytes[..32].copy_from_slice(&self.first.key);
        bytes[32..].copy_from_slice(&self.later);
        bytes
    }

    /// See [`InheritedIds::to_bytes`].
    pub(crate) fn from_bytes(bytes: &[u8; 48]) -> Self {
        let mut inherited = Self { first: ForkIds { key: [0; 32] }, later: [0; 16] };
        inherited.first.key.copy_from_slice(&bytes[..32]);
        inherited.later.copy_from_slice(&bytes[32..]);
        inherited
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
        fn ids_through_several_forks_are_those_of_each_in_turn(id in "e_[0-9a-f]{32}|.*", forks in proptest::collection::vec(".*", 1..5)) {
            let original = IdKey::of(&id);
            let forks: Vec<ForkIds> = forks.into_iter().map(|fork| ForkIds::new(&SessionId::from(fork))).collect();
            let in_turn = forks.iter().fold(original.clone(), |id, fork| fork.derive_key(&id));
            let at_once = forks[1..].iter().fold(InheritedIds::of_fork(&forks[0]), |ids, fork| ids.then(fork));
            prop_assert_eq!(at_once.derive_key(&original), in_turn);
            prop_assert_eq!(InheritedIds::from_bytes(&at_once.to_bytes()), at_once);
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
