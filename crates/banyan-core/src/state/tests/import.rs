//! An import that comes in parts: nothing before the last one, and the same when it is read again.

use banyan_model::{EntryId, MessageEntry, Raw, Revision, SessionEntry, SessionMeta};

use crate::decide::{self, Incoming};
use crate::testing::{Session, shape, user};

fn entry(id: &str, parent: Option<&str>) -> SessionEntry {
    SessionEntry::Message(MessageEntry {
        id: id.into(),
        parent_id: parent.map(Into::into),
        timestamp: 5,
        revision: Revision(3),
        origin: None,
        message: Raw::of(&user(id)).unwrap(),
    })
}

/// A session of which two parts are put: a path of three, and a branch.
fn begun() -> Session {
    let mut session = Session::none("s_1");
    let parts =
        [vec![entry("a", None), entry("b", Some("a"))], vec![entry("c", Some("b")), entry("d", Some("a"))]];
    for part in parts {
        session.decide(|state, ctx| decide::import_part(state, part, ctx)).unwrap();
    }
    session
}

fn incoming(session: &Session, leaf: &str) -> Incoming {
    let meta = SessionMeta { title: "taken".into(), created_at: 7, ..session.state.meta().as_ref().clone() };
    Incoming { meta, entries: Vec::new(), active_leaf: Some(leaf.into()), attachments: Vec::new() }
}

#[test]
fn there_is_no_session_before_the_last_part_and_all_of_it_after() {
    let mut session = begun();
    assert!(session.state.is_importing() && !session.state.exists());
    let (state, faults) = session.reloaded();
    assert!(state.is_importing() && !state.exists() && faults.is_empty());

    let leaf = EntryId::from("c");
    let ends = decide::import_ends(&session.state, Some(&leaf));
    assert_eq!(ends.iter().map(|ix| session.state.id(*ix)).collect::<Vec<_>>(), [EntryId::from("d")]);
    session.decide(|state, _| Ok(decide::import_leaves(state, &ends))).unwrap();
    assert!(!session.state.exists());
    let incoming = incoming(&session, "c");
    let taken = session.decide(|state, _| decide::import_end(state, incoming)).unwrap();
    assert_eq!((taken.created, taken.added), (true, 4));
    assert!(session.state.exists() && !session.state.is_importing());
    assert_eq!(session.path(), ["a", "b", "c"].map(EntryId::from));
    let meta = session.state.meta();
    assert_eq!((meta.title.as_str(), meta.message_count, meta.created_at), ("taken", 4, 7));
    let (state, faults) = session.reloaded();
    assert_eq!((shape(&state), faults), (shape(&session.state), vec![]));
}

#[test]
fn a_part_with_an_entry_twice_or_out_of_order_is_refused_and_so_is_an_end_without_its_leaf() {
    let mut session = begun();
    for part in [vec![entry("a", None)], vec![entry("x", None), entry("x", None)], vec![entry("x", Some("y"))]] {
        assert!(session.decide(|state, ctx| decide::import_part(state, part, ctx)).is_err());
    }
    let incoming = incoming(&session, "elsewhere");
    assert!(session.decide(|state, _| decide::import_end(state, incoming)).is_err());
}

#[test]
fn a_session_that_begins_over_what_an_import_left_has_nothing_of_it() {
    let mut session = begun();
    let incoming = Incoming { entries: vec![entry("z", None)], ..incoming(&session, "z") };
    session.decide(|state, ctx| decide::import(state, incoming, ctx)).unwrap();
    assert_eq!((session.path(), session.state.nodes().len()), (vec![EntryId::from("z")], 1));
    let (state, faults) = session.reloaded();
    assert_eq!((shape(&state), faults), (shape(&session.state), vec![]));
}
