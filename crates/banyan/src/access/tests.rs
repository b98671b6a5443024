//! Scopes by themselves, and what a handle does when the catalogue and the session do not agree.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use banyan_core::Born;
use banyan_core::state::{Place, SourceIx};
use banyan_model::*;
use serde_json::{Value, json};

use super::*;
use crate::replay::Narrators;
use crate::{Options, block_on};

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap()
}

fn scope(value: Value) -> Scope {
    Scope::of(object(value))
}

#[test]
fn narrowing_keeps_both_scopes_and_never_gets_wider() {
    let both = scope(json!({"a": 1})).and(&scope(json!({"b": 2}))).and(&Scope::default());
    assert!(both.covers(Some(&object(json!({"a": 1, "b": 2, "c": 3})))));
    assert!(!both.covers(Some(&object(json!({"a": 1})))));
    assert!(!both.covers(None));
    let none = scope(json!({"a": 1})).and(&scope(json!({"a": 2}))).and(&scope(json!({"a": 1})));
    for metadata in [json!({"a": 1}), json!({"a": 2}), json!({})] {
        assert!(!none.covers(Some(&object(metadata))));
    }
    assert_eq!(none.within(None), None);
    assert_eq!(none.put_into(None).unwrap_err().code, ErrorCode::Forbidden);
    let reader = Access { read_only: true, ..Access::default() };
    assert!(reader.and(&Access::default()).read_only && Access::default().and(&reader).read_only);
}

#[test]
fn metadata_gets_the_scope_unless_it_contradicts_it() {
    let scope = scope(json!({"tenant": {"id": 7}}));
    assert_eq!(scope.put_into(None).unwrap(), Some(object(json!({"tenant": {"id": 7}}))));
    let mine = object(json!({"x": 1, "tenant": {"id": 7}}));
    assert_eq!(scope.put_into(Some(mine.clone())).unwrap(), Some(mine));
    for other in [json!({"tenant": {"id": 7.0}}), json!({"tenant": null}), json!({"tenant": {"id": 7, "x": 1}})] {
        let refused = scope.put_into(Some(object(other))).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Forbidden);
        assert!(refused.message.contains("`tenant`") && refused.message.contains(r#"{"id":7}"#), "{refused}");
    }
    assert_eq!(Scope::default().put_into(None).unwrap(), None);
}

#[test]
fn filters_that_contradict_the_scope_are_left_out() {
    let scope = scope(json!({"tenant": "a"}));
    let asking =
        |metadata: Value| EventFilter { metadata: Some(object(metadata)), ..EventFilter::all(EventType::Created) };
    let filters = vec![asking(json!({"tenant": "b"})), asking(json!({"x": 1}))];
    assert_eq!(scope.filters(filters.clone()), [asking(json!({"x": 1, "tenant": "a"}))]);
    assert_eq!(Scope::default().filters(filters.clone()), filters);
}

/// A store with a session of tenant `a` and one of tenant `b`, and a handle for `a`.
fn two_tenants() -> (Banyan, Banyan) {
    let all = Banyan::in_memory(Options::default()).unwrap();
    for (id, tenant) in [("mine", "a"), ("theirs", "b")] {
        let metadata = Some(object(json!({"tenant": tenant})));
        let request = EnsureRequest { session_id: id.into(), title: None, description: None, metadata };
        block_on(all.ensure(request)).unwrap();
    }
    let access = Access { scope: scope(json!({"tenant": "a"})), read_only: false };
    let mine = all.with_access(access);
    (all, mine)
}

fn get(store: &Banyan, id: &str) -> Option<GetResponse> {
    block_on(store.get(GetRequest { session_id: id.into() })).unwrap()
}

fn set_title(store: &Banyan, id: &str) -> Result<SetMetaResponse, Error> {
    let title = Some("taken".to_owned());
    block_on(store.set_meta(SetMetaRequest { session_id: id.into(), title, description: None, metadata: None }))
}

/// Makes the catalogue list a session under a tenant, whatever the session says.
fn list_as(store: &Banyan, id: &str, tenant: &str) {
    let mut row = store.store.catalogue.get(&id.into()).unwrap().unwrap();
    Arc::make_mut(&mut row.meta).metadata = Some(object(json!({"tenant": tenant})));
    store.store.catalogue.note(row);
}

#[test]
fn the_session_itself_decides_when_the_catalogue_is_behind() {
    let (all, mine) = two_tenants();
    list_as(&all, "theirs", "a");
    assert_eq!(get(&mine, "theirs"), None);
    assert_eq!(set_title(&mine, "theirs").unwrap_err(), Error::not_found(&"theirs".into()));
    let ensure = EnsureRequest { session_id: "theirs".into(), title: None, description: None, metadata: None };
    assert_eq!(block_on(mine.ensure(ensure)).unwrap_err().code, ErrorCode::NotFound);
    assert!(!block_on(mine.delete(DeleteRequest { session_id: "theirs".into() })).unwrap().deleted);
    assert_eq!(get(&all, "theirs").unwrap().meta.title, "");
}

#[test]
fn what_the_catalogue_does_not_list_in_scope_is_neither_loaded_nor_waited_for() {
    let (all, mine) = two_tenants();
    let in_memory = |id: &str| all.store.sessions.all().iter().any(|session| session.id.as_str() == id);
    let held = block_on(all.store.hold(&all.access, &"theirs".into())).unwrap();
    let mut deleting = pin!(mine.delete(DeleteRequest { session_id: "theirs".into() }));
    let at_once = deleting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(
        at_once,
        Poll::Ready(Ok(DeleteResponse { deleted: false })),
        "nobody waits for the one who holds it"
    );
    assert_eq!(get(&mine, "theirs"), None);
    all.store.let_go(held);
    for id in ["nobody", "not there either"] {
        assert_eq!(get(&mine, id), None);
        assert!(set_title(&mine, id).is_err() && !in_memory(id));
    }
    list_as(&all, "mine", "b");
    assert_eq!(get(&mine, "mine"), None);
}

#[test]
fn a_handle_without_a_scope_does_not_ask_the_catalogue() {
    let (all, mine) = two_tenants();
    all.store.catalogue.close().unwrap();
    assert!(get(&all, "mine").is_some());
    let asked = block_on(mine.get(GetRequest { session_id: "mine".into() }));
    assert_eq!(asked.unwrap_err().code, ErrorCode::Storage);
}

#[test]
fn records_that_would_leave_the_scope_are_refused_whoever_decided_them() {
    let (all, mine) = two_tenants();
    let request = |metadata: Value| SetMetaRequest {
        session_id: "mine".into(),
        title: None,
        description: None,
        metadata: Some(object(metadata)),
    };
    let id = SessionId::from("mine");
    let set = |metadata: Value| {
        let decide = mine
            .store
            .mutate(&mine.access, &id, |state, ctx| banyan_core::decide::set_meta(state, request(metadata), ctx));
        block_on(decide)
    };
    assert_eq!(set(json!({"tenant": "b"})).unwrap_err().code, ErrorCode::Forbidden);
    assert_eq!(set(json!({})).unwrap_err().code, ErrorCode::Forbidden);
    assert_eq!(get(&all, "mine").unwrap().meta.metadata, Some(object(json!({"tenant": "a"}))));
    set(json!({"tenant": "a", "x": 1})).unwrap();
}

#[test]
fn lines_are_told_only_of_the_session_that_they_were_written_for() {
    let (all, _) = two_tenants();
    let id = SessionId::from("mine");
    let born = all.store.look(&all.access, &id, |state| state.born()).unwrap().unwrap();
    let whole = Place { source: SourceIx::OWN, offset: 0, len: 10_000 };
    let told = |born| all.store.tell_range(&id, born, whole, &mut Narrators::default()).unwrap();
    assert_eq!(told(born).len(), 1);
    assert_eq!(told(Born([7; 16])), []);
}
