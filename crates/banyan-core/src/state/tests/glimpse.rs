//! A decision on what was seen of a session is the decision on the session.

use std::collections::BTreeSet;

use banyan_model::{AppendRequest, EntryId, Error, ForkRequest, SetActiveLeafRequest};

use crate::decide::{self, Ctx};
use crate::limits::Limits;
use crate::state::{Glimpse, SessionState};
use crate::testing::{Counting, Session, custom, request, user};

/// What is to be seen of a session by someone who asks for these entries.
fn seen(state: &SessionState, ids: &[&EntryId]) -> SessionState {
    let found = ids.iter().filter_map(|id| state.find(id));
    SessionState::glimpsed(Glimpse {
        session_id: state.session_id().clone(),
        born: state.born(),
        next_seq: state.next_seq(),
        last_commit: state.last_commit(),
        meta: state.exists().then(|| state.meta().as_ref().clone()),
        leaf: state.leaf_id(),
        entries: found.map(|ix| state.glimpse(ix)).collect(),
        attachments: state.attachments().values().cloned().collect(),
    })
}

fn both<R: std::fmt::Debug + PartialEq>(
    state: &SessionState,
    ids: &[&EntryId],
    decide: impl Fn(&SessionState, &mut Ctx<'_>) -> Result<R, Error>,
) -> Result<R, Error> {
    let on = |state: &SessionState| {
        let mut ids = Counting::default();
        decide(state, &mut Ctx { now_ms: 9, ids: &mut ids, limits: Limits::default() })
    };
    let (whole, part) = (on(state), on(&seen(state, ids)));
    assert_eq!(part, whole);
    whole
}

#[test]
fn what_was_seen_is_enough_to_decide() {
    let mut session = Session::created();
    let first = session.append("one");
    let note = session.append_with(custom("mark", "1")).unwrap();
    let last = session.append("two");
    let state = &session.state;
    let unknown = EntryId::from("nobody");
    let append = |entry_id: Option<&EntryId>, parent_id: Option<&EntryId>, expected_leaf: Option<&EntryId>| {
        let ids: Vec<&EntryId> = [entry_id, parent_id].into_iter().flatten().collect();
        let request = AppendRequest {
            entry_id: entry_id.cloned(),
            parent_id: parent_id.cloned(),
            expected_leaf: expected_leaf.cloned(),
            ..request(user("x"))
        };
        both(state, &ids, |state, ctx| decide::append(state, request.clone(), ctx)).is_ok()
    };
    assert!(append(None, None, None));
    assert!(append(Some(&unknown), Some(&first), Some(&last)));
    assert!(append(Some(&note), None, None));
    assert!(!append(None, Some(&unknown), None));
    assert!(!append(None, None, Some(&first)));
    for id in [&first, &note, &last, &unknown] {
        let fork = ForkRequest { session_id: "any".into(), entry_id: id.clone(), title: None };
        let forked = both(state, &[id], |state, ctx| decide::fork(state, fork.clone(), &BTreeSet::new(), ctx));
        assert_eq!(forked.is_ok(), *id != unknown);
        let leaf = SetActiveLeafRequest { session_id: "any".into(), entry_id: id.clone() };
        let moved = both(state, &[id], |state, ctx| decide::set_active_leaf(state, leaf.clone(), ctx));
        assert_eq!(moved.is_ok(), *id != unknown);
    }
}

#[test]
fn a_session_that_was_not_seen_does_not_exist() {
    let none = Session::none("s");
    let refused = both(&none.state, &[], |state, ctx| decide::append(state, request(user("x")), ctx));
    assert!(refused.is_err());
}
