//! Ids that are the same whenever the same thing is read.

use banyan_model::{EntryId, SessionId, SessionMeta};
use uuid::Uuid;

/// The id of an agent's session, from the agent's own id for it, which must be like no other's.
pub fn session_id(agent: &str, native: &str) -> SessionId {
    SessionId::from(format!("{agent}_{native}"))
}

/// The id of an entry, from its session and whatever tells it from the session's other entries.
pub fn entry_id(session: &SessionId, native: &str) -> EntryId {
    let mut hasher = blake3::Hasher::new();
    hasher.update(session.as_str().as_bytes()).update(b"\0").update(native.as_bytes());
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    EntryId::from_uuid(Uuid::from_bytes(bytes))
}

/// A new id of an agent's own form for a session: a UUID whose order is that of creation.
pub(crate) fn native_uuid(meta: &SessionMeta, now_ms: i64) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(meta.session_id.as_str().as_bytes()).update(&now_ms.to_le_bytes());
    let mut random = [0; 10];
    hasher.finalize_xof().fill(&mut random);
    let created = u64::try_from(meta.created_at).unwrap_or_default();
    uuid::Builder::from_unix_timestamp_millis(created, &random).into_uuid().to_string()
}
