//! One line: both readers agree, and what was read can be written and read again.

#![no_main]

use banyan_core::record::{
    Envelope, Head, HeadKind, Record, Stored, StoredRecord, body_text, encode, parse_full, parse_full_open, seal,
};
use banyan_fuzz::lines;
use banyan_model::EntryId;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // A line has no line breaks within.
    if data.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return;
    }
    let line = lines::sealed(data);
    let _ = parse_full_open(data);
    let _ = parse_full_open(&line);

    let (head, full) = (Head::parse(&line), parse_full(&line));
    match (&head, &full) {
        (Ok(head), Ok(stored)) => agree(&line, head, stored),
        (Ok(head), Err(_)) => look(&line, head),
        (Err(_), full) => assert!(full.is_err(), "only the whole line is readable: {full:?}"),
    }
});

fn look(line: &[u8], head: &Head<'_>) {
    let _ = (body_text(line, head), head.origin(line), head.weight());
    if let HeadKind::Grew(grew) = &head.kind {
        let _ = grew.last_revision();
    }
}

fn agree(line: &[u8], head: &Head<'_>, stored: &Stored) {
    look(line, head);
    assert_eq!(head.envelope, stored.envelope);
    match (&stored.record, stored.envelope) {
        (StoredRecord::Own(record), Some(envelope)) => {
            assert_eq!(id_in(&head.kind), id_of(record));
            written_and_read(record, envelope);
        }
        (StoredRecord::Own(_), None) => panic!("a record of ours without an envelope"),
        (StoredRecord::Legacy(_), envelope) => assert_eq!(envelope, None),
        (StoredRecord::Unknown(name), _) => assert_eq!(head.kind, HeadKind::Unknown(name.into())),
    }
}

fn written_and_read(record: &Record, envelope: Envelope) {
    let mut line = Vec::new();
    encode(record, envelope.seq, envelope.time_ms, &mut line);
    seal(&mut line, 0, envelope.commit);
    assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));

    let again = match parse_full(&line) {
        Ok(again) => again,
        Err(fault) => panic!("a record cannot be read back: {fault}\n{}", String::from_utf8_lossy(&line)),
    };
    assert_eq!(again.record, StoredRecord::Own(record.clone()));
    // Times before 1970 and commits of more than 48 bits are never written.
    if envelope.time_ms >= 0 && envelope.commit.0 < 1 << 48 {
        assert_eq!(again.envelope, Some(envelope));
    }
}

fn id_in(kind: &HeadKind<'_>) -> Option<EntryId> {
    match kind {
        HeadKind::Message { entry_id, .. }
        | HeadKind::Custom { entry_id, .. }
        | HeadKind::Updated { entry_id, .. }
        | HeadKind::Settled { entry_id, .. }
        | HeadKind::LeafMoved { entry_id }
        | HeadKind::Adopted { entry_id } => Some(entry_id.as_ref().into()),
        HeadKind::Grew(grew) => Some(grew.entry_id.as_ref().into()),
        _ => None,
    }
}

fn id_of(record: &Record) -> Option<EntryId> {
    match record {
        Record::Message(record) => Some(record.entry_id.clone()),
        Record::Custom(record) => Some(record.entry_id.clone()),
        Record::Updated(record) => Some(record.entry_id.clone()),
        Record::Settled(record) => Some(record.entry_id.clone()),
        Record::Grew(record) => Some(record.entry_id.clone()),
        Record::LeafMoved(record) => Some(record.entry_id.clone()),
        Record::Adopted(record) => Some(record.entry_id.clone()),
        _ => None,
    }
}
