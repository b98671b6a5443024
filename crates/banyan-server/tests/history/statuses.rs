//! A turn that is cancelled, fails or is left alone keeps what it had, in order, and says how it ended.

use serde_json::{Value, json};

use crate::front_end::*;
use crate::listening::*;

fn message(stop_reason: &str, content: &Value) -> Value {
    json!({"role": "assistant", "content": content, "timestamp": 10, "model": "m", "provider": "p",
        "stop_reason": stop_reason})
}

/// A turn in the middle: a thought, a call with its result, and text that grows.
fn a_turn(server: &Server, stop_reason: &str) -> String {
    server.session("s");
    server.set_status("s", "working");
    server.say("s", user("go", 1));
    server.say(
        "s",
        message(
            "function_call",
            &json!([{"type": "thinking", "text": "first"},
        {"type": "function_call", "id": "c", "function_id": "f", "arguments": {}}]),
        ),
    );
    server.say(
        "s",
        json!({"role": "function_result", "timestamp": 11, "function_call_id": "c", "function_id": "f",
        "content": [{"type": "text", "text": "found"}], "is_error": false, "details": null}),
    );
    let entry = server.say("s", message(stop_reason, &json!([{"type": "text", "text": ""}])));
    for word in ["half", " of", " it"] {
        server.extend("s", &entry, word);
    }
    entry
}

/// What kinds of parts there are, in order.
fn kinds(message: &Value) -> Vec<&str> {
    let parts = message["parts"].as_array().unwrap();
    parts.iter().map(|part| part["activity_type"].as_str().or(part["type"].as_str()).unwrap()).collect()
}

const PARTS: [&str; 4] = ["thought", "tool_request", "tool_result", "text_output"];

#[test]
fn given_a_turn_that_ends_in_some_way_when_it_is_read_then_it_has_all_it_had_and_a_status() {
    for (stop_reason, status, said) in [
        ("end", "idle", "complete"),
        ("length", "done", "complete"),
        ("aborted", "idle", "cancelled"),
        ("error", "idle", "error"),
        ("end", "error", "error"),
        ("function_call", "idle", "interrupted"),
    ] {
        let server = Server::new();
        a_turn(&server, stop_reason);
        let mut screen = Screen::default();
        let mut stream = server.open("/sessions/s/history?stream=1&deltas=1");
        screen.until_ready(&mut stream);
        assert_eq!(screen.messages[1]["status"], "streaming");
        assert_eq!(screen.messages[1]["processed_at"], Value::Null);

        server.set_status("s", status);
        screen.until(&mut stream, |screen| screen.messages[1]["status"] != "streaming");

        let history = server.history("s");
        assert_eq!(history[1]["status"], said, "{stop_reason} {status}");
        assert_eq!(kinds(&history[1])[..4], PARTS, "{stop_reason} {status}");
        assert_eq!(history[1]["parts"][3]["text"], "half of it");
        assert_eq!(screen.messages, history);
    }
}

#[test]
fn given_a_writer_that_is_gone_when_the_next_question_comes_then_its_answer_stays_as_it_was() {
    let server = Server::new();
    a_turn(&server, "function_call");
    let mut stream = server.open("/sessions/s/history?stream=1");
    let mut screen = Screen::default();
    screen.until_ready(&mut stream);

    server.say("s", user("are you there?", 20));
    screen.until(&mut stream, |screen| screen.messages.len() == 3);

    assert_eq!(screen.messages, server.history("s"));
    assert_eq!(screen.messages[1]["status"], "interrupted");
    assert_eq!(kinds(&screen.messages[1]), PARTS);
}

#[test]
fn given_a_server_that_stops_in_the_middle_of_a_turn_when_it_starts_again_then_the_turn_goes_on() {
    let server = Server::new();
    let entry = a_turn(&server, "end");
    let path = "/sessions/s/history?stream=1&deltas=1";
    let mut screen = Screen::default();
    screen.until_ready(&mut server.open(path));
    server.extend("s", &entry, " now");

    let server = server.restarted(banyan::Options::default());
    let mut stream = screen.come_back(&server, path);
    assert_eq!((&screen.messages, screen.resets), (&server.history("s"), 0));
    assert_eq!(screen.messages[1]["parts"][3]["text"], "half of it now");

    server.extend("s", &entry, " and then");
    server.set_status("s", "done");
    screen.until(&mut stream, |screen| screen.messages[1]["status"] == "complete");
    assert_eq!(screen.messages, server.history("s"));
}
