//! Sessions as a whole.

use banyan_model::{
    CreateRequest, EnsureRequest, EnsureResponse, ErrorCode, ForkRequest, SessionMeta, SessionStatus,
    SetActiveLeafRequest, SetMetaRequest, SetStatusRequest, SetStatusResponse,
};

use super::code;
use crate::decide::{self, Ctx};
use crate::limits::Limits;
use crate::testing::{Counting, Session, object};

fn ensure(id: &str) -> EnsureRequest {
    EnsureRequest { session_id: id.into(), title: Some("t".into()), description: None, metadata: None }
}

fn set_meta(title: Option<&str>) -> SetMetaRequest {
    SetMetaRequest { session_id: "any".into(), title: title.map(Into::into), description: None, metadata: None }
}

fn set_status(status: SessionStatus, reason: Option<&str>) -> SetStatusRequest {
    SetStatusRequest { session_id: "any".into(), status, reason: reason.map(Into::into) }
}

#[test]
fn create_answers_with_the_session_as_it_will_be() {
    let mut ids = Counting::default();
    let mut ctx = Ctx { now_ms: 5, ids: &mut ids, limits: Limits::default() };
    let metadata = Some(object(r#"{"a":1}"#));
    let request = CreateRequest { title: Some("t".into()), description: None, metadata: metadata.clone() };
    let decision = decide::create(request, &mut ctx);
    let meta = SessionMeta {
        session_id: "s_0190c0ffee0070008000000000000001".into(),
        title: "t".into(),
        description: String::new(),
        status: SessionStatus::Idle,
        status_reason: None,
        metadata,
        forked_from: None,
        message_count: 0,
        created_at: 5,
        updated_at: 5,
    };
    assert_eq!(decision.response.meta, meta);
    assert_eq!(decision.records.len(), 1);
    let mut session = Session::none("?");
    session.now_ms = 5;
    session.commit(&decision.records);
    assert_eq!(session.state.meta().as_ref(), &meta);
}

#[test]
fn ensure_creates_once_and_then_only_reads() {
    let mut session = Session::none("mine");
    let first = session.decide(|state, ctx| decide::ensure(state, ensure("mine"), ctx)).unwrap();
    let file = session.file.clone();
    let second = session.decide(|state, ctx| decide::ensure(state, ensure("mine"), ctx)).unwrap();
    assert!(first.created);
    assert_eq!(second, EnsureResponse { created: false, ..first });
    assert_eq!(session.file, file);
}

#[test]
fn ensure_refuses_the_empty_id() {
    let mut session = Session::none("");
    let refused = session.decide(|state, ctx| decide::ensure(state, ensure(""), ctx));
    assert_eq!(code(refused), ErrorCode::InvalidRequest);
}

#[test]
fn set_meta_replaces_what_is_given_even_by_the_same_and_nothing_by_nothing() {
    let mut session = Session::created();
    for (title, updated_at) in [(Some("x"), 1_001), (Some("x"), 1_002), (None, 1_002)] {
        let answered = session.decide(|state, ctx| decide::set_meta(state, set_meta(title), ctx)).unwrap();
        assert_eq!((answered.meta.title.as_str(), answered.meta.updated_at), ("x", updated_at));
        assert_eq!(session.state.meta().as_ref(), &answered.meta);
    }
}

#[test]
fn the_same_status_again_changes_nothing_whatever_the_reason() {
    let mut session = Session::created();
    let error = SessionStatus::Error;
    session.decide(|state, ctx| decide::set_status(state, set_status(error, Some("why")), ctx)).unwrap();
    let file = session.file.clone();
    let again =
        session.decide(|state, ctx| decide::set_status(state, set_status(error, Some("other")), ctx)).unwrap();
    assert_eq!(again, SetStatusResponse { status: error, previous_status: error });
    assert_eq!(session.file, file);
    assert_eq!(session.state.meta().status_reason.as_deref(), Some("why"));
}

#[test]
fn a_reason_is_kept_for_errors_only() {
    let mut session = Session::created();
    for (status, kept) in
        [(SessionStatus::Working, None), (SessionStatus::Error, Some("r")), (SessionStatus::Done, None)]
    {
        session.decide(|state, ctx| decide::set_status(state, set_status(status, Some("r")), ctx)).unwrap();
        assert_eq!(session.state.meta().status_reason.as_deref(), kept);
    }
}

#[test]
fn every_mutation_of_an_unknown_session_is_refused_as_that() {
    let mut session = Session::none("nowhere");
    let leaf = SetActiveLeafRequest { session_id: "nowhere".into(), entry_id: "e".into() };
    let fork = ForkRequest { session_id: "nowhere".into(), entry_id: "e".into(), title: None };
    let status = set_status(SessionStatus::Done, None);
    assert_eq!(
        code(session.decide(|state, ctx| decide::set_meta(state, set_meta(None), ctx))),
        ErrorCode::NotFound
    );
    assert_eq!(code(session.decide(|state, ctx| decide::set_status(state, status, ctx))), ErrorCode::NotFound);
    assert_eq!(code(session.decide(|state, ctx| decide::set_active_leaf(state, leaf, ctx))), ErrorCode::NotFound);
    let mut ctx = Ctx { now_ms: 1, ids: &mut session.ids, limits: Limits::default() };
    assert_eq!(code(decide::fork(&session.state, fork, &Default::default(), &mut ctx)), ErrorCode::NotFound);
    assert!(!decide::delete(&session.state).deleted);
}

#[test]
fn set_active_leaf_moves_the_leaf_and_not_the_time() {
    let mut session = Session::created();
    let first = session.append("a");
    session.append("b");
    let updated_at = session.state.meta().updated_at;
    let to = |id: &str| SetActiveLeafRequest { session_id: "any".into(), entry_id: id.into() };
    session.decide(|state, ctx| decide::set_active_leaf(state, to(first.as_str()), ctx)).unwrap();
    assert_eq!(session.path(), [first]);
    assert_eq!(session.state.meta().updated_at, updated_at);
    let unknown = session.decide(|state, ctx| decide::set_active_leaf(state, to("nowhere"), ctx));
    assert_eq!(code(unknown), ErrorCode::EntryNotFound);
}
