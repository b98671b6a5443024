//! Asking for one session through a filter.

use banyan_index::{Catalogue, Listing};
use banyan_model::SessionId;
use serde_json::{Value, json};

use crate::support::*;

fn with_metadata(row: banyan_index::Row, metadata: Value) -> banyan_index::Row {
    with_meta(row, |meta| meta.metadata = Some(object(metadata)))
}

fn listing(catalogue: &Catalogue, id: &str, wanted: Value) -> Listing {
    catalogue.listing(&SessionId::from(id), &object(wanted)).unwrap()
}

#[test]
fn given_metadata_when_one_session_is_asked_for_then_it_matches_as_in_a_list() {
    let stored =
        json!({"owner": "u_1", "n": 1, "f": 1.5, "deep": {"x": [1, null], "y": "\u{1f333}"}, "none": null});
    let catalogue = Catalogue::in_memory().unwrap();
    catalogue.note(with_metadata(session("a"), stored));
    catalogue.note(session("bare"));
    for flushed in [false, true] {
        if flushed {
            catalogue.flush().unwrap();
        }
        for (wanted, expected) in [
            (json!({}), Listing::Matching),
            (json!({"owner": "u_1"}), Listing::Matching),
            (json!({"n": 1, "f": 1.5, "none": null}), Listing::Matching),
            (json!({"deep": {"y": "\u{1f333}", "x": [1, null]}}), Listing::Matching),
            (json!({"n": 1.0}), Listing::Other),
            (json!({"n": "1"}), Listing::Other),
            (json!({"owner": "u_1", "missing": null}), Listing::Other),
            (json!({"deep": {"x": [1, null]}}), Listing::Other),
        ] {
            assert_eq!(listing(&catalogue, "a", wanted.clone()), expected, "{wanted}, flushed: {flushed}");
            assert_eq!(listing(&catalogue, "nobody", wanted.clone()), Listing::Absent, "{wanted}");
        }
        assert_eq!(listing(&catalogue, "bare", json!({})), Listing::Matching);
        assert_eq!(listing(&catalogue, "bare", json!({"owner": "u_1"})), Listing::Other);
    }
}

#[test]
fn given_very_many_keys_when_one_session_is_asked_for_then_its_metadata_decides() {
    let many: serde_json::Map<String, Value> = (0..100).map(|n| (format!("k{n}"), json!(n))).collect();
    let catalogue = Catalogue::in_memory().unwrap();
    catalogue.note(with_metadata(session("a"), Value::Object(many)));
    catalogue.flush().unwrap();
    assert_eq!(listing(&catalogue, "a", json!({"k99": 99, "k0": 0})), Listing::Matching);
    assert_eq!(listing(&catalogue, "a", json!({"k99": 0})), Listing::Other);
}

#[test]
fn given_changes_that_are_only_noted_when_one_session_is_asked_for_then_they_count() {
    let catalogue = Catalogue::in_memory().unwrap();
    let (mine, yours) = (json!({"owner": "me"}), json!({"owner": "you"}));
    let of = |id: &str, born: &str, owner: &Value| with_metadata(file(id, born), owner.clone());
    catalogue.note(of("moved", "b1", &mine));
    catalogue.note(of("gone", "b1", &mine));
    catalogue.note(of("kept for forks", "b1", &mine));
    catalogue.note(of("born again", "b1", &mine));
    catalogue.flush().unwrap();
    catalogue.note(of("moved", "b1", &yours));
    catalogue.forget(&SessionId::from("gone"));
    catalogue.note(retained(of("kept for forks", "b1", &mine)));
    catalogue.forget(&SessionId::from("born again"));
    catalogue.note(of("born again", "b2", &yours));
    for flushed in [false, true] {
        if flushed {
            catalogue.flush().unwrap();
        }
        let seen = |owner: &Value| {
            ["moved", "gone", "kept for forks", "born again"].map(|id| listing(&catalogue, id, owner.clone()))
        };
        use Listing::{Absent, Matching, Other};
        assert_eq!(seen(&mine), [Other, Absent, Absent, Other], "flushed: {flushed}");
        assert_eq!(seen(&yours), [Matching, Absent, Absent, Matching], "flushed: {flushed}");
    }
}
