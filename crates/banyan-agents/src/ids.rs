//! Ids that are the same whenever the same thing is read.

use banyan_model::{EntryId, SessionId, SessionMeta};
use uuid::Uuid;

use crate::Problem;

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

/// A UUID for a session that goes to an agent: the one that it has there already, else one that is made of its id here, else another
/// one if those are taken.
pub(crate) fn unused_uuid(
    native: Option<&str>,
    session: &SessionId,
    now_ms: i64,
    is_taken: &dyn Fn(&str) -> Result<bool, Problem>,
) -> Result<String, Problem> {
    let made = |salt: String| {
        let hash = blake3::hash(format!("{session}\0{salt}").as_bytes());
        let bytes = hash.as_bytes().first_chunk::<16>().copied().unwrap_or_default();
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    };
    let first =
        native.filter(|native| Uuid::try_parse(native).is_ok()).map_or_else(|| made(String::new()), str::to_owned);
    let mut id = first;
    let mut count = 0_u64;
    while is_taken(&id)? {
        id = made(format!("{now_ms} {count}"));
        count += 1;
    }
    Ok(id)
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
