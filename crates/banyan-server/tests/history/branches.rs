//! A history whose session goes another way.

use serde_json::{Value, json};

use crate::front_end::*;
use crate::listening::*;

/// A session with two turns, and the entry of its first question.
fn begun(server: &Server) -> Value {
    talk(server, "s", 2);
    server.call("messages", json!({"session_id": "s"}))["messages"][0]["entry_id"].clone()
}

const STREAM: &str = "/sessions/s/history?stream=1&deltas=1";

#[test]
fn given_a_stream_when_another_leaf_is_chosen_then_the_path_is_told_again() {
    let server = Server::new();
    let first = begun(&server);
    let mut stream = server.open(STREAM);
    let mut screen = Screen::default();
    screen.until_ready(&mut stream);

    server.call("set-active-leaf", json!({"session_id": "s", "entry_id": first}));
    screen.until(&mut stream, |screen| screen.resets == 1 && screen.ready);

    assert_eq!(texts(&screen.messages), ["question 0"]);
    assert_eq!(screen.messages, server.history("s"));
    // What is written there is new, and not told with another reset.
    let entry = server.say("s", answer("", 1));
    for word in ["another", " answer"] {
        server.extend("s", &entry, word);
    }
    screen.until(&mut stream, |screen| texts(&screen.messages).last() == Some(&"another answer"));
    assert_eq!((screen.messages, screen.resets), (server.history("s"), 1));
}

#[test]
fn given_a_stream_when_a_branch_is_begun_then_the_path_is_told_again() {
    let server = Server::new();
    let first = begun(&server);
    let mut stream = server.open(STREAM);
    let mut screen = Screen::default();
    screen.until_ready(&mut stream);

    server.call("append", json!({"session_id": "s", "parent_id": first, "message": answer("another answer", 1)}));
    screen.until(&mut stream, |screen| screen.resets == 1 && screen.ready);

    assert_eq!(texts(&screen.messages), ["question 0", "another answer"]);
    assert_eq!(screen.messages, server.history("s"));
}

#[test]
fn given_a_front_end_that_was_away_when_the_path_is_another_one_then_it_is_told_again() {
    let server = Server::new();
    let first = begun(&server);
    let mut screen = Screen::default();
    screen.until_ready(&mut server.open(STREAM));

    server.call("set-active-leaf", json!({"session_id": "s", "entry_id": first}));
    screen.come_back(&server, STREAM);
    assert_eq!((&screen.messages, screen.resets), (&server.history("s"), 1));

    // Back to where it was before, by writing there. The screen has only the first question by now.
    let tree = server.call("tree", json!({"session_id": "s"}));
    let last = tree["entries"][3]["entry_id"].clone();
    server.call("append", json!({"session_id": "s", "parent_id": last, "message": user("back", 5)}));
    screen.come_back(&server, STREAM);
    assert_eq!((&screen.messages, screen.resets), (&server.history("s"), 2));
    assert_eq!(texts(&screen.messages).len(), 5);

    // Away and back again is where it was.
    let leaf = server.call("tree", json!({"session_id": "s"}))["active_leaf"].clone();
    for entry in [first, leaf] {
        server.call("set-active-leaf", json!({"session_id": "s", "entry_id": entry}));
    }
    screen.come_back(&server, STREAM);
    assert_eq!((&screen.messages, screen.resets), (&server.history("s"), 2));
}

#[test]
fn given_a_message_on_another_branch_when_it_changes_then_nothing_is_sent() {
    let server = Server::new();
    let first = begun(&server);
    let tree = server.call("tree", json!({"session_id": "s"}));
    let elsewhere = tree["entries"][3]["entry_id"].as_str().unwrap().to_owned();
    server.call("set-active-leaf", json!({"session_id": "s", "entry_id": first}));
    let mut stream = server.open(STREAM);
    let mut screen = Screen::default();
    screen.until_ready(&mut stream);

    server.extend("s", &elsewhere, "!");
    server.say("s", answer("here", 1));
    let frame = stream.next().unwrap();

    assert_eq!(texts(&[frame.json()]), ["here"]);
}
