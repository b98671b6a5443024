//! New entries.

use banyan_model::{AppendManyRequest, AppendRequest, AppendResponse, EntryId, ErrorCode};

use super::code;
use crate::decide;
use crate::testing::{Session, custom, request, user};

fn many(texts: &[&str]) -> AppendManyRequest {
    AppendManyRequest {
        session_id: "any".into(),
        messages: texts.iter().map(|text| user(text)).collect(),
        parent_id: None,
        origin: None,
    }
}

fn neither() -> AppendRequest {
    AppendRequest { message: None, ..request(user("")) }
}

#[test]
fn an_entry_follows_the_leaf_and_becomes_it() {
    let mut session = Session::created();
    let root = session.append("a");
    let response = session.decide(|state, ctx| decide::append(state, request(user("b")), ctx)).unwrap();
    let expected =
        AppendResponse { entry_id: response.entry_id.clone(), parent_id: Some(root.clone()), timestamp: 1_002 };
    assert_eq!(response, expected);
    assert_eq!(session.path(), [root, response.entry_id]);
    assert_eq!((session.state.meta().message_count, session.state.meta().updated_at), (2, 1_002));
}

#[test]
fn custom_entries_are_on_the_path_and_not_counted() {
    let mut session = Session::created();
    let id = session.append_with(custom("note", "null")).unwrap();
    assert_eq!(session.path(), [id]);
    assert_eq!(session.state.meta().message_count, 0);
}

#[test]
fn an_explicit_parent_makes_a_branch() {
    let mut session = Session::created();
    let root = session.append("a");
    session.append("b");
    let mut branch = request(user("c"));
    branch.parent_id = Some(root.clone());
    let id = session.append_with(branch).unwrap();
    assert_eq!(session.path(), [root, id]);
    assert_eq!(session.state.meta().message_count, 3);
}

#[test]
fn refusals_come_in_the_order_of_the_contract() {
    let mut unknown = Session::none("nowhere");
    assert_eq!(code(unknown.append_with(neither())), ErrorCode::NotFound);

    let mut session = Session::created();
    let mut bad = neither();
    bad.parent_id = Some("nowhere".into());
    assert_eq!(code(session.append_with(bad.clone())), ErrorCode::InvalidRequest);
    let mut both = custom("note", "1");
    both.message = Some(user("a"));
    assert_eq!(code(session.append_with(both)), ErrorCode::InvalidRequest);
    bad.message = Some(user("a"));
    assert_eq!(code(session.append_with(bad.clone())), ErrorCode::ParentNotFound);
    bad.expected_leaf = Some("nowhere".into());
    assert_eq!(code(session.append_with(bad)), ErrorCode::Conflict);
}

#[test]
fn a_known_entry_id_changes_nothing_and_answers_what_is_stored() {
    let mut session = Session::created();
    let mut once = request(user("a"));
    once.entry_id = Some("".into());
    let first = session.decide(|state, ctx| decide::append(state, once.clone(), ctx)).unwrap();
    session.append("b");
    let file = session.file.clone();
    let mut again = custom("note", "1");
    again.entry_id = once.entry_id;
    again.parent_id = Some("nowhere".into());
    again.expected_leaf = Some("nowhere".into());
    let second = session.decide(|state, ctx| decide::append(state, again, ctx)).unwrap();
    assert_eq!(second, first);
    assert_eq!(session.file, file);
}

#[test]
fn a_wrong_expected_leaf_is_a_conflict_that_names_the_real_one() {
    let mut session = Session::created();
    let leaf = session.append("a");
    let mut expecting = request(user("b"));
    expecting.expected_leaf = Some("other".into());
    let refused = session.append_with(expecting.clone()).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Conflict);
    assert!(refused.message.contains(leaf.as_str()));
    expecting.expected_leaf = Some(leaf);
    assert!(session.append_with(expecting).is_ok());
}

#[test]
fn many_messages_follow_each_other_in_one_commit() {
    let mut session = Session::created();
    let root = session.append("a");
    let response = session.decide(|state, ctx| decide::append_many(state, many(&["b", "c"]), ctx)).unwrap();
    let mut path = vec![root];
    path.extend(response.entry_ids.iter().cloned());
    assert_eq!(session.path(), path);
    assert_eq!(Some(&response.last_entry_id), path.last());
    assert_eq!(session.state.meta().message_count, 3);
    assert_eq!(session.state.last_commit().0, 3);
}

#[test]
fn an_empty_batch_is_refused_after_the_session_and_before_the_parent() {
    let mut batch = many(&[]);
    batch.parent_id = Some(EntryId::from("nowhere"));
    let mut unknown = Session::none("nowhere");
    let refused = unknown.decide(|state, ctx| decide::append_many(state, batch.clone(), ctx));
    assert_eq!(code(refused), ErrorCode::NotFound);
    let mut session = Session::created();
    let refused = session.decide(|state, ctx| decide::append_many(state, batch.clone(), ctx));
    assert_eq!(code(refused), ErrorCode::EmptyBatch);
    batch.messages = vec![user("a")];
    let refused = session.decide(|state, ctx| decide::append_many(state, batch, ctx));
    assert_eq!(code(refused), ErrorCode::ParentNotFound);
}
