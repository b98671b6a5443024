//! Every function of the table, with a session of another tenant, with one that does not exist and with one's own.

use banyan::{Effect, functions};
use serde_json::{Value, json};

use super::examples::{Example, example};
use super::tenants::{Furnished, Tenants, all_of, furnish, likenesses, listed};
use crate::support::*;

/// What a call says, with the session's id left open.
fn answer(store: &dyn Door, function: &str, request: &Value, session: &Value) -> String {
    let said = match store.call_text(function, &request.to_string()) {
        Ok(answer) => answer.to_string(),
        Err(refusal) => format!("{}: {}", refusal.code, refusal.message),
    };
    said.replace(session.as_str().unwrap(), "ID")
}

#[test]
fn another_tenants_session_is_to_every_function_like_one_that_does_not_exist() {
    for (mine, theirs) in likenesses() {
        let tenants = Tenants::of(&mine, &theirs);
        let victim = furnish(&tenants.theirs, "their session");
        let before = all_of(&tenants.all, &victim.session);
        let nobody = Furnished { session: json!("nobody at all"), ..victim.clone() };
        let (mut ears, mut all_ears) = (Ears::open(&tenants.mine), Ears::open(&tenants.all));
        for function in functions() {
            let (Example::OfSession(theirs), Example::OfSession(nobodys)) =
                (example(function.id, &victim), example(function.id, &nobody))
            else {
                continue;
            };
            for (request, to_nobody) in theirs.iter().zip(&nobodys) {
                let to_theirs = answer(&tenants.mine, function.id, request, &victim.session);
                let missing = answer(&tenants.mine, function.id, to_nobody, &nobody.session);
                assert_eq!(
                    to_theirs, missing,
                    "{} {request} with {mine} against {}",
                    function.id, tenants.their_pairs
                );
                let unscoped = answer(&tenants.all, function.id, to_nobody, &nobody.session);
                assert_eq!(
                    missing, unscoped,
                    "{} {to_nobody}: the words are those of any missing session",
                    function.id
                );
            }
        }
        assert_eq!(
            all_of(&tenants.all, &victim.session),
            before,
            "{mine} changed what is of {}",
            tenants.their_pairs
        );
        assert_eq!(ears.heard(), []);
        assert_eq!(all_ears.heard(), [], "nothing happened at all");
        assert_eq!(listed(&tenants.mine), [""; 0]);
    }
}

#[test]
fn ones_own_session_works_in_every_function() {
    for (mine, theirs) in likenesses() {
        let tenants = Tenants::of(&mine, &theirs);
        let victim = furnish(&tenants.theirs, "their session");
        let before = all_of(&tenants.all, &victim.session);
        for function in functions() {
            let own = furnish(&tenants.mine, &format!("own {}", function.id));
            let requests = match example(function.id, &own) {
                Example::OfSession(requests) => requests,
                Example::MakesSession(request) | Example::OfNone(request) => vec![request],
            };
            for request in requests {
                let answer = tenants.mine.call_text(function.id, &request.to_string());
                let answer = answer.unwrap_or_else(|refusal| panic!("{} {request}: {refusal:?}", function.id));
                assert!(!answer.is_null(), "{} {request}", function.id);
                if function.effect == Effect::Reads {
                    assert_eq!(
                        Ok(without_scores(answer)),
                        tenants.all.call_text(function.id, &request.to_string()).map(|all| own_of(all, &victim))
                    );
                }
            }
        }
        assert_eq!(all_of(&tenants.all, &victim.session), before);
    }
}

/// An answer without the other tenant's session, which only list shows.
fn own_of(mut answer: Value, victim: &Furnished) -> Value {
    if let Some(sessions) = answer.get_mut("sessions").and_then(Value::as_array_mut) {
        sessions.retain(|it| it["session_id"] != victim.session);
    }
    without_scores(answer)
}

/// How rare a word is among all entries counts for nothing in what a tenant is told, so scores differ.
fn without_scores(mut answer: Value) -> Value {
    for hit in answer.get_mut("hits").and_then(Value::as_array_mut).into_iter().flatten() {
        assert!(hit["score"].as_f64().is_some_and(|score| score > 0.0), "{hit}");
        hit["score"] = Value::Null;
    }
    answer
}

#[test]
fn what_belongs_to_another_session_is_not_found_through_ones_own() {
    let tenants = Tenants::plain();
    let (victim, own) = (furnish(&tenants.theirs, "theirs"), furnish(&tenants.mine, "own"));
    let before = all_of(&tenants.all, &victim.session);
    let mine = door(&tenants.mine);
    let in_own = |rest: Value| {
        let mut request = rest;
        request["session_id"] = own.session.clone();
        request
    };
    for attachment in [&victim.shown, &victim.unused] {
        let request = in_own(json!({"attachment_id": attachment}));
        assert_eq!(mine.ok("get-attachment", request.clone()), Value::Null);
        assert_eq!(mine.ok("delete-attachment", request), json!({"deleted": false}));
    }
    assert_eq!(mine.ok("get-message", in_own(json!({"entry_id": victim.message}))), Value::Null);
    assert_eq!(mine.refused("fork", in_own(json!({"entry_id": victim.message}))), "session/entry_not_found");
    assert_eq!(
        mine.refused("set-active-leaf", in_own(json!({"entry_id": victim.leaf}))),
        "session/entry_not_found"
    );
    let branch = in_own(json!({"message": user("x"), "parent_id": victim.leaf}));
    assert_eq!(mine.refused("append", branch), "session/parent_not_found");
    // Showing a file of another session shows nothing of it, and a fork does not bring it along either.
    let block = json!({"type": "file", "attachment_id": victim.shown, "name": "n", "mime": "m", "size": 1});
    let entry =
        mine.append(&own.session, json!({"message": {"role": "user", "content": [block], "timestamp": 1}}));
    let fork = mine.ok("fork", in_own(json!({"entry_id": entry})))["session_id"].clone();
    let from_fork = json!({"session_id": fork, "attachment_id": victim.shown});
    assert_eq!(mine.ok("get-attachment", from_fork), Value::Null);
    assert_eq!(all_of(&tenants.all, &victim.session), before);
}

#[test]
fn the_same_bytes_stored_by_two_tenants_are_independent() {
    let tenants = Tenants::plain();
    let put = |store: &dyn Door| {
        let session = store.session();
        let data = base64(&[7; 100_000]);
        let put =
            store.ok("put-attachment", json!({"session_id": session, "name": "n", "mime": "m", "data": data}));
        json!({"session_id": session, "attachment_id": put["attachment"]["attachment_id"]})
    };
    let (theirs, mine) = (put(&tenants.theirs), put(&tenants.mine));
    assert_eq!(door(&tenants.mine).ok("delete-attachment", mine.clone()), json!({"deleted": true}));
    door(&tenants.mine).ok("delete", json!({"session_id": mine["session_id"]}));
    assert_eq!(door(&tenants.theirs).ok("get-attachment", theirs)["data"], base64(&[7; 100_000]));
}
