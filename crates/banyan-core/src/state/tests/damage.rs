//! A damaged line costs its own text and nothing else.

use banyan_model::{ContentBlock, EntryId, MessagesRequest};

use crate::Limits;
use crate::page;
use crate::record::FaultReason;
use crate::state::{SessionState, StateFault};
use crate::testing::{Session, load};

/// The file's lines, to be damaged one by one.
fn lines(session: &Session) -> Vec<Vec<u8>> {
    session.file.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn reload(session: &Session, lines: &[Vec<u8>]) -> (SessionState, Vec<StateFault>) {
    load(session.state.session_id().as_str(), &lines.concat())
}

/// Changes one byte in the last third of a line, where the body is.
fn damage_text(line: &mut [u8]) {
    let at = line.len() - 40;
    line[at] ^= 1;
}

/// The entries of a page whose content is there.
fn shown(state: &SessionState) -> Vec<EntryId> {
    paged(state, false)
}

/// The entries of a page that are named as damaged.
fn named(state: &SessionState) -> Vec<EntryId> {
    paged(state, true)
}

fn paged(state: &SessionState, damaged: bool) -> Vec<EntryId> {
    let request = serde_json::from_str::<MessagesRequest>(r#"{"session_id":"any"}"#).unwrap();
    let page = page::messages(state, &request, &Limits::default()).unwrap();
    let nodes = page.nodes.iter().filter(|ix| state.node(**ix).is_damaged() == damaged);
    nodes.map(|ix| state.id(*ix)).collect()
}

#[test]
fn given_a_damaged_text_then_its_entry_keeps_its_place_and_is_not_served() {
    let mut session = Session::created();
    let ids = ["a", "b", "c"].map(|text| session.append(text));
    let mut lines = lines(&session);
    damage_text(&mut lines[2]);
    let (state, faults) = reload(&session, &lines);
    assert_eq!(faults.len(), 1);
    assert_eq!(shown(&state), [ids[0].clone(), ids[2].clone()]);
    assert_eq!(named(&state), [ids[1].clone()]);
    assert_eq!(state.body(state.find(&ids[1]).unwrap()), None);
    assert_eq!(state.leaf_id(), Some(ids[2].clone()));
    assert_eq!(state.meta(), session.state.meta());
    assert_eq!(state.next_seq(), session.state.next_seq());
}

#[test]
fn given_a_line_that_tells_nothing_then_what_follows_it_hangs_on_a_placeholder() {
    let mut session = Session::created();
    let ids = ["a", "b", "c"].map(|text| session.append(text));
    let mut lines = lines(&session);
    lines[2] = b"\xff\xff\xff\n".to_vec();
    let (state, faults) = reload(&session, &lines);
    let missing = StateFault::UnknownParent { entry_id: ids[2].clone(), parent_id: ids[1].clone() };
    assert_eq!(faults, vec![StateFault::Damaged(FaultReason::NotUtf8), missing]);
    assert_eq!(shown(&state), [ids[0].clone(), ids[2].clone()]);
    assert_eq!(named(&state), [ids[1].clone()]);
    assert_eq!(state.path().len(), 3);
}

#[test]
fn given_damage_at_the_end_when_something_is_appended_then_it_follows_the_old_leaf() {
    let mut session = Session::created();
    let ids = ["a", "b"].map(|text| session.append(text));
    let mut lines = lines(&session);
    lines[2] = b"garbage\n".to_vec();
    let (state, _) = reload(&session, &lines);
    session.file = lines.concat();
    session.state = state;
    let next = session.append("c");
    assert_eq!(session.path(), [ids[0].clone(), next]);
    let (again, faults) = session.reloaded();
    assert_eq!(faults.len(), 1);
    assert_eq!(crate::testing::shape(&again), crate::testing::shape(&session.state));
}

#[test]
fn given_a_foreign_line_in_the_middle_then_every_record_after_it_still_counts() {
    let mut session = Session::created();
    let ids = ["a", "b"].map(|text| session.append(text));
    let mut lines = lines(&session);
    lines.insert(2, b"garbage\n".to_vec());
    let (state, faults) = reload(&session, &lines);
    assert_eq!(faults.len(), 1);
    assert_eq!(shown(&state), ids);
    assert_eq!(state.next_seq(), session.state.next_seq());
}

#[test]
fn given_lines_that_are_gone_or_come_twice_then_that_is_told_and_the_rest_is_read() {
    let mut session = Session::created();
    let ids = ["a", "b", "c"].map(|text| session.append(text));
    let mut gone = lines(&session);
    gone.remove(1);
    let (state, faults) = reload(&session, &gone);
    assert!(matches!(faults[0], StateFault::Gap { .. }), "{faults:?}");
    assert_eq!((shown(&state), named(&state)), (ids[1..].to_vec(), vec![ids[0].clone()]));

    let mut twice = lines(&session);
    twice.insert(2, twice[1].clone());
    let (state, faults) = reload(&session, &twice);
    assert_eq!(faults, vec![StateFault::Repeated(banyan_model::Seq(1))]);
    assert_eq!(shown(&state), ids);
}

#[test]
fn given_a_lost_beginning_then_the_session_is_there_with_what_can_be_told() {
    let mut session = Session::created();
    let ids = ["a", "b"].map(|text| session.append(text));
    for first in [b"\xff\n".to_vec(), Vec::new()] {
        let mut lines = lines(&session);
        lines[0] = first;
        let (state, faults) = reload(&session, &lines);
        assert!(faults.contains(&StateFault::NoBeginning), "{faults:?}");
        assert!(state.exists());
        assert_eq!(shown(&state), ids);
        assert_eq!((state.meta().title.as_str(), state.meta().created_at), ("", 1_001));
        assert_eq!(state.session_id(), session.state.session_id());
    }
}

#[test]
fn given_a_damaged_update_then_the_older_text_is_not_served_as_the_newest() {
    let mut session = Session::created();
    let id = session.append("a");
    session.update(&id, vec![ContentBlock::text("b")]);
    let mut lines = lines(&session);
    damage_text(&mut lines[2]);
    let (state, _) = reload(&session, &lines);
    assert_eq!(state.body(state.find(&id).unwrap()), None);
}

#[test]
fn given_a_damaged_text_when_the_message_is_written_whole_again_then_it_is_served_again() {
    let mut session = Session::created();
    let id = session.answer("a");
    session.extend(&id, "b");
    session.append("ends the growth");
    let mut lines = lines(&session);
    damage_text(&mut lines[2]);
    let (state, faults) = reload(&session, &lines);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(!state.node(state.find(&id).unwrap()).is_damaged());
    assert_eq!(shown(&state).len(), 2);
}

#[test]
fn given_a_lost_growth_then_text_added_later_does_not_hide_the_hole() {
    let mut session = Session::created();
    let id = session.answer("a");
    session.extend(&id, "b");
    session.close();
    session.update(&session.state.leaf_id().unwrap(), vec![ContentBlock::text("a new text")]);
    session.extend(&id, "!");
    session.close();
    let mut lines = lines(&session);
    lines.remove(3);
    let (state, faults) = reload(&session, &lines);
    assert!(faults.iter().any(|fault| matches!(fault, StateFault::LostText { .. })), "{faults:?}");
    assert_eq!(state.body(state.find(&id).unwrap()), None);
}

#[test]
fn no_single_damaged_byte_keeps_a_session_from_being_read() {
    let mut session = Session::created();
    let id = session.answer("a");
    session.extend(&id, "b");
    session.append("c");
    for at in 0..session.file.len() {
        let mut file = session.file.clone();
        file[at] ^= 0x15;
        let (state, faults) = load(session.state.session_id().as_str(), &file);
        assert!(!faults.is_empty(), "byte {at}");
        assert!(state.exists(), "byte {at}");
        let _ = shown(&state);
    }
}

#[test]
fn given_a_damaged_beginning_then_the_session_keeps_the_id_that_it_was_opened_by() {
    let mut session = Session::created();
    let ids = ["a", "b"].map(|text| session.append(text));
    let mut lines = lines(&session);
    let id = session.state.session_id().clone();
    let at = lines[0].windows(id.as_str().len()).position(|window| window == id.as_str().as_bytes()).unwrap();
    lines[0][at] ^= 1;
    let (state, faults) = reload(&session, &lines);
    assert_eq!(faults, vec![StateFault::Damaged(FaultReason::ChecksumDiffers)]);
    assert_eq!((state.session_id(), &state.meta().session_id), (&id, &id));
    assert_eq!(shown(&state), ids);
}

#[test]
fn given_lines_that_are_gone_then_what_follows_hangs_on_what_came_before() {
    let mut session = Session::created();
    let ids = ["a", "b", "c", "d"].map(|text| session.append(text));
    let mut lines = lines(&session);
    lines.drain(2..4);
    let (state, _) = reload(&session, &lines);
    assert_eq!(shown(&state), [ids[0].clone(), ids[3].clone()]);
    assert_eq!(state.leaf_id(), Some(ids[3].clone()));
}

#[test]
fn given_a_damaged_id_that_another_entry_has_then_that_entry_is_still_served() {
    let mut session = Session::created();
    let first = session.append("a");
    let second = session.append("b");
    let mut lines = lines(&session);
    let line = String::from_utf8(lines[2].clone()).unwrap();
    lines[2] = line.replacen(second.as_str(), first.as_str(), 1).into_bytes();
    let (state, faults) = reload(&session, &lines);
    assert_eq!(faults, vec![StateFault::Damaged(FaultReason::ChecksumDiffers)]);
    assert_eq!(shown(&state), [first]);
}
