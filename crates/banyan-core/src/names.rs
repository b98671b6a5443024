//! Session ids as file names, and back.

use banyan_model::SessionId;

use crate::hex;

/// A longer encoding would not leave room for a suffix on every file system.
const LONGEST_STEM: usize = 200;

/// The name, without suffix, of the file that holds a session.
///
/// Letters, digits, `.`, `_` and `-` stand for themselves, any other byte is `%XX`. An id that makes no safe name
/// (dots only, or too long) is named by its hash behind a `~`, and only its first record tells the id.
pub fn file_stem(session: &SessionId) -> String {
    let id = session.as_str();
    let stem = escape(id);
    let only_dots = id.bytes().all(|byte| byte == b'.');
    if only_dots || stem.len() > LONGEST_STEM { hashed(id) } else { stem }
}

/// The session that a file name stands for, or `None` when the name does not tell (`~…`) or is none of ours.
pub fn session_id_of(stem: &str) -> Option<SessionId> {
    let id = String::from_utf8(unescape(stem.as_bytes())?).ok()?;
    let session = SessionId::from(id);
    (file_stem(&session) == stem).then_some(session)
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

fn escape(id: &str) -> String {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    // Most ids are names as they are, and every commit asks for one.
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
            assert_eq!(session_id_of(&stem), None);
        }
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
            let stem = file_stem(&session);
            prop_assert!(stem.len() <= LONGEST_STEM);
            prop_assert!(!stem.contains('/') && !stem.bytes().all(|byte| byte == b'.'));
            match session_id_of(&stem) {
                Some(back) => prop_assert_eq!(back, session),
                None => prop_assert!(stem.starts_with('~')),
            }
        }
    }
}
