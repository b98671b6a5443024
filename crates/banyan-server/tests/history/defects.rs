//! What other servers of this format get wrong, by the numbers of the list that was made of it. What needs no server is in the
//! tests of banyan-formats.

use banyan::{Banyan, Durability, Options};
use banyan_server::{KeyStore, NewKey};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::front_end::*;
use crate::listening::*;

const HISTORY: &str = "/sessions/s/history";

fn posted(interaction: &str, text: &str) -> Value {
    json!([{"role": "user", "interaction_id": interaction, "timestamp": "2026-01-22T21:47:29.763430",
        "text_content": text}])
}

/// A server with a key for each of two owners.
fn two_tenants(owners: [&str; 2]) -> (Server, [String; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let keys = keys(&dir, owners);
    (Server::on(dir, Options::default(), settings()), keys)
}

fn keys(dir: &TempDir, owners: [&str; 2]) -> [String; 2] {
    let keys = KeyStore::open(dir.path());
    owners.map(|owner| {
        let new: NewKey = serde_json::from_value(json!({"name": owner, "scope": {"owner": owner}})).unwrap();
        format!("Bearer {}", keys.create(new, 0).unwrap().1)
    })
}

fn with(server: &Server, key: &str, method: &str, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.ask(method, path, &[("authorization", key)], &body)
}

#[test]
fn defect_6_1_2_what_was_posted_is_there_at_once() {
    let server = Server::new();
    for n in 0..20 {
        let (path, id) = (format!("/sessions/s{n}/history"), format!("s{n}"));
        server.post(&format!("{path}?create=1"), &posted("i", "hi"));
        assert_eq!(texts(&server.history(&id)), ["hi"]);
        server.set_status(&id, "done");
        let done = server.get("/v1/sessions?status=done&limit=100").json();
        assert_eq!(done["sessions"].as_array().unwrap().len(), n + 1);
        assert_eq!(server.get("/v1/sessions?status=idle").json()["sessions"], json!([]));
    }
}

#[test]
fn defect_6_1_4_a_page_is_the_same_wherever_sessions_are_kept() {
    let memory = Banyan::in_memory(Options::default()).unwrap();
    let servers = [Server::new(), Server::of(memory, tempfile::tempdir().unwrap(), settings())];
    let pages = servers.map(|server| {
        talk(&server, "s", 10);
        let newest = server.get(&format!("{HISTORY}?limit=3"));
        let before = server.get(&newest.link("prev").unwrap());
        [newest, before].map(|page| {
            page.json()
                .as_array()
                .unwrap()
                .iter()
                .map(|message| message["text_content"].clone())
                .collect::<Vec<_>>()
        })
    });
    assert_eq!(pages[0], pages[1]);
    assert_eq!(pages[0].concat().len(), 6);
}

#[test]
fn defect_6_2_4_what_could_not_be_stored_is_said() {
    let server = Server::new();
    server.post(&format!("{HISTORY}?create=1"), &posted("i", "kept"));
    server.store.close().unwrap();
    let refused = server.post(HISTORY, &posted("j", "lost"));
    assert_eq!((refused.status, refused.json()["code"].as_str()), (503, Some("session/storage")));
    let server = server.restarted(Options::default());
    assert_eq!(texts(&server.history("s")), ["kept"]);
}

#[test]
fn defect_6_5_1_an_id_that_is_guessed_opens_nothing() {
    let (server, [mine, theirs]) = two_tenants(["a", "b"]);
    assert_eq!(with(&server, &mine, "POST", "/sessions/s/history?create=1", &posted("i", "mine")).status, 200);
    for (method, path, body) in [
        ("POST", HISTORY, posted("j", "theirs")),
        ("POST", "/sessions/s/history?create=1", posted("j", "theirs")),
        ("GET", HISTORY, Value::Null),
        ("GET", "/v1/sessions/s", Value::Null),
        ("GET", "/sessions/s/history?stream=1", Value::Null),
    ] {
        assert_eq!(with(&server, &theirs, method, path, &body).status, 404, "{method} {path}");
    }
    with(&server, &theirs, "DELETE", "/v1/sessions/s", &Value::Null);
    let kept = with(&server, &mine, "GET", HISTORY, &Value::Null).json();
    assert_eq!(texts(kept.as_array().unwrap()), ["mine"]);
}

#[test]
fn defect_6_5_2_an_owner_and_an_id_cannot_be_taken_for_others() {
    let (server, [short, long]) = two_tenants(["a", "a_b"]);
    with(&server, &long, "POST", "/sessions/c/history?create=1", &posted("i", "of a_b"));
    with(&server, &short, "POST", "/sessions/b_c/history?create=1", &posted("i", "of a"));
    for (key, own, other) in [(&long, "c", "b_c"), (&short, "b_c", "c")] {
        assert_eq!(with(&server, key, "GET", &format!("/sessions/{own}/history"), &Value::Null).status, 200);
        assert_eq!(with(&server, key, "GET", &format!("/sessions/{other}/history"), &Value::Null).status, 404);
    }
}

#[test]
fn defect_6_5_3_nobody_else_names_or_closes_a_session() {
    let (server, [mine, theirs]) = two_tenants(["a", "b"]);
    with(&server, &mine, "POST", "/sessions/s/history?create=1", &posted("i", "mine"));
    let before = with(&server, &mine, "GET", "/v1/sessions/s", &Value::Null).json();
    for (function, request) in [
        ("set-meta", json!({"title": "theirs"})),
        ("set-status", json!({"status": "done"})),
        ("append", json!({"message": user("theirs", 1)})),
    ] {
        let mut request = request;
        request["session_id"] = json!("s");
        let path = format!("/v1/call/session::{function}");
        assert_eq!(with(&server, &theirs, "POST", &path, &request).status, 404, "{function}");
    }
    assert_eq!(with(&server, &mine, "GET", "/v1/sessions/s", &Value::Null).json(), before);
}

#[test]
fn defect_6_5_4_a_key_has_the_same_sessions_after_a_restart() {
    let (server, [mine, theirs]) = two_tenants(["a", "b"]);
    with(&server, &mine, "POST", "/sessions/s/history?create=1", &posted("i", "mine"));
    let server = server.restarted(Options::default());
    assert_eq!(with(&server, &mine, "GET", HISTORY, &Value::Null).status, 200);
    assert_eq!(with(&server, &theirs, "GET", HISTORY, &Value::Null).status, 404);
}

#[test]
fn defect_6_6_1_the_first_half_of_a_long_history_can_be_reached() {
    let server = Server::with(Options { durability: Durability::Buffered, ..Options::default() }, settings());
    talk(&server, "s", 400);
    let whole = server.history("s");
    assert_eq!(whole.len(), 800);
    let mut walked: Vec<Value> = Vec::new();
    let mut next = Some(format!("{HISTORY}?limit=300"));
    while let Some(path) = next {
        let page = server.get(&path);
        walked.splice(0..0, page.json().as_array().unwrap().clone());
        next = page.link("prev");
    }
    assert_eq!(walked, whole);
    let etag = server.get(HISTORY).header("etag").unwrap().to_owned();
    assert_eq!(server.ask("GET", HISTORY, &[("if-none-match", &etag)], "").status, 304);
}

#[test]
fn defect_6_6_3_the_ten_thousand_and_first_session_is_listed() {
    let server = Server::with(Options { durability: Durability::Buffered, ..Options::default() }, settings());
    for n in 0..10_001 {
        server.session(&format!("s{n}"));
    }
    let (mut found, mut cursor) = (0, String::new());
    loop {
        let page = server.get(&format!("/v1/sessions?limit=500{cursor}")).json();
        found += page["sessions"].as_array().unwrap().len();
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, 10_001);
}

#[test]
fn defect_6_6_4_no_message_survives_its_session() {
    let server = Server::new();
    for n in 0..20 {
        server.post(&format!("{HISTORY}?create=1"), &posted(&format!("i{n}"), "old"));
        assert_eq!(server.ask("DELETE", "/v1/sessions/s", &[], "").status, 200);
        assert_eq!(server.get(HISTORY).status, 404);
        server.session("s");
        assert_eq!(server.get(HISTORY).json(), json!([]));
        server.call("delete", json!({"session_id": "s"}));
    }
}

#[test]
fn defect_6_6_7_what_was_posted_and_what_tools_said_is_found() {
    let server = Server::new();
    server.post(&format!("{HISTORY}?create=1"), &posted("i", "a kumquat tree"));
    let result = json!({"role": "function_result", "function_call_id": "c", "function_id": "shell",
        "content": [{"type": "text", "text": "rambutan.txt: no such file"}], "timestamp": 1});
    server.call("append", json!({"session_id": "s", "message": result}));
    for (word, role) in [("kumquat", "user"), ("rambutan", "function_result")] {
        let found = server.get(&format!("/v1/search?q={word}&wait_ms=30000")).json();
        let hits = found["hits"].as_array().unwrap();
        assert_eq!(hits.len(), 1, "{found}");
        assert_eq!((&hits[0]["session_id"], &hits[0]["role"]), (&json!("s"), &json!(role)));
    }
}
