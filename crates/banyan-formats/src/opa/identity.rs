//! Ids that are always the same for the same thing.

use banyan_model::EntryId;
use uuid::{Builder, Uuid};

/// A UUID that these words stand for. It has the form of a random one (version 4), which is what the format asks for.
pub(crate) fn uuid(kind: &str, parts: &[&str]) -> Uuid {
    let mut hasher = blake3::Hasher::new_derive_key("banyan 2026 names of what an OPA archive holds");
    for text in std::iter::once(&kind).chain(parts) {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    Builder::from_random_bytes(bytes).into_uuid()
}

/// The id of an entry that is made of a message: which message of which session, and which of the entries made of it.
pub(crate) fn entry(session: &str, message: u64, id: &str, part: usize) -> EntryId {
    EntryId::from_uuid(uuid("entry", &[session, &message.to_string(), id, &part.to_string()]))
}

/// What a message looked like, to see later whether it still does.
pub(crate) fn mark(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().as_str()[..32].to_owned()
}
