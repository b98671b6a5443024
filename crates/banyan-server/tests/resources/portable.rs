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
    for wrong in ["", "?to=parchment", "?to=html&to=html", "?to=html&redact=maybe", "?to=html&more=1"] {
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
