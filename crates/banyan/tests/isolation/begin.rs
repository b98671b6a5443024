//! Sessions that begin, get other metadata, and are listed.

use banyan::{Access, Banyan};
use serde_json::{Value, json};

use super::tenants::{Tenants, all_of, furnish, likenesses, listed, scope};
use crate::support::*;

/// A handle's own pairs.
fn pairs(store: &Banyan) -> Value {
    Value::Object(store.access().scope.pairs().clone())
}

/// True when the metadata has each of the pairs.
fn carries(metadata: &Value, pairs: &Value) -> bool {
    pairs.as_object().unwrap().iter().all(|(key, value)| metadata.get(key) == Some(value))
}

#[test]
fn a_session_gets_the_pairs_of_the_handle_that_began_it() {
    for (mine, theirs) in likenesses() {
        let tenants = Tenants::of(&mine, &theirs);
        let store = door(&tenants.mine);
        let mut ears = Ears::open(&tenants.mine);
        let created = store.ok("create", json!({"metadata": {"x": 1}}));
        let ensured = store.ok("ensure", json!({"session_id": "e"}));
        let entry = store.say(&json!("e"), "hi");
        let forked = store.ok("fork", json!({"session_id": "e", "entry_id": entry}));
        for answer in [&created, &ensured, &forked] {
            assert!(carries(&answer["meta"]["metadata"], &pairs(&tenants.mine)), "{answer}");
            assert_eq!(store.meta(&answer["session_id"]), door(&tenants.all).meta(&answer["session_id"]));
        }
        assert_eq!(created["meta"]["metadata"]["x"], 1);
        assert_eq!(types(&ears.heard()), ["created", "created", "message-added", "created"]);
        assert_eq!(listed(&tenants.mine).len(), 3);
        assert_eq!(listed(&tenants.all).len(), 3);
        assert_eq!(listed(&tenants.theirs), [""; 0], "{theirs} is shown what is of {mine}");
    }
}

#[test]
fn metadata_that_contradicts_the_scope_is_refused_and_changes_nothing() {
    let tenants = Tenants::plain();
    let own = furnish(&tenants.mine, "own");
    let before = all_of(&tenants.all, &own.session);
    let mut ears = Ears::open(&tenants.all);
    let contradiction = json!({"tenant": "b", "x": 1});
    for (function, request) in [
        ("create", json!({"metadata": contradiction})),
        ("ensure", json!({"session_id": "new", "metadata": contradiction})),
        ("ensure", json!({"session_id": "own", "metadata": contradiction})),
        ("set-meta", json!({"session_id": "own", "title": "changed", "metadata": contradiction})),
        ("set-meta", json!({"session_id": "nobody", "metadata": {"tenant": null}})),
    ] {
        let refusal = door(&tenants.mine).call(function, request.clone()).unwrap_err();
        assert_eq!(refusal.code, "auth/forbidden", "{function} {request}");
        assert!(refusal.message.contains("`tenant`") && refusal.message.contains("leave"), "{}", refusal.message);
    }
    assert_eq!(all_of(&tenants.all, &own.session), before);
    assert_eq!(listed(&tenants.all), ["own"]);
    assert_eq!(ears.heard(), []);
}

#[test]
fn new_metadata_keeps_the_pairs_of_the_scope() {
    let tenants = Tenants::plain();
    let own = furnish(&tenants.mine, "own").session;
    let mut ears = Ears::open(&tenants.mine);
    for (metadata, kept) in [
        (json!({"y": 2}), json!({"y": 2, "tenant": "a"})),
        (json!({}), json!({"tenant": "a"})),
        (json!({"tenant": "a", "z": 3}), json!({"tenant": "a", "z": 3})),
    ] {
        let answer = door(&tenants.mine).ok("set-meta", json!({"session_id": own, "metadata": metadata}));
        assert_eq!(answer["meta"]["metadata"], kept);
        assert_eq!(door(&tenants.all).meta(&own)["metadata"], kept);
        assert_eq!(ears.heard()[0].payload["metadata"], kept);
    }
    door(&tenants.mine).ok("set-meta", json!({"session_id": own, "title": "only"}));
    assert_eq!(door(&tenants.mine).meta(&own)["metadata"], json!({"tenant": "a", "z": 3}));
}

#[test]
fn an_id_that_is_taken_out_of_scope_cannot_be_ensured() {
    for (mine, theirs) in likenesses() {
        let tenants = Tenants::of(&mine, &theirs);
        let victim = furnish(&tenants.theirs, "taken");
        let before = all_of(&tenants.all, &victim.session);
        let mut ears = Ears::open(&tenants.all);
        let missing = door(&tenants.mine).call("append", json!({"session_id": "taken", "message": user("x")}));
        let refusal = door(&tenants.mine).call("ensure", json!({"session_id": "taken", "title": "mine"}));
        assert_eq!(refusal.clone().unwrap_err().code, "session/not_found");
        assert_eq!(refusal, missing, "the words are those of any missing session");
        assert_eq!(all_of(&tenants.all, &victim.session), before);
        assert_eq!(ears.heard(), []);
        door(&tenants.theirs).ok("delete", json!({"session_id": "taken"}));
        assert_eq!(door(&tenants.mine).ok("ensure", json!({"session_id": "taken"}))["created"], true);
    }
}

#[test]
fn list_is_the_scope_and_the_filter() {
    let tenants = Tenants::plain();
    for n in 0..25 {
        for store in [&tenants.mine, &tenants.theirs] {
            door(store).ok("create", json!({"metadata": {"parity": n % 2, "n": n}}));
        }
    }
    door(&tenants.all).ok("create", json!({"metadata": {"parity": 0}}));
    let store = door(&tenants.mine);
    let count = |filter: Value| {
        let (mut found, mut cursor) = (0, Value::Null);
        loop {
            let page = store.ok("list", json!({"metadata": filter, "limit": 4, "cursor": cursor}));
            for session in page["sessions"].as_array().unwrap() {
                assert_eq!(session["metadata"]["tenant"], "a");
                found += 1;
            }
            cursor = page["next_cursor"].clone();
            if cursor.is_null() {
                return found;
            }
        }
    };
    assert_eq!(count(Value::Null), 25);
    assert_eq!(count(json!({})), 25);
    assert_eq!(count(json!({"parity": 0})), 13);
    assert_eq!(count(json!({"parity": 0, "tenant": "a"})), 13);
    assert_eq!(count(json!({"tenant": "b"})), 0);
    assert_eq!(count(json!({"tenant": null})), 0);
    assert_eq!(
        store.refused("list", json!({"metadata": {"tenant": "b"}, "cursor": "?"})),
        "session/invalid_cursor"
    );
    let theirs = door(&tenants.theirs).ok("list", json!({"limit": 3}))["next_cursor"].clone();
    let page = store.ok("list", json!({"cursor": theirs}));
    assert!(page["sessions"].as_array().unwrap().iter().all(|it| it["metadata"]["tenant"] == "a"));
}

#[test]
fn narrowing_a_narrowed_handle_keeps_both() {
    let tenants = Tenants::plain();
    let team = tenants.mine.with_access(scope(&json!({"team": "x"})));
    let id = door(&team).session();
    assert_eq!(door(&tenants.all).meta(&id)["metadata"], json!({"tenant": "a", "team": "x"}));
    let other = door(&tenants.mine).session();
    assert_eq!(listed(&team), [id.as_str().unwrap()]);
    assert_eq!(door(&team).ok("get", json!({"session_id": other})), Value::Null);
    let wide = team.with_access(Access::default());
    assert_eq!(wide.access(), team.access());
    // Two values for one key: no session has both.
    let none = tenants.mine.with_access(scope(&json!({"tenant": "b"})));
    furnish(&tenants.theirs, "theirs");
    assert_eq!(listed(&none), [""; 0]);
    for session in [&other, &json!("theirs"), &json!("nobody")] {
        assert_eq!(door(&none).ok("get", json!({"session_id": session})), Value::Null);
        assert_eq!(door(&none).ok("delete", json!({"session_id": session})), json!({"deleted": false}));
        assert_eq!(door(&none).refused("ensure", json!({"session_id": session})), "auth/forbidden");
    }
    assert_eq!(door(&none).refused("create", json!({})), "auth/forbidden");
}

#[test]
fn a_session_that_is_given_away_is_gone_for_the_one_who_had_it() {
    let tenants = Tenants::plain();
    let own = furnish(&tenants.mine, "own").session;
    door(&tenants.all).ok("set-meta", json!({"session_id": own, "metadata": {"tenant": "b"}}));
    assert_eq!(door(&tenants.mine).ok("get", json!({"session_id": own})), Value::Null);
    assert_eq!(
        door(&tenants.mine).refused("append", json!({"session_id": own, "message": user("x")})),
        "session/not_found"
    );
    assert_eq!(listed(&tenants.mine), [""; 0]);
    door(&tenants.theirs).say(&own, "thanks");
}
