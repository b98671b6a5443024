//! A fork has its base's path as it was, under ids of its own, and stays so.

use std::collections::BTreeSet;

use banyan_model::{ContentBlock, EntryId, ForkRequest, SessionId};

use crate::decide::{self, Ctx, ForkDecision};
use crate::fork_ids::ForkIds;
use crate::limits::Limits;
use crate::record::{Base, Head, Record, body_text};
use crate::state::{ForkFault, SessionState};
use crate::testing::{Session, custom, load_into, object, request, shape, text, user};

/// A fork with the files that its bodies are in, in the order of its sources.
pub(super) struct Fork {
    pub(super) session: Session,
    pub(super) base: Base,
}

pub(super) fn fork(source: &mut Session, entry: &EntryId) -> Fork {
    let request = ForkRequest { session_id: "any".into(), entry_id: entry.clone(), title: None };
    let mut ctx = Ctx { now_ms: source.now_ms, ids: &mut source.ids, limits: Limits::default() };
    let ForkDecision { source_records, records, response } =
        decide::fork(&source.state, request, &BTreeSet::new(), &mut ctx).unwrap();
    source.commit(&source_records);
    let Record::Created(created) = &records[0] else { panic!("a fork begins with its beginning") };
    let base = created.base.clone().unwrap();
    let mut session = Session::none(response.session_id.as_str());
    session.state = SessionState::begin_fork(response.session_id, &base, &source.state).unwrap();
    session.commit(&records);
    assert_eq!(session.state.meta().as_ref(), &decided_meta(&response.meta));
    Fork { session, base }
}

/// The fork's own clock starts at its own time in these tests, so the times are set aside.
fn decided_meta(meta: &banyan_model::SessionMeta) -> banyan_model::SessionMeta {
    banyan_model::SessionMeta { created_at: 1_000, updated_at: 1_000, ..meta.clone() }
}

fn texts(fork: &SessionState, files: &[(&SessionId, &[u8])]) -> Vec<String> {
    let text_at = |ix: &crate::NodeIx| {
        let place = fork.body(*ix).unwrap().full.place;
        let source = &fork.sources()[usize::from(place.source.0)];
        let file = files.iter().find(|(id, _)| **id == source.session_id).unwrap().1;
        let line = &file[place.offset as usize..][..place.len as usize];
        let body = body_text(line, &Head::parse(line).unwrap()).unwrap();
        serde_json::from_str(body).map_or_else(|_| body.to_owned(), |message| text(&message))
    };
    fork.path().iter().map(text_at).collect()
}

#[test]
fn given_a_fork_when_its_source_is_edited_then_the_fork_stays_as_it_was() {
    let mut source = Session::created();
    let first = source.append("one");
    source.append_with(custom("note", "{\"n\":1}")).unwrap();
    let last = source.answer("two");
    source.append("not forked");
    let fork = fork(&mut source, &last);

    source.update(&first, vec![ContentBlock::text("edited")]);
    source.extend(&last, " and more");
    source.append("later");
    let mut again =
        SessionState::begin_fork(fork.session.state.session_id().clone(), &fork.base, &source.state).unwrap();
    let faults = load_into(&mut again, &fork.session.file);

    assert_eq!(faults, vec![]);
    assert_eq!(shape(&again), shape(&fork.session.state));
    let files = [(source.state.session_id(), source.file.as_slice())];
    assert_eq!(texts(&again, &files), ["one", "{\"n\":1}", "two"]);
    assert_eq!(again.meta().message_count, 2);
    assert_eq!(again.meta().forked_from.as_ref(), Some(source.state.session_id()));
    let ids = ForkIds::new(again.session_id());
    assert_eq!(again.leaf_id(), Some(ids.derive(&last)));
    assert_eq!(again.find(&last), None);
}

#[test]
fn given_a_growing_entry_when_its_session_is_forked_then_the_text_so_far_is_settled_and_shared() {
    let mut source = Session::created();
    let id = source.answer("");
    source.extend(&id, "half");
    let fork = fork(&mut source, &id);
    source.extend(&id, " whole");
    let again =
        SessionState::begin_fork(fork.session.state.session_id().clone(), &fork.base, &source.state).unwrap();
    let files = [(source.state.session_id(), source.file.as_slice())];
    assert_eq!(texts(&again, &files), ["half"]);
    assert_eq!(source.text_of(&id), "half whole");
    assert_eq!(again.node(again.leaf().unwrap()).revision().0, 0);
}

#[test]
fn given_a_fork_of_a_fork_then_each_body_is_found_in_the_file_that_has_it() {
    let mut one = Session::created();
    one.append("one");
    let a = one.append("two");
    let mut two = fork(&mut one, &a).session;
    two.ids = std::mem::take(&mut one.ids);
    two.append("three");
    let derived = two.path()[0].clone();
    two.update_from(&derived, &user("one"), vec![ContentBlock::text("ONE")]);
    let leaf = two.path().pop().unwrap();
    let three = fork(&mut two, &leaf).session;
    let files = [(one.state.session_id(), one.file.as_slice()), (two.state.session_id(), two.file.as_slice())];
    assert_eq!(texts(&three.state, &files), ["ONE", "two", "three"]);
    assert_eq!(three.state.meta().message_count, 3);
    assert_eq!(three.state.inherited(), 3);
}

#[test]
fn a_fork_of_a_later_incarnation_or_of_an_unknown_entry_is_refused() {
    let mut source = Session::created();
    let id = source.append("one");
    let base = fork(&mut source, &id).base;
    let refused = |base: &Base| SessionState::begin_fork("f".into(), base, &source.state).unwrap_err();
    let later = Base { born: crate::Born([9; 16]), ..base.clone() };
    assert_eq!(refused(&later), ForkFault::OtherIncarnation(base.session_id.clone()));
    let unknown = Base { entry_id: "nowhere".into(), ..base };
    assert_eq!(refused(&unknown), ForkFault::NoSuchEntry("nowhere".into()));
}

#[test]
fn given_an_inherited_entry_with_an_origin_then_the_origin_is_where_the_entry_was_appended() {
    let mut source = Session::created();
    let mut with_origin = request(user("one"));
    with_origin.origin = Some(object(r#"{"by":"me"}"#));
    let id = source.append_with(with_origin).unwrap();
    source.update(&id, vec![ContentBlock::text("other")]);
    let fork = fork(&mut source, &id).session;
    let ix = fork.state.leaf().unwrap();
    let place = fork.state.origin_line(ix).unwrap().place;
    let line = &source.file[place.offset as usize..][..place.len as usize];
    assert_eq!(Head::parse(line).unwrap().origin(line), Some(object(r#"{"by":"me"}"#).into()));
    assert_ne!(fork.state.body(ix).unwrap().full.place, place);
}
