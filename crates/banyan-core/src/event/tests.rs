//! What subscribers are told about each record, live and replayed.

use banyan_model::{
    CommitNo, ContentBlock, EventPayload, EventType, MetaUpdatedEvent, Position, Revision, SessionStatus,
    SetMetaRequest, SetStatusRequest, StatusChangedEvent,
};
use serde_json::{Value, json};

use super::*;
use crate::decide;
use crate::record::{StoredRecord, parse_full, parse_full_open};
use crate::testing::{Session, custom, entry_as_of, object};

/// Everything that happened, told from the file.
fn replayed(session: &Session) -> Vec<Event> {
    let mut narrator = Narrator::new(session.state.session_id().clone());
    let mut events = Vec::new();
    for line in session.file.split_inclusive(|byte| *byte == b'\n') {
        let stored = if line.ends_with(b"\n") { parse_full(line) } else { parse_full_open(line) }.unwrap();
        let StoredRecord::Own(record) = stored.record else { panic!("not ours") };
        let mut read = |id: &EntryId, seq: Seq| Ok(entry_as_of(&session.state, &session.file, id, seq));
        events.extend(narrator.tell(stored.envelope.unwrap(), &record, &mut read).unwrap());
    }
    events
}

fn payloads(events: &[Event]) -> Vec<Value> {
    events.iter().map(|event| serde_json::to_value(&event.payload).unwrap()).collect()
}

#[test]
fn each_mutation_is_told_as_the_contract_says() {
    let mut session = Session::created();
    let said = session.append("a");
    let note = session.append_with(custom("note", "{\"x\":1}")).unwrap();
    session.update(&said, vec![ContentBlock::text("b")]);
    let status =
        SetStatusRequest { session_id: "any".into(), status: SessionStatus::Error, reason: Some("r".into()) };
    session.decide(|state, ctx| decide::set_status(state, status, ctx)).unwrap();
    let id = session.state.session_id().clone();
    let message =
        |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 7});
    let expected = vec![
        json!({"session_id": id, "title": "", "description": "", "status": "idle", "created_at": 1_000}),
        json!({"session_id": id, "entry_id": said, "parent_id": null, "message": message("a"), "timestamp": 1_001}),
        json!({"session_id": id, "entry_id": note, "parent_id": said, "custom": {"custom_type": "note", "data": {"x": 1}}, "timestamp": 1_002}),
        json!({"session_id": id, "entry_id": said, "message": message("b"), "revision": 1, "timestamp": 1_003}),
        json!({"session_id": id, "status": "error", "previous_status": "idle", "status_reason": "r", "timestamp": 1_004}),
    ];
    assert_eq!(payloads(&replayed(&session)), expected);
}

#[test]
fn each_added_text_is_told_as_the_whole_message_in_its_own_commit() {
    let mut session = Session::created();
    let id = session.answer("");
    for token in ["Hel", "lo"] {
        session.extend(&id, token);
    }
    session.append("ends it");
    let events = replayed(&session);
    let grown: Vec<(u64, String, u64, i64)> = events
        .iter()
        .filter_map(|event| match &event.payload {
            EventPayload::MessageUpdated(updated) => {
                let text = crate::testing::text(&updated.message.parse().unwrap());
                Some((event.position.commit.0, text, updated.revision.0, updated.timestamp))
            }
            _ => None,
        })
        .collect();
    assert_eq!(grown, [(3, "Hel".into(), 1, 1_002), (4, "Hello".into(), 2, 1_003)]);
    assert_eq!(events.len(), 5);
}

#[test]
fn a_text_added_live_is_told_as_its_replay_will_be() {
    let mut session = Session::created();
    let id = session.answer("");
    session.extend(&id, "Hel");
    session.extend(&id, "lo");
    let live = LiveAdd {
        entry_id: &id,
        block: 0,
        revision: Revision(2),
        text: "lo",
        time_ms: 1_003,
        commit: CommitNo(4),
    };
    assert_eq!(Some(grown(&session.state, &live, None).unwrap()), replayed(&session).pop());
}

#[test]
fn events_of_one_commit_are_numbered_and_others_begin_again() {
    let mut session = Session::created();
    let request: banyan_model::AppendManyRequest = serde_json::from_value(json!({
        "session_id": "any",
        "messages": [{"role": "user", "content": [], "timestamp": 1}, {"role": "user", "content": [], "timestamp": 2}],
    }))
    .unwrap();
    session.decide(|state, ctx| decide::append_many(state, request, ctx)).unwrap();
    session.append("c");
    let positions: Vec<Position> = replayed(&session).iter().map(|event| event.position).collect();
    let at = |commit, index| Position::new(CommitNo(commit), index);
    assert_eq!(positions, [at(1, 0), at(2, 0), at(2, 1), at(3, 0)]);
}

#[test]
fn filters_see_the_metadata_as_it_is_after_the_event() {
    let mut session = Session::created();
    session.append("before");
    let set = SetMetaRequest {
        session_id: "any".into(),
        title: Some("t".into()),
        description: None,
        metadata: Some(object(r#"{"owner":"u"}"#)),
    };
    session.decide(|state, ctx| decide::set_meta(state, set, ctx)).unwrap();
    session.append("after");
    let events = replayed(&session);
    let owned: Vec<bool> = events.iter().map(|event| event.metadata.is_some()).collect();
    assert_eq!(owned, [false, false, true, true]);
    let payload = MetaUpdatedEvent {
        session_id: session.state.session_id().clone(),
        title: "t".into(),
        description: String::new(),
        metadata: Some(object(r#"{"owner":"u"}"#)),
        timestamp: 1_002,
    };
    assert_eq!(events[2].payload, EventPayload::MetaUpdated(payload));
    assert_eq!(deleted(&session.state, CommitNo(9), 5).metadata, events[3].metadata);
}

#[test]
fn a_narrator_that_begins_in_the_middle_tells_the_same() {
    let mut session = Session::created();
    let status = |status| SetStatusRequest { session_id: "any".into(), status, reason: None };
    session.decide(|state, ctx| decide::set_status(state, status(SessionStatus::Working), ctx)).unwrap();
    let at = session.state.next_seq();
    session.decide(|state, ctx| decide::set_status(state, status(SessionStatus::Done), ctx)).unwrap();
    let whole = replayed(&session).pop().unwrap();

    let mut narrator =
        Narrator::new(session.state.session_id().clone()).with_status(session.state.status_before(at));
    for crate::state::Line { place, .. } in session.state.metas_before(at) {
        let line = &session.file[place.offset as usize..][..place.len as usize];
        narrator.learn(&parse_full(line).unwrap().record);
    }
    let last = session.file.split_inclusive(|byte| *byte == b'\n').next_back().unwrap();
    let stored = parse_full(last).unwrap();
    let StoredRecord::Own(record) = stored.record else { panic!("not ours") };
    let mut read = |_: &EntryId, _: Seq| Err(Error::storage("not asked for"));
    let told = narrator.tell(stored.envelope.unwrap(), &record, &mut read).unwrap();
    assert_eq!(told, std::slice::from_ref(&whole));
    let EventPayload::StatusChanged(StatusChangedEvent { previous_status, .. }) = whole.payload else {
        panic!("{:?}", EventType::StatusChanged)
    };
    assert_eq!(previous_status, SessionStatus::Working);
}
