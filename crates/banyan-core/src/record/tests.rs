//! Records survive the way to a line and back; damaged lines are told, and tell their structure.

use banyan_model::{
    AgentMessage, AttachmentMeta, CommitNo, EntryId, Json, Object, Raw, Revision, Role, Seq, SessionMeta,
    SessionStatus,
};
use proptest::prelude::*;

use super::*;
use crate::blobs::Encoding;
use crate::testing::{object, user};

const TIME: i64 = 1_794_774_600_123;

pub(super) fn line_of(record: &Record) -> Vec<u8> {
    let mut line = Vec::new();
    encode(record, Seq(3), TIME, &mut line);
    seal(&mut line, 0, CommitNo(0xabc));
    line
}

fn message() -> Raw<AgentMessage> {
    Raw::of(&user("hi \"there\"\n")).unwrap()
}

fn message_record() -> Record {
    Record::Message(MessageRecord {
        entry_id: "e_1".into(),
        parent_id: Some("e_0".into()),
        role: Role::User,
        origin: Some(object(r#"{"by":"a"}"#)),
        blobs: Vec::new(),
        message: message(),
    })
}

fn entry_put() -> Record {
    let blob = BlobRef { pointer: "/a".into(), hash: "00".into(), len: 9, encoding: Encoding::Text };
    Record::EntryPut(EntryPut {
        entry_id: "e_1".into(),
        parent_id: Some("e_0".into()),
        timestamp: -5,
        revision: Revision(7),
        origin: Some(object(r#"{"by":"a"}"#).into()),
        blobs: vec![blob],
        body: PutBody::Message { role: Role::User, message: message() },
    })
}

pub(super) fn one_of_each() -> Vec<Record> {
    let blob = BlobRef { pointer: "/a".into(), hash: "00".into(), len: 9, encoding: Encoding::Base64 };
    let base = Base {
        session_id: "s_0".into(),
        born: Born([1; 16]),
        seq: Seq(9),
        entry_id: "e".into(),
        entries: 5,
        messages: 4,
    };
    let add = |text: &str, origin| Add { text: text.into(), ms_since: 12, commits_since: 3, origin };
    vec![
        Record::Created(Created {
            session_id: "s_1/ü".into(),
            born: Born([2; 16]),
            title: "t".into(),
            description: String::new(),
            metadata: Some(object(r#"{"b":1,"a":[2]}"#)),
            base: Some(base),
        }),
        message_record(),
        Record::Custom(CustomRecord {
            entry_id: "e \"quoted\"".into(),
            parent_id: None,
            origin: None,
            blobs: vec![blob.clone()],
            custom_type: "note".into(),
            data: Json::from_text(r#"{"z":1.50,"a":""}"#).unwrap(),
        }),
        Record::Updated(UpdatedRecord {
            entry_id: "e_1".into(),
            revision: Revision(4),
            origin: None,
            blobs: vec![blob],
            message: message(),
        }),
        Record::Grew(Grew {
            entry_id: "e_1".into(),
            block: 1,
            revision: Revision(5),
            adds: vec![add("x\n", None), add("", Some(Object::new()))],
        }),
        Record::Settled(Settled {
            entry_id: "e_1".into(),
            revision: Revision(6),
            blobs: vec![],
            message: message(),
        }),
        Record::LeafMoved(LeafMoved { entry_id: "".into() }),
        Record::MetaSet(MetaSet { title: Some("new".into()), description: None, metadata: Some(Object::new()) }),
        Record::StatusSet(StatusSet { status: SessionStatus::Error, reason: Some("why".into()) }),
        Record::Attached(Attached {
            attachment: AttachmentMeta {
                attachment_id: "a_1".into(),
                session_id: "s_1".into(),
                name: "n".into(),
                mime: "text/plain".into(),
                size: 3,
                sha256: "ff".into(),
                created_at: 7,
            },
            blob: "ee".into(),
        }),
        Record::Detached(Detached { attachment_id: "a_1".into() }),
        Record::Adopted(Adopted { entry_id: "e_9".into() }),
        Record::Begun(Begun { session_id: "s_1/ü".into(), born: Born([3; 16]), import: false }),
        Record::Begun(Begun { session_id: "s_2".into(), born: Born([4; 16]), import: true }),
        Record::MetaPut(MetaPut {
            meta: SessionMeta {
                session_id: "s_1".into(),
                title: "t".into(),
                description: "d".into(),
                status: SessionStatus::Error,
                status_reason: Some("why".into()),
                metadata: Some(object(r#"{"b":1.5}"#)),
                forked_from: Some("s_0".into()),
                message_count: 3,
                created_at: -1,
                updated_at: 2,
            },
        }),
        entry_put(),
        Record::EntryPut(EntryPut {
            entry_id: "e_2".into(),
            parent_id: None,
            timestamp: 5,
            revision: Revision(0),
            origin: None,
            blobs: Vec::new(),
            body: PutBody::Custom { custom_type: "note".into(), data: Json::null() },
        }),
        Record::LeafPut(LeafPut { entry_id: Some("e \"quoted\"".into()) }),
        Record::LeafPut(LeafPut { entry_id: None }),
    ]
}

#[test]
fn a_message_line_reads_like_this() {
    let expected = concat!(
        r#"{"schema_version":1,"seq":3,"time":"2026-11-15T20:30:00.123Z","commit":"000000000abc","type":"message","#,
        r#""entry_id":"e_1","parent_id":"e_0","role":"user","origin":{"by":"a"},"#,
        r#""message":{"role":"user","content":[{"type":"text","text":"hi \"there\"\n"}],"timestamp":7}"#,
    );
    let line = String::from_utf8(line_of(&message_record())).unwrap();
    let crc = format!(",\"crc\":\"{:08x}\"}}\n", crc32c::crc32c(expected.as_bytes()));
    assert_eq!(line, format!("{expected}{crc}"));
}

#[test]
fn every_record_comes_back_whole() {
    let envelope = Some(Envelope { seq: Seq(3), time_ms: TIME, commit: CommitNo(0xabc) });
    for record in one_of_each() {
        let line = line_of(&record);
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(parse_full(&line), Ok(Stored { envelope, record: StoredRecord::Own(record) }));
    }
}

#[test]
fn a_head_knows_where_the_body_is_and_how_much_it_weighs() {
    for record in one_of_each() {
        let line = line_of(&record);
        let head = Head::parse(&line).unwrap();
        let (body, elsewhere) = match &record {
            Record::Message(record) => (Some(record.message.get()), 0),
            Record::Updated(record) => (Some(record.message.get()), 9),
            Record::Settled(record) => (Some(record.message.get()), 0),
            Record::Custom(record) => (Some(record.data.get()), 9),
            Record::EntryPut(EntryPut { body: PutBody::Message { message, .. }, .. }) => (Some(message.get()), 9),
            Record::EntryPut(EntryPut { body: PutBody::Custom { data, .. }, .. }) => (Some(data.get()), 0),
            Record::Grew(_) => continue,
            _ => (None, 0),
        };
        assert_eq!(body_text(&line, &head), body);
        assert_eq!(head.weight(), body.map_or(0, str::len) as u64 + elsewhere);
    }
}

#[test]
fn given_an_open_line_adds_go_behind_it_until_it_is_closed() {
    let mut grew = Grew {
        entry_id: "e".into(),
        block: 0,
        revision: Revision(1),
        adds: vec![Add { text: "Hel".into(), ms_since: 0, commits_since: 0, origin: None }],
    };
    let mut line = Vec::new();
    open_grew(&grew, Seq(3), TIME, CommitNo(7), &mut line);
    line.extend_from_slice(&encode_add(AddPlace::Next, "lo", 12, 5, None));
    grew.adds.push(Add { text: "lo".into(), ms_since: 12, commits_since: 5, origin: None });

    let open = parse_full_open(&line).unwrap();
    let closing = close_grew(&line);
    line.extend_from_slice(&closing);

    let envelope = Some(Envelope { seq: Seq(3), time_ms: TIME, commit: CommitNo(7) });
    let stored = Stored { envelope, record: StoredRecord::Own(Record::Grew(grew.clone())) };
    assert_eq!(open, stored);
    assert_eq!(parse_full(&line), Ok(stored));
    let mut at_once = Vec::new();
    encode(&Record::Grew(grew), Seq(3), TIME, &mut at_once);
    seal(&mut at_once, 0, CommitNo(7));
    assert_eq!(String::from_utf8(line), String::from_utf8(at_once));
}

#[test]
fn a_grew_line_in_sum() {
    let mut line = Vec::new();
    encode(&one_of_each()[4], Seq(3), TIME, &mut line);
    seal(&mut line, 0, CommitNo(7));
    let expected = GrewHead {
        entry_id: "e_1".into(),
        block: 1,
        revision: Revision(5),
        adds: 2,
        bytes: 3,
        last_time_ms: TIME + 12,
        last_commit: CommitNo(10),
    };
    assert_eq!(Head::parse(&line).unwrap().kind, HeadKind::Grew(expected));
}

#[test]
fn a_type_that_is_not_known_is_kept() {
    let mut line = br#"{"schema_version":1,"seq":3,"time":"2026-11-15T20:30:00.123Z","commit":"00000000000a","type":"novel","x":{"message":1}"#.to_vec();
    let tail = crc::tail(&line);
    line.extend_from_slice(&tail);
    let stored = parse_full(&line).unwrap();
    assert_eq!(stored.record, StoredRecord::Unknown("novel".into()));
}

#[test]
fn a_line_of_a_later_version_is_newer_and_no_damage_and_keeps_what_it_may_use() {
    let hash = "ab".repeat(32);
    let mut line = br#"{"schema_version":2,"seq":3,"time":"2026-11-15T20:30:00.123Z","commit":"00000000000a","type":"message","needs":"0.9.0","entry_id":"e_1","parent_id":null,"role":"user","at":""#.to_vec();
    line.extend_from_slice(hash.as_bytes());
    line.push(b'"');
    let tail = crc::tail(&line);
    line.extend_from_slice(&tail);
    let head = Head::parse(&line).unwrap();
    assert_eq!(head.envelope, Some(Envelope { seq: Seq(3), time_ms: TIME, commit: CommitNo(10) }));
    assert_eq!(head.blobs.iter().map(|blob| blob.hash.clone()).collect::<Vec<_>>(), [hash]);
    let what = SalvagedWhat::Entry { entry_id: "e_1".into(), parent_id: None, kind: crate::NodeKind::User };
    let newer = NewerRecord {
        unknown: UnknownForm::SchemaVersion("2".into()),
        needs: Some("0.9.0".into()),
        salvage: Some(Salvaged { seq: Some(Seq(3)), time_ms: Some(TIME), what, metadata: MetadataEffect::None }),
    };
    assert!(!newer.may_set_metadata());
    assert_eq!(head.kind, HeadKind::Newer(Box::new(newer)));
    // A version that changed by itself is damage.
    let damaged = String::from_utf8(line).unwrap().replacen(":2,", ":3,", 1);
    assert_eq!(Head::parse(damaged.as_bytes()).unwrap_err().reason, FaultReason::ChecksumDiffers);
}

#[test]
fn a_type_that_is_not_known_is_newer_if_it_names_the_version_that_it_needs() {
    let begins =
        r#"{"schema_version":1,"seq":3,"time":"2026-11-15T20:30:00.123Z","commit":"00000000000a","type":"novel""#;
    for (needs, understood_by) in [(r#","needs":"1.2.3""#, Some("1.2.3")), (r#","needs":true"#, None)] {
        let mut line = format!(r#"{begins}{needs},"x":{{"message":1}}"#).into_bytes();
        let tail = crc::tail(&line);
        line.extend_from_slice(&tail);
        let HeadKind::Newer(newer) = Head::parse(&line).unwrap().kind else { panic!("it is newer") };
        assert_eq!(newer.unknown, UnknownForm::Type("novel".into()));
        assert_eq!(newer.needs.as_deref(), understood_by);
        assert!(newer.may_set_metadata());
    }
}

#[test]
fn given_damaged_text_the_structure_is_salvaged_and_the_text_is_not() {
    let line = String::from_utf8(line_of(&message_record())).unwrap().replace("there", "thexe").into_bytes();
    let fault = Head::parse(&line).unwrap_err();
    let what =
        SalvagedWhat::Entry { entry_id: "e_1".into(), parent_id: Some("e_0".into()), kind: crate::NodeKind::User };
    let salvage = Some(Salvaged { seq: Some(Seq(3)), time_ms: Some(TIME), what, metadata: MetadataEffect::None });
    assert_eq!(fault, LineFault { reason: FaultReason::ChecksumDiffers, salvage });
}

#[test]
fn given_a_damaged_put_its_entry_is_salvaged() {
    let line = String::from_utf8(line_of(&entry_put())).unwrap().replace("there", "thexe").into_bytes();
    let what =
        SalvagedWhat::Put { entry_id: "e_1".into(), parent_id: Some("e_0".into()), kind: crate::NodeKind::User };
    assert_eq!(Head::parse(&line).unwrap_err().salvage.unwrap().what, what);
}

#[test]
fn damage_is_told_in_plain_words() {
    let line = line_of(&message_record());
    let mut not_text = line.clone();
    not_text[200] = 0xff;
    let cases = [
        (not_text, "not UTF-8 text"),
        (line[..150].to_vec(), "not a JSON object: EOF while parsing a string at line 1 column 150"),
        (b"hello".to_vec(), "not a JSON object: expected value at line 1 column 1"),
        (line.replace_last(b"\"crc\"", b"\"crx\""), "no checksum at the end of the line"),
        (line.replace_last(b"hi", b"ho"), "checksum mismatch: the line is not as it was written"),
        (b"{\"type\":\"novel\"}".to_vec(), "not a record of session-manager: unknown variant `novel`"),
    ];
    for (line, words) in cases {
        let told = Head::parse(&line).unwrap_err().to_string();
        assert!(told.starts_with(words), "{told}");
    }
}

trait ReplaceLast {
    fn replace_last(&self, from: &[u8], to: &[u8]) -> Vec<u8>;
}

impl ReplaceLast for Vec<u8> {
    fn replace_last(&self, from: &[u8], to: &[u8]) -> Vec<u8> {
        let at = self.windows(from.len()).rposition(|window| window == from).unwrap();
        let mut changed = self.clone();
        changed[at..at + to.len()].copy_from_slice(to);
        changed
    }
}

#[test]
fn lines_of_session_manager_are_read_with_their_bodies_left_alone() {
    let line = br#"{"type":"entry","entry":{"kind":"message","id":"e1","parent_id":null,"timestamp":5,"origin":{"a":1},"message":{"role":"assistant","content":[]}}}"#;
    let head = Head::parse(line).unwrap();
    assert_eq!(body_text(line, &head), Some(r#"{"role":"assistant","content":[]}"#));
    assert_eq!(head.origin(line), Some(object(r#"{"a":1}"#).into()));
    let entry = LegacyEntryHead {
        id: EntryId::from("e1"),
        parent_id: None,
        timestamp: 5,
        revision: Revision(0),
        kind: crate::NodeKind::Assistant,
        custom_type: None,
    };
    assert_eq!(head.kind, HeadKind::Legacy(Box::new(LegacyHead::Entry(entry))));
}

#[test]
fn custom_data_that_session_manager_left_out_is_null() {
    let line =
        br#"{"type":"entry","entry":{"kind":"custom","id":"e","parent_id":"p","timestamp":5,"custom_type":"t"}}"#;
    let head = Head::parse(line).unwrap();
    assert_eq!((body_text(line, &head), head.weight()), (Some("null"), 0));
}

#[test]
fn strings_taken_out_of_a_record_go_back() {
    let mut record = message_record();
    let (short, pieces) = record.take_out_blobs(5).unwrap();
    assert_eq!(short.blobs().unwrap(), [pieces[0].blob_ref()]);
    let mut whole = short;
    whole.put_back_blobs(|_| Ok(pieces[0].bytes.clone())).unwrap();
    assert_eq!(whole, record);
    record.put_back_blobs(|_| unreachable!("nothing was taken out")).unwrap();
    let Record::EntryPut(put) = entry_put() else { unreachable!("an entry is put") };
    let record = Record::EntryPut(EntryPut { blobs: Vec::new(), ..put });
    let (mut short, pieces) = record.take_out_blobs(5).unwrap();
    assert_ne!(short, record);
    short.put_back_blobs(|_| Ok(pieces[0].bytes.clone())).unwrap();
    assert_eq!(short, record);
}

#[test]
fn the_head_of_a_written_line_is_the_head_that_a_reader_gets() {
    let envelope = Envelope { seq: Seq(3), time_ms: TIME, commit: CommitNo(0xabc) };
    for record in one_of_each() {
        let mut line = b"before it ".to_vec();
        let start = line.len();
        let spots = encode(&record, envelope.seq, envelope.time_ms, &mut line);
        seal(&mut line, start, envelope.commit);
        match Head::written(&record, envelope, &spots) {
            Some(head) => assert_eq!(head, Head::parse(&line[start..]).unwrap()),
            None => assert!(matches!(record, Record::Grew(_))),
        }
    }
}

proptest! {
    #[test]
    fn a_callers_numbers_are_as_a_reader_gets_them(number: f64, text in ".*") {
        let record = Record::MetaSet(MetaSet {
            title: Some(text),
            description: None,
            metadata: Some([("number".to_owned(), serde_json::Value::from(number))].into_iter().collect()),
        });
        let envelope = Envelope { seq: Seq(3), time_ms: TIME, commit: CommitNo(0xabc) };
        let head = Head::written(&record, envelope, &Spots::default()).unwrap();
        let line = line_of(&record);
        prop_assert_eq!(head, Head::parse(&line).unwrap());
    }

    #[test]
    fn any_ids_and_texts_come_back(entry in ".*", parent in proptest::option::of(".*"), text in ".*") {
        let record = Record::Message(MessageRecord {
            entry_id: entry.into(),
            parent_id: parent.map(EntryId::from),
            role: Role::User,
            origin: None,
            blobs: Vec::new(),
            message: Raw::of(&user(&text)).unwrap(),
        });
        prop_assert_eq!(parse_full(&line_of(&record)).unwrap().record, StoredRecord::Own(record));
    }

    #[test]
    fn one_changed_byte_is_always_noticed(at: proptest::sample::Index, flip in 1_u8..) {
        let mut line = line_of(&message_record());
        let at = at.index(line.len() - 1);
        line[at] ^= flip;
        prop_assert!(Head::parse(&line).is_err());
    }

    #[test]
    fn no_bytes_make_a_reader_stumble(line: Vec<u8>) {
        let _ = parse_full(&line);
        let _ = parse_full_open(&line);
    }
}

#[test]
fn a_record_that_an_agent_kept_is_told_by_its_type_and_origin() {
    let line = |rest: &str| {
        let start = r#"{"schema_version":1,"seq":2,"time":"2026-11-18T03:39:44.776Z","commit":"000000000001","type":"entry-put","#;
        format!(r#"{start}"entry_id":"e_1","parent_id":null,"timestamp":1,"revision":0,{rest},"crc":"00000000"}}"#)
    };
    let kept = line(r#""origin":{"codex":12},"custom_type":"codex.event_msg","data":{"a":1}"#);
    assert!(holds_kept_record(kept.as_bytes()));
    for other in [
        r#""custom_type":"codex.event_msg","data":1"#,
        r#""origin":{"codex":12},"custom_type":"codex","data":1"#,
        r#""origin":{"claude":12},"custom_type":"codex.event_msg","data":1"#,
        r#""origin":{"codex":12},"custom_type":"cod.event_msg","data":1"#,
        r#""role":"custom","origin":{"codex":1},"message":{"origin":{"codex":1},"custom_type":"codex.x"}"#,
        r#""role":"user","message":{"a":1,"origin":{"codex":1},"custom_type":"codex.x"}"#,
    ] {
        assert!(!holds_kept_record(line(other).as_bytes()), "{other}");
    }
}
