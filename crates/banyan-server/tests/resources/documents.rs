use serde_json::Value;

use crate::client::*;
use crate::server::Server;

#[test]
fn the_document_is_served_as_json() {
    let client = Client::new();
    let document = client.get("/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document.get("security"), None, "a server without keys asks for none");
    let operations = document["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len());
    assert!(operations.sum::<usize>() > 40);
}

#[test]
fn what_streams_take_is_described() {
    let document = Client::new().get("/openapi.json").json();
    for path in ["/v1/events", "/v1/sessions/{session_id}/events"] {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
        for name in ["type", "roles", "metadata", "after", "deltas", "snapshot", "session_id"] {
            assert!(parameters.iter().any(|parameter| parameter["name"] == name), "{path} {name}");
        }
    }
}

#[test]
fn a_server_with_keys_says_so() {
    let client = Client::of(Server::start_with_key());
    let document = client.get("/openapi.json").json();
    assert_eq!(document["security"][0]["key"], Value::Array(Vec::new()));
    assert_eq!(client.get("/v1/sessions").refused(), (401, "auth/unauthenticated".to_owned()));
    let challenge = client.get("/v1/sessions");
    assert_eq!(challenge.header("www-authenticate"), Some("Bearer realm=\"banyan\""));
    assert!(document["paths"]["/v1/sessions"]["get"]["responses"]["401"].is_object());
}

#[test]
fn the_page_asks_nobody_but_this_server() {
    let client = Client::new();
    let page = client.get("/docs");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    let html = String::from_utf8(page.bytes).unwrap();
    assert!(!html.contains("http://") && !html.contains("https://"));
    assert!(!html.contains("/*script*/") && !html.contains("/*style*/"));
    let index = client.get("/");
    assert_eq!((index.status, index.header("location")), (307, Some("/docs")));
}
