//! Which entries reads answer with.

use banyan_model::{
    AgentMessage, ContentBlock, CustomMessage, EntryId, Error, ErrorCode, FunctionCallBlock,
    FunctionResultMessage, Json, MessagesRangeRequest, MessagesRequest, MessagesTailRequest,
};
use serde_json::{Value, json};

use super::*;
use crate::limits::Limits;
use crate::testing::{Session, assistant, custom, object, request, user};

fn ids(session: &Session, nodes: &[NodeIx]) -> Vec<EntryId> {
    nodes.iter().map(|ix| session.state.id(*ix)).collect()
}

fn read(session: &Session, fields: Value) -> Result<(Vec<EntryId>, Option<String>), Error> {
    let mut all = json!({"session_id": "any"});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let request: MessagesRequest = serde_json::from_value(all).unwrap();
    let page = messages(&session.state, &request, &Limits::default())?;
    Ok((ids(session, &page.nodes), page.next_cursor))
}

fn conversation(count: usize) -> (Session, Vec<EntryId>) {
    let mut session = Session::created();
    let ids = (0..count).map(|n| session.append(&format!("{n:03}"))).collect();
    (session, ids)
}

#[test]
fn pages_follow_each_other_until_nothing_is_left() {
    let (session, ids) = conversation(5);
    let (first, cursor) = read(&session, json!({"limit": 2})).unwrap();
    let (second, cursor) = read(&session, json!({"limit": 2, "cursor": cursor})).unwrap();
    let (third, end) = read(&session, json!({"limit": 2, "cursor": cursor})).unwrap();
    assert_eq!([first, second, third].concat(), ids);
    assert_eq!(end, None);
    let (all, end) = read(&session, json!({"limit": 5})).unwrap();
    assert_eq!((all, end), (ids, None));
}

#[test]
fn bytes_bound_a_page_that_has_at_least_one_entry() {
    let (session, ids) = conversation(5);
    let weight = session.state.node(NodeIx(0)).weight();
    let shown = |bytes: u64| read(&session, json!({"bytes": bytes})).unwrap().0.len();
    assert_eq!([shown(0), shown(weight), shown(weight * 2), shown(weight * 3 - 1)], [1, 1, 2, 2]);
    let (page, cursor) = read(&session, json!({"bytes": 1})).unwrap();
    let (next, _) = read(&session, json!({"bytes": 1, "cursor": cursor})).unwrap();
    assert_eq!([page, next].concat(), ids[..2]);
}

#[test]
fn roles_narrow_to_messages_and_custom_entries_come_when_asked() {
    let mut session = Session::created();
    let said = session.append("a");
    let note = session.append_with(custom("note", "1")).unwrap();
    let answer = session.answer("b");
    let shown = |fields| read(&session, fields).unwrap().0;
    assert_eq!(shown(json!({})), [said.clone(), answer.clone()]);
    assert_eq!(shown(json!({"include_custom": true})), [said.clone(), note, answer.clone()]);
    assert_eq!(shown(json!({"include_custom": true, "roles": ["assistant"]})), [answer]);
    assert_eq!(shown(json!({"roles": []})), Vec::<EntryId>::new());
    let (page, cursor) = read(&session, json!({"roles": ["user"], "limit": 1})).unwrap();
    assert_eq!((page, cursor), (vec![said], None));
}

#[test]
fn a_branch_is_read_from_its_own_end() {
    let (mut session, ids) = conversation(3);
    let mut branch = request(user("branch"));
    branch.parent_id = Some(ids[0].clone());
    let tip = session.append_with(branch).unwrap();
    assert_eq!(read(&session, json!({})).unwrap().0, [ids[0].clone(), tip]);
    assert_eq!(read(&session, json!({"from_entry_id": ids[2]})).unwrap().0, ids);
    assert_eq!(read(&session, json!({"from_entry_id": ids[0]})).unwrap().0, ids[..1]);
    let (page, cursor) = read(&session, json!({"from_entry_id": ids[2], "limit": 2})).unwrap();
    let (rest, _) = read(&session, json!({"from_entry_id": ids[2], "cursor": cursor})).unwrap();
    assert_eq!([page, rest].concat(), ids);
    let off_path = read(&session, json!({"cursor": cursor})).unwrap_err();
    assert_eq!(off_path.code, ErrorCode::InvalidCursor);
}

#[test]
fn anchors_must_be_among_what_is_read_and_a_cursor_wins() {
    let (mut session, ids) = conversation(3);
    let note = session.append_with(custom("note", "1")).unwrap();
    assert_eq!(read(&session, json!({"after_entry_id": ids[1]})).unwrap().0, ids[2..]);
    let cursor = EntryCursor { id: ids[0].clone() }.encode();
    assert_eq!(read(&session, json!({"after_entry_id": ids[1], "cursor": cursor})).unwrap().0, ids[1..]);
    for fields in [
        json!({"after_entry_id": note}),
        json!({"after_entry_id": "nowhere"}),
        json!({"cursor": ""}),
        json!({"cursor": cursor, "roles": ["assistant"]}),
    ] {
        assert_eq!(read(&session, fields).unwrap_err().code, ErrorCode::InvalidCursor);
    }
    assert_eq!(read(&session, json!({"from_entry_id": "nowhere"})).unwrap_err().code, ErrorCode::EntryNotFound);
}

#[test]
fn no_leaf_is_an_empty_page_and_no_session_an_error() {
    assert_eq!(read(&Session::created(), json!({})), Ok((vec![], None)));
    assert_eq!(read(&Session::none("nowhere"), json!({})).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn a_range_is_given_by_its_ends_or_by_its_members() {
    let (mut session, ids) = conversation(4);
    let mut branch = request(user("branch"));
    branch.parent_id = Some(ids[2].clone());
    let tip = session.append_with(branch).unwrap();
    let read = |fields: Value| {
        let mut all = json!({"session_id": "any"});
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let request: MessagesRangeRequest = serde_json::from_value(all).unwrap();
        let page = messages_range(&session.state, &request, &Limits::default())?;
        Ok::<_, Error>((super::tests::ids(&session, &page.nodes), page.next_cursor))
    };
    assert_eq!(
        read(json!({"from_entry_id": ids[1], "to_entry_id": tip})).unwrap().0,
        [ids[1].clone(), ids[2].clone(), tip.clone()]
    );
    let chosen = json!([tip, ids[0], tip]);
    let (first, cursor) = read(json!({"entry_ids": chosen, "limit": 1})).unwrap();
    let (second, end) = read(json!({"entry_ids": chosen, "limit": 1, "cursor": cursor})).unwrap();
    assert_eq!(([first, second].concat(), end), (vec![ids[0].clone(), tip.clone()], None));
    assert_eq!(read(json!({"entry_ids": []})).unwrap(), (vec![], None));
    let code = |fields| read(fields).unwrap_err().code;
    assert_eq!(code(json!({})), ErrorCode::InvalidRequest);
    assert_eq!(code(json!({"from_entry_id": ids[0]})), ErrorCode::InvalidRequest);
    assert_eq!(
        code(json!({"from_entry_id": ids[0], "to_entry_id": tip, "entry_ids": []})),
        ErrorCode::InvalidRequest
    );
    assert_eq!(code(json!({"from_entry_id": tip, "to_entry_id": ids[0]})), ErrorCode::InvalidRequest);
    assert_eq!(code(json!({"entry_ids": ["nowhere"]})), ErrorCode::EntryNotFound);
    assert_eq!(code(json!({"entry_ids": [ids[3]]})), ErrorCode::InvalidCursor);
}

#[test]
fn a_tree_shows_every_branch() {
    let (mut session, ids) = conversation(2);
    let mut branch = custom("note", "12345");
    branch.parent_id = Some(ids[0].clone());
    let note = session.append_with(branch).unwrap();
    let request = banyan_model::TreeRequest { session_id: "any".into(), limit: None, cursor: None };
    let tree = tree(&session.state, &request).unwrap();
    assert_eq!(tree.active_leaf, Some(note.clone()));
    let last = serde_json::to_value(tree.entries.last().unwrap()).unwrap();
    let expected = json!({
        "entry_id": note, "parent_id": ids[0], "kind": "custom", "custom_type": "note",
        "revision": 0, "timestamp": 1_003, "bytes": 5, "on_active_path": true,
    });
    assert_eq!(last, expected);
    let on_path: Vec<bool> = tree.entries.iter().map(|entry| entry.on_active_path).collect();
    assert_eq!(on_path, [true, false, true]);
}

fn call(id: &str, function: &str, arguments: &str) -> ContentBlock {
    let arguments = Json::from_text(arguments).unwrap();
    ContentBlock::FunctionCall(FunctionCallBlock { id: id.into(), function_id: function.into(), arguments })
}

fn result(id: &str) -> AgentMessage {
    AgentMessage::FunctionResult(FunctionResultMessage {
        function_call_id: id.into(),
        function_id: "f".into(),
        content: vec![ContentBlock::text("long")],
        details: Json::from_text("{\"a\":1}").unwrap(),
        is_error: true,
        timestamp: 7,
    })
}

fn tail(session: &Session, fields: Value) -> Result<(Vec<(EntryId, bool)>, bool), Error> {
    let (page, _) = tail_page(session, fields)?;
    let items = page.items.iter().map(|item| (session.state.id(item.node), item.elided.is_some())).collect();
    Ok((items, page.has_more))
}

fn tail_page(session: &Session, fields: Value) -> Result<(TailPage, usize), Error> {
    let mut all = json!({"session_id": "any"});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let request: MessagesTailRequest = serde_json::from_value(all).unwrap();
    let mut loads = 0;
    let mut load = |ix: NodeIx| {
        loads += 1;
        let message = session.state.node(ix).kind().is_message().then(|| session.message(ix));
        let origin = session.state.origin_line(ix).and_then(|crate::state::Line { place, .. }| {
            let line = &session.file[place.offset as usize..][..place.len as usize];
            Some(crate::record::Head::parse(line).unwrap().origin(line)?.object())
        });
        Ok(Loaded { origin, message })
    };
    let page = messages_tail(&session.state, &request, &Limits::default(), &mut load)?;
    Ok((page, loads))
}

/// A question, a run of two calls with their results and a wake between, an answer.
fn agent_at_work() -> (Session, Vec<EntryId>) {
    let mut session = Session::created();
    let thought = ContentBlock::Thinking(banyan_model::ThinkingBlock { text: "hm".into(), signature: None });
    let mut woken = request(user("wake"));
    woken.origin = Some(object(r#"{"notification":true}"#));
    let requests = vec![
        request(user("question")),
        request(assistant(vec![thought, ContentBlock::text("let me see"), call("c1", "f", "{\"x\":1}")])),
        request(result("c1")),
        woken,
        request(assistant(vec![call("c2", "f", "{\"x\":2}")])),
        request(result("c2")),
        request(assistant(vec![ContentBlock::text("answer")])),
    ];
    let ids = requests.into_iter().map(|request| session.append_with(request).unwrap()).collect();
    (session, ids)
}

#[test]
fn an_agents_activity_is_one_block_with_its_last_step_whole() {
    let (session, ids) = agent_at_work();
    let whole = |at: usize| (ids[at].clone(), false);
    let short = |at: usize| (ids[at].clone(), true);
    let run = vec![short(1), short(2), whole(3), whole(4), whole(5)];
    let all = [vec![whole(0)], run.clone(), vec![whole(6)]].concat();
    assert_eq!(tail(&session, json!({})).unwrap(), (all, false));
    assert_eq!(tail(&session, json!({"limit": 1})).unwrap(), (vec![whole(6)], true));
    let two = [run.clone(), vec![whole(6)]].concat();
    assert_eq!(tail(&session, json!({"limit": 2})).unwrap(), (two.clone(), true));
    assert_eq!(tail(&session, json!({"limit": 1, "before_entry_id": ids[6]})).unwrap(), (run, true));
    assert_eq!(tail(&session, json!({"before_entry_id": ids[3]})).unwrap(), (vec![whole(0)], false));
    assert_eq!(tail(&session, json!({"limit": 1, "until_entry_id": ids[4]})).unwrap(), (two.clone(), true));
    assert_eq!(tail(&session, json!({"bytes": 1})).unwrap(), (vec![whole(6)], true));
    assert_eq!(tail(&session, json!({"bytes": 1, "until_entry_id": ids[1]})).unwrap(), (two, true));
    for anchor in ["before_entry_id", "until_entry_id"] {
        assert_eq!(tail(&session, json!({anchor: "nowhere"})).unwrap_err().code, ErrorCode::InvalidCursor);
    }
}

#[test]
fn what_is_shortened_keeps_its_text_and_what_ties_calls_to_results() {
    let (session, _) = agent_at_work();
    let (page, _) = tail_page(&session, json!({})).unwrap();
    let elided: Vec<AgentMessage> =
        page.items.iter().filter_map(|item| item.elided.clone()).map(|raw| raw.parse().unwrap()).collect();
    let AgentMessage::FunctionResult(mut answered) = result("c1") else { panic!("role") };
    answered.content.clear();
    answered.details = Json::null();
    let expected = [
        assistant(vec![ContentBlock::text("let me see"), call("c1", "f", "{}")]),
        AgentMessage::FunctionResult(answered),
    ];
    assert_eq!(elided, expected);
}

#[test]
fn a_call_that_hands_work_over_says_in_short_what() {
    let mut session = Session::created();
    let arguments = json!({"function": "f", "description": "d".repeat(200), "secret": 1}).to_string();
    session.append_with(request(assistant(vec![call("c1", "agent_trigger", &arguments)]))).unwrap();
    session.append_with(request(assistant(vec![call("c2", "f", "{}")]))).unwrap();
    let (page, _) = tail_page(&session, json!({})).unwrap();
    let short = page.items[0].elided.clone().unwrap().parse().unwrap();
    let kept = json!({"function": "f", "description": "d".repeat(120)}).to_string();
    assert_eq!(short, assistant(vec![call("c1", "agent_trigger", &kept)]));
}

#[test]
fn wakes_are_told_by_origin_id_and_type() {
    let mut session = Session::created();
    let fired = AgentMessage::Custom(CustomMessage {
        custom_type: "trigger_fired".into(),
        content: vec![],
        display: None,
        details: None,
        timestamp: 1,
    });
    let mut named = request(user("named"));
    named.entry_id = Some("e_notify_1".into());
    let requests =
        [request(fired), named, custom("trigger_fired", "1"), custom("note", "1"), request(result("c"))];
    for request in requests {
        session.append_with(request).unwrap();
    }
    let (last, more) = tail(&session, json!({"limit": 3})).unwrap();
    assert_eq!((last.len(), more), (5, false));
    let elided: Vec<bool> = last.iter().map(|(_, elided)| *elided).collect();
    assert_eq!(elided, [false, false, false, false, true]);
    let (without_custom, _) = tail(&session, json!({"limit": 1, "include_custom": false})).unwrap();
    assert_eq!(without_custom.len(), 3);
}

#[test]
fn a_tail_reads_little_besides_its_page() {
    let (mut session, _) = agent_at_work();
    for n in 0..50 {
        session.append(&format!("{n}"));
    }
    let (_, loads) = tail_page(&session, json!({"limit": 10})).unwrap();
    assert_eq!(loads, 0);
    assert_eq!(tail(&Session::created(), json!({})), Ok((vec![], false)));
}
