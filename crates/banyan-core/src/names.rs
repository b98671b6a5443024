//! Session ids as file names, and back.

use std::collections::HashMap;
use std::sync::LazyLock;

use banyan_model::SessionId;

use crate::hex;

/// A longer encoding would not leave room for a suffix on every file system.
const LONGEST_STEM: usize = 200;

/// How a file system tells names apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// `Trip` and `trip` are two names.
    #[default]
    CaseSensitive,
    /// `Trip` and `trip` are one name, so capital letters of an id are escaped too.
    CaseFolding,
}

/// The name, without suffix, of the file that holds a session.
///
/// Letters, digits, `.`, `_` and `-` stand for themselves, any other byte is `%XX`. An id that makes no safe name
/// (dots only, or too long) is named by its hash behind a `~`, and only its first record tells the id.
pub fn file_stem(session: &SessionId) -> String {
    Naming::CaseSensitive.file_stem(session)
}

/// The session that a file name stands for, or `None` when the name does not tell (`~…`) or is none of ours.
pub fn session_id_of(stem: &str) -> Option<SessionId> {
    Naming::CaseSensitive.session_id_of(stem)
}

impl Naming {
    /// See [`file_stem`].
    pub fn file_stem(self, session: &SessionId) -> String {
        let id = session.as_str();
        let stem = self.escape(id);
        if is_dots(id) || stem.len() > LONGEST_STEM { hashed(id) } else { stem }
    }

    /// See [`session_id_of`].
    pub fn session_id_of(self, stem: &str) -> Option<SessionId> {
        if stem.starts_with('~') {
            return dots_hashed_to(stem);
        }
        let session = legacy_session_id_of(stem)?;
        (self.file_stem(&session) == stem).then_some(session)
    }

    fn escape(self, id: &str) -> String {
        let is_safe = |byte: u8| match byte {
            b'A'..=b'Z' => self == Self::CaseSensitive,
            _ => byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'),
        };
        // Most ids are names as they are, and every commit needs one.
        if id.bytes().all(is_safe) {
            return id.to_owned();
        }
        let mut stem = String::with_capacity(id.len() * 3);
        for byte in id.bytes() {
            if is_safe(byte) {
                stem.push(char::from(byte));
            } else {
                stem.push('%');
                stem.push(upper_digit(byte >> 4));
                stem.push(upper_digit(byte & 15));
            }
        }
        stem
    }
}

fn is_dots(id: &str) -> bool {
    id.bytes().all(|byte| byte == b'.')
}

/// The id of dots only, or the empty one, that is named by this hash. Files of session-manager need not say their id.
fn dots_hashed_to(stem: &str) -> Option<SessionId> {
    static STEMS: LazyLock<HashMap<String, usize>> =
        LazyLock::new(|| (0..=LONGEST_STEM).map(|dots| (hashed(&".".repeat(dots)), dots)).collect());
    STEMS.get(stem).map(|dots| SessionId::from(".".repeat(*dots)))
}

/// The session that session-manager meant by a file name, in any spelling that it reads.
pub fn legacy_session_id_of(stem: &str) -> Option<SessionId> {
    String::from_utf8(unescape(stem.as_bytes())?).ok().map(SessionId::from)
}

fn hashed(id: &str) -> String {
    let hash = blake3::hash(id.as_bytes());
    let mut short = [0; 16];
    short.copy_from_slice(&hash.as_bytes()[..16]);
    format!("~{}", hex::text(&hex::encode16(&short)))
}

fn upper_digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('0').to_ascii_uppercase()
}

fn unescape(stem: &[u8]) -> Option<Vec<u8>> {
    let mut id = Vec::with_capacity(stem.len());
    let mut rest = stem;
    while let [first, tail @ ..] = rest {
        rest = match first {
            b'%' => {
                let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
                id.push(u8::from_str_radix(digits, 16).ok()?);
                &tail[2..]
            }
            _ => {
                id.push(*first);
                tail
            }
        };
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_ids_are_readable_names() {
        assert_eq!(file_stem(&SessionId::from("s_01.a-B")), "s_01.a-B");
        assert_eq!(file_stem(&SessionId::from("chat/ä ~")), "chat%2F%C3%A4%20%7E");
    }

    #[test]
    fn ids_that_make_no_safe_name_are_hashed() {
        for id in ["", ".", "..", "...", &"x".repeat(201), &"ä".repeat(34)] {
            let stem = file_stem(&SessionId::from(id));
            assert_eq!((stem.len(), stem.starts_with('~')), (33, true), "{id:?}");
            let dots = id.bytes().all(|byte| byte == b'.');
            assert_eq!(session_id_of(&stem), dots.then(|| SessionId::from(id)));
        }
    }

    #[test]
    fn ids_that_differ_in_case_have_different_names_where_case_is_folded() {
        let names = Naming::CaseFolding;
        for (id, stem) in [("Trip", "%54rip"), ("trip", "trip"), ("ä", "%C3%A4"), ("TRIP", "%54%52%49%50")] {
            assert_eq!(names.file_stem(&SessionId::from(id)), stem);
            assert_eq!(names.session_id_of(stem), Some(SessionId::from(id)));
        }
        assert_eq!(names.session_id_of("Trip"), None);
        assert_eq!(legacy_session_id_of("%54rip"), Some(SessionId::from("Trip")));
    }

    #[test]
    fn names_that_we_never_write_stand_for_nothing() {
        for stem in ["%zz", "%2", "%2f", "%41", "%FF", "a b", "%+1", "..", "x~"] {
            assert_eq!(session_id_of(stem), None, "{stem}");
        }
    }

    proptest! {
        #[test]
        fn every_name_is_safe_and_tells_its_id_unless_hashed(id in "\\PC{0,80}") {
            let session = SessionId::from(id);
            for naming in [Naming::CaseSensitive, Naming::CaseFolding] {
                let stem = naming.file_stem(&session);
                prop_assert!(stem.len() <= LONGEST_STEM);
                prop_assert!(!stem.contains('/') && !stem.bytes().all(|byte| byte == b'.'));
                match naming.session_id_of(&stem) {
                    Some(back) => prop_assert_eq!(back, session.clone()),
                    None => prop_assert!(stem.starts_with('~')),
                }
            }
        }
    }
}
