//! Handles that may only read.

use banyan::model::ErrorCode;
use banyan::{Access, Banyan, Effect, block_on, functions};
use serde_json::{Value, json};

use super::examples::{Example, example};
use super::tenants::{Tenants, all_of, furnish};
use crate::support::*;

fn reader(store: &Banyan) -> Banyan {
    store.with_access(Access { read_only: true, ..Access::default() })
}

#[test]
fn every_function_that_writes_is_refused_and_every_other_answers() {
    let tenants = Tenants::plain();
    let own = furnish(&tenants.mine, "own");
    let before = all_of(&tenants.all, &own.session);
    let mut ears = Ears::open(&tenants.all);
    for store in [&tenants.mine, &tenants.all] {
        let reader = reader(store);
        for function in functions() {
            let requests = match example(function.id, &own) {
                Example::OfSession(requests) => requests,
                Example::MakesSession(request) | Example::OfNone(request) => vec![request],
            };
            // What is wrong with a request does not matter to who may not make it.
            for request in requests.iter().map(Value::to_string).chain(["no JSON".to_owned()]) {
                let answer = reader.call_text(function.id, &request);
                match function.effect {
                    Effect::Writes => {
                        assert_eq!(answer.unwrap_err().code, "auth/forbidden", "{} {request}", function.id)
                    }
                    Effect::Reads => {
                        assert_eq!(answer, store.call_text(function.id, &request), "{} {request}", function.id)
                    }
                }
            }
        }
    }
    assert_eq!(all_of(&tenants.all, &own.session), before);
    assert_eq!(ears.heard(), []);
}

#[test]
fn the_methods_refuse_by_themselves() {
    let tenants = Tenants::plain();
    let own = furnish(&tenants.mine, "own");
    let before = all_of(&tenants.all, &own.session);
    let reader = reader(&tenants.mine);
    macro_rules! refused {
        ($($method:ident($request:tt))*) => {$(
            let mut request = json!($request);
            request["session_id"] = own.session.clone();
            let outcome = block_on(reader.$method(serde_json::from_value(request).unwrap()));
            assert_eq!(outcome.err().map(|error| error.code), Some(ErrorCode::Forbidden), stringify!($method));
        )*};
    }
    refused! {
        create({})
        ensure({})
        set_meta({"title": "x"})
        set_status({"status": "done"})
        delete({})
        append({"message": (user("x"))})
        append_many({"messages": [(user("x"))]})
        update_message({"entry_id": (own.message), "content": []})
        extend_message({"entry_id": (own.message), "text": "x"})
        fork({"entry_id": (own.message)})
        set_active_leaf({"entry_id": (own.message)})
        put_attachment({"name": "n", "mime": "m", "data": ""})
        delete_attachment({"attachment_id": (own.unused)})
    }
    let writing = functions().iter().filter(|function| function.effect == Effect::Writes).count();
    assert_eq!(writing, 13, "a function that writes is missing above");
    assert_eq!(all_of(&tenants.all, &own.session), before);
}

#[test]
fn a_reader_cannot_be_made_a_writer() {
    let tenants = Tenants::plain();
    let reader = reader(&tenants.mine).with_access(Access::default());
    assert_eq!(door(&reader).refused("create", json!({})), "auth/forbidden");
}
