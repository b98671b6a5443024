//! The examples of `session::list`: order, ties, filters, cursors.

use crate::support::*;
use banyan_index::{Catalogue, ListPage, ListQuery};
use banyan_model::{ListOrder, SessionId, SessionStatus};
use serde_json::{Value, json};

fn catalogue_of(sessions: &[(&str, i64, i64)]) -> Catalogue {
    let catalogue = Catalogue::in_memory().unwrap();
    for (id, created_at, updated_at) in sessions {
        catalogue.note(with_meta(session(id), |meta| {
            meta.created_at = *created_at;
            meta.updated_at = *updated_at;
        }));
    }
    catalogue
}

#[test]
fn given_equal_times_when_listed_then_ids_go_in_the_direction_of_the_order() {
    let catalogue = catalogue_of(&[("b", 1, 5), ("a", 1, 5), ("c", 2, 5), ("d", 0, 9)]);
    for flushed in [false, true] {
        if flushed {
            catalogue.flush().unwrap();
        }
        let by = |order| ids(&catalogue, &ListQuery { order, ..ALL });
        assert_eq!(by(ListOrder::UpdatedDesc), ["d", "c", "b", "a"]);
        assert_eq!(by(ListOrder::CreatedDesc), ["c", "b", "a", "d"]);
        assert_eq!(by(ListOrder::CreatedAsc), ["d", "a", "b", "c"]);
    }
}

#[test]
fn given_more_sessions_than_the_limit_when_listed_then_more_is_said_until_the_last_page() {
    let catalogue = catalogue_of(&[("a", 0, 1), ("b", 0, 2), ("c", 0, 3)]);
    catalogue.flush().unwrap();
    let page = |after: Option<(i64, &str)>| {
        let id = after.map(|(_, id)| SessionId::from(id));
        let after = after.zip(id.as_ref()).map(|((key, _), id)| (key, id));
        let ListPage { sessions, more } = catalogue.list(&ListQuery { after, limit: 2, ..ALL }).unwrap();
        (sessions.into_iter().map(|meta| meta.session_id.to_string()).collect::<Vec<_>>(), more)
    };
    assert_eq!(page(None), (vec!["c".to_owned(), "b".to_owned()], true));
    assert_eq!(page(Some((2, "b"))), (vec!["a".to_owned()], false));
    assert_eq!(page(Some((1, "a"))), (vec![], false));
    // The keys need not be a session's.
    assert_eq!(page(Some((2, "bb"))), (vec!["b".to_owned(), "a".to_owned()], false));
}

#[test]
fn given_a_page_was_read_when_its_last_session_is_deleted_then_the_next_page_follows_it() {
    let catalogue = catalogue_of(&[("a", 0, 1), ("b", 0, 2), ("c", 0, 3)]);
    let b = SessionId::from("b");
    catalogue.forget(&b);
    assert_eq!(ids(&catalogue, &ListQuery { after: Some((2, &b)), ..ALL }), ["a"]);
    catalogue.flush().unwrap();
    assert_eq!(ids(&catalogue, &ListQuery { after: Some((2, &b)), ..ALL }), ["a"]);
}

#[test]
fn given_a_page_was_read_when_a_later_session_is_touched_then_it_moves_ahead_and_is_not_met_again() {
    let catalogue = catalogue_of(&[("a", 0, 1), ("b", 0, 2), ("c", 0, 3)]);
    catalogue.flush().unwrap();
    catalogue.note(with_meta(session("a"), |meta| meta.updated_at = 4));
    let c = SessionId::from("c");
    assert_eq!(ids(&catalogue, &ListQuery { after: Some((3, &c)), ..ALL }), ["b"]);
    assert_eq!(ids(&catalogue, &ALL), ["a", "c", "b"]);
}

#[test]
fn given_metadata_when_filtered_then_each_wanted_key_must_be_deeply_equal() {
    let catalogue = Catalogue::in_memory().unwrap();
    let stored = [
        ("absent", None),
        ("empty", Some(json!({}))),
        ("one", Some(json!({"owner": "u_1"}))),
        ("two", Some(json!({"owner": "u_1", "tags": ["x", "y"]}))),
        ("deep", Some(json!({"owner": {"id": 1, "org": {"a": 1, "b": 2}}}))),
        ("null", Some(json!({"owner": null}))),
    ];
    for (id, metadata) in stored {
        catalogue.note(with_meta(session(id), |meta| meta.metadata = metadata.map(object)));
    }
    let cases: [(Value, &[&str]); 10] = [
        (json!({}), &["two", "one", "null", "empty", "deep", "absent"]),
        (json!({"owner": "u_1"}), &["two", "one"]),
        (json!({"owner": "u_1", "tags": ["x", "y"]}), &["two"]),
        (json!({"tags": ["y", "x"]}), &[]),
        (json!({"tags": ["x"]}), &[]),
        (json!({"owner": {"org": {"b": 2, "a": 1}, "id": 1}}), &["deep"]),
        (json!({"owner": {"id": 1}}), &[]),
        (json!({"owner": null}), &["null"]),
        (json!({"nobody": null}), &[]),
        (json!({"owner": "u_1", "nobody": 1}), &[]),
    ];
    for flushed in [false, true] {
        if flushed {
            catalogue.flush().unwrap();
        }
        for (wanted, found) in &cases {
            let wanted = object(wanted.clone());
            assert_eq!(ids(&catalogue, &ListQuery { metadata: Some(&wanted), ..ALL }), *found, "{wanted:?}");
        }
    }
}

#[test]
fn given_a_session_with_very_many_keys_when_any_of_them_is_wanted_then_it_is_found_once() {
    let catalogue = Catalogue::in_memory().unwrap();
    let many = object((0..200).map(|i| (format!("k{i}"), json!(i))).collect());
    catalogue.note(with_meta(session("wide"), |meta| meta.metadata = Some(many)));
    catalogue.note(with_meta(session("narrow"), |meta| meta.metadata = Some(object(json!({"k7": 7})))));
    catalogue.flush().unwrap();
    let find = |wanted: Value, status| {
        let wanted = object(wanted);
        ids(&catalogue, &ListQuery { metadata: Some(&wanted), status, ..ALL })
    };
    assert_eq!(find(json!({"k7": 7}), None), ["wide", "narrow"]);
    assert_eq!(find(json!({"k7": 7, "k100": 100}), None), ["wide"]);
    assert_eq!(find(json!({"k7": 7}), Some(SessionStatus::Idle)), ["wide", "narrow"]);
    assert_eq!(find(json!({"k7": 8}), None), Vec::<String>::new());
}

#[test]
fn given_a_status_and_metadata_when_both_are_wanted_then_both_must_match() {
    let catalogue = Catalogue::in_memory().unwrap();
    for i in 0..200 {
        catalogue.note(with_meta(session(&format!("s{i:03}")), |meta| {
            meta.status = if i == 150 { SessionStatus::Error } else { SessionStatus::Done };
            meta.metadata = Some(object(json!({"half": i % 2, "tenth": i % 10})));
        }));
    }
    catalogue.flush().unwrap();
    let wanted = object(json!({"half": 0, "tenth": 0}));
    let find = |status| ids(&catalogue, &ListQuery { metadata: Some(&wanted), status: Some(status), ..ALL });
    assert_eq!(find(SessionStatus::Error), ["s150"]);
    assert_eq!(find(SessionStatus::Done).len(), 19);
    assert_eq!(find(SessionStatus::Working), Vec::<String>::new());
}

#[test]
fn given_ids_and_texts_of_any_characters_when_read_back_then_they_are_the_same() {
    let catalogue = Catalogue::in_memory().unwrap();
    let odd = "a/\u{0}'\"%\u{1F333} ";
    let row = with_meta(session(odd), |meta| {
        meta.title = "\u{0}title\n".to_owned();
        meta.status = SessionStatus::Error;
        meta.status_reason = Some("why".to_owned());
        meta.metadata = Some(object(json!({"\u{0}": [1.5, -0.0, u64::MAX, i64::MIN, {"z": 1, "a": 2}]})));
        meta.forked_from = Some(SessionId::from("elsewhere"));
        meta.message_count = u64::MAX;
        meta.created_at = i64::MIN;
        meta.updated_at = i64::MAX;
    });
    catalogue.note(row.clone());
    catalogue.flush().unwrap();
    assert_eq!(catalogue.get(&SessionId::from(odd)).unwrap(), Some(row.clone()));
    assert_eq!(catalogue.list(&ALL).unwrap(), ListPage { sessions: vec![row.meta.as_ref().clone()], more: false });
}
