//! Ids of contexts, and of the sessions that they name.

use banyan_model::SessionId;

/// The longest id that fits its header.
const LONGEST: usize = 64;

/// The id that a context goes by here: its own if the schema takes it, otherwise one that always follows from its own.
pub fn canonical_id(given: &str) -> String {
    if is_schema_id(given) { given.to_owned() } else { hashed(given) }
}

/// The id of the context of a session that was never given one. Ids with 32 hex digits can be read back.
pub fn id_of_session(session_id: &SessionId) -> String {
    let text = session_id.as_str();
    let plain = match text.strip_prefix("s_") {
        Some(digits) => digits.to_owned(),
        None if is_dashed(text) => text.replace('-', ""),
        None => return hashed(text),
    };
    if plain.len() == 32 && is_hex(&plain) { format!("ocp-{plain}") } else { hashed(text) }
}

/// The sessions that an id may have been made of by [`id_of_session`].
pub fn sessions_named_by(context_id: &str) -> Vec<SessionId> {
    let Some(digits) = context_id.strip_prefix("ocp-").filter(|digits| digits.len() == 32 && is_hex(digits))
    else {
        return Vec::new();
    };
    let dashed = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-");
    vec![SessionId::from(format!("s_{digits}")), SessionId::from(dashed)]
}

/// Whether the schema takes it, and a header has room for it.
fn is_schema_id(id: &str) -> bool {
    id.strip_prefix("ocp-").is_some_and(|digits| digits.len() >= 8 && is_hex(digits)) && id.len() <= LONGEST
}

/// Whether the header takes it.
pub(super) fn is_header_id(id: &str) -> bool {
    (1..=LONGEST).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_dashed(text: &str) -> bool {
    text.len() == 36 && text.bytes().enumerate().all(|(at, byte)| (byte == b'-') == matches!(at, 8 | 13 | 18 | 23))
}

fn hashed(text: &str) -> String {
    let digest = blake3::derive_key("banyan 2026 the id of an OCP context", text.as_bytes());
    format!("ocp-{}", &blake3::Hash::from(digest).to_hex()[..32])
}
