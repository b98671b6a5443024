use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::client::*;

fn refusal(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

fn furnished(client: &Client) -> String {
    let session = client.session();
    let root = client.say(&session, "root <script>");
    client.say(&session, "left");
    client.post(&format!("/v1/sessions/{session}/messages"), json!({"message": user("right"), "parent_id": root}));
    session
}

#[test]
fn a_session_leaves_as_a_file_and_comes_back() {
    let client = Client::new();
    let session = furnished(&client);
    let log = client.get(&format!("/v1/sessions/{session}/export?to=session-log"));
    assert_eq!((log.status, log.header("content-type")), (200, Some("application/jsonl")));
    assert_eq!(log.header("content-disposition"), Some(&*format!("attachment; filename*=UTF-8''{session}.jsonl")));
    let tree = client.get(&format!("/v1/sessions/{session}/tree")).json();

    let import =
        |client: &Client, query: &str| client.send("POST", &format!("/v1/import{query}"), &[], &log.bytes);
    let same = import(&client, "");
    assert_eq!((same.status, &same.json()["sessions"][0]["unchanged"]), (200, &json!(3)));
    let other = Client::new();
    assert_eq!(import(&other, "?dry_run=1").json()["sessions"][0]["added"], 3);
    assert_eq!(other.get(&format!("/v1/sessions/{session}")).status, 404);
    assert_eq!(import(&other, "").json()["sessions"][0]["created"], true);
    assert_eq!(other.get(&format!("/v1/sessions/{session}/tree")).json(), tree);
}

#[test]
fn a_session_travels_as_an_archive() {
    let client = Client::new();
    let session = furnished(&client);
    let archive = client.get(&format!("/v1/sessions/{session}/export?to=opa"));
    assert_eq!((archive.status, archive.header("content-type")), (200, Some("application/vnd.opa+zip")));
    assert_eq!(
        archive.header("content-disposition"),
        Some(&*format!("attachment; filename*=UTF-8''{session}.opa"))
    );
    let plain = client.get(&format!("/v1/sessions/{session}/export?to=opa&plain=1"));
    assert!(plain.status == 200 && plain.bytes.len() < archive.bytes.len());
    let tree = client.get(&format!("/v1/sessions/{session}/tree")).json();

    let other = Client::new();
    let import = |query: &str, bytes: &[u8]| other.send("POST", &format!("/v1/import{query}"), &[], bytes);
    assert_eq!(import("?dry_run=1", &archive.bytes).json()["sessions"][0]["added"], 3);
    assert_eq!(other.get(&format!("/v1/sessions/{session}")).status, 404);
    let taken = import("", &archive.bytes).json();
    assert_eq!(
        (&taken["format"], &taken["sessions"][0]["signature"]["coverage"]),
        (&json!("opa"), &json!("none"))
    );
    assert_eq!(other.get(&format!("/v1/sessions/{session}/tree")).json(), tree);
    assert_eq!(import("", &archive.bytes).json()["sessions"][0]["unchanged"], 3);
    let half = &archive.bytes[..archive.bytes.len() / 2];
    assert_eq!(import("", half).refused(), refusal(400, "session/invalid_request"));
}

#[test]
fn a_file_may_be_larger_than_what_other_requests_have() {
    let limits = |settings: &mut banyan_server::Settings| {
        settings.limits.body_bytes = 64 << 10;
        settings.limits.import_bytes = 5 << 20;
    };
    let log = |messages: usize| -> Vec<u8> {
        let client = Client::new();
        let session = client.session();
        for number in 0..messages {
            client.say(&session, &format!("{number} {}", "x".repeat(30 << 10)));
        }
        client.get(&format!("/v1/sessions/{session}/export?to=session-log")).bytes
    };
    let client = Client::of(crate::server::Server::with(banyan::Options::default(), limits));
    let import = |bytes: &[u8]| client.send("POST", "/v1/import", &[], bytes);
    let large = log(100);
    assert!(large.len() > 2 << 20 && large.len() < 5 << 20, "{}", large.len());
    assert_eq!(import(&large).json()["sessions"][0]["added"], 100);
    assert_eq!(import(&large).json()["sessions"][0]["unchanged"], 100);
    // Before it is sent.
    let mut stream = TcpStream::connect(client.server.url.trim_start_matches("http://")).unwrap();
    let head = format!(
        "POST /v1/import HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        (5 << 20) + 1
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("session/too_large"), "{answer}");
    let left = std::fs::read_dir(client.server.data().join(".banyan/incoming")).unwrap().count();
    assert_eq!(left, 0, "what came in is not kept");
    let call = client.send("POST", "/v1/call/session::create", &[], &vec![b' '; (64 << 10) + 1]);
    assert_eq!(call.refused(), refusal(413, "session/too_large"));
}

#[test]
fn a_session_is_read_as_a_page_that_runs_nothing() {
    let client = Client::new();
    let session = furnished(&client);
    let page = client.get(&format!("/v1/sessions/{session}/export?to=html&redact=1"));
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert!(page.header("content-security-policy").unwrap().starts_with("sandbox; default-src 'none'"));
    let text = String::from_utf8(page.bytes).unwrap();
    assert!(
        text.contains("root &lt;script&gt;")
            && text.contains("Another branch: 1 entry")
            && !text.contains("<script")
    );
    let markdown = client.get(&format!("/v1/sessions/{session}/export?to=markdown"));
    assert_eq!(markdown.header("content-type"), Some("text/markdown; charset=utf-8"));
}

#[test]
fn what_cannot_be_exported_or_imported_is_refused() {
    let client = Client::new();
    let session = furnished(&client);
    let export = |query: &str| client.get(&format!("/v1/sessions/{session}/export{query}")).refused();
    for wrong in [
        "",
        "?to=parchment",
        "?to=html&to=html",
        "?to=html&redact=maybe",
        "?to=html&more=1",
        "?to=html&plain=1",
        "?to=opa&redact=1",
    ] {
        assert_eq!(export(wrong), refusal(400, "session/invalid_request"), "{wrong}");
    }
    assert_eq!(client.get("/v1/sessions/nobody/export?to=html").refused(), refusal(404, "session/not_found"));
    for (query, body) in [("", ""), ("", "PK\x03\x04"), ("", "{}"), ("?dry_run=maybe", ""), ("?more=1", "")] {
        let refused = client.send("POST", &format!("/v1/import{query}"), &[], body.as_bytes()).refused();
        assert_eq!(refused, refusal(400, "session/invalid_request"), "{query} {body}");
    }
}

#[test]
fn turns_are_read_in_pages() {
    let client = Client::new();
    let session = client.session();
    (0..3).for_each(|at| drop(client.say(&session, &at.to_string())));
    let first = client.get(&format!("/v1/sessions/{session}/turns?limit=2")).json();
    let statuses: Vec<&Value> = first["turns"].as_array().unwrap().iter().map(|turn| &turn["status"]).collect();
    assert_eq!(statuses, ["interrupted", "interrupted"]);
    let cursor = first["next_cursor"].as_str().unwrap().replace('=', "%3D").replace('+', "%2B");
    let last = client.get(&format!("/v1/sessions/{session}/turns?limit=2&cursor={cursor}")).json();
    assert_eq!((last["turns"].as_array().unwrap().len(), &last["turns"][0]["status"]), (1, &json!("pending")));
    assert_eq!(client.get("/v1/sessions/nobody/turns").refused(), refusal(404, "session/not_found"));
}
