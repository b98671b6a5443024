//! The ids that were given, in few bytes: a log may have very many.

use std::collections::HashSet;

use banyan_model::EntryId;

/// A set of entry ids. Those of another form than ours are known by their hash.
#[derive(Default)]
pub(super) struct Ids(HashSet<Short>);

#[derive(PartialEq, Eq, Hash)]
enum Short {
    /// `e_` and 32 lower-case hex digits.
    Usual([u8; 16]),
    Other([u8; 16]),
}

impl Ids {
    pub(super) fn contains(&self, id: &EntryId) -> bool {
        self.0.contains(&Short::of(id.as_str()))
    }

    /// Adds an id, and says whether it is new.
    pub(super) fn insert(&mut self, id: &EntryId) -> bool {
        self.0.insert(Short::of(id.as_str()))
    }
}

impl Short {
    fn of(id: &str) -> Self {
        match id.strip_prefix("e_").and_then(usual) {
            Some(bytes) => Self::Usual(bytes),
            None => Self::Other(blake3::hash(id.as_bytes()).as_bytes().first_chunk().copied().unwrap_or_default()),
        }
    }
}

fn usual(digits: &str) -> Option<[u8; 16]> {
    let digits: &[u8; 32] = digits.as_bytes().try_into().ok()?;
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_any_form_are_told_from_each_other() {
        let all =
            ["e_00000000000000000000000000000001", "e_0000000000000000000000000000000A", "e_", "", "u1", "ü"];
        let mut ids = Ids::default();
        for (at, id) in all.iter().enumerate() {
            assert!(!ids.contains(&EntryId::from(*id)), "{id}");
            assert!(ids.insert(&EntryId::from(*id)), "{id}");
            assert!(all[..=at].iter().all(|id| ids.contains(&EntryId::from(*id))));
        }
    }
}
