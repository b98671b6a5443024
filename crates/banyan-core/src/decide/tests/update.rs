//! Changed messages.

use banyan_model::{
    AgentMessage, ContentBlock, CustomMessage, EntryId, ErrorCode, ExtendMessageRequest, Json, Raw, Revision,
    SessionStatus, SetStatusRequest, ThinkingBlock, UpdateMessageRequest, UpdateMessageResponse, Usage,
};

use super::code;
use crate::decide::{self, Decision};
use crate::record::{Add, Grew, Record, Settled};
use crate::testing::{Session, assistant, custom, object, request, shape, update, user};

fn text(text: &str) -> ContentBlock {
    ContentBlock::text(text)
}

fn thinking(text: &str, signature: Option<&str>) -> ContentBlock {
    ContentBlock::Thinking(ThinkingBlock { text: text.into(), signature: signature.map(Into::into) })
}

/// What an update would write.
fn records(session: &mut Session, request: UpdateMessageRequest) -> Vec<Record> {
    decided(session, request).records
}

fn decided(session: &mut Session, request: UpdateMessageRequest) -> Decision<UpdateMessageResponse> {
    let current = session.state.find(&request.entry_id).map(|ix| session.message(ix));
    let mut kept = None;
    session
        .decide(|state, ctx| {
            kept = Some(decide::update_message(state, request, current.as_ref(), ctx)?);
            Ok(Decision { records: Vec::new(), response: () })
        })
        .unwrap();
    kept.unwrap()
}

fn grew(entry: &EntryId, block: u32, revision: u64, text: &str) -> Record {
    let add = Add { text: text.into(), ms_since: 0, commits_since: 0, origin: None };
    Record::Grew(Grew { entry_id: entry.clone(), block, revision: Revision(revision), adds: vec![add] })
}

#[test]
fn an_update_that_only_makes_one_text_longer_is_written_as_what_it_adds() {
    let mut session = Session::created();
    let id = session.append_with(request(assistant(vec![thinking("hm", Some("s")), text("Hel")]))).unwrap();
    let longer = update(&id, vec![thinking("hm", Some("s")), text("Hello")]);
    assert_eq!(records(&mut session, longer), vec![grew(&id, 1, 1, "lo")]);
    let thought = update(&id, vec![thinking("hmm", Some("s")), text("Hel")]);
    assert_eq!(records(&mut session, thought), vec![grew(&id, 0, 1, "m")]);
}

#[test]
fn any_other_update_is_written_whole() {
    let mut session = Session::created();
    let id = session.append_with(request(assistant(vec![thinking("hm", None), text("Hel")]))).unwrap();
    for content in [
        vec![thinking("hm", None), text("Hel")],
        vec![thinking("hmm", None), text("Hello")],
        vec![thinking("hm", None), text("help")],
        vec![thinking("hm", Some("signed")), text("Hel")],
        vec![thinking("hm", None), text("Hel"), text("lo")],
        vec![],
    ] {
        let written = records(&mut session, update(&id, content.clone()));
        let Some(Record::Updated(updated)) = written.last() else { panic!("{written:?}") };
        assert_eq!(updated.message, Raw::of(&assistant(content)).unwrap());
        assert_eq!((written.len(), updated.revision), (1, Revision(1)));
    }
}

#[test]
fn usage_goes_with_the_content_and_is_written_whole() {
    let mut session = Session::created();
    let id = session.answer("a");
    let mut request = update(&id, vec![text("ab")]);
    request.usage = Some(Usage { input: Some(3), ..Usage::default() });
    let written = records(&mut session, request.clone());
    let Some(Record::Updated(updated)) = written.last() else { panic!("{written:?}") };
    let AgentMessage::Assistant(message) = updated.message.parse().unwrap() else { panic!("role") };
    assert_eq!(message.usage, request.usage);
}

#[test]
fn details_replace_those_of_a_custom_message() {
    let mut session = Session::created();
    let message = AgentMessage::Custom(CustomMessage {
        custom_type: "card".into(),
        content: vec![],
        display: None,
        details: None,
        timestamp: 1,
    });
    let id = session.append_with(request(message.clone())).unwrap();
    let mut with_details = update(&id, vec![]);
    with_details.details = Some(Json::from_text("{\"x\": 1}").unwrap());
    let written = records(&mut session, with_details.clone());
    let AgentMessage::Custom(mut expected) = message else { panic!("role") };
    expected.details = with_details.details;
    let Some(Record::Updated(updated)) = written.last() else { panic!("{written:?}") };
    assert_eq!(updated.message, Raw::of(&AgentMessage::Custom(expected)).unwrap());
}

#[test]
fn refusals_come_in_the_order_of_the_contract() {
    let mut session = Session::created();
    let user = session.append("a");
    let note = session.append_with(custom("note", "1")).unwrap();
    let mut attempt = |request: UpdateMessageRequest| {
        let current =
            session.state.find(&request.entry_id).filter(|ix| session.state.node(*ix).kind().is_message());
        let current = current.map(|ix| session.message(ix));
        session.decide(|state, ctx| decide::update_message(state, request, current.as_ref(), ctx))
    };
    let everything_wrong = |id: &EntryId| UpdateMessageRequest {
        details: Some(Json::null()),
        usage: Some(Usage::default()),
        expected_revision: Some(Revision(9)),
        ..update(id, vec![])
    };
    assert_eq!(code(attempt(everything_wrong(&"nowhere".into()))), ErrorCode::EntryNotFound);
    assert_eq!(code(attempt(everything_wrong(&note))), ErrorCode::InvalidEntryKind);
    let mismatch = UpdateMessageResponse { updated: false, revision: Revision(0) };
    assert_eq!(attempt(everything_wrong(&user)), Ok(mismatch));
    let usage = UpdateMessageRequest { expected_revision: None, ..everything_wrong(&user) };
    assert_eq!(code(attempt(usage.clone())), ErrorCode::InvalidEntryKind);
    assert_eq!(code(attempt(UpdateMessageRequest { usage: None, ..usage })), ErrorCode::DetailsNotSupported);
}

#[test]
fn the_origin_of_an_update_is_told_and_the_entry_keeps_its_own() {
    let mut session = Session::created();
    let mut appended = request(assistant(vec![]));
    appended.origin = Some(object(r#"{"by":"a"}"#));
    let id = session.append_with(appended).unwrap();
    let line = session.state.origin_line(session.state.leaf().unwrap());
    let mut changed = update(&id, vec![text("x")]);
    changed.origin = Some(object(r#"{"by":"b"}"#));
    let decision = decided(&mut session, changed.clone());
    let Some(Record::Updated(updated)) = decision.records.last() else { panic!("not whole") };
    assert_eq!(updated.origin, changed.origin);
    session.commit(&decision.records);
    assert_eq!(session.state.origin_line(session.state.leaf().unwrap()), line);
}

#[test]
fn what_ends_growth_writes_the_message_whole_first() {
    let settled = |id: &EntryId| {
        Record::Settled(Settled {
            entry_id: id.clone(),
            revision: Revision(1),
            blobs: vec![],
            message: Raw::of(&assistant(vec![text("ab")])).unwrap(),
        })
    };
    let growing = || {
        let mut session = Session::created();
        let other = session.append("o");
        let id = session.answer("a");
        session.extend(&id, "b");
        (session, id, other)
    };

    let (mut session, id, other) = growing();
    assert_eq!(decide::settle(&session.state), Ok(Some(settled(&id))));
    assert_eq!(records(&mut session, update(&other, vec![])).first(), Some(&settled(&id)));
    assert_eq!(records(&mut session, update(&id, vec![])).len(), 1);

    let first_written = |session: &mut Session, status| {
        let request = SetStatusRequest { session_id: "any".into(), status, reason: None };
        let mut first = None;
        session
            .decide(|state, ctx| {
                let decision = decide::set_status(state, request, ctx)?;
                first = decision.records.first().cloned();
                Ok(decision)
            })
            .unwrap();
        first.unwrap()
    };
    assert!(matches!(first_written(&mut session, SessionStatus::Working), Record::StatusSet(_)));
    assert_eq!(first_written(&mut session, SessionStatus::Done), settled(&id));
    assert!(session.state.growing().is_none());

    let (mut session, id, _) = growing();
    session.append("ends it");
    assert!(session.state.growing().is_none());
    assert_eq!(session.text_of(&id), "ab");
}

fn extend(id: &EntryId, block: Option<usize>) -> ExtendMessageRequest {
    ExtendMessageRequest {
        session_id: "any".into(),
        entry_id: id.clone(),
        text: "+".into(),
        block,
        expected_revision: None,
        origin: None,
    }
}

#[test]
fn extend_adds_to_the_last_text_or_the_named_block() {
    let content = vec![text("a"), thinking("t", None), text("b"), ContentBlock::Image(image())];
    for (block, grown) in [(None, 2), (Some(0), 0), (Some(1), 1)] {
        let mut session = Session::created();
        let id = session.append_with(request(assistant(content.clone()))).unwrap();
        let current = session.message(session.state.leaf().unwrap());
        let mut written = Vec::new();
        session
            .decide(|state, ctx| {
                let decision = decide::extend_message(state, extend(&id, block), Some(&current), ctx)?;
                written.clone_from(&decision.records);
                Ok(decision)
            })
            .unwrap();
        assert_eq!(written, vec![grew(&id, grown, 1, "+")]);
    }
}

#[test]
fn extend_refuses_blocks_that_cannot_grow_and_begins_a_text_where_there_is_none() {
    let mut session = Session::created();
    let id = session.append_with(request(assistant(vec![ContentBlock::Image(image())]))).unwrap();
    let current = session.message(session.state.leaf().unwrap());
    for block in [0, 1] {
        let refused = session
            .decide(|state, ctx| decide::extend_message(state, extend(&id, Some(block)), Some(&current), ctx));
        assert_eq!(code(refused), ErrorCode::InvalidRequest);
    }
    session.extend(&id, "first");
    session.extend(&id, " second");
    assert_eq!(session.text_of(&id), "first second");
    assert_eq!(session.state.node(session.state.leaf().unwrap()).revision(), Revision(2));
}

#[test]
fn extend_at_another_revision_changes_nothing() {
    let mut session = Session::created();
    let id = session.answer("a");
    let file = session.file.clone();
    let request = ExtendMessageRequest { expected_revision: Some(Revision(4)), ..extend(&id, Some(9)) };
    let answered = session.decide(|state, ctx| decide::extend_message(state, request, None, ctx)).unwrap();
    assert_eq!((answered.updated, answered.revision), (false, Revision(0)));
    assert_eq!(session.file, file);
}

#[test]
fn messages_are_extended_and_appended_together_or_not_at_all() {
    let mut session = Session::created();
    let (first, second) = (session.answer("a"), session.answer("b"));
    session.extend(&second, "c");
    let write = |session: &mut Session, revisions: [u64; 2], leaf: &EntryId| {
        let at = |id: &EntryId, revision| ExtendMessageRequest {
            expected_revision: Some(Revision(revision)),
            ..extend(id, Some(0))
        };
        let growths = vec![at(&first, revisions[0]), at(&second, revisions[1])];
        let current = [&first, &second].map(|id| session.state.find(id).map(|ix| session.message(ix)));
        let new = decide::NewEntry { entry_id: "new".into(), message: user("d"), origin: None };
        session
            .decide(|state, ctx| decide::extend_and_append(state, growths, &current, Some(leaf), vec![new], ctx))
    };
    let before = session.file.clone();
    for (revisions, leaf) in [([1, 1], &second), ([0, 0], &second), ([0, 1], &first)] {
        assert_eq!(code(write(&mut session, revisions, leaf)), ErrorCode::Conflict);
        assert_eq!(session.file, before);
    }
    let commit = session.commit;
    write(&mut session, [0, 1], &second).unwrap();
    assert_eq!(session.commit, commit + 1);
    assert_eq!([&first, &second].map(|id| session.text_of(id)), ["a+", "bc+"]);
    assert_eq!(session.path(), [first.clone(), second.clone(), "new".into()]);
    let (reloaded, faults) = session.reloaded();
    assert_eq!((shape(&reloaded), faults), (shape(&session.state), Vec::new()));
}

fn image() -> banyan_model::ImageBlock {
    banyan_model::ImageBlock { mime: "image/png".into(), data: String::new(), attachment_id: None }
}
