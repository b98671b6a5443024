//! Which entries make which message, found without searching.

use std::fmt::Write as _;

use banyan_model::EntryId;

use super::message::Speaker;

/// The interaction that a question of Banyan's own begins: its entry id, as a UUID where it is one.
pub fn interaction_id(first: &EntryId) -> String {
    first.as_uuid().map_or_else(|| first.as_str().to_owned(), |uuid| uuid.hyphenated().to_string())
}

/// The id of the `index`th entry that is made of a message, always the same for the same message.
pub fn entry_id(interaction_id: &str, role: Speaker, index: usize) -> EntryId {
    let mut hasher = blake3::Hasher::new_derive_key("banyan 2026 entries of a history message");
    for text in [interaction_id, role.as_str(), &index.to_string()] {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    let mut id = String::from("e_");
    for byte in hasher.finalize().as_bytes().iter().take(16) {
        // Writing to a string does not fail.
        let _ = write!(id, "{byte:02x}");
    }
    EntryId::from(id)
}

/// The entries from which a projector finds the message again, if it is there: the first that exists on the path is the one
/// to start at. For an answer that may be its question.
pub fn starts(interaction_id: &str, role: Speaker) -> Vec<EntryId> {
    let question = entry_id(interaction_id, Speaker::User, 0);
    let mut starts = match role {
        Speaker::User => vec![question],
        Speaker::Assistant => vec![entry_id(interaction_id, Speaker::Assistant, 0), question],
    };
    starts.push(native(interaction_id));
    starts
}

/// The entry whose id became this interaction's.
fn native(interaction_id: &str) -> EntryId {
    let digits = interaction_id.replace('-', "");
    let candidate = EntryId::from(format!("e_{digits}"));
    if self::interaction_id(&candidate) == interaction_id { candidate } else { EntryId::from(interaction_id) }
}
