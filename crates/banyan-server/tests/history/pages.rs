//! Pages of a history.

use serde_json::{Value, json};

use crate::front_end::*;
use crate::listening::*;

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

#[test]
fn given_a_long_history_when_it_is_asked_for_whole_then_it_comes_in_pieces_and_is_all_there() {
    let server = Server::new();
    server.session("s");
    let long = "long ".repeat(2_000);
    for turn in 0..60 {
        server.say("s", user(&format!("question {turn}"), turn));
        server.say("s", answer(&long, turn));
    }

    let whole = server.get("/sessions/s/history");

    assert_eq!(whole.header("content-length"), None, "it is sent before it is known how long it is");
    let messages = whole.json().as_array().unwrap().clone();
    assert_eq!(messages.len(), 120);
    assert_eq!(texts(&messages)[118..], ["question 59", long.as_str()]);
    let paged = server.get("/sessions/s/history?limit=500").json();
    assert_eq!(paged, json!(messages));
}

#[test]
fn given_a_time_or_a_message_when_only_what_comes_after_is_asked_for_then_nothing_else_comes() {
    let server = Server::new();
    talk(&server, "s", 50);
    let all = server.history("s");
    let time = |ms: i64| format!("1970-01-01T00:00:{:02}.{:03}Z", ms / 1000, ms % 1000);
    for (since, first) in
        [(-1, 0), (0, 1), (499, 1), (500, 2), (20_000, 41), (20_250, 41), (49_499, 99), (49_500, 100)]
    {
        let since = if since < 0 { "1969-12-31T23:59:59Z".to_owned() } else { time(since) };
        for limit in ["", "&limit=500"] {
            let answer = server.get(&format!("/sessions/s/history?since={since}{limit}"));
            assert_eq!(answer.json(), json!(all[first..]), "{since}{limit}");
        }
        let newest = server.get(&format!("/sessions/s/history?since={since}&limit=3")).json();
        assert_eq!(newest, json!(all[first.max(97)..]), "{since}");
    }
    let plus = server.get("/sessions/s/history?since=1970-01-01T01:00:49.499+01:00").json();
    assert_eq!(plus, json!(all[99..]), "a plus sign need not be escaped");

    let link = server.get("/sessions/s/history?limit=20").link("prev").unwrap();
    let cursor = link.split_once("cursor=").unwrap().1;
    for limit in ["", "&limit=500"] {
        let after = server.get(&format!("/sessions/s/history?since={cursor}{limit}")).json();
        assert_eq!(after, json!(all[81..]), "after the message that the cursor is of");
        let before = server.get(&format!("/sessions/s/history?before={cursor}{limit}")).json();
        assert_eq!(before, json!(all[..80]));
        let since = time(10_000);
        let between = server.get(&format!("/sessions/s/history?before={cursor}&since={since}{limit}")).json();
        assert_eq!(between, json!(all[21..80]));
    }
}

#[test]
fn given_a_tag_when_nothing_has_changed_then_the_answer_is_empty() {
    let server = Server::new();
    talk(&server, "s", 3);
    for path in ["/sessions/s/history", "/v1/sessions/s/history?limit=2"] {
        let answer = server.get(path);
        let tag = answer.header("etag").unwrap().to_owned();
        for tags in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
            let known = server.ask("GET", path, &[("if-none-match", &tags)], "");
            assert_eq!((known.status, known.text.as_str(), known.header("etag")), (304, "", Some(tag.as_str())));
        }
        let other = server.ask("GET", path, &[("if-none-match", "\"other\"")], "");
        assert_eq!((other.status, &other.text), (200, &answer.text));
    }
    // Whatever changes what is shown changes the tag: text, a status, another leaf.
    let entry = server.say("s", answer("", 9));
    let mut tags = vec![server.get("/sessions/s/history").header("etag").unwrap().to_owned()];
    let mut changed = |what: &str| {
        let tag = server.get("/sessions/s/history").header("etag").unwrap().to_owned();
        assert!(!tags.contains(&tag), "{what}");
        tags.push(tag);
    };
    server.extend("s", &entry, "a");
    changed("text");
    server.extend("s", &entry, "b");
    changed("more text");
    server.set_status("s", "working");
    changed("a status");
    let first = server.call("messages", json!({"session_id": "s"}))["messages"][0]["entry_id"].clone();
    server.call("set-active-leaf", json!({"session_id": "s", "entry_id": first}));
    changed("a leaf");
}

#[test]
fn given_what_is_not_understood_when_it_is_asked_for_then_it_is_refused() {
    let server = Server::new();
    talk(&server, "s", 1);
    let invalid = (400, "session/invalid_request".to_owned());
    for query in [
        "limit=0",
        "limit=-1",
        "limit=x",
        "limit=",
        "limit=1&limit=1",
        "limits=1",
        "stream=2",
        "technical_details=yes",
        "deltas=1",
        "after=0",
        "stream=1&before=eyJiZWZvcmUiOiJlIn0",
        "stream=1&cursor=eyJiZWZvcmUiOiJlIn0",
        "since=1970-01-01T00:00:00Z&cursor=eyJiZWZvcmUiOiJlIn0",
    ] {
        assert_eq!(server.get(&format!("/sessions/s/history?{query}")).refused(), invalid, "{query}");
    }
    let no_cursor = (400, "session/invalid_cursor".to_owned());
    for query in
        ["cursor=", "cursor=x", "before=e_1", "since=yesterday", "cursor=eyJiZWZvcmUiOiJlIn0", "stream=1&after=x"]
    {
        for limit in ["", "&limit=2"] {
            let answer = server.get(&format!("/sessions/s/history?{query}{limit}"));
            assert_eq!(answer.refused(), no_cursor, "{query}{limit}");
        }
    }
}

#[test]
fn given_a_turn_with_many_entries_when_a_page_begins_in_it_then_the_turn_is_whole() {
    let server = Server::new();
    talk(&server, "s", 2);
    server.say("s", user("work", 5000));
    for step in 0..700 {
        server.say("s", answer(&format!("step {step}"), 5001 + step));
    }
    server.call("append", json!({"session_id": "s", "custom": {"custom_type": "note", "data": {"n": 1}}}));
    server.say("s", user("thanks", 9000));
    let all = server.history("s");

    assert_eq!(texts(&all)[4..], ["work", "step 699", "thanks"]);
    assert_eq!(all[5]["parts"].as_array().unwrap().len(), 700);
    for limit in 1..=7 {
        let page = server.get(&format!("/sessions/s/history?limit={limit}")).json();
        assert_eq!(page, json!(all[7 - limit..]), "{limit}");
    }
}
