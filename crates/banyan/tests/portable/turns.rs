use serde_json::{Value, json};

use crate::{append, assistant, call, furnish, store, user};

#[test]
fn given_a_session_when_its_turns_are_asked_for_then_their_facts_are_there() {
    let store = store();
    furnish(&store, "s");
    let turns = call(&store, "turns", json!({"session_id": "s"}));
    let told: Vec<(&Value, &Value)> =
        turns["turns"].as_array().unwrap().iter().map(|turn| (&turn["turn_id"], &turn["status"])).collect();
    assert_eq!(told, [(&json!("u1"), &json!("interrupted")), (&json!("u3"), &json!("finished"))]);
    let first = &turns["turns"][0];
    assert_eq!(first["tools"][0]["state"], "ok");
    assert_eq!(first["tools"][0]["duration_ms"], 1000);
    assert_eq!(first["working_directory"], "/repo");
    assert_eq!(first["usage"], json!({"input": 3, "output": 4}));
    assert_eq!(turns.get("next_cursor"), None);
}

#[test]
fn given_many_turns_when_they_are_read_in_pages_then_the_pages_are_the_whole() {
    let store = store();
    call(&store, "ensure", json!({"session_id": "s", "metadata": {"model": "from metadata"}}));
    let context = |data: Value| {
        call(&store, "append", json!({"session_id": "s", "custom": {"custom_type": "context", "data": data}}))
    };
    for at in 0..7 {
        if at == 1 {
            context(json!({"cwd": "/one"}));
            context(json!({"sources": [{"path": "/A.md", "hash": "h"}]}));
        }
        append(&store, "s", &format!("u{at}"), None, user("?"));
        append(&store, "s", &format!("a{at}"), None, assistant(json!([{"type": "text", "text": "!"}]), "end"));
    }
    let whole = call(&store, "turns", json!({"session_id": "s"}))["turns"].clone();
    assert_eq!(whole.as_array().unwrap().len(), 7);
    assert_eq!(
        (&whole[6]["working_directory"], &whole[6]["instructions"][0]["hash"]),
        (&json!("/one"), &json!("h"))
    );
    for limit in 1..9 {
        let (mut pages, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let page = call(&store, "turns", json!({"session_id": "s", "limit": limit, "cursor": cursor}));
            pages.extend(page["turns"].as_array().unwrap().clone());
            match page.get("next_cursor") {
                Some(next) => cursor = next.clone(),
                None => break,
            }
        }
        assert_eq!(Value::from(pages), whole, "{limit}");
    }
}

#[test]
fn given_nothing_or_nonsense_when_turns_are_asked_for_then_the_answer_says_so() {
    let store = store();
    call(&store, "ensure", json!({"session_id": "s"}));
    assert_eq!(call(&store, "turns", json!({"session_id": "s"})), json!({"turns": []}));
    let refused = |request: Value| {
        let error = banyan::block_on(store.call("session::turns", request.to_string().as_bytes())).unwrap_err();
        let banyan::CallError::Refused(error) = error else { panic!("{error}") };
        error.code.as_str()
    };
    assert_eq!(refused(json!({"session_id": "nobody"})), "session/not_found");
    assert_eq!(refused(json!({"session_id": "s", "cursor": "?"})), "session/invalid_cursor");
    append(&store, "s", "u", None, user("?"));
    let elsewhere = call(&store, "turns", json!({"session_id": "s"}));
    assert_eq!(elsewhere["turns"][0]["status"], "pending");
    // A cursor of an entry that is not on the path.
    assert_eq!(refused(json!({"session_id": "s", "cursor": "eyJpZCI6Im5vcGUifQ=="})), "session/invalid_cursor");
}
