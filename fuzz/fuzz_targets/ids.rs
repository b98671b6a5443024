//! Positions, file names and ids: each text form leads back, and a fork never gives two entries one id.

#![no_main]

use banyan_core::fork_ids::ForkIds;
use banyan_core::{Born, IdKey, names};
use banyan_model::{AttachmentId, CommitNo, EntryId, Position, SessionId};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((commit, rest)) = data.split_first_chunk()
        && let Some(index) = rest.first_chunk()
    {
        position(u64::from_le_bytes(*commit) & 0xffff_ffff_ffff, u32::from_le_bytes(*index) & 0xff_ffff);
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    texts(text);
    let mut parts = text.splitn(3, '\n');
    if let (Some(fork), Some(one), Some(two)) = (parts.next(), parts.next(), parts.next()) {
        fork_ids(fork, one, two);
    }
});

fn position(commit: u64, index: u32) {
    let position = Position::new(CommitNo(commit), index);
    assert_eq!(position.to_string().parse(), Ok(position));
}

fn texts(text: &str) {
    match text.parse::<Position>() {
        Ok(position) if text == "0" => assert_eq!(position, Position::BEGINNING),
        Ok(position) => assert_eq!(position.to_string(), text),
        Err(_) => {}
    }
    if let Ok(born) = text.parse::<Born>() {
        assert_eq!(born.to_string(), text);
    }
    file_names(text);
    assert_eq!(IdKey::of(text).to_entry_id(), EntryId::from(text));
    assert_eq!(IdKey::of(text).starts_with("e_"), text.starts_with("e_"));
    if let Some(uuid) = SessionId::from(text).as_uuid() {
        assert_eq!(SessionId::from_uuid(uuid), text);
    }
    if let Some(uuid) = EntryId::from(text).as_uuid() {
        assert_eq!(EntryId::from_uuid(uuid), text);
    }
    if let Some(uuid) = AttachmentId::from(text).as_uuid() {
        assert_eq!(AttachmentId::from_uuid(uuid), text);
    }
}

fn file_names(text: &str) {
    let _ = names::legacy_session_id_of(text);
    if let Some(session) = names::session_id_of(text) {
        assert_eq!(names::file_stem(&session), text);
    }
    let session = SessionId::from(text);
    let stem = names::file_stem(&session);
    assert!(stem.len() <= 200 && !stem.contains(['/', '\\', '\0']) && !stem.bytes().all(|byte| byte == b'.'));
    match names::session_id_of(&stem) {
        Some(back) => assert_eq!(back, session),
        None => assert!(stem.starts_with('~')),
    }
}

fn fork_ids(fork: &str, one: &str, two: &str) {
    let ids = ForkIds::new(&SessionId::from(fork));
    let derive = |id: &str| ids.derive(&EntryId::from(id));
    assert_eq!(one == two, derive(one) == derive(two));
    if matches!(IdKey::of(one), IdKey::Canonical(_)) {
        assert_eq!(derive(derive(one).as_str()), one);
    }
}
