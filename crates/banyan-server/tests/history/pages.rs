//! Pages of a history.

use serde_json::{Value, json};

use super::front_end::*;
use crate::support::*;

#[test]
fn given_turns_when_the_history_is_asked_for_then_each_is_a_question_and_an_answer() {
    let server = Server::new();
    talk(&server, "s", 2);

    let history = server.history("s");

    assert_eq!(texts(&history), ["question 0", "answer 0", "question 1", "answer 1"]);
    let keys: Vec<&str> = history[1].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "role",
            "text_content",
            "parts",
            "activity_parts",
            "response_text_main",
            "timestamp",
            "interaction_id",
            "processing_time_ms",
            "processed_at",
            "model_used",
            "selection_mode",
            "is_welcome_message",
            "message_type",
            "status",
        ]
    );
    assert_eq!(history[0]["interaction_id"], history[1]["interaction_id"]);
    assert_eq!(history[1]["timestamp"], "1970-01-01T00:00:00.500000+00:00");
    assert_eq!(server.get("/v1/sessions/s/history").text, server.get("/sessions/s/history").text);
}

#[test]
fn given_a_session_without_messages_when_its_history_is_asked_for_then_it_is_an_empty_array() {
    let server = Server::new();
    server.session("s");

    for query in ["", "?limit=5", "?since=2026-01-22T21:47:29Z"] {
        let answer = server.get(&format!("/sessions/s/history{query}"));
        assert_eq!((answer.status, answer.json(), answer.header("link")), (200, json!([]), None), "{query}");
    }
    assert_eq!(server.get("/sessions/none/history").refused(), (404, "session/not_found".to_owned()));
}

#[test]
fn given_a_limit_when_links_are_followed_then_every_message_is_there_once() {
    let server = Server::new();
    talk(&server, "s", 40);
    let all = server.history("s");

    for limit in [1, 3, 7, 79, 80, 500] {
        let mut pages: Vec<Value> = Vec::new();
        let mut next = Some(format!("/v1/sessions/s/history?limit={limit}"));
        let mut first = None;
        while let Some(path) = next {
            let answer = server.get(&path);
            let page = answer.json().as_array().unwrap().clone();
            assert!(page.len() <= limit && !page.is_empty(), "{path}");
            pages.splice(0..0, page);
            next = answer.link("prev");
            first = Some(path);
        }
        assert_eq!(pages, all, "{limit}");

        let mut pages: Vec<Value> = Vec::new();
        let mut next = first;
        while let Some(path) = next {
            let answer = server.get(&path);
            pages.extend(answer.json().as_array().unwrap().clone());
            next = answer.link("next");
        }
        assert_eq!(pages, all, "{limit} and forward");
    }
}
