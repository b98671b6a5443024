//! Posting: what is there is not added again, and what cannot be added changes nothing.

use banyan::Options;
use banyan_server::{KeyStore, NewKey};
use serde_json::{Value, json};

use crate::front_end::*;
use crate::listening::*;

const HISTORY: &str = "/sessions/s/history";

fn question(interaction: &str, text: &str) -> Value {
    json!({"role": "user", "interaction_id": interaction, "timestamp": "2026-01-22T21:47:29.763430",
        "text_content": text})
}

fn reply(interaction: &str, parts: &Value) -> Value {
    json!({"role": "assistant", "interaction_id": interaction, "timestamp": "2026-01-22T21:47:30.000001",
        "parts": parts})
}

fn text(text: &str) -> Value {
    json!({"type": "text_output", "text": text})
}

fn chart(name: &str) -> Value {
    json!({"type": "chart", "chartConfig": {"name": name}})
}

#[test]
fn given_own_turns_when_their_history_is_posted_back_then_nothing_is_added() {
    let server = Server::new();
    talk(&server, "s", 60);
    server.say("s", user("what is the weather?", 70_000));
    server.say(
        "s",
        json!({"role": "assistant", "timestamp": 70_001, "model": "m", "provider": "p",
        "stop_reason": "function_call", "content": [{"type": "thinking", "text": "hm"},
            {"type": "function_call", "id": "c", "function_id": "f", "arguments": {"q": 1}}]}),
    );
    server.say(
        "s",
        json!({"role": "function_result", "timestamp": 70_002, "function_call_id": "c", "function_id": "f",
        "content": [{"type": "text", "text": "18"}], "is_error": false, "details": null}),
    );
    server.say("s", answer("18 degrees", 70_003));
    let before = server.get(HISTORY);

    let posted = server.post(HISTORY, &before.json());

    assert_eq!((posted.status, posted.json()), (200, json!({"added": 0, "messages": []})));
    let some = before.json().as_array().unwrap()[37..41].to_vec();
    assert_eq!(server.post(HISTORY, &json!(some)).json()["added"], 0);
    assert_eq!(server.get(HISTORY).header("etag"), before.header("etag"));
    // In another session it is the same history.
    let copied = server.post("/sessions/copy/history?create=1", &before.json());
    assert_eq!((copied.status, copied.json()["added"].as_u64()), (200, Some(122)));
    assert_eq!(json!(server.history("copy")), before.json());
}

#[test]
fn given_a_message_when_it_is_posted_piece_by_piece_then_it_is_the_message() {
    let server = Server::new();
    let mut stream = None;
    let mut screen = Screen::default();
    let pieces = [
        json!([question("i", "Draw"), reply("i", &json!([text("Let me")]))]),
        json!([reply("i", &json!([text("Let me see.")]))]),
        json!([question("i", "Draw"), reply("i", &json!([text("Let me see."), chart("a")]))]),
        json!([reply("i", &json!([text("Let me see."), chart("a"), text("There")])), question("j", "Thanks")]),
        json!([
            question("j", "Thanks"),
            reply("j", &json!([])),
            reply("j", &json!([text("You are"),])),
            reply("j", &json!([text("You are welcome.")]))
        ]),
    ];
    let expected: [Value; 5] = [
        json!({"added": 2, "messages": ["i"]}),
        json!({"added": 1, "messages": ["i"]}),
        json!({"added": 1, "messages": ["i"]}),
        json!({"added": 2, "messages": ["i", "j"]}),
        json!({"added": 1, "messages": ["j"]}),
    ];
    for (piece, expected) in pieces.iter().zip(&expected) {
        let posted = server.post("/sessions/s/history?create=1", piece);
        assert_eq!((posted.status, &posted.json()), (200, expected));
        assert_eq!(server.post(HISTORY, piece).json()["added"], 0);
        let stream = stream.get_or_insert_with(|| server.open("/sessions/s/history?stream=1&deltas=1"));
        let now = server.history("s");
        screen.until(stream, |screen| screen.messages == now);
    }

    let history = server.history("s");

    assert_eq!(texts(&history[..1]), ["Draw"]);
    assert_eq!(history[1]["parts"], json!([text("Let me see."), chart("a"), text("There")]));
    assert_eq!(history[3]["parts"], json!([text("You are welcome.")]));
    assert_eq!(history.len(), 4);
}

#[test]
fn given_messages_that_grow_and_new_ones_when_they_are_posted_then_that_is_one_commit() {
    let server = Server::new();
    let begun =
        json!([reply("h", &json!([text("Wel")])), question("i", "Draw"), reply("i", &json!([text("Let me")])),]);
    server.post("/sessions/s/history?create=1", &begun);
    // One of them is stored as what was added to it.
    server.post(HISTORY, &json!([reply("i", &json!([text("Let me see")]))]));
    let mut stream = server.open("/sessions/s/history?stream=1&deltas=1");
    let mut screen = Screen::default();
    let all = json!([
        reply("h", &json!([text("Welcome")])),
        question("i", "Draw"),
        reply("i", &json!([text("Let me see."), chart("a")])),
        question("j", "Thanks"),
    ]);
    let before = server.store.head().0;

    let posted = server.post(HISTORY, &all);

    assert_eq!(posted.json(), json!({"added": 3, "messages": ["h", "i", "j"]}));
    assert_eq!(server.store.head().0, before + 1);
    let history = server.history("s");
    assert_eq!(history[0]["parts"], json!([text("Welcome")]));
    assert_eq!(history[2]["parts"], json!([text("Let me see."), chart("a")]));
    assert_eq!(texts(&history[3..]), ["Thanks"]);
    screen.until(&mut stream, |screen| screen.messages == history);
    assert_eq!(server.post(HISTORY, &all).json()["added"], 0);
}

#[test]
fn given_messages_when_one_of_them_says_something_else_then_none_is_added_and_it_is_named() {
    let server = Server::new();
    server
        .post("/sessions/s/history?create=1", &json!([question("i", "Hello"), reply("i", &json!([text("Hi")]))]));
    let before = server.get(HISTORY);

    for other in [
        json!([question("new", "x"), reply("i", &json!([text("Bye")]))]),
        json!([question("new", "x"), question("i", "Hello again")]),
        json!([question("new", "x"), question("new", "y")]),
        // The answer would go on behind the question that is added before it.
        json!([question("new", "x"), reply("i", &json!([text("Hi"), chart("a")]))]),
    ] {
        let refused = server.post(HISTORY, &other);

        assert_eq!(refused.refused(), (409, "session/conflict".to_owned()), "{other}");
        let named = other[1]["interaction_id"].as_str().unwrap();
        assert!(refused.json()["detail"].as_str().unwrap().contains(&format!("`{named}`")), "{refused:?}");
        assert_eq!(server.get(HISTORY).header("etag"), before.header("etag"));
    }
}

#[test]
fn given_a_message_that_others_follow_when_it_is_posted_longer_then_it_is_refused() {
    let server = Server::new();
    let messages = json!([question("i", "Hello"), reply("i", &json!([text("Hi")])), question("j", "Well?")]);
    server.post("/sessions/s/history?create=1", &messages);

    let refused = server.post(HISTORY, &json!([reply("i", &json!([text("Hi"), chart("a")]))]));

    assert_eq!(refused.refused(), (409, "session/conflict".to_owned()));
    assert_eq!(server.history("s").len(), 3);
    // Text at the end of what is there needs no new place.
    let posted = server.post(HISTORY, &json!([reply("i", &json!([text("Hi there")]))]));
    assert_eq!((posted.status, posted.json()["added"].as_u64()), (200, Some(1)));
    assert_eq!(server.history("s")[1]["parts"], json!([text("Hi there")]));
}

#[test]
fn given_a_message_on_another_branch_when_it_is_posted_then_it_is_refused() {
    let server = Server::new();
    server.session("s");
    let root = server.say("s", user("root", 1));
    server.post(HISTORY, &json!([question("i", "Hello")]));
    server.call("set-active-leaf", json!({"session_id": "s", "entry_id": root}));

    let refused = server.post(HISTORY, &json!([question("i", "Hello")]));

    assert_eq!(refused.refused(), (409, "session/conflict".to_owned()));
    assert!(refused.json()["detail"].as_str().unwrap().contains("branch"), "{refused:?}");
}

#[test]
fn given_many_who_post_the_same_at_once_when_they_are_done_then_it_is_there_once() {
    let server = Server::new();
    server.session("s");
    let messages: Vec<Value> = (0..10)
        .flat_map(|n| {
            let id = format!("i{n}");
            [question(&id, &id), reply(&id, &json!([text("a"), chart("b"), text("c")]))]
        })
        .collect();
    let messages = Value::from(messages);

    let added: Vec<u64> = std::thread::scope(|scope| {
        let post = || {
            let posted = server.post(HISTORY, &messages);
            assert_eq!(posted.status, 200, "{posted:?}");
            posted.json()["added"].as_u64().unwrap()
        };
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(post)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });

    assert_eq!(added.iter().sum::<u64>(), 20, "{added:?}");
    let history = server.history("s");
    assert_eq!(history.len(), 20);
    assert!(history.iter().skip(1).step_by(2).all(|it| it["parts"].as_array().unwrap().len() == 3));
}

#[test]
fn given_what_is_no_history_when_it_is_posted_then_it_is_refused_and_no_session_is_made() {
    let server = Server::new();
    assert_eq!(server.post(HISTORY, &json!([])).refused(), (404, "session/not_found".to_owned()));
    let invalid = (400, "session/invalid_request".to_owned());
    for wrong in [
        json!({}),
        json!([1]),
        json!([{"role": "user"}]),
        json!([{"role": "system", "interaction_id": "i", "timestamp": "t"}]),
        json!([{"role": "user", "interaction_id": "", "timestamp": "t"}]),
        json!([{"role": "user", "interaction_id": "i"}]),
        json!([{"role": "user", "interaction_id": "i", "timestamp": "t", "parts": {}}]),
    ] {
        assert_eq!(server.post("/sessions/s/history?create=1", &wrong).refused(), invalid, "{wrong}");
    }
    for query in ["?create=2", "?limit=1", "?create=1&create=1"] {
        assert_eq!(server.post(&format!("{HISTORY}{query}"), &json!([])).refused(), invalid, "{query}");
    }
    assert_eq!(server.get(HISTORY).refused(), (404, "session/not_found".to_owned()));
}

#[test]
fn given_a_key_that_may_only_read_when_it_posts_then_it_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let new = NewKey { name: "reader".to_owned(), read_only: true, ..NewKey::default() };
    let key = KeyStore::open(dir.path()).create(new, 0).unwrap().1;
    let server = Server::on(dir, Options::default(), settings());
    server.session("s");

    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str())];
    for path in [HISTORY, "/sessions/none/history", "/sessions/none/history?create=1"] {
        let refused = server.ask("POST", path, &headers, "[]");
        assert_eq!(refused.refused(), (403, "auth/forbidden".to_owned()), "{path}");
    }
    assert_eq!(server.ask("GET", HISTORY, &headers, "").text, "[]");
}
