#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use banyan_model::{CommitNo, EntryId, Object, Role, SessionId};
use serde_json::json;

use crate::{
    Answer, Ask, Base, Branches, Document, Query, SearchIndex, SessionNo, SessionRecord, Standing, Writer,
    labels_of,
};

fn object(value: serde_json::Value) -> Object {
    serde_json::from_value(value).unwrap()
}

/// Puts a session: its number, what each of its own entries says, and where it has its beginning from.
fn put(writer: &Writer, id: &str, number: u64, base: Option<(&str, u64)>, entries: &[(u64, Standing)]) {
    let metadata = object(json!({"of": id}));
    for (place, standing) in entries {
        let entry = Document {
            session_id: SessionId::from(id),
            session: SessionNo(number),
            entry_id: EntryId::from(format!("{id}{place}{standing:?}")),
            role: Some(Role::User),
            timestamp: 0,
            standing: *standing,
            place: *place,
            text: "word".to_owned(),
            tools: Vec::new(),
        };
        writer.add(&entry).unwrap();
    }
    let record = SessionRecord {
        number: SessionNo(number),
        born: format!("born {id}"),
        leaf: None,
        path: 0,
        labels: labels_of(Some(&metadata)),
        commit: CommitNo(1),
        seen: CommitNo(1),
        base: base.map(|(base, upto)| Base {
            session_id: SessionId::from(base),
            born: format!("born {base}"),
            upto,
            links: 1,
        }),
    };
    writer.put_session(&SessionId::from(id), &record, Some(&metadata)).unwrap();
}

fn ask(id: &str) -> Ask {
    Ask {
        ranking: crate::find::Ranking::Index,
        query: Query::parse("word"),
        metadata: Object::new(),
        workspace: None,
        session_id: Some(SessionId::from(id)),
        roles: Vec::new(),
        tool: None,
        time: i64::MIN..=i64::MAX,
        branches: Branches::All,
        now_ms: 0,
        skip: 0,
        limit: 100,
    }
}

/// The entries that were found, each with how far away in the line it is.
fn entries(answer: &Answer) -> Vec<(String, usize)> {
    let mut entries: Vec<_> = answer.hits.iter().map(|hit| (hit.entry_id.to_string(), hit.link)).collect();
    entries.sort_unstable();
    entries
}

/// `a`, its fork `b` from place 3 on, and `b`'s fork `c` from `upto` on.
fn index_with(upto: u64) -> SearchIndex {
    use Standing::{Active, Aside};
    let index = SearchIndex::in_memory().unwrap();
    let mut writer = index.writer(None).unwrap();
    put(&writer, "a", 0, None, &[(0, Active), (1, Active), (2, Aside), (2, Active), (3, Active)]);
    put(&writer, "b", 1, Some(("a", 2)), &[(3, Active), (4, Active), (4, Aside)]);
    put(&writer, "c", 2, Some(("b", upto)), &[(upto + 1, Aside)]);
    writer.commit(CommitNo(1), true).unwrap();
    index.refresh().unwrap();
    index
}

#[test]
fn a_fork_has_the_active_path_of_its_bases_up_to_each_fork_point() {
    let index = index_with(3);
    let answer = index.find(&ask("c")).unwrap();
    assert_eq!(answer.line, ["c", "b", "a"].map(SessionId::from));
    let expected = [("a0Active", 2), ("a1Active", 2), ("a2Active", 2), ("b3Active", 1), ("c4Aside", 0)];
    assert_eq!(entries(&answer), expected.map(|(id, link)| (id.to_owned(), link)));
    // What is not on the fork's own active path is left out as in any session.
    let active = index.find(&Ask { branches: Branches::Active, ..ask("c") }).unwrap();
    assert_eq!(active.hits.len(), 4);
}

#[test]
fn a_fork_of_what_its_base_has_inherited_takes_nothing_of_that_base_itself() {
    let index = index_with(1);
    let answer = index.find(&ask("c")).unwrap();
    let expected = [("a0Active", 2), ("a1Active", 2), ("c2Aside", 0)];
    assert_eq!(entries(&answer), expected.map(|(id, link)| (id.to_owned(), link)));
}

#[test]
fn metadata_is_asked_about_of_the_fork_and_not_of_its_bases() {
    let index = index_with(3);
    let of = |id: &str| Ask { metadata: object(json!({"of": id})), ..ask("c") };
    assert_eq!(index.find(&of("c")).unwrap().hits.len(), 5);
    assert_eq!(index.find(&of("a")).unwrap(), Answer::default());
}

#[test]
fn without_a_session_each_entry_is_found_once_in_the_session_that_said_it() {
    let index = index_with(3);
    let answer = index.find(&Ask { session_id: None, branches: Branches::Active, ..ask("c") }).unwrap();
    assert!(answer.line.is_empty());
    assert_eq!(answer.hits.len(), 6);
    assert!(
        answer.hits.iter().all(|hit| hit.link == 0 && hit.entry_id.as_str().starts_with(hit.session_id.as_str()))
    );
}

#[test]
fn the_forks_that_need_a_session_are_known() {
    let index = index_with(3);
    assert_eq!(index.forks_of(&SessionId::from("a")).unwrap(), [SessionId::from("b")]);
    assert_eq!(index.forks_of(&SessionId::from("b")).unwrap(), [SessionId::from("c")]);
    assert!(index.forks_of(&SessionId::from("c")).unwrap().is_empty());
}

#[test]
fn labels_are_the_same_whatever_the_order_and_others_with_any_other_pair() {
    let labels = |value| labels_of(Some(&object(value)));
    assert_eq!(labels(json!({"a": 1, "cwd": "/x"})), labels(json!({"cwd": "/x", "a": 1})));
    assert_eq!(labels(json!({})), labels_of(None));
    let all = [json!({"a": 1}), json!({"a": 2}), json!({"b": 1}), json!({"a": 1, "b": 1}), json!({})].map(labels);
    for (at, one) in all.iter().enumerate() {
        assert!(!all[at + 1..].contains(one), "{at}");
    }
}
