//! Files written by session-manager open in place.

use banyan_model::{AppendResponse, EnsureRequest, EntryId, SessionStatus};

use crate::decide;
use crate::record::{Adopted, Record};
use crate::state::{SessionState, StateFault};
use crate::testing::{Session, load, request, shape, user};

pub(super) fn entry(id: &str, parent: Option<&str>, text: &str) -> String {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
    format!(
        r#"{{"type":"entry","entry":{{"kind":"message","id":"{id}","parent_id":{parent},"timestamp":5,"revision":0,"message":{{"role":"user","content":[{{"type":"text","text":"{text}"}}],"timestamp":1}}}}}}"#
    )
}

pub(super) fn leaf(id: &str) -> String {
    format!(r#"{{"type":"leaf","entry_id":"{id}"}}"#)
}

pub(super) fn meta(count: u64) -> String {
    format!(r#"{{"type":"meta","meta":{}}}"#, meta_object(count))
}

fn meta_object(count: u64) -> String {
    format!(
        r#"{{"session_id":"s","title":"old","description":"","status":"working","message_count":{count},"created_at":1,"updated_at":2,"kind":"user"}}"#
    )
}

fn open(lines: &[String]) -> (Session, Vec<StateFault>) {
    let file = lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes();
    let (state, faults) = load("s", &file);
    let mut session = Session::none("s");
    session.file = file;
    session.state = state;
    (session, faults)
}

fn ids(state: &SessionState) -> Vec<EntryId> {
    state.path().iter().map(|ix| state.id(*ix)).collect()
}

#[test]
fn the_three_records_of_an_append_make_an_entry_on_the_path() {
    let (session, faults) = open(&[meta(0), entry("e1", None, "a"), leaf("e1"), meta(1)]);
    assert_eq!(faults, vec![]);
    assert_eq!(ids(&session.state), [EntryId::from("e1")]);
    let state = &session.state;
    assert_eq!((state.meta().message_count, state.meta().status), (1, SessionStatus::Working));
    assert!(!state.node(state.leaf().unwrap()).is_uncommitted());
    assert_eq!(session.text_of(&"e1".into()), "a");
}

#[test]
fn one_append_record_does_the_same() {
    let append = entry("e1", None, "a").replace(r#""type":"entry""#, r#""type":"append""#);
    let append = format!(r#"{},"meta":{}}}"#, &append[..append.len() - 1], meta_object(1));
    let (session, faults) = open(&[meta(0), append]);
    assert_eq!(faults, vec![]);
    assert_eq!(ids(&session.state), [EntryId::from("e1")]);
    assert_eq!(session.state.meta().message_count, 1);
    assert_eq!(session.text_of(&"e1".into()), "a");
}

#[test]
fn given_records_of_ours_after_the_old_ones_then_numbers_count_every_line() {
    let (mut session, _) = open(&[meta(0), entry("e1", None, "a"), leaf("e1"), meta(1)]);
    let id = session.append("b");
    assert_eq!(session.state.next_seq().0, 5);
    let (reloaded, faults) = session.reloaded();
    assert_eq!(faults, vec![]);
    assert_eq!(shape(&reloaded), shape(&session.state));
    assert_eq!(ids(&reloaded), [EntryId::from("e1"), id]);
    assert_eq!(reloaded.meta().message_count, 2);
}

#[test]
fn the_last_record_of_an_entry_decides_what_it_says() {
    let newer = entry("e1", None, "newer").replace(r#""revision":0"#, r#""revision":3"#);
    let (session, _) = open(&[meta(0), entry("e1", None, "a"), leaf("e1"), meta(1), newer, meta(1)]);
    assert_eq!(session.text_of(&"e1".into()), "newer");
    assert_eq!(session.state.node(session.state.leaf().unwrap()).revision().0, 3);
}

#[test]
fn given_an_entry_that_a_crash_left_off_the_path_when_it_is_redelivered_then_it_is_adopted() {
    let (mut session, _) =
        open(&[meta(0), entry("e1", None, "a"), leaf("e1"), meta(1), entry("e2", Some("e1"), "b")]);
    assert_eq!(ids(&session.state), [EntryId::from("e1")]);
    let mut again = request(user("whatever"));
    again.entry_id = Some("e2".into());
    let mut written = Vec::new();
    let response = session
        .decide(|state, ctx| {
            let decision = decide::append(state, again.clone(), ctx)?;
            written.clone_from(&decision.records);
            Ok(decision)
        })
        .unwrap();
    assert_eq!(written, vec![Record::Adopted(Adopted { entry_id: "e2".into() })]);
    assert_eq!(response, AppendResponse { entry_id: "e2".into(), parent_id: Some("e1".into()), timestamp: 5 });
    assert_eq!(ids(&session.state), [EntryId::from("e1"), EntryId::from("e2")]);
    assert_eq!(session.state.meta().message_count, 2);

    let once_more = decide_nothing(&mut session, again);
    assert_eq!(once_more, 0);
}

fn decide_nothing(session: &mut Session, again: banyan_model::AppendRequest) -> usize {
    let mut written = 0;
    let counted = session.decide(|state, ctx| {
        let decision = decide::append(state, again, ctx)?;
        written = decision.records.len();
        Ok(decision)
    });
    counted.map(|_| written).unwrap()
}

#[test]
fn given_a_crash_after_the_leaf_when_something_else_is_appended_then_the_entry_counts_and_stays() {
    let (mut session, _) = open(&[meta(0), entry("e1", None, "a"), leaf("e1")]);
    assert_eq!(session.state.meta().message_count, 0);
    session.append("b");
    assert_eq!(session.state.meta().message_count, 2);
    let mut again = request(user("a"));
    again.entry_id = Some("e1".into());
    assert_eq!(decide_nothing(&mut session, again), 0);
}

#[test]
fn entries_without_any_meta_are_no_session() {
    let (session, _) = open(&[entry("e1", None, "a"), leaf("e1")]);
    assert!(!session.state.exists());
}

#[test]
fn given_entries_without_any_meta_when_their_session_is_ensured_then_it_begins_empty() {
    let (mut session, _) = open(&[entry("e1", None, "a"), leaf("e1")]);
    let request = EnsureRequest { session_id: "s".into(), title: None, description: None, metadata: None };
    let response = session.decide(|state, ctx| decide::ensure(state, request, ctx)).unwrap();
    assert!(response.created);
    let id = session.append("b");
    assert_eq!(ids(&session.state), [id]);
    assert_eq!(session.state.meta().message_count, 1);
    assert_eq!(shape(&session.reloaded().0), shape(&session.state));
}

#[test]
fn given_an_entry_before_its_parent_then_the_path_is_whole() {
    let (session, _) = open(&[meta(0), entry("e2", Some("e1"), "b"), entry("e1", None, "a"), leaf("e2"), meta(2)]);
    assert_eq!(ids(&session.state), [EntryId::from("e1"), EntryId::from("e2")]);
    assert_eq!(session.text_of(&"e1".into()), "a");
    assert!(!session.state.is_cyclic());
}

#[test]
fn given_entries_that_follow_each_other_in_a_circle_then_loading_ends_and_says_so() {
    let (session, faults) =
        open(&[meta(0), entry("e1", Some("e2"), "a"), entry("e2", Some("e1"), "b"), leaf("e2"), meta(2)]);
    assert!(session.state.is_cyclic());
    assert_eq!(faults.last(), Some(&StateFault::Cycle));
    assert_eq!(session.state.path(), []);
    assert_eq!(session.state.chain(session.state.leaf().unwrap()), None);
}

#[test]
fn given_an_entry_that_follows_itself_then_that_is_a_circle_too() {
    let (session, faults) = open(&[meta(0), entry("e1", Some("e1"), "a"), leaf("e1"), meta(1)]);
    assert_eq!(faults.last(), Some(&StateFault::Cycle));
    assert_eq!(session.state.nodes().len(), 1);
}

#[test]
fn given_a_circle_when_something_is_appended_to_it_then_that_has_no_path_either() {
    let (mut session, _) =
        open(&[meta(0), entry("e1", Some("e2"), "a"), entry("e2", Some("e1"), "b"), leaf("e2"), meta(2)]);
    let id = session.append("c");
    assert_eq!(session.state.chain(session.state.find(&id).unwrap()), None);
    assert!(session.state.is_cyclic());
    assert_eq!(shape(&session.reloaded().0), shape(&session.state));
}
