//! What a session is known by, while others hold what it was.

use std::collections::HashSet;
use std::sync::Arc;

use banyan_model::{SetMetaRequest, SetStatusRequest};

use crate::decide;
use crate::testing::{Session, object};

#[test]
fn metadata_is_not_copied_for_each_change_though_the_last_row_is_held() {
    let mut session = Session::created();
    let set = SetMetaRequest {
        session_id: "any".into(),
        title: Some("t".into()),
        description: None,
        metadata: Some(object(r#"{"owner":"someone with a long name"}"#)),
    };
    session.decide(|state, ctx| decide::set_meta(state, set, ctx)).unwrap();
    // As the catalogue does: it holds one row until it gets the next one.
    let mut row = Arc::clone(session.state.meta());
    let mut places = HashSet::new();
    for number in 0..50 {
        session.append(&number.to_string());
        let meta = Arc::clone(session.state.meta());
        assert_eq!((row.message_count, meta.message_count), (number, number + 1), "what is held does not change");
        assert_eq!(row.metadata, meta.metadata);
        assert_eq!((row.title.as_str(), meta.title.as_str()), ("t", "t"));
        places.insert(meta.metadata.as_ref().unwrap()["owner"].as_str().unwrap().as_ptr());
        row = meta;
    }
    assert_eq!(places.len(), 2, "it is held twice, and changed in turn");
    let status =
        SetStatusRequest { session_id: "any".into(), status: banyan_model::SessionStatus::Working, reason: None };
    session.decide(|state, ctx| decide::set_status(state, status, ctx)).unwrap();
    let other = SetMetaRequest {
        session_id: "any".into(),
        title: None,
        description: None,
        metadata: Some(object(r#"{"owner":"other"}"#)),
    };
    session.decide(|state, ctx| decide::set_meta(state, other, ctx)).unwrap();
    for _ in 0..3 {
        session.append("after");
        let meta = session.state.meta();
        assert_eq!(meta.metadata, Some(object(r#"{"owner":"other"}"#)));
        assert_eq!(meta.status, banyan_model::SessionStatus::Working);
        assert_ne!(meta.metadata, row.metadata);
    }
}
